# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a run's tallies to its results (schema.py): throughput, latencies, fairness, where time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.base.figures import brief
from headwaiter.engine.constants import SECTOR_BYTES, Op
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import HOST_TIMES, I64, PROCESSOR_TIMES, Latencies, Options, Outcome, Tallies
from headwaiter.study.schema import (
    Anticipation,
    CallRow,
    Direction,
    Disk,
    GroupRow,
    HostBusy,
    HostTime,
    Latency,
    ProcessorTime,
    Result,
    Sync,
    SyncRow,
    TaskRow,
)

_PERCENTILES = (50.0, 95.0, 99.0, 99.9)
"""Those of Latency."""
_NS_PER_S = 1e9
_Table = TypeVar("_Table", Tallies, Latencies)


def _place(count: I64, percent: float) -> I64:
    """Return which of so many values in order, from 0, so many percent of them do not exceed; exactly, in thousandths."""
    return np.maximum(-(-count * round(percent * 10) // 1000) - 1, 0)


def _rate(amount: NDArray[np.float64], seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Amounts a second; 0 where there was no time."""
    out = np.zeros(len(amount))
    np.divide(amount, seconds, out=out, where=seconds > 0)
    return out


@dataclass(frozen=True)
class _Parts:
    """I/Os in parts, one for each value of a key; columns of one length, a row per part, in ascending order of the key."""

    key: I64
    requests: I64
    bytes: I64
    issue_ns: I64
    """The first issue."""
    complete_ns: I64
    """The last completion."""
    lat_ms: NDArray[np.float64]
    """A column for each figure of Latency."""

    @property
    def elapsed_s(self) -> NDArray[np.float64]:
        """From the first issue to the last completion."""
        return (self.complete_ns - self.issue_ns) / _NS_PER_S

    @property
    def throughput_mbps(self) -> NDArray[np.float64]:
        """MB/s while the part was under way; 0 where that took no time."""
        return _rate(self.bytes / 1e6, self.elapsed_s)


def _part(t: Tallies, lat: Latencies, key: I64) -> _Parts:
    """The I/Os by key, a number per tally. Sorts each once, whatever the number of parts."""
    keys, part = np.unique(key, return_inverse=True)
    if not len(keys):
        nothing = np.empty(0, np.int64)
        return _Parts(nothing, nothing, nothing, nothing, nothing, np.empty((0, 2 + len(_PERCENTILES))))
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], np.arange(len(keys)))
    count = np.add.reduceat(t.ios[order], first)
    columns = [np.add.reduceat(t.latency_sum_ns[order], first) / count / 1e6]
    parts = part[lat.tally]
    ascending = np.lexsort((lat.ns, parts))
    ns, until = lat.ns[ascending], np.cumsum(lat.count[ascending])
    begin = np.cumsum(count) - count
    for percent in _PERCENTILES:
        # The least latency that so many percent of them do not exceed: one that occurred, as fio counts, and no mean of two.
        columns.append(ns[np.searchsorted(until, begin + _place(count, percent), side="right")] / 1e6)
    columns.append(np.maximum.reduceat(t.latency_max_ns[order], first) / 1e6)
    return _Parts(
        keys,
        count,
        np.add.reduceat(t.sectors[order], first) * SECTOR_BYTES,
        np.minimum.reduceat(t.first_issue_ns[order], first),
        np.maximum.reduceat(t.last_done_ns[order], first),
        np.column_stack(columns),
    )


def latency(o: Outcome) -> Latency:
    """Return the latency of all I/Os of a run together. The run had I/Os."""
    return _whole(o.tallies, o.latencies)


def latency_of_waits(o: Outcome, processes: Sequence[int]) -> Latency:
    """Return the latency of what processes (tasks, by index) wait in, as fio counts it: their calls through the page cache, and
    the I/Os of those that make no such calls. There was some.
    """
    caching = np.empty(0, np.int64) if o.calls is None else np.unique(o.calls.task)
    t, lat = _of_tasks(o.tallies, o.latencies, np.setdiff1d(processes, caching))
    if o.calls is not None and o.call_latencies is not None:
        calls, call_lat = _of_tasks(o.calls, o.call_latencies, np.asarray(processes))
        call_lat = replace(call_lat, tally=call_lat.tally + len(t.task))
        t, lat = _joined(t, calls), _joined(lat, call_lat)
    return _whole(t, lat)


def _whole(t: Tallies, lat: Latencies) -> Latency:
    return Latency(*_part(t, lat, np.zeros_like(t.task)).lat_ms[0].tolist())


def _of_tasks(t: Tallies, lat: Latencies, tasks: I64) -> tuple[Tallies, Latencies]:
    """Those of some tasks (by index)."""
    keep = np.isin(t.task, tasks)
    kept = keep[lat.tally]
    place = np.cumsum(keep) - 1
    some = Tallies(**{one.name: getattr(t, one.name)[keep] for one in fields(t)})
    return some, Latencies(place[lat.tally[kept]], lat.ns[kept], lat.count[kept], lat.relative_error)


def _joined(first: _Table, second: _Table) -> _Table:
    """The rows of both; of the errors of latencies the larger."""
    columns: dict[str, Any] = {one.name: np.append(getattr(first, one.name), getattr(second, one.name)) for one in fields(first)}
    if "relative_error" in columns:
        columns["relative_error"] = float(columns["relative_error"].max())
    return type(first)(**columns)


def latencies_by_task(o: Outcome) -> dict[int, Latency]:
    """Return the latency of all I/Os of each task that made some, by its index."""
    return {task: lat for task, *_, lat in _rows(_part(o.tallies, o.latencies, o.tallies.task))}


def _throughput_mbps(size: int, elapsed_s: float) -> float:
    return size / 1e6 / elapsed_s if elapsed_s else 0.0


def jain(values: NDArray[np.float64]) -> float:
    """Jain's fairness index: 1 when all are equal, 1/n when one has everything."""
    total = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * total) if total else 1.0


def _rows(parts: _Parts) -> Iterator[tuple[int, int, int, float, float, float, float, Latency]]:
    """Yield the key of each part, its requests, bytes, MB/s, first issue, elapsed time, last completion (s), and latency."""
    columns = [
        parts.key,
        parts.requests,
        parts.bytes,
        parts.throughput_mbps,
        parts.issue_ns / _NS_PER_S,
        parts.elapsed_s,
        parts.complete_ns / _NS_PER_S,
    ]
    for row, lat in zip(zip(*(c.tolist() for c in columns), strict=True), parts.lat_ms.tolist(), strict=True):
        yield (*row, Latency(*lat))


def _task_rows(o: Outcome) -> list[TaskRow]:
    """A row per task and operation."""
    rows = []
    for key, requests, size, throughput, start, elapsed, _, lat in _rows(
        _part(o.tallies, o.latencies, o.tallies.task * 4 + o.tallies.op)
    ):
        task = o.tasks[key // 4]
        rows.append(TaskRow(task.id, task.name, Op(key % 4).word, task.group, requests, size, throughput, start, elapsed, lat))
    return rows


def _groups(o: Outcome) -> tuple[I64, I64]:
    """(the threads of control there are, and of each task which of them): a task, or a chain of tasks that follow one another."""
    groups, index = np.unique(np.array([t.group for t in o.tasks], np.int64), return_inverse=True)
    return groups, index


def _group_throughputs(o: Outcome) -> tuple[I64, NDArray[np.float64]]:
    """(index of each thread of control that made I/Os, MB/s while it was under way)."""
    groups, index = _groups(o)
    t = o.tallies
    group, n = index[t.task], len(groups)
    first, last = np.full(n, np.iinfo(np.int64).max), np.zeros(n, np.int64)
    np.minimum.at(first, group, t.first_issue_ns)
    np.maximum.at(last, group, t.last_done_ns)
    present = np.bincount(group, minlength=n) > 0
    size = np.bincount(group, weights=t.sectors, minlength=n)[present] * SECTOR_BYTES / 1e6
    return np.flatnonzero(present), _rate(size, (last - first)[present] / _NS_PER_S)


def _fairness(o: Outcome, there: I64, throughputs: NDArray[np.float64]) -> list[float]:
    """Jain's index of each phase in which several threads of control ran side by side, in their order.

    Threads that never run together do not compete, so their throughputs are not compared.
    """
    _, index = _groups(o)
    members: dict[int, list[int]] = {}
    for task, group in zip(o.tasks, index.tolist(), strict=True):
        if task.phase is not None:
            members.setdefault(task.phase, []).append(group)
    phases = [np.isin(there, members[phase]) for phase in sorted(members)]
    return [jain(throughputs[several]) for several in phases if several.sum() > 1]


def _group_rows(o: Outcome) -> list[GroupRow]:
    """A row per thread of control."""
    groups, index = _groups(o)
    names: dict[int, str] = {}
    members = Counter(t.group for t in o.tasks)
    for t in o.tasks:
        names.setdefault(t.group, t.name)
    return [
        GroupRow(g, names[g], members[g], requests, size, throughput, elapsed, end, lat)
        for g, requests, size, throughput, _, elapsed, end, lat in _rows(
            _part(o.tallies, o.latencies, groups[index][o.tallies.task])
        )
    ]


def _account(o: Outcome) -> None:
    """Issued, completed and reported: the same I/Os, or the results say nothing."""
    issued, completed = o.totals["issued"], o.totals["completed"]
    reported, measured = int(o.tallies.ios.sum()), int(o.latencies.count.sum())
    if not issued == completed == reported == measured:
        raise Problem(
            f"{o.scheduler}: {issued} I/Os were issued, {completed} completed, {reported} are reported,"
            f" {measured} of them with a latency"
        )


def _directions(o: Outcome, elapsed_s: float) -> dict[int, Direction]:
    """Figures of each operation that there was."""
    return {
        op: Direction(requests, size, _throughput_mbps(size, elapsed_s), lat)
        for op, requests, size, *_, lat in _rows(_part(o.tallies, o.latencies, o.tallies.op))
    }


def _sync(o: Outcome, tasks: bool) -> Sync | None:
    """Calls such as fsync, all together and by task; None if there were none."""
    t, lat = o.syncs, o.sync_latencies
    if t is None or lat is None:
        return None
    ((_, calls, *_, whole),) = _rows(_part(t, lat, np.zeros_like(t.task)))
    rows = [SyncRow(o.tasks[k].id, o.tasks[k].name, n, one) for k, n, *_, one in _rows(_part(t, lat, t.task))] if tasks else None
    return Sync(calls, whole, rows)


def _calls(o: Outcome) -> list[CallRow] | None:
    """Calls through the page cache by task and operation; None if there were none."""
    t, lat = o.calls, o.call_latencies
    if t is None or lat is None:
        return None
    found = ((o.tasks[key // 4], key % 4, n, one) for key, n, *_, one in _rows(_part(t, lat, t.task * 4 + t.op)))
    return [CallRow(task.id, task.name, Op(op).word, n, one) for task, op, n, one in found]


def _disk(t: Mapping[str, int]) -> Disk:
    """Return the drive's time by what it was spent on, of a run's totals."""
    idle_ns = max(0, t["now_ns"] - t["busy_ns"])
    waiting_ns = min(idle_ns, t["t_success_ns"] + t["t_fail_ns"] + t["t_other_ns"])
    disk = Disk(
        busy_s=t["busy_ns"] / _NS_PER_S,
        idle_s=idle_ns / _NS_PER_S,
        waiting_s=waiting_ns / _NS_PER_S,
        seeks=t["seeks"],
    )
    if t["media_reads"] or t["media_writes"]:
        disk = replace(
            disk,
            seek_s=t["seek_ns"] / _NS_PER_S,
            rotation_s=t["rotation_ns"] / _NS_PER_S,
            transfer_s=t["transfer_ns"] / _NS_PER_S,
            overhead_s=t["overhead_ns"] / _NS_PER_S,
            cache_hits=t["cache_hits"],
        )
    return replace(disk, mean_seek_cylinders=t["seek_cylinders"] / t["seeks"]) if t["seek_cylinders"] else disk


def _anticipation(t: Mapping[str, int]) -> Anticipation | None:
    """Waits, of a run's totals; None if there were none."""
    waits = t["a_success"] + t["a_fail"]
    if not waits and not t["a_other"]:
        return None
    return Anticipation(
        waits=waits,
        met=t["a_success"],
        failed=t["a_fail"],
        other=t["a_other"],
        waits_ms=(t["t_success_ns"] + t["t_fail_ns"]) / 1e6,
        met_ms=t["t_success_ns"] / 1e6,
        failed_ms=t["t_fail_ns"] / 1e6,
        other_ms=t["t_other_ns"] / 1e6,
        cost_ms=t["t_fail_ns"] / 1e6 / t["a_success"] if t["a_success"] else None,
    )


def _host(totals: Mapping[str, int]) -> HostBusy | None:
    if not totals["cores"]:
        return None
    whole = max(1, totals["now_ns"])
    # What is under way at the end of the run is counted.
    core, lock = totals["core_busy_ns"] / (totals["cores"] * whole), totals["lock_busy_ns"] / whole
    return HostBusy(processor_percent=100 * min(1.0, core), lock_percent=100 * min(1.0, lock))


def summarise(o: Outcome, tasks: bool = True) -> Result:
    """The result of a run. Figures that this run does not have (no reads, no waits …) are None.

    Without `tasks`, the rows of tasks, groups and calls are, too.
    """
    _account(o)
    policy, tallies = find(o.scheduler), o.tallies
    elapsed = (int(tallies.last_done_ns.max()) - int(tallies.first_issue_ns.min())) / _NS_PER_S if len(tallies.ios) else 0.0
    size = int(tallies.sectors.sum()) * SECTOR_BYTES
    directions = _directions(o, elapsed)
    there, throughputs = _group_throughputs(o)
    fairness = _fairness(o, there, throughputs)
    rows, calls = (_task_rows(o), _calls(o)) if tasks else (None, None)
    told = (o.latencies, o.sync_latencies, o.call_latencies if calls else None)
    chained = rows is not None and len(throughputs) != len({row.task for row in rows})
    return Result(
        scheduler=o.scheduler,
        tunables={k: policy.tunables[k].show(v) for k, v in o.tunables.items()},
        tables={name: cells.tolist() for name, cells in o.tables.items() if len(cells)} or None,
        elapsed_s=elapsed,
        requests=int(tallies.ios.sum()),
        bytes=size,
        throughput_mbps=_throughput_mbps(size, elapsed),
        read=directions.get(Op.READ),
        write=directions.get(Op.WRITE),
        sync=_sync(o, tasks),
        calls=calls,
        lat_relative_error=max(lat.relative_error for lat in told if lat) or None,
        tasks=rows,
        groups=_group_rows(o) if chained else None,
        fairness_jain=min(fairness, default=None),
        fairness_phases=fairness if len(fairness) > 1 else None,
        merges=o.totals["merges"],
        dispatched=o.totals["requests"],
        disk=_disk(o.totals),
        host=_host(o.totals),
        anticipation=_anticipation(o.totals),
        stats=dict(o.stats) or None,
    )


def shares(disk: Disk) -> dict[str, float]:
    """Return the shares of the drive's time by what it was spent on: they sum to 1; {} where there was no time.

    A drive with a platter: seek, rotate, transfer, other (overhead, its cache); else busy. Both: waiting (a scheduler kept it
    idle on purpose) and idle. The parts of an array are those of all its members.
    """
    waiting, idle = disk.waiting_s or 0.0, disk.idle_s - (disk.waiting_s or 0.0)
    if disk.seek_s is None:
        parts = {"busy": disk.busy_s, "waiting": waiting, "idle": idle}
    else:
        moves = {"seek": disk.seek_s, "rotate": disk.rotation_s or 0.0, "transfer": disk.transfer_s or 0.0}
        own = sum(moves.values()) - disk.busy_s  # what it wrote from its cache while nobody asked for anything
        parts = {**moves, "other": max(0.0, -own), "waiting": waiting, "idle": max(0.0, idle - max(0.0, own))}
    whole = sum(parts.values())
    return {name: value / whole for name, value in parts.items()} if whole else {}


def coarse_note(results: Sequence[Result], exact: int) -> list[str]:
    """A note, if latencies of a run were counted in intervals (Options.exact)."""
    off = max((r.lat_relative_error or 0.0 for r in results), default=0.0)
    return [f"with more than {exact:,} I/Os, percentiles of latency are accurate to {brief(100 * off, 2)}%"] if off else []


def processor_time(options: Options) -> ProcessorTime:
    """The processor time that runs were made with: microseconds, of an I/O and of a page."""

    def times(names: Sequence[str]) -> dict[str, float]:
        return {name.replace("_ns", "_us"): getattr(options, name) / 1000 for name in names}

    return ProcessorTime(
        **times(PROCESSOR_TIMES),
        one_processor=options.one_processor,
        host=HostTime(cores=options.cores, **times(HOST_TIMES)) if options.cores else None,
    )
