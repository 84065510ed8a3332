# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long a machine takes to hand its disk the next request, from a recording of it.

While a disk waits for a command its platter turns, and it reads on into its cache. Twenty microseconds decide whether it still
has a read's first sector ahead of it, or has passed it and needs a turn more. A machine's time lies in its processor, its driver
and its kernel; the simulator's default is that of one machine. A recording tells of its own machine when a request was submitted,
when the device was given it, and when another request was done.

Two times are told apart, because the way is longer after a completion:
  dispatch: from submission to a device that has room, with nothing else waiting;
  restart:  so much longer a request takes that has waited, from the completion that made room for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.engine.processor import MEASURED, Time
from headwaiter.engine.sim import I64, Options
from headwaiter.traces import Trace, requests_of

F64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

FEWEST = 32
"""Requests from which a time is told."""
LONGEST_NS = 1_000_000
"""What took longer was waited for on purpose: an anticipating scheduler leaves the disk idle for milliseconds."""
PAGE_BYTES = 4096
_FIXED_NS, _PAGE_NS = 100, 10


@dataclass(frozen=True)
class Handover:
    """Processor time of a machine between a request and its device."""

    dispatch: Time
    write_page_ns: int
    """More than that, for a page of a write."""
    restart_ns: int
    """More than that, for a request that waited until another was done."""

    def apply(self, options: Options) -> Options:
        """Return the options with these times."""
        return replace(
            options,
            dispatch_ns=self.dispatch.ns,
            dispatch_page_ns=self.dispatch.page_ns,
            dispatch_write_page_ns=self.write_page_ns,
            restart_ns=self.restart_ns,
        )


@dataclass(frozen=True)
class _Requests:
    """Those of a device in the order in which it was given them; columns of shape (n,)."""

    arrive_ns: I64
    issue_ns: I64
    complete_ns: I64
    pages: F64
    writes: Bool


@dataclass(frozen=True)
class _Ways:
    """What requests took to the device, ns, the pages of each, and which are writes; columns of shape (n,)."""

    took_ns: F64
    pages: F64
    writes: Bool

    def __len__(self) -> int:
        return len(self.took_ns)

    def of(self, which: Bool) -> _Ways:
        return _Ways(self.took_ns[which], self.pages[which], self.writes[which])

    def reads(self) -> _Ways:
        """Only reads, if they are enough: of a write more may have to be done for a page."""
        return self.of(~self.writes) if (~self.writes).sum() >= FEWEST else self

    def fixed_ns(self, page_ns: int) -> int:
        return _rounded(float(np.median(self.took_ns - page_ns * self.pages)), _FIXED_NS)


_KNOWN: WeakKeyDictionary[Trace, Handover | None] = WeakKeyDictionary()
"""A comparison asks for each of its variants and levers."""


def handover(trace: Trace) -> Handover | None:
    """Return what a recording tells; None if it does not tell enough.

    A recording that tells only of requests that waited, or only of requests that did not, tells that one time.
    """
    if trace not in _KNOWN:
        _KNOWN[trace] = _told(trace)
    return _KNOWN[trace]


def _told(trace: Trace) -> Handover | None:
    found = _requests(trace)
    if found is None:
        return None
    depth = int(trace.device_depth or _in_flight(found, found.issue_ns).max() + 1)
    at_once, waited = _at_once(found, depth), _waited(found, depth)
    more = max(at_once, waited, key=len)
    if len(more) < FEWEST:
        return None
    # A page takes the same on both ways.
    page_ns = _page_ns(more.reads())
    first, second = ((ways.reads().fixed_ns(page_ns) if len(ways) >= FEWEST else None) for ways in (at_once, waited))
    fixed_ns = second if first is None else first
    assert fixed_ns is not None
    write_ns, writes = 0, more.of(more.writes)
    if len(writes) >= FEWEST and len(more) - len(writes) >= FEWEST:
        own_ns = second if more is waited and second is not None else fixed_ns
        write_ns = _rounded(float(np.median((writes.took_ns - own_ns) / writes.pages)) - page_ns, _PAGE_NS)
    return Handover(Time(fixed_ns, page_ns), write_ns, max(0, second - fixed_ns) if second is not None else 0)


def _requests(trace: Trace) -> _Requests | None:
    """What the device was given; I/Os that were merged are one request."""
    if trace.issue_ns is None:
        return None
    arrive = trace.time_ns if trace.insert_ns is None else np.maximum(trace.time_ns, trace.insert_ns)
    rows = np.flatnonzero((trace.issue_ns >= arrive) & (trace.complete_ns >= trace.issue_ns) & (trace.op != Op.FLUSH))
    if len(rows) < FEWEST:
        return None
    order, begins = requests_of(trace.issue_ns[rows], trace.complete_ns[rows], trace.op[rows])
    rows = rows[order]
    sectors = np.add.reduceat(trace.sectors[rows].astype(np.int64), begins)
    return _Requests(
        np.maximum.reduceat(arrive[rows], begins),
        trace.issue_ns[rows[begins]],
        trace.complete_ns[rows[begins]],
        np.ceil(sectors * (SECTOR_BYTES / PAGE_BYTES)),
        trace.op[rows[begins]] == Op.WRITE,
    )


def _in_flight(found: _Requests, at_ns: I64) -> I64:
    """How many requests a device has just before each of these times."""
    given = np.searchsorted(found.issue_ns, at_ns, "left")
    return given - np.searchsorted(np.sort(found.complete_ns), at_ns, "left")


def _waiting(found: _Requests, at_ns: I64) -> I64:
    """How many requests wait just before each of these times."""
    return np.searchsorted(np.sort(found.arrive_ns), at_ns, "left") - np.searchsorted(found.issue_ns, at_ns, "left")


def _at_once(found: _Requests, depth: int) -> _Ways:
    """Requests that a device with room was given, with no other about: from submission."""
    arrive = np.sort(found.arrive_ns)
    took = found.issue_ns - found.arrive_ns
    # Many formats tell one time for both.
    alone = (took > 0) & (took < LONGEST_NS)
    alone &= np.searchsorted(arrive, found.issue_ns, "right") - np.searchsorted(arrive, found.arrive_ns, "left") == 1
    alone &= (_waiting(found, found.arrive_ns) == 0) & (_in_flight(found, found.arrive_ns) < depth)
    return _Ways(took.astype(np.float64), found.pages, found.writes).of(alone)


def _waited(found: _Requests, depth: int) -> _Ways:
    """Requests that waited while a device was full: from the completion that made room."""
    done = np.sort(found.complete_ns)
    full = done[_in_flight(found, done) >= depth]
    following = np.searchsorted(found.issue_ns, full, "left")
    full, following = full[following < len(found.issue_ns)], following[following < len(found.issue_ns)]
    took = found.issue_ns[following] - full
    mine = (found.arrive_ns[following] < full) & (took < LONGEST_NS)
    return _Ways(took.astype(np.float64), found.pages[following], found.writes[following]).of(mine)


def _page_ns(ways: _Ways) -> int:
    """What a page takes more, from medians by size; the default's where sizes are too few."""
    sizes, which, counts = np.unique(ways.pages, return_inverse=True, return_counts=True)
    often = np.flatnonzero(counts >= max(FEWEST // 4, len(ways) // 50))
    if len(often) < 2:
        return min(MEASURED.dispatch.page_ns, _rounded(float(np.median(ways.took_ns / ways.pages)), _PAGE_NS))
    medians = np.array([np.median(ways.took_ns[which == one]) for one in often])
    slope, fixed = np.polyfit(sizes[often], medians, 1, w=np.sqrt(counts[often]))
    return _rounded(float(slope if fixed >= 0 else np.median(ways.took_ns / ways.pages)), _PAGE_NS)


def _rounded(ns: float, to_ns: int) -> int:
    """Not negative, and no more exact than clocks and schedules of processors are."""
    return max(0, to_ns * round(ns / to_ns))
