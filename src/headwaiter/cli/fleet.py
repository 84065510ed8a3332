# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter fleet: many machines' recordings, judged one by one and together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

import click
from rich.text import Text

from headwaiter.advice.schema import Goal
from headwaiter.base.errors import counted
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._output import file_option, json_option, write_json, write_text
from headwaiter.cli._progress import progress_bar
from headwaiter.cli.sweep import cluster_options
from headwaiter.drives.choose import open_drive
from headwaiter.fleet.fleet import judge_fleet
from headwaiter.fleet.summary import document_of
from headwaiter.report.fleets import class_table, cost_table, failed_table, fleet_heading, fleet_verdict, gain_table, render
from headwaiter.report.page import check_libraries
from headwaiter.report.tables import print_notes, show
from headwaiter.report.terminal import console
from headwaiter.study.drive_fit import AUTO


@click.command("fleet", cls=Command)
@click.argument("places", nargs=-1, required=True, metavar="FOLDER|FILE|PATTERN...", shell_complete=complete.among(lambda: ()))
@file_option("--output", "-o", "html", metavar="FILE.html", help="Write a page, too (needs Bokeh and Jinja2).")
@file_option("--parquet", metavar="FILE", help="Write a row for each machine, too; cut short, the same command goes on.")
@click.option(
    "--goal",
    type=click.Choice(get_args(Goal)),
    default="progress",
    show_default=True,
    help="The figure to improve, as in `advise`.",
)
@click.option(
    "--drive",
    "-d",
    default=AUTO,
    show_default=True,
    metavar="NAME|FILE.toml|auto",
    shell_complete=complete.drive,
    help="Drive to simulate for all. auto picks the bundled one that fits each recording best.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of resampling.")
@click.option("--modules", is_flag=True, help="Try schedulers that need a module, too; it takes three times as long.")
@cluster_options
@json_option
def command(
    places: tuple[str, ...],
    html: Path | None,
    parquet: Path | None,
    goal: Goal,
    drive: str,
    seed: int,
    modules: bool,
    workers: int | None,
    cluster: str | None,
    as_json: bool,
) -> int:
    """Judge the recordings of many machines: which setting for which class, who gains how much, what one for all would cost.

    Each recording gets the answer of `headwaiter advise`. No name of a program is in what is written.
    """
    if html:
        check_libraries()
    distinct({}, {"-o": html, "--parquet": parquet})
    if drive != AUTO:
        open_drive(drive)
    with ExitStack() as stack:
        bars: list[Callable[[str, int], None]] = []

        def begin(machines: int, todo: int) -> None:
            if todo < machines:
                click.echo(f"{machines - todo} of {counted(machines, 'machine')} are judged already", err=True)
            bars.append(stack.enter_context(progress_bar("fleet", todo, unit="machines")))

        def update(part: str, count: int) -> None:
            bars[0](part, count)

        frame = judge_fleet(
            places,
            goal=goal,
            drive=drive,
            seed=seed,
            modules=modules,
            parquet=parquet,
            workers=workers,
            cluster=cluster,
            began=begin,
            progress=update,
        )
    found = document_of(frame, goal)
    if html:
        write_text(render(found), html)
    if as_json:
        write_json(found, None)
    else:
        out = console()
        show(out, Text(fleet_heading(found), style="bold"))
        out.print()
        show(out, Text(fleet_verdict(found)))
        tables = [class_table(found), gain_table(found), cost_table(found)]
        for table in [*tables, failed_table(found)] if found.failures else tables:
            out.print()
            show(out, table)
        print_notes(out, found.notes)
    return 1 if found.fates["failed"] else 0
