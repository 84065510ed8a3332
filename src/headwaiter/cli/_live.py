# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Options that commands for live disks share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headwaiter.cli import _complete as complete
from headwaiter.errors import Problem, shown
from headwaiter.live.advice import Target
from headwaiter.live.machine import Machine
from headwaiter.study.variants import ALL

F = TypeVar("F", bound=Callable[..., Any])


sched_option = click.option(
    "--sched",
    "-s",
    shell_complete=complete.schedulers,
    metavar="a,b|all",
    help="Schedulers [default: all that there are].",
)
"""Of what is measured on a drive model or a disk; chosen_of() says what it means of a disk."""


root_option = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default="/",
    show_default=True,
    metavar="FOLDER",
    help="Root of the machine: sys, etc, lib, var.",
)
"""Of commands that only look."""


def machine_options(function: F) -> F:
    """--root and --state, as one argument `machine`."""

    def made(**given: Any) -> Any:
        root, state = given.pop("root"), given.pop("state")
        return function(machine=Machine(root, state), **given)

    made.__name__, made.__doc__ = function.__name__, function.__doc__
    made.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    state_option = click.option(
        "--state",
        type=click.Path(path_type=Path),
        envvar="STATE_DIRECTORY",
        metavar="FOLDER",
        help="Where former settings are saved [default: /var/lib/headwaiter].",
    )
    return root_option(state_option(made))  # type: ignore[return-value]


def chosen_of(target: Target, sched: str | None) -> list[str]:
    """The schedulers of --sched for a disk, by their names in the kernel; by default all. Problem if the kernel lacks one."""
    chosen = list(target.offered) if sched in (None, ALL) else str(sched).split(",")
    for one in chosen:
        if one not in (*target.offered, *target.loadable):
            raise Problem(f"--sched {shown(one)}: the kernel has it not for {target.device.name} ({', '.join(target.offered)})")
    return chosen
