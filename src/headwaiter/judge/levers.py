# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What may help beside another scheduler: a lower I/O class for a program in the background, and settings of the disk's queue.

Each lever is tried in the replay, under the scheduler that the verdict takes, as schedulers are tried: with the same changes of
the load, run by run against the same without it. A program that is told to have only what is left does not count: what the
others gain is told, and what it pays. mq-deadline and bfq know I/O classes; none and kyber do not, and so under these the lever
is tried together with a scheduler that does.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

import numpy as np

from headwaiter.engine.constants import Directions, IoprioClass, ioprio
from headwaiter.engine.sim import Forest, Load
from headwaiter.fio import JobLoad
from headwaiter.judge.conditions import Conditions
from headwaiter.judge.judge import Judged
from headwaiter.judge.verdict import COST, FELT, FELT_MS, span_text
from headwaiter.study.blame import background
from headwaiter.study.changes import latency_text
from headwaiter.study.inkernel import depth_of
from headwaiter.study.intervals import WINS, Interval, paired, wins
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.ranges import SHORT_IOS
from headwaiter.study.schema import Lever, Margin, ProgramPace, Result
from headwaiter.study.trial import Trial, measure_all
from headwaiter.study.variants import Variant

IDLE = ioprio(IoprioClass.IDLE, 0)
KNOW_CLASSES = ("mq-deadline", "bfq")
"""Schedulers of today's kernels that look at I/O classes."""
MOST_PROGRAMS = 3
"""So many programs are tried in the idle class, one at a time."""
_NUMBER = re.compile(r"\.\d+$")


@dataclass(frozen=True)
class _Tried:
    """A lever: what it is, and how the replay is made with it; `apart`: names of programs that do not count."""

    kind: str
    what: str
    variant: Variant
    load: Load
    conditions: Conditions
    apart: frozenset[str] = frozenset()
    apply: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()


def pull(judged: Judged, disk: str = "sdX", progress: Callable[[str, int], None] | None = None) -> list[Lever]:
    """The levers that help, the most helpful first; none where nothing is ranked, or a run takes long. `disk`: for commands.

    Each has as many runs as the schedulers had, for run i of one is compared with run i of another. Raises Problem as simulate().
    """
    if not judged.answer.margins or judged.criterion != "progress":
        return []
    if max(r.requests for r in judged.results) > SHORT_IOS:
        return []
    taken = next(t for t in judged.trials if t.variant.name == (judged.answer.best or judged.answer.baseline))
    tried = [*_classes(judged, taken), *_queue(judged, taken, disk)]
    if not tried:
        return []
    runs = taken.result.range.runs - 1 if taken.result.range else 0
    plain = _Tried("", "", taken.variant, judged.work.load, judged.conditions)
    without, *trials = (_measured(one, judged, runs, progress) for one in (plain, *tried))
    found = [lever for one, trial in zip(tried, trials, strict=True) if (lever := _told(one, trial, without))]
    best: dict[str, Lever] = {}
    for lever in sorted(found, key=_worth, reverse=True):
        best.setdefault(lever.kind if lever.kind != "class" else lever.what, lever)
    return list(best.values())


def _worth(lever: Lever) -> float:
    return lever.margin.ahead_percent


def _measured(one: _Tried, judged: Judged, runs: int, progress: Callable[[str, int], None] | None) -> Trial:
    """Its trial."""
    each = one.conditions.runs([one.variant], judged.drive, judged.work.trace, judged.recorded_under)
    return measure_all(each, judged.drive, one.load, runs, progress)[0]


# --- levers ---


def _classes(judged: Judged, taken: Trial) -> Iterator[_Tried]:
    """Each program in the background in the idle class, under a scheduler that knows classes."""
    knowing = [taken.variant] if taken.variant.scheduler in KNOW_CLASSES else []
    if not knowing:
        known = [t for t in judged.trials if t.variant.scheduler in KNOW_CLASSES]
        knowing = [t.variant for t in sorted(known, key=lambda t: -(t.result.progress_mbps or 0.0))[:2]]
    for name, groups, names in _background(judged):
        lowered = _lowered(judged.work.load, groups)
        for variant in knowing:
            how = f"ionice -c3 -p $(pidof {quote(name)})"
            back = f"ionice -c2 -n4 -p $(pidof {quote(name)})"
            yield _Tried("class", f"{name} in the idle class", variant, lowered, judged.conditions, names, (how,), (back,))


def _background(judged: Judged) -> list[tuple[str, frozenset[int], frozenset[str]]]:
    """Programs that may be lowered: (name, threads of control, names of those as results have them)."""
    load, trace = judged.work.load, judged.work.trace
    if isinstance(load, JobLoad):
        sections: dict[str, set[int]] = {}
        for task in load.tasks[: len(load.jobs)]:
            sections.setdefault(_NUMBER.sub("", task.name), set()).add(task.group)
        streams = {name for name, groups in sections.items() if all(_streams(load.jobs[g].fields) for g in _jobs(load, groups))}
        if not streams or len(streams) == len(sections):
            return []
        rates = {row.name: row.throughput_mbps for row in judged.results[0].programs or ()}

        def much(section: str) -> float:
            return sum(rate for name, rate in rates.items() if _NUMBER.sub("", name) == section)

        chosen = sorted(streams, key=much, reverse=True)[:MOST_PROGRAMS]
        names = {s: frozenset(t.name for t in load.tasks if t.group in sections[s]) for s in chosen}
        return [(s, frozenset(sections[s]), names[s]) for s in chosen if not _is_idle(load, sections[s])]
    if trace is None or not isinstance(load, Forest) or not trace.tasks_known:
        return []
    first: dict[int, str] = {}
    for task in load.tasks:
        first.setdefault(task.group, task.name)
    found = [one for one in background(trace) if not one.idle][:MOST_PROGRAMS]
    return [(one.program.name, frozenset(one.program.groups), frozenset(first[g] for g in one.program.groups)) for one in found]


def _jobs(load: JobLoad, groups: set[int]) -> list[int]:
    return [i for i, task in enumerate(load.tasks[: len(load.jobs)]) if task.group in groups]


def _streams(fields: Mapping[str, Any]) -> bool:
    """Goes through much data as fast as the disk lets it, while others do single things and think."""
    return not fields["think_ns"] and (not fields["random"] or fields["directions"] == Directions.WRITES)


def _is_idle(load: JobLoad, groups: set[int]) -> bool:
    return all(task.ioprio >= IDLE for task in load.tasks if task.group in groups)


def _lowered(load: Load, groups: frozenset[int]) -> Load:
    """The same with these threads of control in the idle class."""
    if isinstance(load, JobLoad):
        return replace(load, tasks=tuple(replace(t, ioprio=IDLE) if t.group in groups else t for t in load.tasks))
    assert isinstance(load, Forest)
    rows = np.isin(load.groups, list(groups))
    lowered = dataclasses.replace(load, ioprio=np.where(rows, IDLE, load.ioprio).astype(np.uint16))
    if isinstance(lowered, Ongoing) and lowered.recorded:
        recorded = _lowered(lowered.recorded, groups)
        assert isinstance(recorded, Forest)
        return replace(lowered, recorded=recorded)
    return lowered


def _queue(judged: Judged, taken: Trial, disk: str) -> Iterator[_Tried]:
    """Settings of the queue in sysfs."""
    conditions, load = judged.conditions, judged.work.load
    options = judged.options_of(taken)
    depth = depth_of(judged.drive, options)
    folder = f"/sys/block/{disk}"

    def one(kind: str, value: int, file: str, was: int, changed: Conditions) -> _Tried:
        lines = (f"echo {value} >{folder}/{file}",), (f"echo {was} >{folder}/{file}",)
        return _Tried(kind, f"{kind}={value}", taken.variant, load, changed, frozenset(), *lines)

    if depth > 1 and taken.variant.scheduler != "none":
        for fewer in sorted({1, max(1, depth // 8)}):
            yield one("queue_depth", fewer, "device/queue_depth", depth, replace(conditions, queue_depth=fewer))
    if taken.variant.scheduler != "none":
        for number in (max(4, options.nr_requests // 4), options.nr_requests * 4):
            yield one("nr_requests", number, "queue/nr_requests", options.nr_requests, replace(conditions, nr_requests=number))
    if options.wbt_depth and isinstance(load, JobLoad) and any(job.fields["buffered"] for job in load.jobs):
        yield one("wbt_lat_usec", 0, "queue/wbt_lat_usec", 75_000, replace(conditions, wbt_depth=0))


# --- what they are worth ---


def _told(one: _Tried, trial: Trial, without: Trial) -> Lever | None:
    """What a lever is worth, against the replay without it; None if it does not help."""
    by_progress = _gain(one, trial, without, _progress, less=False)
    by_tail = _gain(one, trial, without, _tail, less=True)
    others, before = _counted(trial.result, one.apart), _counted(without.result, one.apart)
    if not others or not before:
        return None
    worst, worst_before = (max((row.p99_ms or 0.0 for row in rows), default=0.0) for rows in (others, before))
    whom = "the others" if one.apart else "programs"
    single = len(trial.runs) == 1
    if by_progress.judge(0.05) == "better" and _steady(one, trial, without, _progress, less=False):
        said, gain = by_progress, f"{whom} get {_more(by_progress)} done"
    elif by_tail.judge(FELT) == "better" and worst_before - worst >= FELT_MS and by_progress.judge(0.05) != "worse":
        said, gain = by_tail, f"the 99th percentile of what {whom} wait for is {1 - math.exp(-by_tail.point):.0%} lower"
        gain += f" ({latency_text(worst)} against {latency_text(worst_before)} for the worst)"
    else:
        return None
    scheduler = "" if one.variant == without.variant else f" under {one.variant.name}"
    interval = "" if single else span_text("progress" if said is by_progress else "p99", said)
    text = f"{one.what}{scheduler}: {gain}{interval}"
    if costs := _costs(one, trial.result, without.result):
        text += f"; cost: {costs}"
    margin = Margin(
        scheduler=one.variant.name,
        judgement="better",
        ahead_percent=100 * math.expm1(said.point),
        low_percent=100 * math.expm1(said.low),
        high_percent=100 * math.expm1(said.high),
    )
    return Lever(kind=one.kind, what=one.what, text=f"{text}.", margin=margin, apply=one.apply, undo=one.undo)


def _counted(r: Result, apart: frozenset[str]) -> list[ProgramPace]:
    return [row for row in r.programs or () if row.name not in apart and row.counts]


def _progress(rows: Sequence[ProgramPace]) -> float:
    return float(np.exp(np.mean([math.log(max(row.throughput_mbps, 1e-9)) for row in rows]))) if rows else 0.0


def _tail(rows: Sequence[ProgramPace]) -> float:
    tails = [row.p99_ms for row in rows if row.p99_ms]
    return float(np.exp(np.mean(np.log(tails)))) if tails else 0.0


Figure = Callable[[Sequence[ProgramPace]], float]


def _figures(one: _Tried, trial: Trial, without: Trial, figure: Figure) -> list[list[float]]:
    return [[figure(_counted(r, one.apart)) for r in each.runs] for each in (without, trial)]


def _gain(one: _Tried, trial: Trial, without: Trial, figure: Figure, *, less: bool) -> Interval:
    return paired(_figures(one, trial, without, figure), 0, less)[1]


def _steady(one: _Tried, trial: Trial, without: Trial, figure: Figure, *, less: bool) -> bool:
    return wins(_figures(one, trial, without, figure), 0, less)[1] >= WINS


def _more(found: Interval) -> str:
    more = math.expm1(found.point)
    return f"{1 + more:.1f} times as much" if more >= 1 else f"{more:.0%} more"


def _costs(one: _Tried, ours: Result, theirs: Result) -> str:
    """Who gets less done, the worst first."""
    before = {row.name: row.throughput_mbps for row in theirs.programs or ()}
    lost = [
        (1 - row.throughput_mbps / before[row.name], row.name)
        for row in ours.programs or ()
        if (row.counts or row.name in one.apart) and before.get(row.name) and row.throughput_mbps < before[row.name] / (1 + COST)
    ]
    return ", ".join(f"{name} gets {share:.0%} less done" for share, name in sorted(lost, reverse=True)[:2])
