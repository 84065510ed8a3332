# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter run: one scheduler in detail."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from headwaiter.base.outputs import distinct, writing
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import announce, conditions, reading, simulation_options, table_options
from headwaiter.cli._output import file_option, output_options, page, write_json
from headwaiter.cli._progress import progress_bar, reading_bar
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.schedulers import Scheduler, find, settings
from headwaiter.judge.detail import head
from headwaiter.judge.judge import runs_of
from headwaiter.papers.was.config import READERS
from headwaiter.report.figure import check_form
from headwaiter.report.head import draw_heads
from headwaiter.report.tables import heading, hidden, legend, print_conditions, show, table, tasks_table
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.schema import Result
from headwaiter.study.single import run_single
from headwaiter.study.variants import Variant, parse_variant
from headwaiter.study.workload import find_workload


@click.command("run", cls=Command)
@click.argument("workload", shell_complete=complete.workload)
@click.option(
    "--sched",
    "-s",
    required=True,
    metavar="NAME[:TUNABLE=VALUE...]",
    shell_complete=complete.scheduler,
    help="The scheduler (see 'headwaiter schedulers'), such as bfq:low_latency=0.",
)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE|FILE", help="Override a tunable's default, or give a table.")
@file_option("--log", metavar="FILE", help="Write the event log (CSV).")
@file_option("--plot", metavar="FILE", help="Draw where the head goes (.png, .svg, .pdf; needs matplotlib).")
@table_options
@simulation_options
@output_options
def command(
    workload: str,
    sched: str,
    pairs: tuple[str, ...],
    log: Path | None,
    plot: Path | None,
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
    with reading_bar(path) as say:
        work, drive = read_on_drive(path, given["drive"], reading(given), progress=lambda name, _: say(f"trying {name}"))
    how = conditions(given)
    work = how.load(work, drive)
    ((variant, options),) = how.runs([Variant(policy.name, chosen.name, tunables)], drive, work.trace)
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
        with page(output, fitted=True) as out:
            show(out, Text(heading(work, drive), style="bold"))
            out.print()
            rows = table([result], width=None if wide else out.width)
            show(out, rows)
            out.print()
            _details(out, result, policy, tunables)
            if with_legend:
                show(out, legend([result]))
                out.print()
            print_conditions(out, options, done.document.notes)
            if left := hidden(rows, [result]):
                show(out, Text(f"(--wide shows {left} more column{'s' if left > 1 else ''}; --legend explains them)"))


def _details(out: Console, result: Result, policy: Scheduler, tunables: dict[str, Setting]) -> None:
    """Tasks, what was set, and the scheduler's own figures."""
    show(out, tasks_table(result))
    out.print()
    changed = [f"{k}={policy.show(k, v)}" for k, v in tunables.items()]
    if changed:
        out.print("Set: " + " ".join(changed))
    for name, value in (result.stats or {}).items():
        stat = policy.stats[name]
        out.print(f"{name} = {value}{' ' + stat.unit if stat.unit else ''}  ({stat.help})", soft_wrap=True)
