# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drive profiles: TOML in, checked, and flat for libheadwaiter.

A profile has `model` (a drive model), `description`, `devices` (what the kernel calls it), and the model's parameters:
"section.name" stands in [section], a list of rows is an array of tables or of arrays, and a list that belongs to the rows of
another (zones.slips) stands within them. core/drive.h tells the flat form; core checks ranges and sense.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.parsing import decimal, parse_toml
from headwaiter.base.paths import DRIVES as DIRECTORY
from headwaiter.base.reading import TEXT_BYTES, read_bytes
from headwaiter.drives.params import Model, Param, model
from headwaiter.engine.constants import ParamType
from headwaiter.engine.native import borrow, ffi, lib, text

_MAGIC = 0x31445748
_INT64 = 1 << 63
_ABOUT = ("model", "description", "devices")
_DEEPEST = 8
_MOST = 1000

Toml = dict[str, Any]
Kind = Literal["disk", "flash", "volume"]


@dataclass(frozen=True)
class Profile:
    """A checked profile. `data` is the TOML document; `blob` is what libheadwaiter takes."""

    name: str
    description: str
    model: Model
    data: Toml
    blob: bytes

    def attach(self, run: Any) -> int:
        """Give the drive to a `struct hws *`; what libheadwaiter returned."""
        return int(lib.hws_drive_profile(run, self.blob, len(self.blob)))

    @functools.cached_property
    def facts(self) -> tuple[int, int, bool]:
        """Capacity in sectors, queue depth, whether it rotates."""
        out = self._described()
        return out.sectors, out.depth, bool(out.rotational)

    @property
    def sectors(self) -> int:
        """Capacity, in sectors of 512 bytes."""
        return self.facts[0]

    @property
    def rotational(self) -> bool:
        """Return whether it has platters."""
        return self.facts[2]

    @property
    def kind(self) -> Kind:
        """Return what people call it. A model tells which drives are cloud volumes."""
        return "volume" if self.model.name == "shaped" else "disk" if self.rotational else "flash"

    @property
    def positions(self) -> list[tuple[int, int]]:
        """Return what schedulers are told of positioning times: distances in sectors, increasing, and ns."""
        out = self._described()
        return [(p.sectors, p.ns) for p in out.position[0 : out.nr_positions]]

    @property
    def positions_text(self) -> str:
        """Return the positioning times as queue/iosched/positions takes them: lines "SECTORS NS"."""
        return "".join(f"{sectors} {ns}\n" for sectors, ns in self.positions)

    def _described(self) -> Any:
        out = ffi.new("struct hws_drive_facts *")
        lib.hws_drive_facts(self.blob, len(self.blob), out)
        return out

    def locate(self, lbns: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return a row for each place of a block: zone, cylinder, head, sector, angle, sectors per track, blocks without a gap.

        Problem if a block lies beyond the drive, or the drive has no such places.
        """
        out = np.zeros((len(lbns), 7), np.uint32)
        if lib.hws_drive_locate(
            self.blob,
            len(self.blob),
            len(lbns),
            borrow("uint64_t[]", lbns),
            ffi.from_buffer("struct hws_place[]", out, require_writable=True),
        ):
            raise Problem(f"{self.name}: a block lies beyond the drive, or it has no tracks")
        return out


def _scalar(p: Param, value: Any, where: str) -> int:
    if p.type == ParamType.FLAG:
        if not isinstance(value, bool):
            raise Problem(f"{where}: must be true or false")
        return int(value)
    if p.type == ParamType.CHOICE:
        if not isinstance(value, str) or value not in p.choices:
            raise Problem(f"{where}: must be one of {', '.join(p.choices)}")
        return p.choices.index(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise Problem(f"{where}: must be a number")
    if not -_INT64 <= value * p.scale < _INT64:
        raise Problem(f"{where}: is out of range")
    if p.scale == 1 and value != int(value):
        raise Problem(f"{where}: must be a whole number")
    return round(value * p.scale)


def _row(columns: tuple[Param, ...], row: Any, where: str) -> list[int]:
    """One row of a list: a table by column names, an array in their order, or a bare number if there is one column."""
    if isinstance(row, Mapping):
        for key in row:
            if key not in {c.key for c in columns}:
                raise Problem(f"{where}.{key}: unknown key")
        out = []
        for c in columns:
            if c.key in row:
                out.append(_scalar(c, row[c.key], f"{where}.{c.key}"))
            elif c.required:
                raise Problem(f"{where}.{c.key}: is missing")
            else:
                out.append(c.default)
        return out
    values = row if isinstance(row, list) else [row]
    if len(values) != len(columns):
        raise Problem(f"{where}: must have {len(columns)} values ({', '.join(c.key for c in columns)})")
    return [_scalar(c, v, f"{where}.{c.key}") for c, v in zip(columns, values, strict=True)]


class _Encoder:
    def __init__(self, where: str, data: Toml, m: Model, find: Callable[[str], Profile]) -> None:
        self.where, self.data, self.model, self.find = where, data, m, find
        self.known: set[str] = set(_ABOUT)

    def _get(self, p: Param) -> Any:
        section, dot, name = p.key.rpartition(".")
        if not dot:
            self.known.add(name)
            return self.data.get(name)
        self.known.add(section)
        inner = self.data.get(section, {})
        if not isinstance(inner, dict):
            raise Problem(f"{self.where}: {section}: must be a table")
        return inner.get(name)

    def _rows(self, p: Param, children: list[Param]) -> dict[str, list[list[int]]]:
        """The rows of a list, and of the lists within its rows."""
        value = self._get(p)
        out: dict[str, list[list[int]]] = {q.key: [] for q in (p, *children)}
        if value is None:
            if p.required:
                raise Problem(f"{self.where}: {p.key}: is missing")
            return out
        if not isinstance(value, list):
            raise Problem(f"{self.where}: {p.key}: must be a list")
        for i, row in enumerate(value):
            where = f"{self.where}: {p.key}[{i}]"
            own = row
            if children and isinstance(row, Mapping):
                names = {q.key.rpartition(".")[2]: q for q in children}
                own = {k: v for k, v in row.items() if k not in names}
                for name, q in names.items():
                    inner = row.get(name, [])
                    if not isinstance(inner, list):
                        raise Problem(f"{where}.{name}: must be a list")
                    out[q.key] += [[i, *_row(q.columns[1:], r, f"{where}.{name}[{k}]")] for k, r in enumerate(inner)]
            out[p.key].append(_row(p.columns, own, where))
        return out

    def _members(self, p: Param) -> list[Profile]:
        value = self._get(p)
        if value is None:
            raise Problem(f"{self.where}: {p.key}: is missing")
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise Problem(f"{self.where}: {p.key}: must be a list of drive names or files")
        return [self.find(v) for v in value]

    def _check_keys(self) -> None:
        keys = {p.key for p in self.model.params.values()}
        for key, value in self.data.items():
            if key not in self.known:
                raise Problem(f"{self.where}: {key}: unknown key for model '{self.model.name}'")
            if isinstance(value, dict):
                for name in value:
                    if f"{key}.{name}" not in keys:
                        raise Problem(f"{self.where}: {key}.{name}: unknown key for model '{self.model.name}'")

    def blob(self) -> bytes:
        params = list(self.model.params.values())
        values = [0] * len(params)
        tail: list[int] = []
        lists: dict[str, list[list[int]]] = {}
        for i, p in enumerate(params):
            if p.type == ParamType.LIST and not p.parent:
                lists |= self._rows(p, [q for q in params if q.parent == p.key])
            elif p.type not in (ParamType.LIST, ParamType.DRIVES):
                value = self._get(p)
                if value is None and p.required:
                    raise Problem(f"{self.where}: {p.key}: is missing")
                values[i] = p.default if value is None else _scalar(p, value, f"{self.where}: {p.key}")
        for i, p in enumerate(params):
            if p.type == ParamType.LIST:
                values[i] = len(params) + len(tail)
                tail += [len(lists[p.key]), *(v for row in lists[p.key] for v in row)]
            elif p.type == ParamType.DRIVES:
                members = self._members(p)
                values[i] = len(params) + len(tail)
                at = values[i] + 1 + len(members)
                words: list[int] = []
                tail.append(len(members))
                for m in members:
                    tail.append(at + len(words))
                    words += struct.unpack(f"={len(m.blob) // 8}q", m.blob)
                tail += words
        self._check_keys()
        n = len(params) + len(tail)
        return struct.pack("=IIII", _MAGIC, self.model.index, n, len(params)) + struct.pack(f"={n}q", *values, *tail)


def _check(where: str, blob: bytes) -> None:
    e = ffi.new("struct hws_profile_error *")
    if not lib.hws_profile_check(blob, len(blob), e):
        return
    at = text(e.key)
    if e.row >= 0:
        at += f"[{e.row}]"
    if e.column != ffi.NULL:
        at += f".{text(e.column)}"
    bound = f" {decimal(e.bound / e.scale)}" if e.scale else ""
    raise Problem(f"{where}: {at}{': ' if at else ''}{text(e.what)}{bound}")


def from_toml(data: Toml, name: str, where: str, find: Callable[[str], Profile] | None = None) -> Profile:
    """A profile from a TOML document; Problem that begins with `where` (a file's name) and the key if it is wrong."""
    kind = data.get("model")
    if not isinstance(kind, str):
        raise Problem(f"{where}: model: is missing (disk, ssd, …)")
    m = model(kind, where)
    description = data.get("description", "")
    if not isinstance(description, str):
        raise Problem(f"{where}: description: must be text")
    devices = data.get("devices", [])
    if not isinstance(devices, list) or not all(isinstance(one, str) and one for one in devices):
        raise Problem(f"{where}: devices: must be a list of text")
    blob = _Encoder(where, data, m, find or find_drive).blob()
    _check(where, blob)
    profile = Profile(name, description, m, data, blob)
    if not profile.sectors:
        raise Problem(f"{where}: the drive has no sectors (an array's chunk is larger than a member?)")
    return profile


def load(path: Path) -> Profile:
    """A profile from a TOML file, called by the file's stem."""
    return _Loader().load(path)


class _Loader:
    """Profiles that name others: so deep and so many, and no more."""

    def __init__(self) -> None:
        self.depth = 0
        self.count = 0

    def load(self, path: Path) -> Profile:
        self.depth += 1
        self.count += 1
        if self.depth > _DEEPEST:
            raise Problem(f"{path}: profiles are nested more than {_DEEPEST} deep")
        if self.count > _MOST:
            raise Problem(f"{path}: more than {_MOST} profiles in one drive")
        data = parse_toml(str(path), read_bytes(path, TEXT_BYTES))
        out = from_toml(data, path.stem, str(path), lambda text: self._beside(path, text))
        self.depth -= 1
        return out

    def _beside(self, path: Path, text: str) -> Profile:
        """A drive that the profile in `path` names: a file beside it, or whatever find_drive() takes."""
        try:
            place = path.parent / text if text.endswith(".toml") or "/" in text else _place(text)
        except Problem as e:
            raise Problem(f"{path}: {e}") from None
        return self.load(place)


def bundled() -> dict[str, Path]:
    """The profiles that come with headwaiter: file by name."""
    return {p.stem: p for p in sorted(DIRECTORY.glob("*.toml"))}


def find_drive(text: str) -> Profile:
    """The drive that is meant by a name or by the path of a TOML file; Problem if there is none."""
    return load(_place(text))


def _place(text: str) -> Path:
    """The file that find_drive() takes."""
    if text in bundled():
        return bundled()[text]
    if text.endswith(".toml") or "/" in text:
        return Path(text)
    raise Problem(
        f"no such drive '{shown(text)}'{did_you_mean(text, bundled())}"
        f" (known: {', '.join(bundled())}; or a TOML file; or constant:MS)"
    )
