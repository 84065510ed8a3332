# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The drive models and their parameters, as core's tables tell them."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.base.parsing import decimal
from headwaiter.engine.constants import ParamType
from headwaiter.engine.native import ffi, lib, text


@dataclass(frozen=True)
class Param:
    """A parameter, or a column of a list. default, minimum and maximum are in blob units: TOML value times scale."""

    key: str
    type: ParamType
    scale: int
    unit: str
    required: bool
    default: int
    minimum: int
    maximum: int
    help: str
    choices: tuple[str, ...]
    columns: tuple[Param, ...]
    parent: str = ""  # the list in whose rows this list is given in TOML; '' if it stands by itself

    def show(self, value: int) -> str | int | float | bool:
        """A blob value as TOML has it."""
        if self.type == ParamType.FLAG:
            return bool(value)
        if self.type == ParamType.CHOICE:
            return self.choices[value]
        return value if self.scale == 1 else value / self.scale

    @property
    def default_text(self) -> str:
        """The value that it has if it is not given, as people write it."""
        if self.required:
            return "required"
        if self.type in (ParamType.LIST, ParamType.DRIVES):
            return "none"
        shown = self.show(self.default)
        return str(shown).lower() if isinstance(shown, bool) else str(shown)

    @property
    def bounds(self) -> str:
        """The values that it takes, as people write them."""
        if self.type == ParamType.FLAG:
            return "true, false"
        if self.type == ParamType.CHOICE:
            return ", ".join(self.choices)
        if self.type in (ParamType.LIST, ParamType.DRIVES):
            return f"{self.minimum}..{self.maximum} rows"
        return f"{decimal(self.minimum / self.scale)}..{decimal(self.maximum / self.scale)}"


@dataclass(frozen=True)
class Model:
    """A drive model: its index in libheadwaiter, and its parameters by key, in the order of the blob."""

    index: int
    name: str
    summary: str
    params: dict[str, Param]

    def rows(self) -> Iterator[tuple[Param, str]]:
        """Parameters and, after a list, its columns: each with the name under which tables show it."""
        for p in self.params.values():
            yield p, p.key
            for c in p.columns[1 if p.parent else 0 :]:
                yield c, f"{p.key}[].{c.key}"


def _param(c: Any, columns: tuple[Param, ...], lists: Collection[str] = ()) -> Param:
    choices: list[str] = []
    while c.choices != ffi.NULL and c.choices[len(choices)] != ffi.NULL:
        choices.append(text(c.choices[len(choices)]))
    parent = text(c.key).rpartition(".")[0]
    return Param(
        text(c.key),
        ParamType(c.type),
        c.scale,
        text(c.unit),
        bool(c.required),
        getattr(c, "def"),
        c.min,
        c.max,
        text(c.help),
        tuple(choices),
        columns,
        parent if c.type == ParamType.LIST and parent in lists else "",
    )


def _params(model: int, n: int) -> dict[str, Param]:
    found: dict[str, Param] = {}
    c, col = ffi.new("struct hws_param *"), ffi.new("struct hws_param *")
    for i in range(n):
        lib.hws_param_at(model, i, c)
        columns = []
        for k in range(c.nr_columns):
            lib.hws_param_column_at(model, i, k, col)
            columns.append(_param(col, ()))
        param = _param(c, tuple(columns), found)
        found[param.key] = param
    return found


@functools.cache
def models() -> dict[str, Model]:
    """Every drive model by name."""
    found: dict[str, Model] = {}
    m = ffi.new("struct hws_drive_model *")
    while lib.hws_drive_model_at(len(found), m) == 0:
        name = text(m.name)
        found[name] = Model(len(found), name, text(m.summary), _params(len(found), m.nr_params))
    return found


def model(name: str, where: str) -> Model:
    """The model of this name; Problem, with `where` in front, if there is none."""
    try:
        return models()[name]
    except KeyError:
        raise Problem(f"{where}: model: no such drive model '{name}' (known: {', '.join(models())})") from None
