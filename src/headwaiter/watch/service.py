# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that keeps disks under watch: samples, decides, tells; and, if it may, changes schedulers and undoes what was worse.

It leaves a disk alone as soon as somebody else has set it, until it is told to resume. It survives the removal of a disk.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from headwaiter.advice.offered import loadable
from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem
from headwaiter.base.outputs import writing
from headwaiter.engine.schedulers import known
from headwaiter.queue.apply import apply, overridden, revert
from headwaiter.queue.devices import Device, whole_disks
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Settings, kept_requests, opened
from headwaiter.queue.state import Saved, TakenError, now
from headwaiter.watch.decide import FEWEST, Blocked, Caution, Decider, Decision, DecisionOutcome, Memory, Window
from headwaiter.watch.prometheus import Metrics
from headwaiter.watch.sample import Method, StoppedError, counted

BY = "headwaiter watch"
OnExit = Literal["keep", "restore"]
_GLANCE_S = 1.0
"""Interval at which an idle disk is looked at again."""


@dataclass(frozen=True)
class Rules:
    """Rules of a watch. sample_s: length of a window; every_s: from the beginning of one to that of the next."""

    sample_s: float = 20.0
    every_s: float = 60.0
    put: bool = False
    resume: bool = False
    on_exit: OnExit = "keep"
    caution: Caution = field(default_factory=Caution)


@dataclass
class _Watched:
    """A disk under watch, by its identity: its name may change."""

    identity: str
    name: str
    decider: Decider
    there: bool = True
    alone: bool = False
    """Somebody else has set it: it is left alone."""
    mine: bool = False
    """A change of it was made here."""
    known: tuple[Saved | None, ...] = ()
    """What was saved of its legs when the watch of it began."""
    idle_at: int | None = None
    """How many requests it had had when a window of too few was over; None if the last window had enough."""


class Service:
    """Watches disks. log(line) takes one line; wait(seconds) is true if all is to end."""

    def __init__(
        self,
        machine: Machine,
        names: Sequence[str],
        method: Method,
        rules: Rules,
        log: Callable[[str], None],
        wait: Callable[[float], bool],
        metrics: Metrics | None = None,
        publish: Callable[[], None] = lambda: None,
    ) -> None:
        """Problem if a disk is not there, must not be changed, or has a watch already. It is kept from others till run() ends."""
        self._machine, self._method, self._rules = machine, method, rules
        self._log, self._wait, self._publish = log, wait, publish
        self._untold = ""
        self.metrics = metrics or Metrics()
        devices = {device.identity: device for device in map(machine.find, names)}
        with ExitStack() as held:
            for device in devices.values():
                self._keep(device, held)
            self._disks = [self._begin(device) for device in devices.values()]
            self._held = held.pop_all()

    def _keep(self, device: Device, held: ExitStack) -> None:
        """Keep other watches from a disk. Where nothing can be kept, a watch that only reports does no harm."""
        for leg in self._machine.legs(device):
            try:
                held.enter_context(self._machine.state.watched(leg))
            except TakenError:
                raise
            except Problem:
                if self._rules.put:
                    raise

    def _begin(self, device: Device) -> _Watched:
        state = self._machine.state
        legs = self._machine.legs(device)
        for leg in legs:
            saved = state.of(leg)
            if saved and saved.found is None and self._rules.put:
                revert(leg, state)
                self._say(device.name, "undone", saved.before.scheduler, "a change was cut short: what was before is restored")
            if saved and saved.overridden and self._rules.resume:
                with state.locked(), opened(leg) as queue:
                    state.done(replace(saved, overridden=""), queue.read())
        current = self._current(legs)
        disk = _Watched(device.identity, device.name, Decider(current, self._rules.caution, self._remembered(device.identity)))
        disk.alone = any(saved.overridden for leg in legs if (saved := state.of(leg)))
        disk.known = tuple(state.of(leg) for leg in legs)
        return disk

    def run(self, rounds: int | None = None) -> None:
        """Until all is to end, or for so many rounds."""
        _notify("READY=1")
        done = 0
        with self._held, suppress(StoppedError), tidied(self._end):
            while rounds is None or done < rounds:
                began = time.monotonic()
                for disk in self._disks:
                    self._look(disk)
                    self._tell_metrics()
                    _notify("WATCHDOG=1")
                done += 1
                if done != rounds:
                    self._pause(began + self._rules.every_s)

    def _end(self) -> None:
        """Whatever ends it: also an error, or a signal that it does not wait for."""
        _notify("STOPPING=1")
        if self._rules.on_exit == "restore":
            # All disks before any line: who reads the lines may be what has gone.
            lines = [(disk.name, *line) for disk in self._disks for line in self._restored(disk)]
            for line in lines:
                self._say(*line)

    def _tell_metrics(self) -> None:
        """What cannot be told is no reason to end; that it cannot is said once."""
        for disk in self._disks:  # each look takes a while, and any of them may have gone in it
            self.metrics.set("headwaiter_device_present", float(self._seen(disk) is not None), device=disk.name)
        trouble = ""
        try:
            self._publish()
        except (Problem, OSError) as e:
            trouble = str(e)
        if trouble not in ("", self._untold):
            self._log(f"{now()} metrics are not written: {trouble}")
        self._untold = trouble

    def _pause(self, until: float) -> None:
        """Until a time (of the monotonic clock), or a disk that was idle has enough to do. StoppedError if all is to end."""
        while True:
            idle = [disk for disk in self._disks if disk.idle_at is not None]
            left = max(0.0, until - time.monotonic())
            if self._wait(min(left, _GLANCE_S) if idle else left):
                raise StoppedError
            if left <= _GLANCE_S or not idle or any(self._had(disk) - (disk.idle_at or 0) >= FEWEST for disk in idle):
                return

    def _had(self, disk: _Watched) -> int:
        """Return how many requests a disk has had; 0 if it is not there."""
        try:
            counters = counted(self._machine.find(disk.name))
        except Problem:
            return 0
        return counters[0] + counters[4]

    def _look(self, disk: _Watched) -> None:
        """One window of a disk, and what follows from it."""
        device = self._found(disk)
        if device is None:
            self.metrics.drop("headwaiter_scheduler_info", disk.name)
            return
        try:
            legs = self._machine.legs(device)
            former = disk.decider.current
            if self._left_alone(disk, legs, former):
                return
            former = disk.decider.current
            window = self._method.window(device, legs, self._rules.sample_s, former, self._candidates(legs))
            disk.idle_at = self._had(disk) if window.requests < FEWEST else None
            memory = disk.decider.memory
            decision = disk.decider.decide(window, _clock_s())
            if not self._rules.put:
                disk.decider.memory = memory
            self._told(disk, window, decision)
            if decision.to != former and not self._left_alone(disk, legs, former):
                self._change(disk, legs, decision, former)
        except Problem as e:
            if self._found(disk) is None:  # it went while it was looked at
                return
            self._say(disk.name, "declined", disk.decider.current, str(e))
            self.metrics.add("headwaiter_decisions_total", device=disk.name, result="declined")
        finally:
            self._tell_scheduler(disk)

    def _tell_scheduler(self, disk: _Watched) -> None:
        """Tell what is in force, whatever was decided."""
        family = "headwaiter_scheduler_info"
        try:
            legs = self._machine.legs(self._machine.find(disk.name))
            current = self._current(legs)
        except Problem:
            self.metrics.drop(family, disk.name)
            return
        self.metrics.only(family, 1, device=disk.name, scheduler=current, wwn=legs[0].wwn, serial=legs[0].serial)

    def _seen(self, disk: _Watched) -> Device | None:
        """The disk of that identity, by whatever name; None if it is not there."""
        udev = self._machine.root / "run" / "udev" / "data"
        return next((one for one in whole_disks(self._machine.sysfs, udev) if one.identity == disk.identity), None)

    def _found(self, disk: _Watched) -> Device | None:
        """Look for the disk, and say when it has gone or come back."""
        found = self._seen(disk)
        if (found is not None) != disk.there:
            disk.there = found is not None
            self._say(disk.name, "kept", disk.decider.current, "the disk is back" if found else "the disk is not there")
            if found:
                disk.decider.reset(self._current(self._machine.legs(found)))
        if found:
            disk.name = found.name
        return found

    def _current(self, legs: Sequence[Device]) -> str:
        """The scheduler in force. Problem if legs differ."""
        found = []
        for leg in legs:
            with opened(leg) as queue:
                found.append(queue.read().scheduler)
        if len(set(found)) > 1:
            raise Problem(f"{', '.join(leg.name for leg in legs)}: have different schedulers ({', '.join(found)})")
        return found[0]

    def _candidates(self, legs: Sequence[Device]) -> list[str]:
        offered = []
        for leg in legs:
            with opened(leg) as queue:
                offered.append(queue.offered())
        common = [one for one in offered[0] if all(one in other for other in offered)]
        return list(known([*common, *sorted(loadable(self._machine.root) - set(common))]))

    def _left_alone(self, disk: _Watched, legs: Sequence[Device], expected: str) -> bool:
        """Whether somebody else has set it to something else than expected. What only reports goes by what is in force now."""
        current = self._current(legs)
        if not self._rules.put:
            if current != expected:
                self._say(disk.name, "kept", current, f"somebody else has set it, from {expected}")
                disk.decider.reset(current)
            return False
        if not disk.alone and (other := next(filter(None, (self._other(disk, leg, expected) for leg in legs)), "")):
            disk.alone = True
            self._say(disk.name, "declined", current, f"{other}: left alone until `headwaiter watch --resume`")
        self.metrics.set("headwaiter_overridden", float(disk.alone), device=disk.name)
        if disk.alone:
            disk.decider.reset(current)
            self._leave(legs)
        return disk.alone

    def _other(self, disk: _Watched, leg: Device, expected: str | None) -> str:
        """Return who else has set what of a leg, by the kernel and by what other commands have saved; "" if nobody."""
        saved = self._machine.state.of(leg)
        with opened(leg) as queue:
            found = queue.read()
        what = overridden(saved, found) if saved else ""
        if not what and expected not in (None, found.scheduler):
            what = "scheduler"
        if saved and saved.by != BY and saved not in disk.known:
            return f"`{saved.by}` has set {what or 'it'}"
        return what and f"somebody else has set {what}"

    def _leave(self, legs: Sequence[Device]) -> None:
        """Remember beyond a restart that a disk is left alone, also if another command has saved something since."""
        state = self._machine.state
        for leg in legs:
            saved = state.of(leg)
            if saved and not saved.overridden:
                with state.locked(), opened(leg) as queue:
                    if saved := state.of(leg):
                        state.override(saved, overridden(saved, queue.read()) or "scheduler")

    def _still(self, disk: _Watched, expected: str | None) -> Callable[[Device], None]:
        """Return what raises a Problem if somebody else has set a leg of a disk meanwhile."""

        def check(leg: Device) -> None:
            if other := self._other(disk, leg, expected):
                raise Problem(f"{leg.name}: {other} meanwhile")

        return check

    def _change(self, disk: _Watched, legs: Sequence[Device], decision: Decision, current: str) -> None:
        """Make a change, if that is allowed; else all stays, and is judged anew."""
        if not self._rules.put:
            disk.decider.failed(current)
            return
        before, disk.mine = disk.mine, True
        try:
            self._put(disk, legs, decision.to, current)
        except Problem as e:
            disk.mine = before
            self._say(disk.name, "declined", current, str(e))
            disk.decider.failed(self._current(legs))
            return
        self.metrics.add("headwaiter_changes_total", device=disk.name)
        self._remember(disk)

    def _put(self, disk: _Watched, legs: Sequence[Device], scheduler: str, current: str) -> None:
        """Put a scheduler in force; what was there at first with all its settings. Problem if somebody else was quicker."""
        state, still = self._machine.state, self._still(disk, current)
        saved = [state.of(leg) for leg in legs]
        if all(one and one.before.scheduler == scheduler for one in saved):
            troubles = [revert(leg, state, still)[1].trouble for leg in legs]
            if any(troubles):
                self._say(disk.name, "undone", scheduler, "; ".join(filter(None, troubles)))
        else:
            with opened(legs[0]) as queue:
                now = queue.read()
            apply(legs, Settings(scheduler, kept_requests(now, scheduler)), state, BY, still)

    def _told(self, disk: _Watched, window: Window, decision: Decision) -> None:
        """Log a decision, and count it."""
        would = decision.outcome in ("changed", "undone") and not self._rules.put
        reason = f"{decision.reason}; only reported, --apply would do it" if would else decision.reason
        self._say(disk.name, decision.outcome, decision.to, f"{reason} ({window.load})" if window.load else reason)
        m, name = self.metrics, disk.name
        m.add("headwaiter_decisions_total", device=name, result=decision.outcome)
        m.set("headwaiter_predicted_gain_ratio", decision.gain, device=name)
        m.set("headwaiter_last_decision_timestamp_seconds", time.time(), device=name)
        m.add("headwaiter_events_lost_total", window.lost, device=name)
        if window.contention is not None:
            m.set("headwaiter_contention_ratio", window.contention, device=name)

    def _say(self, device: str, outcome: DecisionOutcome, scheduler: str, reason: str) -> None:
        self._log(f"{now()} {device} {outcome} {scheduler}: {reason}")

    def _restored(self, disk: _Watched) -> Iterator[tuple[DecisionOutcome, str, str]]:
        """Restore what was before, if it was changed here; what there is to say of it."""
        if disk.alone or not disk.mine:
            return
        state = self._machine.state
        try:
            device = self._found(disk)
            legs = [leg for leg in self._machine.legs(device) if state.of(leg)] if device else []
        except Problem as e:
            yield "declined", disk.decider.current, str(e)
            return
        for leg in legs:
            try:
                saved, done = revert(leg, state, self._still(disk, None))
                yield "undone", saved.before.scheduler, done.trouble or "the end: what was before is restored"
            except Problem as e:
                yield "declined", disk.decider.current, str(e)

    # --- what outlives a restart ---

    def _file(self, identity: str) -> Path:
        return self._machine.state.path(identity).with_suffix(".watch")

    def _remember(self, disk: _Watched) -> None:
        self._write(disk.identity, disk.decider.memory.shifted(time.time() - _clock_s()))

    def _write(self, identity: str, since_1970: Memory) -> None:
        with writing(self._file(identity)) as temporary:
            temporary.write_text(json.dumps(asdict(since_1970)), encoding="utf-8")

    def _remembered(self, identity: str) -> Memory:
        """Nothing where nothing can be read: then it is learnt again. Times in the file are in seconds since 1970."""
        try:
            found = json.loads(self._file(identity).read_text(encoding="utf-8"))
            blocked = {name: Blocked(float(one["until"]), float(one["for_s"])) for name, one in found["blocked"].items()}
            since_1970 = Memory(tuple(map(float, found["changes"])), blocked)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Memory()
        trusted = since_1970.trusted(time.time())
        if trusted != since_1970 and self._rules.put:
            self._write(identity, trusted)  # or what is kept off would be kept off anew at each start
        return trusted.shifted(_clock_s() - time.time())


def _clock_s() -> float:
    """Return the time of a clock that nobody sets and that goes on while the machine sleeps; the wall clock may be wrong."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _notify(message: str) -> None:
    """Tell systemd, if it wants to know (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as peer:
        try:
            peer.connect("\0" + address[1:] if address.startswith("@") else address)
            peer.sendall(message.encode())
        except OSError:
            return
