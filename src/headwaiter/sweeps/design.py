# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The cells of a sweep: all combinations, or a sample of them; and what a cell's key is."""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import math
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.study.variants import Variant, parse_variant
from headwaiter.sweeps.sweepfile import READING, Axis, SweepSpec, SweptDrive, SweptWorkload, Value, setting_text

_HASHED = 1 << 20
_TRIES = 64
"""So many times a budget is drawn before a sample of a small space is taken for whole."""
T = TypeVar("T")
Point = tuple[SweptWorkload, SweptDrive, int, tuple[tuple[str, Value], ...], str]
"""Workload, drive, seed, conditions, and a variant's text."""


@dataclass(frozen=True, slots=True)
class SweptFile:
    """A workload with the digest of its content."""

    label: str
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class SweepGroup:
    """The common part of cells that are run one after another: the workload as it is read, on a drive."""

    file: SweptFile
    drive: SweptDrive
    reading: tuple[tuple[str, Value], ...]
    runs: int


@dataclass(frozen=True, slots=True)
class SweepCell:
    """A run: a variant on a group's workload, under conditions, with a seed."""

    key: str
    group: SweepGroup = field(repr=False)
    variant: Variant
    conditions: tuple[tuple[str, Value], ...]
    """Those that are not the group's, by name."""
    seed: int

    @property
    def all_conditions(self) -> dict[str, Value]:
        """The group's, too."""
        return dict(sorted((*self.group.reading, *self.conditions)))


def content_sha256(path: Path) -> str:
    """The digest of a file as it is stored; of a folder, or of a blktrace recording in several files, of all its files."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file())
    elif ".blktrace." in path.name:
        stem = path.name.partition(".blktrace.")[0]
        files = sorted(path.parent.glob(f"{glob.escape(stem)}.blktrace.*"))
    else:
        files = [path]
    digest = hashlib.sha256()
    for one in files:
        try:
            with one.open("rb") as f:
                while piece := f.read(_HASHED):
                    digest.update(piece)
        except OSError as e:
            raise Problem(f"{one}: {e.strerror}") from None
    return digest.hexdigest()


def cells_of(spec: SweepSpec) -> list[SweepCell]:
    """All cells, each once, in the order in which they are run: a workload, as it is read, on a drive is done before the next.

    Problem if a workload cannot be read.
    """
    files = {one.label: SweptFile(one.label, one.path, content_sha256(one.path)) for one in spec.workloads}
    variants: dict[str, tuple[Variant, str]] = {}
    groups: dict[tuple[str, str, tuple[tuple[str, Value], ...]], SweepGroup] = {}
    found: dict[str, SweepCell] = {}
    for workload, drive, seed, conditions, text in _points(spec):
        if text not in variants:
            variant = parse_variant(text, spec.readers)
            variants[text] = variant, _settings_text(variant)
        variant, settings = variants[text]
        reading = tuple(one for one in conditions if one[0] in READING)
        at = (workload.label, drive.label, reading)
        group = groups.setdefault(at, SweepGroup(files[workload.label], drive, reading, spec.runs))
        rest = tuple(one for one in conditions if one[0] not in READING)
        said: tuple[object, ...] = (
            group.file.sha256, drive.digest, variant.scheduler, settings, sorted(conditions), seed, spec.runs,
            headwaiter.__version__,
        )  # fmt: skip
        key = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:32]
        found.setdefault(key, SweepCell(key, group, variant, rest, seed))
    order = {label: i for i, label in enumerate(files)}, {one.label: i for i, one in enumerate(spec.drives)}
    return sorted(found.values(), key=lambda cell: _order(cell, *order))


def _order(cell: SweepCell, workloads: Mapping[str, int], drives: Mapping[str, int]) -> tuple[Any, ...]:
    """Workload by workload, so that each is read once; then what it takes least to change comes last."""
    group = cell.group
    read = [(name, value) for name, value in group.reading if name in ("group_gap_ms", "device", "streams")]
    return (
        workloads[group.file.label],
        repr(read),
        drives[group.drive.label],
        repr(group.reading),
        cell.seed,
        repr(cell.conditions),
        cell.variant.name,
    )


def _settings_text(variant: Variant) -> str:
    """Settings, whatever their order; tables by their content."""
    return repr(sorted((name, _plain(value)) for name, value in variant.settings.items()))


def _plain(value: object) -> str:
    return str(value) if isinstance(value, int | str) else hashlib.sha256(pickle.dumps(np.asarray(value).tolist())).hexdigest()


# --- combinations ---


def _points(spec: SweepSpec) -> Iterator[Point]:
    if spec.method == "grid":
        yield from _grid(spec)
        return
    if any(axis.span for axis in _axes(spec)) or (size(spec) or 0) > (spec.budget or 0):
        yield from _sample(spec)
        return
    yield from _grid(spec)


def _axes(spec: SweepSpec) -> list[Axis]:
    swept = [axis for name in spec.schedulers for axis in spec.own(name).values()]
    return [*spec.conditions.values(), *swept]


def size(spec: SweepSpec) -> int | None:
    """Return how many combinations there are; None if there is no end of them."""
    if any(axis.span for axis in _axes(spec)):
        return None
    variants = sum(math.prod(len(axis.values) for axis in spec.own(name).values()) for name in spec.schedulers)
    conditions = math.prod(len(axis.values) for axis in spec.conditions.values())
    return len(spec.workloads) * len(spec.drives) * len(spec.seeds) * conditions * variants


def _grid(spec: SweepSpec) -> Iterator[Point]:
    texts = []
    for name in spec.schedulers:
        axes = spec.own(name)
        texts += [_variant_text(name, dict(zip(axes, one, strict=True))) for one in itertools.product(*_values(axes))]
    conditions = [tuple(zip(spec.conditions, one, strict=True)) for one in itertools.product(*_values(spec.conditions))]
    yield from itertools.product(spec.workloads, spec.drives, spec.seeds, conditions, texts)


def _values(axes: Mapping[str, Axis]) -> list[tuple[Value, ...]]:
    return [axis.values for axis in axes.values()]


def _variant_text(name: str, settings: Mapping[str, Value]) -> str:
    return ":".join([name, *(setting_text(tunable, value) for tunable, value in settings.items())])


# --- samples ---


def _sample(spec: SweepSpec) -> Iterator[Point]:
    """Return as many different points as the budget allows, or all that there are."""
    assert spec.budget
    every = len(spec.workloads) * len(spec.drives) * len(spec.seeds)
    if spec.paired:
        settings = spec.budget // every
        if not settings:
            raise Problem(
                f"{spec.where}: sample.budget: {spec.budget} cells are too few for one setting on all workloads, drives and seeds"
                f" ({every})"
            )
        for conditions, text in _distinct(spec, settings, lambda shares: _setting(spec, shares)):
            yield from itertools.product(spec.workloads, spec.drives, spec.seeds, [conditions], [text])
        return

    def point(shares: Sequence[float]) -> Point:
        workload, drive, seed = (
            each[int(share * len(each))]
            for each, share in zip((spec.workloads, spec.drives, spec.seeds), shares[:3], strict=True)
        )
        conditions, text = _setting(spec, shares[3:])
        return workload, drive, seed, conditions, text  # type: ignore[return-value]

    yield from _distinct(spec, spec.budget, point)


def _setting(spec: SweepSpec, shares: Sequence[float]) -> tuple[tuple[tuple[str, Value], ...], str]:
    """Conditions and a variant from numbers in [0, 1)."""
    many = len(spec.conditions)
    conditions = tuple((name, axis.at(share)) for (name, axis), share in zip(spec.conditions.items(), shares, strict=False))
    name = spec.schedulers[int(shares[many] * len(spec.schedulers))]
    of = dict(zip(_swept(spec), shares[many + 1 :], strict=True))
    scheduler = parse_variant(name, spec.readers).scheduler
    settings = {tunable: axis.at(of[scheduler, tunable]) for tunable, axis in spec.own(name).items()}
    return conditions, _variant_text(name, settings)


def _swept(spec: SweepSpec) -> list[tuple[str, str]]:
    return [(scheduler, tunable) for scheduler, axes in spec.tunables.items() for tunable in axes]


def _distinct(spec: SweepSpec, wanted: int, make: Callable[[Sequence[float]], T]) -> list[T]:
    """The first different ones of so many draws."""
    dimensions = (0 if spec.paired else 3) + len(spec.conditions) + 1 + len(_swept(spec))
    draw = _draws(spec, dimensions)
    found: dict[str, T] = {}
    for _ in range(_TRIES):
        for shares in draw(wanted):
            one = make(shares)
            found.setdefault(repr(one), one)
            if len(found) == wanted:
                return list(found.values())
    return list(found.values())


def _draws(spec: SweepSpec, dimensions: int) -> Callable[[int], Any]:
    """Return what draws so many points of that many dimensions, the next ones each time."""
    if spec.method == "random":
        numbers = np.random.default_rng(spec.sample_seed)
        return lambda count: numbers.random((count, dimensions))
    try:
        from scipy.stats import qmc  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise Problem("a Sobol sample needs SciPy: pip install 'headwaiter[sweep]'") from None
    sobol = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(spec.sample_seed))
    # Its points are even where there are powers of two of them.
    return lambda count: np.minimum(sobol.random_base2(_power(count, sobol.num_generated)), np.nextafter(1.0, 0.0))


def _power(count: int, before: int) -> int:
    """The exponent of the next draw: random_base2() wants a power of two in all."""
    return max(0, math.ceil(math.log2(max(count, before, 1))))
