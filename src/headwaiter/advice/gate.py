# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether a recording can tell anything of schedulers at all, before any is tried."""

from __future__ import annotations

import math

from headwaiter.advice.schema import Gate
from headwaiter.base.errors import counted
from headwaiter.base.figures import brief
from headwaiter.engine.hosts import MODEL, Host
from headwaiter.study.waits import IDLE, contention, could_change, slowdown
from headwaiter.traces import Trace

LEAST_S = 60.0
LEAST_REQUESTS = 2000
LOST_SHARE = 0.001
"""So small a share of events may be lost."""


def gate(
    trace: Trace, depth: int | None, lost: int = 0, seconds: float | None = None, host: Host | None = None, cores: int = 0
) -> Gate:
    """Return what a recording of a device that takes `depth` requests at once (None: that is not known) is worth.

    lost: events that its recorder lost; seconds: how long it recorded, None if that is not known. host: whose processors, if they
    are shared; cores: how many of them there are.
    """
    requests, span_ns = trace.recorded
    seconds = span_ns / 1e9 if seconds is None else seconds
    known = trace.complete_ns >= 0
    share = contention(trace.time_ns[known], trace.complete_ns[known], depth) if depth and known.any() else None
    slower = slowdown(trace.time_ns[known], trace.complete_ns[known], trace.op[known], trace.sectors[known])
    rate, cost = requests / seconds if seconds else 0.0, host.cost(MODEL) if host else None
    processor = 1e-4 * rate * (cost.own + cost.lock) / max(1, cores) if cost else None
    lock = 1e-4 * rate * cost.lock_crowded if cost else None
    matters = None
    if share is not None:
        matters = share >= IDLE or (host is not None and could_change(processor or 0.0, lock or 0.0, slower))
    reasons = []
    short = max(LEAST_S / seconds if seconds else math.inf, LEAST_REQUESTS / requests)
    if seconds < LEAST_S:
        reasons.append(f"it is {brief(seconds)} s long, and {LEAST_S:g} s are the least")
    if requests < LEAST_REQUESTS:
        reasons.append(f"it has {counted(requests, 'request')}, and {LEAST_REQUESTS} are the least")
    if lost > LOST_SHARE * (requests + lost):
        reasons.append(f"{lost} events were lost, which is more than {LOST_SHARE:.1%}")
    return Gate(
        open=not reasons,
        seconds=seconds,
        requests=requests,
        lost=lost,
        depth=depth,
        contention_percent=None if share is None else 100 * share,
        slowdown=slower,
        processor_percent=None if processor is None else min(100.0, processor),
        lock_percent=None if lock is None else min(100.0, lock),
        could_change=matters,
        tasks_known=trace.tasks_known,
        reasons=reasons,
        longer=min(1000, math.ceil(short)) if short > 1 else None,
    )


def told(found: Gate) -> str:
    """Why there is no advice, in plain sentences; "" where there may be some."""
    if found.reasons:
        text = f"This recording cannot tell: {' and '.join(found.reasons)}."
        return f"{text} Record {found.longer} times longer." if found.longer else f"{text} Record again, with larger buffers."
    return ""
