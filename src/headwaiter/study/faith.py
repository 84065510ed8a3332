# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is the replay true? Programs replayed under the scheduler that was in force, against what they got when they were recorded.

Of no other scheduler is it known what it would have given them. Where a replay gives a program twice what it got, a verdict about
it is not worth more than that. It need not be equal: who meets whom at the disk, and where the platter stands then, is chance,
and a program that waits in turn with others may be lucky for seconds.
"""

from __future__ import annotations

import numpy as np

from headwaiter.base.errors import plain
from headwaiter.base.figures import digits
from headwaiter.engine.sim import Forest
from headwaiter.study.progress import Programs, programs_in, waited_for
from headwaiter.study.schema import Replayed
from headwaiter.study.trial import Trial
from headwaiter.study.workload import CLOSED, Workload
from headwaiter.traces import with_flushes

CLOSE = 0.1
"""A program that gets so much more or less is close to what it got."""


def replayed(work: Workload, trial: Trial) -> Replayed | None:
    """Hold a trial under the scheduler that was in force against the recording.

    None where that cannot be done: timestamps set the pace, think times were changed, or completions are unknown; or windows of
    a longer recording are replayed, which follow each other as they did not.
    """
    then = _recorded(work) if trial.programs else None
    if then is None or trial.programs is None:
        return None
    counts = then.counts & trial.programs.counts
    factors = trial.programs.mbps[counts] / then.mbps[counts]
    if not len(factors):
        return None
    off = np.abs(np.log(factors))
    close = np.maximum(factors, 1 / factors) <= 1 + CLOSE
    worst = int(np.argmax(off))
    return Replayed(
        scheduler=trial.variant.name,
        programs=len(factors),
        close=int(close.sum()),
        off=float(np.exp(off.mean())),
        farthest=None if close.all() else then.names[int(np.flatnonzero(counts)[worst])],
        farthest_factor=None if close.all() else float(factors[worst]),
    )


def told(found: Replayed) -> str:
    """Return that in words."""
    under, within = f"replayed under {found.scheduler}, as recorded,", f"within {100 * CLOSE:.0f}%"
    if found.farthest is None:
        whose = "the program" if found.programs == 1 else f"each of {found.programs} programs"
        return f"{under} {whose} gets what it got then, {within}"
    assert found.farthest_factor
    share = found.farthest_factor
    amount = f"{digits(share)} times as much" if share > 1 else f"{100 * (1 - share):.0f}% less"
    if found.programs == 1:
        return f"{under} the program gets {amount}{' as' if share > 1 else ' than'} then"
    who = plain(found.farthest)
    return f"{under} {found.close} of {found.programs} programs get what they got then, {within}; {who} gets {amount}"


def _recorded(work: Workload) -> Programs | None:
    """Return what programs got when they were recorded; None if that is not known."""
    trace, load = work.trace, work.load
    if trace is None or not isinstance(load, Forest) or work.replay != CLOSED or work.windows or work.reading.speed != 1:
        return None
    rows = with_flushes(trace)
    n, waited = len(rows), waited_for(load)[: len(rows)]
    if (rows.complete_ns[waited] < 0).sum() > CLOSE * waited.sum():
        return None
    issue, complete = np.full(len(load.time_ns), -1, np.int64), np.zeros(len(load.time_ns), np.int64)
    issue[:n] = rows.time_ns - rows.time_ns[0]
    complete[:n] = np.where(rows.complete_ns < 0, 0, rows.complete_ns - rows.time_ns[0])
    return programs_in(load, issue, complete)
