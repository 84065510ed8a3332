# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The configuration of the scheduler `was`: a file of TOML, and the rows of the policy's table that it stands for.

format = "headwaiter-was/1"
history = 5                            # k: I/Os in a process's history, which are k-1 differences
[spatial]
steps = [[0, 70], [41, 30], [61, 0]]   # S: from so many sectors on, so many points
[temporal]
steps = [[0, 30], [3000, 15], [9000, 0]]   # T: from so many microseconds on
[intervals]
prove = true                           # one is in force only while it is worth more than antic_expire; false if left out
wait_us = [6000, …]                    # of class 1 … N, microseconds; class N is the most promising
[made]                                 # how it came about; nothing depends on it
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem, shown
from headwaiter.base.outputs import writing
from headwaiter.base.parsing import parse_toml
from headwaiter.base.reading import TEXT_BYTES, read_bytes
from headwaiter.drives.writing import toml_text
from headwaiter.engine.schedulers import find

FORMAT = "headwaiter-was/1"
POLICY = "was"
TABLE = "config"

HISTORY = 5
CLASSES = 100
DEFAULT_US = 6000
"""What Linux's anticipatory scheduler waits at most."""
MAX_US = 10_000
"""M: the longest interval, and the wait of calibration and observation."""

_MOST_HISTORY = 17
_MOST_CLASSES = 512
_MOST_STEPS = 64
_MOST_POINTS = 100
_MOST_SECTORS = 2**55 - 1
_MOST_APART_US = 2**55 - 1
_MOST_US = 100_000
_INT64 = 1 << 63
_REMARK = re.compile(r"[A-Za-z0-9_-]{1,64}")

Steps = tuple[tuple[int, int], ...]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Config:
    """A sound configuration: make one with config() or load(). Steps are (from, points), sectors and microseconds."""

    history: int
    spatial: Steps
    temporal: Steps
    wait_us: tuple[int, ...]
    prove: bool = False
    made: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def classes(self) -> int:
        """N."""
        return len(self.wait_us)

    @property
    def most_points(self) -> int:
        """Cmax: what an I/O gets that repeats the one before it at once."""
        return self.spatial[0][1] + self.temporal[0][1]

    @property
    def classifier(self) -> str:
        """A short name of all that decides the class of a process: the same in two files means the same classes."""
        text = repr((self.history, self.spatial, self.temporal, self.classes))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def rows(self) -> I64:
        """The policy's table, shape (n, 3): what, from, value.

        An interval's row tells its class and microseconds, and is of all classes up to the next row's.
        """
        history, classes, spatial, temporal, interval, prove = _numbers()
        out = [(history, 0, self.history), (classes, 0, self.classes)]
        out += [(spatial, start, points) for start, points in self.spatial]
        out += [(temporal, start, points) for start, points in self.temporal]
        out += [(interval, i + 1, wait) for i, wait in enumerate(self.wait_us) if not i or wait != self.wait_us[i - 1]]
        if self.prove:
            out.append((prove, 0, 1))
        return np.array(out, np.int64)


def _numbers() -> list[int]:
    """Return how the policy numbers what its rows say."""
    choices = find(POLICY).tables[TABLE].columns[0].choices
    return [choices.index(what) for what in ("history", "classes", "spatial", "temporal", "interval", "prove")]


def config(
    history: int,
    spatial: Sequence[Any],
    temporal: Sequence[Any],
    wait_us: Sequence[Any],
    made: Mapping[str, Any] | None = None,
    prove: bool = False,
) -> Config:
    """A configuration, checked. Problem with the key that is wrong, such as "spatial.steps[1]: …"."""
    return Config(
        _whole(history, "history", 2, _MOST_HISTORY),
        *_prospects(spatial, temporal),
        _intervals(wait_us),
        prove,
        dict(made or {}),
    )


def _prospects(spatial: object, temporal: object) -> tuple[Steps, Steps]:
    s = _steps(spatial, "spatial.steps", "sectors", _MOST_SECTORS)
    t = _steps(temporal, "temporal.steps", "microseconds", _MOST_APART_US)
    if not s[0][1] + t[0][1]:
        raise Problem("spatial.steps and temporal.steps: all points are 0, which gives only one class")
    return s, t


def _whole(value: object, where: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Problem(f"{where}: must be a whole number")
    if not low <= value <= high:
        negative = " (it is negative)" if value < 0 else ""
        raise Problem(f"{where}: {shown(str(value))} is outside {low}..{high}{negative}")
    return value


def _list(value: object, where: str, low: int, high: int) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Problem(f"{where}: must be a list")
    if not low <= len(value) <= high:
        raise Problem(f"{where}: {len(value)} entries, but there must be {low} to {high}")
    return list(value)


def _steps(value: object, where: str, unit: str, farthest: int) -> Steps:
    """Steps of S or T: from 0, in increasing distance, and never more points than before."""
    out: list[tuple[int, int]] = []
    for i, pair in enumerate(_list(value, where, 1, _MOST_STEPS)):
        at = f"{where}[{i}]"
        start, points = _list(pair, at, 2, 2)
        start, points = _whole(start, f"{at}: {unit}", 0, farthest), _whole(points, f"{at}: points", 0, _MOST_POINTS)
        if not out and start:
            raise Problem(f"{at}: the first step must begin at 0 {unit}, not at {start}")
        if out and start <= out[-1][0]:
            raise Problem(f"{at}: the starts of steps must increase: {start} {unit} after {out[-1][0]}")
        if out and points > out[-1][1]:
            raise Problem(f"{at}: points must not increase with distance: {points} after {out[-1][1]}")
        out.append((start, points))
    return tuple(out)


def _intervals(value: object) -> tuple[int, ...]:
    waits = _list(value, "intervals.wait_us", 1, _MOST_CLASSES)
    return tuple(_whole(wait, f"intervals.wait_us[{i}]", 0, _MOST_US) for i, wait in enumerate(waits))


def load(path: Path) -> Config:
    """The configuration in a file. Problem with one line that names the file and the cause."""
    data = parse_toml(str(path), read_bytes(path, TEXT_BYTES))
    try:
        return _from_toml(data)
    except Problem as e:
        raise Problem(f"{path}: {e}") from None


def _rows_of(path: Path) -> I64:
    return load(path).rows()


READERS = {(TABLE, ".toml"): _rows_of}
"""For those who take tables from files: the table's name and the file's ending."""


def _from_toml(data: Mapping[str, Any]) -> Config:
    version = data.get("format")
    if not isinstance(version, str):
        raise Problem(f'format: is missing (this version reads "{FORMAT}")')
    if version != FORMAT:
        raise Problem(f"format: {shown(version)} is another version; this one reads {FORMAT}")
    _known(data, "", ("format", "history", "spatial", "temporal", "intervals", "made"))
    intervals = _part(data, "intervals", ("classes", "prove", "wait_us"))
    waits = _list(_get(intervals, "wait_us", "intervals."), "intervals.wait_us", 1, _MOST_CLASSES)
    classes = _whole(intervals.get("classes", len(waits)), "intervals.classes", 1, _MOST_CLASSES)
    if classes != len(waits):
        raise Problem(f"intervals.wait_us: {len(waits)} intervals for {classes} classes")
    prove = intervals.get("prove", False)
    if not isinstance(prove, bool):
        raise Problem("intervals.prove: must be true or false")
    made = remarks(data.get("made", {}))
    return config(
        _get(data, "history"),
        _get(_part(data, "spatial", ("steps",)), "steps", "spatial."),
        _get(_part(data, "temporal", ("steps",)), "steps", "temporal."),
        waits,
        made,
        prove,
    )


def _known(data: Mapping[str, Any], prefix: str, keys: Sequence[str]) -> None:
    for key in data:
        if key not in keys:
            raise Problem(f"{prefix}{shown(key)}: unknown key (known: {', '.join(keys)})")


def _get(data: Mapping[str, Any], key: str, prefix: str = "") -> Any:
    if key not in data:
        raise Problem(f"{prefix}{key}: is missing")
    return data[key]


def remarks(made: object) -> Mapping[str, Any]:
    """[made] of a file, or Problem: what it holds is written into the next file, and must be fit for that."""
    if not isinstance(made, dict):
        raise Problem("made: must be a table")
    for key, value in made.items():
        if not _REMARK.fullmatch(key):
            raise Problem(f"made: '{shown(key)}' is no name (letters, digits, - and _, 64 at most)")
        for one in value if isinstance(value, list) else [value]:
            # Of a number that is infinite or none, neither bound is true.
            if not isinstance(one, str | float | int) or not (isinstance(one, str) or -_INT64 <= one < _INT64):
                raise Problem(f"made.{key}: must be text, a number of 64 bits, true or false, or a list of these")
    return made


def _part(data: Mapping[str, Any], key: str, keys: Sequence[str]) -> Mapping[str, Any]:
    part = _get(data, key)
    if not isinstance(part, dict):
        raise Problem(f"{key}: must be a table")
    _known(part, f"{key}.", keys)
    return part


_COMMENTS = {
    "history": "I/Os of a process that count: one less are the differences between them",
    "spatial": "Points by distance from the read before: [from sectors, points]",
    "temporal": "Points by time since the read before: [from microseconds, points]",
    "intervals": "The longest wait of class 1 (least promising), 2, …, in microseconds",
    "made": "How this file came about; nothing depends on it",
}


def to_toml(config: Config) -> str:
    """The file's text, with comments."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "history": config.history,
        "spatial": {"steps": [list(step) for step in config.spatial]},
        "temporal": {"steps": [list(step) for step in config.temporal]},
        "intervals": {"classes": config.classes, "prove": config.prove, "wait_us": list(config.wait_us)},
    }
    if config.made:
        data["made"] = dict(config.made)
    return toml_text(
        data, "Workload-dependent anticipation: what the scheduler `was` waits, and for whom (docs/was.md).", _COMMENTS
    )


def save(config: Config, path: Path) -> None:
    """Write the file, whole or not at all."""
    with writing(path) as temporary:
        temporary.write_text(to_toml(config), encoding="utf-8")
