# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parameters of a generated workload: numbers in a flat TOML file. The generator's own class names each, with its range."""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import decimal
from headwaiter.base.reading import TEXT_BYTES

P = TypeVar("P")
GENERATOR = re.compile(rb"^[ \t]*generator[ \t]*=", re.M)
LINE = re.compile(r"\s*(\w{1,40}\s*=\s*(\"[\w -]{0,40}\"|[\w.+-]{1,40})\s*)?(#.*)?")


def number(low: float, high: float) -> Any:
    """A field of a class of parameters: a number from low to high, whole if the field is."""
    return dataclasses.field(metadata={"range": (low, high)})


@dataclasses.dataclass(frozen=True)
class Common:
    """Parameters of all generators."""

    readahead_kib: int = number(0, 4096)
    """0: no read-ahead, each page is asked for by itself."""
    dirty_mib: int = number(1, 1024)
    """Dirty pages that are written back when there are more."""


def looks_generated(head: bytes) -> bool:
    """Is this the beginning of a generated workload's parameters: a line `generator = …`?"""
    return b"\0" not in head and GENERATOR.search(head) is not None


def document(path: Path, data: bytes) -> tuple[str, dict[str, Any]]:
    """The generator's name and its parameters, not checked yet."""
    if len(data) > TEXT_BYTES:
        raise Problem(f"{path}: larger than {TEXT_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if not LINE.fullmatch(line):
                raise Problem(f"{path}:{number}: '{shown(line)}' is neither KEY = NUMBER nor generator = \"NAME\"")
        values = tomllib.loads(text)
    except UnicodeDecodeError as e:
        raise Problem(f"{path}:{data[: e.start].count(10) + 1}: not UTF-8") from None
    except tomllib.TOMLDecodeError as e:
        raise Problem(f"{path}: {e}") from None
    name = values.pop("generator")
    if not isinstance(name, str):
        raise Problem(f"{path}:{_line(data, 'generator')}: generator: must be a name")
    return name, values


def parameters(kind: type[P], path: Path, data: bytes, values: dict[str, Any]) -> P:
    """Checked: each of them there, none that is not known, all in their ranges."""
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise Problem(f"{path}:{_line(data, key)}: unknown key '{shown(key)}' (known: {', '.join(fields)})")
    for key, f in fields.items():
        if key not in values:
            raise Problem(f"{path}: {key} is missing")
        value, (low, high) = values[key], f.metadata["range"]
        whole = f.type in (int, "int")
        right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not right or not math.isfinite(value) or not low <= value <= high:
            what = "a whole number" if whole else "a number"
            raise Problem(f"{path}:{_line(data, key)}: {key}: must be {what} from {decimal(low)} to {decimal(high)}")
    return kind(**values)


def _line(data: bytes, key: str) -> int:
    found = re.search(rb"^[ \t]*" + key.encode() + rb"\b", data, re.M)
    return data[: found.start()].count(b"\n") + 1 if found else 1
