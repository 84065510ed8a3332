# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Closed-loop dependencies: think times instead of timestamps.

A request depends on the latest request of its group that had completed when it was issued, and comes again that much
later than that one completes. Only so does a replay show deceptive idleness.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwaiter.engine.constants import Op
from headwaiter.traces.model import Trace


def closed_loop(
    trace: Trace, complete_ns: npt.NDArray[np.int64] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(parent, delay_ns), both int64 of shape (n,).

    parent[i] is the index of the request that i waits for, always smaller than i, or -1; among several that completed
    at one instant it is the last in the trace. delay_ns[i] is the think time from the parent's completion to the issue
    of i; without a parent, the issue of i counted from that of the first request of the trace.
    complete_ns replaces the trace's completions where those were not recorded (shape (n,), -1 unknown).
    """
    n = len(trace)
    complete = trace.complete_ns if complete_ns is None else complete_ns
    done = np.flatnonzero(complete >= 0)
    # Completions and issues of each group in one order of time. At equal times the trace's order decides, and a
    # request of no duration is issued before it completes: so nothing depends on itself or on what comes after it.
    request = np.concatenate([done, np.arange(n)])
    time = np.concatenate([complete[done], trace.time_ns])
    is_issue = np.arange(len(request)) >= len(done)
    order = np.lexsort((~is_issue, request, time, trace.group[request]))
    request, is_issue = request[order], is_issue[order]
    latest = np.maximum.accumulate(np.where(is_issue, -1, np.arange(len(order))))
    candidate = np.where(latest >= 0, request[latest], -1)[is_issue]
    child = request[is_issue]
    candidate[(candidate >= 0) & (trace.group[candidate] != trace.group[child])] = -1
    parent = np.empty(n, np.int64)
    parent[child] = candidate
    return parent, trace.time_ns - np.where(parent >= 0, complete[parent], trace.time_ns[0])


def continues(trace: Trace, before: npt.NDArray[np.int64], this: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of these rows begin where the row before each ends, and have its operation; a flush is nowhere. Shape (m,)."""
    follows: npt.NDArray[np.bool_] = (trace.op[before] == trace.op[this]) & (trace.op[this] != Op.FLUSH)
    follows &= trace.sector[before] + trace.sectors[before] == trace.sector[this]
    return follows


def stream_order(trace: Trace) -> npt.NDArray[np.int64]:
    """after, int64 of shape (n,): the row that request i continues and must not overtake, or -1.

    Read-ahead keeps several requests of one stream under way, each the child of one further back. Were each only to follow
    its parent, two that complete in the other order than recorded would stay swapped for good, and the stream would
    go back and forth as no program does. So a request that begins where the one before it of the same group and operation
    ends is issued after that one. Requests that do not continue each other (a database's outstanding I/Os) stay free.
    """
    n = len(trace)
    order = np.lexsort((np.arange(n), trace.op, trace.group))
    before, this = order[:-1], order[1:]
    stream = (trace.group[before] == trace.group[this]) & continues(trace, before, this)
    after = np.full(n, -1, np.int64)
    after[this[stream]] = before[stream]
    return after
