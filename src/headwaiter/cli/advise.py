# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter advise: which scheduler for a disk, with which settings, and is it really better?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from headwaiter.cli import _complete as complete
from headwaiter.cli._live import machine_options
from headwaiter.cli._options import Finite, reading
from headwaiter.cli._output import output_options, page, write_json, write_text
from headwaiter.cli._progress import progress_bar
from headwaiter.drives.choose import open_drive
from headwaiter.engine.sim import Drive
from headwaiter.errors import Problem, shown
from headwaiter.judge.judge import MARGIN
from headwaiter.live.advice import Advised, Target, advise, conditions_of, elsewhere, recorded_settings, scheduler_of
from headwaiter.live.apply import Applied, apply
from headwaiter.live.machine import Machine
from headwaiter.live.persist import rules
from headwaiter.live.record import record
from headwaiter.live.schema import Goal
from headwaiter.live.target import target_of
from headwaiter.report.tables import print_notes, show
from headwaiter.study.fit import AUTO, choose_drive
from headwaiter.study.workload import Workload, find_workload, read_recording, read_workload
from headwaiter.traces import Source, recording
from headwaiter.traces.recording import Recording
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS


@click.command("advise")
@click.argument("workload", shell_complete=complete.workload, metavar="TRACE|DEVICE")
@click.option("--on", metavar="DEVICE", help="The device that TRACE is of: what its kernel offers, and what --apply changes.")
@click.option(
    "--time", "-t", "seconds", type=Finite(0.1, 86400), default=60.0, show_default=True, help="Of DEVICE: how long to record."
)
@click.option(
    "--goal",
    type=click.Choice(get_args(Goal)),
    default="progress",
    show_default=True,
    help="The figure to improve: how fast programs get their work done, throughput, latency, or fairness.",
)
@click.option(
    "--drive",
    "-d",
    default=AUTO,
    show_default=True,
    metavar="NAME|FILE.toml|constant:MS|auto",
    shell_complete=complete.drive,
    help="Drive to simulate; auto: the one that explains the recording best.",
)
@click.option(
    "--queue-depth",
    type=click.IntRange(0, 1024),
    default=0,
    metavar="N",
    help="Its queue depth [default: the drive's own].",
)
@click.option("--replay", type=click.Choice(["closed", "open"]), help="Keep think times or timestamps, as in `compare`.")
@click.option("--device", help="Traces of several devices: the device to use [default: the busiest].")
@click.option(
    "--margin",
    type=Finite(0.1, 100),
    default=100 * MARGIN,
    show_default=True,
    metavar="PERCENT",
    help="Differences of less than this do not matter.",
)
@click.option("--anyway", is_flag=True, help="Judge even if the recording is too short, or of another drive.")
@click.option("--mute", multiple=True, metavar="ID", help="Leave out advice of this identifier (/etc/headwaiter/muted has more).")
@click.option("--apply", "put", is_flag=True, help="Put the advised settings in force, the former ones saved first.")
@click.option("--force", is_flag=True, help="With --apply: even if something would stop working, or another disk was recorded.")
@click.option("--persist", is_flag=True, help="Print a udev rule that keeps the advised settings; nothing is installed.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Seed of resampling.")
@machine_options
@output_options
def command(
    workload: str,
    machine: Machine,
    on: str | None,
    seconds: float,
    goal: Goal,
    margin: float,
    anyway: bool,
    mute: tuple[str, ...],
    put: bool,
    force: bool,
    persist: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Say from a recording which scheduler is best for its disk, how sure that is, and how to apply and undo it.

    First it checks that the recording can tell; then it is replayed under every scheduler. Nothing is changed without --apply.
    A DEVICE (sda, /dev/sda) is recorded first; see `headwaiter record`.
    """
    live = not Path(workload).is_file() and machine.has(workload)
    if live and on:
        raise Problem(f"--on is for traces, and {shown(workload)} is a device")
    on = workload if live else on
    if (put or persist) and on is None:
        raise Problem("--apply and --persist need --on DEVICE")
    if persist and as_json:
        raise Problem("--persist and --json are mutually exclusive")
    target = target_of(machine, on) if on else None
    udev = machine.root / "run" / "udev" / "data"
    if persist and target:
        rules(target.legs, target.settings[0], udev)  # or a disk that no rule can mean is told after a minute's recording
    if live and target:
        with TemporaryDirectory(prefix="headwaiter-") as folder:
            path = Path(folder) / target.device.name
            _record(target, seconds, path)
            work, drive, recorded = _read(path, given)
    else:
        work, drive, recorded = _read(find_workload(workload), given)
    now = target.settings[0] if target else recorded_settings(recorded)
    conditions = conditions_of(now, seed=given["seed"], queue_depth=given["queue_depth"])
    with progress_bar(f"{work.name} on {drive.name}", None) as update:
        found = advise(
            work,
            drive,
            conditions,
            target=target,
            goal=goal,
            margin=margin / 100,
            recorded=recorded,
            anyway=anyway,
            mute=(*mute, *machine.muted),
            progress=update,
        )
    rule = ""
    if persist and target:  # before anything is applied: both, or neither
        rule = rules(target.legs, found.wanted or replace(target.settings[0], wbt_lat_usec=None), udev)
    done: list[Applied] = []
    if put and found.wanted and target:
        against = [*filter(None, [elsewhere(target, recorded)]), *found.losses]
        if against and not force:
            raise Problem(f"{target.device.name}: {'; '.join(against)}: --apply needs --force for that")
        done = apply(target.legs, found.wanted, machine.state, "headwaiter advise --apply")
    if as_json:
        write_json(found.document(bool(done)), output)
        return
    if rule:
        write_text(rule, output)  # as it is, however narrow the terminal
        return
    with page(output, fitted=True) as out:
        _show(out, found, put, done)


def _record(target: Target, seconds: float, path: Path) -> None:
    """Record the disks on whose queues the scheduler acts. Problem if that ended early."""
    click.echo(f"{', '.join(leg.name for leg in target.legs)}: recording for {seconds:g} s", err=True)
    done = record(target.legs, seconds, path)
    if done.trouble:
        raise Problem(f"{target.device.name}: {done.trouble}")
    if not done.sofar.recorded_bytes:
        raise Problem(f"{target.device.name}: nothing was asked of it")


def _read(path: Path, given: dict[str, Any]) -> tuple[Workload, Drive, Recording | None]:
    """The recording, the drive of --drive, and what the recording tells beside requests."""
    more = {"shares": (), "streams": 0, "speed": 1.0, "group_gap": DEFAULT_GROUP_GAP_MS}
    how, source = reading({**more, **given}), Source(path)
    recorded = None if path.is_dir() else recording.of(source)
    if given["drive"] != AUTO:
        drive = open_drive(given["drive"])
        return read_workload(path, drive, how, source), drive, recorded
    drive, note = choose_drive(read_recording(path, how, source), path.name, scheduler_of(recorded_settings(recorded)))
    work = read_workload(path, drive, how, source)
    return replace(work, notes=(*work.notes, note)), drive, recorded


def _show(out: Console, found: Advised, put: bool, done: list[Applied]) -> None:
    legs = f" ({', '.join(leg.name for leg in found.target.legs)})" if found.target else ""
    head = f"{found.work.name} on {found.drive.name}; {found.current} is in force{legs}" if found.target else ""
    show(out, Text(head or f"{found.work.name} on {found.drive.name}; against {found.current}", style="bold"))
    g = found.gate
    contention = (
        "" if g.contention_percent is None else f"; {g.contention_percent:.0f}% of requests found {g.depth} or more under way"
    )
    out.print(f"Recorded: {g.seconds:.3g} s, {g.requests} requests, {g.lost} events lost{contention}")
    for one in found.advice:
        out.print()
        first, dot, rest = one.text.partition(". ")
        show(out, Text.assemble((first + dot, "bold" if one.kind == "scheduler" else ""), rest, (f" [{one.id}]", "dim")))
        for title, lines in (("To apply:", one.apply), ("To undo:", one.undo)):
            if lines:
                out.print(title)
                for line in lines:
                    out.print(f"  {line}", soft_wrap=True)
    if found.losses:
        out.print()
        out.print("This would stop working:")
        for line in found.losses:
            show(out, Text(f"- {line}"))
    if found.muted:
        out.print()
        out.print(f"Muted: {', '.join(found.muted)}")
    if put:
        out.print()
        for change in done:
            written = ", ".join(f"{c.file} {c.old or '-'} -> {c.new}" for c in change.changes)
            out.print(
                f"{change.device.name}: {written or 'as it was'}; `headwaiter revert {change.device.name}` restores",
                soft_wrap=True,
            )
        if not done:
            out.print("Nothing was changed.")
    if found.notes:
        out.print()
        print_notes(out, found.notes)
