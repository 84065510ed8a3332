# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hand-worked scenarios: a few lines of load, and the dispatches and waits that must come of it.

Workload lines:
    one NAME TASK R|W SECTOR SECTORS [at=MS] [after=NAME+MS] [svc=MS] [prio=rt/0|be/4|idle] [async]
    batch TASK R|W SECTOR SECTORS count=N [from=K] [at=MS] …   (TASK1, TASK2, … contiguous, all at once; named from K)
    stream TASK R|W SECTOR SECTORS think=MS [at=MS] [count=N] [svc=MS] [prio=…]   (TASK1, TASK2, … one after the other)
Writes are asynchronous unless they say `sync`. Expectations: `MS:NAME`, or `MS+STEP:A1..A9` for a row of them. Reasons, one for
each dispatch: `REASON`, or `REASON*9`.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate

MS = 1_000_000


def ns(text: str) -> int:
    return round(float(text) * MS)


def ioprio(text: str) -> int:
    name, _, level = text.partition("/")
    return {"none": 0, "rt": 1, "be": 2, "idle": 3}[name] << 13 | int(level or 0)


@dataclass
class Item:
    name: str
    task: str
    op: int
    sector: int
    sectors: int
    at: int
    after: str | None
    delay: int
    svc: int
    prio: int
    flags: int


def parse(workload: str, default_svc: int) -> list[Item]:
    items: list[Item] = []
    for raw in workload.strip().splitlines():
        words = raw.split("#")[0].split()
        if not words:
            continue
        kind, words = words[0], words[1:]
        plain = [w for w in words if "=" not in w and w not in ("sync", "async")]
        option = dict(w.split("=", 1) for w in words if "=" in w)
        name = plain.pop(0)
        task = plain.pop(0) if kind == "one" else name
        op = {"R": 0, "W": 1}[plain[0]]
        sector, sectors = int(plain[1]), int(plain[2])
        flags = 1 if (op == 0 or "sync" in words) and "async" not in words else 0
        svc = ns(option["svc"]) if "svc" in option else default_svc
        prio = ioprio(option.get("prio", "none"))
        at = ns(option.get("at", "0"))
        if kind == "one":
            after, _, delay = option.get("after", "").partition("+")
            items.append(Item(name, task, op, sector, sectors, at, after or None, ns(delay or "0"), svc, prio, flags))
        elif kind == "stream":
            think = ns(option.get("think", "0"))
            for i in range(int(option["count"])):
                items.append(
                    Item(
                        f"{name}{i + 1}",
                        task,
                        op,
                        sector + i * sectors,
                        sectors,
                        at,
                        f"{name}{i}" if i else None,
                        think,
                        svc,
                        prio,
                        flags,
                    )
                )
        elif kind == "batch":
            first = int(option.get("from", "1"))
            items += [
                Item(f"{name}{first + i}", task, op, sector + i * sectors, sectors, at, None, 0, svc, prio, flags)
                for i in range(int(option["count"]))
            ]
        else:
            raise ValueError(raw)
    return items


def expand(expect: str) -> list[tuple[int, str]]:
    out: list[tuple[int, str]] = []
    for word in expect.split():
        when, names = word.split(":")
        start, _, step = when.partition("+")
        if ".." in names:
            first, last = names.split("..")
            stem = first.rstrip("0123456789")
            numbers = range(int(first[len(stem) :]), int(re.sub(r"\D+", "", last[len(stem) :])) + 1)
            out += [(ns(start) + i * ns(step), f"{stem}{k}") for i, k in enumerate(numbers)]
        else:
            out.append((ns(start), names))
    return out


def repeated(reasons: str) -> list[str]:
    out: list[str] = []
    for word in reasons.split():
        reason, _, times = word.partition("*")
        out += [reason] * int(times or 1)
    return out


@dataclass
class Ran:
    dispatches: list[tuple[int, str]]
    waits: list[tuple[int, int]]
    reasons: list[str]
    stats: dict[str, int]
    log: list[dict[str, str]]


def run(scenario: dict[str, Any], tmp_path: Path) -> Ran:
    items = parse(scenario["workload"], ns(str(scenario.get("service_ms", 5))))
    names = [i.name for i in items]
    index = {n: i for i, n in enumerate(names)}
    assert len(index) == len(names), "names must differ"
    task_names = list(dict.fromkeys(i.task for i in items))
    prios = {i.task: i.prio for i in items}
    shares = scenario.get("shares", {})
    exits = scenario.get("exits", [])
    tasks = [Task(k, t, k, prios[t], shares.get(t, 0), t in exits) for k, t in enumerate(task_names)]
    forest = Forest(
        tasks=tasks,
        time_ns=np.array([i.at for i in items], np.int64),
        parent=np.array([index[i.after] if i.after else -1 for i in items], np.int64),
        delay_ns=np.array([i.delay for i in items], np.int64),
        task=np.array([task_names.index(i.task) for i in items], np.uint32),
        op=np.array([i.op for i in items], np.uint8),
        flags=np.array([i.flags for i in items], np.uint8),
        sector=np.array([i.sector for i in items], np.uint64),
        sectors=np.array([i.sectors for i in items], np.uint32),
        ioprio=np.array([i.prio for i in items], np.uint16),
        service_ns=np.array([i.svc for i in items], np.int64),
    )
    log = tmp_path / "log.csv"
    scheduler = find(scenario["scheduler"])
    settings: dict[str, Setting] = {k: scheduler.tunables[k].parse(k, str(v)) for k, v in scenario.get("set", {}).items()}
    settings |= {k: scheduler.tables[k].parse(k, v.encode()) for k, v in scenario.get("tables", {}).items()}
    options = Options(
        merging=scenario.get("merge", False), queue_depth=scenario.get("depth", 1), pull_ahead=scenario.get("pull_ahead", False)
    )
    outcome = simulate(scheduler.name, ConstantDrive(5 * MS), forest, settings, options, log)
    with log.open() as f:
        rows = list(csv.DictReader(f))
    # Requests are told by their place: a scenario's requests differ in task and first sector, or are merged.
    by_place = {(task_names.index(i.task), i.sector): i.name for i in items}
    dispatches = [
        (int(r["time_ns"]), by_place.get((int(r["task"]), int(r["sector"])), f"{r['sector']}+{r['sectors']}"))
        for r in rows
        if r["event"] == "dispatch"
    ]
    begins = [int(r["time_ns"]) for r in rows if r["event"] == "wait_begin"]
    ends = [int(r["time_ns"]) for r in rows if r["event"] == "wait_end"]
    reasons = [r["reason"] for r in rows if r["event"] == "dispatch"]
    return Ran(dispatches, list(zip(begins, ends, strict=True)), reasons, dict(outcome.stats), rows)


def show(dispatches: list[tuple[int, str]]) -> str:
    return " ".join(f"{t / MS:g}:{name}" for t, name in dispatches)
