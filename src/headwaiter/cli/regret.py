# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter regret: what each scheduler loses as a compromise, over many workloads and drives."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from headwaiter.base.errors import Problem, shown
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import CommaList, condition_options, conditions
from headwaiter.cli._output import file_option, output_options, page, write_json, write_text
from headwaiter.cli._progress import progress_bar
from headwaiter.drives.choose import open_drive
from headwaiter.papers.was.config import READERS
from headwaiter.regret.measurements import DRIVES, SEEDS, STANDINGS, measure
from headwaiter.regret.scores import each, judge, reference_of
from headwaiter.regret.workloads import BUNDLED, Contest, random_contests, read_contests
from headwaiter.report.page import check_libraries
from headwaiter.report.regrets import heading, reasons, render, standings_table, verdict
from headwaiter.report.tables import print_conditions, show
from headwaiter.study.variants import ALL, parse_variants


@click.command("regret", cls=Command)
@click.argument("workloads", metavar="[FOLDER|FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--policies",
    "-s",
    cls=CommaList,
    default=ALL,
    show_default=True,
    shell_complete=complete.schedulers,
    metavar="a,b:TUNABLE=VALUE,…|all",
    help="Schedulers to judge; a name with settings is a variant of its own.",
)
@click.option(
    "--set", "pairs", multiple=True, metavar="[SCHED.]NAME=VALUE|FILE", help="Override a tunable's default, or give a table."
)
@click.option(
    "--drives",
    "-d",
    cls=CommaList,
    default=",".join(DRIVES),
    show_default=True,
    metavar="a,b,…",
    shell_complete=complete.drives,
    help="Names or files of drives.",
)
@click.option("--only", "-w", cls=CommaList, metavar="a,b*,…", help="Only these of the workloads.")
@click.option(
    "--random",
    "jobs",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Judge N random jobs by the progress of their programs: those of `lab agree --random`, numbered from --seed on.",
)
@click.option("--contested", metavar="TEXT", help="The line of files that do not say what is contested in them (docs/regret.md).")
@click.option(
    "--against",
    cls=CommaList,
    metavar="a,b,…",
    shell_complete=complete.schedulers,
    help="Schedulers that set what is best [default: all that are judged, without variants].",
)
@click.option(
    "--each", "singly", is_flag=True, help="Judge by each figure for itself, not by all that are contested in a workload."
)
@click.option("--seeds", type=click.IntRange(1, 1000), default=SEEDS, show_default=True, metavar="N", help="Runs of each cell.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**62),
    default=0,
    show_default=True,
    metavar="N",
    help="The first seed, and the first random job.",
)
@condition_options(STANDINGS, "seed", "goes_on", "whole")
@file_option("--report", metavar="FILE.html", help="Write a page with a map of all cells, too (needs Bokeh and Jinja2).")
@output_options
def command(
    workloads: tuple[Path, ...],
    policies: str,
    pairs: tuple[str, ...],
    drives: str,
    only: str | None,
    jobs: int | None,
    contested: str | None,
    against: str | None,
    singly: bool,
    seeds: int,
    seed: int,
    report: Path | None,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Judge schedulers as compromises, on the workloads of a FOLDER (default: the bundled ones) or on single FILEs.

    Each workload says what is contested in it, such as throughput and fairness. A scheduler's regret in a cell (a workload on a
    drive) is what its score lacks of the best compromise that any scheduler gives there.
    """
    if report:
        check_libraries()
    distinct({f"workload {i}": path for i, path in enumerate(workloads)}, {"-o": output, "--report": report})
    if jobs and workloads:
        raise Problem(f"--random {jobs}: judges random jobs, and not {shown(str(workloads[0]))}")
    found = random_contests(jobs, seed, contested) if jobs else read_contests(workloads or [BUNDLED], contested)
    contests = _chosen(found, only)
    variants = parse_variants(policies, pairs, READERS)
    reference = reference_of(variants, against)
    opened = [open_drive(name) for name in dict.fromkeys(drives.split(","))]
    how = conditions({**given, "seed": seed})
    options = how.options(opened[0])
    with progress_bar("regret", len(contests) * len(opened) * seeds * len(variants), unit="runs") as update:
        cells, notes = measure(contests, opened, variants, how, seeds, update)
    judged = judge(each(cells) if singly else cells, variants, reference)
    if report:
        write_text(render(judged, options, notes), report)
    if as_json:
        write_json(judged.document(options, notes), output)
        return
    with page(output) as out:
        show(out, Text(heading(judged), style="bold"))
        out.print()
        show(out, Text(verdict(judged)))
        out.print()
        show(out, standings_table(judged))
        out.print()
        for line in reasons(judged):
            show(out, Text(line))
        print_conditions(out, options, notes)


def _chosen(contests: list[Contest], patterns: str | None) -> list[Contest]:
    """Return those whose names match one of the patterns."""
    if patterns is None:
        return contests
    for pattern in patterns.split(","):
        if not any(fnmatchcase(c.name, pattern) for c in contests):
            raise Problem(f"--only {shown(pattern)}: there is no such workload ({', '.join(c.name for c in contests)})")
    return [c for c in contests if any(fnmatchcase(c.name, pattern) for pattern in patterns.split(","))]
