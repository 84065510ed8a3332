# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The columns of the table of schedulers: what stands in them, and which of them a terminal has room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headwaiter.record import field_at, value_at
from headwaiter.study.ranges import told_range
from headwaiter.study.results import shares
from headwaiter.study.schema import Margin, Result

ABSENT = "–"
_MS, _US = "ms", "µs"

Cell = Callable[[Result], str | None]


@dataclass(frozen=True)
class Column:
    """`head` in one or several lines; `help` for the legend; `rank`: columns of lower ranks are shown first where room is scarce,
    those of one rank together, those of rank 0 always.
    """

    head: str
    help: str
    rank: int
    cell: Cell

    @property
    def name(self) -> str:
        """The head in one line."""
        return self.head.replace("\n", " ")


def digits(value: float) -> str:
    """Three of them, or all in front of the point."""
    if value >= 100 or value == 0:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.{2 - math.floor(math.log10(value))}f}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.2g}"


def percents(parts: Mapping[str, float]) -> dict[str, int]:
    """Shares in whole percent that sum to 100: the largest remainders are rounded up. Shares sum to 1."""
    down = {name: math.floor(100 * share) for name, share in parts.items()}
    rest = sorted(parts, key=lambda name: down[name] - 100 * parts[name])
    return {name: n + (name in rest[: 100 - sum(down.values())]) for name, n in down.items()}


def _number(path: str) -> Cell:
    def cell(r: Result) -> str | None:
        value = value_at(r, path)
        return digits(value) if isinstance(value, (int, float)) else None

    return cell


def _throughput(r: Result) -> str:
    spread = told_range(r)
    return f"{digits(spread.low)}–{digits(spread.high)}" if spread else digits(r.throughput_mbps)


def _fairness(r: Result) -> str | None:
    return None if r.fairness_jain is None else f"{r.fairness_jain:.3f}"


def _latency(operation: str, figure: str, unit: str) -> Cell:
    def cell(r: Result) -> str | None:
        value = value_at(r, f"{operation}.lat_ms.{figure}")
        return digits(value * (1000 if unit == _US else 1)) if isinstance(value, float) else None

    return cell


def _share(part: str) -> Cell:
    def cell(r: Result) -> str | None:
        found = percents(shares(r.disk))
        return f"{found[part]}%" if part in found else None

    return cell


def _seeks(r: Result) -> str:
    return str(r.disk.seeks)


def _met(r: Result) -> str | None:
    return f"{r.anticipation.met}/{r.anticipation.waits}" if r.anticipation else None


def _unit(results: Sequence[Result], operation: str) -> str:
    """Microseconds where every mean is below a millisecond."""
    means = [value_at(r, f"{operation}.lat_ms.mean") for r in results]
    found = [mean for mean in means if isinstance(mean, float)]
    return _US if found and max(found) < 1 else _MS


def _latencies(results: Sequence[Result], operation: str, ranks: Sequence[int]) -> list[Column]:
    unit = _unit(results, operation)
    helps = {"mean": "mean", "p99": "99th percentile of the", "max": "longest"}
    whom, how = ("fsync and the like", "call to return") if operation == "sync" else (f"{operation}s", "issue to completion")
    slowest = "call of fsync and the like" if operation == "sync" else operation
    return [
        Column(
            f"{operation}\n{figure} {unit}",
            f"{what} latency of {whom}, from {how}" if figure != "max" else f"latency of the slowest {slowest}",
            rank,
            _latency(operation, figure, unit),
        )
        for (figure, what), rank in zip(helps.items(), ranks, strict=True)
    ]


_SHARES = {
    "seek": "the arm moves",
    "rotate": "it waits for the platter to turn",
    "transfer": "data passes under the head",
    "busy": "it serves requests",
    "other": "it does something else: commands, its cache",
    "waiting": "a scheduler keeps it idle on purpose, for the next request of a task",
    "idle": "there is no request",
}


def columns(results: Sequence[Result], margins: Sequence[Margin] = ()) -> list[Column]:
    """All that there is something to show in, in their order."""
    return [column for column in every_column(results, margins) if any(column.cell(r) is not None for r in results)]


def every_column(results: Sequence[Result] = (), margins: Sequence[Margin] = ()) -> list[Column]:
    """All, in their order; units are those that the results need."""
    reads, syncs = (any(found) for found in ([r.read for r in results], [r.sync for r in results]))
    judged = {m.scheduler: m for m in margins}

    def verdict(r: Result) -> str | None:
        found = judged.get(r.variant or r.scheduler)
        return told_margin(found) if found else None

    return [
        Column("waited\ns", "how long programs waited for the disk, summed over programs", 0, _number("waited_s")),
        Column("\nMB/s", field_at(Result, "throughput_MBps").meaning, 0, _throughput),
        Column("elapsed\ns", field_at(Result, "elapsed_s").meaning, 0, _number("elapsed_s")),
        *_latencies(results, "read", (0, 0, 0)),
        *_latencies(results, "write", (2, 1, 2) if reads or syncs else (0, 0, 0)),
        *_latencies(results, "sync", (2, 0, 2) if reads else (0, 0, 0)),
        Column("\nfairness", "Jain's index of throughput, 1 if all programs that run side by side get the same", 0, _fairness),
        Column(
            "\nverdict", "how far ahead of the baseline, by the criterion, and what may be said (? = cannot tell)", 1, verdict
        ),
        *(Column(f"\n{name}", f"share of the drive's time in which {what}", 3, _share(name)) for name, what in _SHARES.items()),
        Column("\nseeks", field_at(Result, "disk.seeks").meaning, 4, _seeks),
        Column("\nA_S/A", "successful waits for a task's next request, of all such waits", 5, _met),
        Column(
            "T_F/A_S\nms",
            "time lost in failed waits, for each successful one",
            6,
            lambda r: None if not r.anticipation or r.anticipation.cost_ms is None else digits(r.anticipation.cost_ms),
        ),
    ]


def told_margin(margin: Margin) -> str:
    """In a cell."""
    if margin.judgement == "baseline":
        return "baseline"
    ahead = f"{margin.ahead_percent:+.0f}%" if margin.ahead_percent < 900 else f"×{1 + margin.ahead_percent / 100:.0f}"
    ahead = "0%" if ahead in ("+0%", "-0%") else ahead
    word = {"better": "better", "worse": "worse", "equivalent": "same", "cannot tell": "?"}[margin.judgement]
    return f"{ahead} {word}"
