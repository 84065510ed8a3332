# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter describe: what a workload is like, and what the device did."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from textwrap import fill

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headwaiter.cli import _complete as complete
from headwaiter.cli._options import Finite
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.cli.record import disks_named, ended, record_with_line
from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Options
from headwaiter.errors import Problem
from headwaiter.live.describe import describe, priced
from headwaiter.live.described import Character, DescribeDocument, Quantiles
from headwaiter.outputs import distinct
from headwaiter.report.tables import print_notes, show
from headwaiter.study.fit import AUTO, choose_drive
from headwaiter.study.workload import NR_REQUESTS, Reading, replay
from headwaiter.traces import Source, Trace, load, recording
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS

_MOST_ROWS = 16
_NAMES = 21


@click.command()
@click.argument("what", metavar="TRACE|DEVICE")
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
@output_options
def command(
    what: str,
    seconds: float,
    device: str | None,
    group_gap_ms: float,
    drive: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Describe a workload: its tasks, requests, places and pauses, its phases, and what the device did.

    A DEVICE of this machine is recorded first, which needs root. Two simulated runs show what deceptive idleness costs.
    """
    path = Path(what)
    if _is_device(path):
        found = _live(what, seconds, drive, group_gap_ms)
    else:
        distinct({"TRACE": path}, {"-o": output})
        found = _described(path, what, drive, device, group_gap_ms)
    if as_json:
        write_json(found, output)
        return
    with page(output, fitted=True) as out:
        _show(out, found)


def _is_device(path: Path) -> bool:
    """A block device's node, or a name that is no file's."""
    try:
        return path.is_block_device() or (not path.exists() and len(path.parts) == 1 and not path.suffix)
    except (OSError, ValueError):
        return False


def _live(name: str, seconds: float, drive: str, group_gap_ms: float) -> DescribeDocument:
    disks = disks_named((name,))
    with tempfile.TemporaryDirectory(prefix="headwaiter-") as folder:
        file = Path(folder) / f"{disks[0].name}.hwr"
        done = record_with_line(disks, seconds, file, issues=True)
        if done.trouble:
            raise Problem(ended(name, done))
        return _described(file, disks[0].name, drive, None, group_gap_ms)


def _described(path: Path, name: str, drive: str, device: str | None, group_gap_ms: float) -> DescribeDocument:
    source = Source(path)
    # The recording first: what is read of a pipe can be read only once.
    recorded = recording.of(source) if not path.is_dir() else None
    trace = load(path, device=device, group_gap_ms=group_gap_ms, source=source)
    found = describe(trace, name, recorded.lost if recorded and recorded.reason else None)
    return _priced(found, path, trace, drive)


def _priced(found: DescribeDocument, path: Path, trace: Trace, drive: str) -> DescribeDocument:
    """With the cost of deceptive idleness, where a drive is known that the requests fit on."""
    if found.deceptive is None:
        return found
    try:
        model = open_drive(drive) if drive != AUTO else choose_drive(trace, path.name)[0]
    except Problem as e:
        if drive != AUTO:
            raise
        return replace(found, notes=[*found.notes, f"no simulation: {e}"])
    work = replay(path, trace, model, Reading())
    return priced(found, work, model, Options(nr_requests=NR_REQUESTS))


# --- for people ---


def _show(out: Console, found: DescribeDocument) -> None:
    whole = found.whole
    show(out, Text(f"{found.trace}: {whole.requests} requests, {whole.bytes / 1e6:.1f} MB in {found.seconds:.3f} s", "bold"))
    for name, value in _facts(found):
        for line in fill(f"{name:<{_NAMES}}{value}", out.width, subsequent_indent=" " * _NAMES).splitlines():
            show(out, Text(line))
    if len(found.phases) > 1:
        out.print()
        show(out, _phases(found))
    if found.rows:
        out.print()
        show(out, _threads(found))
        if (left := len(found.rows) - _MOST_ROWS) > 0:
            show(out, Text(f"({left} more threads of control have fewer requests; --json has them all)"))
    out.print()
    print_notes(out, found.notes)


def _facts(found: DescribeDocument) -> list[tuple[str, str]]:
    whole, place = found.whole, found.locality
    facts = [
        ("mix", f"{whole.read_percent:.1f}% read, {whole.write_percent:.1f}% write; {whole.sync_percent:.1f}% synchronous"),
        ("threads of control", f"{found.threads}, of {found.tasks} tasks"),
        ("size", f"{_three(whole.size_kib)} KiB"),
        ("place", f"{whole.sequential_percent:.1f}% sequential; the others {_three(whole.distance_mib)} MiB away"),
        (
            "locality",
            f"{place.touched_mib} MiB touched within {place.span_gib:.3g} GiB; 90% of requests in {place.hot_mib} MiB;"
            f" {place.again_percent:.1f}% to a place seen before",
        ),
        ("think time", f"{_three(whole.think_ms)} ms"),
        ("latency", f"{_three(whole.latency_ms)} ms"),
    ]
    if whole.depth:
        facts.append(
            ("depth", f"mean {whole.depth.mean:.3g}, 95% of the time at most {whole.depth.p95:.3g}, most {whole.depth.max}")
        )
    if device := found.device:
        facts += [
            (
                "device",
                f"{device.requests} requests after merging, {_three(device.size_kib)} KiB; busy {device.busy_percent:.1f}%",
            ),
            ("its service time", f"{_three(device.service_ms)} ms; before that in the scheduler {_three(device.queued_ms)} ms"),
            (
                "its depth",
                f"mean {device.depth.mean:.3g}, 95% of the time at most {device.depth.p95:.3g}, most {device.depth.max}",
            ),
        ]
    elif whole.latency_ms:
        facts.append(("device", "not known: record with --issues"))
    return facts + _deceptive(found)


def _deceptive(found: DescribeDocument) -> list[tuple[str, str]]:
    told = found.deceptive
    if told is None:
        return []
    facts = [
        (
            "deceptive idleness",
            f"{told.near_percent:.1f}% of reads come soon after and near the one before; before {told.exposed_percent:.1f}% of"
            f" these others wait, and {told.lost_percent:.1f}% of those come too late",
        )
    ]
    if told.waited_s is not None and told.waited_never_s is not None:
        cost = "" if told.cost_percent is None else f" ({told.cost_percent:+.0f}%)"
        both = f"{told.waited_s:.3g} s if the scheduler waits for them, {told.waited_never_s:.3g} s if it never does{cost}"
        facts.append((f"on {told.drive}", f"programs wait {both}"))
    return facts


def _three(spread: Quantiles | None) -> str:
    """Median, 95th percentile and maximum."""
    if spread is None:
        return "not known"
    return f"{_number(spread.median)} (median), {_number(spread.p95)} (95%), {_number(spread.max)} (max)"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _phases(found: DescribeDocument) -> Table:
    table = Table(title="Phases", title_justify="left", box=None, pad_edge=False)
    for head in ("from s", "to s", "requests/s", "MB/s", "read %", "sequential %", "threads"):
        table.add_column(head, justify="right")
    for phase in found.phases:
        cells = (phase.from_s, phase.to_s, phase.requests_per_s, phase.mbps, phase.read_percent, phase.sequential_percent)
        table.add_row(*(_number(cell) for cell in cells), str(phase.tasks))
    return table


def _threads(found: DescribeDocument) -> Table:
    table = Table(title="Threads of control", title_justify="left", box=None, pad_edge=False)
    table.add_column("name", overflow="fold")
    for head in ("tasks", "requests", "MB", "read %", "sync %", "KiB", "seq %", "MiB away", "think ms", "95%", "lat ms", "depth"):
        table.add_column(head, justify="right")
    for row in found.rows[:_MOST_ROWS]:
        table.add_row(row.name, str(row.tasks), str(row.requests), f"{row.bytes / 1e6:.1f}", *_cells(row))
    return table


def _cells(row: Character) -> list[str]:
    def median(spread: Quantiles | None) -> str:
        return _number(spread.median) if spread else ""

    return [
        f"{row.read_percent:.0f}",
        f"{row.sync_percent:.0f}",
        _number(row.size_kib.median),
        f"{row.sequential_percent:.0f}",
        median(row.distance_mib),
        median(row.think_ms),
        _number(row.think_ms.p95) if row.think_ms else "",
        median(row.latency_ms),
        _number(row.depth.mean) if row.depth else "",
    ]
