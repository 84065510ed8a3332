# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verdict of a comparison: which scheduler to take, how sure that is, and what it costs, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwaiter.study.compare import RANKINGS, names, noun, versus
from headwaiter.study.intervals import WINS, Interval, bootstrap, paired, wins
from headwaiter.study.ranges import label
from headwaiter.study.schema import Answer, Criterion, Judgement, Margin, Result
from headwaiter.study.trial import Trial
from headwaiter.study.waits import BACKLOG, LAG_SHARE

IDLE = 0.02
"""Where a smaller share of I/Os finds the device occupied, nothing is there to be ordered."""
QUIET = 0.2
"""A device that is busy for a smaller share of the time is called idle."""
COST = 0.1
"""A figure that is worse by a greater share of itself is told as a cost."""
LONGEST = 100
"""A recording that would have to be so many times longer is not asked for."""
STOCK_BASELINES = ("mq-deadline", "none")
"""Linux's default for a device with one queue, and for one with several."""


@dataclass(frozen=True)
class Field:
    """Trials by a criterion, against one of them, whose place is `base`."""

    trials: Sequence[Trial]
    criterion: Criterion
    base: int
    intervals: Sequence[Interval]
    """Of each trial's ratio to the base."""
    steady: Sequence[float] | None
    """Share of perturbed runs that agree with the unperturbed one about that; None if nothing was perturbed."""
    margin: float
    single: bool
    """Each ran once, and there is no trace to draw from: intervals are points."""

    def judge(self, i: int) -> Judgement:
        """What may be said of a trial."""
        if i == self.base:
            return "baseline"
        said = self.intervals[i].judge(self.margin)
        if said in ("better", "worse") and self.steady is not None and self.steady[i] < WINS:
            return "cannot tell"
        return said


def baseline(trials: Sequence[Trial], current: str | None) -> int:
    """The place of the variant that others are held against: the one of that name, or a default of Linux, or the first."""
    found = [t.variant.name for t in trials]
    for name in (current, *STOCK_BASELINES):
        if name in found:
            return found.index(name)
    return 0


def field_of(trials: Sequence[Trial], criterion: Criterion, base: int, margin: float, seed: int) -> Field:
    """How sure it is what each trial is, by a criterion, against one of them."""
    _, figure, sign = RANKINGS[criterion]
    runs = [[figure.of(r) for r in t.runs] for t in trials]
    steady = wins(runs, base, sign > 0) if len(runs[0]) > 1 else None
    cells = _cells(trials, criterion)
    intervals = bootstrap(cells, base, seed) if cells is not None else paired(runs, base, sign > 0)
    return Field(trials, criterion, base, intervals, steady, margin, cells is None and steady is None)


def _cells(trials: Sequence[Trial], criterion: Criterion) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """What the criterion sums up, cell by cell of the trace; None if it is no sum, or there is no trace."""
    waits = [t.waits for t in trials if t.waits]
    if len(waits) < len(trials) or criterion not in ("waited", "latency"):
        return None
    return np.array([w.waited_ns if criterion == "waited" else w.latency_ns for w in waits])


def answer(
    trials: Sequence[Trial],
    criterion: Criterion,
    *,
    is_open: bool,
    current: str | None = None,
    margin: float = 0.05,
    seed: int = 0,
    wrong_drive: str = "",
) -> Answer:
    """The verdict over trials of one load, best first by the criterion.

    `is_open`: an open replay, which may be overloaded. `wrong_drive`: why nothing may be ranked on this drive.
    """
    base = baseline(trials, current)
    what = trials[base]
    told: dict[str, object] = {
        "baseline": what.variant.name,
        "margin_percent": 100 * margin,
        "contention_percent": None if what.contention is None else 100 * what.contention,
    }
    if len(trials) < 2:
        text = f"Only {what.variant.name} ran: there is nothing to compare."
        return Answer(outcome="alone", text=text, margins=(), **told)  # type: ignore[arg-type]
    if wrong_drive:
        text = f"No ranking: {wrong_drive}. --anyway ranks all the same."
        return Answer(outcome="wrong drive", text=text, margins=(), **told)  # type: ignore[arg-type]
    if is_open and any(t.waits and t.waits.overloaded for t in trials):
        return Answer(outcome="overloaded", text=_overloaded(trials), margins=(), **told)  # type: ignore[arg-type]
    found = field_of(trials, criterion, base, margin, seed)
    told["margins"] = tuple(_margin(found, i) for i in range(len(trials)))
    better = [i for i in range(len(trials)) if found.judge(i) == "better"]
    if what.contention is not None and what.contention < IDLE and not better:
        return Answer(outcome="idle", text=_idle(what), **told)  # type: ignore[arg-type]
    if better:
        return _better(found, better, told, seed)
    maybe = [i for i in range(len(trials)) if found.judge(i) == "cannot tell" and found.intervals[i].point > 0]
    if maybe:
        return _cannot_tell(found, max(maybe, key=lambda i: found.intervals[i].point), told)
    return Answer(outcome="keep", text=_keep(found), **told)  # type: ignore[arg-type]


def _margin(found: Field, i: int) -> Margin:
    interval = found.intervals[i]

    def percent(log: float) -> float | None:
        return None if math.isinf(log) else 100 * math.expm1(log)

    return Margin(
        scheduler=found.trials[i].variant.name,
        judgement=found.judge(i),
        ahead_percent=100 * math.expm1(interval.point),
        low_percent=percent(interval.low),
        high_percent=percent(interval.high),
        steady_percent=None if found.steady is None else 100 * found.steady[i],
    )


# --- sentences ---


def _percent(share: float) -> str:
    """Two digits of a small share, none behind the point of a large one."""
    if share and share < 0.01:
        return f"{100 * share:.2g}%"
    return f"{100 * share:.0f}%"


def _list(trials: Sequence[Trial], most: int = 4) -> str:
    found = [t.variant.name for t in trials]
    return names(found if len(found) <= most else [*found[: most - 1], f"{len(found) - most + 1} more"])


def _than(criterion: Criterion, log: float, base: Result) -> str:
    """How far ahead of the base a ratio's logarithm is, such as "programs wait 58% less than under mq-deadline"."""
    name = label(base)
    less = 1 - math.exp(-abs(log))  # of the greater, the less is so much less
    more = math.expm1(abs(log))
    if criterion == "waited":
        change = f"{_percent(less)} less than" if log >= 0 else _times(more, "long", "longer")
        return f"programs wait {change} under {name}"
    rises = (RANKINGS[criterion][2] < 0) == (log >= 0)
    change = _times(more, "high", "higher") if rises else f"{_percent(less)} lower than"
    return f"{noun(criterion, [base])} is {change} under {name}"


def _times(more: float, word: str, comparative: str) -> str:
    return f"{1 + more:.1f} times as {word} as" if more >= 1 else f"{_percent(more)} {comparative} than"


def _span(found: Field, i: int) -> str:
    """The interval of a trial, in the words of _than()."""
    criterion, interval = found.criterion, found.intervals[i]
    if math.isinf(interval.low) or math.isinf(interval.high):
        return "the sample is too small for an interval"
    if found.single:
        return "of one run each; --seeds 8 tells how sure that is"
    rises = RANKINGS[criterion][2] < 0
    low, high = (100 * math.expm1(log if rises else -log) for log in (interval.low, interval.high))
    more, less = ("longer", "less") if criterion == "waited" else ("more", "less")
    if low >= 100:
        return f"95% interval: {1 + low / 100:.1f} to {1 + high / 100:.1f} times"
    if low * high > 0:
        return f"95% interval: {abs(low):.0f} to {abs(high):.0f}% {more if low > 0 else less}"
    return f"95% interval: {abs(low):.0f}% {more if low > 0 else less} to {abs(high):.0f}% {more if high > 0 else less}"


def _better(found: Field, better: Sequence[int], told: dict[str, object], seed: int) -> Answer:
    """The best of those that are better than the base; within the margin of it, one that needs no module."""
    top = max(better, key=lambda i: found.intervals[i].point)
    by_top = field_of(found.trials, found.criterion, top, found.margin, seed)
    near = [i for i in better if by_top.intervals[i].point > -math.log1p(found.margin)]
    stock = [i for i in near if found.trials[i].variant.is_stock]
    best = max(stock or [top], key=lambda i: found.intervals[i].point)
    by_best = by_top if best == top else field_of(found.trials, found.criterion, best, found.margin, seed)
    trials = found.trials
    base, winner = trials[found.base].result, trials[best].result
    peers = [i for i in better if i != best and by_best.judge(i) == "equivalent"]
    near = [i for i in better if i != best and by_best.judge(i) == "cannot tell"]
    one = f"{label(winner)} is best: {_than(found.criterion, found.intervals[best].point, base)}"
    reason = versus(winner, base).split("; ")[0]
    sentences = [f"{one} ({_span(found, best)}), because {reason}."]
    if costs := _costs(winner, base):
        sentences.append(f"It costs: {costs}.")
    if peers:
        ours = "" if any(trials[i].variant.is_stock for i in peers) or not trials[best].variant.is_stock else ", with our modules"
        sentences.append(f"As good{ours}: {_list([trials[i] for i in peers])}.")
    if near:
        sentences.append(f"Not to be told apart from it: {_list([trials[i] for i in near])}.")
    return Answer(
        outcome="better",
        text=" ".join(sentences),
        best=label(winner),
        as_good=tuple(trials[i].variant.name for i in peers),
        **told,  # type: ignore[arg-type]
    )


def _cannot_tell(found: Field, i: int, told: dict[str, object]) -> Answer:
    """Of the most promising one: it may be better, but that is not shown."""
    trial, base, interval = found.trials[i], found.trials[found.base].result, found.intervals[i]
    name = trial.variant.name
    text = f"{name} may be better: {_than(found.criterion, interval.point, base)} ({_span(found, i)})"
    if interval.judge(found.margin) == "better":
        assert found.steady is not None
        share = f"{100 * found.steady[i]:.0f}%"
        text = f"Cannot tell: {text}, but small changes of think times and starts leave it ahead in only {share} of runs."
        return Answer(outcome="cannot tell", text=f"{text} Keep {label(base)}.", **told)  # type: ignore[arg-type]
    longer = interval.longer(found.margin)
    if trial.waits is None:
        return Answer(
            outcome="cannot tell",
            text=f"Cannot tell: {text}, depending on small changes of think times and starts. Keep {label(base)}.",
            **told,  # type: ignore[arg-type]
        )
    if math.isinf(interval.high):
        advice, times = "Record for a minute at least.", None
    elif longer > LONGEST:
        advice, times = f"A longer recording would hardly tell: keep {label(base)}.", None
    else:
        times = max(2, math.ceil(longer))
        advice = f"Record {times} times longer; until then, keep {label(base)}."
    return Answer(
        outcome="cannot tell",
        text=f"Cannot tell from this recording: {text}. {advice}",
        longer=times,
        **told,  # type: ignore[arg-type]
    )


def _idle(base: Trial) -> str:
    """Nothing is there to be ordered."""
    disk = base.result.disk
    quiet = disk.busy_s < QUIET * (disk.busy_s + disk.idle_s)
    why = "Your disk is nearly idle" if quiet else "Your disk serves requests as they come"
    share = _percent(base.contention or 0.0)
    return (
        f"{why}: no scheduler will matter. Only {share} of the requests found as many others under way as it takes at once, so"
        f" there is next to nothing to put in order. Keep {base.variant.name}."
    )


def _keep(found: Field) -> str:
    """Nothing is better than the base."""
    by: dict[str, list[Trial]] = {}
    for i, trial in enumerate(found.trials):
        by.setdefault(found.judge(i), []).append(trial)
    base = found.trials[found.base]
    what = "programs' waiting" if found.criterion == "waited" else noun(found.criterion, [base.result])
    parts = [f"Keep {base.variant.name}: nothing else is better by more than {_percent(found.margin)} of {what}."]
    said = {"equivalent": "Equivalent", "worse": "Worse", "cannot tell": "Behind it, though not for sure"}
    parts += [f"{word}: {_list(by[key])}." for key, word in said.items() if key in by]
    return " ".join(parts)


def _overloaded(trials: Sequence[Trial]) -> str:
    keep = [t for t in trials if t.waits and not t.waits.overloaded]
    share = max(t.waits.backlog for t in trials if t.waits)
    lag = max(t.waits.lag for t in trials if t.waits)
    how = f"more than {BACKLOG} requests were under way for up to {_percent(share)} of the time"
    if lag > LAG_SHARE:
        how += f", and the run took {_percent(lag)} longer"
    why = "Latencies of a queue that only grows mean nothing, so no ratio is given."
    if keep:
        return f"Only {_list(keep)} can keep up with this recording at its timestamps; under the others {how}. {why}"
    return (
        f"This drive cannot keep up with the recording at its timestamps, whatever the scheduler: {how}. {why} Choose the drive"
        " that was recorded, or --replay closed."
    )


def _costs(best: Result, base: Result) -> str:
    """What is worse than under the base, the greatest factors first; '' if nothing is."""
    worse: list[tuple[float, str]] = []

    def compare(what: str, ours: float, theirs: float, unit: str) -> None:
        factor = ours / theirs if theirs else math.inf if ours else 1.0
        if factor > 1 + COST:
            worse.append((factor, f"{what} {_digits(ours)}{unit} against {label(base)}'s {_digits(theirs)}{unit}"))

    for word, ours, theirs in (("read", best.read, base.read), ("write", best.write, base.write)):
        if ours and theirs:
            compare(f"99th percentile of {word} latency", ours.lat_ms.p99, theirs.lat_ms.p99, " ms")
            compare(f"mean {word} latency", ours.lat_ms.mean, theirs.lat_ms.mean, " ms")
    if best.throughput_mbps and base.throughput_mbps / best.throughput_mbps > 1 + COST:
        lost = f"throughput {_digits(best.throughput_mbps)} MB/s against {_digits(base.throughput_mbps)}"
        worse.append((base.throughput_mbps / best.throughput_mbps, lost))
    if best.fairness_jain and base.fairness_jain and base.fairness_jain / best.fairness_jain > 1 + COST:
        lost = f"fairness {best.fairness_jain:.2f} against {base.fairness_jain:.2f}"
        worse.append((base.fairness_jain / best.fairness_jain, lost))
    return "; ".join(text for _, text in sorted(worse, reverse=True)[:2])


def _digits(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
