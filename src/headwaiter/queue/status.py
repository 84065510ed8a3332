# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What headwaiter has changed on this machine, and what else changes schedulers there."""

from __future__ import annotations

from collections.abc import Sequence

from headwaiter.base.errors import Problem
from headwaiter.base.records import like
from headwaiter.queue.apply import overridden
from headwaiter.queue.devices import Device, whole_disks
from headwaiter.queue.loading import absence, fits, patterns
from headwaiter.queue.machine import Machine
from headwaiter.queue.others import foreign
from headwaiter.queue.persist import is_kept
from headwaiter.queue.schema import DiskStatus, HistoryRow, StatusDocument
from headwaiter.queue.settings import SCHEDULER, Settings, commands, opened
from headwaiter.queue.state import Saved


def status(machine: Machine) -> StatusDocument:
    """Return what was changed on a machine, and change nothing."""
    state = machine.state
    there = whole_disks(machine.sysfs, machine.udev)
    return StatusDocument(
        disks=[_disk(saved, machine, there) for saved in state.all()],
        foreign=foreign(machine.root, there),
        history=[like(HistoryRow, entry) for entry in state.history()],
    )


def _disk(saved: Saved, machine: Machine, there: Sequence[Device]) -> DiskStatus:
    state = machine.state
    device = next((one for one in there if one.identity == saved.identity and state.of(one)), None)
    told = {
        "device": device.name if device else saved.name,
        "identity": saved.identity,
        "present": device is not None,
        "changed": saved.time,
        "by": saved.by,
        "before": saved.before.scheduler,
        "wanted": saved.wanted.scheduler,
    }
    if device is None:
        return DiskStatus(**told, overridden=saved.overridden, revert=())  # type: ignore[arg-type]
    try:
        with opened(device) as queue:
            found, offered = queue.read(), queue.offered()
    except Problem:  # it has gone meanwhile
        return DiskStatus(**{**told, "present": False}, overridden=saved.overridden, revert=())  # type: ignore[arg-type]
    lacking = saved.wanted.scheduler not in offered and not fits(saved.wanted.scheduler, patterns(machine.root))
    return DiskStatus(
        **told,  # type: ignore[arg-type]
        now=found.scheduler,
        changes=_changes(saved, found),
        overridden="" if lacking else saved.overridden or overridden(saved, found),
        unavailable=absence(saved.wanted.scheduler, machine.root) if lacking else "",
        persistent=is_kept(device, machine.root, machine.udev),
        revert=commands(device.folder, saved.before),
    )


def _changes(saved: Saved, found: Settings) -> list[str]:
    """Return the settings beside the scheduler that differ from before, as `file old -> new`."""
    before, now = saved.before.files(), found.files()
    files = [file for file in saved.wanted.files() if file in before.keys() & now.keys() and file != SCHEDULER]
    return [f"{file.removeprefix('../')} {before[file]} -> {now[file]}" for file in files if before[file] != now[file]]
