# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which schedulers are measured on a drive model or a disk."""

from __future__ import annotations

import click

from headwaiter.advice.advice import Target
from headwaiter.base.errors import Problem, shown
from headwaiter.cli import _complete as complete
from headwaiter.cli._options import CommaList
from headwaiter.study.variants import ALL

sched_option = click.option(
    "--sched",
    "-s",
    cls=CommaList,
    shell_complete=complete.schedulers,
    metavar="a,b|all",
    help="Schedulers [default: all that there are].",
)
"""The schedulers that are measured on a drive model or a disk; chosen_of() reads it for a disk."""


def chosen_of(target: Target, sched: str | None) -> list[str]:
    """The schedulers of --sched for a disk, by their names in the kernel; by default all. Problem if the kernel lacks one."""
    chosen = list(target.offered) if sched in (None, ALL) else str(sched).split(",")
    for one in chosen:
        if one not in (*target.offered, *target.loadable):
            raise Problem(f"--sched {shown(one)}: the kernel has it not for {target.device.name} ({', '.join(target.offered)})")
    return chosen
