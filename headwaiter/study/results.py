# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a run's tallies to the figures of schema "headwaiter/1": throughput, latencies, fairness, where time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import Op
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import I64, Outcome
from headwaiter.errors import Problem

SCHEMA = "headwaiter/1"
SECTOR_BYTES = 512
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
_NS_PER_S = 1e9

Json = dict[str, Any]


def _place(count: I64, percent: float) -> I64:
    """Which of so many values in order, from 0, so many percent of them do not exceed; exactly, in thousandths."""
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
    lat_ms: dict[str, NDArray[np.float64]]

    @property
    def elapsed_s(self) -> NDArray[np.float64]:
        """From the first issue to the last completion."""
        return (self.complete_ns - self.issue_ns) / _NS_PER_S

    @property
    def throughput_mbps(self) -> NDArray[np.float64]:
        """MB/s while the part was under way; 0 where that took no time."""
        return _rate(self.bytes / 1e6, self.elapsed_s)


def _part(o: Outcome, key: I64) -> _Parts:
    """The I/Os by key, a number per tally. Sorts each once, whatever the number of parts."""
    t, lat = o.tallies, o.latencies
    keys, part = np.unique(key, return_inverse=True)
    if not len(keys):
        nothing = np.empty(0, np.int64)
        return _Parts(nothing, nothing, nothing, nothing, nothing, {})
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], np.arange(len(keys)))
    count = np.add.reduceat(t.ios[order], first)
    lat_ms = {"mean": np.add.reduceat(t.latency_sum_ns[order], first) / count / 1e6}
    parts = part[lat.tally]
    ascending = np.lexsort((lat.ns, parts))
    ns, until = lat.ns[ascending], np.cumsum(lat.count[ascending])
    begin = np.cumsum(count) - count
    for name, percent in _PERCENTILES.items():
        # The least latency that so many percent of them do not exceed: one that occurred, as fio counts, and no mean of two.
        lat_ms[name] = ns[np.searchsorted(until, begin + _place(count, percent), side="right")] / 1e6
    lat_ms["max"] = np.maximum.reduceat(t.latency_max_ns[order], first) / 1e6
    return _Parts(
        keys,
        count,
        np.add.reduceat(t.sectors[order], first) * SECTOR_BYTES,
        np.minimum.reduceat(t.first_issue_ns[order], first),
        np.maximum.reduceat(t.last_done_ns[order], first),
        lat_ms,
    )


def latency_ms(o: Outcome) -> dict[str, float]:
    """Of all I/Os of a run together: mean, percentiles and maximum. The run had I/Os."""
    return {k: float(v[0]) for k, v in _part(o, np.zeros_like(o.tallies.task)).lat_ms.items()}


def _figures(requests: int, size: int, elapsed_s: float) -> Json:
    return {
        "requests": requests,
        "bytes": size,
        "throughput_MBps": size / 1e6 / elapsed_s if elapsed_s else 0.0,
    }


def jain(values: NDArray[np.float64]) -> float:
    """Jain's fairness index: 1 when all are equal, 1/n when one has everything."""
    total = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * total) if total else 1.0


def _rows(parts: _Parts) -> Iterator[Json]:
    """What rows of tasks and of groups have in common."""
    columns = [parts.requests, parts.bytes, parts.throughput_mbps, parts.elapsed_s]
    latencies = np.column_stack(list(parts.lat_ms.values())).tolist() if len(parts.key) else []
    for requests, size, throughput, elapsed, lat in zip(*(c.tolist() for c in columns), latencies, strict=True):
        yield {
            "requests": requests,
            "bytes": size,
            "throughput_MBps": throughput,
            "elapsed_s": elapsed,
            "lat_ms": dict(zip(parts.lat_ms, lat, strict=True)),
        }


def _task_rows(o: Outcome) -> list[Json]:
    """A row per task and operation."""
    parts = _part(o, o.tallies.task * 4 + o.tallies.op)
    rows = []
    starts = (parts.issue_ns / _NS_PER_S).tolist()
    for k, start, row in zip(parts.key.tolist(), starts, _rows(parts), strict=True):
        task = o.tasks[k // 4]
        rows.append(
            {
                "task": task.id,
                "name": task.name,
                "op": ("read", "write", "discard", "other")[k % 4],
                "group": task.group,
                "requests": row["requests"],
                "bytes": row["bytes"],
                "throughput_MBps": row["throughput_MBps"],
                "start_s": start,
                "elapsed_s": row["elapsed_s"],
                "lat_ms": row["lat_ms"],
            }
        )
    return rows


def _groups(o: Outcome) -> tuple[I64, I64]:
    """(the threads of control there are, and of each task which of them): a task, or a chain of tasks that follow one another."""
    groups, index = np.unique(np.array([t.group for t in o.tasks], np.int64), return_inverse=True)
    return groups, index


def _group_throughputs(o: Outcome) -> NDArray[np.float64]:
    """MB/s of each thread of control that made I/Os, while it was under way."""
    groups, index = _groups(o)
    t = o.tallies
    group, n = index[t.task], len(groups)
    first, last = np.full(n, np.iinfo(np.int64).max), np.zeros(n, np.int64)
    np.minimum.at(first, group, t.first_issue_ns)
    np.maximum.at(last, group, t.last_done_ns)
    present = np.bincount(group, minlength=n) > 0
    size = np.bincount(group, weights=t.sectors, minlength=n)[present] * SECTOR_BYTES / 1e6
    return _rate(size, (last - first)[present] / _NS_PER_S)


def _group_rows(o: Outcome) -> list[Json]:
    """A row per thread of control."""
    groups, index = _groups(o)
    parts = _part(o, groups[index][o.tallies.task])
    names: dict[int, str] = {}
    members = Counter(t.group for t in o.tasks)
    for t in o.tasks:
        names.setdefault(t.group, t.name)
    ends = (parts.complete_ns / _NS_PER_S).tolist()
    return [
        {
            "group": g,
            "name": names[g],
            "tasks": members[g],
            "requests": row["requests"],
            "bytes": row["bytes"],
            "throughput_MBps": row["throughput_MBps"],
            "elapsed_s": row["elapsed_s"],
            "end_s": end,
            "lat_ms": row["lat_ms"],
        }
        for g, end, row in zip(parts.key.tolist(), ends, _rows(parts), strict=True)
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


def summarise(o: Outcome, tasks: bool = True) -> Json:
    """One entry of "results". Figures that this run does not have (no reads, no waits …) are absent.

    Without `tasks`, the rows of tasks and groups are, too.
    """
    _account(o)
    t = o.totals
    policy = find(o.scheduler)
    out: Json = {
        "scheduler": o.scheduler,
        "tunables": {k: policy.tunables[k].show(v) for k, v in o.tunables.items()},
        **({"tables": {name: cells.tolist() for name, cells in o.tables.items()}} if o.tables else {}),
    }
    tallies = o.tallies
    elapsed = (int(tallies.last_done_ns.max()) - int(tallies.first_issue_ns.min())) / _NS_PER_S if len(tallies.ios) else 0.0
    size = int(tallies.sectors.sum()) * SECTOR_BYTES
    out |= {"elapsed_s": elapsed, **_figures(int(tallies.ios.sum()), size, elapsed)}
    by_op = _part(o, tallies.op)
    for name, op in (("read", Op.READ), ("write", Op.WRITE)):
        for i in np.flatnonzero(by_op.key == op).tolist():
            out[name] = _figures(int(by_op.requests[i]), int(by_op.bytes[i]), elapsed)
            out[name]["lat_ms"] = {k: float(v[i]) for k, v in by_op.lat_ms.items()}
    if o.latencies.relative_error:
        out["lat_relative_error"] = o.latencies.relative_error
    throughputs = _group_throughputs(o)
    if tasks:
        out["tasks"] = _task_rows(o)
        if len(throughputs) != len({t["task"] for t in out["tasks"]}):
            out["groups"] = _group_rows(o)
    if len(throughputs):
        out["fairness_jain"] = jain(throughputs)
    out["merges"] = t["merges"]
    out["dispatched"] = t["requests"]
    disk: Json = {"busy_s": t["busy_ns"] / _NS_PER_S, "idle_s": max(0.0, t["now_ns"] - t["busy_ns"]) / _NS_PER_S}
    if t["media_reads"] or t["media_writes"]:
        disk |= {f"{k}_s": t[f"{k}_ns"] / _NS_PER_S for k in ("seek", "rotation", "transfer", "overhead")}
        disk["cache_hits"] = t["cache_hits"]
    disk["seeks"] = t["seeks"]
    if t["seek_cylinders"]:
        disk["mean_seek_cylinders"] = t["seek_cylinders"] / t["seeks"]
    out["disk"] = disk
    waits = t["a_success"] + t["a_fail"]
    if waits or t["a_other"]:
        out["anticipation"] = {
            "A": waits,
            "A_S": t["a_success"],
            "A_F": t["a_fail"],
            "A_other": t["a_other"],
            "T_ms": (t["t_success_ns"] + t["t_fail_ns"]) / 1e6,
            "T_S_ms": t["t_success_ns"] / 1e6,
            "T_F_ms": t["t_fail_ns"] / 1e6,
            "T_other_ms": t["t_other_ns"] / 1e6,
        }
        if t["a_success"]:
            out["anticipation"]["T_F_per_A_S_ms"] = t["t_fail_ns"] / 1e6 / t["a_success"]
    if o.stats:
        out["stats"] = dict(o.stats)
    return out


def coarse_note(results: Sequence[Json], exact: int) -> list[str]:
    """A note, if latencies of a run were counted in intervals (Options.exact)."""
    off = max((float(r.get("lat_relative_error", 0.0)) for r in results), default=0.0)
    return [f"with more than {exact:,} I/Os, percentiles of latency are accurate to {100 * off:.2g}%"] if off else []


def document(workload: str, drive: str, seed: int, results: list[Json], **more: Any) -> Json:
    """The whole JSON document."""
    return {"schema": SCHEMA, "workload": workload, "drive": drive, "seed": seed, **more, "results": results}
