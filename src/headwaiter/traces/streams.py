# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tasks for a trace that does not tell them, inferred from sequential streams; and a trace's parts.

As in a server with so many threads: a read that carries on where one of them was, or a little further, is that thread's; any
other goes to the thread that has been without a read for the longest time. Writes that nobody waits for are one task of
their own, as a kernel's write-back is.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces.model import MAX_TIME_NS, Array, Flushes, Trace, TraceTask

FURTHER_SECTORS = 256
"""A read-ahead window: what a thread may skip and still carry on."""


def with_streams(trace: Trace, threads: int) -> Trace:
    """Without flushes, with tasks 1 … threads for what is waited for, and 0 for the rest; as many groups as tasks."""
    waited = (trace.op == Op.READ) | (trace.flags & SYNC > 0)
    task = np.zeros(len(trace), np.int64)
    task[waited] = 1 + _threads(trace.sector[waited].tolist(), trace.sectors[waited].tolist(), threads)
    used, number = np.unique(task, return_inverse=True)
    tasks = tuple(TraceTask(i, f"thread {i}" if i else "write-back") for i in used.tolist())
    column = number.astype(np.uint32)
    note = f"the trace does not identify tasks: {threads} threads inferred from sequential streams"
    return dataclasses.replace(
        trace,
        task=column,
        group=column,
        tasks=tasks,
        tasks_known=True,
        tasks_inferred=True,
        notes=(*trace.notes, note),
        flushes=None,
    )


def _threads(sector: list[int], sectors: list[int], threads: int) -> Array:
    """The thread, from 0, of each request that is waited for."""
    end = {i: -1 for i in range(threads)}  # in order of last use, the oldest first
    out = []
    for start, length in zip(sector, sectors, strict=True):
        mine, least = -1, FURTHER_SECTORS + 1
        for i, place in end.items():
            if 0 <= start - place < least and place >= 0:
                mine, least = i, start - place
        if mine < 0:
            mine = next(iter(end))
        del end[mine]
        end[mine] = start + length
        out.append(mine)
    return np.array(out, np.int64)


def part(trace: Trace, begin: int, end: int) -> Trace:
    """Requests begin … end-1 as a trace of their own, with the flushes that were asked for between the first and the last."""
    columns = trace.columns(slice(begin, end))
    flushes = trace.flushes
    if flushes:
        since, until = columns["time_ns"][0] if begin else 0, columns["time_ns"][-1] if end < len(trace) else MAX_TIME_NS
        flushes = flushes.rows((flushes.time_ns >= since) & (flushes.time_ns <= until))
    return with_rows(trace, columns, flushes)


def with_rows(trace: Trace, columns: dict[str, Any], flushes: Flushes | None) -> Trace:
    """A trace of these rows of another: columns as of Trace.columns(). Tasks and groups are numbered anew, without gaps."""
    columns = dict(columns)
    used, task = _numbered(columns["task"], flushes.task if flushes else None)
    _, group = _numbered(columns["group"], flushes.group if flushes else None)
    n = len(columns["task"])
    columns |= {"task": task[:n], "group": group[:n]}
    if flushes:
        flushes = dataclasses.replace(flushes, task=task[n:], group=group[n:])
    return dataclasses.replace(trace, **columns, tasks=tuple(trace.tasks[i] for i in used.tolist()), flushes=flushes, sha256="")


def _numbered(column: Array, more: Array | None) -> tuple[Array, Array]:
    """(the distinct values of a column, and behind them those that only the other has; the place among them of each value)."""
    used, number = np.unique(column, return_inverse=True)
    if more is not None:
        used = np.concatenate([used, np.setdiff1d(more, used)])
        order = np.argsort(used)
        number = order[np.searchsorted(used[order], np.concatenate([column, more]))]
    return used, number.astype(np.uint32)
