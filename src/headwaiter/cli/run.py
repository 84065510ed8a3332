# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter run: one scheduler in detail."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import distinct, writing
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import OneName, announce, conditions, reading, simulation_options, table_options
from headwaiter.cli._output import file_option, output_options, page, write_json
from headwaiter.cli._progress import progress_bar, reading_bar
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.schedulers import Scheduler, find, settings
from headwaiter.engine.sim import Options
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.detail import head
from headwaiter.judge.judge import runs_of
from headwaiter.papers.was.config import READERS
from headwaiter.report.figure import check_form
from headwaiter.report.head import draw_heads
from headwaiter.report.tables import heading, hidden, legend, print_conditions, show, table, tasks_table
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.schema import Result, RunDocument
from headwaiter.study.single import run_single
from headwaiter.study.streamed import open_streamed, run_streamed, streams_itself
from headwaiter.study.variants import Variant, parse_variant
from headwaiter.study.workload import OPEN, Reading, find_workload


@click.command("run", cls=Command)
@click.argument("workload", shell_complete=complete.workload)
@click.option(
    "--sched",
    "-s",
    cls=OneName,
    several="headwaiter compare",
    required=True,
    metavar="NAME[:TUNABLE=VALUE...]",
    shell_complete=complete.scheduler,
    help="The scheduler (see 'headwaiter schedulers'), such as bfq:low_latency=0.",
)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE|FILE", help="Override a tunable's default, or give a table.")
@file_option("--log", metavar="FILE", help="Write the event log (CSV).")
@file_option("--plot", metavar="FILE", help="Draw where the head goes (.png, .svg, .pdf; needs matplotlib).")
@click.option(
    "--stream",
    is_flag=True,
    help="Replay a trace from disk, at its timestamps, in memory that does not grow with its length"
    " [default: open replays of 64 MiB of text and more].",
)
@table_options
@simulation_options
@output_options
def command(
    workload: str,
    sched: str,
    pairs: tuple[str, ...],
    log: Path | None,
    plot: Path | None,
    stream: bool,
    wide: bool,
    with_legend: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Run WORKLOAD (a trace, a fio job file or a generated workload) under one scheduler."""
    chosen = parse_variant(sched, READERS)
    policy = find(chosen.scheduler)
    tunables = {**chosen.settings, **settings(policy, pairs, READERS)}
    path = find_workload(workload)
    distinct({"WORKLOAD": path}, {"-o": output, "--log": log, "--plot": plot})
    if plot:
        check_form(plot)
    read, named = reading(given), Variant(policy.name, chosen.name, tunables)
    if stream or streams_itself(path, read):
        if plot or given["seeds"]:
            raise Problem(f"--stream keeps no row of a request: {'--plot' if plot else '--seeds'} is not for it")
        _streamed(path, read, named, conditions(given), log, output, as_json, wide, with_legend, given["drive"])
        return
    with reading_bar(path) as say:
        work, drive = read_on_drive(path, given["drive"], read, progress=lambda name, _: say(f"trying {name}"))
    how = conditions(given)
    work = how.load(work, drive)
    ((variant, options),) = how.runs([named], drive, work.trace)
    asked = runs_of(work, given["seeds"])
    total = announce(work.load, drive, options, 1, asked)
    with ExitStack() as stack:  # no log without results
        log_file = stack.enter_context(writing(log)) if log else None
        with progress_bar(f"{work.name} on {drive.name}", total) as update:
            done = run_single(
                work,
                drive,
                variant,
                options,
                asked,
                seed=given["seed"],
                log=log_file,
                progress=lambda ios: update(policy.name, ios),
            )
        [result] = done.document.results
        if plot:
            draw_heads(plot, [(result, head(variant, drive, done.load, options))])
        if as_json:
            write_json(done.document, output)
            return
        _print(done.document, heading(work, drive), named, options, output, wide, with_legend)


def _streamed(
    path: Path,
    read: Reading,
    named: Variant,
    how: RunConditions,
    log: Path | None,
    output: Path | None,
    as_json: bool,
    wide: bool,
    with_legend: bool,
    drive: str | None,
) -> None:
    """Run a trace from disk: it is read once for what must be known of it, and again for the run."""
    with progress_bar(f"{path.name}: reading", None, unit="rows") as update:
        streamed = open_streamed(path, drive, read, lambda rows: update(path.name, rows))
    ((variant, options),) = how.runs([named], streamed.drive, streamed.head)
    title = f"{streamed.name} on {streamed.drive.name}, replayed {OPEN}"
    with ExitStack() as stack:
        log_file = stack.enter_context(writing(log)) if log else None
        with progress_bar(title, streamed.index.requests) as update:
            document = run_streamed(
                streamed, variant, options, seed=how.seed, log=log_file, progress=lambda ios: update(named.name, ios)
            )
        if as_json:
            write_json(document, output)
            return
        _print(document, title, named, options, output, wide, with_legend)


def _print(
    document: RunDocument, title: str, named: Variant, options: Options, output: Path | None, wide: bool, with_legend: bool
) -> None:
    """Figures as people read them."""
    [result] = document.results
    with page(output, fitted=True) as out:
        show(out, Text(title, style="bold"))
        out.print()
        rows = table([result], width=None if wide else out.width)
        show(out, rows)
        out.print()
        _details(out, result, find(named.scheduler), named.settings)
        if with_legend:
            show(out, legend([result]))
            out.print()
        print_conditions(out, options, document.notes)
        if left := hidden(rows, [result]):
            show(out, Text(f"(--wide shows {left} more column{'s' if left > 1 else ''}; --legend explains them)"))


def _details(out: Console, result: Result, policy: Scheduler, tunables: Mapping[str, Setting]) -> None:
    """Tasks, what was set, and the scheduler's own figures."""
    show(out, tasks_table(result))
    out.print()
    changed = [f"{k}={policy.show(k, v)}" for k, v in tunables.items()]
    if changed:
        out.print("Set: " + " ".join(changed))
    for name, value in (result.stats or {}).items():
        stat = policy.stats[name]
        out.print(f"{name} = {value}{' ' + stat.unit if stat.unit else ''}  ({stat.help})", soft_wrap=True)
