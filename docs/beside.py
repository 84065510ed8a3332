# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre beside the others: what the lab's experiments with real programs measured, a row a figure (docs/beside.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwaiter.base.errors import counted

OURS = "hw-maitre"
EVEN = 0.03
"""Figures that differ by no more than this share are even."""

Row = Mapping[str, Any]
Results = Callable[[str], Iterable[Row]]


@dataclass(frozen=True)
class Figure:
    """A figure of an experiment. of: the figure in a row, None if the row is of something else."""

    name: str
    experiment: str
    of: Callable[[Row], float | None]
    more_is_better: bool = False
    digits: int = 0


def _of(key: str, **wanted: object) -> Callable[[Row], float | None]:
    """That key of the rows that have these values."""
    return lambda row: float(row[key]) if all(row.get(k) == v for k, v in wanted.items()) else None


def _percent(readers: int) -> Callable[[Row], float | None]:
    """What so many readers get together, of what one gets."""
    return lambda row: 100 * float(row["of_one_reader"]) if row["load"] == f"{readers} readers" else None


def _unfairness(load: str) -> Callable[[Row], float | None]:
    """By how much the heavy group's rate by the light one's is off from 4."""

    def off(row: Row) -> float | None:
        if row["load"] != load:
            return None
        heavy = row.get("heavy", row.get("heavy/less", 0) + row.get("heavy/more", 0))
        return float(100 * abs(heavy / row["light"] / 4 - 1))

    return off


_FIND, _SMALL = "find beside a stream", "small reads beside four streams"
FIGURES = [
    *(Figure(f"{n} readers, % of one", "maitre", _percent(n), True) for n in (2, 4, 8)),
    *(Figure(f"{n} readers, longest read, ms", "maitre", _of("max_lat_ms", load=f"{n} readers")) for n in (2, 4, 8)),
    Figure("`find -exec cat` beside a stream, s", "maitre", _of("elapsed_s", load=_FIND), digits=1),
    Figure("the stream, MB/s", "maitre", _of("throughput_MBps", load=_FIND), True),
    Figure("small reads beside four streams, mean, ms", "maitre", _of("mean_ms", load=_SMALL)),
    Figure("the longest, ms", "maitre", _of("max_lat_ms", load=_SMALL)),
    Figure("the streams, MB/s", "maitre", _of("throughput_MBps", load=_SMALL), True),
    *(
        Figure(f"commit beside a writer and {counted(n, 'stream')}, {what}, ms", "commits", _of(key, load="commits", streams=n))
        for n in (1, 2, 4)
        for what, key in (("mean", "mean_ms"), ("longest", "max_lat_ms"))
    ),
    Figure("ten inserts of sqlite3, s", "commits", _of("elapsed_s", load="sqlite3"), digits=1),
    *(
        figure
        for n in (8, 16)
        for figure in (
            Figure(f"start of a program beside {n} streams, s", "starts", _of("start_s", streams=n), digits=1),
            Figure(f"the {n} streams, MB/s", "starts", _of("throughput_MBps", streams=n), True),
        )
    ),
    *(
        Figure(f"groups of weight 1:4, {load}, % off", "groups", _unfairness(load))
        for load in ("streams", "random readers", "nested")
    ),
]


def measured(kernel: str, results: Results) -> dict[str, dict[str, float]]:
    """By figure and scheduler, as they were measured on that kernel."""
    found: dict[str, dict[str, float]] = {}
    rows = {name: list(results(f"{name}-{kernel}")) for name in dict.fromkeys(figure.experiment for figure in FIGURES)}
    for figure in FIGURES:
        for row in rows[figure.experiment]:
            if (value := figure.of(row)) is not None:
                found.setdefault(figure.name, {})[row["scheduler"]] = value
    return found


def _better(figure: Figure, one: float, other: float) -> bool:
    """Is one better than another by more than EVEN, and by more than is shown?"""
    if round(one, figure.digits) == round(other, figure.digits):
        return False
    return one > other * (1 + EVEN) if figure.more_is_better else one * (1 + EVEN) < other


def table(found: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[list[str]]]:
    """Head and body; the best of each row, and what is even with it, in bold."""
    order = ["none", "mq-deadline", "kyber", "bfq"]
    names = {name for values in found.values() for name in values}
    columns = [*(n for n in order if n in names), *sorted(names - {*order, OURS}), *({OURS} & names)]
    body = []
    for figure in FIGURES:
        values = found.get(figure.name)
        if not values:
            continue
        cells = []
        for name in columns:
            text = f"{values[name]:.{figure.digits}f}" if name in values else ""
            best = name in values and not any(_better(figure, other, values[name]) for other in values.values())
            cells.append(f"**{text}**" if best else text)
        body.append([figure.name, *cells])
    return ["", *(f"`{name}`" for name in columns)], body


def behind(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A line for each figure in which others are ahead of maitre."""
    lines = []
    for figure in FIGURES:
        values = found.get(figure.name, {})
        if OURS not in values:
            continue
        ahead = {n: v for n, v in values.items() if _better(figure, v, values[OURS])}
        if ahead:
            sign = -1 if figure.more_is_better else 1
            said = ", ".join(f"`{n}` {ahead[n]:.{figure.digits}f}" for n in sorted(ahead, key=lambda n: sign * ahead[n]))
            lines.append(f"{figure.name}: {values[OURS]:.{figure.digits}f}; {said}")
    return lines
