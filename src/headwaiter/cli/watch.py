# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter watch: keep disks under watch, and their schedulers right."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import click

from headwaiter.base.ending import gently
from headwaiter.base.errors import Problem
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._devices import device
from headwaiter.cli._machine import machine_options
from headwaiter.cli._options import Finite, margin_option
from headwaiter.cli._output import file_option
from headwaiter.cli._progress import clock_bar
from headwaiter.cli._tables import table_of, table_options
from headwaiter.drives.choose import open_drive
from headwaiter.papers.selectors import check_subject, read_ranking
from headwaiter.papers.watching import TableMethod
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.study.drive_fit import AUTO
from headwaiter.watch.decide import Caution, Window
from headwaiter.watch.prometheus import Metrics, served
from headwaiter.watch.sample import CounterMethod, Method, ReplayMethod
from headwaiter.watch.service import OnExit, Rules, Service

_DEFAULT = Caution()


@click.command("watch", cls=Command)
@click.argument("devices", nargs=-1, required=True, metavar="DEVICE…", shell_complete=device)
@click.option(
    "--method",
    type=click.Choice(["replay", "request-size", "table"]),
    default="replay",
    show_default=True,
    help="Compare schedulers by a replay, by the mean request size, or by a table of operations and sizes.",
)
@table_options("Output of `headwaiter rank --json` (request-size), or of `headwaiter table --json` (table).", " (table)")
@click.option(
    "--drive",
    "-d",
    default=AUTO,
    show_default=True,
    shell_complete=complete.drive,
    help="Drive model to replay on, or the one that was ranked.",
)
@click.option(
    "--sample",
    type=Finite(0.1, 3600),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="Record each window for this long.",
)
@click.option(
    "--every", type=Finite(0.1, 86400), default=60.0, show_default=True, metavar="SECONDS", help="Begin a window this often."
)
@click.option("--apply", "put", is_flag=True, help="Change schedulers, the former settings saved first [default: only report].")
@click.option("--resume", is_flag=True, help="Take over disks again that somebody else has set.")
@click.option(
    "--on-exit",
    type=click.Choice(get_args(OnExit)),
    default="keep",
    show_default=True,
    help="Keep or restore the schedulers at the end.",
)
@margin_option("Change only for an advantage of at least this.", _DEFAULT.margin)
@click.option(
    "--windows",
    type=click.IntRange(1, 100),
    default=_DEFAULT.windows,
    show_default=True,
    help="Judge by this many windows together.",
)
@click.option(
    "--confirm",
    type=click.IntRange(1, 100),
    default=_DEFAULT.confirm,
    show_default=True,
    help="Change after this many verdicts in a row.",
)
@click.option(
    "--dwell",
    type=click.IntRange(1, 10_000),
    default=_DEFAULT.dwell,
    show_default=True,
    help="Make no other change for this many windows.",
)
@click.option(
    "--changes",
    type=click.IntRange(0, 10_000),
    default=_DEFAULT.changes,
    show_default=True,
    help="At most this many changes a day.",
)
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="End after this many windows of each disk.")
@file_option("--metrics-file", metavar="FILE.prom", help="Write metrics for node_exporter's textfile collector.")
@click.option("--metrics-http", metavar="HOST:PORT", help="Serve metrics to Prometheus at /metrics.")
@machine_options
def command(
    devices: tuple[str, ...],
    machine: Machine,
    method: str,
    ranking: Path | None,
    iozone: tuple[str, ...],
    drive: str,
    sample: float,
    every: float,
    put: bool,
    resume: bool,
    on_exit: OnExit,
    margin: float,
    windows: int,
    confirm: int,
    dwell: int,
    changes: int,
    rounds: int | None,
    metrics_file: Path | None,
    metrics_http: str | None,
) -> None:
    """Watch what is asked of DEVICEs, and say which scheduler each should have; with --apply, change it.

    It prints a line for each decision, with its reasons. It changes a scheduler only for an advantage over several windows, and
    undoes the change if latency becomes worse. It leaves alone a disk that somebody else sets. Ctrl-C or SIGTERM ends the watch.
    """
    caution = Caution(margin / 100, windows, confirm, dwell, changes)
    rules = Rules(sample, max(every, sample), put, resume, on_exit, caution)
    metrics = Metrics()
    with gently() as told, ExitStack() as held:
        by, measured_on = _method(method, ranking, iozone, drive, told.wait)
        for name in devices if measured_on else ():
            check_subject(measured_on, machine.find(name), "" if drive == AUTO else open_drive(drive).name)
        chosen = _Shown(by)
        if metrics_http:
            held.enter_context(served(metrics, metrics_http))
        service = Service(
            machine,
            devices,
            chosen,
            rules,
            click.echo,
            told.wait,
            metrics,
            (lambda: metrics.write(metrics_file)) if metrics_file else lambda: None,
        )
        service.run(rounds)


@dataclass(frozen=True)
class _Shown:
    """A method whose windows are waited for with a bar."""

    method: Method

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        """See Method."""
        with clock_bar(f"{device.name}: window", seconds, f"{device.name}: judging it"):
            return self.method.window(device, legs, seconds, current, candidates)


def _method(name: str, ranking: Path | None, iozone: tuple[str, ...], drive: str, wait: object) -> tuple[Method, str]:
    """The method of --method, with the files that it needs, and what those were measured on."""
    assert callable(wait)
    takes = {"request-size": ("--ranking",), "table": ("--ranking", "--iozone")}.get(name, ())
    given = [option for option, value in (("--ranking", ranking), ("--iozone", iozone)) if value]
    for option in given:
        if option not in takes:
            raise Problem(f"{option} is not for --method {name}")
    if takes and len(given) != 1:
        raise Problem(f"--method {name} needs {' or '.join(takes)}")
    if name == "request-size":
        assert ranking
        by_size = read_ranking(ranking)
        return CounterMethod(by_size, wait), by_size.subject
    if name == "table":
        table = table_of(ranking, iozone)
        return TableMethod(table), table.subject
    return ReplayMethod(drive), ""
