# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter calibrate: what I/O costs the processors of this machine."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich import box
from rich.table import Table

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import check, writing
from headwaiter.cli._commands import Command
from headwaiter.cli._machine import machine_options
from headwaiter.cli._options import Finite
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.drives.writing import toml_text
from headwaiter.measure.calibrate import CalibratedHost, calibrate, usual_file
from headwaiter.queue.machine import Machine
from headwaiter.report.tables import show

_MODE = 0o644
"""Others are to read it, too."""


@click.command("calibrate", cls=Command)
@click.option(
    "--seconds", "-t", type=Finite(0.1, 3600), default=10.0, show_default=True, metavar="S", help="Seconds of each measurement."
)
@click.option(
    "--host-file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.toml",
    help="Where the host is written [default: $XDG_CONFIG_HOME/headwaiter/host.toml if that is set, else"
    " /etc/xdg/headwaiter/host.toml].",
)
@machine_options
@output_options
def command(machine: Machine, seconds: float, file: Path | None, as_json: bool, output: Path | None) -> None:
    """Measure what I/O costs the processors of this machine under each scheduler, for `compare` and `advise` on flash.

    fio reads, as root, from a null_blk, or, where the kernel has none, from a loop device over memory: no disk is touched. Nobody
    else should work meanwhile.
    """
    target = file or usual_file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Problem(f"{target.parent}: {e.strerror}") from None
    check(target)
    many = len(os.sched_getaffinity(0))
    click.echo(f"up to {4 * len({1, min(2, many), many}) * seconds:.0f} s of measuring", err=True)
    found = calibrate(machine, seconds, lambda what: click.echo(f"  {what}", err=True))
    heading = "What I/O costs the processors of this machine, in microseconds: written by `headwaiter calibrate`."
    with writing(target, _MODE) as temporary:
        temporary.write_text(toml_text(found.host.table(), heading), encoding="utf-8")
    if as_json or output:
        write_json(found.document(target), output)
        return
    with page(None) as out:
        out.print(f"Measured on {found.device}.")
        for note in found.notes:
            out.print(f"Note: {note}")
        show(out, _table(found))
        out.print(f"Written to {target}.")


def _table(found: CalibratedHost) -> Table:
    """A row for each scheduler."""
    counts = sorted({one.processes for one in found.rates})
    by = {(one.scheduler, one.processes): one.processor_us for one in found.rates}
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("scheduler")
    for count in counts:
        table.add_column(f"us a read, {count} process{'es' if count > 1 else ''}", justify="right")
    for head in ("own us", "lock us", "shared us", "crowded us"):
        table.add_column(head, justify="right")
    for name, cost in found.host.costs.items():
        times = (cost.own, cost.lock, cost.lock_shared, cost.lock_crowded)
        table.add_row(name, *(f"{by[name, count]:.2f}" for count in counts), *(f"{us:.2f}" for us in times))
    return table
