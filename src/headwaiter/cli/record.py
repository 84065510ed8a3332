# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter record: what is asked of a disk of this machine, as a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from headwaiter.base.archives import RECORDERS
from headwaiter.base.errors import Problem, plain
from headwaiter.cli._commands import Command
from headwaiter.cli._devices import devices_or_all
from headwaiter.cli._options import Finite
from headwaiter.cli._output import file_option
from headwaiter.cli._progress import amount, clock_bar
from headwaiter.queue.devices import Device, find, whole_disks
from headwaiter.recorder.record import BUFFER_KB, RecordingDone, Sofar, record

_ALL = "all"


@click.command(cls=Command)
@click.argument("devices", nargs=-1, required=True, shell_complete=devices_or_all, metavar="DEVICE…|all")
@click.option(
    "--time",
    "-t",
    "seconds",
    type=Finite(0.1, 86400),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Record for this long.",
)
@file_option(
    "--output", "-o", required=True, metavar="FILE", help="The archive to write; a new one is readable by its owner only."
)
@click.option(
    "--issues/--no-issues",
    default=None,
    help="Record also when the device is given a request, for its service times and depth [default: if a disk is rotational].",
)
@click.option(
    "--buffer",
    "buffer_kb",
    type=click.IntRange(64, 1 << 20),
    default=BUFFER_KB,
    show_default=True,
    metavar="KIB",
    help="Size of the kernel's buffer for each CPU; take more if events are lost.",
)
@click.option("--recorder", type=click.Choice(RECORDERS), help="Recorder to use [default: the first that works here].")
@click.option(
    "--anonymous",
    is_flag=True,
    help="Keep no names of programs, no serial numbers and no date: a recording for others, or for a fleet.",
)
def command(
    devices: tuple[str, ...],
    seconds: float,
    output: Path,
    issues: bool | None,
    buffer_kb: int,
    recorder: str | None,
    anonymous: bool,
) -> None:
    """Record the requests that disks of this machine receive, as a trace for every other command (docs/record.md).

    It needs root. Ctrl-C or SIGTERM ends the recording early and keeps it. The command writes nothing to a device, and does not
    touch anyone else's tracing.
    """
    disks = disks_named(devices)
    done = record_with_line(disks, seconds, output, issues=issues, buffer_kb=buffer_kb, recorder=recorder, anonymous=anonymous)
    if done.trouble:
        raise Problem(f"{output}: {ended('what was recorded is kept', done)}")
    click.echo(plain(f"{output}: {_told(done)}"), err=True)


def record_with_line(disks: Sequence[Device], seconds: float, output: Path, **more: Any) -> RecordingDone:
    """Record as record() does, with a bar on a terminal."""
    names = ", ".join(disk.name for disk in disks)
    with clock_bar(f"{names}: recording", seconds, f"{names}: storing what was recorded") as say:
        return record(disks, seconds, output, each_second=_Rates(say).show, **more)


def ended(what: str, done: RecordingDone) -> str:
    """Say that it ended early, and why."""
    return f"{what}, but the recording ended early: {done.trouble} ({_told(done)})"


def disks_named(names: tuple[str, ...]) -> list[Device]:
    """Return the disks that were named, each once; for `all` those that hold something."""
    if names == (_ALL,):
        if not (found := whole_disks()):
            raise Problem("all: no disk holds anything")
        return found
    disks = {disk.name: disk for disk in map(find, names)}
    for disk in disks.values():
        if not disk.sectors:
            raise Problem(f"{disk.name}: holds nothing (no medium, or nothing attached)")
    return list(disks.values())


def _told(done: RecordingDone) -> str:
    rate = done.sofar.requests / max(done.sofar.seconds, 1e-9)
    text = f"{amount(done.sofar.requests)} requests in {done.sofar.seconds:.1f} s ({amount(rate)}/s), recorded by {done.recorder}"
    if done.sofar.lost:
        return f"{text}; {done.sofar.lost} events were lost in {len(done.gaps)} gaps (a larger --buffer helps)"
    return f"{text}; no event was lost"


class _Rates:
    """Describe in words what went on since the last call."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last = Sofar(0.0, 0, 0, 0, 0)

    def show(self, now: Sofar) -> None:
        """Say it."""
        seconds = max(now.seconds - self._last.seconds, 1e-9)
        requests, moved = (now.requests - self._last.requests) / seconds, (now.bytes - self._last.bytes) / seconds
        self._say(f"{amount(max(0, requests))} requests/s  {max(0, moved) / 1e6:.1f} MB/s  {now.lost} lost")
        self._last = now
