# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which scheduler for this disk, with which settings, and is it really better? The answer from a recording, with evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from headwaiter.advice.gate import gate, told
from headwaiter.advice.schema import Advice, AdviceKind, AdviseDocument, Gate, Goal
from headwaiter.base.errors import Problem
from headwaiter.engine.schedulers import catalogue, find, known
from headwaiter.engine.sim import Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import Judged, judge
from headwaiter.judge.levers import FILES, UNKNOWN_QUEUE, LeverQueue, pull
from headwaiter.judge.verdict import STOCK_BASELINES
from headwaiter.queue.devices import Device
from headwaiter.queue.losses import Uses, losses
from headwaiter.queue.others import acting_on
from headwaiter.queue.schema import Foreign
from headwaiter.queue.settings import (
    NR_REQUESTS,
    TUNABLES,
    UNKNOWN_FOLDER,
    Settings,
    by_way_of_none,
    commands,
    kept_requests,
)
from headwaiter.study.inkernel import POSITIONS, depth_of
from headwaiter.study.schema import Answer, Fit, Lever, Replayed
from headwaiter.study.variants import Variant, candidates, default_set, parse_variant
from headwaiter.study.workload import CLOSED, Workload
from headwaiter.traces.recording import Recording
from headwaiter.tuning.tune import tune

STOCK = ("none", "mq-deadline", "kyber", "bfq")
"""Schedulers of today's kernels, for use without a device."""


@dataclass(frozen=True)
class Target:
    """The device that is to be advised. legs: where the scheduler acts; settings: those of each; names as the kernel has them."""

    device: Device
    legs: tuple[Device, ...]
    settings: tuple[Settings, ...]
    offered: tuple[str, ...]
    loadable: tuple[str, ...] = ()
    uses: Uses = field(default_factory=Uses)
    foreign: tuple[Foreign, ...] = ()


@dataclass(frozen=True)
class Advised:
    """The advice, and what it rests on.

    before: the settings in force, as far as they are known; wanted: those to be applied, None where all is to stay.
    """

    work: Workload
    drive: Drive
    goal: Goal
    target: Target | None
    before: Settings
    current: str
    offered: tuple[str, ...]
    gate: Gate
    answer: Answer | None
    losses: tuple[str, ...]
    fit: Fit | None
    advice: tuple[Advice, ...]
    muted: tuple[str, ...]
    wanted: Settings | None
    notes: tuple[str, ...]
    replayed: Replayed | None = None

    def document(self, applied: bool) -> AdviseDocument:
        """Return what `headwaiter advise --json` prints."""
        return AdviseDocument(
            workload=self.work.name,
            device=self.target.device.identity if self.target else None,
            legs=[leg.name for leg in self.target.legs] if self.target else [],
            drive=self.drive.name,
            goal=self.goal,
            replay=self.work.replay,
            current=self.current,
            offered=self.offered,
            gate=self.gate,
            answer=self.answer,
            losses=self.losses,
            fit=self.fit,
            replayed=self.replayed,
            advice=self.advice,
            muted=self.muted,
            applied=applied,
            notes=self.notes,
        )


def advise(
    work: Workload,
    drive: Drive,
    conditions: RunConditions,
    *,
    target: Target | None = None,
    goal: Goal = "progress",
    margin: float = 0.05,
    recorded: Recording | None = None,
    anyway: bool = False,
    mute: Sequence[str] = (),
    trials: int = 0,
    modules: bool = True,
    progress: Callable[[str, int], None] | None = None,
) -> Advised:
    """Judge a recording: the gate; then a replay under every scheduler against the one in force, each with a few settings.

    trials: of so many settings of the scheduler to take the best ones are searched (tuning/), and are advised if they are better
    where the search has not looked. recorded: what its archive tells, if it is one. anyway: judge behind a closed gate and on a
    doubtful drive, too. mute: identifiers of advice to be left out. modules: try schedulers that the kernel lacks, too. Problem
    if the workload is no recording, or the goal cannot be judged by it.
    """
    trace = work.trace
    if trace is None:
        raise Problem(f"{work.name}: advice needs a recording (headwaiter compare takes job files, too)")
    settings = target.settings[0] if target else recorded_settings(recorded)
    offered = tuple(dict.fromkeys((*target.offered, *target.loadable))) if target else recorded_schedulers(recorded) or STOCK
    current, base = _incumbent(settings)
    options = conditions.options(drive, trace)
    depth, lost, seconds = depth_of(drive, options), recorded.lost if recorded else 0, recorded.seconds if recorded else None
    opened = gate(trace, depth, lost, seconds, conditions.host_of(drive), options.cores)
    notes = _notes(work, settings, current, elsewhere(target, recorded))
    in_force = settings.scheduler if settings else current
    found = Advised(
        work, drive, goal, target, settings or Settings(in_force), in_force, offered, opened, None, (), None, (), (), None, notes
    )
    if not opened.open and not anyway:
        return _with(found, [_advice(found, "recording", told(opened), "record")], mute)
    here = [name for name in known(offered).values()]
    others = [name for name in default_set() if name not in here] if modules else []
    incumbent = _told(_variant(current, base), settings)
    rivals = (_beside(base, current, parse_variant(one)) for one in candidates([*here, *others]) if one != current)
    variants = [incumbent, *(v for v in rivals if v.name != incumbent.name)]
    judged = judge(
        work,
        drive,
        variants,
        conditions,
        by=None if goal == "progress" else goal,
        current=incumbent.name,
        have=here,
        recorded_under=scheduler_of(recorded_settings(recorded)),
        margin=margin,
        anyway=anyway,
        tasks=False,
        progress=progress,
    )
    if judged.criterion == "fairness" and any(r.fairness_jain is None for r in judged.results):
        raise Problem(f"{work.name}: --goal fairness needs several programs at once")
    if trials and judged.answer.margins:
        judged, more = _searched(judged, work, trials, margin, anyway)
        found = replace(found, notes=(*found.notes, *more))
    said = judged.answer
    levers = pull(judged, _queue(target), progress)
    notes = (*found.notes, *(n for n in judged.notes if n not in found.notes))
    found = replace(found, answer=said, fit=judged.fit, replayed=judged.replayed, notes=notes)
    if not said.margins:
        return _with(found, [_advice(found, "recording", said.text, said.outcome)], mute)
    pick = next(t for t in judged.trials if t.variant.name == (said.best or incumbent.name))
    return _conclude(found, pick.variant, said, levers, mute)


def _searched(judged: Judged, work: Workload, trials: int, margin: float, anyway: bool) -> tuple[Judged, list[str]]:
    """The verdict with the best settings of the scheduler to take as one more candidate, and what is to be said of them.

    They are searched on the first half of the recording, so a verdict that has them is of the second half alone. It stands only
    if there they are better than the scheduler without them and than the one in force; else that on the whole recording does.
    """
    answer, by_name = judged.answer, {trial.variant.name: trial.variant for trial in judged.trials}
    start, incumbent = by_name[answer.best or answer.baseline], by_name[answer.baseline]
    trace = work.recording
    assert trace
    found = tune(
        Path(trace.source),
        work,
        judged.drive,
        start,
        judged.conditions,
        work.reading,
        by=judged.criterion,
        trials=trials,
        margin=margin,
        anyway=anyway,
        doubted=False,
    )
    if not found.recommended:
        return judged, [f"--tune: {found.text.removesuffix('.')}"]
    held = judge(
        found.parts.held,
        judged.drive,
        [incumbent, found.best],
        judged.conditions,
        by=judged.criterion,
        current=incumbent.name,
        recorded_under=judged.recorded_under,
        have=[incumbent.scheduler, start.scheduler],
        margin=margin,
        anyway=anyway,
        doubted=False,
        tasks=False,
    )
    if held.answer.best != found.best.name:
        said = f"on the second half {found.best.name} is better than {start.name}, but not surely better than {incumbent.name}"
        return judged, [f"--tune: {said}"]
    note = f"--tune: {found.best.name} was found on the first half of the recording, and the verdict is of the second"
    return replace(held, fit=judged.fit, replayed=judged.replayed), [note]


def conditions_of(target: Target | None, *, seed: int, queue_depth: int, whole: bool) -> RunConditions:
    """Return the conditions under which a disk runs a recording; None: the recorded one. queue_depth 0: the device's own."""
    now = target.settings[0] if target else None
    number = now.nr_requests if now and now.scheduler != "none" and now.nr_requests else None
    return RunConditions(seed=seed, queue_depth=queue_depth, nr_requests=number, whole=whole)


def _queue(target: Target | None) -> LeverQueue:
    """The queues that levers would change. Disks of a stack are set alike."""
    return queue_of([leg.name for leg in target.legs], target.settings[0]) if target else UNKNOWN_QUEUE


def queue_of(disks: Sequence[str], now: Settings) -> LeverQueue:
    """The queues of disks that have these settings."""
    return LeverQueue(tuple(disks), {name: number for name in FILES if (number := getattr(now, name)) is not None})


def recorded_schedulers(recorded: Recording | None) -> tuple[str, ...]:
    """Return the schedulers that the kernel offered for the recorded disk; none if there were several disks."""
    return recorded.schedulers()[1] if recorded else ()


def recorded_settings(recorded: Recording | None) -> Settings | None:
    """Return the settings of the recorded disk at that time; None if they are not known, or there were several disks."""
    current = recorded.schedulers()[0] if recorded else ""
    if not recorded or not current:
        return None
    said = recorded.disks[0].settings
    number = said.get(NR_REQUESTS, "")
    tunables = {name.removeprefix(f"{TUNABLES}/"): value for name, value in said.items() if name.startswith(f"{TUNABLES}/")}
    return Settings(current, int(number) if number.isdecimal() else None, tunables)


def scheduler_of(settings: Settings | None) -> str:
    """The scheduler in force by its name here, `noop` where that is not known."""
    return known([settings.scheduler]).get(settings.scheduler, "noop") if settings else "noop"


def _incumbent(settings: Settings | None) -> tuple[str, dict[str, int]]:
    """The scheduler in force, by its name here, and its tunables that are not at their defaults."""
    if settings is None:
        return STOCK_BASELINES[0], {}
    name = known([settings.scheduler]).get(settings.scheduler, STOCK_BASELINES[0])
    policy, changed = find(name), {}
    for tunable, value in settings.tunables.items() if name == known([settings.scheduler]).get(settings.scheduler) else ():
        there = policy.tunables.get(tunable)
        # The kernel tells its own choice where the default here is 0, "the kernel's choice"; slice_idle_us says slice_idle again.
        if there and there.default and tunable != "slice_idle_us":
            try:
                number = there.parse(tunable, value)
            except Problem:
                continue
            if number != there.default:
                changed[tunable] = number
    return name, changed


def _variant(scheduler: str, settings: Mapping[str, int]) -> Variant:
    return Variant(scheduler, ":".join([scheduler, *(f"{k}={v}" for k, v in settings.items())]), dict(settings))


def _beside(base: Mapping[str, int], current: str, variant: Variant) -> Variant:
    """A variant of the scheduler in force has the tunables that are in force, but for its own: it is put beside them."""
    if variant.scheduler != current:
        return variant
    return _variant(current, {**base, **{key: value for key, value in variant.settings.items() if isinstance(value, int)}})


def _told(incumbent: Variant, settings: Settings | None) -> Variant:
    """With the positioning times that somebody has written for the scheduler in force, which a change of it would lose."""
    written = (
        settings.tunables.get(POSITIONS, "") if settings and find(incumbent.scheduler).kernel_name == settings.scheduler else ""
    )
    if not written:
        return incumbent
    rows = find(incumbent.scheduler).tables[POSITIONS].parse(POSITIONS, written.encode())
    return replace(incumbent, settings={POSITIONS: rows, **incumbent.settings})


def _notes(work: Workload, settings: Settings | None, current: str, recorded: str) -> tuple[str, ...]:
    found = [*work.notes, *([recorded] if recorded else [])]
    if settings and settings.scheduler not in {s.kernel_name for s in catalogue().values()}:
        found.append(f"{settings.scheduler}, which is in force, cannot be simulated: {current} stands for it")
    if work.replay != CLOSED:
        found.append("timestamps were kept, not think times: what is said of latency is indicative")
    return tuple(found)


def elsewhere(target: Target | None, recorded: Recording | None) -> str:
    """Return a sentence if the recording is of other disks than the target, as far as both are known; else ""."""
    theirs = {disk.facts.get("identity", "") for disk in recorded.disks} - {""} if recorded else set()
    if not target or not theirs or theirs & {one.identity for one in (target.device, *target.legs)}:
        return ""
    return f"recorded on {', '.join(sorted(theirs))}, and {target.device.name} is {target.device.identity}"


# --- what to do ---


def identifier(subject: str, kind: AdviceKind, what: str) -> str:
    """Return the identifier of a piece of advice: the same for the same device and the same thing to do."""
    return "HW-" + hashlib.sha256("\0".join((subject, kind, what)).encode()).hexdigest()[:8]


def _advice(
    found: Advised, kind: AdviceKind, text: str, what: str, apply: Sequence[str] = (), undo: Sequence[str] = ()
) -> Advice:
    subject = found.target.device.identity if found.target else found.work.name
    return Advice(id=identifier(subject, kind, what), kind=kind, text=text, apply=apply, undo=undo)


def _with(found: Advised, advice: Sequence[Advice], mute: Sequence[str], wanted: Mapping[str, Settings] | None = None) -> Advised:
    """The advice that is not muted. What is not told is not applied either. wanted: of advice, by identifier, what it puts."""
    said = tuple(one for one in advice if one.id not in mute)
    muted = tuple(one.id for one in advice if one.id in mute)
    first = next((wanted[one.id] for one in said if wanted and one.id in wanted), None)
    return replace(found, advice=said, muted=muted, wanted=first)


def _conclude(found: Advised, pick: Variant, judged: Answer, levers: Sequence[Lever], mute: Sequence[str]) -> Advised:
    """pick: the scheduler to take with the settings that are better than its own, or what is in force and stays."""
    target, policy = found.target, find(pick.scheduler)
    name = policy.kernel_name
    better = judged.outcome == "better"
    switch = better and name != (
        found.target.settings[0].scheduler if found.target else find(judged.baseline.split(":")[0]).kernel_name
    )
    text = judged.text.removesuffix(judged.module_text or "").rstrip()
    if better and name != pick.scheduler:
        text += f" In the kernel it is {name}."
    tunables = _shown(pick) if better else {}
    advice: list[Advice] = []
    wanted: dict[str, Settings] = {}
    stays = _wanted(target, name, tunables, switch)

    def add(one: Advice, settings: Settings | None) -> None:
        advice.append(one)
        if settings:
            wanted[one.id] = settings

    together = next((one for one in levers if one.kind == "set"), None)
    if together:
        add(*_lever(found, together, pick, stays))
    if better:
        what = " ".join([name, *(f"{key}={value}" for key, value in sorted(tunables.items()))])
        add(_advice(found, "scheduler" if switch else "tunables", text, what, *_lines(found, stays)), stays)
        if target and switch:
            advice += [_advice(found, "foreign", _back(one, target), f"{one.file}:{one.line}") for one in _foreign(target, name)]
    else:
        advice.append(_advice(found, "recording" if judged.longer else "scheduler", text, f"keep {name}"))
    for one in levers:
        if one is not together:
            add(*_lever(found, one, pick, stays))
    if judged.module and judged.module_text:
        lacks = f"{judged.module_text} This kernel lacks it (docs/kernel.md builds the module)."
        advice.append(_advice(found, "module", lacks, judged.module))
    found = _with(found, advice, mute, wanted)
    if target and found.wanted and found.wanted.scheduler != target.settings[0].scheduler:
        found = replace(found, losses=tuple(losses(target.uses, target.settings[0], found.wanted.scheduler)))
    return found


def _lever(found: Advised, one: Lever, pick: Variant, stays: Settings) -> tuple[Advice, Settings | None]:
    """Advice on what helps beside a scheduler, and what of it `--apply` puts; None if that is nothing.

    stays: the settings to be put for the variant that is taken. Commands for programs are given by hand; a set that needs
    another scheduler and has some is put by hand as a whole, for a part of it may do harm.
    """
    target, under = found.target, parse_variant(one.margin.scheduler)
    ours = under.name == pick.name
    if one.kind != "set":
        put = replace(stays, **one.settings) if target and ours and one.settings else None  # type: ignore[arg-type]
        return _advice(found, "lever", f"Besides, {one.text}", one.what, one.apply, one.undo), put
    name = find(under.scheduler).kernel_name
    switch = target is not None and name != target.settings[0].scheduler
    base = stays if ours else _wanted(target, name, _shown(under), switch)
    put = replace(base, **one.settings)  # type: ignore[arg-type]
    apply, undo = _lines(found, put)
    by_hand = len(one.settings) * (len(target.legs) if target else 1)
    # What is in force on a disk that nobody has named is known as far as the lever knows it.
    back = [*undo, *one.undo[by_hand:]] if target else list(dict.fromkeys([*undo, *one.undo]))
    told = _advice(found, "lever", one.text, one.what, [*apply, *one.apply[by_hand:]], back)
    return told, put if target and (ours or len(one.apply) == by_hand) else None


def _shown(variant: Variant) -> dict[str, str]:
    """Return its tunables as the kernel's files show them."""
    tunables = find(variant.scheduler).tunables
    return {key: str(tunables[key].show(value)) for key, value in variant.settings.items() if isinstance(value, int)}


def _wanted(target: Target | None, name: str, tunables: Mapping[str, str], switch: bool) -> Settings:
    """Return what is to be put; nr_requests stays as it is."""
    now = target.settings[0] if target else None
    keep = kept_requests(now, name) if now else None
    return Settings(name, keep, {**(now.tunables if now and not switch else {}), **tunables})


def _lines(found: Advised, wanted: Settings) -> tuple[list[str], list[str]]:
    """Lines for a shell that put it, and that restore what is, or what was in force at the recording."""
    target = found.target
    if target is None:
        put, back = commands(UNKNOWN_FOLDER, wanted, found.before), commands(UNKNOWN_FOLDER, found.before.beside(wanted))
        anew = by_way_of_none(found.before, wanted)
        return [line for line in put if anew or line not in back], [line for line in back if line not in put]
    each = list(zip(target.legs, target.settings, strict=True))
    apply = [line for leg, now in each for line in commands(leg.folder, wanted, now)]
    return apply, [line for leg, now in each for line in commands(leg.folder, now.beside(wanted))]


def _foreign(target: Target, name: str) -> list[Foreign]:
    found = {id(one): one for leg in target.legs for one in acting_on(target.foreign, leg.name)}
    return [one for one in found.values() if one.scheduler != name]


def _back(one: Foreign, target: Target) -> str:
    what = f"{one.file}:{one.line} {'sets ' + one.scheduler if one.scheduler else 'sets the scheduler'} {one.when}"
    if any(leg.name in one.acts_on for leg in target.legs):
        return f"{what}, and would undo this."
    told = f" ({', '.join(one.conditions)})" if one.conditions else ""
    return f"{what}, and may undo this: whether it is for {target.device.name} cannot be told from here{told}."
