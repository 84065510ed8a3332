# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Make a recording of the kernel's trace: find out which request every event speaks of.

Trace events tell a request by its place. That is enough if no two requests of one operation that exist at once begin at
the same sector, as the recorder's loads see to. A request's flags and priority are read when it is dispatched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import Problem
from ..sim import META, PRIO, SYNC
from . import ring
from .recording import NONE, Event, Recording

QUEUED, DISPATCHED, ISSUED = range(3)
OPERATIONS = {"R": 0, "W": 1, "D": 2}
# Bits of a request's cmd_flags (include/linux/blk_types.h, 6.1 to 6.12).
REQ_SYNC, REQ_META, REQ_PRIO, REQ_FUA, REQ_PREFLUSH = 1 << 11, 1 << 12, 1 << 13, 1 << 17, 1 << 18


@dataclass
class _Request:
    """A request that exists, and the row of its insertion."""

    insertion: Event
    sector: int
    sectors: int
    op: int
    state: int = QUEUED


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

    def __init__(self, scheduler: str) -> None:
        self.events: list[Event] = []
        self.unqueued = 0  # requests that went to the device without having been queued
        self._decides = scheduler != "none"  # has a function of its own that decides
        self._live: list[_Request] = []
        self._count = 0
        self._tasks: dict[int, int] = {}
        self._ticks: list[tuple[Event, int]] = []  # rows whose tick the kernel told

    def take(self, e: ring.Event) -> None:
        """One event of the trace."""
        name = "dispatch" if e.name.startswith("dispatch_") else e.name
        getattr(self, f"_{name}")(e)

    def _find(self, e: ring.Event, state: int, *, sector: int | None = None, end: int | None = None,
              op: int | None = None) -> _Request | None:
        found = [r for r in self._live if r.state == state and (op is None or r.op == op)
                 and (sector is None or r.sector == sector) and (end is None or r.sector + r.sectors == end)]
        if len(found) > 1:
            raise Problem(f"trace: at {e.time_ns} ns two requests fit {e.name} at {sector if end is None else end}")
        return found[0] if found else None

    def _must(self, found: _Request | None, e: ring.Event) -> _Request:
        if found is None:
            raise Problem(f"trace: at {e.time_ns} ns {e.name} speaks of a request that nobody inserted: {e.values}")
        return found

    def _row(self, e: ring.Event, event: str, request: _Request | None = None, other: _Request | None = None,
             sectors: int = NONE) -> None:
        self.events.append(Event(e.time_ns, event, request.insertion.request if request else NONE,
                                 other.insertion.request if other else NONE, sectors=sectors))

    def _block_rq_insert(self, e: ring.Event) -> None:
        v = e.values
        task = self._tasks.setdefault(_number(v, "common_pid"), len(self._tasks))
        op = _op(v)
        row = Event(e.time_ns, "insert", self._count, NONE, _number(v, "sector"), _number(v, "nr_sector"), op,
                    SYNC if op == 0 else 0, 0, task, e.cpu)
        self._count += 1
        self._live.append(_Request(row, row.sector, row.sectors, op))
        self.events.append(row)

    def _block_bio_backmerge(self, e: ring.Event) -> None:
        grown = self._find(e, QUEUED, end=_number(e.values, "sector"), op=_op(e.values))
        if grown:  # else it was in a task's plug, not inserted yet
            grown.sectors += _number(e.values, "nr_sector")
            self._row(e, "back", grown, sectors=_number(e.values, "nr_sector"))

    def _block_bio_frontmerge(self, e: ring.Event) -> None:
        sectors = _number(e.values, "nr_sector")
        grown = self._find(e, QUEUED, sector=_number(e.values, "sector") + sectors, op=_op(e.values))
        if grown:
            grown.sector -= sectors
            grown.sectors += sectors
            self._row(e, "front", grown, sectors=sectors)

    def _block_rq_merge(self, e: ring.Event) -> None:
        sector, op = _number(e.values, "sector"), _op(e.values)
        keep = self._must(self._find(e, QUEUED, end=sector, op=op), e)
        gone = self._find(e, QUEUED, sector=sector, op=op)
        keep.sectors += _number(e.values, "nr_sector")
        if gone:
            self._row(e, "join", keep, gone)
            gone.insertion.flags, gone.insertion.ioprio = keep.insertion.flags, keep.insertion.ioprio
            self._live.remove(gone)
        else:  # joined instead of being inserted
            self._row(e, "back", keep, sectors=_number(e.values, "nr_sector"))

    def _dispatch(self, e: ring.Event) -> None:
        v = e.values
        if not v["rq"]:
            self._row(e, "dispatch")
            self._ticks.append((self.events[-1], _number(v, "jiffies")))
            return
        bits = _number(v, "flags")
        given = self._must(self._find(e, QUEUED, sector=_number(v, "sector"), op=min(bits & 0xFF, 3)
                                      if bits & 0xFF < 2 else None), e)
        if given.sectors * 512 != _number(v, "bytes"):
            raise Problem(f"trace: at {e.time_ns} ns a request of {given.sectors} sectors was dispatched as one of "
                          f"{_number(v, 'bytes')} bytes")
        given.state = DISPATCHED
        given.insertion.ioprio = _number(v, "ioprio")
        sync = given.op == 0 or bits & (REQ_SYNC | REQ_FUA | REQ_PREFLUSH)
        given.insertion.flags = (SYNC if sync else 0) | (META if bits & REQ_META else 0) | (
            PRIO if bits & REQ_PRIO else 0)
        self._row(e, "dispatch", given)
        self._ticks.append((self.events[-1], _number(v, "jiffies")))

    def _block_rq_issue(self, e: ring.Event) -> None:
        sector, op = _number(e.values, "sector"), _op(e.values)
        issued = self._find(e, DISPATCHED if self._decides else QUEUED, sector=sector, op=op)
        if issued is None:
            self.unqueued += 1
            return
        if not self._decides:
            self._row(e, "dispatch", issued)
        issued.state = ISSUED
        self._row(e, "issue", issued)

    def _block_rq_complete(self, e: ring.Event) -> None:
        done = self._find(e, ISSUED, sector=_number(e.values, "sector"), op=_op(e.values))
        if done:
            self._row(e, "complete", done)
            self._live.remove(done)

    def _block_rq_requeue(self, e: ring.Event) -> None:
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

    def _sched_process_exit(self, e: ring.Event) -> None:
        task = self._tasks.pop(_number(e.values, "pid"), None)
        if task is not None:
            self.events.append(Event(e.time_ns, "exit", task=task))

    def recording(self, facts: Mapping[str, str], tick_ns: int) -> Recording:
        """What was taken so far, its clock moved so that ticks begin at multiples of tick_ns."""
        # At time t tick j has begun: t - j * tick_ns is never less than the time at which tick 0 began.
        first = self.events[0].time_ns if self.events else 0
        zero = min((e.time_ns - j * tick_ns for e, j in self._ticks), default=first)
        start = (first - zero) // tick_ns * tick_ns + zero
        # Where the kernel counted a tick late, by µs, what happened till then happened before it.
        ends = {id(e): zero + (j + 1) * tick_ns - 1 for e, j in self._ticks}
        latest = self.events[-1].time_ns if self.events else 0
        for e in reversed(self.events):
            latest = min(latest, ends.get(id(e), latest))
            e.time_ns = min(e.time_ns, latest) - start
        return Recording({**facts, "tick_ns": str(tick_ns), "unqueued": str(self.unqueued)}, self.events)


def follow(events: Iterable[ring.Event], scheduler: str, facts: Mapping[str, str], tick_ns: int) -> Recording:
    """The recording of one run."""
    follower = Follower(scheduler)
    for e in sorted(events, key=lambda e: e.time_ns):
        follower.take(e)
    return follower.recording(facts, tick_ns)
