# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The columns of the table of schedulers: what stands in them, and which of them a terminal has room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headwaiter.base.figures import digits
from headwaiter.base.records import field_at, value_at
from headwaiter.study.changes import ahead_log, change_text, interval_text
from headwaiter.study.compare import operation
from headwaiter.study.ranges import label, told_range
from headwaiter.study.results import shares
from headwaiter.study.schema import Criterion, Margin, Result

ABSENT = "–"
_MS, _US = "ms", "µs"

Cell = Callable[[Result], str | None]


@dataclass(frozen=True)
class Column:
    """`head` in one or several lines; `help` for the legend; `rank`: columns of lower ranks are shown first where room is scarce,
    those of one rank together, those of rank 0 always; `by`: the criterion that ranks by what stands in it.
    """

    head: str
    help: str
    rank: int
    cell: Cell
    by: Criterion | None = None

    @property
    def name(self) -> str:
        """The head in one line."""
        return self.head.replace("\n", " ")


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
    return f"{r.disk.seeks:,}"


def _met(r: Result) -> str | None:
    return f"{r.anticipation.met}/{r.anticipation.waits}" if r.anticipation else None


def _unit(results: Sequence[Result], operation: str) -> str:
    """Microseconds where every mean is below a millisecond."""
    means = [value_at(r, f"{operation}.lat_ms.mean") for r in results]
    found = [mean for mean in means if isinstance(mean, float)]
    return _US if found and max(found) < 1 else _MS


_MAIN, _SIDE, _CALLS = (6, 2, 3), (10, 9, 10), (10, 4, 10)
"""Ranks of mean, p99 and max: of the operation that latencies are of, of writes beside it, and of fsync beside it."""


def _latencies(results: Sequence[Result], what: str, ranks: Sequence[int]) -> list[Column]:
    unit = _unit(results, what)
    figures: dict[str, tuple[str, Criterion]] = {
        "mean": ("mean", "latency"), "p99": ("99th percentile of the", "p99"), "max": ("longest", "max")
    }  # fmt: skip
    whom, how = ("fsync and the like", "call to return") if what == "sync" else (f"{what}s", "issue to completion")
    slowest = "call of fsync and the like" if what == "sync" else what
    return [
        Column(
            f"{what}\n{figure} {unit}",
            f"{told} latency of {whom}, from {how}" if figure != "max" else f"latency of the slowest {slowest}",
            rank,
            _latency(what, figure, unit),
            by if what == operation(results) else None,
        )
        for (figure, (told, by)), rank in zip(figures.items(), ranks, strict=True)
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


def columns(results: Sequence[Result], margins: Sequence[Margin] = (), by: Criterion | None = None) -> list[Column]:
    """All that there is something to show in, in their order; the criterion's own is always shown."""
    found = [column for column in every_column(results, margins, by) if any(column.cell(r) is not None for r in results)]
    return [replace(column, rank=0) if by and column.by == by else column for column in found]


def every_column(results: Sequence[Result] = (), margins: Sequence[Margin] = (), by: Criterion | None = None) -> list[Column]:
    """All, in their order; units are those that the results need. `by`: what the margins are of."""
    reads, syncs = (any(found) for found in ([r.read for r in results], [r.sync for r in results]))
    judged = {m.scheduler: m for m in margins}

    def of_margin(tell: Callable[[Margin, Criterion], str]) -> Cell:
        def cell(r: Result) -> str | None:
            found = judged.get(label(r))
            return tell(found, by) or None if found and by else None

        return cell

    return [
        Column(
            "\nverdict",
            "how the criterion's figure changes against the baseline's, and what may be said of that (?: cannot tell)",
            0,
            of_margin(told_margin),
        ),
        Column("progress\nMB/s", field_at(Result, "progress_MBps").meaning, 4, _number("progress_MBps"), "progress"),
        Column("waited\ns", "how long programs waited for the disk, summed over programs", 5, _number("waited_s"), "waited"),
        Column("\nMB/s", field_at(Result, "throughput_MBps").meaning, 1, _throughput, "throughput"),
        Column("elapsed\ns", field_at(Result, "elapsed_s").meaning, 8, _number("elapsed_s"), "elapsed"),
        *_latencies(results, "read", _MAIN),
        *_latencies(results, "write", _SIDE if reads or syncs else _MAIN),
        *_latencies(results, "sync", _CALLS if reads else _MAIN),
        Column(
            "\nfairness",
            "Jain's index of throughput, 1 if all programs that run side by side get the same",
            7,
            _fairness,
            "fairness",
        ),
        Column(
            "95%\ninterval",
            "between which changes that of the verdict lies, in 95 of 100 cases",
            11,
            of_margin(told_interval),
        ),
        *(Column(f"\n{name}", f"share of the drive's time in which {what}", 12, _share(name)) for name, what in _SHARES.items()),
        Column("\nseeks", field_at(Result, "disk.seeks").meaning, 13, _seeks),
        Column("\nA_S/A", "successful waits for a task's next request, of all such waits", 14, _met),
        Column(
            "T_F/A_S\nms",
            "time lost in failed waits, for each successful one",
            15,
            lambda r: None if not r.anticipation or r.anticipation.cost_ms is None else digits(r.anticipation.cost_ms),
        ),
    ]


CANNOT_TELL = "?"
_WORDS = {"better": "better", "worse": "worse", "equivalent": "same", "cannot tell": CANNOT_TELL}


def told_margin(margin: Margin, by: Criterion) -> str:
    """In a cell: the change, and what may be said of it."""
    if margin.judgement == "baseline":
        return "baseline"
    return f"{change_text(by, ahead_log(margin.ahead_percent))} {_WORDS[margin.judgement]}"


def told_interval(margin: Margin, by: Criterion) -> str:
    """In a cell; "" where there is none to tell."""
    if margin.low_percent is None or margin.high_percent is None:
        return ""
    return interval_text(by, ahead_log(margin.low_percent), ahead_log(margin.high_percent))
