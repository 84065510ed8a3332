# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The main job: one workload under many schedulers, ranked, with the reason in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from headwaiter.base.figures import digits
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Drive, Load, Options
from headwaiter.fio import JobLoad
from headwaiter.study.ranges import (
    ELAPSED,
    FAIRNESS,
    MAX_LATENCY,
    MEAN_LATENCY,
    P99_LATENCY,
    PROGRESS,
    RANGE_SHARE,
    THROUGHPUT,
    WAITED,
    Figure,
    label,
    told_range,
)
from headwaiter.study.schema import Criterion, Disk, Result
from headwaiter.study.trial import Trial, measure_all
from headwaiter.study.variants import Variant

EVEN = 0.02
"""Two runs that differ by less than this share are called even."""

# Criterion: its name, with the operation that latencies are of; its figure; and 1 if less is better, -1 if more is.
RANKINGS: dict[Criterion, tuple[str, Figure, int]] = {
    "progress": ("progress of programs", PROGRESS, -1),
    "throughput": ("throughput", THROUGHPUT, -1),
    "waited": ("time that programs waited", WAITED, 1),
    "elapsed": ("elapsed time", ELAPSED, 1),
    "latency": ("mean {} latency", MEAN_LATENCY, 1),
    "p99": ("99th percentile of {} latency", P99_LATENCY, 1),
    "max": ("longest {}", MAX_LATENCY, 1),
    "fairness": ("fairness", FAIRNESS, -1),
}


BUSY, BUSY_MORE = 70, 10
"""A lock that is held for so many percent of the time, and so many more than another, explains a difference."""
_TOLD = 3
"""So many are named whose figure is a range."""
_UNITS: dict[Criterion, str] = {
    "progress": " MB/s",
    "throughput": " MB/s",
    "waited": " s",
    "elapsed": " s",
    "latency": " ms",
    "p99": " ms",
    "max": " ms",
    "fairness": "",
}


def operation(results: Sequence[Result]) -> str:
    """Return what latencies are of: reads, or writes where nobody reads."""
    return "write" if any(r.write for r in results) and not any(r.read for r in results) else "read"


def noun(by: Criterion, results: Sequence[Result]) -> str:
    """Return what a criterion ranks these results by."""
    return RANKINGS[by][0].format(operation(results))


def _key(by: Criterion) -> Callable[[Result], float]:
    """Smallest first."""
    _, figure, sign = RANKINGS[by]
    return lambda r: sign * figure.of(r)


def without_processor(trials: Sequence[Trial], drive: Drive, load: Load, each: Sequence[tuple[Variant, Options]]) -> list[str]:
    """A note, if processor time was set to 0 and that decides the result; `each` as of measure_all()."""
    if not isinstance(load, JobLoad) or any(options.turnaround_ns or options.dispatch_ns for _, options in each):
        return []
    timed = [(variant, MEASURED.apply(options)) for variant, options in each]
    measured = [t.result for t in measure_all(timed, drive, load, runs=0)]
    off = {
        label(m): t.result.throughput_mbps / m.throughput_mbps - 1
        for t, m in zip(trials, measured, strict=True) if m.throughput_mbps
    }  # fmt: skip
    worst = max(off, key=lambda name: abs(off[name]), default="")
    if not worst or abs(off[worst]) <= RANGE_SHARE:
        return []
    best = label(rank(measured, "throughput")[1][0])
    return [
        f"processor time is set to 0, and that decides the result: with the measured processor time, {worst}'s throughput"
        f" changes by {100 / (1 + off[worst]) - 100:+.0f}%, and {best} is best"
    ]


def rank(results: Sequence[Result], by: Criterion | None) -> tuple[Criterion, list[Result]]:
    """(criterion, results best first).

    Without a criterion: how fast programs get their work done; mean latency where timestamps set their pace.
    """
    if by is None:
        by = "progress" if all(r.progress_mbps is not None for r in results) else "latency"
    # Nearly even ones go by latency, so that noise in the last digit does not decide.
    key = _key(by)
    return by, sorted(results, key=lambda r: (key(r), MEAN_LATENCY.of(r), label(r)))


# Where the head is when it is not on data, and what it does there.
_AWAY: dict[str, Callable[[Disk], float | None]] = {
    "seeking": lambda disk: disk.seek_s,
    "waiting for the platter": lambda disk: disk.rotation_s,
}


def _share(r: Result, away: str) -> float:
    return (_AWAY[away](r.disk) or 0.0) / r.elapsed_s if r.elapsed_s else 0.0


def names(found: Sequence[str]) -> str:
    """One or several names, as in a sentence."""
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + " and " + found[-1]


def _names(rows: Sequence[Result]) -> str:
    return names([label(r) for r in rows])


def versus(best: Result, other: Result) -> str:
    """Why `best` did better than `other`, from where the disk's time went; "" if that does not tell."""
    waits = best.anticipation
    b_seeks, o_seeks = best.disk.seeks, other.disk.seeks
    reasons = []
    if waits and waits.met and o_seeks > b_seeks * 1.1:
        reasons.append(
            f"it held the head for the same reader's next request {waits.waits:,} times (correctly in {waits.met:,} cases)"
            f", so it made {b_seeks:,} seeks where {label(other)} made {o_seeks:,}"
        )
    elif o_seeks > b_seeks * 1.1:
        reasons.append(f"its order of service took {b_seeks:,} seeks where {label(other)}'s took {o_seeks:,}")
    elif best.dispatched < 0.9 * other.dispatched:
        reasons.append(f"it merged the load into {best.dispatched} requests, against {other.dispatched}")
    away = {what: _share(other, what) - _share(best, what) for what in _AWAY}
    lost = max(away, key=lambda what: away[what])
    if away[lost] > 0.03:
        reasons.append(f"the disk spent {_share(best, lost):.0%} of the time {lost}, against {_share(other, lost):.0%}")
    if best.host and other.host and other.host.lock_percent > max(BUSY, best.host.lock_percent + BUSY_MORE):
        many = f"{other.host.lock_percent:.0f}% of the time, against {best.host.lock_percent:.0f}%"
        reasons.append(f"I/Os take turns at the lock of {label(other)}, which was held {many}")
    if not reasons:
        idle = other.disk.idle_s - best.disk.idle_s
        if idle > 0.02 * other.elapsed_s:
            reasons.append(f"it left the disk idle for {best.disk.idle_s:.2f} s, against {other.disk.idle_s:.2f} s")
    return "; ".join(reasons)


def explain(by: Criterion, ranked: Sequence[Result]) -> str:
    """Two plain sentences: the winner by the criterion, and why it is ahead of the last."""
    if len(ranked) < 2:
        return f"Only {_names(ranked)} ran: there is nothing to compare."
    title, key = noun(by, ranked), _key(by)
    best, last = ranked[0], ranked[-1]
    top, bottom = key(best), key(last)
    if abs(bottom - top) <= EVEN * max(abs(top), abs(bottom)):
        them = "both" if len(ranked) == 2 else f"all {len(ranked)}"
        return f"No significant difference: {them} are within {EVEN:.0%} of each other by {title}."
    even = [r for r in ranked if abs(key(r) - top) <= EVEN * abs(top)]
    rest = [r for r in ranked if r not in even]
    runner = rest[0]
    less, more = sorted((abs(top), abs(key(runner))))
    factor = more / less if less else math.inf
    margin = "far" if factor == math.inf else f"{factor:.1f} times" if factor >= 1.95 else f"{factor - 1:.0%}"
    verb = "tie for best" if len(even) > 1 else "is best"
    ahead = f"{margin} ahead of {label(runner)} by {title}"
    why = versus(best, last)
    return f"{_names(even)} {verb}, {ahead}." + (f" {label(best)} compared with {label(last)}: {why}." if why else "")


def uncertain(by: Criterion, ranked: Sequence[Result]) -> str:
    """Return what small changes of the load leave of the ranking; '' if all of it."""
    title, figure = noun(by, ranked), RANKINGS[by][1]
    ranges = [(r, spread) for r in ranked if (spread := told_range(r, figure))]
    if not ranges:
        return ""
    told = "; ".join(f"{label(r)} {digits(spread.low)}–{digits(spread.high)}{_UNITS[by]}" for r, spread in ranges[:_TOLD])
    told += f"; and {len(ranges) - _TOLD} more" if len(ranges) > _TOLD else ""
    runs = max(r.range.runs for r, _ in ranges if r.range)
    return f"Sensitive to timing ({title}, over {runs} runs with small changes of it): {told}."
