# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter conform: our versions of the kernel's schedulers against the kernel's own, decision by decision."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
from rich.table import Table

from headwaiter.base.errors import Problem
from headwaiter.base.records import like
from headwaiter.cli._commands import Group
from headwaiter.cli._output import output_options, page, write_json
from headwaiter.conformance import check as checking
from headwaiter.conformance import decisions as recording
from headwaiter.study.schema import ConformanceRow, ConformDocument

# The least part of decisions that must be the kernel's.
LEAST = {"none": 0.99, "mq-deadline": 0.99, "kyber": 0.95, "bfq": 0.90}


@click.group("conform", cls=Group)
def command() -> None:
    """Compare our none, mq-deadline, kyber and bfq with the kernel's own."""


def _files(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob("*.xz")) if path.is_dir() else [path]
    if not found:
        raise Problem("no recordings (*.xz) found")
    return found


def _row(path: Path, v: checking.Conformity) -> ConformanceRow:
    return like(ConformanceRow, v, recording=str(path), refused_by_both=v.refusals, differences=dict(v.kinds))


@command.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="RECORDING...")
@click.option("--sched", "-s", "schedulers", multiple=True, metavar="NAME", help="Check only this scheduler (may be repeated).")
@click.option("--differences", type=click.IntRange(min=0), default=0, metavar="N", help="Print the first N differences of each.")
@output_options
def check(paths: tuple[Path, ...], schedulers: tuple[str, ...], differences: int, as_json: bool, output: Path | None) -> int:
    """Feed recordings (or folders of them) to our schedulers; exit with status 1 if one differs from the kernel too often.

    A recording holds the input of a kernel's scheduler and its decisions; 'headwaiter lab run conformance' makes one.
    """
    verdicts = []
    for path in _files(paths):
        try:
            made = recording.read(path)
            if not schedulers or made.fact("scheduler") in schedulers:
                verdicts.append((path, checking.check(made)))
        except Problem as e:
            raise Problem(str(e) if str(e).startswith(str(path)) else f"{path}: {e}") from None
    failed = any(v.share < LEAST.get(v.scheduler, 1) for _, v in verdicts)
    if as_json:
        write_json(ConformDocument(conformance=[_row(p, v) for p, v in verdicts]), output)
        return int(failed)
    table = Table("kernel", "scheduler", "workload", "decisions", "equal", "differ", box=None)
    for _, v in verdicts:
        table.add_row(
            v.kernel, v.scheduler, v.workload, str(v.decisions), f"{v.share:.2%}", str(v.decisions - v.equal) if v.kinds else ""
        )
    with page(output) as out:
        out.print(table)
        for _, v in verdicts:
            for d in v.first[:differences]:
                out.print(f"{v.kernel} {v.scheduler} {v.workload}: at {d.time_ns} ns the kernel chose {d.kernel}, ours {d.ours}")
    return int(failed)
