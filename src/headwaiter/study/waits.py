# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a run's rows tell beyond its tallies: how long programs waited, whether the device was occupied, whether it kept up.

The end of the last program is a fragile measure of a load that paces itself: a program that thinks may end last whatever the disk
does. How long programs waited for the disk is not. A program waits while any of its synchronous I/Os is under way; each I/O is
told the part of that time which it added, so that runs of one trace can be compared I/O by I/O.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import I64, U8, U32, Forest, Outcome, Rows
from headwaiter.study.ongoing import Ongoing

IDLE = 0.02
"""Where a smaller share of I/Os finds the device occupied, nothing is there to be ordered."""
BUSY_PERCENT = 30.0
"""Where processors or a lock are busy for a smaller share of the time, a scheduler's own cost changes nothing."""
SLOWED = 2.0
"""Where I/Os take less than so many times what they take alone, they wait for nothing."""
CELLS = 240
"""A trace is cut into at most so many cells of consecutive I/Os, for intervals.py."""
CELL_IOS = 25
"""A cell has at least so many."""
BACKLOG = 256
"""So many I/Os at once are more than a scheduler of Linux holds."""
BACKLOG_SHARE = 0.1
"""An open replay that has more than BACKLOG under way for a greater share of its time cannot keep up."""
QUIET_IOS = 20
"""So many must have found none under way for their median to tell."""
LAG_SHARE = 0.05
"""Nor can one that needs so much longer than its timestamps, unless that is less than LAG_NS."""
LAG_NS = 1_000_000_000


@dataclass(frozen=True)
class Waits:
    """Sums over cells of consecutive I/Os of a trace, ns; arrays of shape (cells,). Cell i holds the same I/Os in every run.

    Where programs go on until the span is over (ongoing.py), cells are of time, and cell i is the same time in every run.
    """

    waited_ns: NDArray[np.float64]
    """How long programs waited."""
    programs_ns: NDArray[np.float64]
    """The waits of each thread of control, shape (threads,)."""
    latency_ns: NDArray[np.float64]
    """Latencies of what the load waits for: of reads, or of writes where there are no reads."""
    contention: float
    """Share of I/Os that found the device occupied."""
    backlog: float
    """Share of the time in which more than BACKLOG I/Os were under way."""
    lag: float
    """How much longer the run took than its last issue, as a share of it; 0 if that is less than LAG_NS."""

    @property
    def waited_s(self) -> float:
        """Return how long programs waited, all in all."""
        return float(self.waited_ns.sum()) / 1e9

    @property
    def overloaded(self) -> bool:
        """Return whether an open replay cannot keep up."""
        return self.backlog > BACKLOG_SHARE or self.lag > LAG_SHARE


def waits_of(outcome: Outcome, load: Forest) -> Waits:
    """Return the waits of a run of a trace that has kept its rows."""
    rows, depth = outcome.rows, int(outcome.totals["queue_depth"])
    if isinstance(load, Ongoing):
        return _ongoing(rows, load, depth)
    issue, complete = np.asarray(rows.issue_ns), np.asarray(rows.complete_ns)
    latency = np.where(_waited_for(load), complete - issue, 0)
    span, lag = int(complete.max() - issue.min()), int(complete.max() - issue.max())
    waited = added_waits(rows, load)
    return Waits(
        waited_ns=_cells(waited),
        programs_ns=np.bincount(load.groups, weights=waited).astype(np.float64),
        latency_ns=_cells(latency),
        contention=contention(issue, complete, depth),
        backlog=backlog(issue, complete),
        lag=lag / span if span and lag > LAG_NS else 0.0,
    )


def _ongoing(rows: Rows, load: Ongoing, depth: int) -> Waits:
    """Return what the recorded work costs each program, at its pace until the span is over."""
    assert load.until_ns is not None
    there = np.flatnonzero((np.asarray(rows.issue_ns) >= 0) & (np.asarray(rows.complete_ns) > 0))
    issue, complete = (np.asarray(column)[there] for column in (rows.issue_ns, rows.complete_ns))
    if not len(there):
        nothing = np.zeros(cell_count(load.sliced))
        return Waits(nothing, np.zeros(len(load.recorded_ios)), nothing, 0.0, 0.0, 0.0)
    until = np.maximum(issue, np.minimum(complete, load.until_ns[there]))
    waited = _added(issue, until, load.groups[there], (load.flags[there] & SYNC) > 0)
    latency = np.where(_waited_for(load)[there], complete - issue, 0)
    by_program = _paces(waited, complete, there, load)
    return Waits(
        waited_ns=by_program.sum(axis=0),
        programs_ns=by_program.sum(axis=1),
        latency_ns=_paces(latency, complete, there, load).sum(axis=0),
        contention=contention(issue, complete, depth),
        backlog=backlog(issue, complete),
        lag=0.0,
    )


def _paces(cost: I64, complete: I64, there: I64, load: Ongoing) -> NDArray[np.float64]:
    """Return what the recorded work of each program costs, in slices of time, shape (programs, slices): their sum is that cost.

    A program's recorded work costs W R / D if what it did, D I/Os of R recorded ones, cost W. A slice is told by how much it
    shifts that: by its own part of W upwards, and by its own part of D downwards. So slices that are left out or come twice
    change the sum as they would change the cost, to the first order, and slices of all runs are of the same time.
    """
    cells = cell_count(load.sliced)
    groups, recorded = load.groups, load.recorded_ios
    n = len(recorded)
    at = np.minimum(complete, load.span_ns - 1) * cells // load.span_ns
    cell = groups[there] * cells + at
    part = np.bincount(cell, weights=cost, minlength=n * cells).reshape(n, cells)
    finished = complete <= load.until_ns[there] if load.until_ns is not None else complete >= 0
    done = np.bincount(cell[finished], minlength=n * cells).reshape(n, cells)
    whole, ios = part.sum(axis=1, keepdims=True), done.sum(axis=1, keepdims=True)
    # A program that has done nothing has done less than one I/O.
    pace = recorded[:, None] / np.maximum(ios, 0.5)
    told: NDArray[np.float64] = pace * (part - whole / np.maximum(ios, 0.5) * (done - ios / cells))
    return told


def _waited_for(load: Forest) -> NDArray[np.bool_]:
    reads = np.asarray(load.op == Op.READ)
    return reads if reads.any() else np.asarray(load.op == Op.WRITE)


def added_waits(rows: Rows, load: Forest) -> I64:
    """Return how much longer its program waited because of each I/O, ns, shape (n,); 0 of asynchronous ones."""
    return _added(np.asarray(rows.issue_ns), np.asarray(rows.complete_ns), load.groups, (load.flags & SYNC) > 0)


def _added(issue: I64, complete: I64, groups: I64, waited_for: NDArray[np.bool_]) -> I64:
    """Return the added waits, from columns."""
    added = np.zeros(len(issue), np.int64)
    sync = np.flatnonzero(waited_for)
    order = sync[np.lexsort((issue[sync], groups[sync]))]
    if not len(order):
        return added
    # Each group's times lie above those of the one before, so that one running maximum serves all.
    above = np.unique(groups[order], return_inverse=True)[1] * (int(complete.max()) + 1)
    done = np.maximum.accumulate(complete[order] + above) - above
    before = np.concatenate([[0], done[:-1]])
    before[np.flatnonzero(np.diff(above)) + 1] = 0
    added[order] = np.maximum(0, complete[order] - np.maximum(issue[order], before))
    return added


def contention(issue_ns: I64, complete_ns: I64, depth: int) -> float:
    """Share of I/Os that found as many others under way as the device takes at once."""
    issued, completed = np.sort(issue_ns), np.sort(complete_ns)
    found = np.arange(len(issued)) - np.searchsorted(completed, issued, side="right")
    return float(np.mean(found >= depth))


def could_change(processor_percent: float, lock_percent: float, slower: float | None) -> bool:
    """Return whether a scheduler could change anything on a device that takes many requests at once.

    slower: of slowdown(); None if that is not known.
    """
    return max(processor_percent, lock_percent) >= BUSY_PERCENT or (slower is not None and slower > SLOWED)


def slowdown(issue_ns: I64, complete_ns: I64, op: U8, sectors: U32) -> float | None:
    """Return how many times as long I/Os take as those that find none under way, of one operation and about one size.

    None if too few find none under way.
    """
    if not len(issue_ns):
        return None
    order = np.argsort(issue_ns, kind="stable")
    issue, complete = issue_ns[order], complete_ns[order]
    before = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(complete)[:-1]])
    latency, alone = (complete - issue).astype(np.float64), issue >= before
    kind = op[order].astype(np.int64) * 64 + np.log2(np.maximum(sectors[order], 1)).astype(np.int64)
    took = expected = 0.0
    for one in np.unique(kind[alone]):
        of_kind = kind == one
        if (quiet := of_kind & alone).sum() >= QUIET_IOS:
            took += latency[of_kind].sum()
            expected += float(np.median(latency[quiet])) * of_kind.sum()
    return float(took / expected) if expected else None


def backlog(issue_ns: I64, complete_ns: I64) -> float:
    """Share of the time in which more than BACKLOG I/Os were under way."""
    time = np.concatenate([issue_ns, complete_ns])
    step = np.concatenate([np.ones(len(issue_ns), np.int64), np.full(len(complete_ns), -1)])
    order = np.argsort(time, kind="stable")
    under_way, time = np.cumsum(step[order]), time[order]
    span = int(time[-1] - time[0])
    return float(np.diff(time)[under_way[:-1] > BACKLOG].sum() / span) if span else 0.0


def _cells(values: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of consecutive values."""
    cells = cell_count(len(values))
    at = np.arange(cells) * len(values) // cells
    return np.add.reduceat(values.astype(np.float64), at)


def cell_count(ios: int) -> int:
    """Return how many cells so many I/Os have."""
    return max(1, min(CELLS, ios // CELL_IOS))
