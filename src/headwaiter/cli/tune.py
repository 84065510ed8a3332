# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter tune: the best tunables of a scheduler for a workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from headwaiter.base.errors import Problem, shown
from headwaiter.base.figures import digits
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import OneName, conditions, margin_option, reading, simulation_options
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.cli._progress import progress_bar, reading_bar
from headwaiter.report.tables import heading, print_conditions, show
from headwaiter.study.compare import RANKINGS, noun
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.schema import Criterion
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import find_workload
from headwaiter.tuning.schema import TunedRow
from headwaiter.tuning.search import TRIALS, optimiser
from headwaiter.tuning.tune import Tuned, tune

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(_: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return what --time says."""
    if text is None:
        return None
    number = text[:-1] if text[-1:] in _UNITS else text
    try:
        seconds = float(number) * _UNITS.get(text[-1:], 1.0)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86400:
        raise Problem(f"{param.opts[0]} {shown(text)}: expected a time up to 24h, such as 60s, 5m or 1h")
    return seconds


@click.command("tune", cls=Command)
@click.argument("workload", shell_complete=complete.workload)
@click.option(
    "--sched",
    "-s",
    cls=OneName,
    several="headwaiter compare",
    required=True,
    metavar="NAME[:TUNABLE=VALUE…]",
    shell_complete=complete.scheduler,
    help="The scheduler; settings behind it are where the search starts, and not at the defaults.",
)
@click.option(
    "--by",
    type=click.Choice(list(RANKINGS)),
    help="The figure to improve [default: progress, how fast programs get their work done; latency in open replays].",
)
@click.option(
    "--trials",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help=f"How many settings to try [default: {TRIALS}, without --time].",
)
@click.option("--time", "-t", "seconds", callback=_seconds, metavar="60s|5m|1h", help="How long to search, whatever --trials.")
@margin_option("Differences of less than this do not matter.")
@click.option("--anyway", is_flag=True, help="Judge even if the drive is not the recorded one.")
@simulation_options
@output_options
def command(
    workload: str,
    sched: str,
    by: Criterion | None,
    trials: int | None,
    seconds: float | None,
    margin: float,
    anyway: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Search for the tunables of a scheduler that are best for WORKLOAD, and say whether they are better than the defaults.

    The search sees the first half of a recording, and the verdict is of the second. Jobs and generated workloads run with
    another seed for the verdict. Needs Optuna: pip install 'headwaiter[tune]'.
    """
    optimiser()
    start = parse_variant(sched)
    path = find_workload(workload)
    distinct({"WORKLOAD": path}, {"-o": output})
    read = reading(given)
    with reading_bar(path) as say:
        work, drive = read_on_drive(path, given["drive"], read, progress=lambda name, _: say(f"trying {name}"))
    how, total = conditions(given), trials or (None if seconds else TRIALS)
    with progress_bar(f"{work.name} on {drive.name}", total, unit="settings") as update:
        found = tune(
            path,
            work,
            drive,
            start,
            how,
            read,
            by=by,
            trials=trials,
            seconds=seconds,
            runs=given["seeds"],
            margin=margin / 100,
            anyway=anyway,
            progress=update,
        )
    if as_json:
        write_json(found.document(), output)
        return
    with page(output, fitted=True) as out:
        show(out, Text(f"{heading(work, drive)}; {start.name} by {_figure(found)}", style="bold"))
        out.print()
        show(out, Text(found.text, style="bold green" if found.recommended else "bold"))
        for title, lines in (("To apply:", found.apply), ("To undo:", found.document().undo)):
            for line in lines:
                out.print(f"{title} {line}", soft_wrap=True)
        out.print()
        show(out, _table(found.rows))
        out.print()
        print_conditions(out, how.options(drive, work.trace), found.notes)
        out.print(f"{len(found.found.tried)} settings were tried on {found.parts.trained_name}.")


def _figure(found: Tuned) -> str:
    return noun(found.found.criterion, found.judged.results if found.judged else [])


def _table(rows: list[TunedRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for head in ("tunable", "best", "start", "unit", "importance", "without it", "tried"):
        table.add_column(head, justify="left" if head in ("tunable", "unit", "tried") else "right", no_wrap=head != "tried")
    for row in rows:
        lost = "" if row.without_percent is None else f"{digits(row.without_percent)}% worse"
        share = "" if row.importance_percent is None else f"{row.importance_percent:.0f}%"
        best = str(row.value) if row.value != row.start else ""
        tried = f"{row.values[0]} … {row.values[-1]}" if len(row.values) > 3 else ", ".join(map(str, row.values))
        table.add_row(row.tunable, best, str(row.start), row.unit, share, lost, tried)
    return table
