# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter advise: which scheduler for a disk, with which settings, and is it really better?"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import click
from rich.console import Console
from rich.text import Text

from headwaiter.advice.advice import Advised, Target, advise, conditions_of, elsewhere
from headwaiter.advice.little import Little, TooLittleError, little
from headwaiter.advice.recorded import read_recorded
from headwaiter.advice.schema import Goal
from headwaiter.advice.target import target_of
from headwaiter.base.errors import NoRequestsError, NotFoundError, Problem, counted, shown
from headwaiter.base.figures import brief
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._devices import device
from headwaiter.cli._machine import machine_options
from headwaiter.cli._options import Finite, margin_option, reading
from headwaiter.cli._output import output_options, page, write_json, write_text
from headwaiter.cli._progress import progress_bar, reading_bar
from headwaiter.cli.record import record_with_line
from headwaiter.engine.sim import Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import runs_of
from headwaiter.queue.apply import Applied, apply
from headwaiter.queue.machine import Machine
from headwaiter.queue.persist import rules
from headwaiter.queue.settings import Settings
from headwaiter.report.tables import print_notes, show
from headwaiter.report.terminal import a_console
from headwaiter.study.cost import plan
from headwaiter.study.drive_fit import AUTO
from headwaiter.study.variants import candidates, default_set
from headwaiter.study.windows import WHOLE_IOS
from headwaiter.study.workload import Workload, find_workload
from headwaiter.traces.recording import Recording
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS
from headwaiter.tuning.search import TRIALS, optimiser


@click.command("advise", cls=Command)
@click.argument("workload", shell_complete=complete.workload_or_disk, metavar="TRACE|DEVICE")
@click.option(
    "--on",
    metavar="DEVICE",
    shell_complete=device,
    help="The device that TRACE is of: what its kernel offers, and what --apply changes.",
)
@click.option(
    "--time", "-t", "seconds", type=Finite(0.1, 86400), default=60.0, show_default=True, help="How long to record a DEVICE."
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
    help="Drive to simulate. auto picks the bundled one that fits the recording best.",
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
@margin_option("Treat smaller differences as none.")
@click.option("--whole", is_flag=True, help=f"Replay all of a recording of more than {WHOLE_IOS:,} requests, not windows of it.")
@click.option("--anyway", is_flag=True, help="Judge even if the recording is too short, or of another drive.")
@click.option("--mute", multiple=True, metavar="ID", help="Leave out advice of this identifier (/etc/headwaiter/muted has more).")
@click.option(
    "--tune",
    "trials",
    is_flag=False,
    flag_value=TRIALS,
    default=0,
    type=click.IntRange(0, 100_000),
    metavar="[N]",
    help=f"Search the tunables of the scheduler to take, too, on the first half of the recording: N settings [{TRIALS}]. They are"
    " advised if they are better on the second half. Needs Optuna.",
)
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
    trials: int,
    put: bool,
    force: bool,
    persist: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Say from a recording which scheduler is best for its disk, how sure that is, and how to apply and undo it.

    The command first checks that the recording can tell. Then it replays the recording under every scheduler. It changes
    nothing without --apply.
    A DEVICE (sda, /dev/sda) is recorded first; see `headwaiter record`.
    """
    if trials:
        optimiser()
    live = _is_disk(machine, workload)
    if live and on:
        raise Problem(f"--on is for traces, and {shown(workload)} is a device")
    on = workload if live else on
    if (put or persist) and on is None:
        raise Problem("--apply and --persist need --on DEVICE")
    if persist and as_json:
        raise Problem("--persist and --json are mutually exclusive")
    target = target_of(machine, on) if on else None
    mute = (*mute, *machine.muted)
    found: Advised | Little
    recorded = None
    try:
        if live and target:
            work, drive, recorded = _recorded(target, seconds, given, anyway)
        else:
            work, drive, recorded = _read(_named(workload), given, anyway)
    except TooLittleError as e:
        found = little(e, target, goal, mute)
    else:
        conditions = conditions_of(target, seed=given["seed"], queue_depth=given["queue_depth"], whole=given["whole"])
        # Before the gate nobody knows whether it will take long, and so nothing is announced.
        total = _ios(work, drive, conditions) if work.trace else None
        with progress_bar(f"{work.name} on {drive.name}", total) as update:
            found = advise(
                work,
                drive,
                conditions,
                target=target,
                goal=goal,
                margin=margin / 100,
                recorded=recorded,
                anyway=anyway,
                mute=mute,
                trials=trials,
                progress=update,
            )
    # What is refused is told behind the advice, and then nothing is changed and no rule is printed.
    rule, refused = "", ""
    done: list[Applied] = []
    try:
        if persist and target:
            now = target.settings[0]
            stays = replace(now.beside(Settings(now.scheduler)), wbt_lat_usec=None)
            rule = rules(target.legs, found.wanted or stays, machine.root / "run" / "udev" / "data")
        if put and found.wanted and target:
            done = _apply(machine, target, found, recorded, force)
    except Problem as e:
        rule, refused = "", str(e)
    if as_json:
        write_json(found.document(bool(done)), output)
    elif rule:
        _show(a_console(stderr=True, highlight=False, markup=False), found, put, done)
        write_text(rule, output)  # as it is, however narrow the terminal
    else:
        with page(None if persist else output, fitted=True) as out:
            _show(out, found, put, done)
    if refused:
        raise Problem(refused)


def _ios(work: Workload, drive: Drive, conditions: RunConditions) -> int:
    """About how many a recording's replays have."""
    run, many = conditions.load(work, drive), len(candidates(default_set()))
    return plan(run.load, drive, conditions.options(drive, run.trace), many, runs_of(run, None), True).total_ios


def _is_disk(machine: Machine, name: str) -> bool:
    """Return whether a name means a disk of this machine, and no trace. Problem for a device that is not there, or is no disk."""
    path = Path(name)
    if path.is_file():
        return False
    if machine.has(name):
        return True
    if any(path.is_relative_to(folder) for folder in ("/dev", machine.root / "dev")):
        if not path.exists():
            raise Problem(f"{shown(name, 200)}: no such device")
        if path.is_block_device():
            machine.find(name)  # which says why it is none
    return False


def _named(workload: str) -> Path:
    """The file of a trace."""
    try:
        return find_workload(workload)
    except NotFoundError as e:
        raise Problem(f"{e}, and no disk of this machine") from None


def _apply(machine: Machine, target: Target, found: Advised | Little, recorded: Recording | None, force: bool) -> list[Applied]:
    """Put what is wanted in force. Problem if something speaks against it, or the kernel refuses it; all is as before then."""
    assert found.wanted
    against = [*filter(None, [elsewhere(target, recorded)]), *found.losses]
    if against and not force:
        raise Problem(f"{target.device.name}: {'; '.join(against)}: --apply needs --force for that")
    return apply(target.legs, found.wanted, machine.state, "headwaiter advise --apply")


def _recorded(target: Target, seconds: float, given: dict[str, Any], anyway: bool) -> tuple[Workload, Drive, Recording | None]:
    """Record the disks on whose queues the scheduler acts, and read that. Problem if it ended early; it names the device."""
    name = target.device.name
    click.echo(f"{', '.join(leg.name for leg in target.legs)}: recording for {seconds:g} s", err=True)
    with TemporaryDirectory(prefix="headwaiter-") as folder:
        path = Path(folder) / name
        done = None
        try:
            done = record_with_line(target.legs, seconds, path)
            if done.trouble:
                raise Problem(f"{name}: {done.trouble}")
            return _read(path, given, anyway)
        except NoRequestsError:
            raise TooLittleError(name, None, None, done.sofar.seconds if done else seconds) from None
        except TooLittleError:
            raise
        except Problem as e:
            raise Problem(str(e).replace(str(path), f"the recording of {name}")) from None


def _read(path: Path, given: dict[str, Any], anyway: bool) -> tuple[Workload, Drive, Recording | None]:
    """The recording, the drive of --drive, and what the recording tells beside requests."""
    more = {"shares": (), "streams": 0, "speed": 1.0, "group_gap": DEFAULT_GROUP_GAP_MS}

    def told(doing: str, drives: int | None) -> AbstractContextManager[Callable[[str, int], None]]:
        return progress_bar(f"{path.name}: {doing}", drives, unit="drives")

    return read_recorded(path, given["drive"], reading({**more, **given}), anyway, reading_bar(path), told)


def _show(out: Console, found: Advised | Little, put: bool, done: list[Applied]) -> None:
    legs = f" ({', '.join(leg.name for leg in found.target.legs)})" if found.target else ""
    what = found.name if isinstance(found, Little) else f"{found.work.name} on {found.drive.name}"
    how = f"{found.current} is in force{legs}" if found.target else f"against {found.current}"
    show(out, Text(f"{what}; {how}", style="bold"))
    g = found.gate
    contention = (
        "" if g.contention_percent is None else f"; {g.contention_percent:.0f}% of requests found {g.depth} or more under way"
    )
    host = (
        ""
        if g.processor_percent is None
        else f"; they take {g.processor_percent:.0f}% of the processors' time, and {g.lock_percent:.0f}% of one lock's"
    )
    slower = "" if g.slowdown is None or g.processor_percent is None else f", and {g.slowdown:.1f} times as long as alone"
    lost = f"{counted(g.lost, 'event')} lost"
    out.print(f"Recorded: {brief(g.seconds)} s, {counted(g.requests, 'request')}, {lost}{contention}{host}{slower}")
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
            written = ", ".join(map(str, change.changes))
            out.print(
                f"{change.device.name}: {written or 'as it was'}; `headwaiter revert {change.device.name}` restores",
                soft_wrap=True,
            )
        if not done:
            out.print("Nothing was changed.")
    if found.notes:
        out.print()
        print_notes(out, found.notes)
