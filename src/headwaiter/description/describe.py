# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a recorded workload is like, and what the device did: figures of a trace, and two runs that show what waiting is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.description.programs import found_of
from headwaiter.description.schema import (
    Character,
    Deceptive,
    Depth,
    DescribeDocument,
    DeviceCharacter,
    Locality,
    Phase,
    Quantiles,
    TaskCharacter,
)
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.engine.sim import Drive, Options
from headwaiter.study.drive_fit import fit
from headwaiter.study.trial import first_run
from headwaiter.study.variants import Variant
from headwaiter.study.workload import CLOSED, Workload
from headwaiter.traces import Trace, closed_loop, requests_of, with_flushes
from headwaiter.traces.busy import busy_ns

Array = npt.NDArray[Any]

SOON_NS = 6_000_000
"""As long as Linux's anticipatory scheduler waits."""
NEAR_SECTORS = 2048
"""1 MiB."""
_KIB, _MIB = 1024, 1 << 20
_HOT = 0.9
_MOST_WINDOWS = 120
_LEAST_IN_WINDOW = 50
_LEAST_NS = 100_000_000
_ALIKE = 1.0
"""Windows that differ by less than this are one phase: a factor of e in rate, or all of read share or sequential share."""


def describe(trace: Trace, name: str, lost: int | None = None, scheduler: str | None = None) -> DescribeDocument:
    """All that can be told of a trace without a drive; `lost` as its recorder counted, `scheduler` as it found it."""
    sequential, distance = _sequence(trace)
    think = _think_ns(trace)
    threads = int(trace.group.max()) + 1
    programs = found_of(trace)
    return DescribeDocument(
        trace=name,
        seconds=trace.span_ns / 1e9,
        lost=lost,
        scheduler=scheduler,
        threads=threads,
        tasks=len(trace.tasks),
        whole=Character(**_character(trace, np.arange(len(trace)), sequential, distance, think)),
        flushes=len(trace.flushes) if trace.flushes else 0,
        flush_ms=_flush_ms(trace),
        locality=_locality(trace),
        device=_device(trace),
        deceptive=_deceptive(trace) if trace.tasks_known and trace.completions_known else None,
        phases=list(_phases(trace, sequential)),
        programs=programs.rows,
        sufferers=programs.sufferers,
        background=programs.background,
        rows=_rows(trace, sequential, distance, think) if trace.tasks_known else [],
        notes=list(trace.notes),
    )


def _percent(mask: Array) -> float:
    return 100 * float(mask.mean()) if len(mask) else 0.0


def _spread(values: Array, unit: float = 1.0) -> Quantiles:
    """Return the quantiles of at least one value; they are values that occur, as elsewhere for latencies."""
    at = np.percentile(values, (50, 95, 100), method="inverted_cdf") / unit
    return Quantiles(median=float(at[0]), p95=float(at[1]), max=float(at[2]))


def _some(values: Array, unit: float) -> Quantiles | None:
    return _spread(values, unit) if len(values) else None


def _character(trace: Trace, rows: Array, sequential: Array, distance: Array, think: Array) -> dict[str, Any]:
    """The fields of Character for some requests; distance and think are -1 where there is none."""
    op, complete = trace.op[rows], trace.complete_ns[rows]
    done = complete >= 0
    time = trace.time_ns[rows]
    return {
        "requests": len(rows),
        "bytes": int(trace.sectors[rows].sum(dtype=np.uint64)) * SECTOR_BYTES,
        "read_percent": _percent(op == Op.READ),
        "write_percent": _percent(op == Op.WRITE),
        "sync_percent": _percent(trace.flags[rows] & SYNC != 0),
        "size_kib": _spread(trace.sectors[rows].astype(np.float64) * SECTOR_BYTES, _KIB),
        "sequential_percent": _percent(sequential[rows]),
        "distance_mib": _some(distance[rows][distance[rows] >= 0].astype(np.float64) * SECTOR_BYTES, _MIB),
        "think_ms": _some(think[rows][think[rows] >= 0], 1e6),
        "latency_ms": _some((complete - time)[done], 1e6),
        "depth": _depth(time[done], complete[done]) if done.any() else None,
    }


def _flush_ms(trace: Trace) -> Quantiles | None:
    if trace.flushes is None:
        return None
    took = trace.flushes.complete_ns - trace.flushes.time_ns
    return _some(took[trace.flushes.complete_ns >= 0], 1e6)


def _sequence(trace: Trace) -> tuple[Array, Array]:
    """(whether a request begins where the group's last one of its operation ended; else its distance from there, in sectors).

    The distance is -1 of sequential requests and of the first of each group and operation.
    """
    order = np.lexsort((np.arange(len(trace)), trace.op, trace.group))
    before, this = order[:-1], order[1:]
    same = (trace.group[before] == trace.group[this]) & (trace.op[before] == trace.op[this])
    begin = trace.sector.astype(np.int64)
    away = np.abs(begin[this] - (begin + trace.sectors)[before])
    sequential, distance = np.zeros(len(trace), bool), np.full(len(trace), -1, np.int64)
    sequential[this] = same & (away == 0)
    distance[this] = np.where(same & (away > 0), away, -1)
    return sequential, distance


def _think_ns(trace: Trace) -> Array:
    """From the completion of the synchronous request, or flush, that it waited for to each one's arrival; -1 without one."""
    if not trace.tasks_known or not trace.completions_known:
        return np.full(len(trace), -1, np.int64)
    every = with_flushes(trace)
    parent, delay = closed_loop(every)
    waited = (parent >= 0) & (every.flags[parent] & SYNC != 0)
    found: Array = np.where(waited, delay, -1)[every.op != Op.FLUSH]
    return found


def think_times(trace: Trace) -> Array:
    """All think times behind synchronous requests, ns."""
    found = _think_ns(trace)
    return found[found >= 0]


def _depth(begin: Array, end: Array) -> Depth:
    """Over the time in which any is under way; if that is none, each was alone."""
    time = np.concatenate([begin, end])
    order = np.argsort(time, kind="stable")
    under_way = np.cumsum(np.concatenate([np.ones(len(begin), np.int64), np.full(len(end), -1)])[order])[:-1]
    long = np.diff(time[order])
    busy = (under_way > 0) & (long > 0)
    if not busy.any():
        return Depth(mean=1.0, p95=1.0, max=1)
    levels, long = under_way[busy], long[busy].astype(np.float64)
    by_level = np.argsort(levels, kind="stable")
    reached = np.searchsorted(np.cumsum(long[by_level]), 0.95 * long.sum())
    p95 = levels[by_level][min(int(reached), len(levels) - 1)]
    return Depth(mean=float((levels * long).sum() / long.sum()), p95=float(p95), max=int(levels.max()))


def _locality(trace: Trace) -> Locality:
    area = trace.sector // np.uint64(NEAR_SECTORS)
    _, count = np.unique(area, return_counts=True)
    most = np.cumsum(np.sort(count)[::-1])
    end = trace.sector + trace.sectors
    last = (end - np.uint64(1)) // np.uint64(NEAR_SECTORS)
    touched = np.unique(np.concatenate([area, last]))
    return Locality(
        span_gib=float(int(end.max()) - int(trace.sector.min())) * SECTOR_BYTES / (1 << 30),
        touched_mib=len(touched),
        hot_mib=int(np.searchsorted(most, _HOT * len(trace))) + 1,
        again_percent=100 * (1 - len(np.unique(trace.sector)) / len(trace)),
    )


def _device(trace: Trace) -> DeviceCharacter | None:
    """Requests of one issue and one completion that lie end to end were one in the device."""
    if trace.issue_ns is None:
        return None
    known = np.flatnonzero((trace.issue_ns >= 0) & (trace.complete_ns >= 0))
    if not len(known):
        return None
    order, first = requests_of(trace.issue_ns[known], trace.complete_ns[known], trace.op[known])
    rows = known[order]
    issue, complete = trace.issue_ns[rows[first]], trace.complete_ns[rows[first]]
    sectors = np.add.reduceat(trace.sectors[rows].astype(np.float64), first)
    begin, end = issue, complete
    if trace.flushes and (made := trace.flushes.rows((trace.flushes.issue_ns >= 0) & (trace.flushes.complete_ns >= 0))):
        begin, end = np.concatenate([begin, made.issue_ns]), np.concatenate([end, made.complete_ns])
    span = max(1, int(end.max() - begin.min()))
    return DeviceCharacter(
        requests=len(first),
        size_kib=_spread(sectors * SECTOR_BYTES, _KIB),
        service_ms=_spread(complete - issue, 1e6),
        queued_ms=_spread(trace.issue_ns[known] - trace.time_ns[known], 1e6),
        depth=_depth(issue, complete),
        busy_percent=100 * busy_ns(begin, end) / span,
    )


def _deceptive(trace: Trace) -> Deceptive | None:
    """Reads that come soon and near, those of them for which the disk was wanted elsewhere, and those to which it came back."""
    reads = np.flatnonzero((trace.op == Op.READ) & (trace.flags & SYNC != 0))
    if not len(reads):
        return None
    parent, delay = closed_loop(trace)
    before = parent[reads]
    end = trace.sector[before].astype(np.int64) + trace.sectors[before]
    near = (before >= 0) & (trace.op[before] == Op.READ) & (delay[reads] <= SOON_NS)
    near &= np.abs(trace.sector[reads].astype(np.int64) - end) <= NEAR_SECTORS
    these, before = reads[near], before[near]
    free_ns = trace.complete_ns[before]
    exposed = _others_under_way(trace, these, free_ns) > 0
    # Whether any of the others' was complete between the two: the disk went there.
    done = np.sort(trace.complete_ns[trace.complete_ns >= 0])
    arrived, back = trace.time_ns[these], trace.complete_ns[these]
    between = np.searchsorted(done, back, side="left") - np.searchsorted(done, free_ns, side="right")
    own = _own_between(trace, these, free_ns, back)
    lost = exposed & (back >= arrived) & (between - own > 0)
    return Deceptive(
        near_percent=_percent(near),
        exposed_percent=_percent(exposed),
        lost_percent=_percent(lost[exposed]),
    )


def _others_under_way(trace: Trace, rows: Array, at_ns: Array) -> Array:
    """Return how many requests of other groups were under way at some times, one for each of these rows."""

    def under_way(begin: Array, end: Array, at: Array) -> Array:
        found: Array = np.searchsorted(np.sort(begin), at, side="right") - np.searchsorted(np.sort(end), at, side="right")
        return found

    known = trace.complete_ns >= 0
    everything = under_way(trace.time_ns[known], trace.complete_ns[known], at_ns)
    # Times of each group, moved so far apart that one search serves all.
    apart = trace.group.astype(np.float64) * (float(trace.span_ns) + 1)
    moved = under_way(trace.time_ns[known] + apart[known], trace.complete_ns[known] + apart[known], at_ns + apart[rows])
    return everything - moved


def _own_between(trace: Trace, rows: Array, from_ns: Array, to_ns: Array) -> Array:
    """Return how many requests of each row's own group were complete between two times."""
    known = trace.complete_ns >= 0
    apart = trace.group.astype(np.float64) * (float(trace.span_ns) + 1)
    done = np.sort(trace.complete_ns[known] + apart[known])
    found: Array = np.searchsorted(done, to_ns + apart[rows], side="left") - np.searchsorted(
        done, from_ns + apart[rows], side="right"
    )
    return found


def _phases(trace: Trace, sequential: Array) -> Iterator[Phase]:
    """Windows of equal length, of which neighbours that are alike become one."""
    start, span = int(trace.time_ns[0]), max(1, int(trace.time_ns[-1] - trace.time_ns[0]) + 1)
    windows = max(1, min(_MOST_WINDOWS, len(trace) // _LEAST_IN_WINDOW, span // _LEAST_NS))
    window = (trace.time_ns - start) * windows // span
    sums = np.zeros((windows, 3))
    for column, values in enumerate((np.ones(len(trace)), trace.op == Op.READ, sequential)):
        np.add.at(sums[:, column], window, values)
    parts = [(k, k + 1, sums[k]) for k in range(windows)]
    while len(parts) > 1:
        apart = [_apart(a, b) for a, b in pairwise(parts)]
        k = int(np.argmin(apart))
        if apart[k] >= _ALIKE:
            break
        parts[k : k + 2] = [(parts[k][0], parts[k + 1][1], parts[k][2] + parts[k + 1][2])]
    for first, last, _ in parts:
        rows = np.flatnonzero((window >= first) & (window < last))
        length_s = span / 1e9 * (last - first) / windows
        size = int(trace.sectors[rows].sum(dtype=np.uint64)) * SECTOR_BYTES
        yield Phase(
            from_s=span / 1e9 * first / windows,
            to_s=span / 1e9 * last / windows,
            requests=len(rows),
            requests_per_s=len(rows) / length_s,
            mbps=size / 1e6 / length_s,
            read_percent=_percent(trace.op[rows] == Op.READ),
            sequential_percent=_percent(sequential[rows]),
            tasks=len(np.unique(trace.group[rows])),
        )


def _apart(a: tuple[int, int, Array], b: tuple[int, int, Array]) -> float:
    """Return how unlike two parts are, by their sums of requests, reads and sequential requests."""
    (n, reads, sequential), (m, more_reads, more_sequential) = a[2], b[2]
    rate = abs(np.log((n / (a[1] - a[0]) + 1) / (m / (b[1] - b[0]) + 1)))
    if not n or not m:
        return float(rate)
    return float(rate + abs(reads / n - more_reads / m) + abs(sequential / n - more_sequential / m))


def _rows(trace: Trace, sequential: Array, distance: Array, think: Array) -> list[TaskCharacter]:
    order = np.argsort(trace.group, kind="stable")
    ends = np.flatnonzero(np.diff(trace.group[order])) + 1
    found = []
    for rows in np.split(order, ends):
        first = trace.tasks[int(trace.task[rows[0]])]
        tasks = len(np.unique(trace.task[rows]))
        fields = _character(trace, rows, sequential, distance, think)
        found.append(TaskCharacter(name=first.name or f"task {first.id}", task=first.id, tasks=tasks, **fields))
    return sorted(found, key=lambda row: -row.requests)


def priced(found: DescribeDocument, work: Workload, drive: Drive, options: Options) -> DescribeDocument:
    """With what it costs in the simulation if the scheduler never waits for a program; of closed replays only."""
    if found.deceptive is None or work.replay != CLOSED or work.trace is None:
        return found
    waited = []
    for settings in ({}, {"antic_expire": 0}):
        waits = first_run(Variant("as", "as", settings), drive, work.load, options, tasks=False)[1].waits
        assert waits  # a trace has them
        waited.append(waits.waited_s)
    cost = 100 * (waited[1] / waited[0] - 1) if waited[0] else None
    price = replace(found.deceptive, drive=drive.name, waited_s=waited[0], waited_never_s=waited[1], cost_percent=cost)
    return replace(found, deceptive=price, fit=fit(work.trace, drive))
