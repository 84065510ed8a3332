# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that have several I/Os under way and submit each by itself, as libaio and io_uring do: how long one takes them.

A completion that serves several of their I/Os lets them submit as many, and they have one processor: the first is with the
scheduler, and with an idle disk, before the second is submitted. Were all to come at once they would be merged into one request,
complete together, and so on for ever, where on a machine they spread out into several that wait in turn.

What a process submits in one go (plugs.py) looks alike: I/Os that follow each other within microseconds. But there the device is
never given the first before the second is submitted. That two were not one request tells nothing: a request may be full.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwaiter.engine.constants import Op
from headwaiter.engine.sim import I64
from headwaiter.traces import Trace, continues

TOGETHER_NS = 50_000
"""I/Os of a process that come after each other within this are submitted in one go, or as fast as it can."""
FEWEST = 32
"""Pairs of such I/Os from which anything is told."""
APART = 0.0005
"""A process submits each by itself if this share of its I/Os was with the device before the next one, which could have joined."""
STEADY = 0.8
"""A process keeps as many I/Os under way if it has so many after this share of its submissions: several may complete at once."""
READ_AHEAD = 2
"""I/Os that read-ahead has under way for a program, and this share of them lie behind each other."""
IN_ORDER = 0.5
QUICK = 0.1
"""The share of a process's pauses between two of them that is shorter than what it needs."""


def apart_ns(trace: Trace) -> I64:
    """The time that a process needs for one more I/O, by task, shape (tasks,); 0: it submits in one go, or one at a time."""
    found = np.zeros(len(trace.tasks), np.int64)
    if trace.issue_ns is None:
        return found
    order = np.lexsort((np.arange(len(trace)), trace.task))
    before, this = order[:-1], order[1:]
    pair = _pairs(trace, before, this)
    before, this = before[pair], this[pair]
    apart = trace.issue_ns[before] < trace.time_ns[this]
    pause = trace.time_ns[this] - trace.time_ns[before]
    # In order of tasks, of which a recording may have thousands.
    tasks, begins, counts = np.unique(trace.task[this], return_index=True, return_counts=True)
    for task, begin, count in zip(tasks.tolist(), begins.tolist(), counts.tolist(), strict=True):
        mine = slice(begin, begin + count)
        if count >= FEWEST and apart[mine].mean() >= APART:
            found[task] = int(np.quantile(pause[mine], QUICK))
    return found


def _pairs(trace: Trace, before: I64, this: I64) -> npt.NDArray[np.bool_]:
    """Which I/Os could have been one request with the one before: both were under way, and lie behind each other."""
    assert trace.issue_ns is not None
    pair: npt.NDArray[np.bool_] = (trace.task[before] == trace.task[this]) & continues(trace, before, this)
    pair &= (trace.time_ns[this] - trace.time_ns[before] <= TOGETHER_NS) & (trace.complete_ns[before] > trace.time_ns[this])
    pair &= trace.issue_ns[before] >= 0
    return pair


def _is_steady(trace: Trace, rows: I64, under_way: I64, depth: int) -> bool:
    """Return whether a process has always as many I/Os under way, each time that it submits one.

    Read-ahead may have two. But then it goes through a file, and submits nothing before its program has read the first of them.
    """
    if len(rows) < max(FEWEST, 2 * depth) or (under_way[depth:] == depth).mean() < STEADY:
        return False
    return depth > READ_AHEAD or (depth > 1 and float(continues(trace, rows[:-1], rows[1:]).mean()) < IN_ORDER)


def by_completions(
    trace: Trace, complete_ns: I64, apart: I64, parent: I64, delay_ns: I64
) -> tuple[I64, I64, I64, npt.NDArray[np.bool_]]:
    """(apart, parent, delay_ns, whichever) of a closed replay where each completion of such a process lets it submit one I/O.

    Of several that complete together closed_loop() takes the last for the parent of all that follow. Under another scheduler they
    may not complete together, and the process would submit all when the last is done, and none before. apart: as apart_ns() has
    it; a process that always has as many under way as it had at most is such a one, too, and needs for one more what it needs
    after a completion. One that submitted more than were done is left as it is.

    whichever: rows that follow whatever completes (constants.NEXT). An I/O that another scheduler or the drive keeps waiting for
    long takes one of those that are under way. If each row had one parent, it would take all that were recorded behind it.
    """
    apart, parent, delay_ns, whichever = apart.copy(), parent.copy(), delay_ns.copy(), np.zeros(len(trace), np.bool_)
    order = np.argsort(trace.group, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(trace.group[order])) + 1):
        issue, done = trace.time_ns[rows], complete_ns[rows]
        if (trace.task[rows] != trace.task[rows[0]]).any() or (trace.op[rows] == Op.FLUSH).any() or (done < 0).any():
            continue
        by_end = np.argsort(done, kind="stable")
        under_way = np.arange(len(rows)) + 1 - np.searchsorted(done[by_end], issue, "right")
        depth = int(under_way.max())
        task = trace.task[rows[0]]
        if not apart[task] and not _is_steady(trace, rows, under_way, depth):
            continue
        follows, frees = rows[depth:], rows[by_end[: len(rows) - depth]]
        think = trace.time_ns[follows] - complete_ns[frees]
        if (think < 0).any() or (frees >= follows).any():
            continue
        parent[follows], delay_ns[follows] = frees, think
        parent[rows[:depth]] = -1
        delay_ns[rows[:depth]] = trace.time_ns[rows[:depth]] - trace.time_ns[0]
        whichever[follows] = True
        if not apart[task]:
            apart[task] = int(np.quantile(think, QUICK))
    return apart, parent, delay_ns, whichever
