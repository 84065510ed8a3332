# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter sweep: many runs on many processors, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.text import Text

from headwaiter.base.errors import Problem, counted
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Group
from headwaiter.cli._output import file_option, json_option, output_options, page, write_json, write_text
from headwaiter.cli._progress import progress_bar
from headwaiter.papers.was.config import READERS
from headwaiter.report.figure import check_form
from headwaiter.report.page import check_libraries
from headwaiter.report.sweeps import (
    best_table,
    draw,
    effect_table,
    failure_table,
    render,
    report_heading,
    report_verdict,
    standing_table,
)
from headwaiter.report.tables import print_notes, show
from headwaiter.report.terminal import console
from headwaiter.sweeps.standings import FIGURES, report_on
from headwaiter.sweeps.sweep import sweep

F = TypeVar("F", bound=Callable[..., Any])


class _Group(Group):
    """A group whose first argument may also be a sweep file: that is run."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["run", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options of `run` may come first."""
        if args and args[0].startswith("-") and not set(args) & set(self.get_help_option_names(ctx)):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("sweep", cls=_Group)
def command() -> None:
    """Run all combinations that a sweep file names: workloads, drives, schedulers, tunables, conditions, seeds.

    `headwaiter sweep FILE.toml -o FOLDER` runs them; it is short for `sweep run`. `sweep report` compares the results.
    docs/sweep.md describes the file and the columns.
    """


def cluster_options(function: F) -> F:
    """--workers and --cluster."""
    workers = click.option(
        "--workers",
        type=click.IntRange(1, 100_000),
        metavar="N",
        help="Number of workers, a process each [default: one for each processor of this machine].",
    )
    cluster = click.option(
        "--cluster",
        metavar="tcp://HOST:PORT|slurm|kubernetes",
        help="Where the workers are: those of a Dask scheduler, or jobs of Slurm or Kubernetes [default: this machine].",
    )
    return workers(cluster(function))


@command.command("run")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml", shell_complete=complete.among(lambda: ()))
@click.option("--output", "-o", "folder", type=click.Path(path_type=Path), required=True, metavar="FOLDER", help="The results.")
@cluster_options
@click.option("--extend", is_flag=True, help="Add to a folder that has results of another sweep.")
@click.option("--retry", is_flag=True, help="Run cells again that failed.")
@json_option
def run_command(
    file: Path, folder: Path, workers: int | None, cluster: str | None, extend: bool, retry: bool, as_json: bool
) -> int:
    """Run the cells of a sweep file that are not done, and keep a row for each in Parquet.

    Whatever ends it, the same command goes on where it was. A cell that fails does not end it.
    """
    with ExitStack() as stack:
        bars: list[Callable[[str, int], None]] = []

        def update(part: str, count: int) -> None:
            bars[0](part, count)

        def begin(cells: int, todo: int) -> None:
            if todo < cells:
                click.echo(f"{folder}: {cells - todo} of {counted(cells, 'cell')} are done already", err=True)
            bars.append(stack.enter_context(progress_bar(f"{file.name}", todo, unit="cells")))

        found = sweep(
            file,
            folder,
            workers=workers,
            cluster=cluster,
            extend=extend,
            retry=retry,
            readers=READERS,
            began=begin,
            progress=update,
        )
    document = found.document()
    if as_json:
        write_json(document, None)
    else:
        bad = f", {found.failed} failed" if found.failed else ""
        click.echo(f"{folder}: {counted(document.cells, 'cell')}: {document.done} run, {document.kept} kept{bad}")
        if found.failed:
            show(console(), failure_table(document.failures))
    return 1 if found.failed else 0


@command.command("report")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option(
    "--by", type=click.Choice(FIGURES), metavar="COLUMN", help="The figure to compare by [default: progress, else throughput]."
)
@file_option("--page", "html", metavar="FILE.html", help="Write a page with heat maps, too (needs Bokeh and Jinja2).")
@file_option("--plot", metavar="FILE", help="Draw the heat maps (.png, .svg, .pdf; needs matplotlib).")
@output_options
def report_command(
    folder: Path, by: str | None, html: Path | None, plot: Path | None, as_json: bool, output: Path | None
) -> None:
    """Compare the settings of a sweep: the best of each cell, how good each is over all, and what each value does."""
    if html:
        check_libraries()
    if plot:
        check_form(plot)
    distinct({}, {"-o": output, "--page": html, "--plot": plot})
    for option, path in (("-o", output), ("--page", html), ("--plot", plot)):
        if path and path.resolve().is_relative_to(folder.resolve()):
            raise Problem(f"{option} {path}: the folder is one Parquet table, in which other files have no place")
    found = report_on(folder, by)
    if html:
        write_text(render(found), html)
    if plot:
        draw(found, plot)
    if as_json:
        write_json(found.document, output)
        return
    document = found.document
    with page(output) as out:
        show(out, Text(report_heading(document), style="bold"))
        out.print()
        show(out, Text(report_verdict(document)))
        for table in (standing_table(document), best_table(document), *([effect_table(document)] if document.effects else [])):
            out.print()
            show(out, table)
        if document.failures:
            out.print()
            show(out, failure_table(document.failures))
        print_notes(out, document.notes)
