# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter validate: drive models against what was measured on real drives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

import click
from rich import box
from rich.console import Console
from rich.table import Table

from headwaiter.base.errors import Problem, plain
from headwaiter.base.figures import digits
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._output import file_option, output_options, write_json
from headwaiter.drives.profile import Profile, find_drive
from headwaiter.drives.published import PublishedFigure, figures
from headwaiter.drives.validation import Validation, read_trace, validate
from headwaiter.papers.flash_hosts import IOCOST, beside_by_scheduler, groups, iocost, kyber_targets, scheduled, starts
from headwaiter.report.figure import figure
from headwaiter.report.terminal import console
from headwaiter.study.predicted import predicted
from headwaiter.study.schema import MeanMax, PublishedDocument, PublishedRow, ValidateDocument

RATE = "I/Os a second"
_NEAR = 0.2


def _plot(v: Validation, title: str, path: Path) -> None:
    with figure(path, figsize=(7, 4.5)) as axes:
        for times, label, style in ((v.measured_ms, "measured", "-"), (v.simulated_ms, "model", "--")):
            axes.ecdf(times, label=f"{label}, mean {times.mean():.2f} ms", linestyle=style)
        axes.set(xlabel="service time (ms)", ylabel="fraction of requests", title=f"{title}: demerit {v.demerit_ms:.3f} ms")
        axes.legend()
        axes.grid(alpha=0.3)


def _errors(out: Console, of_it: Sequence[PublishedFigure]) -> None:
    for what in dict.fromkeys(f.figure for f in of_it):
        errors = sorted(abs(f.error) for f in of_it if f.figure == what)
        out.print(f"{what}: error {median(errors):.1%} in the median, {errors[-1]:.1%} at most")
    out.print()


def _by_drive(out: Console, of_it: Sequence[PublishedFigure]) -> None:
    """A row for each drive: each figure, MB or requests a second, and the model's error."""
    kinds = tuple(dict.fromkeys(f.figure for f in of_it))
    table = Table(title=plain(f"{of_it[0].source}: {of_it[0].load}"), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("drive")
    for kind in kinds:
        table.add_column(f"{kind} MB/s" if kind.endswith("bps") else kind, justify="right")
    for drive in dict.fromkeys(f.drive for f in of_it):
        cells = {
            f.figure: f"{f.measured / (1e6 if f.figure.endswith('bps') else 1):.0f} {f.error:+.1%}"
            for f in of_it
            if f.drive == drive
        }
        table.add_row(drive, *(cells.get(kind, "") for kind in kinds))
    out.print(table)


def _published(as_json: bool, output: Path | None) -> None:
    of_schedulers = (one.figure for group in groups() for one in scheduled(group))
    found = [*figures(), *of_schedulers, *beside_by_scheduler(), *kyber_targets(), *starts(), *iocost()]
    if as_json or output:
        rows = [PublishedRow(**{**asdict(f), "error": f.error}) for f in found]
        write_json(PublishedDocument(figures=rows), output)
        return
    out = console()
    for source in dict.fromkeys(f.source for f in found):
        of_it = [f for f in found if f.source == source]
        if source == IOCOST:
            _by_drive(out, of_it)
            _errors(out, of_it)
            continue
        table = Table(title=plain(f"{of_it[0].drive}: {source}"), title_justify="left", box=box.SIMPLE_HEAD)
        for head in ("load", "figure", "measured", "simulated", "error"):
            table.add_column(head, justify="left" if head in ("load", "figure") else "right")
        for f in of_it:
            table.add_row(f.load, f.figure, digits(f.measured), digits(f.simulated), f"{f.error:+.1%}")
        out.print(table)
        _errors(out, of_it)


def _predicted(profile: Profile, paths: Sequence[Path], as_json: bool, output: Path | None) -> None:
    found = list(predicted(profile, paths))
    if not found:
        raise Problem(f"{paths[0]}: no job did any I/O")
    if as_json or output:
        source = ", ".join(path.name for path in paths)
        rows = [
            PublishedRow(
                drive=profile.name,
                source=source,
                load=one.job,
                figure=what,
                measured=rate,
                simulated=one.simulated,
                error=one.simulated / rate - 1,
            )
            for one in found
            for what, rate in (
                (RATE, one.middle),
                (f"{RATE}, lowest", min(one.measured)),
                (f"{RATE}, highest", max(one.measured)),
            )
        ]
        write_json(PublishedDocument(figures=rows), output)
        return
    out = console()
    title = plain(f"{profile.name}: {RATE}, {len(paths)} runs of fio's")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("job", "measured", "lowest", "highest", "simulated", "error"):
        table.add_column(head, justify="left" if head == "job" else "right")
    for one in found:
        rates = (one.middle, min(one.measured), max(one.measured), one.simulated)
        table.add_row(plain(one.job), *(f"{rate:.0f}" for rate in rates), f"{one.simulated / one.middle - 1:+.1%}")
    out.print(table)
    near = sum(abs(one.simulated / one.middle - 1) <= _NEAR for one in found)
    out.print(f"within {_NEAR:.0%} of the run in the middle: {near} of {len(found)} jobs")


@click.command("validate", cls=Command)
@click.argument("drive", shell_complete=complete.drive, required=False)
@click.argument("traces", metavar="[TRACE]", nargs=-1, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--fio",
    "of_fio",
    is_flag=True,
    help="FILE.json... instead of TRACE: what fio measured (--output-format=json), a file for each run of the same jobs; "
    "compare I/Os a second.",
)
@click.option(
    "--published",
    is_flag=True,
    help="Compare bundled flash drives, and schedulers on them, with figures that others have published.",
)
@output_options
@file_option("--plot", metavar="FILE", help="Draw both distributions (.png, .svg, .pdf).")
def command(
    drive: str | None,
    traces: tuple[Path, ...],
    of_fio: bool,
    published: bool,
    as_json: bool,
    output: Path | None,
    plot: Path | None,
) -> None:
    """Replay a measured TRACE on a DRIVE alone and compare the service times.

    The demerit figure is the root mean square of the horizontal distance between the two distributions. The error per request
    compares each request's own two times.
    """
    if published:
        if drive or plot or of_fio:
            raise click.UsageError("--published is about bundled drives, and has nothing to plot: leave out the rest")
        _published(as_json, output)
        return
    if drive is None or not traces:
        raise click.UsageError(f"Missing argument '{'TRACE' if drive else 'DRIVE'}'; or see --published.")
    profile = find_drive(drive)
    if of_fio:
        if plot:
            raise click.UsageError("--fio has nothing to plot: leave out --plot")
        distinct({f"file {number}": path for number, path in enumerate(traces, 1)}, {"-o": output})
        _predicted(profile, traces, as_json, output)
        return
    if traces[1:]:
        raise click.UsageError(f"Got unexpected extra argument ({traces[1]}); several files: see --fio.")
    (trace,) = traces
    distinct({"TRACE": trace}, {"-o": output, "--plot": plot})
    v = validate(profile, read_trace(trace), str(trace))
    if plot:
        _plot(v, profile.name, plot)
    if as_json or output:
        document = ValidateDocument(
            drive=profile.name,
            trace=trace.name,
            requests=len(v.measured_ms),
            demerit_ms=v.demerit_ms,
            mean_absolute_error_ms=v.mean_absolute_error_ms,
            mean_error_ms=v.mean_error_ms,
            max_error_ms=v.max_error_ms,
            measured_ms=MeanMax(v.mean_measured_ms, v.max_measured_ms),
            simulated_ms=MeanMax(v.mean_simulated_ms, v.max_simulated_ms),
        )
        write_json(document, output)
        return
    out = console()
    out.print(plain(f"{profile.name}: {len(v.measured_ms)} requests of {trace.name}"))
    out.print(f"demerit figure     {v.demerit_ms:8.3f} ms  ({v.demerit_ms / v.mean_measured_ms:.1%} of the mean)")
    out.print(f"error per request  {v.mean_absolute_error_ms:8.3f} ms  (mean absolute value)")
    out.print(f"mean, measured     {v.mean_measured_ms:8.3f} ms")
    out.print(f"mean, model        {v.mean_simulated_ms:8.3f} ms  (error {v.mean_error_ms:+.3f})")
    out.print(f"maximum, measured  {v.max_measured_ms:8.3f} ms")
    out.print(f"maximum, model     {v.max_simulated_ms:8.3f} ms")
    out.print(f"largest distance between the distributions {v.max_error_ms:.3f} ms")
