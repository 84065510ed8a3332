# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The main job: one workload under many schedulers, ranked, with the reason in one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from .results import Json, summarise
from .sim import Drive, Load, Options, simulate

EVEN = 0.02
"""Two runs that differ by less than this share are called even."""
PACED = 0.05
"""If throughputs spread by less than this share, the load sets the pace, and latency is what differs."""

RANKINGS: dict[str, tuple[str, Callable[[Json], float]]] = {
    "throughput": ("throughput", lambda r: -float(r["throughput_MBps"])),
    "elapsed": ("elapsed time", lambda r: float(r["elapsed_s"])),
    "latency": ("mean read latency", lambda r: _read_latency(r, "mean")),
    "p99": ("99th percentile of read latency", lambda r: _read_latency(r, "p99")),
    "max": ("longest read", lambda r: _read_latency(r, "max")),
    "fairness": ("fairness", lambda r: -float(r.get("fairness_jain", 0.0))),
}


def _read_latency(r: Json, which: str) -> float:
    return float((r.get("read") or r.get("write") or {"lat_ms": {which: 0.0}})["lat_ms"][which])


def run_all(
    schedulers: Sequence[str],
    drive: Drive,
    load: Load,
    tunables: Mapping[str, Mapping[str, int]],
    options: Options,
    progress: Callable[[str, int], None] | None = None,
) -> list[Json]:
    """A result per scheduler, in the order given; as many at once as there are processors.

    `progress(scheduler, completed)` is called from the workers' threads.
    """

    def one(name: str) -> Json:
        tick = (lambda done: progress(name, done)) if progress else None
        result = summarise(simulate(name, drive, load, tunables.get(name), options, progress=tick))
        if progress:
            progress(name, int(result["requests"]))
        return result

    # The simulator runs outside Python's lock, so threads are enough.
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, schedulers))


def rank(results: Sequence[Json], by: str | None) -> tuple[str, list[Json]]:
    """(criterion, results best first).

    Without a criterion: throughput, unless the load itself sets the pace and all have nearly the same; then mean read
    latency.
    """
    if by is None:
        rates = [float(r["throughput_MBps"]) for r in results] or [0.0]
        by = "throughput" if max(rates) - min(rates) > PACED * max(rates) else "latency"
    # Nearly even ones go by latency, so that noise in the last digit does not decide.
    _, key = RANKINGS[by]
    return by, sorted(results, key=lambda r: (key(r), _read_latency(r, "mean"), str(r["scheduler"])))


def _share(r: Json, part: str) -> float:
    return float(r["disk"].get(f"{part}_s", 0.0)) / r["elapsed_s"] if r["elapsed_s"] else 0.0


def _names(rows: Sequence[Json]) -> str:
    names = [str(r["scheduler"]) for r in rows]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _versus(best: Json, other: Json) -> str:
    """Why `best` did better than `other`, from where the disk's time went."""
    waits = best.get("anticipation", {})
    a, success = waits.get("A", 0), waits.get("A_S", 0)
    b_seeks, o_seeks = best["disk"]["seeks"], other["disk"]["seeks"]
    reasons = []
    if a and success and o_seeks > b_seeks * 1.1:
        reasons.append(
            f"it held the head for the next request of the same reader {a} times ({success} times rightly)"
            f" and so made {b_seeks} seeks where {other['scheduler']} made {o_seeks}"
        )
    elif o_seeks > b_seeks * 1.1:
        reasons.append(f"its order of service took {b_seeks} seeks where {other['scheduler']}'s took {o_seeks}")
    elif best["dispatched"] < 0.9 * other["dispatched"]:
        reasons.append(f"it merged the load into {best['dispatched']} requests, against {other['dispatched']}")
    away = {p: _share(other, p) - _share(best, p) for p in ("seek", "rotation")}
    lost = max(away, key=lambda p: away[p])
    if away[lost] > 0.03:
        word = {"seek": "seeking", "rotation": "waiting for the platter"}[lost]
        reasons.append(f"the disk spent {_share(best, lost):.0%} of the time {word}, against {_share(other, lost):.0%}")
    if not reasons:
        idle = float(other["disk"]["idle_s"]) - float(best["disk"]["idle_s"])
        if idle > 0.02 * other["elapsed_s"]:
            mine, theirs = best["disk"]["idle_s"], other["disk"]["idle_s"]
            reasons.append(f"it left the disk idle for {mine:.2f} s, against {theirs:.2f} s")
        else:
            reasons.append("it served the requests that were waited for earlier")
    return " and ".join(reasons)


def explain(by: str, ranked: Sequence[Json]) -> str:
    """One plain sentence: who won by the criterion, against whom, and why."""
    if len(ranked) < 2:
        return f"Only {_names(ranked)} ran: there is nothing to compare."
    title, key = RANKINGS[by]
    best, last = ranked[0], ranked[-1]
    top, bottom = key(best), key(last)
    if abs(bottom - top) <= EVEN * max(abs(top), abs(bottom)):
        return f"No significant difference: all {len(ranked)} are within {EVEN:.0%} of each other by {title}."
    even = [r for r in ranked if abs(key(r) - top) <= EVEN * abs(top)]
    rest = [r for r in ranked if r not in even]
    runner = rest[0]
    factor = key(runner) / top if top > 0 else top / key(runner) if key(runner) else float("inf")
    margin = f"{factor:.1f} times" if factor >= 1.95 else f"{factor - 1:.0%}"
    verb = "are best, even with each other" if len(even) > 1 else "is best"
    ahead = f"{margin} ahead of {runner['scheduler']} by {title}"
    return f"{_names(even)} {verb}, {ahead}; {best['scheduler']} compared with {last['scheduler']}: {_versus(best, last)}."
