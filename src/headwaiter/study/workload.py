# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What to run: a trace, a fio job file or a generated workload, told apart by content, made into a load for the simulator."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import DoesNotFitError, NotFoundError, Problem, plain
from headwaiter.base.figures import brief
from headwaiter.base.paths import WORKLOADS
from headwaiter.base.reading import exists, is_folder
from headwaiter.engine.constants import NEXT, SYNC
from headwaiter.engine.sim import I64, Drive, Forest, Load, Options, Task, simulate
from headwaiter.fio import load_jobs, looks_like_job_file
from headwaiter.generated import generate, looks_generated
from headwaiter.study.paced import paced
from headwaiter.study.schema import Replay
from headwaiter.study.submitters import apart_ns, by_completions
from headwaiter.traces import Source, Trace, as_inserted, closed_loop, part, released, stream_order, with_flushes, with_streams
from headwaiter.traces import load as load_trace
from headwaiter.traces.excerpt import excerpt, is_large
from headwaiter.traces.formats.native import native_csv
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS

CLOSED: Replay = "closed"
OPEN: Replay = "open"
NR_REQUESTS = 256
"""The limit of blk-mq with a scheduler on most devices, and of reads and writes together before blk-mq."""
ABSURD_THINK_MS = 1000.0
"""A median think time above this says that what stands in for unrecorded service times is too short."""


@dataclass(frozen=True)
class Reading:
    """The way in which a workload is to be read. replay None: closed wherever the trace tells its tasks, else open."""

    replay: Replay | None = None
    group_gap_ms: float = DEFAULT_GROUP_GAP_MS
    device: str | None = None
    shares: tuple[tuple[int, int], ...] = ()
    streams: int = 0
    """Threads that tasks are inferred for where a trace does not tell them; 0: none are."""
    speed: float = 1.0
    """Think times, or timestamps, are divided by this."""
    seed: int = 0
    """The seed of generated workloads, and of windows that are read of what memory does not hold."""
    whole: bool = False
    """Read all of it, however long it is."""


@dataclass(frozen=True)
class Workload:
    """A load with its name; `replay` is closed, open, or None for generated load; `notes` are for the reader.

    `trace` is what is replayed of a recording, if it is one.
    """

    name: str
    load: Load
    replay: Replay | None
    notes: tuple[str, ...] = ()
    trace: Trace | None = None
    file_sha256: str = ""
    reading: Reading = Reading()
    """How it was read."""
    whole: Trace | None = None
    """What was recorded, where `trace` is windows of it (windows.py), or has fewer I/Os (plugs.py)."""
    free: Workload | None = None
    """This workload without write-back throttling, if it was throttled when it was recorded."""
    is_joined: bool = False
    """Whether what the device served as one request is one I/O (plugs.py)."""

    @property
    def windows(self) -> int:
        """In how many windows it is replayed; 0: as a whole."""
        return self.load.windows if isinstance(self.load, Forest) else 0

    @property
    def recording(self) -> Trace | None:
        """All that was recorded, whatever is replayed of it; None if it is no recording."""
        return self.whole or self.trace

    @property
    def sha256(self) -> str:
        """Return the digest of the file, as it is stored; of the native CSV of a trace that comes from no file."""
        recording = self.recording
        if self.file_sha256 or recording is None:
            return self.file_sha256
        return hashlib.sha256(native_csv(recording).encode()).hexdigest()


def find_workload(name: str | None) -> Path:
    """A file of that name, else a bundled workload (with or without its suffix); None is the bundled example."""
    path = Path(name if name is not None else "example")
    if name is not None and exists(path):
        return path
    stem = path.name.split(".")[0]
    bundled = sorted(
        p for p in WORKLOADS.iterdir() if p.is_file() and p.name.startswith(path.name) and p.name.split(".")[0] == stem
    )
    if len(path.parts) == 1 and bundled:
        return bundled[0]
    raise NotFoundError(f"{path}: no such file, and no bundled workload of that name")


def read_halves(path: Path, drive: Drive, reading: Reading) -> tuple[Workload, Workload]:
    """A trace as two workloads: its first requests, and the others. Problem if it is no trace, or too short."""
    source = Source(path)
    head = b"" if is_folder(path) else source.stored_head
    if looks_generated(head) or looks_like_job_file(head):
        raise Problem(f"{path}: only a trace has halves, so give --config, or --online --whole")
    return halves_of(path, read_trace(path, reading, source), drive, reading)


def halves_of(path: Path, trace: Trace, drive: Drive, reading: Reading) -> tuple[Workload, Workload]:
    """A trace that has been read as two workloads; as read_halves()."""
    middle = len(trace) // 2
    if trace.excerpt:
        trace = dataclasses.replace(trace, excerpt=dataclasses.replace(trace.excerpt, windows=max(1, trace.excerpt.windows // 2)))
    if not middle:
        raise Problem(f"{path}: a single request cannot be split into halves")
    first, second = (replay(path, part(trace, *rows), drive, reading) for rows in ((0, middle), (middle, len(trace))))
    return first, second


def read_recording(path: Path, reading: Reading, source: Source) -> Trace | None:
    """The trace in a file; None if it holds something else."""
    head = b"" if is_folder(path) else source.stored_head
    return None if looks_generated(head) or looks_like_job_file(head) else read_trace(path, reading, source)


def read_workload(path: Path, drive: Drive, reading: Reading, source: Source | None = None) -> Workload:
    """The workload in a file, fitted to a drive. `source`: the file, if it has been read already."""
    source = source or Source(path)
    # A pipe can be read only once: whatever it holds, it is read here.
    head = b"" if is_folder(path) else source.stored_head
    generated = looks_generated(head)
    if generated or looks_like_job_file(head):
        used = {
            "--replay": reading.replay,
            "--device": reading.device,
            "--streams": reading.streams,
            "--speed": reading.speed != 1,
        }
        for option, given in used.items():
            if given:
                this = "generated workload" if generated else "job file"
                raise Problem(f"{path}: {option} is for traces, and this is a {this}")
    if generated:
        made = _with_shares(generate(path, source.raw, drive.sectors, reading.seed), reading)
        return Workload(plain(path.name), made, None, file_sha256=source.sha256)
    if looks_like_job_file(head):
        jobs = load_jobs(path, drive.sectors, source.raw)
        return Workload(plain(path.name), _with_shares(jobs, reading), None, jobs.notes, file_sha256=source.sha256)
    return replay(path, read_trace(path, reading, source), drive, reading)


def read_trace(path: Path, reading: Reading, source: Source | None = None, columns: str | None = None) -> Trace:
    """The trace in a file, with tasks inferred where that is asked for and it does not tell them; columns as of load().

    Of a file that memory does not hold, windows (excerpt.py).
    """
    if not (reading.whole or columns or (source and source.is_read)) and is_large(path):
        trace = excerpt(path, reading.seed, reading.group_gap_ms, device=reading.device)
        return with_streams(trace, reading.streams) if reading.streams and not trace.tasks_known else trace
    trace = load_trace(path, group_gap_ms=reading.group_gap_ms, device=reading.device, columns=columns, source=source)
    return with_streams(trace, reading.streams) if reading.streams and not trace.tasks_known else trace


def _with_shares(load: Load, reading: Reading) -> Load:
    """Return the load with `--share` applied to its tasks."""
    if not reading.shares:
        return load
    known = {t.id for t in load.tasks}
    for task, share in reading.shares:
        if task not in known:
            raise Problem(f"--share {task}={share}: the workload has no task {task}")
    shares = dict(reading.shares)
    tasks = tuple(dataclasses.replace(t, share=shares.get(t.id, t.share)) for t in load.tasks)
    return dataclasses.replace(load, tasks=tasks)  # type: ignore[type-var]


def replay(path: Path, trace: Trace, drive: Drive, reading: Reading) -> Workload:
    """A trace as a load, fitted to a drive; `path` is where it comes from."""
    _check_fit(path, trace, drive)
    work, free = _replay(path, as_inserted(trace), drive, reading), released(trace)
    if work.replay != CLOSED or free is trace:
        return work
    return dataclasses.replace(work, free=_replay(path, free, drive, reading))


def _replay(path: Path, trace: Trace, drive: Drive, reading: Reading) -> Workload:
    notes = list(trace.notes)
    how = reading.replay or (CLOSED if trace.tasks_known else OPEN)
    if reading.replay is None and how == OPEN:
        notes.append("the trace does not identify tasks: replayed open, at its timestamps")
    rows = with_flushes(trace)
    forest = open_forest(rows)
    if how == CLOSED:
        complete = rows.complete_ns
        assumed = complete < 0
        if assumed.any():
            stand_in = simulate("noop", drive, forest, options=Options(record=True))
            which = "the" if not trace.completions_known else f"{int(assumed.sum())} missing"
            notes.append(f"{which} completions were not recorded: service times of noop on {drive.name} are used instead")
            shift = int(rows.time_ns[0])
            complete = np.where(assumed, stand_in.rows.complete_ns + shift, complete)
        apart, parent, delay_ns, whichever = by_completions(rows, complete, apart_ns(rows), *closed_loop(rows, complete))
        if assumed.any():
            think_ms = _assumed_think_ms(rows, parent, delay_ns, assumed)
            notes.append(f"so programs are assumed to think for {brief(think_ms)} ms between two of their requests (median)")
            if think_ms > ABSURD_THINK_MS and reading.replay is None:
                how = OPEN
                notes.append(
                    "no program that waits for its requests thinks so long, so they were probably slow: replayed open, at their"
                    " timestamps (--replay closed insists)"
                )
        if how == CLOSED:
            flags = np.where(whichever, rows.flags | NEXT, rows.flags).astype(np.uint8)
            closed = dataclasses.replace(forest_of(rows, parent, delay_ns), after=stream_order(rows), flags=flags)
            forest = paced(rows, closed)
            forest = dataclasses.replace(forest, apart_ns=apart[rows.task] if apart.any() else None)
    if reading.speed != 1:
        notes.append(f"{'think times' if how == CLOSED else 'timestamps'} were divided by {reading.speed:g}")
        forest = dataclasses.replace(
            forest,
            time_ns=(forest.time_ns / reading.speed).astype(np.int64),
            delay_ns=(forest.delay_ns / reading.speed).astype(np.int64),
        )
    return Workload(plain(path.name), _with_shares(forest, reading), how, tuple(notes), trace, trace.sha256, reading)


def _assumed_think_ms(trace: Trace, parent: I64, delay_ns: I64, assumed: NDArray[np.bool_]) -> float:
    """The median think time after requests whose completion is assumed; 0 if there is none."""
    follows = np.flatnonzero((parent >= 0) & (trace.flags & SYNC != 0))
    after = follows[assumed[parent[follows]] & (trace.flags[parent[follows]] & SYNC != 0)]
    return float(np.median(delay_ns[after])) / 1e6 if len(after) else 0.0


def open_forest(trace: Trace) -> Forest:
    """The trace with its flushes at its timestamps, the first at 0."""
    return forest_of(with_flushes(trace), None, None)


def _check_fit(path: Path, trace: Trace, drive: Drive) -> None:
    sectors = drive.sectors
    beyond = np.flatnonzero(trace.sector + trace.sectors > sectors)
    if len(beyond):
        i = int(beyond[0])
        raise DoesNotFitError(
            f"{path}: request {i} (sectors {int(trace.sector[i])}+{int(trace.sectors[i])}) and {len(beyond) - 1} more"
            f" lie past the end of {drive.name}, which has {sectors} sectors (--drive auto enlarges one that fits)"
        )


def forest_of(trace: Trace, parent: I64 | None, delay_ns: I64 | None) -> Forest:
    """A trace that has its flushes among its rows as a forest; without parents all comes at its timestamp, the first at 0."""
    n = len(trace)
    # A task's group is that of its first request; its ioprio goes with each request.
    _, first = np.unique(trace.task, return_index=True)
    tasks = tuple(
        Task(t.id, t.name or f"task {t.id}", int(trace.group[row]), cgroup=t.cgroup)
        for t, row in zip(trace.tasks, first.tolist(), strict=True)
    )
    return Forest(
        tasks=tasks,
        time_ns=np.ascontiguousarray(trace.time_ns - trace.time_ns[0]),
        parent=np.full(n, -1, np.int64) if parent is None else parent,
        delay_ns=np.zeros(n, np.int64) if delay_ns is None else np.ascontiguousarray(delay_ns),
        task=trace.task,
        op=trace.op,
        flags=trace.flags,
        sector=trace.sector,
        sectors=trace.sectors,
        ioprio=trace.ioprio,
    )
