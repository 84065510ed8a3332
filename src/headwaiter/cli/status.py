# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter status: what was changed on this machine, and what would change it back."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from headwaiter.cli._commands import Command
from headwaiter.cli._machine import machine_options
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.queue.machine import Machine
from headwaiter.queue.schema import DiskStatus, Foreign, StatusDocument
from headwaiter.queue.status import status


@click.command("status", cls=Command)
@machine_options
@output_options
def command(machine: Machine, as_json: bool, output: Path | None) -> None:
    """List the disks whose settings headwaiter has changed, and what else sets schedulers here (udev rules, tuned, units)."""
    found = status(machine)
    if as_json:
        write_json(found, output)
        return
    with page(output) as out:
        _show(out, found)


def _show(out: Console, found: StatusDocument) -> None:
    if not found.disks:
        out.print("No disk is changed.")
    for disk in found.disks:
        what = ", ".join((f"{disk.before} -> {disk.wanted}", *disk.changes))
        kept = ", and again at each boot" if disk.persistent else ""
        out.print(f"{disk.device} ({disk.identity}): {what}, {disk.changed}, by {disk.by}{kept}; {_now(disk)}")
        for line in disk.revert:
            out.print(f"  {line}")
    for one in found.foreign:
        what = f"sets {one.scheduler}" if one.scheduler else "sets the scheduler"
        disks = f" of {one.disks}" if one.disks else ""
        out.print(f"{one.file}:{one.line} ({one.kind}) {what}{disks} {one.when}")
        told = f"if {', '.join(one.conditions)}: " if one.conditions else ""
        out.print(f"  {told}{_here(one)}")
    if found.history:
        out.print("All changes:")
    for row in found.history:
        out.print(f"  {row.time} {row.device} ({row.identity}): {row.old} -> {row.new}, by {row.by}")


def _here(one: Foreign) -> str:
    """Return which disks of this machine that means."""
    sure, maybe = (", ".join(names) for names in (one.acts_on, one.may_act_on))
    said = [*([f"acts on {sure}"] if sure else []), *([f"may act on {maybe}"] if maybe else [])]
    return " and ".join(said) or "acts on no disk that is here"


def _now(disk: DiskStatus) -> str:
    if not disk.present:
        return "the disk is not there"
    if disk.unavailable:
        return f"{disk.unavailable}; {disk.now} now, the kernel's own"
    if disk.overridden:
        return f"somebody else has set {disk.overridden} since: {disk.now} now"
    return "in force" if disk.now == disk.wanted else f"a change was cut short: {disk.now} now; `headwaiter revert` restores"
