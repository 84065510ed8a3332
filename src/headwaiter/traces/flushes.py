# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Flushes of a drive's own cache, from the block layer's events.

As blk-flush.c makes them: who asks for one waits until a request of the kernel's own, FF, has been issued and completed. One such
request may serve several who ask. Then the request that asked is complete, which is a completion without sectors at its place:

- A write without data that begins with a flush (Q FW, 0 sectors) is nothing but a flush.
- One with data that begins with a flush (Q FW) is issued when an FF is done: it is a flush, and a write behind it.
- One that is to be on the medium when it is done (Q WF) is a write with a flush behind, on drives that cannot do that themselves.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

import numpy as np

from headwaiter.engine.constants import Op
from headwaiter.traces.events import FUA, PREFLUSH, Array, Bios, Events


@dataclass(frozen=True, eq=False)
class AskedFlushes:
    """Flushes that were asked for and made, shape (m,): times int64, ns; `event` is that of who asked."""

    time_ns: Array
    complete_ns: Array
    issue_ns: Array
    event: Array


@dataclass(frozen=True, eq=False)
class KernelFlushes:
    """Times at which the kernel's own requests for flushes were issued and done, in order."""

    issued_ns: Array
    done_ns: Array

    def done_within(self, after_ns: Array, until_ns: Array) -> Array:
        """Return when the last one was done after one time and until another, -1 if none was; shape (n,)."""
        return _last(self.done_ns, after_ns + 1, until_ns)

    def issued_within(self, since_ns: Array, until_ns: Array) -> Array:
        """Return when the last one was issued since one time and until another, -1 if none was."""
        return _last(self.issued_ns, since_ns, until_ns)


def _last(times: Array, since: Array, until: Array) -> Array:
    if not len(times):
        return np.full(len(since), -1, np.int64)
    at = np.searchsorted(times, until, side="right") - 1
    found = times[np.maximum(at, 0)]
    return np.where((at >= 0) & (found >= since), found, -1)


def find_flushes(events: Events, event: Array, bios: Bios) -> tuple[AskedFlushes, Array]:
    """(the flushes, when each bio arrived at the drive's queue) of one device's events.

    event: by which of them each bio came, in place of what `bios` says of that.
    """
    time_ns, arrive_ns = events.time_ns, events.time_ns[event]
    empty, flushes, writes = events.sectors == 0, events.op == Op.FLUSH, events.op == Op.WRITE
    kernel = KernelFlushes(time_ns[events.having(b"D") & flushes], time_ns[events.having(b"C") & flushes])
    alone = np.flatnonzero(empty & events.having(b"Q") & writes & (events.flush & PREFLUSH > 0))
    mine = np.flatnonzero(events.flush[event] > 0)
    asks = np.concatenate([alone, event[mine]])
    place = np.concatenate([events.sector[alone], bios.sector[mine]])
    end_ns = _ends(events, asks, place, np.flatnonzero(empty & events.having(b"C") & writes))
    alone_ns, mine_ns = end_ns[: len(alone)], end_ns[len(alone) :]
    served = alone_ns >= 0
    found = [(time_ns[alone[served]], alone_ns[served], alone[served])]

    if bios.issue_ns is not None:
        first = mine[(events.flush[event[mine]] & PREFLUSH > 0) & (bios.issue_ns[mine] >= 0)]
        done_ns = kernel.done_within(arrive_ns[first], bios.issue_ns[first])
        first, done_ns = first[done_ns >= 0], done_ns[done_ns >= 0]
        found.append((arrive_ns[first], done_ns, event[first]))
        arrive_ns[first] = done_ns
    written_ns = bios.complete_ns[mine]
    behind = (events.flush[event[mine]] & FUA > 0) & (written_ns >= 0) & (mine_ns > written_ns)
    behind[behind] &= kernel.done_within(written_ns[behind], mine_ns[behind]) >= 0
    found.append((written_ns[behind], mine_ns[behind], event[mine[behind]]))

    asked_ns, complete_ns, who = (np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True))
    return AskedFlushes(asked_ns, complete_ns, kernel.issued_within(asked_ns, complete_ns), who), arrive_ns


def _ends(events: Events, asks: Array, place: Array, ends: Array) -> Array:
    """When what was asked for by each event was over, -1 unknown: completions without sectors at one place come in order."""
    found = np.full(len(asks), -1, np.int64)
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    many = len(asks)
    places = np.concatenate([place, events.sector[ends]]).tolist()
    for k in np.argsort(np.concatenate([asks, ends]), kind="stable").tolist():
        queue = waiting[places[k]]
        if k < many:
            queue.append(k)
        elif queue:
            found[queue.popleft()] = events.time_ns[ends[k - many]]
    return found
