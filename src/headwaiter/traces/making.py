# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From recorded columns to a Trace: order, numbers of tasks and groups, and what a trace may rely upon (model.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from headwaiter.base.errors import NoRequestsError, Problem, counted, plain
from headwaiter.engine.cgroups import Path
from headwaiter.engine.cgroups import told as told_cgroups
from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces.groups import find_groups
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Array, Flushes, Trace, TraceTask


def make_trace(
    *,
    source: str,
    format: str,
    time_ns: Array,
    sector: Array,
    sectors: Array,
    op: Array,
    flags: Array | None = None,
    complete_ns: Array | None = None,
    issue_ns: Array | None = None,
    insert_ns: Array | None = None,
    task_id: Array | None = None,
    group: Array | None = None,
    ioprio: Array | None = None,
    names: Mapping[int, str] | None = None,
    exits_ns: Mapping[int, int] | None = None,
    cgroups: Mapping[int, Path] | None = None,
    parents: Mapping[int, int] | None = None,
    group_gap_ns: int = 0,
    notes: Sequence[str] = (),
) -> Trace:
    """Put recorded columns into order, number tasks and groups, and uphold the invariants.

    All arrays have shape (n,), in any order of time. Without `flags` every read is synchronous and no write is.
    Without `task_id` everything is task 0 and the trace's tasks are unknown. Without `group` groups are found (see
    groups.py). Rows of operation FLUSH have no sectors and become the trace's flushes. What cannot be a request (no length,
    beyond MAX_SECTOR) or completes before it was issued is put right and told in the notes; formats whose rules forbid it
    check before. Raises Problem if nothing remains.
    """
    told = list(notes)
    sector, sectors = np.asarray(sector).astype(np.uint64), np.asarray(sectors).astype(np.uint64)
    flush = np.asarray(op) == Op.FLUSH
    keep = (sectors >= 1) & (sector <= MAX_SECTOR) & (sector + sectors <= MAX_SECTOR) & (sectors < 2**32) | flush
    if not keep.all():
        told.append(f"{counted(int((~keep).sum()), 'request')} without length or beyond any disk omitted")
    index = np.flatnonzero(keep)
    if not (keep & ~flush).any():
        raise NoRequestsError(f"{source}: contains no requests")
    time = np.asarray(time_ns)[index].astype(np.int64)
    if time.min() < 0 or time.max() > MAX_TIME_NS:
        raise Problem(f"{source}: contains a time that is negative or beyond 73 years")
    # At one time requests come before flushes, as with_flushes() puts them: the numbers of tasks and groups depend on it.
    order = np.lexsort((flush[index], time))
    index, time = index[order], time[order]

    def column(values: Array | None, dtype: type, default: int) -> Array:
        if values is None:
            return np.full(len(index), default, dtype)
        return np.asarray(values)[index].astype(dtype)

    ops = column(op, np.uint8, 0)
    complete = column(complete_ns, np.int64, -1)
    wrong = (complete >= 0) & (complete < time)
    if wrong.any():
        told.append(f"{counted(int(wrong.sum()), 'completion')} before the request's own issue treated as unknown")
        complete[wrong] = -1
    late = complete > MAX_TIME_NS
    if late.any():
        told.append(f"{counted(int(late.sum()), 'completion')} beyond any clock treated as unknown")
        complete[late] = -1

    def between(values: Array | None, end: Array) -> Array | None:
        """Times from the arrival to an end, where that is known; -1 for others."""
        if values is None:
            return None
        found = column(values, np.int64, -1)
        found[(found < time) | (end >= 0) & (found > end)] = -1
        return found

    given = between(issue_ns, complete)
    inserted = between(insert_ns, complete if given is None else np.where(given >= 0, given, complete))
    ids, task = _number(column(task_id, np.int64, 0))
    names = names or {}
    exits_ns = exits_ns or {}
    exits = {i: exits_ns.get(i) for i in ids.tolist()}
    if absurd := [i for i, exit_ns in exits.items() if exit_ns is not None and not 0 <= exit_ns <= MAX_TIME_NS]:
        told.append(f"{counted(len(absurd), 'exit')} beyond any clock treated as unknown")
        exits |= dict.fromkeys(absurd)
    cgroups = cgroups or {}
    told += told_cgroups(cgroups.values())
    tasks = tuple(TraceTask(i, plain(names.get(i, "")).strip(), exit_ns, cgroups.get(i, ())) for i, exit_ns in exits.items())
    if group is None:
        groups = find_groups(time, complete, task, tasks=tasks, parents=parents or {}, gap_ns=group_gap_ns)
    else:
        groups = column(group, np.int64, 0)
    found = Trace(
        time_ns=time,
        complete_ns=complete,
        task=task.astype(np.uint32),
        group=_number(groups)[1].astype(np.uint32),
        op=ops,
        flags=column(flags, np.uint8, 0) if flags is not None else (ops == Op.READ).astype(np.uint8) * np.uint8(SYNC),
        sector=column(sector, np.uint64, 0),
        sectors=column(sectors, np.uint32, 0),
        ioprio=column(ioprio, np.uint16, 0),
        tasks=tasks,
        source=source,
        format=format,
        tasks_known=task_id is not None,
        notes=tuple(plain(note) for note in told),
        issue_ns=given,
        insert_ns=inserted,
    )
    return _parted(found) if flush.any() else found


def _parted(trace: Trace) -> Trace:
    """Return the trace with its flushes in rows of their own."""
    flush = trace.op == Op.FLUSH
    given = trace.issue_ns if trace.issue_ns is not None else np.full(len(trace), -1, np.int64)
    # Groups count from 0 without gaps for requests; those of flushes alone come behind.
    behind = np.argsort(flush, kind="stable")
    group = np.empty(len(trace), np.uint32)
    group[behind] = _number(trace.group[behind])[1]
    trace = replace(trace, group=group)
    flushes = Flushes(trace.time_ns, trace.complete_ns, given, trace.task, trace.group).rows(flush)
    return replace(trace, **trace.columns(~flush), flushes=flushes)


def _number(values: Array) -> tuple[Array, Array]:
    """Number distinct values in order of first appearance: (values, index of each element's)."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse]
