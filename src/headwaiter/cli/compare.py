# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter compare: every scheduler on one workload."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from headwaiter.base.errors import Problem, counted, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import CommaList, announce, conditions, margin_option, reading, simulation_options, table_options
from headwaiter.cli._output import file_option, output_options, page, write_json, write_text
from headwaiter.cli._progress import progress_bar, reading_bar
from headwaiter.judge.detail import pictured
from headwaiter.judge.judge import Judged, judge, runs_of
from headwaiter.judge.levers import pull
from headwaiter.papers.was.config import READERS
from headwaiter.report.page import check_libraries, render
from headwaiter.report.tables import brief, csv_rows, heading, hidden, legend, print_conditions, show, table, write_csv
from headwaiter.study.compare import RANKINGS
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.schema import Criterion
from headwaiter.study.variants import ALL, Variant, parse_variant, parse_variants
from headwaiter.study.workload import find_workload

_OUTCOMES = {"better": "bold green", "keep": "bold", "idle": "bold", "alone": ""}


def _baseline(name: str | None, variants: list[Variant]) -> str | None:
    """The variant of --current."""
    if name is None:
        return None
    known = [v.name for v in variants]
    wanted = parse_variant(name, READERS).name
    if wanted not in known:
        meant = did_you_mean(wanted, known)
        raise Problem(f"--current {shown(name)}: not among the schedulers compared{meant} ({', '.join(known)})")
    return wanted


@click.command("compare", cls=Command)
@click.argument("workload", required=False, shell_complete=complete.workload)
@click.option(
    "--sched",
    "-s",
    cls=CommaList,
    default=ALL,
    show_default=True,
    shell_complete=complete.schedulers,
    metavar="a,b:TUNABLE=VALUE,…|all",
    help="Schedulers to compare; a name with settings is a variant of its own, such as bfq:low_latency=0.",
)
@click.option(
    "--set", "pairs", multiple=True, metavar="[SCHED.]NAME=VALUE|FILE", help="Override a tunable's default, or give a table."
)
@click.option(
    "--current",
    metavar="NAME",
    shell_complete=complete.scheduler,
    help="The scheduler in use, which others are held against [default: the one in force at the recording, if it is known; else"
    " mq-deadline, none, or the first].",
)
@margin_option("Differences of less than this do not matter.")
@click.option(
    "--by",
    type=click.Choice(list(RANKINGS)),
    help="Ranking [default: progress, how fast programs get their work done; latency in open replays].",
)
@click.option(
    "--levers/--no-levers",
    "levers",
    default=True,
    show_default=True,
    help="Try what may help beside a scheduler, too: I/O classes of programs, and settings of the queue.",
)
@click.option("--anyway", is_flag=True, help="Rank even if the drive is not the recorded one.")
@click.option(
    "--all",
    "show_all",
    is_flag=True,
    help="Show all in the table, which otherwise has an unchanged kernel's and the best of ours, unless --sched names some.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: of each scheduler the verdict on it, and its figures.")
@file_option("--report", metavar="FILE.html", help="Write a page with tables and charts, too (needs Bokeh and Jinja2).")
@table_options
@simulation_options
@output_options
def command(
    workload: str | None,
    sched: str,
    pairs: tuple[str, ...],
    current: str | None,
    margin: float,
    by: Criterion | None,
    levers: bool,
    anyway: bool,
    show_all: bool,
    as_csv: bool,
    report: Path | None,
    wide: bool,
    with_legend: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Run WORKLOAD (a trace, a fio job file or a generated workload; default: the bundled example) under several schedulers.

    Print which one to take and why, and a table, best first. Of all schedulers, those of an unchanged kernel come first.
    """
    if as_csv and as_json:
        raise Problem("--csv and --json are mutually exclusive")
    if report:
        check_libraries()
    variants = parse_variants(sched, pairs, READERS)
    baseline = _baseline(current, variants)
    path = find_workload(workload)
    distinct({"WORKLOAD": path}, {"-o": output, "--report": report})
    with reading_bar(path) as say:
        work, drive = read_on_drive(path, given["drive"], reading(given), progress=lambda name, _: say(f"trying {name}"))
    how = conditions(given)
    work = how.load(work, drive)
    total = announce(work.load, drive, how.options(drive), len(variants), runs_of(work, given["seeds"]), compared=True)
    with progress_bar(f"{work.name} on {drive.name}", total) as update:
        found = judge(
            work,
            drive,
            variants,
            how,
            by=by,
            runs=given["seeds"],
            current=baseline,
            margin=margin / 100,
            anyway=anyway,
            tasks=as_json or report is not None,
            progress=update,
        )
    if levers:
        with progress_bar(f"{work.name} on {drive.name}, with what else may help", None) as update:
            found = replace(found, levers=tuple(pull(found, progress=update)))
    if report:
        ios = sum(r.requests for r in found.results)
        with progress_bar(f"{work.name} on {drive.name}, for {report.name}", ios) as update:
            write_text(render(found, pictured(found, update)), report)
    if as_json:
        write_json(found.document(), output)
        return
    if as_csv:
        buffer = io.StringIO()
        write_csv(csv_rows(found.results, found.answer.margins, found.criterion), buffer)
        write_text(buffer.getvalue(), output)
        return
    with page(output, fitted=True) as out:
        _show(out, found, wide, with_legend, parted=sched == ALL, show_all=show_all or sched != ALL)


def _show(out: Console, found: Judged, wide: bool, with_legend: bool, *, parted: bool, show_all: bool) -> None:
    """The verdict, the table, and what one must know to read it."""
    results = found.results if show_all else brief(found.results, found.answer)
    judged = (found.answer.margins, found.criterion)
    show(out, Text(heading(found.work, found.drive), style="bold"))
    out.print()
    first, dot, rest = found.answer.text.partition(". ")
    show(out, Text.assemble((first + dot, _OUTCOMES.get(found.answer.outcome, "bold yellow")), rest))
    out.print()
    for lever in found.levers:
        show(out, Text(lever.text if lever.kind == "set" else f"Besides, {lever.text}"))
        for line in lever.apply:
            out.print(f"  {line}", soft_wrap=True)
    if found.levers:
        out.print()
    rows = table(results, *judged, width=None if wide else out.width, parted=parted)
    show(out, rows)
    out.print()
    if with_legend:
        show(out, legend(results, *judged))
        out.print()
    print_conditions(out, found.options, found.notes)
    if found.uncertain and found.answer.outcome not in ("overloaded", "wrong drive"):
        show(out, Text(found.uncertain))
    more = []
    if left := len(found.results) - len(results):
        more.append(f"--all shows {counted(left, 'more scheduler')}")
    if left := hidden(rows, results, *judged):
        more.append(f"--wide {'' if more else 'shows '}{counted(left, 'more column')}; --legend explains them")
    if more:
        show(out, Text(f"({', '.join(more)})"))
