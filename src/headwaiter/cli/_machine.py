# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The machine that a command for live disks looks at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headwaiter.queue.machine import Machine

F = TypeVar("F", bound=Callable[..., Any])


root_option = click.option(
    "--root",
    type=click.Path(path_type=Path),
    default="/",
    show_default=True,
    metavar="FOLDER",
    help="Root of the machine: sys, etc, lib, var.",
)
"""The root of the machine, for commands that only look."""


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
