# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A run of one scheduler on one drive: libheadwaiter's simulator with NumPy arrays for input and output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headwaiter.base import ending
from headwaiter.base.errors import Problem
from headwaiter.engine.constants import Progress
from headwaiter.engine.native import borrow, ffi, lib, text, view
from headwaiter.engine.policy_tables import Cells, Setting
from headwaiter.engine.schedulers import Scheduler, find

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]

INSTANTS = 20_000
"""Simulated between two looks at whether the process is to end: some ms."""


class Drive(Protocol):
    """Something that can be put under a scheduler."""

    @property
    def name(self) -> str:
        """Return how the drive is called in results."""

    @property
    def sectors(self) -> int:
        """Capacity, in sectors of 512 bytes."""

    def attach(self, run: Any) -> int:
        """Give the drive to a `struct hws *`; what libheadwaiter returned."""


@dataclass(frozen=True)
class ConstantDrive:
    """Serves every request in `service_ns`, one at a time; its head stays where the last request ended."""

    service_ns: int
    sectors: int = 1 << 40

    @property
    def name(self) -> str:
        """constant:MS, as on the command line."""
        return f"constant:{self.service_ns / 1e6:g}"

    def attach(self, run: Any) -> int:
        """See Drive."""
        return int(lib.hws_drive_constant(run, self.service_ns, self.sectors))


@dataclass(frozen=True)
class Task:
    """A task that issues requests, by number and name. `group` is its thread of control: an index that tasks may share.

    `phase`: threads of control that run side by side have the same; None is no program's (the kernel's flusher).
    """

    id: int
    name: str
    group: int
    ioprio: int = 0
    share: int = 0
    exits: bool = True
    phase: int | None = 0
    cgroup: tuple[tuple[str, int], ...] = ()
    """The control group that it is in, from the root down: names, and weights beside their siblings."""


class Load(Protocol):
    """Work for a run."""

    @property
    def tasks(self) -> Sequence[Task]:
        """Tasks; I/Os name them by index."""

    def attach(self, run: Any) -> int:
        """Give the work to a `struct hws *`, after its tasks; what libheadwaiter returned."""

    def explained(self, error: str) -> str:
        """Return what libheadwaiter says is wrong, with the place where it was written, if it is the load's."""


_COLUMNS = {
    "time_ns": "int64_t[]",
    "parent": "int64_t[]",
    "delay_ns": "int64_t[]",
    "after": "int64_t[]",
    "task": "uint32_t[]",
    "op": "uint8_t[]",
    "flags": "uint8_t[]",
    "sector": "uint64_t[]",
    "sectors": "uint32_t[]",
    "ioprio": "uint16_t[]",
    "service_ns": "int64_t[]",
    "until_ns": "int64_t[]",
    "apart_ns": "int64_t[]",
}


def _borrowed(columns: Mapping[str, Any]) -> Any:
    """These columns as libheadwaiter takes them."""
    c = ffi.new("struct hws_trace *")
    c.n = len(columns["time_ns"])
    for name, column in columns.items():
        setattr(c, name, borrow(_COLUMNS[name], column))
    return c


@dataclass(frozen=True)
class Forest:
    """I/O i follows parent[i] after delay_ns[i], or comes at time_ns[i] if parent[i] is -1. Columns of one length.

    It is never issued before I/O after[i], an earlier row (-1: no such row), which keeps a stream in order, nor before time_ns[i]
    if its flags have constants.PACED; nor does its task issue anything for apart_ns[i] after it. Those of a task with
    constants.NEXT come in their order, one for each I/O of the task that completes; they have parents. Sectors of 512 bytes,
    times in ns, op and flags as constants.Op and SYNC …; service_ns is for the constant drive (0: its own). An I/O that is not
    issued before until_ns never is. attach() raises Problem when a column is shorter than another.
    """

    tasks: Sequence[Task]
    time_ns: I64
    parent: I64
    delay_ns: I64
    task: U32
    op: U8
    flags: U8
    sector: U64
    sectors: U32
    ioprio: U16
    service_ns: I64 | None = None
    after: I64 | None = None
    until_ns: I64 | None = None
    apart_ns: I64 | None = None
    windows: int = 0
    """It is a sample of a longer load: so many pieces, one behind the other; 0: all of one."""
    free: Forest | None = None
    """This load as it would be without write-back throttling, if that is known: a recorded one was throttled."""

    def under(self, scheduler: str) -> Forest:
        """Return the load as it is under a scheduler."""
        return self.free if self.free is not None and find(scheduler).is_unthrottled else self

    @property
    def groups(self) -> I64:
        """The thread of control of each I/O."""
        return np.array([task.group for task in self.tasks], np.int64)[self.task]

    def attach(self, run: Any) -> int:
        """See Load."""
        given = {name: column for name in _COLUMNS if (column := getattr(self, name)) is not None}
        short = [name for name, column in given.items() if column.shape != self.time_ns.shape]
        if short:
            raise Problem(f"a forest's columns differ in length: {', '.join(short)}")
        return int(lib.hws_add_trace(run, _borrowed(given)))

    def explained(self, error: str) -> str:
        """See Load: a forest was written nowhere."""
        return error


@dataclass(frozen=True)
class Piece:
    """Consecutive I/Os of a trace, columns of one length as of a Forest; each comes at its time."""

    time_ns: I64
    task: U32
    op: U8
    flags: U8
    sector: U64
    sectors: U32
    ioprio: U16

    def columns(self) -> Any:
        """Return the columns as libheadwaiter takes them. They must outlive the next piece's."""
        return _borrowed({one.name: getattr(self, one.name) for one in fields(self)})


@dataclass(frozen=True)
class Pieces:
    """A trace that memory does not hold: `read` begins it anew, and gives pieces in order, each later than the one before.

    ios: how many I/Os and flushes of each task there will be. A run with it keeps no rows.
    """

    tasks: Sequence[Task]
    ios: U64
    read: Callable[[], Iterator[Piece]]

    def attach(self, run: Any) -> int:
        """See Load."""
        return int(lib.hws_add_pieces(run, borrow("uint64_t[]", self.ios)))

    def explained(self, error: str) -> str:
        """See Load: where a row was written is told by who reads it."""
        return error

    def feeder(self, run: Any) -> Callable[[], int]:
        """Return what gives the next piece to a run, and returns what libheadwaiter returned."""
        pieces = self.read()
        held: dict[str, Any] = {}

        def feed() -> int:
            piece = next(pieces, None)
            given = piece.columns() if piece else ffi.new("struct hws_trace *")
            status = int(lib.hws_feed(run, given))
            held["piece"] = piece, given
            return status

        return feed


PROCESSOR_TIMES = (
    "dispatch_ns", "dispatch_page_ns", "dispatch_write_page_ns", "restart_ns", "pass_ns", "turnaround_ns",
    "turnaround_page_ns", "copy_ns", "copy_page_ns", "fetch_page_ns", "dirty_page_ns",
)  # fmt: skip
HOST_TIMES = (
    "lock_ns", "lock_shared_ns", "lock_crowded_ns", "complete_ns", "switch_ns", "switch_more_ns", "replayed_ns",
)  # fmt: skip
"""Processor times that count where there are cores."""
EVERY_TIME = (*PROCESSOR_TIMES, *HOST_TIMES, "meanwhile_ns", "meanwhile_page_ns")


@dataclass(frozen=True)
class Options:
    """Options of a run. queue_depth 0 is the drive's own; nr_requests 0 is no limit."""

    seed: int = 0
    queue_depth: int = 0
    max_sectors: int = 2560
    merging: bool = True
    join_arriving: bool = False
    """As blk-mq: what is inserted joins the request that ends there, and the scheduler is not asked."""
    nr_requests: int = 0
    pull_ahead: bool = False
    race_seed: int = 0
    """Who gets a tag for which one process waits when another, just served, asks again as quickly: 0: always the latter; else by
    chance, with this seed."""
    settled: bool = False
    """The scheduler has had the device for long: it knows whether that takes several requests at once, and its long ways."""
    told_rotational: int = 0
    """What the kernel takes the drive for (queue/rotational), whatever it is: 1: a disk that rotates; 2: one that does not."""
    dispatch_ns: int = 0
    dispatch_page_ns: int = 0
    dispatch_write_page_ns: int = 0
    meanwhile_ns: int = 0
    """Time of the only processor (one_processor) while a request is in the drive."""
    meanwhile_page_ns: int = 0
    restart_ns: int = 0
    """After a completion, while others wait: more until the next decision is in the drive."""
    pass_ns: int = 0
    """And where nothing is decided, of everybody's processor time."""
    turnaround_ns: int = 0
    turnaround_page_ns: int = 0
    copy_ns: int = 0
    copy_page_ns: int = 2048
    fetch_page_ns: int = 0
    dirty_page_ns: int = 0
    dirty_bytes: int = 0
    """Dirty pages from which on writers wait; 0: 200 MiB, as Linux sets it on a machine with 1 GB."""
    dirty_background_bytes: int = 0
    """Dirty pages from which on they are written back; 0: 100 MiB."""
    wbt_depth: int = 0
    """Requests that blk-mq's write-back throttling (wbt) takes the device to hold, its nr_requests; 0: it does not throttle.

    Of a page cache, and of a trace: its writes that nobody waits for."""
    wbt_lat_ns: int = 0
    """Latency of a read above which wbt makes write-back wait; 0: as Linux, 75 ms on a drive that rotates, else 2 ms."""
    max_segments: int = 0
    """Pages of the page cache that one write may take; 0: as many as max_sectors."""
    one_processor: bool = False
    cpus: int = 1
    record: bool = False
    """Keep a row per I/O (Outcome.rows), in memory that grows with the run."""
    exact: int = 1_000_000
    """Latencies are exact in runs of up to so many I/Os, and in longer ones within a share that Latencies tells."""
    cores: int = 0
    """Processors of the host, which processes share; 0: each process has one of its own, and HOST_TIMES do not count."""
    spread: bool = False
    """A trace's I/Os go round the cores, whose ever they are."""
    lock_by_queue: bool = False
    """Each hardware queue has a lock of its own."""
    lock_ns: int = 0
    lock_shared_ns: int = 0
    lock_crowded_ns: int = 0
    complete_ns: int = 0
    switch_ns: int = 0
    switch_more_ns: int = 0
    replayed_ns: int = 0
    warm: tuple[int, int, int] | None = None
    """A read that the drive serves before the run: time (ns), sector, sectors."""


@dataclass(frozen=True)
class JobTotals:
    """The work of a process of a job file from begin to end; reads and writes as it counts them, also in the page cache."""

    begin_ns: int
    end_ns: int
    ios: tuple[int, int]
    bytes: tuple[int, int]


@dataclass(frozen=True)
class Rows:
    """A row per I/O, in columns, in the order of the trace or of issue: ns (-1 where it did not happen), sectors of 512 bytes."""

    issue_ns: I64
    complete_ns: I64
    sector: U64
    sectors: U32
    task: U32
    op: U8
    memory: Any = field(repr=False, compare=False)
    """Owners of the memory of the columns: the run and its load."""


@dataclass(frozen=True)
class Tallies:
    """Sums over the I/Os of each task and operation, in columns of one length, in the order of their first I/Os."""

    task: I64
    """Index into the tasks."""
    op: I64
    ios: I64
    sectors: I64
    first_issue_ns: I64
    last_done_ns: I64
    latency_max_ns: I64
    latency_sum_ns: NDArray[np.float64]


@dataclass(frozen=True)
class Latencies:
    """Latencies of I/Os with how many had each, in columns of one length and in no particular order.

    Exact where relative_error is 0; else each is off by at most this share of itself, and the longest is still exact.
    """

    tally: I64
    """Index into the tallies."""
    ns: I64
    count: I64
    relative_error: float


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. Its size depends on tasks and operations, not on how long the run was, but for rows."""

    scheduler: str
    tunables: Mapping[str, int]
    drive: str
    tasks: Sequence[Task]
    tallies: Tallies
    latencies: Latencies
    totals: Mapping[str, int]
    stats: Mapping[str, int] = field(default_factory=dict)
    jobs: Sequence[JobTotals] = ()
    recorded: Rows | None = field(default=None, repr=False)
    tables: Mapping[str, Cells] = field(default_factory=dict)
    """Those that the scheduler was given."""
    syncs: Tallies | None = None
    """Calls that tasks waited in until what they had written was on the medium, by task; None if there were none."""
    sync_latencies: Latencies | None = None
    """Latencies of the calls, from call to return."""
    calls: Tallies | None = None
    """A job's calls that read and write through the page cache, by task and operation; sectors are 0. None without any."""
    call_latencies: Latencies | None = None
    """Latencies of them, from call to return."""
    counters: U32 | None = field(default=None, repr=False)
    """The scheduler's counters, shape (rows, columns) as its Counters have it; None if it has none."""

    @property
    def rows(self) -> Rows:
        """A row per I/O. Problem if the run was not told to keep them (Options.record)."""
        if self.recorded is None:
            raise Problem("the run kept no rows")
        return self.recorded


def _new(c_options: Any) -> Any:
    run = ffi.gc(lib.hws_new(c_options), lib.hws_free)
    if run == ffi.NULL:
        raise Problem("out of memory before the run")
    return run


def _check(run: Any, status: int, load: Load | None = None) -> int:
    if status < 0:
        error = text(lib.hws_error(run)) or f"simulator error {-status}"
        raise Problem(load.explained(error) if load else error)
    return status


def _options(scheduler: Scheduler, options: Options) -> tuple[Any, Any]:
    c = ffi.new("struct hws_options *")
    name = ffi.new("char[]", scheduler.name.encode())
    c.policy = name
    for one in fields(options):
        if one.name != "warm":  # a call of its own
            setattr(c, one.name, getattr(options, one.name))
    return c, name


def _add_groups(run: Any, tasks: Sequence[Task]) -> None:
    numbers: dict[tuple[str, ...], int] = {(): -1}
    for index, task in enumerate(tasks):
        path: tuple[str, ...] = ()
        for name, weight in task.cgroup:
            parent, path = path, (*path, name)
            if path not in numbers:
                _check(run, lib.hws_add_group(run, numbers[parent], weight))
                numbers[path] = len(numbers) - 1
        if path:
            _check(run, lib.hws_join_group(run, index, numbers[path]))


def simulate(
    scheduler: str,
    drive: Drive,
    load: Load,
    tunables: Mapping[str, Setting] | None = None,
    options: Options | None = None,
    log: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Run `load` on `drive` under a scheduler, to the end.

    `tunables` override defaults; a table of the scheduler is given as an array of its rows (int64, shape (rows, columns)).
    `log` is where the event log goes as the run goes (CSV; the caller takes care of partial files).
    `progress` is called from time to time with the number of I/Os completed so far. Raises Problem when the load does
    not fit the drive, or a tunable its range; Ended when the process has been told to end.
    """
    policy = find(scheduler)
    options = options or Options()
    c_options, _keep = _options(policy, options)
    run = _new(c_options)
    tables: dict[str, Cells] = {}
    for key, value in (tunables or {}).items():
        if key in policy.tables:
            tables[key] = policy.tables[key].check(policy.name, value)
            _check(run, lib.hws_set_table(run, key.encode(), borrow("int64_t[]", tables[key]), *tables[key].shape))
        else:
            _check(run, lib.hws_set(run, key.encode(), value))
    _check(run, drive.attach(run))
    if options.warm:
        _check(run, lib.hws_drive_warm(run, *options.warm))
    for task in load.tasks:
        _check(run, lib.hws_add_task(run, task.id, task.ioprio, task.share, task.exits))
    _add_groups(run, load.tasks)
    _check(run, load.attach(run), load)
    if log is not None:
        _check(run, lib.hws_log(run, str(log).encode()))
    totals = ffi.new("struct hws_totals *")
    feed = load.feeder(run) if isinstance(load, Pieces) else None
    while (status := _check(run, lib.hws_run(run, INSTANTS), load)) != Progress.OVER:
        ending.check()
        if feed and status == Progress.HUNGRY:
            _check(run, feed(), load)
        if progress:
            lib.hws_totals(run, totals)
            progress(totals.completed)
    lib.hws_totals(run, totals)
    return _outcome(run, policy, drive, load, totals, options.record, tables)


def _tallies(run: Any, what: Any) -> Tallies:
    c = ffi.new("struct hws_tally **")
    n = what(run, c)
    kind = ffi.typeof("struct hws_tally")
    rows = view(
        c[0],
        n,
        np.dtype(
            {
                "names": [name for name, _ in kind.fields],
                "formats": [f"u{ffi.sizeof(f.type)}" for _, f in kind.fields],
                "offsets": [f.offset for _, f in kind.fields],
                "itemsize": ffi.sizeof(kind),
            }
        ),
    )
    whole = {name: rows[name].astype(np.int64) for name, _ in kind.fields if not name.startswith("latency_sum")}
    return Tallies(**whole, latency_sum_ns=rows["latency_sum_ns"] + rows["latency_sum_high"] * 2.0**64)


def _latencies(run: Any, what: Any) -> Latencies:
    c = ffi.new("struct hws_latencies *")
    c.room = what(run, c)
    tally, ns, count = np.empty(c.room, np.uint32), np.empty(c.room, np.uint64), np.empty(c.room, np.uint64)
    c.tally, c.ns, c.count = borrow("uint32_t[]", tally), borrow("uint64_t[]", ns), borrow("uint64_t[]", count)
    what(run, c)
    error = 1 / c.error_denominator if c.error_denominator else 0.0
    return Latencies(tally.astype(np.int64), ns.view(np.int64), count.view(np.int64), error)


def _rows(run: Any, load: Load) -> Rows:
    c = ffi.new("struct hws_rows *")
    lib.hws_rows(run, c)
    n = c.n
    return Rows(
        issue_ns=view(c.issue_ns, n, np.int64),
        complete_ns=view(c.complete_ns, n, np.int64),
        sector=view(c.sector, n, np.uint64),
        sectors=view(c.sectors, n, np.uint32),
        task=view(c.task, n, np.uint32),
        op=view(c.op, n, np.uint8),
        memory=(run, load),
    )


def _outcome(
    run: Any, policy: Scheduler, drive: Drive, load: Load, totals: Any, rows: bool, tables: Mapping[str, Cells]
) -> Outcome:
    stat = ffi.new("int64_t *")
    stats = {name: int(stat[0]) for name in policy.stats if lib.hws_stat_value(run, name.encode(), stat) == 0}
    syncs = _tallies(run, lib.hws_sync_tallies)
    calls = _tallies(run, lib.hws_call_tallies)
    return Outcome(
        scheduler=policy.name,
        tunables={name: int(lib.hws_get(run, name.encode())) for name in policy.tunables},
        drive=drive.name,
        tasks=load.tasks,
        tallies=_tallies(run, lib.hws_tallies),
        latencies=_latencies(run, lib.hws_latencies),
        totals={name: int(getattr(totals, name)) for name, _ in ffi.typeof("struct hws_totals").fields},
        stats=stats,
        jobs=_jobs(run),
        recorded=_rows(run, load) if rows else None,
        tables=tables,
        syncs=syncs if len(syncs.ios) else None,
        sync_latencies=_latencies(run, lib.hws_sync_latencies) if len(syncs.ios) else None,
        calls=calls if len(calls.ios) else None,
        call_latencies=_latencies(run, lib.hws_call_latencies) if len(calls.ios) else None,
        counters=_counters(run, policy),
    )


def _counters(run: Any, policy: Scheduler) -> U32 | None:
    if not policy.counters:
        return None
    cells = np.zeros((policy.counters.rows, policy.counters.columns), np.uint32)
    lib.hws_counters(run, borrow("uint32_t[]", cells))
    return cells if cells.any() else None


def _jobs(run: Any) -> list[JobTotals]:
    c = ffi.new("struct hws_job_totals *")
    out: list[JobTotals] = []
    while lib.hws_job_totals(run, len(out), c) == 0:
        out.append(JobTotals(c.begin_ns, c.end_ns, (c.ios[0], c.ios[1]), (c.bytes[0], c.bytes[1])))
    return out
