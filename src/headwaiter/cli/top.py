# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter top: who waits for whom at a disk, now."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event

import click
from rich.live import Live
from rich.text import Text

from headwaiter.base.ending import gently, tidied
from headwaiter.base.errors import Problem
from headwaiter.base.records import json_text
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._machine import root_option
from headwaiter.cli._options import Finite
from headwaiter.cli._output import json_option
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.report.tables import show
from headwaiter.report.terminal import columns, console
from headwaiter.top.schema import TopDocument
from headwaiter.top.screen import screen
from headwaiter.top.sources import Watcher, counter_looks, recorded

_QUIT = ("q", "Q")


@click.command("top", cls=Command)
@click.argument("what", metavar="DEVICE|TRACE", shell_complete=complete.disk)
@click.option(
    "--interval",
    "-i",
    type=Finite(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Length of an interval.",
)
@click.option("--once", is_flag=True, help="Show one interval, as text, and end.")
@click.option("--batch", type=click.IntRange(1), metavar="N", help="Show so many intervals, as text, and end.")
@click.option("--counters", is_flag=True, help="Read only the disk's counters: this shows no programs, and needs no root.")
@json_option
@root_option
def command(what: str, root: Path, interval: float, once: bool, batch: int | None, counters: bool, as_json: bool) -> None:
    """Show who waits for whom at a disk, live: programs, their rates and latencies, the queue, the scheduler.

    It needs root, for the kernel's tracing, and writes nothing to the disk. After a minute it says what would help, as `watch`
    judges it. The key q ends it. It shows each interval of a TRACE as text. With --json each interval is a document.
    """
    machine = Machine(root)
    rounds = 1 if once else batch
    path = Path(what)
    if not machine.has(what) and path.is_file():
        if counters:
            raise Problem("--counters is for a disk, and not for a recording")
        _print(recorded(path, what, interval), rounds, as_json)
        return
    device = _disk(machine, what)
    with gently() as told, ExitStack() as held:
        plain = as_json or rounds is not None or not sys.stdout.isatty()
        keys = None if plain else held.enter_context(_keys())
        pause = _Pause(told, keys)
        if counters:
            looks = counter_looks(machine, device, interval, pause.wait)
        else:
            watcher = held.enter_context(Watcher.of(machine, device, interval, pause.wait))
            looks = watcher.looks()
        if plain:
            _print(looks, rounds, as_json)
        else:
            _draw(looks, f"{device.name}: the first interval ends in {interval:g} s")


def _disk(machine: Machine, name: str) -> Device:
    """The disk whose queue is meant. Problem if there is none, or several."""
    device = machine.find(name)
    legs = machine.leaves(device)
    if len(legs) > 1:
        raise Problem(f"{device.name}: has no queue of its own; name one of its disks ({', '.join(leg.name for leg in legs)})")
    if not legs[0].sectors:
        raise Problem(f"{legs[0].name}: holds nothing (no medium, or nothing attached)")
    return legs[0]


class _Pause:
    """Waits, until a signal or the key that ends it."""

    def __init__(self, told: Event, keys: int | None) -> None:
        self._told, self._keys = told, keys

    def wait(self, seconds: float) -> bool:
        """Return whether all is to end."""
        if self._keys is None:
            return self._told.wait(seconds)
        until = time.monotonic() + seconds
        while not self._told.is_set():
            left = until - time.monotonic()
            ready, _, _ = select.select([self._keys], [], [], max(0.0, min(left, 0.1)))
            if ready:
                typed = os.read(self._keys, 64).decode("latin-1")
                if not typed or any(key in typed for key in _QUIT):
                    return True
            if left <= 0:
                return False
        return True


@contextmanager
def _keys() -> Iterator[int | None]:
    """Keys as they are typed; None where stdin is no terminal. The terminal is as before in the end, whatever ends the block."""
    if not sys.stdin or not sys.stdin.isatty():
        yield None
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)

    def restore() -> None:
        with suppress(termios.error):
            termios.tcsetattr(handle, termios.TCSADRAIN, before)

    with tidied(restore):
        tty.setcbreak(handle)
        yield handle


def _print(looks: Iterator[TopDocument], rounds: int | None, as_json: bool) -> None:
    """Print text or JSON, one below the other."""
    for number, found in enumerate(looks):
        if as_json:
            click.echo(json_text(found), nl=False)
        else:
            out = console(fitted=True)
            if number:
                out.print()
            show(out, screen(found, out.width))
        sys.stdout.flush()
        if rounds is not None and number + 1 >= rounds:
            return


def _draw(looks: Iterator[TopDocument], first: str) -> None:
    """On a screen of its own, which is away in the end."""
    out = console()
    live = Live(console=out, screen=True, auto_refresh=False, vertical_overflow="crop")

    def stop() -> None:
        with suppress(OSError):
            live.stop()

    with tidied(stop):
        live.start()
        live.update(Text(first), refresh=True)
        for found in looks:
            out.width = columns()  # the terminal may be another size by now
            live.update(screen(found, out.width, out.height), refresh=True)
