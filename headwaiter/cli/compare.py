# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter compare: every scheduler on one workload."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from headwaiter.cli._options import announce, progress_bar, reading, run_options, simulation_options
from headwaiter.cli._output import output_options, page, write_json, write_text
from headwaiter.cli._settings import settings_of
from headwaiter.drives.choose import open_drive
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.errors import Problem
from headwaiter.outputs import distinct
from headwaiter.report.tables import heading, print_conditions, table, write_csv
from headwaiter.study.compare import RANKINGS, explain, rank, run_all, uncertain, without_processor
from headwaiter.study.results import coarse_note, processor_time
from headwaiter.study.schema import CompareDocument, Criterion
from headwaiter.study.workload import find_workload, read_workload


def _schedulers(text: str) -> list[str]:
    if text == "all":
        return list(catalogue())
    return list(dict.fromkeys(find(name.strip()).name for name in text.split(",")))


@click.command("compare")
@click.argument("workload", required=False)
@click.option("--sched", "-s", default="all", show_default=True, metavar="a,b,…|all", help="Schedulers to compare.")
@click.option(
    "--set", "pairs", multiple=True, metavar="[SCHED.]NAME=VALUE|FILE", help="Override a tunable's default, or give a table."
)
@click.option("--by", type=click.Choice(list(RANKINGS)), help="Ranking [default: throughput, or latency if all keep up].")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@simulation_options
@output_options
def command(
    workload: str | None,
    sched: str,
    pairs: tuple[str, ...],
    by: Criterion | None,
    as_csv: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Run WORKLOAD (a trace, a fio job file or a generated workload; default: the bundled example) under several schedulers.

    Print a table, best first, with the reason why the first is best.
    """
    if as_csv and as_json:
        raise Problem("--csv and --json are mutually exclusive")
    chosen = _schedulers(sched)
    tunables = settings_of(pairs, chosen)
    drive = open_drive(given["drive"])
    path = find_workload(workload)
    distinct({"WORKLOAD": path}, {"-o": output})
    work = read_workload(path, drive, reading(given))
    options = run_options(given)
    announce(work.load, drive, options, len(chosen), given["seeds"])
    with progress_bar(f"{work.name} on {drive.name}", None) as update:
        results = run_all(chosen, drive, work.load, tunables, options, update, given["seeds"], as_json)
        notes = [
            *work.notes,
            *coarse_note(results, options.exact),
            *without_processor(results, drive, work.load, tunables, options),
        ]
    criterion, ranked = rank(results, by)
    sentence = explain(criterion, ranked)
    doubt = uncertain(criterion, ranked)
    if as_json:
        document = CompareDocument(
            workload=work.name,
            drive=drive.name,
            seed=given["seed"],
            replay=work.replay,
            ranked_by=criterion,
            why=sentence,
            uncertain=doubt,
            processor=processor_time(options),
            notes=notes,
            results=ranked,
        )
        write_json(document, output)
        return
    if as_csv:
        buffer = io.StringIO()
        write_csv(ranked, buffer)
        write_text(buffer.getvalue(), output)
        return
    with page(output) as out:
        out.print(table(ranked, heading(work, drive)))
        print_conditions(out, options, notes)
        out.print(sentence, soft_wrap=True)
        if doubt:
            out.print(doubt, soft_wrap=True)
