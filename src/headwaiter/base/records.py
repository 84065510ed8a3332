# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Records that become JSON: dataclasses whose fields say what they mean, in which unit, and under which key they stand.

A field is `name: Annotated[type, Says(meaning, …)]`. One that may be None is absent from the JSON where it is None, or null.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import headwaiter

SCHEMA: Literal["headwaiter/1"] = "headwaiter/1"
"""The schema of all that commands print, except for the lab's."""


@dataclass(frozen=True)
class Says:
    """The meaning of a field. `key` is its name in JSON where that is no name for Python, `head` that of its column in tables.

    `null`: where it is None it is null, and not absent.
    """

    meaning: str
    unit: str = ""
    key: str = ""
    head: str = ""
    null: bool = False


class Record:
    """A record that becomes a JSON object.

    Subclasses are dataclasses; a base's fields come first, the last base's before all others.
    """

    __slots__ = ()


Notes = Annotated[Sequence[str], Says("what to know when reading the results")]
"""A field that many documents have."""


@dataclass(frozen=True, kw_only=True)
class Document(Record):
    """The output of a command."""

    schema: Annotated[Literal["headwaiter/1"], Says("which rules it follows")] = SCHEMA
    version: Annotated[str, Says("of headwaiter")] = dataclasses.field(default_factory=lambda: headwaiter.__version__)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Field:
    """A field of a record: its attribute, its key, its type without None, and whether it may be absent, or null."""

    name: str
    key: str
    head: str
    unit: str
    meaning: str
    type: Any
    optional: bool
    null: bool


_known: dict[type[Record], tuple[Field, ...]] = {}


def fields(kind: type[Record]) -> tuple[Field, ...]:
    """The fields of a record, in the order in which they are written."""
    if kind not in _known:
        assert dataclasses.is_dataclass(kind)
        hints = get_type_hints(kind, include_extras=True)
        _known[kind] = tuple(_field(one.name, hints[one.name]) for one in dataclasses.fields(kind))
    return _known[kind]


def _field(name: str, hint: Any) -> Field:
    assert get_origin(hint) is Annotated, f"{name} does not say what it is"
    whole, says = get_args(hint)
    parts = get_args(whole) if get_origin(whole) in (Union, UnionType) else (whole,)
    may_be_none = NoneType in parts
    assert may_be_none or not says.null, f"{name} is never null"
    type_: Any = Union[tuple(part for part in parts if part is not NoneType)]  # noqa: UP007 (of a tuple)
    key = says.key or name
    return Field(name, key, says.head or key, says.unit, says.meaning, type_, may_be_none and not says.null, says.null)


def keyed(record: Record) -> dict[str, object]:
    """Return what a record has, by key; records in it stay records."""
    found = ((field, getattr(record, field.name)) for field in fields(type(record)))
    return {field.key: value for field, value in found if value is not None or field.null}


def json_text(record: Record) -> str:
    """The JSON of a record, as commands print it."""
    return json.dumps(record, indent=1, default=keyed) + "\n"


def like(kind: type[R], source: object, **more: object) -> R:
    """A record with the attributes that `source` has of the same names; `more` are others."""
    names = (field.name for field in fields(kind) if field.name not in more)
    return kind(**{name: getattr(source, name) for name in names}, **more)


def field_at(kind: type[Record], path: str) -> Field:
    """The field at a path of keys, such as "read.lat_ms.mean". KeyError if no record of the kind has it."""
    key, _, rest = path.partition(".")
    found = {field.key: field for field in fields(kind)}[key]
    return field_at(found.type, rest) if rest else found


def value_at(record: Record, path: str) -> object:
    """Return what this record has there; None if it has it not. KeyError as field_at()."""
    value: object = record
    for key in path.split("."):
        if value is None:
            return None
        assert isinstance(value, Record)
        value = getattr(value, {field.key: field.name for field in fields(type(value))}[key])
    return value
