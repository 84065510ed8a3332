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
not: what it has lost it has lost. Both read a stream alike. The latter is assumed there, because it hides no harm.
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
CERTAIN = 3.0
"""Standard errors that the slope must be away from 1."""
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
        flags[rows] |= PACED | DRIFTS * _is_read_ahead(trace, forest, rows)
    return replace(forest, delay_ns=delay, flags=flags) if (flags & PACED).any() else forest


def _is_read_ahead(trace: Trace, forest: Forest, rows: I64) -> bool:
    """Return whether most of a program's reads continue others: it may compute meanwhile, and a player may, too."""
    reads = rows[trace.op[rows] == Op.READ]
    return forest.after is not None and 2 * int((forest.after[reads] >= 0).sum()) > len(rows)


def _keeps_pace(trace: Trace, rows: I64) -> bool:
    """Return whether the time that a program takes does not tell what its I/Os took."""
    waited = (trace.op[rows] == Op.READ) | ((trace.flags[rows] & SYNC > 0) & (trace.op[rows] != Op.FLUSH))
    rows = rows[waited]
    if len(rows) < FEWEST:
        return False
    issue = trace.time_ns[rows]
    latency = (trace.complete_ns[rows] - issue).astype(np.float64)
    span = float(issue[-1] - issue[0])
    if latency.sum() >= BUSY * span:
        return False
    size = len(rows) // STRETCHES
    cuts = np.arange((len(rows) - 1) // size + 1) * size
    took = np.diff(issue[cuts]).astype(np.float64)
    waits = np.add.reduceat(latency, cuts)[: len(took)]
    sectors = np.add.reduceat(trace.sectors[rows].astype(np.float64), cuts)[: len(took)]
    # Its pace may be one of I/Os or one of bytes.
    slope, error = min(
        (_slope(waits, y) for y in (took, took - sectors * took.sum() / sectors.sum())), key=lambda found: found[1]
    )
    return slope < SLOPE and 1 - slope > CERTAIN * error


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """The slope of y over x by least squares, and its standard error; (1, inf) where x is always the same."""
    x, y = x - x.mean(), y - y.mean()
    square = float(x @ x)
    if not square:
        return 1.0, np.inf
    slope = float(x @ y) / square
    rest = y - slope * x
    return slope, float(np.sqrt((rest @ rest) / (len(x) - 2) / square))
