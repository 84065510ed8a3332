# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter table: throughput by scheduler, operation, file size and record length."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.table import Table

from headwaiter.advice.target import target_of
from headwaiter.base.errors import Problem
from headwaiter.base.figures import digits
from headwaiter.cli import _complete as complete
from headwaiter.cli._chosen import chosen_of, sched_option
from headwaiter.cli._commands import Command
from headwaiter.cli._machine import machine_options
from headwaiter.cli._options import CommaList, Finite, byte_sizes, size_text
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.cli._progress import progress_bar
from headwaiter.drives.choose import open_drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.papers.table import MeasuredCell, Work, cell_winners, cells, check_folder, of_drive, of_folder, table_document
from headwaiter.papers.was.config import READERS
from headwaiter.queue.machine import Machine
from headwaiter.report.tables import show
from headwaiter.study.variants import ALL, parse_variants

_FILES = (1 << 20, 32 << 20)
_RECORDS = (8 << 10, 64 << 10, 512 << 10)
_DRIVE_RUNS, _DEVICE_RUNS = 2, 3


@click.command("table", cls=Command)
@click.argument("subject", metavar="DRIVE|DEVICE", shell_complete=complete.drive_or_disk)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="DEVICE: a folder on it, where files are made for the measurement, and removed.",
)
@sched_option
@click.option(
    "--files",
    cls=CommaList,
    callback=byte_sizes(1024, 64 << 30, _FILES),
    metavar="64k,1g,…",
    help="Sizes of files [default: 1m and 32m].",
)
@click.option(
    "--records",
    cls=CommaList,
    callback=byte_sizes(1024, 16 << 20, _RECORDS),
    metavar="4k,64k,…",
    help="Lengths of records [default: 8k, 64k and 512k].",
)
@click.option("--processes", type=click.IntRange(1, 64), default=4, show_default=True, metavar="N", help="How many work at once.")
@click.option("--buffered", is_flag=True, help="Through the page cache, with an fsync after writing [default: direct I/O].")
@click.option("--time", "-t", "seconds", type=Finite(0.1, 3600), default=3.0, show_default=True, help="Most seconds of each run.")
@click.option("--runs", type=click.IntRange(1, 100), metavar="N", help=f"Runs [default: {_DRIVE_RUNS}; DEVICE: {_DEVICE_RUNS}].")
@machine_options
@output_options
def command(
    subject: str,
    machine: Machine,
    folder: Path | None,
    sched: str | None,
    files: tuple[int, ...],
    records: tuple[int, ...],
    processes: int,
    buffered: bool,
    seconds: float,
    runs: int | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure each scheduler by operation, file size and record length, as iozone does, on a DRIVE model or a DEVICE (as sda).

    On a DEVICE fio works, as root, on files of its own in FOLDER; its scheduler is changed for each measurement, and restored at
    the end. `select` and `watch --method table` take what --json writes as --ranking FILE.
    """
    work = Work(processes, seconds, buffered)
    wanted = cells([size >> 10 for size in files], [size >> 10 for size in records])
    if machine.has(subject):
        if folder is None:
            raise Problem(f"{subject}: a disk is measured in files on it: give --folder")
        target = target_of(machine, subject)
        chosen = chosen_of(target, sched)
        check_folder(machine, target, folder, wanted, work)
        each = runs or _DEVICE_RUNS
        most_s = len(chosen) * len(wanted) * each * work.seconds
        click.echo(f"{target.device.name}: up to {most_s:.0f} s of measuring, besides making files in {folder}", err=True)
        title = target.device.identity
        measured = of_folder(target, machine.state, folder, chosen, wanted, work, each)
    else:
        if folder is not None:
            raise Problem(f"--folder is for a disk of this machine, and there is no {subject}")
        drive = open_drive(subject)
        variants = parse_variants(sched or ALL, (), READERS)
        with progress_bar(f"table on {drive.name}", None) as update:
            title = drive.name
            measured = of_drive(drive, variants, wanted, work, RunConditions(), (runs or _DRIVE_RUNS) - 1, update)
    if as_json:
        write_json(table_document(title, work, measured, ()), output)
        return
    with page(output) as out:
        show(out, _table(measured))


def _table(measured: Sequence[MeasuredCell]) -> Table:
    """MB/s, a row for each cell, and the best of it."""
    rates = {(one.cell, one.point.scheduler): one.point.mbps for one in measured}
    names = list(dict.fromkeys(one.point.scheduler for one in measured))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for head in ("MB/s", "file", "record", *names, "best"):
        table.add_column(head, justify="left" if head in ("MB/s", "best") else "right")
    for cell, won in zip(dict.fromkeys(one.cell for one in measured), cell_winners(measured), strict=True):
        even = f"; within 2%: {', '.join(won.even)}" if won.even else f", {won.ahead_percent:.0f}% ahead"
        sizes = (size_text(won.file_bytes), size_text(won.record_bytes))
        table.add_row(cell.operation, *sizes, *(digits(rates[cell, name]) for name in names), won.scheduler + even)
    return table
