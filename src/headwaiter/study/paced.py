# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that keep a pace of their own, whatever their I/Os take: players, cameras, copies with a limited rate, compilers with
read-ahead.

A closed replay lets a program think as long as it did behind each I/O. One that sleeps until its next date does not: after a slow
I/O it sleeps for less. Replayed with think times it would fall behind under a scheduler that serves it later, and get ahead under
one that serves it sooner, as it never does. So it is with a program that computes while its next pages are read ahead.

The recording tells them apart. Cut a program's I/Os into stretches: of one that waits and thinks, a stretch takes as much longer
as its I/Os do (a slope of 1, within hundredths where think times are even); of one with its own pace, it takes what it always
takes (a slope of 0). What keeps its pace is replayed at its recorded times, but no I/O before the one that it waits for is done.

A program that is late goes on at once. One that sleeps until a date is on time again as soon as it can be. One that computes is
not: what it has lost it has lost. How far it is off an even pace tells which it is: of one with dates that stays what it is,
however long one looks; of the other it adds up, as the way of a drunkard does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import DRIFTS, PACED, SYNC, Op
from headwaiter.engine.sim import I64, Forest
from headwaiter.traces import Trace

STRETCHES = 16
FEWEST = 2 * STRETCHES
"""I/Os of a program about which anything can be told."""
BUSY = 0.9
"""A program that has I/Os under way for more of its time has no pace but theirs."""
SLOPE = 0.5
"""Less of its latencies shows in the time that a program with its own pace takes."""
APART = 16
"""How far apart I/Os are of which a program's way is looked at."""
DATES, ADDS_UP = 0.25, 0.4
"""A drunkard's way has a variance of 1 for each step; the way of one that keeps its dates has 1 for all of them."""
CERTAIN, LIKELY = 3.0, 2.0
"""Standard errors that the slope must be away from 1; so many where what it is late does not add up, either."""
LATE_NS = 100_000
"""A program that is late goes on within so much: one that sleeps sleeps no more, and read-ahead is begun by the first page."""


def paced(trace: Trace, forest: Forest) -> Forest:
    """A closed replay of a trace, its flushes among its rows, in which programs with a pace of their own keep it."""
    groups, known = forest.groups, trace.complete_ns >= 0
    delay, flags = forest.delay_ns.copy(), forest.flags.copy()
    # Sorted once: a recording may have thousands of programs, and each a handful of rows among millions.
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if len(rows) < FEWEST:
            continue
        follows = rows[forest.parent[rows] >= 0]
        if len(follows) < FEWEST or not known[forest.parent[follows]].all() or not _keeps_pace(trace, rows[known[rows]]):
            continue
        delay[follows] = np.minimum(delay[follows], LATE_NS)
        flags[rows] |= PACED | DRIFTS * (_is_read_ahead(trace, forest, rows) and _drift(trace, rows) > ADDS_UP)
    return replace(forest, delay_ns=delay, flags=flags) if (flags & PACED).any() else forest


def _is_read_ahead(trace: Trace, forest: Forest, rows: I64) -> bool:
    """Return whether most of a program's reads continue others: it may compute meanwhile, and a player may, too."""
    reads = rows[trace.op[rows] == Op.READ]
    return forest.after is not None and 2 * int((forest.after[reads] >= 0).sum()) > len(rows)


def _drift(trace: Trace, rows: I64) -> float:
    """Return how much of what a program was late adds up: 1 if all of it does, 0 if it keeps its dates.

    Where too little is known it is 1, which hides no harm.
    """
    rows = rows[trace.op[rows] == Op.READ]
    apart = min(APART, len(rows) // 4)
    if apart < APART // 4:
        return 1.0
    issue = trace.time_ns[rows].astype(np.float64)
    before = np.cumsum(trace.sectors[rows].astype(np.float64)) - trace.sectors[rows]
    off = issue - np.polyval(np.polyfit(before, issue, 1), before)
    near, far = float(np.var(np.diff(off))), float(np.var(off[apart:] - off[:-apart]))
    return min(1.0, far / apart / near) if near else 1.0


def _keeps_pace(trace: Trace, rows: I64) -> bool:
    """Return whether the time that a program takes does not tell what its I/Os took."""
    waited = (trace.op[rows] == Op.READ) | ((trace.flags[rows] & SYNC > 0) & (trace.op[rows] != Op.FLUSH))
    rows = rows[waited]
    if len(rows) < FEWEST:
        return False
    # What is under way together is waited for once.
    done = np.maximum.accumulate(trace.complete_ns[rows])
    begins = np.flatnonzero(np.concatenate([[True], trace.time_ns[rows[1:]] > done[:-1]]))
    if len(begins) < FEWEST:
        return False
    issue = trace.time_ns[rows[begins]]
    latency = (np.append(done[begins[1:] - 1], done[-1]) - issue).astype(np.float64)
    if latency.sum() >= BUSY * float(issue[-1] - issue[0]):
        return False
    sectors = np.add.reduceat(trace.sectors[rows].astype(np.float64), begins)
    size = len(begins) // STRETCHES
    cuts = np.arange((len(begins) - 1) // size + 1) * size
    took = np.diff(issue[cuts]).astype(np.float64)
    waits, moved = (np.add.reduceat(column, cuts)[: len(took)] for column in (latency, sectors))
    # Its pace may be one of I/Os or one of bytes.
    slope, error = min((_slope(waits, y) for y in (took, took - moved * took.sum() / moved.sum())), key=lambda found: found[1])
    certain = LIKELY if _drift(trace, rows) < DATES else CERTAIN
    return slope < SLOPE and 1 - slope > certain * error


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """The slope of y over x by least squares, and its standard error; (1, inf) where x is always the same."""
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    if not square:
        return 1.0, np.inf
    slope = float(x @ y) / square
    rest = y - slope * x
    return slope, float(np.sqrt((rest @ rest) / (len(x) - 2) / square))
