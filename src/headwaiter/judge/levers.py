# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What may help beside another scheduler: a lower I/O class for a program in the background, and settings of queues and memory.

Each lever is tried in the replay, under the scheduler that the verdict takes, as schedulers are tried: with the same changes of
the load, run by run against the same without it. A program that is told to have only what is left does not count: what the
others gain is told, and what it pays. mq-deadline and bfq know I/O classes; none and kyber do not, and so under these the lever
is tried together with a scheduler that does. Those that help are then tried together, and the best set is held against what is
in force now.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

import numpy as np

from headwaiter.base.threads import is_kernel_thread
from headwaiter.engine.constants import Directions, IoprioClass, ioprio
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Forest, Load
from headwaiter.fio import JobLoad
from headwaiter.fio.jobs import READAHEAD_BYTES
from headwaiter.judge.judge import Judged
from headwaiter.judge.worth import ahead_percent, worth
from headwaiter.study.blame import background
from headwaiter.study.inkernel import depth_of
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.ranges import SHORT_IOS
from headwaiter.study.schema import Lever, Margin
from headwaiter.study.trial import Trial, measure_all
from headwaiter.study.variants import Variant

IDLE = ioprio(IoprioClass.IDLE, 0)
KNOW_CLASSES = ("mq-deadline", "bfq")
"""Schedulers of today's kernels that look at I/O classes."""
MOST_PROGRAMS = 3
"""So many programs are tried in the idle class, one at a time."""
FILES = {
    "nr_requests": "queue/nr_requests",
    "wbt_lat_usec": "queue/wbt_lat_usec",
    "read_ahead_kb": "queue/read_ahead_kb",
    "queue_depth": "device/queue_depth",
}
"""Settings of a disk: where they stand beneath its folder in sysfs."""
READ_AHEAD_KB = READAHEAD_BYTES >> 10
DIRTY_MIB = (64, 16)
"""Limits of dirty pages that are tried."""
_MOST_PIDS = 4
_NUMBER = re.compile(r"\.\d+$")


@dataclass(frozen=True)
class LeverQueue:
    """The queues whose settings a lever would change. in_force: by the names of FILES; None: the disks are not known.

    A disk that is known lacks the settings that are not there.
    """

    disks: tuple[str, ...] = ("sdX",)
    in_force: Mapping[str, int] | None = None

    def lets(self, name: str) -> bool:
        """Return whether it may have a setting."""
        return self.in_force is None or name in self.in_force

    def now(self, name: str, usual: int) -> int:
        """A setting as it is in force, or as it is usual where that is not known."""
        return usual if self.in_force is None else self.in_force[name]

    def lines(self, settings: Mapping[str, int]) -> tuple[str, ...]:
        """Lines for a shell that put settings."""
        return tuple(f"echo {value} >/sys/block/{disk}/{FILES[name]}" for disk in self.disks for name, value in settings.items())


UNKNOWN_QUEUE = LeverQueue()


@dataclass(frozen=True)
class _Tried:
    """Levers that are tried at once: what they are, and how the replay is made with them.

    lowered: threads of control that get the idle class; apart: names of programs that do not count; settings: of the queue, each
    with what is in force; conditions: fields of Conditions that are otherwise; read_ahead: so many times the kernel's; apply,
    undo: commands beside the settings.
    """

    kinds: tuple[str, ...]
    what: tuple[str, ...]
    variant: Variant
    lowered: frozenset[int] = frozenset()
    apart: frozenset[str] = frozenset()
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    conditions: Mapping[str, int] = field(default_factory=dict)
    read_ahead: int = 1
    apply: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()

    def with_(self, other: _Tried) -> _Tried:
        """Both at once."""
        return _Tried(
            kinds=(*self.kinds, *other.kinds),
            what=(*self.what, *other.what),
            variant=self.variant,
            lowered=self.lowered | other.lowered,
            apart=self.apart | other.apart,
            settings={**self.settings, **other.settings},
            conditions={**self.conditions, **other.conditions},
            read_ahead=self.read_ahead * other.read_ahead,
            apply=(*self.apply, *other.apply),
            undo=(*self.undo, *other.undo),
        )


@dataclass(frozen=True)
class _Pulled:
    """Levers with what came of them."""

    tried: _Tried
    trial: Trial
    lever: Lever


def pull(judged: Judged, queue: LeverQueue = UNKNOWN_QUEUE, progress: Callable[[str, int], None] | None = None) -> list[Lever]:
    """The levers that help, the best set first, then the most helpful; none where nothing is ranked, or jobs run for long.

    Each has as many runs as the schedulers had, for run i of one is compared with run i of another. progress(levers, I/Os done)
    comes from any thread. Raises Problem as simulate().
    """
    if not judged.answer.margins or judged.criterion != "progress":
        return []
    # A recording of whatever length is a sample, which tells how sure a gain is; a long run of jobs tells nothing of that.
    if judged.work.trace is None and max(r.requests for r in judged.results) > SHORT_IOS:
        return []
    by_name = {trial.variant.name: trial for trial in judged.trials}
    now = by_name[judged.answer.baseline]
    taken = by_name[judged.answer.best or judged.answer.baseline]
    bench = _Bench(judged, now, queue, progress, taken.result.range.runs - 1 if taken.result.range else 0)
    helpful = bench.helpful(taken)
    sets = [bench.together(helpful)]
    if now is not taken:
        sets.append(bench.together(bench.helpful(now), rival=taken))
    ranked = sorted((one for one in sets if one), key=lambda one: -one.margin.ahead_percent)
    return [*ranked[:1], *(one.lever for one in helpful)]


class _Bench:
    """The bench on which levers are tried. now: the trial of the scheduler in force."""

    def __init__(
        self, judged: Judged, now: Trial, queue: LeverQueue, progress: Callable[[str, int], None] | None, runs: int
    ) -> None:
        self.judged, self.now, self.queue, self.progress, self.runs = judged, now, queue, progress, runs
        self._plain: dict[str, Trial] = {}

    def plain(self, variant: Variant) -> Trial:
        """A scheduler with nothing beside it: again, for the judge's trial may not have what each program got."""
        return self.beside(variant, [])[0]

    def beside(self, variant: Variant, tried: Sequence[_Tried]) -> tuple[Trial, list[Trial]]:
        """That, and trials of levers, at once."""
        known = self._plain.get(variant.name)
        trials = self.measured([*([] if known else [_Tried((), (), variant)]), *tried])
        self._plain[variant.name] = known = known or trials.pop(0)
        return known, trials

    def helpful(self, taken: Trial) -> list[_Pulled]:
        """Return the lever of each kind that helps most beside a scheduler, the most helpful first."""
        judged = self.judged
        tried = [*_classes(judged, taken), *_queue(judged, taken, self.queue), *_memory(judged, taken)]
        if not tried:
            return []
        without, trials = self.beside(taken.variant, tried)
        pairs = zip(tried, trials, strict=True)
        found = [_Pulled(one, trial, lever) for one, trial in pairs if (lever := self.told(one, trial, without))]
        best: dict[str, _Pulled] = {}
        for one in sorted(found, key=lambda one: -one.lever.margin.ahead_percent):
            best.setdefault(one.lever.kind if one.lever.kind != "class" else one.lever.what, one)
        return list(best.values())

    def measured(self, tried: Sequence[_Tried]) -> list[Trial]:
        """Their trials."""
        with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
            return list(pool.map(self._measured, tried))

    def _measured(self, one: _Tried) -> Trial:
        judged = self.judged
        conditions = replace(judged.conditions, **one.conditions)  # type: ignore[arg-type]
        each = conditions.runs([one.variant], judged.drive, judged.work.trace, judged.recorded_under)
        load = _read_ahead(_lowered(judged.work.load, one.lowered), one.read_ahead)
        name, progress = " and ".join(one.what) or one.variant.name, self.progress
        tick = (lambda _, done: progress(name, done)) if progress else None
        return measure_all(each, judged.drive, load, self.runs, tick)[0]

    def told(self, one: _Tried, trial: Trial, without: Trial, what: str = "") -> Lever | None:
        """Return what levers are worth against a trial without them; None if they do not help."""
        scheduler = "" if one.variant == without.variant else f" under {one.variant.name}"
        found = self.worth(what or f"{one.what[0]}{scheduler}", one, trial, without)
        if not found:
            return None
        put = {name: value for name, (value, _) in one.settings.items()}
        return Lever(
            kind="set" if what else one.kinds[0],
            what=" and ".join(one.what),
            text=found[0],
            margin=found[1],
            settings=put,
            apply=(*self.queue.lines(put), *one.apply),
            undo=(*self.queue.lines({name: was for name, (_, was) in one.settings.items()}), *one.undo),
        )

    def worth(self, what: str, one: _Tried, trial: Trial, without: Trial) -> tuple[str, Margin] | None:
        """See worth()."""
        return worth(what, one.apart, trial, without, self.judged.conditions.seed, self.judged.work.windows)

    def together(self, found: Sequence[_Pulled], rival: Trial | None = None) -> Lever | None:
        """The best set of these, held against the scheduler in force with nothing beside it.

        Each lever joins if it helps beside those that are in. None if it is a single thing to do; with a `rival`, another
        scheduler with nothing beside it, that may be, but the same programs must get more done than under that.
        """
        if not found:
            return None
        best = found[0]
        one, trial = best.tried, best.trial
        for other in found[1:]:
            if other.tried.variant != one.variant or set(other.tried.settings) & set(one.settings):
                continue
            both = one.with_(other.tried)
            (more,) = self.measured([both])
            if self.worth("", both, more, trial):
                one, trial = both, more
        now = self.now.variant.name
        parts = [*([one.variant.name] if one.variant.name != now else []), *one.what]
        if len(parts) == 1 and rival is None:
            return None
        listed = f"Together, {', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else f"Or stay with {now}, and {parts[0]}"
        plain = self.plain(self.now.variant)
        lever = self.told(one, trial, plain, f"{listed}, against {now} alone")
        if not lever:
            return None
        # The lever's own margin may be of a tail, or of a sample's cells: both are held by one figure here.
        if rival and ahead_percent(one.apart, trial, plain) <= ahead_percent(one.apart, self.plain(rival.variant), plain):
            return None
        return replace(lever, what=" and ".join(parts))


# --- levers ---


def _classes(judged: Judged, taken: Trial) -> Iterator[_Tried]:
    """Each program in the background in the idle class, under a scheduler that knows classes."""
    knowing = [taken.variant] if taken.variant.scheduler in KNOW_CLASSES else []
    if not knowing:
        known = [t for t in judged.trials if t.variant.scheduler in KNOW_CLASSES]
        knowing = [t.variant for t in sorted(known, key=lambda t: -(t.result.progress_mbps or 0.0))[:2]]
    for name, groups, names in _background(judged):
        pids = _pids(judged.work.load, name, groups, names)
        for variant in knowing:
            how, back = f"ionice -c3 -p {pids}", f"ionice -c2 -n4 -p {pids}"
            what = (f"{name} in the idle class",)
            yield _Tried(("class",), what, variant, lowered=groups, apart=names, apply=(how,), undo=(back,))


def _pids(load: Load, name: str, groups: frozenset[int], names: frozenset[str]) -> str:
    """Return the processes of a program, for ionice -p: by their name, unless others have it, too, and they are few.

    Many processes are short-lived ones, whose numbers are of no use.
    """
    if not isinstance(load, Forest):
        return f"$(pidof {quote(name)})"
    called = sorted(one for one in names if not is_kernel_thread(one))
    pids = [str(task.id) for task in load.tasks if task.group in groups]
    if len(pids) <= _MOST_PIDS and any(task.group not in groups and task.name in called for task in load.tasks):
        return " ".join(pids)
    return f"$(pidof {' '.join(map(quote, called))})"


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
    found = []
    for one in background(trace):
        whose = frozenset(first[group] for group in one.program.groups)
        # A thread of the kernel has the class of whoever's work it does.
        if not one.idle and not all(is_kernel_thread(name) for name in whose):
            found.append((one.program.name, frozenset(one.program.groups), whose))
    return found[:MOST_PROGRAMS]


def _jobs(load: JobLoad, groups: set[int]) -> list[int]:
    return [i for i, task in enumerate(load.tasks[: len(load.jobs)]) if task.group in groups]


def _streams(fields: Mapping[str, Any]) -> bool:
    """Goes through much data as fast as the disk lets it, while others do single things and think."""
    return not fields["think_ns"] and (not fields["random"] or fields["directions"] == Directions.WRITES)


def _is_idle(load: JobLoad, groups: set[int]) -> bool:
    return all(task.ioprio >= IDLE for task in load.tasks if task.group in groups)


def _lowered(load: Load, groups: frozenset[int]) -> Load:
    """Return the load with these threads of control in the idle class."""
    if isinstance(load, JobLoad):
        return replace(load, tasks=tuple(replace(t, ioprio=IDLE) if t.group in groups else t for t in load.tasks))
    assert isinstance(load, Forest)
    rows = np.isin(load.groups, list(groups))
    lowered = dataclasses.replace(load, ioprio=np.where(rows, IDLE, load.ioprio).astype(np.uint16))
    if load.free is not None:
        free = _lowered(load.free, groups)
        assert isinstance(free, Forest)
        lowered = dataclasses.replace(lowered, free=free)
    if isinstance(lowered, Ongoing) and lowered.recorded:
        recorded = _lowered(lowered.recorded, groups)
        assert isinstance(recorded, Forest)
        return replace(lowered, recorded=recorded)
    return lowered


def _read_ahead(load: Load, times: int) -> Load:
    """Return the load with larger windows of reading ahead."""
    if times == 1 or not isinstance(load, JobLoad):
        return load
    larger = (replace(j, fields={**j.fields, "readahead_bytes": j.fields["readahead_bytes"] * times}) for j in load.jobs)
    return replace(load, jobs=tuple(larger))


def _queue(judged: Judged, taken: Trial, queue: LeverQueue) -> Iterator[_Tried]:
    """Settings of the disk in sysfs."""
    load, options = judged.work.load, judged.options_of(taken)
    depth = depth_of(judged.drive, options)
    under_none = taken.variant.scheduler == "none"

    def one(name: str, value: int, was: int, *, read_ahead: int = 1, **changed: int) -> _Tried:
        what, put = (f"{name}={value}",), {name: (value, was)}
        return _Tried((name,), what, taken.variant, settings=put, conditions=changed, read_ahead=read_ahead)

    if depth > 1 and not under_none and queue.lets("queue_depth"):
        for fewer in sorted({1, max(1, depth // 8)}):
            yield one("queue_depth", fewer, queue.now("queue_depth", depth), queue_depth=fewer)
    if queue.lets("nr_requests"):
        number = queue.now("nr_requests", options.nr_requests)
        for other in _numbers(number, depth, under_none, getattr(judged.drive, "rotational", True)):
            yield one("nr_requests", other, number, nr_requests=other)
    throttled = isinstance(load, JobLoad) and _buffered(load, Directions.WRITES)
    # Of what was recorded only writes that came unthrottled are throttled in the replay.
    unthrottled = bool(judged.recorded_under) and find(judged.recorded_under or "").is_unthrottled
    throttled |= unthrottled and not find(taken.variant.scheduler).is_unthrottled
    if options.wbt_depth and throttled and queue.lets("wbt_lat_usec"):
        told = options.told_rotational or (1 if getattr(judged.drive, "rotational", True) else 2)
        usual = 75_000 if told == 1 else 2_000
        yield one("wbt_lat_usec", 0, queue.now("wbt_lat_usec", usual), wbt_depth=0)
    if isinstance(load, JobLoad) and any(job.fields["readahead_bytes"] for job in load.jobs) and queue.lets("read_ahead_kb"):
        for times in (4, 16):
            yield one("read_ahead_kb", READ_AHEAD_KB * times, queue.now("read_ahead_kb", READ_AHEAD_KB), read_ahead=times)


def _numbers(now: int, depth: int, under_none: bool, rotational: bool) -> list[int]:
    """What to try in place of nr_requests. Without a scheduler they are the device's own, and blk-mq refuses more.

    A disk that takes many at once serves them as they come, or as it likes: few of them are then what a scheduler is elsewhere.
    """
    found = [] if under_none else [max(4, now // 4), now * 4]
    if rotational and depth > now // 4:
        found += [max(4, now // 8), max(4, now // 32)]
    return sorted(number for number in set(found) if number < now or not under_none)


def _memory(judged: Judged, taken: Trial) -> Iterator[_Tried]:
    """Limits of what is dirty, where jobs write through the page cache: a recording does not have what was not written back."""
    load = judged.work.load
    if not isinstance(load, JobLoad) or not _buffered(load, Directions.WRITES):
        return
    for mib in DIRTY_MIB:
        limit = mib << 20
        put = {"dirty_background_bytes": limit // 2, "dirty_bytes": limit}
        how = "sysctl -w " + " ".join(f"vm.{name}={value}" for name, value in put.items())
        back = "sysctl -w vm.dirty_background_ratio=10 vm.dirty_ratio=20"
        yield _Tried(("dirty_bytes",), (f"vm.dirty_bytes={limit}",), taken.variant, conditions=put, apply=(how,), undo=(back,))


def _buffered(load: JobLoad, directions: int) -> bool:
    """Return whether a job goes through the page cache that way."""
    return any(job.fields["buffered"] and job.fields["directions"] & directions for job in load.jobs)
