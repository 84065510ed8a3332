# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter apply: put a scheduler and settings in force, the former ones saved."""

from __future__ import annotations

import os
from pathlib import Path

import click

from headwaiter.advice.offered import loadable
from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.cli._commands import Command
from headwaiter.cli._devices import device, offered
from headwaiter.cli._machine import machine_options
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.engine.schedulers import catalogue
from headwaiter.queue.apply import Applied, apply
from headwaiter.queue.loading import OURS, absence, load
from headwaiter.queue.losses import losses, uses
from headwaiter.queue.machine import Machine
from headwaiter.queue.persist import check, keep
from headwaiter.queue.schema import ApplyDocument, Written
from headwaiter.queue.settings import Settings, commands, kept_requests, opened

_BY = "headwaiter apply"


@click.command("apply", cls=Command)
@click.argument("device", shell_complete=device)
@click.argument("scheduler", metavar="SCHEDULER[:TUNABLE=VALUE…]", shell_complete=offered)
@click.option("--nr-requests", type=click.IntRange(1, 1 << 20), metavar="N", help="Set how many requests a queue holds.")
@click.option("--read-ahead-kb", type=click.IntRange(0, 1 << 20), metavar="KIB", help="Set the read-ahead.")
@click.option("--queue-depth", type=click.IntRange(1, 1 << 16), metavar="N", help="Set the depth of the device's own queue.")
@click.option(
    "--wbt-lat-usec", type=click.IntRange(0, 1 << 30), metavar="US", help="Set write-back throttling; 0 switches it off."
)
@click.option("--persist", is_flag=True, help="Keep it across reboots, by a udev rule for this very disk.")
@click.option("--force", is_flag=True, help="Even if something that is in use would stop working.")
@machine_options
@output_options
def command(
    device: str,
    machine: Machine,
    scheduler: str,
    persist: bool,
    force: bool,
    as_json: bool,
    output: Path | None,
    **given: int | None,
) -> None:
    """Put SCHEDULER and settings in force on DEVICE, and save the former ones for `headwaiter revert`.

    SCHEDULER has settings behind it as `compare` prints them, such as bfq:low_latency=0. A stack (dm, md) means all disks below
    it: they all change, or none. The module of a scheduler is loaded. A reboot ends it, unless --persist writes a udev rule
    (/etc/udev/rules.d/99-headwaiter.rules), which `headwaiter revert` takes away. Under a kernel that has no such scheduler the
    kernel's own stays in force, and `headwaiter status` says so.
    """
    legs = machine.legs(machine.find(device))
    name, tunables = _parsed(scheduler)
    known, offered = [], []
    for leg in legs:
        with opened(leg) as queue:
            known.append(queue.read())
            offered.append({*queue.offered()})
    ready = set.intersection(*offered)
    name = _in_kernel(name, device, ready | loadable(machine.root), machine.root)
    before = known[0]
    against = sorted({line for now in known for line in losses(uses(machine.root), now, name)})
    if against and not force:
        raise Problem(f"{device}: {'; '.join(against)}: --force applies it nevertheless")
    nr_requests = given.pop("nr_requests") or kept_requests(before, name)
    wanted = Settings(name, nr_requests, tunables, **given)
    if persist:
        check(legs, wanted, machine.root, machine.udev)
    if name not in ready:
        load(name, machine.sysfs)
    done = apply(legs, wanted, machine.state, _BY)
    _tell(done, keep(legs, wanted, machine.root, machine.udev) if persist else None, as_json, output)


def _parsed(text: str) -> tuple[str, dict[str, str]]:
    """Return a scheduler's name, and its tunables."""
    name, _, rest = text.partition(":")
    tunables = {}
    for word in rest.split(":") if rest else ():
        key, equals, value = word.partition("=")
        if not (key and equals and value) or "/" in key or key in (os.curdir, os.pardir):
            raise Problem(f"{shown(text)}: expected SCHEDULER:TUNABLE=VALUE")
        tunables[key] = value
    return name, tunables


def _in_kernel(name: str, device: str, offered: set[str], root: Path) -> str:
    """Return the name that the kernel has for a scheduler. Problem if it has none."""
    for one in (name, f"hw-{name}"):
        if one in offered:
            return one
    if lacking := {one.name: one.kernel_name for one in catalogue().values()}.get(name.removeprefix(OURS)):
        raise Problem(f"{device}: {absence(lacking, root)}")
    known = sorted(offered)
    raise Problem(f"{device}: the kernel has no scheduler '{shown(name)}' here{did_you_mean(name, known)} ({', '.join(known)})")


def _tell(done: list[Applied], persisted: Path | None, as_json: bool, output: Path | None) -> None:
    """Print what was changed, and how to undo it."""
    undo = f"headwaiter revert {' '.join(one.device.name for one in done)}"
    if as_json:
        changes = [Written(device=one.device.name, file=c.file, old=c.old, new=c.new) for one in done for c in one.changes]
        lines = [line for one in done for line in commands(one.device.folder, one.after)]
        kept = str(persisted) if persisted else ""
        write_json(ApplyDocument(changes=changes, commands=lines, undo=[undo], persisted=kept), output)
        return
    with page(output) as out:
        for one in done:
            written = ", ".join(map(str, one.changes))
            out.print(f"{one.device.name}: {written or 'as it was'}", soft_wrap=True)
        if persisted:
            out.print(f"At each boot, too: {persisted}", soft_wrap=True)
        out.print(f"To undo: {undo}", soft_wrap=True)
