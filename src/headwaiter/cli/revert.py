# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter revert: the settings of a disk as they were before headwaiter changed them."""

from __future__ import annotations

from pathlib import Path

import click

from headwaiter.base.errors import Problem
from headwaiter.cli._commands import Command
from headwaiter.cli._devices import device
from headwaiter.cli._machine import machine_options
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.queue.apply import Applied, revert
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.queue.persist import drop, file_of
from headwaiter.queue.schema import RevertDocument, Written
from headwaiter.queue.settings import commands
from headwaiter.queue.state import Saved


@click.command("revert", cls=Command)
@click.argument("device", nargs=-1, required=True, metavar="DEVICE…", shell_complete=device)
@machine_options
@output_options
def command(device: tuple[str, ...], machine: Machine, as_json: bool, output: Path | None) -> None:
    """Restore the settings that DEVICE (such as sda) had before headwaiter changed its scheduler.

    A stack (dm, md) means all disks below it. The udev rule that --persist wrote goes, too. The command forgets the saved
    settings once they read back; status 2 if that fails.
    """
    legs = {leg.name: leg for name in device for leg in machine.legs(machine.find(name))}
    done = [(leg, *revert(leg, machine.state)) for leg in legs.values()]
    ruled = drop(list(legs.values()), machine.root, machine.udev)
    _tell(done, ruled, file_of(machine.root), as_json, output)
    if troubles := [one.trouble for _, _, one in done if one.trouble]:
        raise Problem("; ".join(troubles))


def _tell(
    done: list[tuple[Device, Saved, Applied]], ruled: list[Device], rules: Path, as_json: bool, output: Path | None
) -> None:
    lines = [line for leg, saved, _ in done for line in commands(leg.folder, saved.before)]
    if as_json:
        changes = [Written(device=leg.name, file=c.file, old=c.old, new=c.new) for leg, _, one in done for c in one.changes]
        write_json(RevertDocument(changes=changes, commands=lines, rules=[leg.name for leg in ruled]), output)
        return
    with page(output) as out:
        for leg, saved, one in done:
            said = f"{one.before.scheduler} -> {one.after.scheduler}" if one.changes else f"{one.after.scheduler}, as it was"
            if one.changes and one.before.scheduler == one.after.scheduler:
                said = ", ".join(map(str, one.changes))
            out.print(f"{leg.name}: {said} (saved {saved.time} by {saved.by})")
        for leg in ruled:
            out.print(f"{leg.name}: the rule in {rules} is gone")
        out.print("The same by hand:")
        for line in lines:
            out.print(f"  {line}")
