# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Make a recording of the kernel's trace: find out which request every event speaks of.

Trace events tell a request by its place. That is enough if no two requests of one operation that exist at once begin at
the same sector, as the recorder's loads see to. A request's flags and priority are read when it is dispatched.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwaiter.base.errors import Problem
from headwaiter.conformance.decisions import NONE, DecisionRecording, Event
from headwaiter.engine.constants import META, PRIO, SECTOR_BYTES, SYNC, Op
from headwaiter.traces import ring

QUEUED, DISPATCHED, ISSUED = range(3)
OPERATIONS = {"R": int(Op.READ), "W": int(Op.WRITE), "D": int(Op.DISCARD)}
# Bits of a request's cmd_flags (include/linux/blk_types.h, 6.1 to 6.12).
# A task's submission goes by the time at which it began (since 6.10), unless that is longer ago than this: then the task
# slept meanwhile, and looked at the clock again.
MAX_SUBMISSION_NS = 1_000_000
PROBES = ("ask", "dispatch", "attach", "finish", "timer", "gone", "allow")
REQ_SYNC, REQ_META, REQ_PRIO, REQ_FUA, REQ_PREFLUSH = 1 << 11, 1 << 12, 1 << 13, 1 << 17, 1 << 18


def _flags(op: int, bits: int) -> int:
    """Ours, from those of a request or a bio."""
    sync = op == Op.READ or bits & (REQ_SYNC | REQ_FUA | REQ_PREFLUSH)
    return (SYNC if sync else 0) | (META if bits & REQ_META else 0) | (PRIO if bits & REQ_PRIO else 0)


@dataclass
class _Request:
    """A request that exists, and the row of its insertion."""

    insertion: Event
    sector: int
    sectors: int
    op: int
    state: int = QUEUED
    start_ns: int = 0  # what the clock of its submission said, if that is known


def _keeps_time(kernel: str) -> bool:
    """Does this kernel read the clock once for a submission (since 6.10)?"""
    found = re.match(r"(\d+)\.(\d+)", kernel)
    return found is not None and (int(found[1]), int(found[2])) >= (6, 10)


def _op(values: Mapping[str, int | bytes]) -> int:
    rwbs = values["rwbs"]
    assert isinstance(rwbs, bytes)
    letters = rwbs.split(b"\0")[0].decode().lstrip("F")  # a flush may precede
    return OPERATIONS.get(letters[:1], 3)


def _number(values: Mapping[str, int | bytes], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


class Follower:
    """Takes trace events in order of time and makes the rows of a recording."""

    def __init__(self, scheduler: str, kernel: str, cpus: int = 1) -> None:
        self.events: list[Event] = []
        self._alone = cpus == 1
        self._told = scheduler == "bfq"  # of tasks' ends
        self._cached = scheduler == "bfq" and _keeps_time(kernel)  # the others do not go by ns there
        self._submitters: dict[int, _Request] = {}  # the latest request that a task inserted
        self._asked: tuple[int, int] | None = None  # where and when a decision under way began
        self._finished: Event | None = None  # the completion that the scheduler heard of last
        self._exact: list[tuple[Event, int]] = []  # rows, and when the scheduler says that they were
        self._joined: list[
            tuple[Event, Event]
        ] = []  # insertions: of a request that is no more, and of the one that it has joined
        self._inside: list[tuple[Event, _Request]] = []  # rows that belong to a request's submission
        self.unqueued = 0  # requests that went to the device without having been queued
        self._decides = scheduler != "none"  # has a function of its own that decides
        self._live: list[_Request] = []
        self._count = 0
        self._tasks: dict[int, int] = {}  # by pid
        self._numbers = itertools.count()
        self._ticks: list[tuple[Event, int]] = []  # rows whose tick the kernel told

    def take(self, e: ring.RingEvent) -> None:
        """One event of the trace."""
        probe = e.name.partition("_")[0]
        getattr(self, f"_{probe if probe in PROBES else e.name}")(e)

    def _find(
        self, e: ring.RingEvent, state: int, *, sector: int | None = None, end: int | None = None, op: int | None = None
    ) -> _Request | None:
        found = [
            r
            for r in self._live
            if r.state == state
            and (op is None or r.op == op)
            and (sector is None or r.sector == sector)
            and (end is None or r.sector + r.sectors == end)
        ]
        if len(found) > 1:
            raise Problem(f"trace: at {e.time_ns} ns two requests fit {e.name} at {sector if end is None else end}")
        return found[0] if found else None

    def _task(self, values: Mapping[str, int | bytes]) -> int:
        """The number of the task that an event happened in; a pid may come again after an exit."""
        pid = _number(values, "common_pid")
        if pid not in self._tasks:
            self._tasks[pid] = next(self._numbers)
        return self._tasks[pid]

    def _must(self, found: _Request | None, e: ring.RingEvent) -> _Request:
        if found is None:
            raise Problem(f"trace: at {e.time_ns} ns {e.name} refers to a request that was never inserted: {e.values}")
        return found

    def _row(
        self, e: ring.RingEvent, event: str, request: _Request | None = None, other: _Request | None = None, sectors: int = NONE
    ) -> None:
        self.events.append(
            Event(
                e.time_ns,
                event,
                request.insertion.request if request else NONE,
                other.insertion.request if other else NONE,
                sectors=sectors,
            )
        )
        if self._submitters and event in ("dispatch", "issue"):
            submitted = self._submitters.get(_number(e.values, "common_pid"))
            if submitted:
                self._inside.append((self.events[-1], submitted))

    def _attach(self, e: ring.RingEvent) -> None:
        self._row(e, "attach")

    def _timer(self, e: ring.RingEvent) -> None:
        self._row(e, "timer")

    def _allow(self, e: ring.RingEvent) -> None:
        v = e.values
        asked = self._find(e, QUEUED, sector=_number(v, "sector"), op=_number(v, "flags") & 0xFF)
        if asked:
            op = _number(v, "bio_flags") & 0xFF
            self.events.append(
                Event(
                    e.time_ns,
                    "allow",
                    asked.insertion.request,
                    NONE,
                    _number(v, "bio_sector"),
                    _number(v, "bio_bytes") // SECTOR_BYTES,
                    op,
                    _flags(op, _number(v, "bio_flags")),
                    _number(v, "bio_ioprio"),
                    self._task(v),
                    e.cpu,
                )
            )

    def _finish(self, e: ring.RingEvent) -> None:
        """The scheduler hears of the completion that the block layer has just told, and knows the time of the last."""
        if self._finished:
            self._exact.append((self._finished, _number(e.values, "last")))
        self._finished = self.events[-1] if self.events and self.events[-1].event == "complete" else None
        if self._finished:
            self._finished.time_ns = e.time_ns

    def _block_rq_insert(self, e: ring.RingEvent) -> None:
        v = e.values
        task = self._task(v)
        op = _op(v)
        row = Event(
            e.time_ns,
            "insert",
            self._count,
            NONE,
            _number(v, "sector"),
            _number(v, "nr_sector"),
            op,
            SYNC if op == Op.READ else 0,
            0,
            task,
            e.cpu,
        )
        self._count += 1
        self._live.append(_Request(row, row.sector, row.sectors, op))
        self.events.append(row)
        if self._cached:
            self._submitters[_number(v, "common_pid")] = self._live[-1]
            self._inside.append((row, self._live[-1]))

    def _block_bio_backmerge(self, e: ring.RingEvent) -> None:
        grown = self._find(e, QUEUED, end=_number(e.values, "sector"), op=_op(e.values))
        if grown:  # else it was in a task's plug, not inserted yet
            grown.sectors += _number(e.values, "nr_sector")
            self._row(e, "back", grown, sectors=_number(e.values, "nr_sector"))

    def _block_bio_frontmerge(self, e: ring.RingEvent) -> None:
        sectors = _number(e.values, "nr_sector")
        grown = self._find(e, QUEUED, sector=_number(e.values, "sector") + sectors, op=_op(e.values))
        if grown:
            grown.sector -= sectors
            grown.sectors += sectors
            self._row(e, "front", grown, sectors=sectors)

    def _block_rq_merge(self, e: ring.RingEvent) -> None:
        sector, op = _number(e.values, "sector"), _op(e.values)
        keep = self._must(self._find(e, QUEUED, end=sector, op=op), e)
        gone = self._find(e, QUEUED, sector=sector, op=op)
        keep.sectors += _number(e.values, "nr_sector")
        if gone:
            self._row(e, "join", keep, gone)
            self._joined.append((gone.insertion, keep.insertion))
            self._live.remove(gone)
        else:  # joined instead of being inserted
            self._row(e, "back", keep, sectors=_number(e.values, "nr_sector"))

    def _ask(self, e: ring.RingEvent) -> None:
        """The dispatch function begins. Interrupts that come before it returns come when it has decided.

        Another CPU's do not: the function may wait for it, so with several CPUs a decision counts where the function returns.
        """
        if self._alone:
            self._asked = (len(self.events), e.time_ns)

    def _decided(self, e: ring.RingEvent, given: _Request | None) -> None:
        self._row(e, "dispatch", given)
        self._ticks.append((self.events[-1], _number(e.values, "jiffies")))
        if self._told and "now" in e.values and given:
            self._exact.append((self.events[-1], _number(e.values, "now")))
        if self._asked:
            place, time_ns = self._asked
            row = self.events.pop()
            row.time_ns = time_ns
            self.events.insert(place, row)
            self._asked = None

    def _dispatch(self, e: ring.RingEvent) -> None:
        v = e.values
        if not v["rq"]:
            self._decided(e, None)
            return
        bits = _number(v, "flags")
        given = self._must(
            self._find(e, QUEUED, sector=_number(v, "sector"), op=min(bits & 0xFF, 3) if bits & 0xFF < 2 else None), e
        )
        if given.sectors * SECTOR_BYTES != _number(v, "bytes"):
            raise Problem(
                f"trace: at {e.time_ns} ns a request of {given.sectors} sectors was dispatched as one of "
                f"{_number(v, 'bytes')} bytes"
            )
        given.state = DISPATCHED
        given.start_ns = _number(v, "start") if self._cached else 0
        given.insertion.ioprio = _number(v, "ioprio")
        given.insertion.flags = _flags(given.op, bits)
        self._decided(e, given)

    def _block_rq_issue(self, e: ring.RingEvent) -> None:
        sector, op = _number(e.values, "sector"), _op(e.values)
        issued = self._find(e, DISPATCHED if self._decides else QUEUED, sector=sector, op=op)
        if issued is None:
            self.unqueued += 1
            return
        if not self._decides:
            self._row(e, "dispatch", issued)
        issued.state = ISSUED
        self._row(e, "issue", issued)

    def _block_rq_complete(self, e: ring.RingEvent) -> None:
        done = self._find(e, ISSUED, sector=_number(e.values, "sector"), op=_op(e.values))
        if done:
            self._row(e, "complete", done)
            self._live.remove(done)

    def _block_rq_requeue(self, e: ring.RingEvent) -> None:
        sector, op = _number(e.values, "sector"), _op(e.values)
        # Some drivers refuse a request before they say that they have begun it.
        back = self._find(e, ISSUED, sector=sector, op=op) or self._find(e, DISPATCHED, sector=sector, op=op)
        if back is None and not self._decides:
            back = self._find(e, QUEUED, sector=sector, op=op)
            if back:
                self._row(e, "dispatch", back)
        if back:
            back.state = QUEUED
            self._row(e, "requeue", back)

    def _sched_process_exit(self, e: ring.RingEvent) -> None:
        if not self._told:
            self._exit(_number(e.values, "pid"), e.time_ns)

    def _gone(self, e: ring.RingEvent) -> None:
        """The scheduler hears that the task has come to its end."""
        self._exit(_number(e.values, "common_pid"), e.time_ns)

    def _exit(self, pid: int, now: int) -> None:
        task = self._tasks.pop(pid, None)
        if task is not None:
            self.events.append(Event(now, "exit", task=task))

    def _own_times(self) -> None:
        """Give rows the time at which their submission began, where the scheduler goes by that."""
        exact = [(row, submitted.start_ns) for row, submitted in self._inside]
        for row, time_ns in exact + self._exact:
            if abs(row.time_ns - time_ns) < MAX_SUBMISSION_NS:
                row.time_ns = time_ns
        latest = 0
        for row in self.events:
            latest = row.time_ns = max(row.time_ns, latest)

    def recording(self, facts: Mapping[str, str], tick_ns: int) -> DecisionRecording:
        """Return what was taken so far, its clock moved so that ticks begin at multiples of tick_ns."""
        # At time t tick j has begun: t - j * tick_ns is never less than the time at which tick 0 began.
        ticks = [(e.time_ns, j) for e, j in self._ticks]
        self._own_times()
        # It is never dispatched itself; what it has joined may have joined another later.
        for gone, keep in reversed(self._joined):
            gone.flags, gone.ioprio = keep.flags, keep.ioprio
        first = self.events[0].time_ns if self.events else 0
        zero = min((t - j * tick_ns for t, j in ticks), default=first)
        start = (first - zero) // tick_ns * tick_ns + zero
        # Where the kernel counted a tick late, by µs, what happened till then happened before it.
        ends = {id(e): zero + (j + 1) * tick_ns - 1 for e, j in self._ticks}
        latest = self.events[-1].time_ns if self.events else 0
        for e in reversed(self.events):
            latest = min(latest, ends.get(id(e), latest))
            e.time_ns = min(e.time_ns, latest) - start
        return DecisionRecording({**facts, "tick_ns": str(tick_ns), "unqueued": str(self.unqueued)}, self.events)


def follow(events: Iterable[ring.RingEvent], scheduler: str, facts: Mapping[str, str], tick_ns: int) -> DecisionRecording:
    """The recording of one run."""
    follower = Follower(scheduler, facts.get("kernel", ""), int(facts.get("cpus", "1")))
    for e in sorted(events, key=lambda e: e.time_ns):
        follower.take(e)
    return follower.recording(facts, tick_ns)
