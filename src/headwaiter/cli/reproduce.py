# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter reproduce: the published experiments, run again."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from headwaiter.base.errors import Problem, shown
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import Finite
from headwaiter.cli._output import file_option, output_options, page, write_json, write_text
from headwaiter.cli._progress import status_line
from headwaiter.engine.schedulers import catalogue
from headwaiter.papers.reproduce.archive import check, write
from headwaiter.papers.reproduce.bench import LEVELS, Bench, Level, at_once
from headwaiter.papers.reproduce.catalogue import EXPERIMENTS, QUICK, chosen, run_all
from headwaiter.papers.reproduce.claims import PaperTable, Row
from headwaiter.papers.reproduce.document import document, print_finding, rich_table, summary
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.findings_page import render
from headwaiter.papers.reproduce.second import claims_beside, compared, differing, sentences
from headwaiter.papers.was.config import READERS
from headwaiter.report.page import check_libraries
from headwaiter.report.tables import show
from headwaiter.study.variants import settings_of


@click.command("reproduce", cls=Command)
@click.argument("experiments", metavar="[EXPERIMENT]…", nargs=-1, shell_complete=complete.among(lambda: EXPERIMENTS))
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(LEVELS),
    help="Where to run them: in the simulator or in the kernel lab, which needs QEMU and a clone of the project; may be repeated"
    " [default: sim].",
)
@click.option("--list", "list_them", is_flag=True, help="List the experiments, their claims and run times, and exit.")
@click.option(
    "--scale", type=Finite(0.01, 10), metavar="F", help="Runs F times as long, or with F times as many files [default: 1]."
)
@click.option("--quick", is_flag=True, help=f"The same as --scale {QUICK:g}.")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="[SCHED.]NAME=VALUE",
    help="Override a tunable in every run of the schedulers that have it, to see which claims rest on it.",
)
@file_option("--report", metavar="FILE.html", help="Write a page with tables and charts, too (needs Bokeh and Jinja2).")
@click.option(
    "--archive",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Make a folder of the run, too: findings, tables, figures, page, versions, machine, hashes.",
)
@click.option(
    "--compare",
    "runs",
    nargs=2,
    type=click.Path(path_type=Path),
    metavar="FIRST SECOND",
    help="Run nothing: compare two earlier runs, such as those of two machines, each given by its JSON or its --archive.",
)
@output_options
def command(
    experiments: tuple[str, ...],
    levels: tuple[Level, ...],
    list_them: bool,
    scale: float | None,
    quick: bool,
    pairs: tuple[str, ...],
    report: Path | None,
    archive: Path | None,
    runs: tuple[Path, Path] | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Run published experiments again (default: all; a name's beginning, such as axboe, is enough), and say which claims hold.

    Our figures stand beside the published ones where a document prints some. A run at a smaller scale is too short to tell some
    claims. Exit with status 1 if an essential claim does not hold, or if runs that are compared decide a claim differently
    (docs/reproduction.md).
    """
    if runs:
        others = {"--level": levels, "--list": list_them, "--scale": scale, "--quick": quick, "--set": pairs, "--report": report}
        _alone(experiments, {**others, "--archive": archive})
        _compare(runs, as_json, output)
        return
    if quick and scale is not None:
        raise Problem("--quick and --scale are mutually exclusive")
    if list_them and as_json:
        raise Problem("--list and --json are mutually exclusive")
    if report or archive:
        check_libraries()
    if archive and list_them:
        raise Problem("--list and --archive are mutually exclusive")
    if archive:
        check(archive)
    distinct({}, {"-o": output, "--report": report})
    wanted = chosen(experiments)
    if list_them:
        with page(output) as out:
            show(out, rich_table(_list(wanted)))
            for level in LEVELS:
                whole, small = (_lasts_s(wanted, level, scale) for scale in (1, QUICK))
                out.print(f"{level}: about {whole:.0f} s in all, {small:.0f} s with --quick", highlight=False)
        return
    chosen_levels: Sequence[Level] = levels or ("sim",)
    factor = QUICK if quick else 1.0 if scale is None else scale
    if not any(one.runs(level, factor) for one in wanted for level in chosen_levels):
        (level,) = set(chosen_levels)  # each experiment has one of both
        names = ", ".join(one.name for one in EXPERIMENTS.values() if one.runs(level, factor))
        raise Problem(f"--level {level}: none of these experiments runs there at scale {factor:g} (it has {names})")
    settings = settings_of(pairs, list(catalogue()), READERS) if pairs else {}
    with status_line() as say:
        bench = Bench(factor, settings, say)
        findings = list(run_all(wanted, chosen_levels, bench))
        if report:
            say(report.name)
            write_text(render(findings, bench, pairs), report)
        if archive:
            say(archive.name)
            write(archive, findings, bench, pairs)
    if as_json:
        write_json(document(findings, factor, pairs), output)
    else:
        with page(output) as out:
            for finding in findings:
                print_finding(out, finding)
            out.print(summary(findings), soft_wrap=True)
    if any(verdict.essential and verdict.fails for finding in findings for verdict in finding.verdicts):
        sys.exit(1)


def _alone(experiments: Sequence[str], others: Mapping[str, object]) -> None:
    """Problem if anything stands beside --compare that is of a run."""
    if experiments:
        raise Problem(f"--compare runs nothing, so {shown(experiments[0])} is one word too many")
    for name, value in others.items():
        if value:
            raise Problem(f"--compare and {name} are mutually exclusive")


def _compare(runs: tuple[Path, Path], as_json: bool, output: Path | None) -> None:
    found = compared(*runs)
    if as_json:
        write_json(found, output)
    else:
        with page(output) as out:
            if rows := differing(found):
                show(out, claims_beside(rows))
                out.print()
            for sentence in sentences(found):
                out.print(sentence, soft_wrap=True)
    if not all(one.decided_alike for one in found.claims):
        sys.exit(1)


def _lasts_s(wanted: Sequence[Experiment[Any]], level: Level, scale: float) -> float:
    """About how long they all take at that level and scale, on this machine's processors."""
    return sum(one.lasts_s(level, scale) for one in wanted if one.runs(level, scale)) / at_once(level)


def _list(wanted: Sequence[Experiment[Any]]) -> PaperTable:
    rows: list[Row] = [
        [one.name, one.title, level, one.drive, ", ".join(claim.id for claim in one.claims), one.lasts_s(level)]
        for one in wanted
        for level in one.measure
    ]
    return PaperTable("", ["experiment", "content", "level", "drive", "claims", "about s"], rows)
