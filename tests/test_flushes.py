# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Flushes of the drive's own cache: found in recordings, kept in traces, waited for in replays."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blkrecords import event
from ringpages import archive, begin, document, entry, files, page
from ringpages import event as ring_event
from zstandard import compress

from headwaiter.base.errors import Problem
from headwaiter.description.describe import describe
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.schedulers import catalogue
from headwaiter.engine.sim import ConstantDrive, Drive, Forest, Options, Outcome, simulate
from headwaiter.engine.sim import Task as SimTask
from headwaiter.study.drive_fit import at_drive
from headwaiter.study.inkernel import recorded_options
from headwaiter.study.ongoing import Ongoing, going_on
from headwaiter.study.workload import CLOSED, OPEN, Reading, open_forest, replay
from headwaiter.traces import Trace, formats, load, part, stream_order, with_flushes, with_streams, write_csv
from headwaiter.traces.events import FUA, PREFLUSH, parse_rwbs

US, MS = 1000, 1_000_000
NATIVE = "time_s,task,op,sync,sector,sectors,complete_s\n"

# A write; a flush that finds one under way and waits for the next, which serves another process's, too.
PLAIN = [
    (0, "Q", "WS", 800, 8, 5),
    (5, "D", "WS", 800, 8, 5),
    (90, "C", "WS", 800, 8, 0),
    (100, "Q", "FWS", 0, 0, 5),
    (101, "D", "FF", 0, 0, 42),
    (150, "Q", "FWS", 0, 0, 6),
    (160, "Q", "FWS", 0, 0, 7),
    (200, "C", "FF", 0, 0, 0),
    (201, "C", "WS", 0, 0, 0),
    (202, "D", "FF", 0, 0, 42),
    (300, "C", "FF", 0, 0, 0),
    (301, "C", "WS", 0, 0, 0),
    (302, "C", "WS", 0, 0, 0),
    (400, "Q", "WS", 900, 8, 5),
]
PLAIN_FLUSHES = [(100, 201, 101, 5), (150, 301, 202, 6), (160, 302, 202, 7)]

# As a journal commits: flushed before, and on the medium when it is done; the drive has no FUA.
JOURNAL = [
    (0, "Q", "FWFS", 2000, 8, 9),
    (10, "D", "FF", 0, 0, 42),
    (50, "C", "FF", 0, 0, 0),
    (55, "D", "WFS", 2000, 8, 42),
    (70, "C", "WFS", 2000, 8, 0),
    (75, "D", "FF", 0, 0, 42),
    (130, "C", "FF", 0, 0, 0),
    (131, "C", "WS", 2000, 0, 0),
]


def blktrace(folder: Path, events: list[tuple[Any, ...]]) -> Path:
    path = folder / "x.blktrace.0"

    def letters(rwbs: str) -> str:
        """As the categories have it: the kernel's own flush is a read and a flush; U is FUA."""
        if rwbs == "FF":
            return "RF"
        return rwbs[:2] + rwbs[2:].replace("F", "U") if rwbs.startswith("F") else rwbs.replace("F", "U")

    path.write_bytes(b"".join(event(t * US, a, letters(rwbs), s, n, pid=p) for t, a, rwbs, s, n, p in events))
    return path


def blkparse(folder: Path, events: list[tuple[Any, ...]]) -> Path:
    path = folder / "x.txt"
    lines = []
    for t, a, rwbs, s, n, p in events:
        place = f"{s} + {n} " if n else f"{(1 << 64) - 1 if rwbs == 'FF' else s} " if a == "C" else ""
        time = f"{t // 10**6:5d}.{t % 10**6:06d}000"
        lines.append(f"  8,0    1 {t + 1:8d} {time} {p:5d}  {a} {rwbs:>3} {place}[{'0' if a == 'C' else 'x'}]\n")
    path.write_text("".join(lines))
    return path


EVENTS = {"Q": "block_bio_queue", "D": "block_rq_issue", "C": "block_rq_complete"}


def traced(events: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """As the tracepoints have them: the kernel's own flush is done at the sector -1."""
    return [(t, a, rwbs, (1 << 64) - 1 if (a, rwbs) == ("C", "FF") else sector, *rest) for t, a, rwbs, sector, *rest in events]


def ftrace(folder: Path, events: list[tuple[Any, ...]]) -> Path:
    path = folder / "x.ftrace"
    lines = []
    for t, a, rwbs, s, n, p in traced(events):
        what = {"Q": f"{s} + {n} [x]", "D": f"{512 * n} () {s} + {n} none,0,0 [x]", "C": f"() {s} + {n} none,0,0 [0]"}[a]
        lines.append(f"  x-{p}  [000] d..1.  1.{t:06d}: {EVENTS[a]}: 8,0 {rwbs} {what}\n")
    path.write_text("".join(lines))
    return path


def recorded(folder: Path, events: list[tuple[Any, ...]]) -> Path:
    path = folder / "x.hwr"
    found, before = [], 0
    for t, a, rwbs, s, n, p in traced(events):
        found.append(entry((t - before) * US, ring_event(EVENTS[a], sector=s, nr_sector=n, rwbs=rwbs, pid=p)))
        before = t
    path.write_bytes(compress(archive(files({0: [page(1000, *found)]}))))
    return path


def told(t: Trace) -> list[tuple[int, int, int, int]]:
    """(asked for, done, given to the device, by whom), us."""
    f = t.flushes
    assert f
    return [
        (a // US, b // US, c if c < 0 else c // US, t.tasks[k].id)
        for a, b, c, k in zip(*(x.tolist() for x in (f.time_ns, f.complete_ns, f.issue_ns, f.task)), strict=True)
    ]


@pytest.mark.parametrize("make", [blktrace, blkparse, ftrace, recorded])
def test_every_recorder_tells_of_flushes(tmp_path: Path, make: Any) -> None:
    t = load(make(tmp_path, PLAIN))
    assert told(t) == PLAIN_FLUSHES
    assert t.sector.tolist() == [800, 900] and [task.id for task in t.tasks] == [5, 6, 7]
    assert t.group.tolist() == [0, 0] and t.flushes and t.flushes.group.tolist() == [0, 1, 2]


@pytest.mark.parametrize("make", [blktrace, blkparse, ftrace, recorded])
def test_a_journals_write_is_a_flush_a_write_and_a_flush(tmp_path: Path, make: Any) -> None:
    t = load(make(tmp_path, JOURNAL))
    assert told(t) == [(0, 50, 10, 9), (70, 131, 75, 9)]
    assert (t.time_ns.tolist(), t.complete_ns.tolist(), t.flags.tolist()) == ([50 * US], [70 * US], [SYNC])
    assert t.issue_ns is not None and t.issue_ns.tolist() == [55 * US]


def test_what_is_not_known_of_flushes_is_not_made_up(tmp_path: Path) -> None:
    """Without issues a write behind a flush is one write; a drive with FUA needs none behind; one under way has no end."""
    bare = [e for e in JOURNAL if e[1] != "D"]
    t = load(ftrace(tmp_path, bare))
    assert (t.time_ns.tolist(), told(t)) == ([0], [(70, 131, -1, 9)])
    fua = [e for e in JOURNAL if e[0] < 75 or e[0] == 131]
    assert told(load(ftrace(tmp_path, fua))) == [(0, 50, 10, 9)]
    assert told(load(ftrace(tmp_path, PLAIN[:11]))) == PLAIN_FLUSHES[:1]
    none = [e for e in PLAIN if e[4]]
    assert load(ftrace(tmp_path, none)).flushes is None
    # Commands that are passed through have no sectors either, and are no flushes.
    assert load(ftrace(tmp_path, [*none, (500, "Q", "N", 0, 0, 5), (501, "C", "N", 0, 0, 0)])).flushes is None


def test_only_what_begins_with_a_flush_is_one(tmp_path: Path) -> None:
    """A write of nothing is none; behind a write that only begins with one there is none, though another's is made."""
    nothing = [e for e in PLAIN if e[4]] + [(500, "Q", "WS", 0, 0, 5), (600, "C", "WS", 0, 0, 0)]
    assert load(ftrace(tmp_path, nothing)).flushes is None
    first = [(t, a, rwbs.replace("WFS", "WS"), *rest) for t, a, rwbs, *rest in JOURNAL[:5]]
    other = [(72, "Q", "FWS", 0, 0, 3), (73, "D", "FF", 0, 0, 42), (80, "C", "FF", 0, 0, 0), (81, "C", "WS", 0, 0, 0)]
    assert told(load(ftrace(tmp_path, [*first, *other, (90, "C", "WS", 2000, 0, 0)]))) == [(0, 50, 10, 9), (72, 81, 73, 3)]


def test_the_kernels_flush_moves_nothing(tmp_path: Path) -> None:
    odd = [*PLAIN, (500, "Q", "FF", 64, 8, 5), (600, "C", "FF", 64, 8, 5)]
    for make in (blkparse, ftrace, recorded):
        assert load(make(tmp_path, odd)).sector.tolist() == [800, 900]


@pytest.mark.parametrize("make", [blkparse, ftrace, recorded])
def test_an_unknown_operation_without_data_is_passed_over(tmp_path: Path, make: Any) -> None:
    """As those of zones of later kernels; with data it is refused."""
    assert told(load(make(tmp_path, [*PLAIN, (500, "Q", "ZOS", 0, 0, 5), (501, "C", "ZOS", 0, 0, 5)]))) == PLAIN_FLUSHES
    with pytest.raises(Problem, match="unknown operation 'ZOS'"):
        load(make(tmp_path, [*PLAIN, (500, "Q", "ZOS", 64, 8, 5)]))


def test_ends_are_told_apart_by_their_places(tmp_path: Path) -> None:
    """A journal's write, and a flush that is asked for later and done sooner, at no sector or at 0, end each at its time."""
    events = sorted([*JOURNAL, (20, "Q", "FWS", 0, 0, 3), (60, "C", "WS", 0, 0, 0)])
    expected = [(0, 50, 10, 9), (20, 60, -1, 3), (70, 131, 75, 9)]
    for make in (blktrace, blkparse, ftrace, recorded):
        assert told(load(make(tmp_path, events))) == expected
    at_none = [(t, a, rwbs, (1 << 64) - 1 if (t, a) == (20, "Q") else sector, n, p) for t, a, rwbs, sector, n, p in events]
    for make in (ftrace, recorded):
        assert told(load(make(tmp_path, at_none))) == expected


def test_flushes_are_no_stream(tmp_path: Path) -> None:
    t = with_flushes(load(ftrace(tmp_path, PLAIN)))
    assert stream_order(t).tolist() == [-1] * 5
    one = with_flushes(trace(tmp_path, "0,1,W,1,800,8,0.001\n0.002,1,F,1,0,0,0.003\n0.004,1,F,1,0,0,0.005\n"))
    assert stream_order(one).tolist() == [-1] * 3


def test_flushes_are_kept_by_the_formats_that_can(tmp_path: Path) -> None:
    t = load(ftrace(tmp_path, PLAIN))
    native, text, iolog = io.StringIO(), io.StringIO(), io.StringIO()
    assert write_csv(t, native) == []
    assert native.getvalue().count(",F,1,0,0,") == 3
    path = tmp_path / "again.csv"
    path.write_text(native.getvalue())
    again = load(path)
    assert [x[:2] + x[3:] for x in told(again)] == [x[:2] + x[3:] for x in PLAIN_FLUSHES] and len(again) == 2
    write = formats()["blkparse"].write
    assert write
    write(t, text)
    (tmp_path / "again.txt").write_text(text.getvalue())
    assert [x[:2] + x[3:] for x in told(load(tmp_path / "again.txt"))] == [x[:2] + x[3:] for x in PLAIN_FLUSHES]
    leave = formats()["iolog"].write
    assert leave
    assert "3 flushes of the drive's cache are left out" in leave(t, iolog)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("0,1,F,1,8,8,1", "a flush has no sectors: 0,0"),
        ("0,1,F,1,8,0,1", "a flush has no sectors: 0,0"),
        ("0,1,W,1,8,0,1", "sectors 0: only a flush has none"),
    ],
)
def test_a_native_flush_has_no_sectors(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(NATIVE + line + "\n")
    with pytest.raises(Problem, match=f"t.csv:2: {why}"):
        load(path)


def test_a_trace_of_flushes_alone_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(NATIVE + "0,1,F,1,0,0,1\n")
    with pytest.raises(Problem, match="contains no requests"):
        load(path)


ROWS = "0,1,W,1,800,8,0.001\n0.002,1,F,1,0,0,0.012\n0.013,1,W,1,900,8,0.014\n0.015,2,F,1,0,0,0.016\n0.1,1,R,1,5000,8,0.11\n"


def trace(folder: Path, rows: str = ROWS) -> Trace:
    path = folder / "t.csv"
    path.write_text(NATIVE + rows)
    return load(path)


def test_who_only_flushes_comes_behind_the_others(tmp_path: Path) -> None:
    """Threads of control that issue requests are numbered without gaps, in a part as well."""
    t = trace(tmp_path, "0,9,F,1,0,0,0.001\n0.002,7,W,1,800,8,0.003\n0.004,9,F,1,0,0,0.005\n0.006,8,W,1,900,8,0.007\n")
    assert t.group.tolist() == [0, 1] and t.flushes and t.flushes.group.tolist() == [2, 2]
    assert [task.id for task in t.tasks] == [9, 7, 8] and t.task.tolist() == [1, 2] and t.flushes.task.tolist() == [0, 0]
    p = part(t, 0, 2)
    assert p.group.tolist() == [0, 1] and p.flushes and p.flushes.group.tolist() == [2, 2]
    assert [[p.tasks[k].id for k in column.tolist()] for column in (p.task, p.flushes.task)] == [[7, 8], [9, 9]]


def test_parts_have_the_flushes_between_their_requests(tmp_path: Path) -> None:
    t = trace(tmp_path)
    first, second = part(t, 0, 2), part(t, 1, 3)
    assert first.flushes and first.flushes.time_ns.tolist() == [2 * MS]
    assert second.flushes and second.flushes.time_ns.tolist() == [15 * MS] and [x.id for x in second.tasks] == [1, 2]
    assert part(t, 2, 3).flushes is None
    assert with_streams(t, 2).flushes is None
    assert with_flushes(with_flushes(t)) is not t and len(with_flushes(t)) == 5


@pytest.mark.parametrize(
    ("letters", "flush"), [("WS", 0), ("FWS", PREFLUSH), ("WFS", FUA), ("FWFS", PREFLUSH | FUA), ("FF", PREFLUSH), ("F", 0)]
)
def test_letters_of_a_flush(letters: str, flush: int) -> None:
    found = parse_rwbs(letters)
    assert found and found.flush == flush


def test_a_part_has_the_flush_at_its_last_request(tmp_path: Path) -> None:
    lines = "0,1,W,1,800,8,0.001\n0.002,1,W,1,900,8,0.003\n0.002,1,F,1,0,0,0.004\n0.005,1,W,1,800,8,0.006\n"
    first = part(trace(tmp_path, lines), 0, 2)
    assert first.flushes and first.flushes.time_ns.tolist() == [2 * MS]


def test_at_timestamps_flushes_come_with_the_requests(tmp_path: Path) -> None:
    assert sorted(open_forest(trace(tmp_path)).op.tolist()) == [0, 1, 1, Op.FLUSH, Op.FLUSH]


def test_groups_of_requests_are_numbered_as_they_come(tmp_path: Path) -> None:
    """Among so many that a sort of another kind would mix them."""
    lines = [f"0.{n:03},{n},W,1,{8 * n + 800},8,0.{n + 1:03}\n" for n in range(100)]
    lines.insert(50, "0.050,200,F,1,0,0,0.060\n")
    t = trace(tmp_path, "".join(lines))
    assert t.group.tolist() == list(range(100)) and t.flushes and t.flushes.group.tolist() == [100]


def test_think_times_do_not_hold_flushes(tmp_path: Path) -> None:
    found = describe(trace(tmp_path), "t")
    assert (found.flushes, found.flush_ms and found.flush_ms.max, found.whole.requests) == (2, 10.0, 3)
    assert found.whole.think_ms and (found.whole.think_ms.median, found.whole.think_ms.max) == (1.0, 86.0)
    assert describe(trace(tmp_path, "0,1,W,1,800,8,0.001\n"), "t").flush_ms is None


def test_a_device_that_flushes_is_busy(tmp_path: Path) -> None:
    """From 5 to 90 us with a write, from 101 to 201 and 202 to 302 with flushes."""
    found = describe(load(ftrace(tmp_path, PLAIN)), "t").device
    assert found and found.requests == 1 and found.busy_percent == pytest.approx(100 * 285 / 297)
    alone = describe(load(ftrace(tmp_path, [e for e in PLAIN if e[4]])), "t").device
    assert alone and alone.busy_percent == 100


# --- replays ---


def rows_of(t: Trace, drive: Drive, how: str = CLOSED, **options: Any) -> list[tuple[int, int]]:
    work = replay(Path("t"), t, drive, Reading(replay=how))  # type: ignore[arg-type]
    run = simulate("noop", drive, work.load, options=Options(record=True, **options))
    return list(zip(run.rows.issue_ns.tolist(), run.rows.complete_ns.tolist(), strict=True))


def test_a_replay_waits_for_flushes(tmp_path: Path) -> None:
    """A cached write is quick, the flush behind it is not, and the program goes on when that is done."""
    t, drive = trace(tmp_path), open_drive("barracuda-80g")
    (_, w), (f, done), (again, _), *_ = rows_of(t, drive)
    assert f == w + 1 * MS and done > f + MS and again == done + 1 * MS
    # A drive without a cache has nothing to be flushed.
    (_, w), (f, done), (again, _), *_ = rows_of(t, ConstantDrive(5 * MS))
    assert (w, f, done, again) == (5 * MS, 6 * MS, 6 * MS, 7 * MS)
    # At timestamps they come when they came.
    assert [issue for issue, _ in rows_of(t, drive, OPEN)] == [0, 2 * MS, 13 * MS, 15 * MS, 100 * MS]


def test_flushes_are_no_ios(tmp_path: Path) -> None:
    t = trace(tmp_path)
    work = replay(Path("t"), t, open_drive("barracuda-80g"), Reading())
    run = simulate("noop", open_drive("barracuda-80g"), work.load, options=Options(record=True))
    assert (run.totals["issued"], run.totals["completed"], len(run.rows.issue_ns)) == (3, 3, 5)
    assert run.tallies.op.tolist() == [Op.WRITE, Op.READ]


def test_programs_that_go_on_flush_again(tmp_path: Path) -> None:
    lines = [
        f"{k / 100:g},1,{'F' if k % 2 else 'W'},1,{0 if k % 2 else 800 + 4 * k},{0 if k % 2 else 8},{k / 100 + 0.005:g}\n"
        for k in range(40)
    ]
    drive = open_drive("barracuda-80g")
    work = going_on(replay(Path("t"), trace(tmp_path, "".join(lines)), drive, Reading()), drive)
    assert isinstance(work.load, Ongoing)
    flush = work.load.op == Op.FLUSH
    assert flush.sum() == 40 and not work.load.sectors[flush].any() and not work.load.sector[flush].any()


def test_what_the_drive_was_given_holds_its_flushes(tmp_path: Path) -> None:
    """Those that one flush served were one."""
    events = [*PLAIN[:-1]]
    for k in range(40):
        at = 1000 + 100 * k
        events += [
            (at, "Q", "WS", 900 + 16 * k, 8, 5),
            (at + 1, "D", "WS", 900 + 16 * k, 8, 5),
            (at + 50, "C", "WS", 900 + 16 * k, 8, 0),
        ]
    given = at_drive(load(ftrace(tmp_path, events)))
    assert given and (given.op == Op.FLUSH).sum() == 2 and len(given) == 43
    assert given.time_ns[given.op == Op.FLUSH].tolist() == [101 * US, 202 * US]
    assert given.complete_ns[given.op == Op.FLUSH].tolist() == [201 * US, 302 * US]


# --- tags ---


def forest(rows: list[tuple[int, int, int, int, int, int]], tasks: int = 2) -> Forest:
    """(time or delay ns, parent, task, operation, flags, sector) of 8 sectors, flushes of none."""
    time, parent, task, op, flags, sector = (np.array(c, np.int64) for c in zip(*rows, strict=True))
    return Forest(
        tasks=tuple(SimTask(k, f"t{k}", k) for k in range(tasks)),
        time_ns=np.where(parent < 0, time, 0),
        parent=parent,
        delay_ns=np.where(parent < 0, 0, time),
        task=task.astype(np.uint32),
        op=op.astype(np.uint8),
        flags=flags.astype(np.uint8),
        sector=sector.astype(np.uint64),
        sectors=np.where(op == Op.FLUSH, 0, 8).astype(np.uint32),
        ioprio=np.zeros(len(rows), np.uint16),
    )


def one_tag(load: Forest, drive: Drive | None = None, **more: Any) -> Outcome:
    options = Options(record=True, nr_requests=1, pull_ahead=True, **more)
    return simulate("none", drive or ConstantDrive(MS), load, options=options)


def issues(run: Outcome) -> list[float]:
    """When each was issued, ms."""
    return [x / MS for x in run.rows.issue_ns.tolist()]


R, W = int(Op.READ), int(Op.WRITE)


def test_a_task_that_waits_for_a_tag_issues_nothing_else() -> None:
    """The other task has the tag for 1 ms; what was 0.2 ms behind the one that waits comes 0.2 ms after that has a tag."""
    rows = [(0, -1, 1, R, SYNC, 0), (0, -1, 0, R, SYNC, 5000), (100 * US, 1, 0, R, SYNC, 9000), (300 * US, 1, 0, R, SYNC, 20000),
            (50 * US, 0, 1, R, SYNC, 30000)]  # fmt: skip
    first, _, second, third, other = issues(one_tag(forest(rows)))
    assert first == 0 and other == 1.05
    # The tag is the other's until 3 ms: it has waited since 1.05, before these were due.
    assert second == 2.1 and third == pytest.approx(3.2, abs=0.01)


def test_write_back_waits_all_at_once() -> None:
    rows = [(0, -1, 1, R, SYNC, 0), *((k * 100 * US, -1, 0, W, 0, 5000 + 100 * k) for k in range(1, 4)), (0, 0, 1, R, SYNC, 9000)]
    assert issues(one_tag(forest(rows)))[1:4] == [0.1, 0.2, 0.3]


def test_a_flush_needs_a_tag_where_nothing_schedules() -> None:
    """Two of one task, at once: both wait for a tag, and each is made."""
    drive = open_drive("barracuda-80g")
    flush = int(Op.FLUSH)
    rows = [
        (0, -1, 1, R, SYNC, 10**6),
        (100 * US, -1, 0, flush, SYNC, 0),
        (200 * US, -1, 0, flush, SYNC, 0),
        (0, 0, 1, R, SYNC, 0),
    ]
    run = one_tag(forest(rows), drive)
    done = run.rows.complete_ns.tolist()
    assert done[0] <= done[1] <= done[2] and min(done) > 0


@pytest.mark.parametrize("name", list(catalogue()))
@pytest.mark.parametrize(("nr_requests", "pull"), [(0, False), (1, True), (3, True), (64, True)])
def test_all_is_issued_and_done(name: str, nr_requests: int, pull: bool) -> None:
    """Requests and flushes of several tasks, some of them at once, with few tags and with many."""
    dice = np.random.default_rng(nr_requests)
    n = 300
    op = dice.choice([R, R, W, W, int(Op.FLUSH)], n)
    parent = np.where(dice.random(n) < 0.1, -1, np.arange(n) - dice.integers(1, 9, n))
    task = dice.integers(0, 5, n)
    rows = [
        (int(dice.choice([0, 50 * US, 700 * US, 9 * MS])), max(-1, int(parent[k])), int(task[k]), int(op[k]),
         SYNC if op[k] != W else int(dice.integers(0, 2)), 8 * int(dice.integers(0, 10**6)) if op[k] != Op.FLUSH else 0)
        for k in range(n)
    ]  # fmt: skip
    load = forest(rows, 5)
    for processor in (False, True):
        options = Options(record=True, nr_requests=nr_requests, pull_ahead=pull, one_processor=processor)
        run = simulate(name, open_drive("barracuda-80g"), load, options=options)
        issue, complete = run.rows.issue_ns, run.rows.complete_ns
        follows = load.parent >= 0
        due = np.where(follows, complete[load.parent] + load.delay_ns, load.time_ns)
        assert (complete >= issue).all() and (issue >= due).all()
        assert run.totals["completed"] == (load.op != Op.FLUSH).sum()


def test_one_processor_lets_who_computes_go_first() -> None:
    """With one for each task who waits gets the tag; with a single one who computes for 0.1 ms has it half of the time."""
    rows = [(0, -1, 0, R, SYNC, 0), (0, -1, 1, R, SYNC, 50000)]
    for k in range(400):
        for task in (0, 1):
            rows.append((100 * US, len(rows) - 2, task, R, SYNC, 8 * k + 50000 * task))

    def turns(run: Outcome) -> int:
        order = np.argsort(run.rows.complete_ns)
        task = run.rows.task[order][:400]
        return int((np.diff(task.astype(int)) != 0).sum())

    assert turns(one_tag(forest(rows))) >= 398
    assert 150 < turns(one_tag(forest(rows), one_processor=True)) < 320
    slow = [(ms if parent < 0 else 600 * US, parent, *rest) for ms, parent, *rest in rows]
    assert turns(one_tag(forest(slow), one_processor=True)) >= 398  # type: ignore[arg-type]


def test_a_recording_tells_how_many_processors_there_were(tmp_path: Path) -> None:
    path = tmp_path / "x.hwr"
    content = files({0: [page(1000, entry(0, ring_event("block_bio_queue", sector=8, nr_sector=8, rwbs="RS", pid=7)))]})
    for more, number in (({"processors": 1}, 1), ({"processors": 16}, 16), ({}, None)):
        path.write_bytes(compress(archive(content | {"headwaiter.json": document(begin(**more))})))
        found = load(path)
        assert found.processors == number
        assert recorded_options(Options(), found).one_processor == (number == 1)
