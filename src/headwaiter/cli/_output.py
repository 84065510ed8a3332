# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Write results to stdout or a file, as JSON or text."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from headwaiter.base.outputs import BlockDevice, check, writing
from headwaiter.base.records import Record, json_text
from headwaiter.report.terminal import console

F = TypeVar("F", bound=Callable[..., Any])
_BLOCK_DEVICE = "headwaiter.block_device"


def _allow(ctx: click.Context, _: click.Parameter, given: bool) -> None:
    ctx.meta[_BLOCK_DEVICE] = given


def _target(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """The file of an option, known to be writable before the work begins; None for stdout."""
    if path is None or str(path) == "-":
        return None
    if ctx.meta.get(_BLOCK_DEVICE):
        path = BlockDevice(path)
    check(path)
    return path


def file_option(*names: str, **more: Any) -> Callable[[F], F]:
    """An option that names a file to be written."""
    return click.option(*names, type=click.Path(path_type=Path), callback=_target, **more)


def output_option(metavar: str = "FILE") -> Callable[[F], F]:
    """-o, and what it needs for block devices."""

    def add(function: F) -> F:
        function = click.option(
            "--block-device",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_allow,
            help="Allow FILE to be a block device, and overwrite its contents.",
        )(function)
        return file_option("--output", "-o", metavar=metavar, help="Write to this file instead of stdout.")(function)

    return add


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON (docs/json.md).")


def output_options(function: F) -> F:
    """--json and -o."""
    return json_option(output_option()(function))


def write_json(document: Record, output: Path | None) -> None:
    """A document of schema.py, to stdout, or to a file that appears whole or not at all."""
    write_text(json_text(document), output)


def write_text(text: str, output: Path | None) -> None:
    """To stdout, or to a file that appears whole or not at all."""
    if output is None:
        click.echo(text, nl=False)
        return
    with writing(output) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


@contextmanager
def page(output: Path | None, fitted: bool = False) -> Iterator[Console]:
    """What to print on for people: stdout, or plain text into a file that appears whole or not at all. fitted: see console()."""
    if output is None:
        yield console(fitted=fitted)
        return
    buffer = io.StringIO()
    yield console(buffer, fitted=fitted)
    write_text(buffer.getvalue(), output)
