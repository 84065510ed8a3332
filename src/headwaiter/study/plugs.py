# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a process submits in one go: Linux holds it back until the process is through with it (a plug), and merges it meanwhile.

Recorded is when each I/O was submitted. Were each to reach the scheduler then, an idle device would be given the first alone, and
the rest as a second request behind it, which takes a turn of the platter more. Nor do I/Os that are merged in the plug ask for a
tag each: were they to, a read of 512 KiB in pages would wait for 128 tags, and where a device has 64, for its own first half.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import Op
from headwaiter.engine.sim import I64, Forest
from headwaiter.study.submitters import TOGETHER_NS
from headwaiter.study.workload import CLOSED, Workload
from headwaiter.traces import Trace, continues, with_flushes


def joined(work: Workload) -> Workload:
    """A closed replay where what a process submitted in one go, and the device served as one request, is one I/O.

    That I/Os were one request is told by their common times of dispatch and completion. Those without a known completion, and
    flushes, stay as they are; so does what is joined already, what is no closed replay, and a trace that tells no processes.
    """
    if work.replay != CLOSED or work.trace is None or not isinstance(work.load, Forest) or work.is_joined:
        return work
    if work.trace.tasks_inferred:
        return work
    trace = with_flushes(work.trace)
    n = len(trace)
    order = np.lexsort((np.arange(n), trace.task))
    before, this = order[:-1], order[1:]
    one = (trace.complete_ns[this] >= 0) & (trace.time_ns[this] - trace.time_ns[before] <= TOGETHER_NS)
    one &= continues(trace, before, this)
    if work.load.apart_ns is not None:
        one &= work.load.apart_ns[this] == 0
    same = (trace.task, trace.group, trace.flags, trace.ioprio, trace.complete_ns, trace.issue_ns, work.load.parent)
    for column in same:
        if column is not None:
            one &= column[before] == column[this]
    if not one.any():
        return work
    begins = np.flatnonzero(np.concatenate([[True], ~one]))
    heads = order[begins]
    rows = np.sort(heads)
    place = np.empty(n, np.int64)
    place[order] = np.searchsorted(rows, np.repeat(heads, np.diff(begins, append=n)))
    sectors = np.empty(len(rows), trace.sectors.dtype)
    sectors[place[heads]] = np.add.reduceat(trace.sectors[order].astype(np.int64), begins)
    # It reaches the scheduler with its last part.
    last = np.empty(len(rows), np.int64)
    last[place[heads]] = order[np.append(begins[1:], n) - 1]
    load = _fewer(work.load, rows, place, sectors)
    load = replace(load, time_ns=work.load.time_ns[last], delay_ns=work.load.delay_ns[last])
    io = trace.op[rows] != Op.FLUSH
    shorter = replace(work.trace, **{**trace.columns(rows[io]), "sectors": sectors[io]})
    return replace(work, load=load, trace=shorter, whole=work.recording, is_joined=True)


def _fewer(forest: Forest, rows: I64, place: I64, sectors: NDArray[np.uint32]) -> Forest:
    """Only these rows of a forest, with so many sectors; place: by row of all, the new one that it is part of."""
    there = ((f.name, getattr(forest, f.name)) for f in fields(forest))
    columns: dict[str, Any] = {name: column[rows] for name, column in there if isinstance(column, np.ndarray)}
    for name in ("parent", "after"):
        if name in columns:
            columns[name] = np.where(columns[name] >= 0, place[columns[name]], -1)
    return replace(forest, **{**columns, "sectors": sectors})


def plugged(trace: Trace, forest: Forest) -> Forest:
    """A closed replay of a trace where what was submitted in one go reaches the scheduler at once.

    The trace has its flushes among its rows. What the device was given before the next I/O was submitted was not held back.
    """
    n = len(trace.time_ns)
    order = np.lexsort((np.arange(n), trace.task))
    before, this = order[:-1], order[1:]
    held = np.ones(n - 1, bool)
    for column in (trace.task, trace.op, forest.parent):
        held &= column[before] == column[this]
    held &= (trace.op[this] != Op.FLUSH) & (trace.time_ns[this] - trace.time_ns[before] <= TOGETHER_NS)
    if forest.apart_ns is not None:
        held &= forest.apart_ns[this] == 0
    if trace.issue_ns is not None:
        held &= (trace.issue_ns[before] < 0) | (trace.issue_ns[before] >= trace.time_ns[this])
    batch = np.concatenate([[0], np.cumsum(~held)])
    last = order[np.flatnonzero(np.append(batch[1:] != batch[:-1], True))][batch]
    time, delay = forest.time_ns.copy(), forest.delay_ns.copy()
    time[order], delay[order] = forest.time_ns[last], forest.delay_ns[last]
    return replace(forest, time_ns=time, delay_ns=delay)
