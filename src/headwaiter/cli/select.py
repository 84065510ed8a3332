# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter select: the scheduler that a table has for an operation, a file size and a record length."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from headwaiter.advice.target import target_of
from headwaiter.base.errors import Problem, shown
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._devices import device
from headwaiter.cli._machine import machine_options
from headwaiter.cli._options import byte_size, size_text
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.cli._tables import table_of, table_options
from headwaiter.drives.choose import open_drive
from headwaiter.papers.cells import KIB, OPERATIONS, STUDY_SOURCE, study_table
from headwaiter.papers.select import FileOperation, Selected, put, select
from headwaiter.papers.selectors import check_subject
from headwaiter.queue.apply import Applied
from headwaiter.queue.machine import Machine


def _operation(_: click.Context, __: click.Parameter, text: str) -> str:
    """One of iozone's; the study writes re-write and re-read."""
    found = text.lower().replace("re-", "re").replace("-", " ")
    if found not in OPERATIONS:
        raise Problem(f"--operation {shown(text)}: expected one of {', '.join(OPERATIONS)}")
    return found


@click.command("select", cls=Command)
@click.option("--operation", callback=_operation, required=True, metavar="NAME", help=f"What is done: {', '.join(OPERATIONS)}.")
@click.option("--size", callback=byte_size(KIB, 1 << 50), required=True, metavar="64k|1g|…", help="Size of the file.")
@click.option("--record", callback=byte_size(KIB, 1 << 30), required=True, metavar="4k|64k|…", help="Length of a record.")
@click.option(
    "--apply",
    "on",
    metavar="DEVICE",
    shell_complete=device,
    help="Put it in force on this disk, the former settings saved first.",
)
@table_options("Output of `headwaiter table --json` [default: the table of the study].")
@click.option("--drive", "-d", shell_complete=complete.drive, help="The drive model that DEVICE is like, if it was measured.")
@machine_options
@output_options
def command(
    operation: str,
    machine: Machine,
    size: int,
    record: int,
    on: str | None,
    ranking: Path | None,
    iozone: tuple[str, ...],
    drive: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Choose a scheduler by operation, file size and record length, as the study of today's schedulers did (CS350, 2023).

    The study's own table is for a PC with an NVMe SSD; `headwaiter table` measures one of your disk. A file size is looked up in
    the table's ranges, a record length at the nearest one; what the table does not cover is refused.
    """
    given = ranking or iozone
    table = table_of(ranking, iozone) if given else study_table()
    source = table.subject or ", ".join(iozone) if given else STUDY_SOURCE
    target = target_of(machine, on) if on else None
    if target:
        check_subject(table.subject, target.device, open_drive(drive).name if drive else "")
    found = select(table, FileOperation(operation, size, record), source, target)
    done = put(found, target, machine.state) if target else []
    if as_json:
        write_json(found.document(done), output)
        return
    with page(output) as out:
        _show(out, found, done)


def _show(out: Console, found: Selected, done: list[Applied]) -> None:
    asked, cell = found.asked, found.cell
    what = f"{asked.operation} of a file of {size_text(asked.file_bytes)} in records of {size_text(asked.record_bytes)}"
    out.print(f"{what}: {found.scheduler}")
    over = f"over {size_text(found.over_kib * KIB)} " if found.over_kib else ""
    files = f"files {over}up to {size_text(cell.file_kib * KIB)}, records of {size_text(cell.record_kib * KIB)}"
    shares = ", ".join(f"{name} {share:.3f}" for name, share in found.of_best.items())
    out.print(f"By {found.source}: {files}", soft_wrap=True)
    out.print(f"Throughput, of the best: {shares}", soft_wrap=True)
    for one in done:
        changes = ", ".join(map(str, one.changes)) or "as it was"
        restores = f"; `headwaiter revert {one.device.name}` restores" if one.changes else ""
        out.print(f"{one.device.name}: {changes}; read back: {one.after.scheduler}{restores}", soft_wrap=True)
