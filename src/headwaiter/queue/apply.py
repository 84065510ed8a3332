# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Settings into the queues of named disks, and back out of them: saved first, all legs of a stack together, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from headwaiter.base.errors import Problem
from headwaiter.queue.devices import Device
from headwaiter.queue.settings import Change, Queue, Settings, by_way_of_none, differs, opened
from headwaiter.queue.state import Saved, State


@dataclass(frozen=True)
class Applied:
    """Changes made to a disk. trouble: what went wrong once the settings were in force, "" if nothing did."""

    device: Device
    before: Settings
    after: Settings
    changes: tuple[Change, ...]
    trouble: str = ""


def check(device: Device) -> None:
    """Problem if the scheduler of a disk must not, or cannot, be changed."""
    if device.is_zoned:
        raise Problem(f"{device.name}: is zoned ({device.zoned}): a change of its scheduler may hang, so headwaiter makes none")
    if device.scheduler is None:
        raise Problem(f"{device.name}: no scheduler acts on this device")


def _always(device: Device) -> None:
    """Nothing speaks against it."""


def apply(
    devices: Sequence[Device], wanted: Settings, state: State, by: str, still: Callable[[Device], None] = _always
) -> list[Applied]:
    """Put settings in force on all these disks. On a Problem with one, all are as they were before the call.

    still: asked when no other headwaiter can change anything; a Problem that it raises is one of that disk.
    """
    for device in devices:
        check(device)
    with state.locked(), ExitStack() as held:
        for device in devices:
            still(device)
        queues = [held.enter_context(opened(device)) for device in devices]
        entry = [queue.read() for queue in queues]
        known = [state.of(device) for device in devices]
        done: list[Applied] = []
        try:
            for queue, before, was in zip(queues, entry, known, strict=True):
                saved = state.begin(queue.device, before, wanted, by)
                if _lowered(before, was) and wanted.scheduler != "none":
                    queue.take_all(saved.before.nr_requests or 0)
                changes = queue.put(wanted)
                after = queue.read()
                state.done(saved, after)
                done.append(Applied(queue.device, before, after, tuple(changes)))
        except Problem:
            for queue, before, was in list(zip(queues, entry, known, strict=True))[: len(done) + 1]:
                _back(queue, before, was, state)
            raise
        return done


def _lowered(now: Settings, saved: Saved | None) -> bool:
    """Whether nr_requests is less than before our first change, without a scheduler then and now: see take_all()."""
    if saved is None or (now.scheduler, saved.before.scheduler) != ("none", "none"):
        return False
    return (now.nr_requests or 0) < (saved.before.nr_requests or 0)


def _back(queue: Queue, before: Settings, was: Saved | None, state: State) -> None:
    """Undo a change that failed. If this fails, too, the state stays, for `revert`."""
    with suppress(Problem):
        queue.put(before)
        if was is None:
            state.forget(queue.device.identity)
        else:
            state.done(was, before)


def revert(device: Device, state: State, still: Callable[[Device], None] = _always) -> tuple[Saved, Applied]:
    """Restore what was in force before the first change of a disk. Problem if nothing is saved, or the kernel refuses it.

    still: see apply().
    """
    with state.locked():
        still(device)
        saved = state.of(device)
        if saved is None:
            raise Problem(f"{device.name}: nothing to restore: headwaiter has changed nothing of this disk ({state.folder})")
        check(device)
        with opened(device) as queue:
            before = queue.read()
            changes = queue.put(saved.before)
            after = queue.read()
        trouble = ""
        try:
            state.forget(device.identity)
        except Problem as e:
            trouble = f"{device.name}: the settings are restored, but what was saved may not be forgotten: {e}"
    return saved, Applied(device, before, after, tuple(changes), trouble)


def overridden(saved: Saved, found: Settings) -> str:
    """The first file of queue/ that somebody else has set since; "" if all is as headwaiter left it.

    A change that was cut short may have left what was before, or part of what was wanted: that is not somebody else's.
    """
    if saved.found is not None:
        return differs(saved.found, found)
    between = ("none",) if by_way_of_none(saved.before, saved.wanted) else ()
    return "" if found.scheduler in (saved.before.scheduler, saved.wanted.scheduler, *between) else "scheduler"
