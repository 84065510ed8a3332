# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter rank: throughput by scheduler and request size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich import box
from rich.table import Table

from headwaiter.advice.target import target_of
from headwaiter.base.figures import digits
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._chosen import chosen_of, sched_option
from headwaiter.cli._commands import Command
from headwaiter.cli._machine import machine_options
from headwaiter.cli._options import CommaList, Finite, byte_sizes, size_text
from headwaiter.cli._output import file_option, output_options, page, write_json
from headwaiter.cli._progress import progress_bar
from headwaiter.drives.choose import open_drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.papers.rank import PATTERNS, SIZES, Pattern, RankedLoad, RankedPoint, document, of_device, of_drive, winners
from headwaiter.papers.was.config import READERS
from headwaiter.queue.machine import Machine
from headwaiter.report.figure import check_form, figure
from headwaiter.report.tables import show
from headwaiter.study.variants import ALL, parse_variants

_DRIVE_RUNS, _DEVICE_RUNS = 4, 3


@click.command("rank", cls=Command)
@click.argument("subject", metavar="DRIVE|DEVICE", shell_complete=complete.drive_or_disk)
@sched_option
@click.option(
    "--sizes",
    cls=CommaList,
    callback=byte_sizes(512, SIZES[-1], SIZES),
    metavar="4k,64k,…",
    help="Request sizes [default: 4k to 1m].",
)
@click.option("--pattern", type=click.Choice(PATTERNS), default="mixed", show_default=True, help="How processes read.")
@click.option("--processes", type=click.IntRange(1, 64), default=4, show_default=True, metavar="N", help="How many read at once.")
@click.option("--time", "-t", "seconds", type=Finite(0.1, 3600), default=3.0, show_default=True, help="Seconds of each run.")
@click.option("--runs", type=click.IntRange(1, 100), metavar="N", help=f"Runs [default: {_DRIVE_RUNS}; DEVICE: {_DEVICE_RUNS}].")
@file_option("--plot", metavar="FILE", help="Draw the figure (.png, .svg, .pdf).")
@machine_options
@output_options
def command(
    subject: str,
    machine: Machine,
    sched: str | None,
    sizes: tuple[int, ...],
    pattern: Pattern,
    processes: int,
    seconds: float,
    runs: int | None,
    plot: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure the throughput of each scheduler with each request size, on a DRIVE model or a DEVICE (such as sda).

    A DEVICE is read by fio, as root, and never written; its scheduler is changed for each measurement, and restored at the end.
    """
    if plot:
        check_form(plot)
    distinct({}, {"-o": output, "--plot": plot})
    load = RankedLoad(pattern, processes, seconds)
    if machine.has(subject):
        title, points = _device(subject, machine, sched, sizes, load, runs or _DEVICE_RUNS)
    else:
        drive = open_drive(subject)
        variants = parse_variants(sched or ALL, (), READERS)
        with progress_bar(f"rank on {drive.name}", None) as update:
            title, points = drive.name, of_drive(drive, variants, sizes, load, RunConditions(), (runs or _DRIVE_RUNS) - 1, update)
    if plot:
        _plot(title, points, plot)
    if as_json:
        write_json(document(title, load, points, ()), output)
        return
    with page(output) as out:
        show(out, _table(points))
        for row in winners(points):
            even = f"; within 2%: {', '.join(row.even)}" if row.even else ""
            out.print(f"{size_text(row.request_bytes)}: {row.scheduler}, {row.ahead_percent:.0f}% ahead{even}")


def _device(
    name: str, machine: Machine, sched: str | None, sizes: Sequence[int], load: RankedLoad, runs: int
) -> tuple[str, list[RankedPoint]]:
    target = target_of(machine, name)
    chosen = chosen_of(target, sched)
    node = machine.root / "dev" / target.device.name.replace("!", "/")
    click.echo(f"{target.device.name}: {len(chosen) * len(sizes) * runs * load.seconds:.0f} s of reading", err=True)
    return target.device.identity, of_device(target.device, target.legs, node, chosen, sizes, load, machine.state, runs)


def _table(points: Sequence[RankedPoint]) -> Table:
    """MB/s, a row for each scheduler."""
    sizes = sorted({point.request_bytes for point in points})
    rates = {(point.scheduler, point.request_bytes): point.mbps for point in points}
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("MB/s")
    for size in sizes:
        table.add_column(size_text(size), justify="right")
    for scheduler in dict.fromkeys(point.scheduler for point in points):
        table.add_row(scheduler, *(digits(rates[scheduler, size]) for size in sizes))
    return table


def _plot(title: str, points: Sequence[RankedPoint], path: Path) -> None:
    with figure(path, figsize=(7, 4.5), description=f"throughput by scheduler and request size: {title}") as axes:
        for scheduler in dict.fromkeys(point.scheduler for point in points):
            mine = [point for point in points if point.scheduler == scheduler]
            sizes = [point.request_bytes / 1024 for point in mine]
            axes.plot(sizes, [point.mbps for point in mine], marker="o", markersize=3, label=scheduler)
            axes.fill_between(sizes, [point.low for point in mine], [point.high for point in mine], alpha=0.15)
        axes.set_xscale("log", base=2)
        axes.set(xlabel="request size (KiB)", ylabel="throughput (MB/s)", title=title)
        axes.legend(fontsize="small")
        axes.grid(alpha=0.3)
