# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is read out of a run: waits, whose they are, how long they last, and the matrix of the classes."""

from __future__ import annotations

import dataclasses
import re
import resource
import tempfile
from pathlib import Path

import numpy as np
import pytest
from command import write

from headwaiter.base import reading
from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.papers.was.classify import Reads
from headwaiter.papers.was.config import config
from headwaiter.papers.was.matrix import Matrix, load_matrix, tabulate, to_text
from headwaiter.papers.was.observe import Observation, ObservedWaits, joined, read_log, watch
from headwaiter.study.workload import Reading, find_workload, read_workload

MS = 1_000_000
HEAD = "time_ns,event,request,task,op,sector,sectors,reason\n"
ONE = config(5, [[0, 1]], [[0, 0]], [6000])


def forest(rows: list[tuple[int, int, int]]) -> Forest:
    """Reads of 8 sectors: task, time in ms, sector."""
    task, time, sector = zip(*rows, strict=True)
    n = len(rows)
    return Forest(
        tasks=[Task(id=i, name=str(i), group=i) for i in range(max(task) + 1)],
        time_ns=np.array(time, np.int64) * MS,
        parent=np.full(n, -1, np.int64),
        delay_ns=np.zeros(n, np.int64),
        task=np.array(task, np.uint32),
        op=np.zeros(n, np.uint8),
        flags=np.ones(n, np.uint8),
        sector=np.array(sector, np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def test_w6_a_wait_that_is_met() -> None:
    """A1 is served until 5, A2 comes at 8: met in the third millisecond. The wait for A2's successor is in vain."""
    o = watch("w6", ConstantDrive(5 * MS), forest([(0, 0, 0), (1, 0, 1_000_000), (0, 8, 8)]), Options())
    assert (o.waits.met.tolist(), o.waits.elapsed_ns.tolist()) == ([True, False], [3 * MS, 10 * MS])
    assert o.waits.read.tolist() == [0, 2], "A1 was the last read before the first wait, A2 before the other"
    assert o.matrix(ONE).counts.tolist() == [[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]]
    assert o.matrix(ONE, 2500).counts.tolist() == [[0, 1, 0, 0, 1]]


def test_w6_a_wait_in_vain() -> None:
    o = watch("w6", ConstantDrive(5 * MS), forest([(0, 0, 0), (1, 0, 1_000_000)]), Options(), max_us=4000)
    assert o.matrix(ONE).counts.tolist() == [[0, 0, 0, 0, 1]]
    assert o.waits.elapsed_ns.tolist() == [4 * MS]


def test_all_waits_for_reads_are_there() -> None:
    """As many as the scheduler counts."""
    drive = open_drive("barracuda-80g")
    load = read_workload(find_workload("readers-4"), drive, Reading()).load
    o = watch("readers", drive, load, Options())
    totals = simulate("as", drive, load, {"cooperation": 1, "antic_expire": 10}).totals
    assert totals["a_success"] > 1000
    assert (int(o.waits.met.sum()), int((~o.waits.met).sum())) == (totals["a_success"], totals["a_fail"])
    assert int(o.matrix(ONE).counts.sum()) == totals["a_success"] + totals["a_fail"]
    finer = watch("readers", drive, load, Options(), bucket_us=100)
    assert finer.matrix(ONE, 100).buckets == 100
    assert finer.waits.elapsed_ns[finer.waits.met].min() < MS


def test_the_scheduler_counts_the_same() -> None:
    """`was` with 10 ms for everybody is `as` with 10 ms, and counts the same waits in the same classes.

    It counts whole ticks that have begun; the interval that would have met the read ends with the tick of its arrival.
    """
    drive = open_drive("barracuda-80g")
    load = read_workload(find_workload("readers-4"), drive, Reading()).load
    classes = config(5, [[0, 70], [257, 30], [4096, 0]], [[0, 30], [20_000, 15], [60_000, 0]], [10_000] * 20)
    counted = simulate("was", drive, load, {"cooperation": 1, "observe": 1, "config": classes.rows()}).counters
    expected = watch("readers", drive, load, Options()).matrix(classes).counts
    assert counted is not None and len(np.flatnonzero(expected.any(axis=1))) > 2
    assert counted[:20].sum(axis=1).tolist() == expected.sum(axis=1).tolist()
    assert counted[:20, -1].tolist() == expected[:, -1].tolist()
    assert not counted[20:].any() and not counted[:, 10:-1].any()


@pytest.mark.parametrize("interval_ms", [1, 2, 3])
def test_an_interval_meets_what_the_matrix_says(interval_ms: int) -> None:
    """Reads 0.3 to 2.9 ms after a completion at 5.5 ms: those in buckets up to the interval's, and no others."""
    for late in (300, 600, 1400, 1500, 1600, 2400, 2500, 2900):
        rows = [(0, 0, 0), (1, 0, 1_000_000)]
        load = forest([*rows, (0, 8, 8)])
        load = dataclasses.replace(load, time_ns=np.array([0, 0, 5_500_000 + late * 1000], np.int64))
        drive = ConstantDrive(5_500_000)
        counts = watch("x", drive, load, Options()).matrix(ONE).counts[0]
        met = simulate("as", drive, load, {"cooperation": 1, "antic_expire": interval_ms}).totals["a_success"]
        assert met == counts[:interval_ms].sum(), late


LOG = """0,insert,0,7,R,100,8,
0,dispatch,0,7,R,100,8,
100000,insert,1,9,R,900000,8,
1500000,complete,0,7,R,100,8,
1500000,wait_begin,,7,,,,
2100000,insert,2,7,R,108,8,
2100000,wait_end,,7,,,,
2100000,dispatch,2,7,R,108,8,
4200000,complete,2,7,R,108,8,
4200000,wait_begin,,7,,,,
5000000,insert,3,9,R,110,8,
5000000,wait_end,,7,,,,
5000000,dispatch,3,9,R,110,8,
6300000,complete,3,9,R,110,8,
6300000,wait_begin,,9,,,,
7000000,insert,4,9,W,200,8,
7000000,wait_end,,9,,,,
8000000,complete,4,9,W,200,8,
8000000,wait_begin,,9,,,,
18000000,wait_end,,9,,,,
19000000,wait_begin,,9,,,,
"""


def test_a_log_line_by_line(tmp_path: Path) -> None:
    """Met 0.6 ms after 1.5 ms, which is in the second tick after the completion's; ended by another's read; by a write; in vain;
    and one that has not ended."""
    o = read_log(write(tmp_path / "log", HEAD + LOG), "log", 10_000)
    assert o.reads.task.tolist() == [7, 9, 7, 9]
    assert o.reads.sector.tolist() == [100, 900000, 108, 110]
    assert o.reads.time_ns.tolist() == [0, 100_000, 2_100_000, 5_000_000]
    assert o.waits.met.tolist() == [True, False]
    assert o.waits.elapsed_ns.tolist() == [1_100_000, 10 * MS]
    assert o.waits.read.tolist() == [0, 3]
    exact = read_log(tmp_path / "log", "log", 10_000, ticks=False)
    assert exact.waits.elapsed_ns.tolist() == [600_000, 10 * MS]


def test_buckets() -> None:
    """Up to 1 ms the first, at once too; beyond the last, and in vain, a failure."""
    elapsed = np.array([0, 1, MS, MS + 1, 3 * MS, 3 * MS + 1, MS])
    met = np.array([True] * 6 + [False])
    which = np.array([2, 2, 2, 2, 1, 1, 2])
    assert tabulate(3, 3, 1000, (which, elapsed, met)).tolist() == [[0, 0, 1, 1], [3, 1, 0, 1], [0, 0, 0, 0]]


def test_classes_of_waits_are_of_the_last_read() -> None:
    """The first read is of a new process, class 10; the second is far from it; and whoever has not read is new, too."""
    two = config(2, [[0, 10], [100, 0]], [[0, 0]], [1000] * 10)
    reads = Reads(np.array([1, 1]), np.array([0, MS]), np.array([0, 500]))
    o = Observation(reads, ObservedWaits(np.array([0, 1, -1]), np.array([MS] * 3), np.array([True] * 3)), 10_000, "x")
    assert o.classes(two).tolist() == [10, 1, 10]
    nobody = dataclasses.replace(
        o,
        reads=Reads(*(np.empty(0, np.int64),) * 3),
        waits=ObservedWaits(*(c[:1] for c in (np.array([-1]), np.array([MS]), np.array([True])))),
    )
    assert nobody.classes(two).tolist() == [10]


def test_joined_observations_share_no_process() -> None:
    def of(sector: int) -> Observation:
        reads = Reads(np.array([0, 0]), np.array([0, MS]), np.array([0, sector]))
        return Observation(
            reads, ObservedWaits(np.array([1, -1]), np.array([MS, MS]), np.array([True, False])), 10_000, str(sector)
        )

    two = config(2, [[0, 10], [100, 0]], [[0, 0]], [1000] * 10)
    both = joined([of(8), of(5000), of(8)])
    assert both.name == "8, 5000, 8"
    assert both.reads.task.tolist() == [0, 0, 1, 1, 2, 2]
    assert both.classes(two).tolist() == [10, 10, 1, 10, 10, 10]
    with pytest.raises(Problem, match="8 was observed with waits of up to 10000 us, 5 of 4000 us"):
        joined([of(8), dataclasses.replace(of(5), max_us=4000)])


def test_the_longest_wait_is_whole_buckets_and_milliseconds() -> None:
    load = forest([(0, 0, 0)])
    for max_us, bucket_us, why in ((10_000, 300, "a bucket of 300 us"), (500, 100, "must be whole milliseconds, not 500 us")):
        with pytest.raises(Problem, match=why):
            watch("x", ConstantDrive(MS), load, Options(), max_us, bucket_us)


def test_a_log_without_room_is_told_of_the_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is a temporary file that nobody has named."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = f"^readers on constant:1: its log of events, in {re.escape(str(tmp_path))}: "
    with monkeypatch.context() as within:
        within.setattr(reading, "_LEAST", 8)
        within.setattr(reading, "free_memory_bytes", lambda: 8)
        with pytest.raises(Problem, match=f"{said}has more than"):
            watch("readers on constant:1", ConstantDrive(MS), forest([(0, 0, 0)]), Options())
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, old[1]))
    try:
        with pytest.raises(Problem, match=f"{said}File too large$"):
            watch("readers on constant:1", ConstantDrive(MS), forest([(0, 0, 0)]), Options())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert list(tmp_path.iterdir()) == []


REMARK = "must be text, a number of 64 bits, true or false, or a list of these"
GOOD = Matrix(np.array([[0, 0, 0], [3, 1, 2], [0, 0, 9]], np.int64), 500, "abc", {"observed": "x"})


@pytest.mark.parametrize("toml", [False, True])
def test_a_matrix_is_what_its_file_says(tmp_path: Path, toml: bool) -> None:
    found = load_matrix(write(tmp_path / "m", to_text(GOOD, toml)))
    assert (found.counts == GOOD.counts).all()
    assert (found.bucket_us, found.classifier, found.made) == (500, "abc", {"observed": "x"})


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("matrix/1", "matrix/2", "format: headwaiter-was-matrix/2 where headwaiter-was-matrix/1 is expected"),
        ('"format"', '"formal"', 'format: is missing (this version reads "headwaiter-was-matrix/1")'),
        ('"3": [', '"4": [', "rows.4: no class from 1 to 3"),
        ('"3": [', '"x": [', "rows.x: no class from 1 to 3"),
        ("[3, 1, 2]", "[3, 1]", "rows.2: must be a list of 3 counts"),
        ("[3, 1, 2]", "[3, 1, -2]", "rows.2: -2 is not a count"),
        ("[3, 1, 2]", "[3, 1, 2.5]", "rows.2: 2.5 is not a count"),
        ('"classes": 3', '"classes": 0', "classes: must be a whole number from 1 to 512"),
        ('"buckets": 2', '"buckets": true', "buckets: must be a whole number from 1 to 10000"),
        ('"classifier": "abc"', '"classifier": 1', "classifier must be text, rows a table"),
        ('"observed": "x"', '"observed": null', f"made.observed: {REMARK}"),
        ('"observed": "x"', '"": "x"', "made: '' is no name (letters, digits, - and _, 64 at most)"),
        ('"classes": 3,', '"classes": 3', "not JSON: Expecting ',' delimiter: line 5 column 2 (char 77)"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_matrix_is_one_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    text = to_text(GOOD, toml=False)
    assert text.count(old) == 1
    path = write(tmp_path / "m.json", text.replace(old, new))
    with pytest.raises(Problem, match=f"^{re.escape(f'{path}: {why}')}$"):
        load_matrix(path)


def test_half_a_surrogate_pair_is_no_text(tmp_path: Path) -> None:
    """It could not be written into a configuration."""
    path = write(tmp_path / "m.json", to_text(GOOD, toml=False).replace('"x"', '"\\ud800"'))
    with pytest.raises(Problem, match=f"^{re.escape(str(path))}: not JSON: .* surrogates not allowed$"):
        load_matrix(path)


def test_a_matrix_that_is_no_toml_is_named_once(tmp_path: Path) -> None:
    path = write(tmp_path / "m.toml", "format = ")
    with pytest.raises(Problem, match=f"^{re.escape(str(path))}: not TOML"):
        load_matrix(path)
