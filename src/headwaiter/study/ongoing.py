# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A recording is a window on programs that go on: what they would have done in the same time, not how soon they do the same.

A replay of so much recorded work ends sooner under a better scheduler, but program by program: those that have done theirs leave
the disk to the others, who then look better served than they ever would be. So a replay is cut at the recorded span, and a
program that was at work until about the end begins again when it has done all that was recorded of it, until its own end. A
stream goes on behind its end, unless it goes round and round, and random places are others of the same region, so that the
drive's cache holds no more of them.

A program that ended well before the recording did is not repeated. Nor is what nobody waits for, such as write-back: how much of
it there is does not depend on how soon it is done.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import NEXT, SECTOR_BYTES, SYNC, Op
from headwaiter.engine.sim import I64, Drive, Forest, Rows, Task
from headwaiter.study.plugs import plugged
from headwaiter.study.workload import CLOSED, Workload
from headwaiter.traces import Trace, with_flushes

SILENT_GAPS = 3.0
"""A program that is silent for so many times its longest pause until then has ended."""
SILENT_SHARE = 0.2
"""But one that ended in the last part of this share is taken to have had so much time, and not so much to do."""
FEWEST = 4
"""From fewer I/Os that follow another one nothing can be told of how a program would go on."""
GOLDEN = 0.6180339887
"""Multiples of it, without their whole parts, lie evenly between 0 and 1."""
AGAIN = 0.125
"""A stream that is at places where it was before for more than this share goes round and round."""
STARVED_SHARE = 0.1
"""Unless the program has had something under way for all but this share of its time."""
MOST_PASSES = 512
MOST_ROWS = 2_000_000


@dataclass(frozen=True)
class OngoingThread:
    """A thread of control that goes on: its rows, and those by which it goes on, in the order in which they complete."""

    rows: I64
    leaves: I64
    think_ns: int
    until_ns: int
    renewed: frozenset[int]
    """Tasks of which a program has others the next time, as a shell that starts one after the other."""


@dataclass(frozen=True)
class Ongoing(Forest):
    """A recording's forest with its programs going on: the recorded rows, behind them those that repeat them.

    origin: the recorded row that each row is or repeats. recorded: the forest of the recording alone.
    """

    origin: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    recorded: Forest | None = None
    programs: tuple[OngoingThread, ...] = ()
    passes: tuple[int, ...] = ()
    """How often each program is there, the recorded time included."""
    capacity: int = 0
    """Capacity of the drive, in sectors."""
    span_ns: int = 1
    """Length of the recording; programs go on until then."""
    sliced: int = 0
    """It is told in as many slices of time as so many I/Os have."""

    @property
    def recorded_ios(self) -> I64:
        """Return how many I/Os were recorded of each thread of control, by its number."""
        groups = self.groups
        return np.bincount(groups[self.origin == np.arange(len(groups))], minlength=int(groups.max()) + 1)

    def longer(self, issue_ns: I64) -> Ongoing | None:
        """With more passes of those programs that have issued all they have; None if there are none, or no room for more."""
        assert self.recorded
        spent = [bool((issue_ns[np.isin(self.origin, one.rows)] >= 0).all()) for one in self.programs]
        passes = tuple(min(MOST_PASSES, 4 * p) if out else p for p, out in zip(self.passes, spent, strict=True))
        size = sum(p * len(one.rows) for p, one in zip(passes, self.programs, strict=True))
        return None if passes == self.passes or size > MOST_ROWS else extend(self, passes)


def going_on(work: Workload, drive: Drive) -> Workload:
    """A closed replay whose programs go on until the recorded span is over; as it is, where none does, or they do so already."""
    if work.replay != CLOSED or work.trace is None or not isinstance(work.load, Forest) or isinstance(work.load, Ongoing):
        return work
    load = ongoing(work.trace, work.load, drive.sectors)
    return replace(work, load=load) if load.programs else work


def ongoing(trace: Trace, forest: Forest, capacity: int) -> Ongoing:
    """A closed replay of a trace, its programs going on until the recorded span is over."""
    trace = _completed(with_flushes(trace), forest)
    forest, groups = plugged(trace, forest), forest.groups
    programs = tuple(p for g in np.unique(groups).tolist() if (p := _program(trace, forest, np.flatnonzero(groups == g))))
    begun = Ongoing(**{f.name: getattr(forest, f.name) for f in dataclasses.fields(Forest)})
    begun = replace(begun, span_ns=max(1, trace.span_ns), recorded=forest, programs=programs, capacity=capacity)
    begun = replace(begun, sliced=len(forest.time_ns))
    return extend(begun, (2,) * len(programs))


def _completed(trace: Trace, forest: Forest) -> Trace:
    """With the completions that the forest took where none was recorded: each program thinks from then on.

    What nobody follows takes as long as others do, in the median, if no completion was recorded; else it may not have completed.
    """
    unknown = trace.complete_ns < 0
    follows = np.flatnonzero(forest.parent >= 0)
    if not unknown.any() or not len(follows):
        return trace
    took = np.full(len(trace), -1, np.int64)
    parent = forest.parent[follows]
    took[parent] = np.maximum(0, forest.time_ns[follows] - forest.delay_ns[follows] - forest.time_ns[parent])
    if not trace.completions_known:
        took[took < 0] = int(np.median(took[took >= 0]))
    complete = np.where(unknown & (took >= 0), trace.time_ns + took, trace.complete_ns)
    return replace(trace, complete_ns=complete)


@dataclass(frozen=True)
class ThreadsDone:
    """The work that each thread of control gets done in a run, and when it is at work, shape (threads,)."""

    bytes: NDArray[np.float64]
    """By operation, read and write, shape (2, threads)."""
    begin_ns: I64
    """Time of its first I/O."""
    end_ns: I64
    """When the time is over in which it goes on; of one that does not, when its last I/O is done."""

    def pace(self, threads: I64) -> float:
        """Bytes a second that these threads get done together, by the time that any of them is at work; 0 if none is."""
        time_ns = int(self.end_ns[threads].max() - self.begin_ns[threads].min())
        read, written = self.bytes[:, threads].sum(axis=1).tolist()
        return work(read, written) * 1e9 / time_ns if time_ns > 0 else 0.0


WRITER = 10
"""A program that writes so many times as much as it reads is there to write."""


def work(read: float, written: float) -> float:
    """Return what counts of a program's bytes: what it reads, for what it writes waits in memory; unless it is there to write."""
    return written if written > WRITER * read else read


def done_in(rows: Rows, load: Forest) -> ThreadsDone:
    """Return what was done in a run of a trace that has kept its rows, whether or not its programs go on."""
    issue, complete, groups = np.asarray(rows.issue_ns), np.asarray(rows.complete_ns), load.groups
    threads = int(groups.max()) + 1
    counts = (complete > 0) & (load.op != Op.FLUSH)
    end = np.zeros(threads, np.int64)
    np.maximum.at(end, groups[counts], complete[counts])
    if isinstance(load, Ongoing):
        for one in load.programs:
            end[groups[one.rows[0]]] = one.until_ns
    counts &= complete <= end[groups]
    begin = np.full(threads, np.iinfo(np.int64).max)
    there = issue >= 0
    np.minimum.at(begin, groups[there], issue[there])
    at = groups + threads * (load.op != Op.READ)
    done = np.bincount(at[counts], weights=load.sectors[counts] * float(SECTOR_BYTES), minlength=2 * threads)
    return ThreadsDone(done.astype(np.float64).reshape(2, threads), begin, end)


def _program(trace: Trace, forest: Forest, rows: I64) -> OngoingThread | None:
    """The program of these rows; None if it has ended, or nobody waits for it."""
    waited = (trace.op[rows] == Op.READ) | (trace.flags[rows] & SYNC > 0)
    follows = rows[forest.parent[rows] >= 0]
    if not waited.any() or not _is_known(trace, rows, follows) or _until(trace, rows) < (1 - SILENT_SHARE) * trace.span_ns:
        return None
    issue, done = trace.time_ns[rows], trace.complete_ns[rows]
    last = np.where(done < 0, np.iinfo(np.int64).max, done)
    order = np.argsort(last, kind="stable")
    # Under way when the program issued for the last time. What was issued together is there to the end, too.
    leaves = rows[order[last[order] > issue[-1]]]
    leaves = leaves if len(leaves) else rows[order[-1:]]
    tasks = np.unique(trace.task[rows])
    still = int(trace.task[rows[-1]])
    renewed = frozenset(t for t in tasks.tolist() if t != still or trace.tasks[t].exit_ns is not None)
    think = int(np.median(forest.delay_ns[follows]))
    return OngoingThread(rows, leaves, think, _until(trace, rows), renewed if len(tasks) > 1 else frozenset())


def _is_known(trace: Trace, rows: I64, follows: I64) -> bool:
    """Return whether it can be told how a program would go on. One that is starved does little, and waits all the time."""
    if len(follows) >= FEWEST:
        return True
    if not len(follows):
        return False
    begin, end = trace.time_ns[rows], trace.time_ns[0] + trace.span_ns
    done = np.maximum.accumulate(np.where(trace.complete_ns[rows] < 0, end, trace.complete_ns[rows]))
    thinks = int(np.maximum(0, begin[1:] - done[:-1]).sum()) + int(end - done[-1])
    return thinks < STARVED_SHARE * int(end - begin[0])


def _end(trace: Trace, rows: I64) -> tuple[int, int]:
    """When the program of these rows was last seen at work, and its longest pause until then, ns from the first request on."""
    issue, done = trace.time_ns[rows], np.maximum.accumulate(trace.complete_ns[rows])
    pause = int(np.maximum(0, issue[1:] - done[:-1]).max(initial=0))
    last = trace.span_ns if (trace.complete_ns[rows] < 0).any() else int(done[-1] - trace.time_ns[0])
    return last, pause


def _until(trace: Trace, rows: I64) -> int:
    """Return when the program of these rows ends, ns from the first request on: with the recording, unless it ended before."""
    last, pause = _end(trace, rows)
    tasks = np.unique(trace.task[rows])
    exited = len(tasks) == 1 and trace.tasks[int(tasks[0])].exit_ns is not None
    ended = exited or trace.span_ns - last > SILENT_GAPS * pause
    return max(1, last if ended else trace.span_ns)


def extend(load: Ongoing, passes: tuple[int, ...]) -> Ongoing:
    """Return the load with so many passes of each program."""
    base = load.recorded
    assert base
    tasks = list(base.tasks)
    count = len(base.time_ns)
    parts: dict[str, list[NDArray[np.generic]]] = {name: [np.asarray(getattr(base, name))] for name in _COPIED}
    after = np.full(count, -1, np.int64) if base.after is None else base.after
    until = np.full(count, load.span_ns, np.int64)
    for one in load.programs:
        until[one.rows] = one.until_ns
    parts |= {
        "until_ns": [until],
        "parent": [base.parent],
        "delay_ns": [base.delay_ns],
        "after": [after],
        "origin": [np.arange(count)],
    }
    size = count
    for one, number in zip(load.programs, passes, strict=True):
        rows, n = one.rows, len(one.rows)
        more = np.arange(1, number)[:, None]
        start = size + (more - 1) * n
        at = np.full(count, -1, np.int64)
        at[rows] = np.arange(n)

        def there(of: I64, at: I64 = at, start: I64 = start) -> I64:
            """These recorded rows, a line for each further pass."""
            found: I64 = start + at[of]
            return found

        parent, delay = there(base.parent[rows]), np.broadcast_to(base.delay_ns[rows], parent_shape := (number - 1, n)).copy()
        roots = np.flatnonzero(base.parent[rows] < 0)
        before = np.concatenate([one.leaves[None, :], there(one.leaves)])[: number - 1]
        parent[:, roots] = before[:, np.minimum(np.arange(len(roots)), len(one.leaves) - 1)]
        delay[:, roots] = one.think_ns
        follows = there(after[rows])
        follows[:, after[rows] < 0] = -1
        _go_on(follows, after, rows, at, start)
        for name in _COPIED:
            parts[name].append(np.broadcast_to(getattr(base, name)[rows], parent_shape).ravel())
        parts["flags"][-1] = parts["flags"][-1] | (base.flags[rows] & NEXT).max()
        parts["time_ns"][-1] = _dates(base, rows, more).ravel()
        parts["sector"][-1] = _places(base, rows, number, load.capacity).ravel()
        parts["task"][-1] = _tasks(tasks, base, one, rows, number).ravel()
        for name, column in (("parent", parent), ("delay_ns", delay), ("after", follows)):
            parts[name].append(column.ravel())
        parts["origin"].append(np.tile(rows, number - 1))
        parts["until_ns"].append(np.full((number - 1) * n, one.until_ns, np.int64))
        size += (number - 1) * n
    columns: dict[str, Any] = {name: np.ascontiguousarray(np.concatenate(each)) for name, each in parts.items()}
    if base.apart_ns is not None:
        columns["apart_ns"] = base.apart_ns[columns["origin"]]
    types = {name: getattr(base, name).dtype for name in _COPIED}
    columns |= {name: columns[name].astype(kind) for name, kind in types.items()}
    return replace(load, tasks=tuple(tasks), passes=passes, **columns)


_COPIED = ("time_ns", "task", "op", "flags", "sector", "sectors", "ioprio")


def _dates(base: Forest, rows: I64, more: I64) -> I64:
    """When a program that keeps its pace does in further passes what it did in the first one."""
    time = base.time_ns[rows]
    turn = int(time[-1] - time[0]) * len(rows) // max(1, len(rows) - 1)
    dates: I64 = time + more * turn
    return dates


def _go_on(follows: I64, after: I64, rows: I64, at: I64, start: I64) -> None:
    """A stream's first row follows its last row of the pass before."""
    head = np.arange(len(rows))
    for place, row in enumerate(rows.tolist()):
        if after[row] >= 0:
            head[place] = head[at[after[row]]]
    heads, length = np.unique(head, return_counts=True)
    longest = int(heads[np.argmax(length)])
    if length.max() < FEWEST:
        return
    tail = int(np.flatnonzero(head == longest)[-1])
    follows[0, longest] = rows[tail]
    follows[1:, longest] = start[:-1, 0] + tail


def _places(base: Forest, rows: I64, number: int, capacity: int) -> NDArray[np.uint64]:
    """Sectors of further passes: streams go on, loops stay, other places are moved within the region that they are of."""
    sector, length = base.sector[rows].astype(np.int64), base.sectors[rows].astype(np.int64)
    out = np.empty((number - 1, len(rows)), np.int64)
    passes = np.arange(1, number)[:, None]
    follows = np.zeros(len(rows), bool) if base.after is None else base.after[rows] >= 0
    for op in np.unique(base.op[rows]).tolist():
        mine = np.flatnonzero(base.op[rows] == op)
        at, long = sector[mine], length[mine]
        streams = 2 * int(follows[mine].sum()) >= len(mine)
        if streams and _again(at, long) > AGAIN:
            out[:, mine] = at
        elif streams:
            # Streams are rows that follow each other, and those that begin them; the longest sets the pace.
            begins = np.flatnonzero(~follows[mine])
            of = np.maximum(np.searchsorted(begins, np.arange(len(mine)), side="right") - 1, 0)
            step = int(np.bincount(of, weights=long).max())
            moved = at + passes * step
            last = np.maximum(1, capacity - long)
            out[:, mine] = np.where(moved > last, moved % last, moved)
        else:
            low, grain = int(at.min()), max(1, int(np.gcd.reduce(long)))
            room = max(grain, int((at + long).max()) - low - int(long.max()) + grain) // grain * grain
            step = int(GOLDEN * room) // grain * grain
            out[:, mine] = low + (at - low + passes * step) % room
    return np.minimum(out, capacity - length).astype(np.uint64)


def _again(at: I64, length: I64) -> float:
    """The share of sectors that were there before."""
    order = np.argsort(at, kind="stable")
    begin, end = at[order], np.maximum.accumulate(at[order] + length[order])
    new = end - np.maximum(begin, np.concatenate([[0], end[:-1]]))
    return 1 - float(np.maximum(0, new).sum()) / float(length.sum())


def _tasks(tasks: list[Task], base: Forest, one: OngoingThread, rows: I64, number: int) -> NDArray[np.uint32]:
    """Tasks of further passes; those that the program renews are added to the list."""
    out = np.tile(base.task[rows].astype(np.uint32), (number - 1, 1))
    top = max(task.id for task in tasks) + 1
    for line in out:
        for old in sorted(one.renewed):
            line[base.task[rows] == old] = len(tasks)
            tasks.append(replace(base.tasks[old], id=top))
            top += 1
    return out
