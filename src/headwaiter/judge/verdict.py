# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verdict of a comparison: which scheduler to take, how sure that is, and who pays for it, in plain sentences.

First come the schedulers of an unchanged kernel, with their settings: they are judged among themselves, so that their intervals
do not widen with the number of others. Then what a module would add to the one that is taken. A scheduler is taken because
programs get more done under it; where none is better by that, because the slowest hundredth of what they wait for is so much
shorter that they feel it. Whatever is taken, or kept, its cost is told: which program gets less done, and who waits longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headwaiter.base.figures import brief, digits
from headwaiter.engine.schedulers import find
from headwaiter.study.changes import change_words, interval_words, latency_text
from headwaiter.study.compare import RANKINGS, names, noun, versus
from headwaiter.study.intervals import WINS, Interval, bootstrap, bootstrap_rates, paired, wins
from headwaiter.study.ranges import read_latency
from headwaiter.study.schema import Answer, Criterion, Judgement, Margin, Result
from headwaiter.study.trial import Trial
from headwaiter.study.waits import BACKLOG, IDLE, LAG_SHARE, could_change

QUIET = 0.2
"""A device that is busy for a smaller share of the time is called idle."""
COST = 0.1
"""A figure that is worse by a greater share of itself is told as a cost."""
MOST_COSTS = 3
STARVED = 10.0
"""A longest wait that grows by such a factor is always told."""
FELT = 0.25
FELT_MS = 1.0
"""A 99th percentile that is lower by at least such a share, and by so much, is felt."""
LONGEST = 100
"""A recording that would have to be so many times longer is not asked for."""
STOCK_BASELINES = ("mq-deadline", "none")
"""Linux's default for a device with one queue, and for one with several."""
_PACES: tuple[Criterion, ...] = ("progress", "throughput", "waited")
"""Criteria that say nothing of tails."""


@dataclass(frozen=True)
class ComparedTrials:
    """Trials by a criterion, against one of them, whose place is `base`."""

    trials: Sequence[Trial]
    criterion: Criterion
    base: int
    intervals: Sequence[Interval]
    """The interval of each trial's ratio to the base."""
    steady: Sequence[float] | None
    """Share of perturbed runs that agree with the unperturbed one about that; None if nothing was perturbed."""
    margin: float
    single: bool
    """Each ran once, and there is no trace to draw from: intervals are points."""
    windows: int = 0
    """Number of windows of a longer recording that were replayed; 0: all of it was."""
    whose: str = ""
    """Which schedulers these are, as a sentence begins."""

    def judge(self, i: int) -> Judgement:
        """Return what may be said of a trial."""
        if i == self.base:
            return "baseline"
        said = self.intervals[i].judge(self.margin)
        if said in ("better", "worse") and self.steady is not None and self.steady[i] < WINS:
            return "cannot tell"
        return said

    def those(self, judgement: Judgement) -> list[int]:
        """Places of those of which that may be said."""
        return [i for i in range(len(self.trials)) if self.judge(i) == judgement]

    def against(self, base: int, seed: int) -> ComparedTrials:
        """Return the field with another baseline."""
        return field_of(self.trials, self.criterion, base, self.margin, seed, self.windows)


def baseline(trials: Sequence[Trial], current: str | None) -> int:
    """The place of the variant that others are held against: the one of that name, or a default of Linux, or the first."""
    found = [t.variant.name for t in trials]
    for name in (current, *STOCK_BASELINES):
        if name in found:
            return found.index(name)
    return 0


def field_of(
    trials: Sequence[Trial], criterion: Criterion, base: int, margin: float, seed: int, windows: int = 0
) -> ComparedTrials:
    """Return how sure it is what each trial is, by a criterion, against one of them; windows as in Field."""
    _, figure, sign = RANKINGS[criterion]
    runs = [[figure.of(r) for r in t.runs] for t in trials]
    steady = wins(runs, base, sign > 0) if len(runs[0]) > 1 else None
    intervals = _sampled(trials, criterion, base, seed, windows)
    single = intervals is None and steady is None
    return ComparedTrials(trials, criterion, base, intervals or paired(runs, base, sign > 0), steady, margin, single, windows)


def _sampled(trials: Sequence[Trial], criterion: Criterion, base: int, seed: int, windows: int) -> list[Interval] | None:
    """Intervals from a trace's cells; None if the criterion is neither a sum nor a rate, or there is no trace."""
    waits, programs = [t.waits for t in trials if t.waits], [t.programs for t in trials if t.programs]
    if len(waits) < len(trials):
        return None
    if criterion == "progress" and len(programs) == len(trials):
        counted = [(p.done[p.counts], p.active_ns[p.counts]) for p in programs]
        return bootstrap_rates([done for done, _ in counted], [active for _, active in counted], base, seed, windows)
    if criterion in ("waited", "latency"):
        costs = np.array([w.waited_ns if criterion == "waited" else w.latency_ns for w in waits])
        return bootstrap(costs, base, seed, windows)
    return None


def answer(
    trials: Sequence[Trial],
    criterion: Criterion,
    *,
    is_open: bool,
    current: str | None = None,
    margin: float = 0.05,
    seed: int = 0,
    wrong_drive: str = "",
    have: Collection[str] | None = None,
    windows: int = 0,
) -> Answer:
    """The verdict over trials of one load, in any order.

    `is_open`: an open replay, which may be overloaded. `wrong_drive`: why nothing may be ranked on this drive. `have`: schedulers
    that the kernel has, by their names here; None: those of an unchanged one. windows: as in Field.
    """
    base = baseline(trials, current)
    what = trials[base]
    said = Answer(
        outcome="alone",
        text=f"Only {what.variant.name} ran: there is nothing to compare.",
        by=criterion,
        baseline=what.variant.name,
        margin_percent=100 * margin,
        contention_percent=None if what.contention is None else 100 * what.contention,
        margins=(),
    )
    if len(trials) < 2:
        return said
    if wrong_drive:
        return replace(said, outcome="wrong drive", text=f"No ranking: {wrong_drive}. --anyway ranks all the same.")
    if is_open and any(t.waits and t.waits.overloaded for t in trials):
        return replace(said, outcome="overloaded", text=_overloaded(trials))
    kernel = [t.variant.is_stock if have is None else t.variant.scheduler in have for t in trials]
    stock = [i for i in range(len(trials)) if kernel[i] or i == base]
    family = stock if len(stock) > 1 else list(range(len(trials)))
    found = field_of([trials[i] for i in family], criterion, family.index(base), margin, seed, windows)
    theirs = all(kernel[i] for i in family if i != base)
    found = replace(found, whose="Of your kernel's schedulers" if theirs else "Of these schedulers")
    added = [base, *(i for i in range(len(trials)) if i not in family)]
    more = field_of([trials[i] for i in added], criterion, 0, margin, seed, windows)
    margins = {trials[i].variant.name: _margin(found, place) for place, i in enumerate(family)}
    margins |= {trials[i].variant.name: _margin(more, place) for place, i in enumerate(added) if i != base}
    said = replace(said, margins=tuple(margins[t.variant.name] for t in trials))
    said, taken = _of_family(found, said, seed)
    if len(added) > 1:
        said = _with_module(said, more, taken, seed)
    nothing_helps = said.outcome == "keep" and not said.module and not _tails(more, seed)
    if nothing_helps and not _could_change(what) and not more.those("cannot tell"):
        return replace(said, outcome="idle", text=_idle(what))
    return said


def _could_change(what: Trial) -> bool:
    """Whether anything is there that an order, or less of the processors' time, could change; True where that is not known."""
    if what.contention is None or what.contention >= IDLE:
        return True
    host = what.result.host
    return host is not None and could_change(host.processor_percent, host.lock_percent, what.slowdown)


def _of_family(found: ComparedTrials, said: Answer, seed: int) -> tuple[Answer, Trial]:
    """Return which of them to take, or to keep."""
    base = found.trials[found.base]
    if better := found.those("better"):
        return _better(found, better, said, seed)
    if (felt := _tails(found, seed)) is not None:
        return _better(replace(felt, whose=found.whose), felt.those("better"), said, seed, also=found)
    maybe = [i for i in found.those("cannot tell") if found.intervals[i].point > 0]
    if maybe:
        return _cannot_tell(found, max(maybe, key=lambda i: found.intervals[i].point), said), base
    return replace(said, outcome="keep", text=_keep(found)), base


def _tails(found: ComparedTrials, seed: int) -> ComparedTrials | None:
    """Those that are not worse than the base, by a 99th percentile that is so much lower that it is felt; None if none is."""
    if found.criterion not in _PACES:
        return None
    order = [found.base, *(i for i in range(len(found.trials)) if found.judge(i) in ("equivalent", "better", "cannot tell"))]
    trials = [found.trials[i] for i in order]
    if len(trials) < 2 or any(not (t.result.read or t.result.write) for t in trials):
        return None
    base_ms = read_latency(trials[0].result).p99
    felt = [t for t in trials[1:] if base_ms - read_latency(t.result).p99 >= FELT_MS]
    if not felt:
        return None
    tails = field_of([trials[0], *felt], "p99", 0, FELT, seed, found.windows)
    # A single run says nothing of a tail, unless it is all that there is to say anything.
    return tails if tails.those("better") and (found.single or not tails.single) else None


def _margin(found: ComparedTrials, i: int) -> Margin:
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
        return f"{brief(100 * share, 2)}%"
    return f"{100 * share:.0f}%"


def _list(trials: Sequence[Trial], most: int = 4) -> str:
    found = [t.variant.name for t in trials]
    return names(found if len(found) <= most else [*found[: most - 1], f"{len(found) - most + 1} more"])


def _than(found: ComparedTrials, i: int) -> str:
    """Return how far ahead of the base a trial is."""
    return ahead_words(found.criterion, found.intervals[i].point, found.trials[found.base])


def ahead_words(criterion: Criterion, log: float, base: Trial) -> str:
    """Return how far ahead of another trial one is, such as "programs get 58% more done than under mq-deadline"."""
    change = change_words(criterion, log, base.variant.name)
    if criterion == "progress":
        number, word, rest = change.partition(" less " if " less " in change else " more " if " more " in change else " much ")
        return f"programs get {number}{word}done {rest}"
    if criterion == "waited":
        return f"programs wait {change}"
    return f"{noun(criterion, [base.result])} is {change}"


def _span(found: ComparedTrials, i: int) -> str:
    """The interval of a trial, in the words of _than(), in brackets; "" where it says no more than that."""
    interval = found.intervals[i]
    if math.isinf(interval.low) or math.isinf(interval.high):
        return " (the sample is too small for an interval)"
    if found.single:
        return " (of one run each; --seeds 8 tells how sure that is)"
    return span_text(found.criterion, interval)


def span_text(by: Criterion, interval: Interval) -> str:
    """An interval in brackets; "" where no digit tells its ends apart."""
    words = interval_words(by, interval.low, interval.high)
    return f" (95% interval: {words})" if words else ""


def _better(
    found: ComparedTrials, better: Sequence[int], said: Answer, seed: int, also: ComparedTrials | None = None
) -> tuple[Answer, Trial]:
    """The best of those that are better than the base; within the margin of it, one without settings.

    also: by which none is better, where `found` is of another criterion.
    """
    top = max(better, key=lambda i: found.intervals[i].point)
    by_top = found.against(top, seed)
    close = math.log1p(min(found.margin, 0.05))
    near = [i for i in better if by_top.intervals[i].point > -close]
    plain = [i for i in near if found.trials[i].variant.name == found.trials[i].variant.scheduler]
    best = max(plain or near, key=lambda i: found.intervals[i].point)
    by_best = by_top if best == top else found.against(best, seed)
    trials, base, winner = found.trials, found.trials[found.base], found.trials[best]
    peers = [i for i in better if i != best and by_best.judge(i) == "equivalent"]
    tied = [i for i in better if i != best and by_best.judge(i) == "cannot tell"]
    reason = versus(winner.result, base.result).split("; ")[0]
    even = ""
    if also:
        even = (
            "programs get about as much done, and "
            if also.criterion == "progress"
            else f"{noun(also.criterion, [base.result])} stays about the same, and "
        )
    one = f"{found.whose}: {winner.variant.name}; {even}{_than(found, best)}{_span(found, best)}"
    sentences = [one + (f", because {reason}." if reason else ".")]
    if costs := _costs(winner, base):
        sentences.append(f"It costs: {'; '.join(text for _, text in costs)}.")
    if peers:
        sentences.append(f"As good: {_list([trials[i] for i in peers])}.")
    if tied:
        sentences.append(f"Statistically tied with it: {_list([trials[i] for i in tied])}.")
    told = replace(
        said,
        outcome="better",
        by=found.criterion,
        text=" ".join(sentences),
        best=winner.variant.name,
        as_good=tuple(trials[i].variant.name for i in peers),
    )
    return told, winner


def _with_module(said: Answer, more: ComparedTrials, taken: Trial, seed: int) -> Answer:
    """Add what schedulers that need a module (all but the base of these) would bring beyond the one to take."""
    trials, margin = [taken, *(t for i, t in enumerate(more.trials) if i != more.base)], more.margin
    found = field_of(trials, more.criterion, 0, margin, seed, more.windows)
    better = found.those("better")
    unsure = [i for i in found.those("cannot tell") if found.intervals[i].point > math.log1p(margin)]
    if better:
        best = max(better, key=lambda i: found.intervals[i].point)
        winner = trials[best]
        name = find(winner.variant.scheduler).kernel_name
        called = winner.variant.name if winner.variant.name == name else f"{winner.variant.name} ({name} in the kernel)"
        text = f"With a module, {called}: {_than(found, best)}{_span(found, best)}"
        costs = _costs(winner, trials[0])
        text += f"; it costs: {'; '.join(one for _, one in costs)}." if costs else "."
        said = replace(said, module=winner.variant.name, module_margin=_margin(found, best), module_text=text)
    elif unsure:
        best = max(unsure, key=lambda i: found.intervals[i].point)
        told = f"{_than(found, best)} with {trials[best].variant.name}{_inner(_span(found, best))}"
        text = f"Whether a module would add to that cannot be told ({told})."
    else:
        text = "No module would add to that."
    return replace(said, text=f"{said.text} {text}")


def _inner(span: str) -> str:
    """A span that is in brackets already."""
    return span.replace(" (", "; ").replace(")", "")


def _cannot_tell(found: ComparedTrials, i: int, said: Answer) -> Answer:
    """Say of the most promising one that it may be better, but that this is not shown."""
    trial, interval = found.trials[i], found.intervals[i]
    base = found.trials[found.base].variant.name
    name = trial.variant.name
    text = f"{name} may be better: {_than(found, i)}{_span(found, i)}"
    if interval.judge(found.margin) == "better":
        assert found.steady is not None
        share = f"{100 * found.steady[i]:.0f}%"
        text = f"Cannot tell: {text}, but small changes of think times and starts leave it ahead in only {share} of runs."
        return replace(said, outcome="cannot tell", text=f"{text} Keep {base}.")
    longer = interval.longer(found.margin)
    if trial.waits is None:
        text = f"Cannot tell: {text}, depending on small changes of think times and starts. Keep {base}."
        return replace(said, outcome="cannot tell", text=text)
    if math.isinf(interval.high):
        advice, times = "Record for a minute at least.", None
    elif longer > LONGEST:
        advice, times = f"A longer recording would hardly tell: keep {base}.", None
    else:
        times = max(2, math.ceil(longer))
        advice = f"Record {times} times longer; until then, keep {base}."
    return replace(said, outcome="cannot tell", text=f"Cannot tell from this recording: {text}. {advice}", longer=times)


def _idle(base: Trial) -> str:
    """Nothing is there to be ordered."""
    disk = base.result.disk
    quiet = disk.busy_s < QUIET * (disk.busy_s + disk.idle_s)
    why = "Your disk is nearly idle" if quiet else "Your disk serves requests as they come"
    share, host = _percent(base.contention or 0.0), base.result.host
    busy = f", processors are busy for {host.processor_percent:.0f}% of the time" if host else ""
    return (
        f"{why}: no scheduler will matter. Only {share} of the requests found as many others under way as it takes at once{busy},"
        " and under no scheduler do programs get more done, or wait less for the slowest of what they read."
        f" Keep {base.variant.name}."
    )


def _keep(found: ComparedTrials) -> str:
    """Nothing is better than the base."""
    base = found.trials[found.base]
    name = base.variant.name
    what = {"progress": "gets programs", "waited": "makes programs wait"}.get(found.criterion)
    much = {"progress": "more done", "waited": "less"}.get(found.criterion)
    least = _percent(found.margin)
    text = f"{found.whose}: keep {name}; "
    text += (
        f"no other {what} more than {least} {much}."
        if what
        else f"no other is better by more than {least} of {noun(found.criterion, [base.result])}."
    )
    parts = [text]
    said: dict[Judgement, str] = {"equivalent": "Equivalent", "worse": "Worse", "cannot tell": "Behind it, though not for sure"}
    parts += [f"{word}: {_list([found.trials[i] for i in these])}." for key, word in said.items() if (these := found.those(key))]
    spared = [
        (factor, text) for i in range(len(found.trials)) if i != found.base for factor, text in _costs(base, found.trials[i])
    ]
    if spared:
        parts.append(f"It costs: {max(spared)[1]}.")
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


def _costs(best: Trial, base: Trial) -> list[tuple[float, str]]:
    """What is worse than under the base, with the factors: who gets less done, and who waits for longer; the greatest first."""
    worse: list[tuple[float, str]] = []
    always: list[tuple[float, str]] = []
    name = base.variant.name

    def compare(what: str, ours: float, theirs: float) -> None:
        if ours - theirs >= FELT_MS and ours > theirs * (1 + COST):
            factor = ours / theirs if theirs else math.inf
            to = always if factor >= STARVED and what.endswith("longest wait") else worse
            to.append((factor, f"{what} is {latency_text(ours)} against {name}'s {latency_text(theirs)}"))

    mine, other = best.programs, base.programs
    if mine and other and mine.names == other.names:
        counts = np.flatnonzero(mine.counts & other.counts)
        share = mine.mbps[counts] / other.mbps[counts]
        least = int(np.argmin(share))
        if share[least] < 1 / (1 + COST):
            lost = f"{mine.names[counts[least]]} gets {_percent(1 - share[least])} less done than under {name}"
            worse.append((float(1 / share[least]), lost))
        tails = {"99th percentile of latency": (mine.p99_ms, other.p99_ms), "longest wait": (mine.max_ms, other.max_ms)}
        for word, (ours, theirs) in tails.items():
            there = counts[~np.isnan(ours[counts]) & ~np.isnan(theirs[counts])]
            if len(there):
                most = there[int(np.argmax(ours[there] / np.maximum(theirs[there], FELT_MS)))]
                compare(f"{mine.names[most]}'s {word}", float(ours[most]), float(theirs[most]))
    else:
        _compare_directions(best.result, base.result, compare)
    a, b = best.result.throughput_mbps, base.result.throughput_mbps
    if a and b / a > 1 + COST:
        worse.append((b / a, f"throughput is {digits(a)} MB/s against {name}'s {digits(b)}"))
    found = [*sorted(always, reverse=True), *sorted(worse, reverse=True)]
    return found[:MOST_COSTS]


def _compare_directions(best: Result, base: Result, compare: Callable[[str, float, float], None]) -> None:
    """Compare reads and writes, where programs are not known."""
    for word, ours, theirs in (("read", best.read, base.read), ("write", best.write, base.write)):
        if ours and theirs:
            compare(f"99th percentile of {word} latency", ours.lat_ms.p99, theirs.lat_ms.p99)
            compare(f"{word}s' longest wait", ours.lat_ms.max, theirs.lat_ms.max)
