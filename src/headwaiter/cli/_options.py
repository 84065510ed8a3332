# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Options that commands share, and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, TypeVar

import click

from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import assignment, whole
from headwaiter.cli import _complete as complete
from headwaiter.drives.choose import DEFAULT_DRIVE
from headwaiter.engine.processor import parse_time
from headwaiter.engine.sim import Drive, Load, Options
from headwaiter.judge.conditions import RunConditions, checked
from headwaiter.judge.judge import MARGIN
from headwaiter.study.cost import announcement, plan
from headwaiter.study.ranges import RUNS, SHORT_IOS
from headwaiter.study.workload import Reading
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS

F = TypeVar("F", bound=Callable[..., Any])
_TIMES = ("turnaround", "dispatch_time", "copy_time")


class Finite(click.FloatRange):
    """A range of numbers; unlike click's own it takes neither nan, which lies in every range, nor infinities."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.ParamType."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def _repeated(one: Callable[[click.Parameter, tuple[str, ...]], str | None], given: dict[str, Any]) -> dict[str, Any]:
    """What an option is made of that may be repeated, and from whose values `one` makes the text that it means."""
    then, default = given.get("callback"), given.get("default")

    def read(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> Any:
        text = one(param, values) if values else None
        return then(ctx, param, text) if then else text

    return given | {"multiple": True, "callback": read, "default": None if default is None else (default,)}


class CommaList(click.Option):
    """A list with commas between its parts; the option may be repeated, and what was given is one list."""

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **_repeated(lambda _, values: ",".join(values), given))


class OneName(click.Option):
    """One name; a second one is refused, and does not silently take the first one's place.

    several: the command that takes more than one.
    """

    def __init__(self, *args: Any, several: str, **given: Any) -> None:
        def only(param: click.Parameter, values: tuple[str, ...]) -> str:
            if len(values) > 1:
                raise Problem(
                    f"{param.opts[0]} is given {len(values)} times ({shown(', '.join(values))}); {several} takes several"
                )
            return values[0]

        super().__init__(*args, **_repeated(only, given))


def byte_sizes(unit: int, most: int, default: tuple[int, ...]) -> Callable[..., tuple[int, ...]]:
    """Callback of an option with sizes in bytes, or with k, m or g behind them: multiples of `unit`, in order, each once."""

    def parse(_: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
        if text is None:
            return default
        found = []
        for word in text.lower().split(","):
            factor = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}.get(word[-1:], 1)
            digits = word if factor == 1 else word[:-1]
            size = int(digits) * factor if digits.isascii() and digits.isdecimal() and len(digits) < 12 else 0
            if not unit <= size <= most or size % unit:
                option = f"{param.opts[0]} {shown(text)}"
                raise Problem(f"{option}: '{shown(word)}' is no multiple of {unit} bytes up to {size_text(most)}")
            found.append(size)
        return tuple(sorted(set(found)))

    return parse


def byte_size(unit: int, most: int) -> Callable[..., int]:
    """Callback of an option with one such size."""
    several = byte_sizes(unit, most, ())

    def parse(ctx: click.Context, param: click.Parameter, text: str) -> int:
        found = several(ctx, param, text)
        if len(found) != 1:
            raise Problem(f"{param.opts[0]} {shown(text)}: expected one size")
        return found[0]

    return parse


def size_text(size: int) -> str:
    """A size in bytes as such an option takes it."""
    shift, letter = next((one for one in ((30, "g"), (20, "m")) if size >= 1 << one[0]), (10, "k"))
    return f"{size / (1 << shift):g}{letter}"


_SEEDS = click.option(
    "--seeds",
    type=click.IntRange(0, 1000),
    metavar="N",
    help=f"Runs with small changes of processor time, starts and think times, to check whether they decide the result "
    f"[default: {RUNS} up to {SHORT_IOS:,} I/Os, else 0].",
)


def flag(one: Field[Any]) -> str:
    """The option of a field of Conditions."""
    name = "--" + one.name.replace("_", "-")
    return f"{name}/--no-{name[2:]}" if isinstance(one.default, bool) else name


def told(one: Field[Any]) -> str:
    """Return what it means, and its default where the text does not say that."""
    shown_default = isinstance(one.default, str) or (not isinstance(one.default, bool) and one.default)
    return f"{one.metadata['help']} Default: {one.default}." if shown_default else str(one.metadata["help"])


def _condition(one: Field[Any], default: object) -> Callable[[F], F]:
    """The option of a field of Conditions; a number with another default says it itself."""
    text = one.metadata["help"]
    if isinstance(one.default, bool):
        return click.option(flag(one), default=default, show_default=True, help=text)
    shown_default = isinstance(one.default, str) or default != one.default or bool(one.default) or one.name == "seed"
    low, high = one.metadata["low"], one.metadata["high"]
    kind = click.IntRange(low, high) if high else str
    metavar = one.metadata["metavar"] or None
    return click.option(flag(one), type=kind, default=default, show_default=shown_default, metavar=metavar, help=text)


def _conditions(*names: str, **defaults: object) -> list[Callable[[F], F]]:
    """Options of conditions, all or those of these names."""
    return [
        _condition(one, defaults.get(one.name, one.default)) for one in fields(RunConditions) if not names or one.name in names
    ]


_LOAD = (
    click.option(
        "--drive",
        "-d",
        cls=OneName,
        several="headwaiter regret",
        metavar="NAME|FILE.toml|constant:MS|auto",
        shell_complete=complete.drive,
        help="Drive to simulate; auto (compare, run): the one that explains the recording best [default: auto where the recording"
        f" has completions, else {DEFAULT_DRIVE}].",
    ),
    click.option(
        "--replay",
        type=click.Choice(["closed", "open"]),
        help="Traces: keep think times (closed) or timestamps (open) [default: closed if the trace identifies tasks].",
    ),
    click.option(
        "--group-gap",
        type=Finite(0, 1e6),
        default=DEFAULT_GROUP_GAP_MS,
        show_default=True,
        metavar="MS",
        help="Traces: longest pause between two tasks of one name in one thread of control.",
    ),
    click.option("--device", help="Traces of several devices: the device to use [default: the busiest]."),
    click.option(
        "--streams",
        type=click.IntRange(0, 1024),
        default=0,
        metavar="N",
        help="Traces that do not identify tasks: infer N threads from sequential streams [default: one task].",
    ),
    click.option(
        "--speed",
        type=Finite(1e-6, 1e6),
        default=1.0,
        metavar="X",
        help="Traces: divide think times (open: timestamps) by X, to put more load on the disk [default: 1].",
    ),
    click.option("--share", "shares", multiple=True, metavar="TASK=N", help="Tickets of a task under as-share."),
    *_conditions(*(one.name for one in fields(RunConditions) if one.name != "whole")),
)


def load_options(function: F) -> F:
    """Return what a single run depends on, but for workload and scheduler."""
    for option in reversed(_LOAD):
        function = option(function)
    return function


def condition_options(usual: RunConditions, *left_out: str) -> Callable[[F], F]:
    """Conditions, but for some, with other defaults than those of a Linux machine."""
    known = {one.name: getattr(usual, one.name) for one in fields(RunConditions) if one.name not in left_out}

    def add(function: F) -> F:
        for option in reversed(_conditions(*known, **known)):
            function = option(function)
        return function

    return add


def simulation_options(function: F) -> F:
    """Add load_options(), how much of a long recording is run, and how often with small changes of the load."""
    for option in (_SEEDS, *_conditions("whole")):
        function = option(function)
    return load_options(function)


def margin_option(told: str, default: float = MARGIN) -> Callable[[F], F]:
    """--margin, in percent; told: what it is for, default: a share."""
    return click.option("--margin", type=Finite(0.1, 100), default=100 * default, show_default=True, metavar="PERCENT", help=told)


def table_options(function: F) -> F:
    """Return how the table of schedulers is shown."""
    wide = click.option("--wide", is_flag=True, help="Show all columns of the table, whatever the terminal's width.")
    legend = click.option("--legend", "with_legend", is_flag=True, help="Explain the columns of the table.")
    return wide(legend(function))


_SHARE = "TASK=N with N from 1 to 65535"


def parse_shares(pairs: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """--share TASK=N."""
    out = []
    for pair in pairs:
        task, share = assignment("--share", pair, _SHARE)
        try:
            out.append((whole(task, 0, 2**32 - 1), whole(share, 1, 65535)))
        except ValueError as e:
            raise Problem(f"--share {shown(pair)}: expected {_SHARE}: {e}") from None
    return tuple(out)


def reading(given: dict[str, Any]) -> Reading:
    """Return how the workload is to be read."""
    shares = parse_shares(given["shares"])
    return Reading(
        replay=given["replay"],
        group_gap_ms=given["group_gap"],
        device=given["device"],
        shares=shares,
        streams=given["streams"],
        speed=given["speed"],
        seed=given["seed"],
        whole=given.get("whole", False),
    )


def conditions(given: dict[str, Any]) -> RunConditions:
    """Under which conditions runs are made. Problem if a time is none."""
    for name in _TIMES:
        if given[name] is not None:
            parse_time(f"--{name.replace('_', '-')}", given[name])
    return checked(given)


def announce(load: Load, drive: Drive, options: Options, schedulers: int, asked: int | None, *, compared: bool = False) -> int:
    """Tell on stderr that the work will take long, if it will (see cost.announcement()). About how many I/Os it has.

    `compared`: as trial.measure() runs a load.
    """
    planned = plan(load, drive, options, schedulers, asked, compared)
    if line := announcement(planned):
        click.echo(line, err=True)
    return planned.total_ios
