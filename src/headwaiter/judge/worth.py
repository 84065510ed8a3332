# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a lever is worth: the replay with it against the same without it, and what it costs whom.

A recording is a sample, and how much more is done has an interval from its cells, as that of a scheduler has (intervals.py);
of a run of jobs, and of tails, it comes from the runs with small changes of the load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from headwaiter.judge.verdict import COST, FELT, FELT_MS, span_text
from headwaiter.study.changes import latency_text
from headwaiter.study.intervals import WINS, Interval, bootstrap_rates, paired, wins
from headwaiter.study.schema import Margin, ProgramPace, Result
from headwaiter.study.trial import Trial


def worth(
    what: str, apart: frozenset[str], trial: Trial, without: Trial, seed: int = 0, windows: int = 0
) -> tuple[str, Margin] | None:
    """A sentence on what helps, and how much it does; None if it does not.

    apart: names of programs that do not count; windows: of so many pieces of a longer recording.
    """
    sampled = _of_sample(apart, trial, without, seed, windows)
    by_progress = sampled or _gain(apart, trial, without, _progress, less=False)
    by_tail = _gain(apart, trial, without, _tail, less=True)
    others, before = _counted(trial.result, apart), _counted(without.result, apart)
    if not others or not before:
        return None
    worst, worst_before = (max((row.p99_ms or 0.0 for row in rows), default=0.0) for rows in (others, before))
    whom = "the others" if apart else "programs"
    if by_progress.judge(0.05) == "better" and _steady(apart, trial, without):
        said, gain = by_progress, f"{whom} get {_more(by_progress)} done"
    # A single run says nothing of a tail.
    elif (
        len(trial.runs) > 1
        and by_tail.judge(FELT) == "better"
        and worst_before - worst >= FELT_MS
        and by_progress.judge(0.05) != "worse"
    ):
        said, gain = by_tail, f"the 99th percentile of what {whom} wait for is {1 - math.exp(-by_tail.point):.0%} lower"
        gain += f" ({latency_text(worst)} against {latency_text(worst_before)} for the worst)"
    else:
        return None
    of_one_run = len(trial.runs) == 1 and said is not sampled
    interval = "" if of_one_run else span_text("progress" if said is by_progress else "p99", said)
    text = f"{what}: {gain}{interval}"
    if costs := _costs(apart, trial.result, without.result):
        text += f"; cost: {costs}"
    margin = Margin(
        scheduler=trial.variant.name,
        judgement="better",
        ahead_percent=100 * math.expm1(said.point),
        low_percent=100 * math.expm1(said.low),
        high_percent=100 * math.expm1(said.high),
    )
    return f"{text}.", margin


def ahead_percent(apart: frozenset[str], trial: Trial, without: Trial) -> float:
    """Return by how much more programs get done, but those `apart`, in percent."""
    return 100 * math.expm1(_gain(apart, trial, without, _progress, less=False).point)


def _counted(r: Result, apart: frozenset[str]) -> list[ProgramPace]:
    return [row for row in r.programs or () if row.name not in apart and row.counts]


def _progress(rows: Sequence[ProgramPace]) -> float:
    return float(np.exp(np.mean([math.log(max(row.throughput_mbps, 1e-9)) for row in rows]))) if rows else 0.0


def _tail(rows: Sequence[ProgramPace]) -> float:
    tails = [row.p99_ms for row in rows if row.p99_ms]
    return float(np.exp(np.mean(np.log(tails)))) if tails else 0.0


Figure = Callable[[Sequence[ProgramPace]], float]


def _figures(apart: frozenset[str], trial: Trial, without: Trial, figure: Figure) -> list[list[float]]:
    return [[figure(_counted(r, apart)) for r in each.runs] for each in (without, trial)]


def _gain(apart: frozenset[str], trial: Trial, without: Trial, figure: Figure, *, less: bool) -> Interval:
    return paired(_figures(apart, trial, without, figure), 0, less)[1]


def _of_sample(apart: frozenset[str], trial: Trial, without: Trial, seed: int, windows: int) -> Interval | None:
    """Return how much more is done, from the cells of a recording; None if it is none, or programs are not the same ones."""
    ours, theirs = trial.programs, without.programs
    if not (trial.waits and ours and theirs and ours.names == theirs.names):
        return None
    rows = ours.counts & theirs.counts & ~np.isin(ours.names, list(apart))
    if not rows.any():
        return None
    each = (theirs, ours)
    return bootstrap_rates([one.done[rows] for one in each], [one.active_ns[rows] for one in each], 0, seed, windows)[1]


def _steady(apart: frozenset[str], trial: Trial, without: Trial) -> bool:
    return wins(_figures(apart, trial, without, _progress), 0, False)[1] >= WINS


def _more(found: Interval) -> str:
    more = math.expm1(found.point)
    return f"{1 + more:.1f} times as much" if more >= 1 else f"{more:.0%} more"


def _costs(apart: frozenset[str], ours: Result, theirs: Result) -> str:
    """Return who gets less done, the worst first."""
    before = {row.name: row.throughput_mbps for row in theirs.programs or ()}
    lost = [
        (1 - row.throughput_mbps / before[row.name], row.name)
        for row in ours.programs or ()
        if (row.counts or row.name in apart) and before.get(row.name) and row.throughput_mbps < before[row.name] / (1 + COST)
    ]
    return ", ".join(f"{name} gets {share:.0%} less done" for share, name in sorted(lost, reverse=True)[:2])
