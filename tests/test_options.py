# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every option of `run` and `compare` arrives where it belongs, and does there what it says."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
from command import good, told, write

from headwaiter.base.errors import Problem, plain, shown
from headwaiter.base.parsing import decimal, real, whole
from headwaiter.cli._options import conditions, reading
from headwaiter.cli.compare import command
from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED, Time
from headwaiter.engine.schedulers import find, settings
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.study.inkernel import depth_of
from headwaiter.study.workload import Reading

MS = 1_000_000
AT_ONCE = "time_s,task,op,sync,sector,sectors,complete_s\n"


def options(*args: object) -> Options:
    """On a disk that takes a request at a time."""
    given = conditions(command.make_context("compare", [str(a) for a in args]).params)
    found = given.options(ConstantDrive(MS))
    return given.of(found, "mq-deadline", depth_of(ConstantDrive(MS), found))


def test_defaults() -> None:
    """Requests of up to 1280 KiB, as Linux has them; merging, one software queue; tags, a request taken ahead and
    write-back throttling as blk-mq has them; processor times as measured."""
    assert options() == Options(
        seed=0, queue_depth=0, max_sectors=2560, merging=True, join_arriving=True, nr_requests=64, pull_ahead=True, cpus=1,
        wbt_depth=2,
        one_processor=False, turnaround_ns=10_500, turnaround_page_ns=530, dispatch_ns=3_000, dispatch_page_ns=670,
        copy_ns=3_000, copy_page_ns=600, settled=True,
    )  # fmt: skip
    assert (MEASURED.turnaround, MEASURED.copy) == (Time(10_500, 530), Time(3_000, 600))
    given = command.make_context("compare", []).params
    assert reading(given) == Reading(replay=None, group_gap_ms=20.0, device=None, shares=())
    assert (given["drive"], given["sched"], given["seeds"], given["by"]) == (None, "all", None, None)


@pytest.mark.parametrize(
    ("args", "changed"),
    [
        (("--seed", 7), {"seed": 7}),
        (("--queue-depth", 9), {"queue_depth": 9, "wbt_depth": 18}),
        (("--max-sectors", 10), {"max_sectors": 10}),
        (("--no-merging",), {"merging": False, "join_arriving": False}),
        (("--nr-requests", 11), {"nr_requests": 11}),
        (("--wbt-depth", 12), {"wbt_depth": 12}),
        (("--no-pull-ahead",), {"pull_ahead": False}),
        (("--cpus", 12), {"cpus": 12}),
        (("--one-processor",), {"one_processor": True}),
        (("--turnaround", "1+2"), {"turnaround_ns": 1000, "turnaround_page_ns": 2000}),
        (("--dispatch-time", "3+4"), {"dispatch_ns": 3000, "dispatch_page_ns": 4000}),
        (("--copy-time", "5+6"), {"copy_ns": 5000, "copy_page_ns": 6000}),
    ],
)
def test_each_option_changes_what_it_names(args: tuple[object, ...], changed: dict[str, int]) -> None:
    assert options(*args) == dataclasses.replace(options(), **changed)  # type: ignore[arg-type]


def test_options_of_reading() -> None:
    given = command.make_context("compare", ["--replay", "open", "--group-gap", "3.5", "--device", "sda",
                                             "--share", "7=300", "--share", "0x10=1"]).params  # fmt: skip
    assert reading(given) == Reading("open", 3.5, "sda", ((7, 300), (16, 1)))


# --- what they do ---


def together(n: int, tasks: int = 1, sectors: int = 8, apart: int = 1000) -> Forest:
    """n reads that come at once, of tasks in turn, far from each other."""
    ints = np.arange(n)
    return Forest([Task(k, f"t{k}", k) for k in range(tasks)], np.zeros(n, np.int64), np.full(n, -1, np.int64),
                  np.zeros(n, np.int64), (ints % tasks).astype(np.uint32), np.zeros(n, np.uint8), np.ones(n, np.uint8),
                  (ints * apart).astype(np.uint64), np.full(n, sectors, np.uint32), np.zeros(n, np.uint16))  # fmt: skip


def events(path: Path) -> list[tuple[str, int, int, int]]:
    """(event, ms, task, sectors)."""
    with path.open() as f:
        return [(r["event"], int(r["time_ns"]) // MS, int(r["task"]), int(r["sectors"])) for r in csv.DictReader(f)]


def test_requests_that_may_exist_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    for limit, first in ((0, 6), (2, 2), (1, 1)):
        simulate("noop", ConstantDrive(5 * MS), together(6), options=Options(nr_requests=limit, merging=False), log=log)
        assert sum(event == "insert" and ms == 0 for event, ms, _, _ in events(log)) == first
        assert sum(event == "complete" for event, *_ in events(log)) == 6


def test_the_largest_request(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    for most, pieces in ((2560, [2560, 2560, 880]), (1000, [1000] * 6), (7000, [6000])):
        simulate("noop", ConstantDrive(MS), together(1, sectors=6000), options=Options(max_sectors=most), log=log)
        assert [sectors for event, _, _, sectors in events(log) if event == "dispatch"] == pieces
    assert Options().max_sectors == 2560
    assert Options().copy_page_ns == 2048, "a page of 4 KiB at 2 GB/s"


A, B = 5, 6
TURNS = {1: [A, B, B, B, A, A, A], 2: [A, A, A, A, B, B, B]}
"""Under none: one list serves in the order of arrival. Of two the first I/O goes at once, then what is in the first list."""


def test_software_queues(tmp_path: Path) -> None:
    """One for each processor; the first task is on the first one."""
    log = tmp_path / "log.csv"
    arrivals = [{A: 0, B: 1}[task] for task in TURNS[1]]
    load = dataclasses.replace(together(7, 2), tasks=[Task(A, "a", 0), Task(B, "b", 1)], task=np.array(arrivals, np.uint32))
    for cpus, turns in TURNS.items():
        simulate("none", ConstantDrive(5 * MS), load, options=Options(cpus=cpus, merging=False), log=log)
        assert [task for event, _, task, _ in events(log) if event == "dispatch"] == turns


def trace(folder: Path, *rows: str) -> Path:
    return write(folder / "trace.csv", AT_ONCE + "".join(row + "\n" for row in rows))


def test_options_of_the_command_line_do_so_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = (f"0,{task},R,1,{i * 1000},64,0.005" for i, task in enumerate(TURNS[1]))
    path, log = trace(tmp_path, *rows), tmp_path / "log.csv"

    def logged(*args: object) -> list[tuple[str, int, int, int]]:
        good(capfd, "run", path, "-s", "none", "-d", "constant:5", "--seeds", 0, "--no-pull-ahead", "--log", log, *args)
        return events(log)

    def inserted(*args: object) -> int:
        return sum(event == "insert" and ms == 0 for event, ms, _, _ in logged(*args))

    def tasks(*args: object) -> list[int]:
        return [task for event, _, task, _ in logged(*args) if event == "dispatch"]

    assert (inserted("--nr-requests", 0), inserted("--nr-requests", 3), inserted("--nr-requests", 0, "--max-sectors", 16)) == (
        7,
        3,
        28,
    )
    assert (tasks("--nr-requests", 0), tasks("--nr-requests", 0, "--cpus", 2)) == (TURNS[1], TURNS[2])


def test_requests_that_touch_are_joined_or_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = trace(tmp_path, "0,1,R,1,5000,8,0.005", *(f"0,1,R,1,{8 * i},8,0.005" for i in range(4)))

    def dispatched(*args: object) -> int:
        found: int = told(capfd, "run", path, "-s", "noop", "-d", "constant:5", "--seeds", 0, *args)["results"][0]["dispatched"]
        return found

    assert (dispatched(), dispatched("--no-merging"), dispatched("--max-sectors", 16)) == (2, 5, 3)


def test_one_processor_serves_one_process_at_a_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two processes that take 4 ms of processor time for each of 10 I/Os that take the drive next to none."""
    path = write(tmp_path / "a.fio", "[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbs=4k\nnumber_ios=10\nnumjobs=2\n")

    def elapsed(*args: object) -> float:
        found: float = told(
            capfd,
            "run",
            path,
            "-s",
            "noop",
            "-d",
            "constant:0.001",
            "--turnaround",
            4000,
            "--dispatch-time",
            0,
            "--seeds",
            0,
            *args,
        )["results"][0]["elapsed_s"]
        return found

    assert elapsed() == pytest.approx(10 * 0.004, rel=0.01)
    assert 19 * 0.004 <= elapsed("--one-processor") <= 20 * 0.00401


def test_the_way_to_the_drive_takes_processor_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """10 I/Os, one after the other, of 5 ms and 2 ms on the way; a page costs 1 ms more."""
    path = trace(tmp_path, *(f"{0.005 * i:.3f},1,R,1,{8 * i},8,{0.005 * i + 0.005:.3f}" for i in range(10)))
    for time, ms in (("0", 50), ("2000", 70), ("2000+1000", 80)):
        r = told(capfd, "run", path, "-s", "noop", "-d", "constant:5", "--seeds", 0, "--no-goes-on", "--dispatch-time", time)[
            "results"
        ][0]
        assert r["elapsed_s"] == pytest.approx(ms / 1000, rel=1e-3)


def test_buffered_io_takes_the_time_of_copying(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Reads of 4 KiB through the page cache of a drive that takes no time: an I/O takes so much, and so much for its page."""
    path = write(tmp_path / "a.fio", "[a]\nfilename=f\nsize=256k\nrw=read\nbs=4k\n")

    def elapsed(copying: str) -> float:
        found: float = told(
            capfd, "run", path, "-s", "noop", "-d", "constant:0.001", "--seeds", 0, "--dispatch-time", 0, "--copy-time", copying
        )["results"][0]["elapsed_s"]
        return found

    nothing, two, three = elapsed("0"), elapsed("2000"), elapsed("3000")
    assert two > nothing + 0.02
    assert three - nothing == pytest.approx(1.5 * (two - nothing), rel=0.02)
    assert elapsed("2000+1000") == pytest.approx(three, rel=0.02)


def test_the_seed_draws_starts(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A start within a range depends on it; the same seed, the same run."""
    path = write(tmp_path / "a.fio", "[a]\nfilename=/dev/sda\ndirect=1\nrw=read\nnumber_ios=2\nstartdelay=1-9\n")

    def start(seed: int) -> float:
        rows = told(capfd, "run", path, "-s", "noop", "-d", "constant:5", "--seeds", 0, "--seed", seed)["results"][0]["tasks"]
        found: float = rows[0]["start_s"]
        return found

    starts = [start(seed) for seed in (1, 2, 3, 4, 1)]
    assert starts[0] == starts[-1] and len(set(starts)) == 4 and all(1 <= s <= 9.1 for s in starts)


def test_the_drives_queue(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, log = trace(tmp_path, *(f"0,1,R,1,{i * 100000},8,0.005" for i in range(9))), tmp_path / "log.csv"
    for depth in (1, 4):
        good(capfd, "run", path, "-s", "noop", "-d", "wd-re-4tb", "--queue-depth", depth, "--seeds", 0, "--log", log)
        flying = most = 0
        for event, *_ in events(log):
            flying += (event == "dispatch") - (event == "complete")
            most = max(most, flying)
        assert most == depth


# --- what is shown ---


def test_tunables_are_shown_with_their_bounds(capfd: pytest.CaptureFixture[str]) -> None:
    rows = {line.split()[0]: line for line in good(capfd, "schedulers", "deadline").splitlines() if line.split()}
    for name, values in (
        ("fifo_batch", "16   requests   0..INT_MAX"),
        ("front_merges", "1   0, 1"),
        ("writes_starved", "2   batches   INT_MIN..INT_MAX"),
        ("wrap", "fifo   fifo, lowest"),
    ):
        assert " ".join(values.split()) in " ".join(rows[name].split())


def test_text_in_complaints() -> None:
    assert (shown("a" * 40), shown("a" * 41), shown("a" * 9, 5)) == ("a" * 40, "a" * 40 + "…", "a" * 5 + "…")
    assert (plain("a b"), plain("a\x1b[31m\n")) == ("a b", "a\\x1b[31m\\n")
    long = str(Problem("x" * 2001 + "end"))
    assert len(long) == 2003 and long.endswith("end") and "…" in long and str(Problem("x\ny")) == "x\\ny"


# --- drives and numbers ---


def test_constant_drives() -> None:
    assert open_drive("constant:2.5") == ConstantDrive(2_500_000)
    assert open_drive("constant:3600000") == ConstantDrive(3600 * 10**9)
    assert (ConstantDrive(2_500_000).name, open_drive("wd-re-4tb").name) == ("constant:2.5", "wd-re-4tb")
    with pytest.raises(Problem, match="one hour"):
        open_drive("constant:3600001")


def test_numbers_and_their_bounds() -> None:
    assert [whole(text, -16, 16) for text in ("16", "-16", "0x10", "-0x0f", "+7", "007")] == [16, -16, 16, -15, 7, 7]
    for text in ("17", "-17", "0x11"):
        with pytest.raises(ValueError, match=r"outside -16\.\.16"):
            whole(text, -16, 16)
    assert [real(text, 0, 2) for text in ("0", "2", ".5", "1e0")] == [0, 2, 0.5, 1]
    with pytest.raises(ValueError, match="outside"):
        real("2.1", 0, 2)
    assert [decimal(value) for value in (2.0**50, -3, 0.1, 1e-6)] == ["1125899906842624", "-3", "0.1", "1e-06"]


def test_tunables_are_as_core_has_them() -> None:
    deadline = find("deadline")
    assert list(deadline.tunables) == [
        "read_expire",
        "write_expire",
        "writes_starved",
        "fifo_batch",
        "front_merges",
        "batching",
        "wrap",
        "tick_us",
    ]
    batch, flag, wrap = (deadline.tunables[name] for name in ("fifo_batch", "front_merges", "wrap"))
    assert (batch.default, batch.minimum, batch.maximum, batch.unit, batch.is_flag) == (16, 0, 2**31 - 1, "requests", False)
    assert (flag.default, flag.minimum, flag.maximum, flag.is_flag) == (1, 0, 1, True)
    assert (wrap.choices, wrap.show(1)) == (("fifo", "lowest"), "lowest")
    assert (wrap.parse("x", "fifo"), wrap.parse("x", "lowest")) == (0, 1)
    assert settings(deadline, ["wrap=lowest", "fifo_batch=0x20"]) == {"wrap": 1, "fifo_batch": 32}
    run = simulate("deadline", ConstantDrive(MS), together(2), {"fifo_batch": 3, "wrap": 1})
    assert (run.tunables["fifo_batch"], run.tunables["wrap"], run.tunables["read_expire"]) == (3, 1, 500)
