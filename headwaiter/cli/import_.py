# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter import: any trace that can be read, as native CSV."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headwaiter.cli._options import Finite
from headwaiter.cli._output import output_option
from headwaiter.engine.constants import Op
from headwaiter.errors import plain
from headwaiter.outputs import distinct, writing
from headwaiter.traces import Trace, formats, load, write_csv
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@output_option()
@click.option(
    "--format", "format_", type=click.Choice(list(formats())), help="Trace format [default: detected from the content]."
)
@click.option("--device", help="Traces of several devices: the device to use [default: the busiest].")
@click.option(
    "--group-gap",
    "group_gap_ms",
    type=Finite(0, 1e9),
    default=DEFAULT_GROUP_GAP_MS,
    show_default=True,
    metavar="MS",
    help="Longest pause between two tasks of one name in one thread of control.",
)
def command(file: Path, output: Path | None, format_: str | None, device: str | None, group_gap_ms: float) -> None:
    """Convert the trace FILE to native CSV.

    FILE may be compressed (gzip, xz, zstd). For a blktrace recording, name any CPU's file or the directory.
    """
    distinct({"FILE": file}, {"-o": output})
    trace = load(file, format=format_, device=device, group_gap_ms=group_gap_ms)
    if output is None:
        write_csv(trace, sys.stdout)
        sys.stdout.flush()
    else:
        with writing(output) as temporary, temporary.open("w", encoding="utf-8", errors="replace") as out:
            write_csv(trace, out)
    for line in _describe(trace):
        click.echo(plain(line), err=True)


def _describe(trace: Trace) -> list[str]:
    """A few lines for people: what was read, from where, and what is not known of it."""
    seconds = trace.span_ns / 1e9
    lines = [f"{trace.source}: {trace.format}, {len(trace)} requests, {trace.bytes / 1e6:.1f} MB in {seconds:.3f} s"]
    shares = [f"{(trace.op == op).mean():.1%} {op.word}" for op in Op if (trace.op == op).any()]
    tasks = f"{len(trace.tasks)} tasks in {int(trace.group.max()) + 1} groups" if trace.tasks_known else "tasks unknown"
    completions = "known" if trace.completions_known else "unknown"
    lines.append(f"{', '.join(shares)}; {tasks}; completions {completions}")
    return lines + list(trace.notes)
