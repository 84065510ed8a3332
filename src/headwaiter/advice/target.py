# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A device of a machine that is to be advised, or measured: its disks, what they offer, and who else sets their schedulers."""

from __future__ import annotations

from headwaiter.advice.advice import Target
from headwaiter.advice.offered import loadable
from headwaiter.base.errors import Problem
from headwaiter.queue.losses import uses
from headwaiter.queue.machine import Machine
from headwaiter.queue.others import foreign
from headwaiter.queue.settings import opened


def target_of(machine: Machine, name: str) -> Target:
    """All that advice for a device rests on but a recording. Problem if no scheduler can be chosen for it."""
    device = machine.find(name)
    legs = machine.legs(device)
    offered, settings = [], []
    for leg in legs:
        with opened(leg) as queue:
            offered.append(queue.offered())
            settings.append(queue.read())
    if len({one.scheduler for one in settings}) > 1:
        said = ", ".join(f"{leg.name} {one.scheduler}" for leg, one in zip(legs, settings, strict=True))
        raise Problem(f"{device.name}: its legs have different schedulers ({said}): give them one first")
    common = tuple(one for one in offered[0] if all(one in other for other in offered))
    modules = tuple(sorted(loadable(machine.root) - set(common)))
    return Target(device, tuple(legs), tuple(settings), common, modules, uses(machine.root), tuple(foreign(machine.root, legs)))
