# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a run's rows to the figures of schema "headwaiter/1": throughput, latencies, fairness, where time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .schedulers import find
from .sim import I64, READ, WRITE, Outcome

SCHEMA = "headwaiter/1"
SECTOR_BYTES = 512
_PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
_NS_PER_S = 1e9

Json = dict[str, Any]
Mask = NDArray[np.bool_]


def percentiles(ns: I64, which: Sequence[float]) -> I64:
    """The least latencies that so many percent of them do not exceed: ones that occurred, as fio counts, and no means of two."""
    return np.percentile(ns, which, method="inverted_cdf").astype(np.int64)


def _latency(ns: I64) -> Json:
    """Mean, percentiles and maximum in ms."""
    out = {"mean": float(ns.mean()) / 1e6}
    values = percentiles(ns, list(_PERCENTILES.values()))
    out |= {k: float(v) / 1e6 for k, v in zip(_PERCENTILES, values, strict=True)}
    return out | {"max": float(ns.max()) / 1e6}


def _span(o: Outcome, which: Mask) -> float:
    """Seconds from the first issue to the last completion of these I/Os."""
    return (int(o.complete_ns[which].max()) - int(o.issue_ns[which].min())) / _NS_PER_S


def _figures(o: Outcome, which: Mask, elapsed_s: float) -> Json:
    size = int(o.sectors[which].sum(dtype=np.int64)) * SECTOR_BYTES
    return {
        "requests": int(which.sum()),
        "bytes": size,
        "throughput_MBps": size / 1e6 / elapsed_s if elapsed_s else 0.0,
    }


def jain(values: NDArray[np.float64]) -> float:
    """Jain's fairness index: 1 when all are equal, 1/n when one has everything."""
    total = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * total) if total else 1.0


def _task_rows(o: Outcome, done: Mask) -> list[Json]:
    """A row per task and operation."""
    key = o.task.astype(np.int64) * 4 + o.op
    key[~done] = -1
    order = np.argsort(key, kind="stable")
    sorted_keys = key[order]
    starts = np.flatnonzero(np.r_[True, sorted_keys[1:] != sorted_keys[:-1]]) if len(order) else np.empty(0, np.int64)
    rows = []
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        k = int(sorted_keys[start])
        if k < 0:
            continue
        which = order[start:end]
        issue, complete = o.issue_ns[which], o.complete_ns[which]
        elapsed = (int(complete.max()) - int(issue.min())) / _NS_PER_S
        size = int(o.sectors[which].sum(dtype=np.int64)) * SECTOR_BYTES
        task = o.tasks[k // 4]
        rows.append({
            "task": task.id, "name": task.name, "op": ("read", "write", "discard", "other")[k % 4],
            "group": task.group, "requests": end - start, "bytes": size,
            "throughput_MBps": size / 1e6 / elapsed if elapsed else 0.0,
            "start_s": int(issue.min()) / _NS_PER_S, "elapsed_s": elapsed, "lat_ms": _latency(complete - issue),
        })
    return rows


def _groups(o: Outcome, done: Mask) -> list[Json]:
    """A row per thread of control: a task, or a chain of tasks that follow one another."""
    group_of = np.array([t.group for t in o.tasks], np.int64)
    group = group_of[o.task]
    rows = []
    for g in np.unique(group[done]).tolist():
        which = done & (group == g)
        members = [t for t in o.tasks if t.group == g]
        elapsed = _span(o, which)
        rows.append({"group": g, "name": members[0].name, "tasks": len(members), **_figures(o, which, elapsed),
                     "elapsed_s": elapsed, "end_s": int(o.complete_ns[which].max()) / _NS_PER_S,
                     "lat_ms": _latency(o.complete_ns[which] - o.issue_ns[which])})
    return rows


def summarise(o: Outcome) -> Json:
    """One entry of "results". Figures that this run does not have (no reads, no waits …) are absent."""
    done = o.complete_ns >= 0
    t = o.totals
    policy = find(o.scheduler)
    out: Json = {
        "scheduler": o.scheduler,
        "tunables": {k: policy.tunables[k].show(v) for k, v in o.tunables.items()},
    }
    elapsed = _span(o, done) if done.any() else 0.0
    out |= {"elapsed_s": elapsed, **_figures(o, done, elapsed)}
    for name, op in (("read", READ), ("write", WRITE)):
        which = done & (o.op == op)
        if which.any():
            out[name] = _figures(o, which, elapsed) | {"lat_ms": _latency(o.complete_ns[which] - o.issue_ns[which])}
    out["tasks"] = _task_rows(o, done)
    groups = _groups(o, done)
    if len(groups) != len({t["task"] for t in out["tasks"]}):
        out["groups"] = groups
    if groups:
        out["fairness_jain"] = jain(np.array([g["throughput_MBps"] for g in groups]))
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
            "A": waits, "A_S": t["a_success"], "A_F": t["a_fail"], "A_other": t["a_other"],
            "T_ms": (t["t_success_ns"] + t["t_fail_ns"]) / 1e6, "T_S_ms": t["t_success_ns"] / 1e6,
            "T_F_ms": t["t_fail_ns"] / 1e6, "T_other_ms": t["t_other_ns"] / 1e6,
        }
    if o.stats:
        out["stats"] = dict(o.stats)
    return out


def document(workload: str, drive: str, seed: int, results: list[Json], **more: Any) -> Json:
    """The whole JSON document."""
    return {"schema": SCHEMA, "workload": workload, "drive": drive, "seed": seed, **more, "results": results}
