# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The native format, packed files, what depends on what, threads of control, and errors that name their place."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from click.testing import CliRunner

from headwaiter.base.errors import Problem
from headwaiter.cli import import_
from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.traces import Trace, closed_loop, detect, load, write_csv
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import TraceTask

HEADER = "time_s,task,op,sync,sector,sectors"
PLAIN = f"{HEADER}\n0.5,7,R,1,1000,8\n0.25,9,W,0,2000,16\n0.5,7,D,0,5000,1024\n"


def write(folder: Path, text: str | bytes, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def problem(path: Path, **options: object) -> str:
    with pytest.raises(Problem) as caught:
        load(path, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(str(path))


def trace(rows: list[tuple[int, int, int]], **more: object) -> Trace:
    """Reads of one sector each: (task, issued, completed), times in ns."""
    task, time, complete = (np.array(column) for column in zip(*rows, strict=True))
    ones = np.ones(len(rows), np.int64)
    return make_trace(
        source="test", format="test", time_ns=time, complete_ns=complete, task_id=task, sector=ones, sectors=ones,
        op=ones * 0, **more,  # type: ignore[arg-type]
    )  # fmt: skip


# Native CSV


def test_native_columns_sorted_and_numbered(tmp_path: Path) -> None:
    t = load(write(tmp_path, PLAIN))
    assert t.format == "native"
    assert t.time_ns.tolist() == [250_000_000, 500_000_000, 500_000_000]
    assert t.op.tolist() == [Op.WRITE, Op.READ, Op.DISCARD], "requests of one instant keep their order"
    assert t.flags.tolist() == [0, SYNC, 0]
    assert (t.sector.tolist(), t.sectors.tolist()) == ([2000, 1000, 5000], [16, 8, 1024])
    assert [task.id for task in t.tasks] == [9, 7]
    assert t.task.tolist() == [0, 1, 1]
    assert t.group.tolist() == [0, 1, 1]
    assert t.tasks_known and not t.completions_known
    assert (t.span_ns, t.bytes) == (250_000_000, (8 + 16 + 1024) * 512)
    assert [str(c.dtype) for c in (t.time_ns, t.complete_ns, t.task, t.group, t.op, t.flags)] == [
        "int64", "int64", "uint32", "uint32", "uint8", "uint8",
    ]  # fmt: skip
    assert [str(c.dtype) for c in (t.sector, t.sectors, t.ioprio)] == ["uint64", "uint32", "uint16"]


def test_native_optional_columns_in_any_order(tmp_path: Path) -> None:
    text = (
        "# made by hand\n\n"
        "name, ioprio,group,time_s,task,op,sync,sector,sectors,complete_s,meta\r\n"
        "sh,rt/0,3,0.000000001,1,R,1,8,8,0.000000002,1\r\n"
        "cat,be/4,3,1e-3,2,R,1,8,8,,0\r\n"
        "cat,idle,4,1,2,O,0,8,8,1.5,0\r\n"
        ",none,4,2.,3,W,0,8,8,+2.25,0\r\n"
    )
    t = load(write(tmp_path, text))
    assert t.time_ns.tolist() == [1, 1_000_000, 10**9, 2 * 10**9]
    assert t.complete_ns.tolist() == [2, -1, 1_500_000_000, 2_250_000_000]
    assert t.ioprio.tolist() == [1 << 13, 2 << 13 | 4, 3 << 13, 0]
    assert t.group.tolist() == [0, 0, 1, 1]
    assert t.tasks == (TraceTask(1, "sh"), TraceTask(2, "cat"), TraceTask(3))
    assert t.flags.tolist() == [SYNC | META, SYNC, 0, 0]
    assert t.completions_known


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    rows = ["1456095145.133076001", "1456095145.1330760015", "0.0000000004", "0.0000000005", "1.00000000049999"]
    t = load(write(tmp_path, HEADER + "\n" + "".join(f"{r},1,R,1,0,1\n" for r in rows)))
    assert t.time_ns.tolist() == [0, 1, 10**9, 1456095145133076001, 1456095145133076002]


def test_writing_and_reading_gives_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n = 1000
    time = np.sort(rng.integers(0, 10**12, n))
    before = make_trace(
        source="x",
        format="x",
        time_ns=time,
        complete_ns=np.where(rng.random(n) < 0.1, -1, time + rng.integers(0, 9, n)),
        sector=rng.integers(0, 2**40, n),
        sectors=rng.integers(1, 2**32 - 1, n),
        op=rng.integers(0, 4, n),
        flags=rng.integers(0, 4, n),
        task_id=rng.integers(0, 50, n),
        group=rng.integers(0, 9, n),
        ioprio=rng.choice([0, 1 << 13, 2 << 13 | 7, 3 << 13], n),
        names={1: "a b", 2: 'c,"d"\n'},
    )
    out = io.StringIO()
    write_csv(before, out)
    after = load(write(tmp_path, out.getvalue()))
    for name in ("time_ns", "complete_ns", "task", "group", "op", "flags", "sector", "sectors", "ioprio"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    assert {t.id: t.name for t in after.tasks if t.name} == {1: "a b", 2: "c__d_\\n"}
    assert [t.id for t in after.tasks] == [t.id for t in before.tasks]


def test_only_columns_that_say_something_are_written(tmp_path: Path) -> None:
    out = io.StringIO()
    write_csv(load(write(tmp_path, PLAIN)), out)
    assert out.getvalue().splitlines()[:2] == [HEADER, "0.250000000,9,W,0,2000,16"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": empty file"),
        ("\n\n", ": no known trace format"),
        ("hello\n", ": no known trace format"),
        (HEADER, ": contains no requests"),
        (HEADER + "\n\n", ": contains no requests"),
        ("time_s,task,op,sync,sector\n0,1,R,1,0\n", ":1: column sectors is missing"),
        ("# x\ntime_s,task,op,sync,sector,sectors,colour\n", ":2: unknown column 'colour'"),
        ("time_s,task,op,sync,sector,sectors,op\n", ":1: column op occurs twice"),
        (HEADER + "\n0,1,R,1,0\n", ":2: 5 fields where 6 are expected"),
        (HEADER + "\n0,1,R,1,0,8\n\n0,1,R,1,0,8,9\n", ":4: 7 fields where 6 are expected"),
        (HEADER + "\n0,1,R,1,0,-8\n", ":2: sectors '-8' is negative"),
        (HEADER + "\n0,1,R,1,0,0\n", ":2: sectors 0: only a flush has none"),
        (HEADER + "\n0,1,R,1,0,4294967296\n", ":2: sectors '4294967296' is out of range"),
        (HEADER + "\n0,1,R,1,-1,8\n", ":2: sector '-1' is negative"),
        (HEADER + "\n0,1,R,1,99999999999999999999999,8\n", ":2: sector '99999999999999999999999' is out of range"),
        (HEADER + "\n0,1,R,1,36028797018963968,1\n", ":2: the request ends beyond any disk"),
        (HEADER + "\n0,1,R,1,0,8\n0,1,R,1,eight,8\n", ":3: sector 'eight' is not a whole number"),
        (HEADER + "\n0,1,R,1,,8\n", ":2: sector is missing"),
        (HEADER + "\n0,1,R,1,1.5,8\n", ":2: sector '1.5' is not a whole number"),
        (HEADER + "\n-0.5,1,R,1,0,8\n", ":2: time_s '-0.5' is negative"),
        (HEADER + "\nnan,1,R,1,0,8\n", ":2: time_s 'nan' is not a number"),
        (HEADER + "\n1e400,1,R,1,0,8\n", ":2: time_s '1e400' is out of range"),
        (HEADER + "\n99999999999,1,R,1,0,8\n", ":2: time_s '99999999999' is out of range"),
        (HEADER + "\n.,1,R,1,0,8\n", ":2: time_s '.' is not a number"),
        (HEADER + "\n,1,R,1,0,8\n", ":2: time_s is missing"),
        (HEADER + "\n0,1,X,1,0,8\n", ":2: unknown op 'X' (known: R, W, D, O, F)"),
        (HEADER + "\n0,1,\0R,1,0,8\n", ":2: unknown op '\\x00R'"),
        (HEADER + "\n0,1,R,2,0,8\n", ":2: unknown sync '2'"),
        (HEADER + ",complete_s\n1,1,R,1,0,8,0.5\n", ":2: complete_s is before time_s"),
        (HEADER + ",ioprio\n1,1,R,1,0,8,be/9\n", ":2: unknown ioprio 'be/9'"),
    ],
)
def test_native_errors_name_line_and_cause(tmp_path: Path, text: str, said: str) -> None:
    assert problem(write(tmp_path, text)).startswith(said)


def test_missing_file_directory_and_options(tmp_path: Path) -> None:
    assert problem(tmp_path / "none") == ": No such file or directory"
    assert problem(tmp_path) == ": a directory without a recording of several files"
    assert problem(tmp_path, format="native") == ": a directory without a recording of several files"
    path = write(tmp_path, PLAIN)
    assert problem(path, format="foo").startswith("unknown trace format 'foo'")
    assert problem(path, group_gap_ms=-1).startswith("group gap of -1 ms")


# Packed files

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
LONG = (PLAIN + "".join(f"{i}.5,{i % 7},R,1,{i * 977 % 65536},8\n" for i in range(2000))).encode()


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_are_known_by_content(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, PACKERS[kind](LONG), "no-telling-name")
    assert len(load(path)) == 2003
    found = detect(path)
    assert found and found.name == "native"


def test_names_make_no_other_format(tmp_path: Path) -> None:
    """The header says what it is, whatever a program is called."""
    name = "-1 [000] .. 5.000001: block_bio_queue: 8_0 R 8 + 8 [a]"
    path = write(tmp_path, f"time_s,task,op,sync,sector,sectors,group,name\n0.000000000,1,R,1,8,8,0,{name}\n".encode())
    found = detect(path)
    assert found and found.name == "native" and load(path).tasks[0].name == name


@pytest.mark.parametrize("kind", PACKERS)
def test_files_packed_in_several_parts(tmp_path: Path, kind: str) -> None:
    assert len(load(write(tmp_path, PACKERS[kind](LONG[:500]) + PACKERS[kind](LONG[500:])))) == 2003


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("keep", [0.02, 0.5, 0.999])
def test_cut_packed_file(tmp_path: Path, kind: str, keep: float) -> None:
    packed = PACKERS[kind](LONG)
    assert problem(write(tmp_path, packed[: int(len(packed) * keep)])) == f": the {kind} stream is truncated"


@pytest.mark.parametrize("kind", PACKERS)
def test_damaged_packed_file(tmp_path: Path, kind: str) -> None:
    packed = bytearray(PACKERS[kind](LONG))
    packed[len(packed) // 2 :] = bytes(0x5A ^ b for b in packed[len(packed) // 2 :])
    assert problem(write(tmp_path, bytes(packed))).startswith(f": the {kind} stream is ")


def test_groups_are_not_sought_again_in_what_was_written(tmp_path: Path) -> None:
    apart = trace([(1, 0, 5), (2, 8, 20)], names={1: "cat", 2: "cat"})
    assert apart.group.tolist() == [0, 1]
    out = io.StringIO()
    write_csv(apart, out)
    assert load(write(tmp_path, out.getvalue()), group_gap_ms=1).group.tolist() == [0, 1]


# Closed loop


def closed_loop_by_definition(t: Trace) -> tuple[list[int], list[int]]:
    """Each request depends on the latest of its group that had completed when it was issued."""
    parents, delays = [], []
    for j in range(len(t)):
        had = [
            (int(t.complete_ns[i]), i)
            for i in range(len(t))
            if t.group[i] == t.group[j] and t.complete_ns[i] >= 0
            and (t.complete_ns[i] < t.time_ns[j] or (t.complete_ns[i] == t.time_ns[j] and i < j))
        ]  # fmt: skip
        done, parent = max(had, default=(int(t.time_ns[0]), -1))
        parents.append(parent)
        delays.append(int(t.time_ns[j]) - done)
    return parents, delays


def test_closed_loop_of_two_tasks() -> None:
    t = trace([(1, 100, 200), (2, 150, 400), (1, 230, 300), (1, 240, 260), (1, 310, 320), (2, 400, 500)])
    parent, delay = closed_loop(t)
    assert parent.tolist() == [-1, -1, 0, 0, 2, 1]
    assert delay.tolist() == [0, 50, 30, 40, 10, 0]


def test_closed_loop_at_equal_times_never_turns_back() -> None:
    t = trace([(1, 10, 10), (1, 10, 10), (1, 10, 10)])
    assert closed_loop(t)[0].tolist() == [-1, 0, 1]


def test_closed_loop_takes_completions_from_elsewhere() -> None:
    t = trace([(1, 0, -1), (1, 100, -1), (1, 200, -1)])
    assert closed_loop(t)[0].tolist() == [-1, -1, -1]
    parent, delay = closed_loop(t, np.array([60, 250, 300]))
    assert (parent.tolist(), delay.tolist()) == ([-1, 0, 0], [0, 40, 140])


@pytest.mark.parametrize("seed", range(20))
def test_closed_loop_is_what_its_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(120):
        issued = int(rng.integers(0, 60))
        rows.append((int(rng.integers(0, 4)), issued, -1 if rng.random() < 0.1 else issued + int(rng.integers(0, 15))))
    t = trace(rows, group=rng.integers(0, 3, 120))
    parent, delay = closed_loop(t)
    assert (parent.tolist(), delay.tolist()) == closed_loop_by_definition(t)
    assert (parent < np.arange(120)).all()


# Threads of control


def groups(rows: list[tuple[int, int, int]], **more: object) -> dict[int, int]:
    t = trace(rows, **more)
    return {t.tasks[int(k)].id: int(g) for k, g in zip(t.task, t.group, strict=True)}


CATS = {1: "cat", 2: "cat", 3: "cat", 4: "dd"}


def test_tasks_of_one_name_in_turn_are_one_group() -> None:
    found = groups([(1, 0, 10), (1, 12, 20), (4, 15, 18), (2, 25, 30), (3, 35, 50)], names=CATS, group_gap_ns=5)
    assert found == {1: 0, 4: 1, 2: 0, 3: 0}


def test_a_longer_pause_than_the_gap_begins_a_new_group() -> None:
    assert groups([(1, 0, 20), (2, 26, 30), (3, 35, 50)], names=CATS, group_gap_ns=5) == {1: 0, 2: 1, 3: 1}


def test_tasks_that_overlap_are_not_one_group() -> None:
    assert groups([(1, 0, 20), (2, 19, 30), (3, 31, 50)], names=CATS, group_gap_ns=5) == {1: 0, 2: 1, 3: 1}


def test_each_task_is_continued_once_and_the_latest_first() -> None:
    found = groups([(1, 0, 20), (2, 1, 22), (3, 23, 30), (5, 24, 31)], names={**CATS, 5: "cat"}, group_gap_ns=5)
    assert found == {1: 0, 2: 1, 3: 1, 5: 0}


def test_tasks_without_a_name_are_groups_of_their_own() -> None:
    assert groups([(1, 0, 10), (2, 11, 20)], group_gap_ns=5) == {1: 0, 2: 1}


def test_tasks_of_one_instant_do_not_continue_each_other() -> None:
    assert groups([(1, 5, -1), (2, 5, -1), (3, 6, -1)], names=CATS, group_gap_ns=5) == {1: 0, 2: 1, 3: 1}


def test_children_of_one_parent_in_turn_are_its_thread_of_control() -> None:
    rows = [(10, 0, 5), (1, 8, 20), (10, 25, 28), (2, 1000, 1010), (3, 9000, 9001)]
    assert groups(rows, parents={1: 10, 2: 10, 3: 10}) == {10: 0, 1: 0, 2: 0, 3: 0}


def test_children_side_by_side_are_not() -> None:
    rows = [(10, 0, 5), (1, 8, 20), (2, 9, 21), (10, 10, 11)]
    assert groups(rows, parents={1: 10, 2: 10}) == {10: 0, 1: 1, 2: 2}


def test_children_side_by_side_are_threads_of_control_of_their_own() -> None:
    """As those of a server. The parent, which did something before, goes with those that take longest: here 1 and then 3."""
    rows = [(10, 0, 1), (1, 2, 40), (2, 3, 41), (3, 42, 60), (4, 43, 50)]
    found = groups(rows, parents={1: 10, 2: 10, 3: 10, 4: 10})
    assert len({found[1], found[2]}) == 2 and len({found[3], found[4]}) == 2
    assert [child for child in (1, 2) if found[child] == found[10]] == [2], "3 goes on where 2 has ended"
    assert found[3] == found[2] and found[4] == found[1]


def test_grandchildren_and_circles_of_forks() -> None:
    assert groups([(1, 0, 5), (2, 8, 20), (3, 30, 40)], parents={2: 1, 3: 2}) == {1: 0, 2: 0, 3: 0}
    assert groups([(1, 0, 5), (2, 8, 20)], parents={2: 1, 1: 2}) == {1: 0, 2: 0}
    assert groups([(1, 0, 5)], parents={1: 1}) == {1: 0}


# What cannot be


def test_what_cannot_be_is_left_out_and_told() -> None:
    ones = np.ones(3, np.int64)
    t = make_trace(
        source="x", format="x", time_ns=ones * 5, sector=np.array([1, 2, 2**56]), sectors=np.array([0, 1, 1]), op=ones,
        complete_ns=np.array([9, 4, 9]),
    )  # fmt: skip
    assert t.sector.tolist() == [2]
    assert t.complete_ns.tolist() == [-1]
    assert t.notes == (
        "2 requests without length or beyond any disk omitted",
        "1 completion before the request's own issue treated as unknown",
    )


# The command


def test_import_writes_and_describes(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    result = CliRunner().invoke(import_.command, [str(write(tmp_path, PLAIN)), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert out.read_text().splitlines()[0] == HEADER
    assert "native, 3 requests, 0.5 MB in 0.250 s" in result.output
    assert "33.3% read, 33.3% write, 33.3% discard; 2 tasks in 2 groups; completions unknown" in result.output
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["out.csv", "trace.csv"]


def test_import_to_standard_output(tmp_path: Path) -> None:
    result = CliRunner().invoke(import_.command, [str(write(tmp_path, PLAIN)), "-o", "-"])
    assert result.stdout.startswith(HEADER + "\n0.250000000,9,W,0,2000,16\n")


def test_import_leaves_nothing_half_written(tmp_path: Path) -> None:
    bad = write(tmp_path, HEADER + "\n0,1,R,1,0,-8\n")
    out = tmp_path / "out.csv"
    result = CliRunner().invoke(import_.command, [str(bad), "-o", str(out)])
    assert isinstance(result.exception, Problem)
    assert [p.name for p in tmp_path.iterdir()] == ["trace.csv"]
    result = CliRunner().invoke(import_.command, [str(write(tmp_path, PLAIN)), "-o", str(tmp_path / "no" / "out.csv")])
    assert isinstance(result.exception, Problem)
    assert "No such file" in str(result.exception)
