# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the results of a sweep come to: the best variant of each cell, how good each is over all, and what each value does.

Variants are compared on the same workload and drive, under the same conditions, with the same seed: how good one is, as a share
of the best there. Shares are multiplied, not added: twice as good here and half as good there is as good.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.sweeps.parts import check_dask
from headwaiter.sweeps.schema import SweepBest, SweepEffect, SweepReportDocument, SweepStanding
from headwaiter.sweeps.sweep import failures_of, results_of

if TYPE_CHECKING:
    import pandas as pd

HIGHER = ("progress_MBps", "throughput_MBps", "fairness_jain", "read_MBps", "write_MBps")
LOWER = (
    "elapsed_s", "waited_s", "read_mean_ms", "read_p50_ms", "read_p95_ms", "read_p99_ms", "read_max_ms", "write_mean_ms",
    "write_p50_ms", "write_p95_ms", "write_p99_ms", "write_max_ms", "sync_mean_ms", "sync_p99_ms", "seeks",
)  # fmt: skip
FIGURES = (*HIGHER, *LOWER)
_SAME = ("workload", "drive", "conditions", "seed")
_CLOSE = 0.99
_LEAST = 1e-9
_MOST_VALUES, _BINS = 16, 8
_MOST_ROWS, _MOST_MAPS = 40, 12


@dataclass(frozen=True, eq=False)
class HeatTable:
    """A map: how good each row is in each column, as a share of the best; nan where there is no cell."""

    title: str
    row_head: str
    column_head: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: NDArray[np.float64]
    """Shape (rows, columns)."""


@dataclass(frozen=True, eq=False)
class SweepReport:
    """All that is told of a folder of results."""

    document: SweepReportDocument
    maps: Sequence[HeatTable]


def report_on(folder: Path, by: str | None = None) -> SweepReport:
    """Return what the results in a folder come to. by None: progress where every cell has it, else throughput.

    Problem if there are none, or none that has the figure.
    """
    check_dask()
    kept = results_of(folder)
    kept.check()
    frame = kept.frame()
    failures = Counter(frame["error"].dropna())
    good = frame[frame["error"].isna()]
    if not len(good):
        raise Problem(f"{folder}: no cell is done" + (f", and {len(frame)} failed" if len(frame) else ""))
    figure = by or ("progress_MBps" if good["progress_MBps"].notna().all() else "throughput_MBps")
    if figure not in FIGURES:
        raise Problem(f"--by {figure}: none of {', '.join(FIGURES)}")
    told = good[good[figure].notna()]
    notes = []
    if len(told) < len(good):
        notes.append(f"{len(good) - len(told)} cells have no {figure}, and are left out")
    if not len(told):
        raise Problem(f"{folder}: no cell has {figure}")
    shares = _shares(told.reset_index(drop=True), figure)
    names = _swept(shares, "settings"), _swept(shares, "conditions")
    document = SweepReportDocument(
        results=str(folder),
        by=figure,
        cells=len(frame),
        failures=failures_of(failures),
        best=_best(shares, figure),
        standings=_standings(shares),
        effects=[*_tunables(shares, names[0]), *_conditions(shares, names[1], figure)],
        notes=notes,
    )
    return SweepReport(document, [*_overview(shares, document.standings), *_pairs(shares, names[0])])


def _goodness(values: Any, figure: str) -> Any:
    """A number that is greater where the figure is better."""
    floored = values.astype(float).clip(lower=_LEAST)
    return floored if figure in HIGHER else 1 / floored


def _shares(frame: pd.DataFrame, figure: str) -> pd.DataFrame:
    """With `good`, and `share`: of the best under the same conditions."""
    frame = frame.assign(good=_goodness(frame[figure], figure), value=frame[figure].astype(float))
    for column in ("settings", "conditions"):
        parsed = [json.loads(text) for text in frame[column]]
        frame = frame.assign(**{f"{column}_read": parsed})
    best = frame.groupby(list(_SAME), sort=False)["good"].transform("max")
    return frame.assign(share=frame["good"] / best)


def _mean(shares: Any) -> float:
    return float(np.exp(np.log(np.maximum(np.asarray(shares, float), _LEAST)).mean()))


def _best(frame: pd.DataFrame, figure: str) -> list[SweepBest]:
    out = []
    for (workload, drive, conditions), some in frame.groupby(["workload", "drive", "conditions"], sort=False):
        # Of a sample not every variant has every seed: shares, not figures, are compared.
        by = some.groupby("variant", sort=False).agg(share=("share", _mean), value=("value", "mean"), good=("good", _mean))
        first = by["share"].idxmax()
        baseline = _baseline(some)
        out.append(
            SweepBest(
                workload=workload,
                drive=drive,
                conditions=conditions,
                variant=first,
                value=float(by.loc[first, "value"]),
                baseline=baseline,
                of_baseline=float(by.loc[first, "share"] / by.loc[baseline, "share"]),
                cells=len(some),
            )
        )
    return out


def _baseline(frame: pd.DataFrame) -> str:
    """mq-deadline, or what there is of none: what machines have; else the first by name."""
    names = list(dict.fromkeys(frame["variant"]))
    return next((name for name in ("mq-deadline", "none", "noop") if name in names), min(names))


def _standings(frame: pd.DataFrame) -> list[SweepStanding]:
    out = []
    for variant, some in frame.groupby("variant", sort=False):
        at = some["share"].idxmin()
        out.append(
            SweepStanding(
                variant=variant,
                cells=len(some),
                of_best=_mean(some["share"]),
                worst=float(some["share"].min()),
                worst_in=f"{frame.loc[at, 'workload']} on {frame.loc[at, 'drive']}",
                first=int((some["share"] >= _CLOSE).sum()),
            )
        )
    return sorted(out, key=lambda one: (-one.of_best, one.variant))


# --- what values do ---


def _swept(frame: pd.DataFrame, column: str) -> list[tuple[str, str]]:
    """Return what has several values: (scheduler, tunable), or ("", condition)."""
    values: dict[tuple[str, str], set[str]] = {}
    for scheduler, given in zip(frame["scheduler"], frame[f"{column}_read"], strict=True):
        for name, value in given.items():
            values.setdefault((scheduler if column == "settings" else "", name), set()).add(json.dumps(value))
    return [name for name, found in values.items() if len(found) > 1]


def _labels(values: Sequence[Any]) -> tuple[list[str], list[str]]:
    """(the label of each value, all labels in order): the values themselves, or, of many numbers, parts with as many each."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    distinct = sorted(set(values), key=None if numbers else str)
    if not numbers or len(distinct) <= _MOST_VALUES:
        return [_shown(one) for one in values], [_shown(one) for one in distinct]
    edges = np.unique(np.quantile(np.asarray(values, float), np.linspace(0, 1, _BINS + 1)))
    at = np.clip(np.searchsorted(edges, np.asarray(values, float), side="right") - 1, 0, len(edges) - 2)
    names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    return [names[i] for i in at], names


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _tunables(frame: pd.DataFrame, names: Sequence[tuple[str, str]]) -> list[SweepEffect]:
    out = []
    for scheduler, name in names:
        has = np.array([name in given for given in frame["settings_read"]])
        some = frame[has & (frame["scheduler"] == scheduler)]
        labels, order = _labels([given[name] for given in some["settings_read"]])
        out += _effects(f"{scheduler}.{name}", some["share"].to_numpy(float), labels, order)
    return out


def _conditions(frame: pd.DataFrame, names: Sequence[tuple[str, str]], figure: str) -> list[SweepEffect]:
    """Compare each value of a condition with its best one, where all else is the same."""
    out = []
    for _, name in names:
        some = frame[[name in given for given in frame["conditions_read"]]]
        others = [json.dumps({k: v for k, v in given.items() if k != name}) for given in some["conditions_read"]]
        some = some.assign(others=others)
        keys = ["workload", "drive", "seed", "variant", "others"]
        each = some.groupby(keys, sort=False)["good"]
        some = some.assign(of=some["good"] / each.transform("max"), many=each.transform("count"))
        some = some[some["many"] > 1]
        if len(some):
            labels, order = _labels([given[name] for given in some["conditions_read"]])
            out += _effects(name, some["of"].to_numpy(float), labels, order)
    return out


def _effects(name: str, shares: NDArray[np.float64], labels: Sequence[str], order: Sequence[str]) -> list[SweepEffect]:
    at: Mapping[str, list[int]] = {label: [] for label in order}
    for i, label in enumerate(labels):
        at[label].append(i)
    return [
        SweepEffect(name=name, value=label, cells=len(rows), of_best=_mean(shares[rows])) for label, rows in at.items() if rows
    ]


# --- maps ---


def _overview(frame: pd.DataFrame, standings: Sequence[SweepStanding]) -> list[HeatTable]:
    """Variants by workloads, a map for each drive."""
    rows = [one.variant for one in standings[:_MOST_ROWS]]
    left = len(standings) - len(rows)
    out = []
    for drive, some in frame.groupby("drive", sort=False):
        columns = list(dict.fromkeys(some["workload"]))
        values = _grid(some, some["variant"], some["workload"], rows, columns)
        title = f"{drive}: settings by workload" + (f" (the best {len(rows)} of {len(standings)})" if left > 0 else "")
        out.append(HeatTable(title, "setting", "workload", rows, columns, values))
    return out


def _pairs(frame: pd.DataFrame, names: Sequence[tuple[str, str]]) -> list[HeatTable]:
    """Two tunables of one scheduler, over all cells."""
    out = []
    for i, (scheduler, first) in enumerate(names):
        for other, second in names[i + 1 :]:
            if other != scheduler:
                continue
            both = np.array([first in given and second in given for given in frame["settings_read"]])
            some = frame[both & (frame["scheduler"] == scheduler)]
            if not len(some):
                continue
            row_labels, rows = _labels([given[first] for given in some["settings_read"]])
            column_labels, columns = _labels([given[second] for given in some["settings_read"]])
            values = _grid(some, row_labels, column_labels, rows, columns)
            out.append(HeatTable(f"{scheduler}: {first} by {second}", first, second, rows, columns, values))
    return out[:_MOST_MAPS]


def _grid(frame: pd.DataFrame, row_of: Any, column_of: Any, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.float64]:
    total, count = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    row_at, column_at = ({name: i for i, name in enumerate(names)} for names in (rows, columns))
    for row, column, share in zip(row_of, column_of, frame["share"], strict=True):
        if row in row_at:
            total[row_at[row], column_at[column]] += np.log(max(share, _LEAST))
            count[row_at[row], column_at[column]] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = np.where(count > 0, np.exp(total / count), np.nan)
    return found
