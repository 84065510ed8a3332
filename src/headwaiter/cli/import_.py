# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter import: any trace that can be read, as native CSV or in another format that can be written."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headwaiter.base.errors import plain
from headwaiter.base.outputs import distinct, writing
from headwaiter.cli._commands import Command
from headwaiter.cli._options import Finite
from headwaiter.cli._output import output_option
from headwaiter.cli._progress import reading_bar
from headwaiter.engine.constants import Op
from headwaiter.traces import Trace, formats, load
from headwaiter.traces.meaning import PRESETS
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS


@click.command(cls=Command)
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
@click.option(
    "--to",
    type=click.Choice([f.name for f in formats().values() if f.write]),
    default="native",
    show_default=True,
    help="Format to write.",
)
@click.option(
    "--columns",
    metavar="KEY=NAME[:UNIT],…",
    help="FILE is CSV: names or numbers of its columns, and their units, such as time=ts:ms,sector=lba,size=len:bytes,op=rw; "
    f"or one of {', '.join(PRESETS)}.",
)
@click.option("--keep-good", is_flag=True, help="Use what comes before the damage in a damaged or truncated FILE.")
def command(
    file: Path,
    output: Path | None,
    format_: str | None,
    device: str | None,
    group_gap_ms: float,
    to: str,
    columns: str | None,
    keep_good: bool,
) -> None:
    """Convert the trace FILE to native CSV, or another format.

    FILE may be compressed (gzip, xz, zstd) or a tar archive. For a blktrace recording, name any CPU's file or the directory.
    """
    distinct({"FILE": file}, {"-o": output})
    write = formats()[to].write
    assert write
    with reading_bar(file):
        trace = load(file, format=format_, device=device, group_gap_ms=group_gap_ms, columns=columns, keep_good=keep_good)
    if output is None:
        lost = write(trace, sys.stdout)
        sys.stdout.flush()
    else:
        with writing(output) as temporary, temporary.open("w", encoding="utf-8", errors="replace") as out:
            lost = write(trace, out)
    for line in [*_describe(trace), *lost]:
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
