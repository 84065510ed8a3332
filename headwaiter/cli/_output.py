# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where results go: stdout or a file, JSON or text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..paths import replacing
from ..results import Json

F = TypeVar("F", bound=Callable[..., Any])


def output_options(function: F) -> F:
    """--json and -o."""
    function = click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                            help="Write there instead of to stdout.")(function)
    return click.option("--json", "as_json", is_flag=True, help="Print JSON (schema headwaiter/1).")(function)


def write_json(document: Json, output: Path | None) -> None:
    """To stdout, or to a file that appears whole or not at all."""
    text = json.dumps(document, indent=1) + "\n"
    write_text(text, output)


def write_text(text: str, output: Path | None) -> None:
    """To stdout, or to a file that appears whole or not at all."""
    if output is None:
        click.echo(text, nl=False)
        return
    with replacing(output) as temporary:
        temporary.write_text(text)
