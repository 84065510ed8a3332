# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter lab: real kernels, real programs, virtual time."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ..device import DEFAULT_DRIVE
from ..errors import Problem
from ..lab.agree import JOBS, KERNELS_OWN, OURS, compare, job_of_file
from ..lab.kernels import Progress
from ..lab.script import Row, execute, experiments, read
from ..paths import replacing
from ..report import console
from ._output import output_options, write_json, write_text


@click.group("lab")
def command() -> None:
    """The kernel lab: stock kernels in QEMU, in virtual time, the same on every run."""


@command.command("list")
def _list() -> None:
    """The experiments that there are."""
    out = Table(box=None, pad_edge=False)
    for heading in ("experiment", "what", "kernels", "parameters"):
        out.add_column(heading)
    for name in experiments():
        script = read(name)
        out.add_row(name, script.summary, " ".join(script.kernels), " ".join(script.needs.get("set", [])))
    console().print(out)


@command.command("run")
@click.argument("target", metavar="EXPERIMENT|SCRIPT")
@click.option("--kernel", "-k", "series", multiple=True, metavar="KERNEL",
              help="Series (6.12) or release (7.2.11) of Debian's cloud kernel, as apt's sources have it, or a ./FOLDER with "
                   "its unpacked packages; may be repeated [default: the script's own].")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A parameter of the script.")
@click.option("--files", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Where to put other files that the guest sends, as FOLDER/SERIES/NAME.")
@output_options
def _run(target: str, series: tuple[str, ...], pairs: tuple[str, ...], files: Path | None, as_json: bool,
         output: Path | None) -> None:
    """Boot kernels, run an experiment (see 'headwaiter lab list') or a script in each, and show what it measured."""
    given = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Problem(f"--set {pair}: expected NAME=VALUE")
        given[name] = value
    with _progress() as say:
        script, rows, sent = execute(target, series, given, say)
    for path, data in sent.items() if files else ():
        assert files is not None
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        with replacing(files / path) as temporary:
            temporary.write_bytes(data)
    _show(script.name, script.summary, rows, as_json, output)


@command.command("agree")
@click.option("--kernel", "-k", "series", default="6.12", show_default=True, metavar="SERIES",
              help="Series of Debian's cloud kernel.")
@click.option("--drive", "-d", default=DEFAULT_DRIVE, show_default=True, metavar="NAME", help="The drive's profile.")
@click.option("--sched", "-s", "schedulers", default=",".join((*KERNELS_OWN, *OURS)), show_default=True, metavar="a,b,…",
              help="Schedulers.")
@click.option("--job", "-j", "names", multiple=True, metavar="NAME|FILE",
              help="sequential-N or random-N, of N = 1, 2, 4, 8 readers, or a fio job file of direct I/O on the disk itself "
                   "(filename=/dev/sda); may be repeated [default: those eight].")
@output_options
def _agree(series: str, drive: str, schedulers: str, names: tuple[str, ...], as_json: bool, output: Path | None) -> None:
    """Run the same fio jobs in the simulator and under a kernel, on one drive profile, and compare.

    They agree if throughput is within 3% and p99 latency within 10%. Exits with status 1 if they do not.
    """
    known = {job.name: job for job in JOBS}
    jobs = [known[name] if name in known else job_of_file(Path(name)) for name in dict.fromkeys(names)] or list(JOBS)
    if len({job.name for job in jobs}) < len(jobs):
        raise Problem("--job: two files of one name")
    with _progress() as say:
        rows = compare(series, drive, schedulers.split(","), jobs, say)
    _show("agree", "Simulator and kernel on the same jobs and drive", rows, as_json, output)
    if not all(row["agree"] for row in rows):
        sys.exit(1)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A line of what is going on, on a terminal only."""
    out = Console(stderr=True)
    if not out.is_terminal:
        yield lambda text: None
        return
    with out.status("starting") as status:
        yield status.update


def _show(name: str, title: str, rows: list[Row], as_json: bool, output: Path | None) -> None:
    if as_json:
        document: dict[str, Any] = {"schema": "headwaiter-lab/1", "experiment": name, "results": rows}
        write_json(document, output)
        return
    buffer = io.StringIO()
    (console(buffer) if output else console()).print(_table(title, rows))
    if output:
        write_text(buffer.getvalue(), output)


def _table(title: str, rows: list[Row]) -> Table:
    """A row a result; columns in the order in which they first occur."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    out = Table(title=title, title_justify="left")
    for key in keys:
        text = any(isinstance(row.get(key), str) for row in rows)
        out.add_column(key, justify="left" if text else "right")
    for row in rows:
        out.add_row(*(str(row.get(key, "")) for key in keys))
    return out
