# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `--json` prints, for people (tables of docs/json.md) and for programs (a JSON Schema), from the rooms' schema.py."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from headwaiter.base.records import Field, Record, fields
from headwaiter.cli._documents import ALL

SCHEMA = Path(__file__).resolve().parent / "headwaiter-1.schema.json"
_SIMPLE: dict[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}


def _is_record(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Record)


def _parts(type_: Any) -> tuple[Any, ...]:
    """What a type is made of; nothing if it is simple, or a record."""
    return () if get_origin(type_) is Literal else get_args(type_)


def records() -> list[type[Record]]:
    """Every document, and after them every record that they hold, in the order in which they are met."""
    found = list(ALL)

    def meet(type_: Any) -> None:
        if _is_record(type_) and type_ not in found:
            found.append(type_)
        for part in _parts(type_):
            meet(part)

    for kind in found:  # grows meanwhile
        for field in fields(kind):
            meet(field.type)
    return found


def _json_type(type_: Any) -> dict[str, object]:
    origin, parts = get_origin(type_), _parts(type_)
    if type_ is Any:
        return {}
    if _is_record(type_):
        return {"$ref": f"#/$defs/{type_.__name__}"}
    if origin is Literal:
        values = get_args(type_)
        return {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    if origin is Sequence:
        return {"type": "array", "items": _json_type(parts[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _json_type(parts[1])}
    if origin in (Union, UnionType):
        return {"anyOf": [_json_type(part) for part in parts]}
    return {"type": _SIMPLE[type_]}


def _property(field: Field) -> dict[str, object]:
    unit = {"unit": field.unit} if field.unit else {}
    type_ = {"anyOf": [_json_type(field.type), {"type": "null"}]} if field.null else _json_type(field.type)
    return {"description": field.meaning, **unit, **type_}


def _definition(kind: type[Record]) -> dict[str, object]:
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": {field.key: _property(field) for field in fields(kind)},
        "required": [field.key for field in fields(kind) if not field.optional],
        "additionalProperties": False,
    }


def schema_text() -> str:
    """The JSON Schema: any of the documents."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What headwaiter prints with --json",
        "anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in ALL],
        "$defs": {kind.__name__: _definition(kind) for kind in records()},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def type_name(type_: Any) -> str:
    """A type as the tables have it, with a link to the record that it is."""
    origin, parts = get_origin(type_), _parts(type_)
    if type_ is Any:
        return "anything"
    if _is_record(type_):
        return f"[{type_.__name__}](#{type_.__name__.lower()})"
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in get_args(type_))
    if origin is Sequence:
        return f"list of {type_name(parts[0])}"
    if origin is Mapping:
        return f"object of {type_name(parts[1])}"
    if origin in (Union, UnionType):
        return " or ".join(type_name(part) for part in parts)
    return _SIMPLE[type_]


def sections() -> Iterator[tuple[str, str, list[tuple[str, str, str, str]]]]:
    """Yield the name of each record, what it is, and a row for each field: name, type, unit, meaning."""
    for kind in records():
        rows = [
            (
                f"`{field.key}`{' (optional)' if field.optional else ''}",
                f"{type_name(field.type)}{' or null' if field.null else ''}",
                field.unit,
                field.meaning,
            )
            for field in fields(kind)
        ]
        yield kind.__name__, " ".join((kind.__doc__ or "").split()), rows
