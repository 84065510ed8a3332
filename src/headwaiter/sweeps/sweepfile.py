# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sweep files: which workloads, drives, schedulers, tunables, conditions and seeds are to be combined, and how (docs/sweep.md).

A file is TOML. What is wrong in it is told with its line.
"""

from __future__ import annotations

import glob
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from headwaiter.base.errors import NotFoundError, Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.parsing import parse_toml
from headwaiter.base.reading import read_text
from headwaiter.drives.choose import open_drive
from headwaiter.drives.profile import Profile
from headwaiter.engine.hosts import AUTO, find_host
from headwaiter.engine.policy_tables import Readers
from headwaiter.engine.processor import parse_time
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.drive_fit import AUTO as AUTO_DRIVE
from headwaiter.study.schema import Replay
from headwaiter.study.variants import ALL, candidates, default_set, parse_variant
from headwaiter.study.workload import find_workload

Method = Literal["grid", "sobol", "random"]
Value = int | float | str | bool
READING = ("replay", "group_gap_ms", "device", "streams", "speed")
"""Conditions that say how a workload is read; the others are those of RunConditions."""
_KEYS = ("workloads", "drives", "schedulers", "tunables", "conditions", "seeds", "runs", "sample")
_SAMPLE = ("method", "budget", "seed", "paired")
_RANGE = ("from", "to", "step", "steps", "scale")
_TIMES = ("turnaround", "dispatch_time", "copy_time")
_MOST_SEEDS, _MOST_RUNS, _MOST_VALUES, _MOST_CELLS = 100_000, 1000, 100_000, 10_000_000
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Span:
    """All numbers between two, from which a sample draws; `whole` numbers only, or evenly on a logarithmic scale."""

    low: float
    high: float
    whole: bool
    logarithmic: bool

    def at(self, share: float) -> int | float:
        """The number at a share in [0, 1) of the way."""
        beyond = self.high + 1 if self.whole else self.high
        if self.logarithmic:
            number = math.exp(math.log(self.low) + share * (math.log(beyond) - math.log(self.low)))
        else:
            number = self.low + share * (beyond - self.low)
        return int(min(number, self.high)) if self.whole else number


@dataclass(frozen=True)
class Axis:
    """The range of a tunable or a condition: values, or a span."""

    values: tuple[Value, ...]
    span: Span | None = None

    def at(self, share: float) -> Value:
        """The value at a share in [0, 1) of the way."""
        return self.span.at(share) if self.span else self.values[int(share * len(self.values))]


@dataclass(frozen=True)
class SweptWorkload:
    """A workload: what it is called in results, and where it lies."""

    label: str
    path: Path


@dataclass(frozen=True)
class SweptDrive:
    """A drive: what it is called in results, what tells it from others, and its model; None: the best fit to each recording."""

    label: str
    digest: str
    model: Drive | None = field(compare=False)


@dataclass(frozen=True)
class SweepSpec:
    """A sweep file, checked."""

    where: str
    workloads: tuple[SweptWorkload, ...]
    drives: tuple[SweptDrive, ...]
    schedulers: tuple[str, ...]
    """As `--sched` takes them: names, with settings or without."""
    tunables: Mapping[str, Mapping[str, Axis]]
    """By scheduler and tunable."""
    conditions: Mapping[str, Axis]
    seeds: tuple[int, ...]
    runs: int
    method: Method
    budget: int | None
    sample_seed: int
    paired: bool
    readers: Readers | None = None
    """Reader of the files of schedulers' tables."""

    def own(self, variant: str) -> dict[str, Axis]:
        """The tunables that are swept under a variant: those of its scheduler that it does not set itself."""
        parsed = parse_variant(variant, self.readers)
        axes = self.tunables.get(parsed.scheduler, {})
        return {name: axis for name, axis in axes.items() if name not in parsed.settings}


class _Place:
    """The place of a key in a sweep file; of a mapping from Python only which key it is."""

    def __init__(self, name: str, text: str | None) -> None:
        self.name, self.lines = name, None if text is None else text.splitlines()

    def problem(self, path: Sequence[str], cause: str, value: object = None) -> Problem:
        """Return what is wrong with a key, or with a value in it."""
        dotted = ".".join(path)
        line = self._line(path, value)
        return Problem(f"{self.name}{f':{line}' if line else ''}: {f'{shown(dotted, 80)}: ' if dotted else ''}{cause}")

    def _line(self, path: Sequence[str], value: object) -> int | None:
        """The line of a key, or of a value behind it."""
        if self.lines is None or not path:
            return None
        table: tuple[str, ...] = ()
        best = None
        for number, line in enumerate(self.lines, 1):
            if head := re.match(r"\s*\[+\s*([^\]#]+?)\s*\]+", line):
                if best and value is not None:
                    return best
                table = _parts(head[1])
                if table == tuple(path):
                    best = number
            elif found := re.match(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=", line):
                here = (*table, *_parts(found[1]))
                if best and value is not None and here[: len(path)] != tuple(path):
                    return best
                if here == tuple(path) or (here == tuple(path)[: len(here)] and len(here) > len(table)):
                    best = number
            if best and value is not None and str(value) in line:
                return number
        return best


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", dotted))


def read_sweep(given: str | Path | Mapping[str, Any], readers: Readers | None = None) -> SweepSpec:
    """The sweep in a TOML file, or in a mapping of the same form, whose paths are those of the current folder.

    readers: what reads tables of schedulers. Problem names what is wrong, and in which line.
    """
    if isinstance(given, Mapping):
        place, folder, data = _Place("sweep", None), Path(), dict(given)
    else:
        path = Path(given)
        text = read_text(path)
        place, folder, data = _Place(str(path), text), path.parent, parse_toml(str(path), text.encode())
    _known(place, (), data, _KEYS)
    workloads = _workloads(place, folder, data)
    drives = _drives(place, folder, data)
    schedulers = _schedulers(place, data, readers)
    sample = _table(place, ("sample",), data.get("sample", {}))
    _known(place, ("sample",), sample, _SAMPLE)
    method = sample.get("method", "grid")
    if method not in get_args(Method):
        raise place.problem(("sample", "method"), f"'{shown(str(method))}' is none of {', '.join(get_args(Method))}", method)
    drawn = method != "grid"
    budget = _number(place, ("sample", "budget"), sample, 1, _MOST_CELLS)
    if drawn and budget is None:
        raise place.problem(("sample", "method"), f"{method} needs a budget, the number of cells")
    if not drawn and (budget is not None or "paired" in sample):
        extra = "budget" if budget is not None else "paired"
        raise place.problem(("sample", extra), "a grid has all cells: this is for sobol and random")
    paired = sample.get("paired", False)
    if not isinstance(paired, bool):
        raise place.problem(("sample", "paired"), "expected true or false")
    spec = SweepSpec(
        where=place.name,
        workloads=workloads,
        drives=drives,
        schedulers=schedulers,
        tunables=_tunables(place, data, schedulers, drawn, readers),
        conditions=_conditions(place, data, drawn),
        seeds=_seeds(place, data),
        runs=_number(place, ("runs",), data, 0, _MOST_RUNS) or 0,
        method=method,
        budget=budget,
        sample_seed=_number(place, ("sample", "seed"), sample, 0, _LARGEST) or 0,
        paired=paired,
        readers=readers,
    )
    return spec


# --- what there is ---


def _known(place: _Place, path: tuple[str, ...], data: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in data:
        if key not in known:
            meant = did_you_mean(key, list(known)) or f" (known: {', '.join(known)})"
            raise place.problem((*path, key), f"no such key{meant}")


def _table(place: _Place, path: tuple[str, ...], value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise place.problem(path, "expected a table")
    return dict(value)


def _names(place: _Place, data: Mapping[str, Any], key: str) -> list[str]:
    """A list of names, or a single one."""
    if key not in data:
        raise Problem(f"{place.name}: {key} are missing: a sweep needs at least one")
    value = data[key]
    found = [value] if isinstance(value, str | Path) else value
    if not isinstance(found, Sequence) or not all(isinstance(one, str | Path) for one in found):
        raise place.problem((key,), "expected names")
    if not found:
        raise place.problem((key,), "the list is empty, and so is the sweep")
    names = [str(one) for one in found]
    if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
        raise place.problem((key,), f"'{shown(twice, 200)}' stands there twice", twice)
    return names


def _workloads(place: _Place, folder: Path, data: Mapping[str, Any]) -> tuple[SweptWorkload, ...]:
    paths: dict[Path, str] = {}
    for name in _names(place, data, "workloads"):
        if glob.has_magic(name) and not (folder / name).exists():
            found = [Path(one) for one in sorted(glob.glob(str(folder / name), recursive=True))]
            if not found:
                raise place.problem(("workloads",), f"'{shown(name, 200)}' matches no file", name)
        elif (folder / name).exists():
            found = [folder / name]
        else:
            try:
                found = [find_workload(name)] if len(Path(name).parts) == 1 else []
            except NotFoundError:
                found = []
            if not found:
                raise place.problem(("workloads",), f"{shown(name, 200)}: no such file, and no bundled workload", name)
        for path in found:
            paths.setdefault(path.resolve(), name if not glob.has_magic(name) else str(path))
    labels = labels_of(list(paths))
    return tuple(SweptWorkload(label, path) for label, path in zip(labels, paths, strict=True))


def labels_of(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of paths that tell them apart."""
    out = []
    for path in paths:
        for length in range(1, len(path.parts) + 1):
            end = path.parts[-length:]
            if sum(other.parts[-length:] == end for other in paths) == 1:
                break
        out.append("/".join(end).lstrip("/"))
    return out


def _drives(place: _Place, folder: Path, data: Mapping[str, Any]) -> tuple[SweptDrive, ...]:
    out = []
    for name in _names(place, data, "drives"):
        if name == AUTO_DRIVE:
            out.append(SweptDrive(name, name, None))
            continue
        beside = folder / name
        try:
            model = open_drive(str(beside) if name.endswith(".toml") and beside.exists() else name)
        except Problem as e:
            raise place.problem(("drives",), str(e), name) from None
        content = model.blob if isinstance(model, Profile) else repr(model).encode()
        label = name if name.startswith("constant:") else model.name
        out.append(SweptDrive(label, hashlib.sha256(content).hexdigest(), model))
    labels = [one.label for one in out]
    if twice := next((label for i, label in enumerate(labels) if label in labels[:i]), None):
        raise place.problem(("drives",), f"two drives are called {shown(twice)}")
    return tuple(out)


def _schedulers(place: _Place, data: Mapping[str, Any], readers: Readers | None) -> tuple[str, ...]:
    names = _names(place, data, "schedulers")
    found = [one for name in names for one in (candidates(default_set()) if name == ALL else [name])]
    for name in found:
        try:
            parse_variant(name, readers)
        except Problem as e:
            raise place.problem(("schedulers",), str(e), name) from None
    return tuple(dict.fromkeys(found))


def _tunables(
    place: _Place, data: Mapping[str, Any], schedulers: Iterable[str], drawn: bool, readers: Readers | None
) -> dict[str, dict[str, Axis]]:
    chosen = {parse_variant(name, readers).scheduler for name in schedulers}
    out: dict[str, dict[str, Axis]] = {}
    for name, given in _table(place, ("tunables",), data.get("tunables", {})).items():
        path = ("tunables", name)
        try:
            policy = find(name)
        except Problem as e:
            raise place.problem(path, str(e)) from None
        if policy.name not in chosen:
            raise place.problem(path, f"{shown(name)} is not among the schedulers of the sweep")
        for tunable, value in _table(place, path, given).items():
            where = (*path, tunable)
            if tunable not in policy.tunables:
                raise place.problem(where, f"{name} has no such tunable{did_you_mean(tunable, list(policy.tunables))}")
            axis = _axis(place, where, value, whole=True, drawn=drawn)
            ends = (axis.span.low, axis.span.high) if axis.span else axis.values
            for one in ends:
                try:
                    policy.tunables[tunable].parse(tunable, _text(one))
                except Problem as e:
                    raise place.problem(where, str(e), _text(one)) from None
            out.setdefault(policy.name, {})[tunable] = axis
    return out


def _text(value: Value) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return str(int(value))
    return f"{int(value)}" if isinstance(value, float) and value.is_integer() else str(value)


def setting_text(name: str, value: Value) -> str:
    """`TUNABLE=VALUE`."""
    return f"{name}={_text(value)}"


def _seeds(place: _Place, data: Mapping[str, Any]) -> tuple[int, ...]:
    value = data.get("seeds", 1)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= _MOST_SEEDS:
            raise place.problem(("seeds",), f"expected a number of seeds from 1 to {_MOST_SEEDS}, or a list of seeds")
        return tuple(range(value))
    whole = isinstance(value, Sequence) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)
    if not whole or not value or not all(0 <= one < 2**62 for one in value) or len(set(value)) < len(value):
        raise place.problem(("seeds",), "expected how many there are, or a list of different numbers from 0")
    return tuple(value)


def _number(place: _Place, path: tuple[str, ...], data: Mapping[str, Any], low: int, high: int) -> int | None:
    value = data.get(path[-1])
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise place.problem(path, f"expected a whole number from {low} to {high}", value)
    return value


# --- axes ---


def _axis(place: _Place, path: tuple[str, ...], value: object, *, whole: bool, drawn: bool) -> Axis:
    """A value, a list of values, or a range: { from, to, and of a grid step or steps, scale }."""
    if isinstance(value, Mapping):
        return _ranged(place, path, value, whole=whole, drawn=drawn)
    given = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not given:
        raise place.problem(path, "the list is empty, and so is the sweep")
    values = [one for one in given if isinstance(one, int | float | str | bool)]
    if len(values) < len(given):
        raise place.problem(path, "expected values, or a range { from = …, to = …, steps = … }")
    if len({(type(one), one) for one in values}) < len(values):
        raise place.problem(path, "a value stands there twice")
    return Axis(tuple(values))


def _ranged(place: _Place, path: tuple[str, ...], given: Mapping[str, Any], *, whole: bool, drawn: bool) -> Axis:
    _known(place, path, given, _RANGE)
    low, high = given.get("from"), given.get("to")
    kind = int if whole else (int, float)
    if any(isinstance(one, bool) or not isinstance(one, kind) or not math.isfinite(one) for one in (low, high)):
        raise place.problem(path, f"a range has two {'whole numbers' if whole else 'numbers'}, from and to")
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise place.problem(path, f"scale: '{shown(str(scale))}' is none of linear, log")
    if low > high or (scale == "log" and low <= 0):
        raise place.problem(path, "a range goes from a number up to a larger one" + (", above 0" if scale == "log" else ""))
    span = Span(low, high, whole, scale == "log")
    step, steps = given.get("step"), given.get("steps")
    if step is None and steps is None:
        if drawn:
            return Axis((), span)
        raise place.problem(path, "in a grid a range needs steps (how many values), or step (how far apart they are)")
    if step is not None and steps is not None:
        raise place.problem(path, "step and steps are mutually exclusive")
    if step is not None:
        if isinstance(step, bool) or not isinstance(step, kind) or not step > 0 or scale == "log":
            raise place.problem(path, "step: expected a number above 0, on a linear scale")
        count = int((high - low) / step + 1e-9) + 1
        found: list[float] = [low + i * step for i in range(min(count, _MOST_VALUES + 1))]
    else:
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= _MOST_VALUES:
            raise place.problem(path, f"steps: expected a whole number from 1 to {_MOST_VALUES}")
        shares = [i / (steps - 1) if steps > 1 else 0.0 for i in range(steps)]
        if scale == "log":
            found = [low * (high / low) ** share for share in shares]
        else:
            found = [low + (high - low) * share for share in shares]
    if len(found) > _MOST_VALUES:
        raise place.problem(path, f"more than {_MOST_VALUES} values")
    values: list[Value] = [round(one) if whole else one for one in found]
    return Axis(tuple(dict.fromkeys(values)))


def _conditions(place: _Place, data: Mapping[str, Any], drawn: bool) -> dict[str, Axis]:
    run = {one.name: one for one in fields(RunConditions) if one.name != "seed"}
    out = {}
    for name, value in _table(place, ("conditions",), data.get("conditions", {})).items():
        path = ("conditions", name)
        if name == "seed":
            raise place.problem(path, "seeds have a key of their own: seeds = …")
        if name not in run and name not in READING:
            known = [*READING, *run]
            meant = did_you_mean(name, known) or f" (known: {', '.join(known)})"
            raise place.problem(path, f"no such condition{meant}")
        if isinstance(value, Mapping) and name in ("replay", "device", "host", *_TIMES):
            raise place.problem(path, "a range is for numbers")
        axis = _axis(place, path, value, whole=name not in ("group_gap_ms", "speed"), drawn=drawn)
        for one in (axis.span.low, axis.span.high) if axis.span else axis.values:
            if cause := _unfit(name, one, run.get(name)):
                raise place.problem(path, cause, one)
        out[name] = axis
    return out


def _unfit(name: str, value: Value, field: Any) -> str:
    """Return what is wrong with a condition's value; "" if nothing is."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name == "replay":
        return "" if value in get_args(Replay) else f"'{shown(str(value))}' is none of {', '.join(get_args(Replay))}"
    if name == "device":
        return "" if isinstance(value, str) else "expected the name of a device"
    if name in ("group_gap_ms", "speed"):
        low = 1e-6 if name == "speed" else 0
        return "" if number and low <= float(value) <= 1e6 else f"expected a number from {low:g} to 1e+06"
    if field is not None and isinstance(field.default, bool):
        return "" if isinstance(value, bool) else "expected true or false"
    if field is not None and isinstance(field.default, str):
        try:
            if not isinstance(value, str):
                return "expected text"
            if name in _TIMES:
                parse_time(name, value)
            elif value != AUTO:
                find_host(value)
        except Problem as e:
            return str(e)
        return ""
    low, high = (field.metadata["low"], field.metadata["high"]) if field is not None else (0, 1024)
    return "" if number and isinstance(value, int) and low <= value <= high else f"expected a whole number from {low} to {high}"
