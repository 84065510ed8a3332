# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter describe: what a workload is like, and what the device did."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from textwrap import fill

import click
from rich.console import Console
from rich.text import Text

from headwaiter.base.errors import NotFoundError, Problem
from headwaiter.base.outputs import distinct
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._options import Finite
from headwaiter.cli._output import file_option, output_options, page, write_json, write_text
from headwaiter.cli._progress import reading_bar
from headwaiter.cli.record import disks_named, ended, record_with_line
from headwaiter.description.describe import describe, priced
from headwaiter.description.schema import DescribeDocument
from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Options
from headwaiter.queue.devices import current_scheduler
from headwaiter.report.description_page import render
from headwaiter.report.description_tables import (
    MOST_ROWS,
    facts,
    known_programs,
    lowering,
    phases,
    programs,
    programs_legend,
    suffering,
    threads,
)
from headwaiter.report.page import check_libraries
from headwaiter.report.tables import print_notes, show
from headwaiter.study.drive_fit import AUTO, choose_drive
from headwaiter.study.workload import NR_REQUESTS, Reading, find_workload, read_trace, replay
from headwaiter.traces import Source, Trace, recording
from headwaiter.traces.excerpt import is_large
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS

_NAMES = 21


@click.command(cls=Command)
@click.argument("what", metavar="TRACE|DEVICE", shell_complete=complete.workload_or_disk)
@click.option(
    "--time",
    "-t",
    "seconds",
    type=Finite(0.1, 86400),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="DEVICE: how long to record.",
)
@click.option("--device", help="Traces of several devices: the device to describe [default: the busiest].")
@click.option(
    "--group-gap",
    "group_gap_ms",
    type=Finite(0, 1e6),
    default=DEFAULT_GROUP_GAP_MS,
    show_default=True,
    metavar="MS",
    help="Longest pause between two tasks of one name in one thread of control.",
)
@click.option(
    "--drive",
    "-d",
    default=AUTO,
    show_default=True,
    metavar="NAME|FILE.toml|auto",
    shell_complete=complete.drive,
    help="Drive to simulate the cost of deceptive idleness on; auto: the one that explains the recording best.",
)
@file_option("--report", metavar="FILE.html", help="Write a page with tables and charts, too (needs Bokeh and Jinja2).")
@output_options
def command(
    what: str,
    seconds: float,
    device: str | None,
    group_gap_ms: float,
    drive: str,
    report: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Describe a workload: who waits for whom, its requests, places, pauses and phases, and what the device did.

    A DEVICE of this machine is recorded first, which needs root. Two simulated runs show what deceptive idleness costs.
    """
    if report:
        check_libraries()
    path = _bundled(what)
    if _is_device(path):
        trace, found = _live(what, seconds, drive, group_gap_ms)
    else:
        distinct({"TRACE": path}, {"-o": output, "--report": report})
        trace, found = _described(path, what, drive, device, group_gap_ms)
    if report:
        write_text(render(found, trace), report)
    if as_json:
        write_json(found, output)
        return
    with page(output, fitted=True) as out:
        _show(out, found)


def _bundled(what: str) -> Path:
    """Return the file of a trace: one of that name, else a bundled one. Else the name stays what it is: a device's."""
    try:
        return find_workload(what)
    except NotFoundError:
        return Path(what)


def _is_device(path: Path) -> bool:
    """A block device's node, or a name that is no file's."""
    try:
        return path.is_block_device() or (not path.exists() and len(path.parts) == 1 and not path.suffix)
    except (OSError, ValueError):
        return False


def _live(name: str, seconds: float, drive: str, group_gap_ms: float) -> tuple[Trace, DescribeDocument]:
    disks = disks_named((name,))
    with tempfile.TemporaryDirectory(prefix="headwaiter-") as folder:
        file = Path(folder) / f"{disks[0].name}.hwr"
        done = record_with_line(disks, seconds, file, issues=True)
        if done.trouble:
            raise Problem(ended(name, done))
        return _described(file, disks[0].name, drive, None, group_gap_ms)


def _described(path: Path, name: str, drive: str, device: str | None, group_gap_ms: float) -> tuple[Trace, DescribeDocument]:
    source = Source(path)
    with reading_bar(path) as say:
        # The recording first: what is read of a pipe can be read only once.
        recorded = recording.of(source) if not path.is_dir() else None
        trace = read_trace(path, Reading(device=device, group_gap_ms=group_gap_ms, whole=not is_large(path, sys.maxsize)), source)
        say("finding who waits for whom")
        lost = recorded.lost if recorded and recorded.reason else None
        found = describe(trace, name, lost, _scheduler(recorded, device) if recorded else None)
        say("replaying it with and without waiting")
        return trace, _priced(found, path, trace, drive)


def _scheduler(recorded: recording.Recording, device: str | None) -> str | None:
    """Return the scheduler of the recorded disk; None where it may be one of several."""
    disks = [disk for disk in recorded.disks if device in (None, disk.name, disk.number)]
    return current_scheduler(disks[0].settings.get("scheduler", "")) if len(disks) == 1 else None


def _priced(found: DescribeDocument, path: Path, trace: Trace, drive: str) -> DescribeDocument:
    """With the cost of deceptive idleness, where a drive is known that the requests fit on."""
    if found.deceptive is None:
        return found
    try:
        model, note = (open_drive(drive), "") if drive != AUTO else choose_drive(trace, path.name)
    except Problem as e:
        if drive != AUTO:
            raise
        return replace(found, notes=[*found.notes, f"no simulation: {e}"])
    work = replay(path, trace, model, Reading())
    noted = replace(found, notes=[*found.notes, note]) if note else found
    return priced(noted, work, model, Options(nr_requests=NR_REQUESTS))


# --- for people ---


def _show(out: Console, found: DescribeDocument) -> None:
    whole = found.whole
    show(out, Text(f"{found.trace}: {whole.requests} requests, {whole.bytes / 1e6:.1f} MB in {found.seconds:.3f} s", "bold"))
    for name, value in facts(found):
        for line in fill(f"{name:<{_NAMES - 1}} {value}", out.width, subsequent_indent=" " * _NAMES).splitlines():
            show(out, Text(line))
    if known_programs(found):
        out.print()
        _show_programs(out, found)
    if len(found.phases) > 1:
        out.print()
        show(out, phases(found))
    if found.rows:
        out.print()
        show(out, threads(found))
        if (left := len(found.rows) - MOST_ROWS) > 0:
            show(out, Text(f"({left} more threads of control have fewer requests; --json has them all)"))
    out.print()
    print_notes(out, found.notes)


def _show_programs(out: Console, found: DescribeDocument) -> None:
    """Show who suffers, from whom, and what would be done about it."""
    show(out, programs(found))
    if (left := len(found.programs) - MOST_ROWS) > 0:
        show(out, Text(f"({left} more rows; --json has them all)"))
    if legend := programs_legend(found):
        show(out, Text(f"({legend})"))
    if told := suffering(found):
        out.print()
        show(out, Text("Who waits for whom", "italic"))
    for line in (*told, *(lowering(one, found.scheduler) for one in found.background)):
        for part in fill(line, out.width, subsequent_indent="  ", break_on_hyphens=False).splitlines():
            show(out, Text(part))
