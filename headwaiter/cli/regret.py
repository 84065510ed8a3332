# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter regret: what each scheduler loses as a compromise, over many workloads and drives."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import click
from rich import box
from rich.table import Table
from rich.text import Text

from headwaiter.cli import _complete as complete
from headwaiter.cli._output import output_option, page
from headwaiter.cli._progress import progress_bar
from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Options
from headwaiter.errors import Problem, shown
from headwaiter.regret.matrix import DRIVES, SEEDS, measure
from headwaiter.regret.scores import CLOSE, Judged, judge, reference_of
from headwaiter.regret.workloads import BUNDLED, Contest, read_contests
from headwaiter.report.tables import show
from headwaiter.study.variants import ALL, parse_variants
from headwaiter.study.workload import NR_REQUESTS
from headwaiter.was.config import READERS


@click.command("regret")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option(
    "--policies",
    "-s",
    default=ALL,
    show_default=True,
    shell_complete=complete.schedulers,
    metavar="a,b:TUNABLE=VALUE,…|all",
    help="Schedulers to judge; a name with settings is a variant, which does not set what is best.",
)
@click.option("--set", "pairs", multiple=True, metavar="[SCHED.]NAME=VALUE|FILE", help="Override a tunable's default.")
@click.option(
    "--drives", "-d", default=",".join(DRIVES), show_default=True, metavar="a,b,…", help="Names or files of drives."
)
@click.option("--workloads", "-w", metavar="a,b*,…", help="Only these workloads of FOLDER [default: all].")
@click.option("--seeds", type=click.IntRange(1, 1000), default=SEEDS, show_default=True, metavar="N", help="Runs of each cell.")
@click.option("--seed", type=click.IntRange(0, 2**62), default=0, show_default=True, metavar="N", help="The first seed.")
@output_option()
def command(
    folder: Path | None,
    policies: str,
    pairs: tuple[str, ...],
    drives: str,
    workloads: str | None,
    seeds: int,
    seed: int,
    output: Path | None,
) -> None:
    """Judge schedulers as compromises, on the workloads in FOLDER (default: the bundled ones).

    Each workload says what is contested in it. A scheduler's regret in a cell (a workload on a drive) is what it lacks of the best
    compromise that any scheduler gives there.
    """
    contests = _chosen(read_contests(folder or BUNDLED), workloads)
    variants = parse_variants(policies, pairs, READERS)
    opened = [open_drive(name) for name in drives.split(",")]
    options = MEASURED.apply(Options(seed=seed, nr_requests=NR_REQUESTS, join_arriving=True))
    runs = len(contests) * len(opened) * seeds * len(variants)
    with progress_bar("regret", runs, unit="runs") as update:
        cells = measure(contests, opened, variants, options, seeds, update)
    judged = judge(cells, variants, reference_of(variants))
    with page(output) as out:
        show(out, Text(f"{len(contests)} workloads x {len(opened)} drives, {seeds} seeds", style="bold"))
        out.print()
        show(out, _standings(judged))
        out.print()
        for row in judged.standings():
            at = [v.name for v in variants].index(row.name)
            cell = cells[row.worst_cell]
            show(out, Text(f"{row.name} loses most in {cell.contest.name} on {cell.drive}: {judged.why(at, row.worst_cell)}"))


def _chosen(contests: list[Contest], patterns: str | None) -> list[Contest]:
    if patterns is None:
        return contests
    chosen: list[Contest] = []
    for pattern in patterns.split(","):
        found = [c for c in contests if fnmatchcase(c.name, pattern)]
        if not found:
            raise Problem(f"--workloads {shown(pattern)}: none of that name ({', '.join(c.name for c in contests)})")
        chosen += [c for c in found if c not in chosen]
    return chosen


def _standings(judged: Judged) -> Table:
    t = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    t.add_column("\nscheduler", no_wrap=True)
    for head in ("mean\n%", "over seeds\n%", "worst\n%", f"within {CLOSE:.0%}\nof {len(judged.cells)}"):
        t.add_column(head, justify="right", no_wrap=True)
    t.add_column("\nworst in", no_wrap=True)
    for row in judged.standings():
        cell = judged.cells[row.worst_cell]
        t.add_row(
            row.name, f"{100 * row.mean:.1f}", f"{100 * row.low:.1f}-{100 * row.high:.1f}", f"{100 * row.worst:.0f}",
            str(row.close), f"{cell.contest.name} on {cell.drive}",
        )  # fmt: skip
    return t
