# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Loads on which the better of two schedulers is known: the second serves the same requests in other times, drawn anew."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task
from headwaiter.judge.verdict import answer
from headwaiter.study.schema import Answer, Criterion
from headwaiter.study.trial import Trial, measure
from headwaiter.study.variants import Variant

MS = 1_000_000
DRIVE = ConstantDrive(5 * MS)


def closed(seed: int, n: int, tasks: int, think_ms: float, share: float = 0.2) -> Forest:
    """Tasks that read and think in turn. Service times vary by `share`, and are longer for a while, then shorter."""
    rng = np.random.default_rng(seed)
    task = np.tile(np.arange(tasks), n // tasks)
    n = len(task)
    return Forest(
        tasks=[Task(i, f"t{i}", i) for i in range(tasks)],
        time_ns=np.where(np.arange(n) < tasks, np.arange(n) * MS, 0).astype(np.int64),
        parent=np.maximum(np.arange(n) - tasks, -1),
        delay_ns=(rng.exponential(think_ms, n) * MS).astype(np.int64),
        task=task.astype(np.uint32),
        op=np.zeros(n, np.uint8),
        flags=np.ones(n, np.uint8),
        sector=rng.integers(0, 1 << 30, n).astype(np.uint64) * 8,
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
        service_ns=service(rng, n, share),
    )


def service(rng: np.random.Generator, n: int, share: float) -> NDArray[np.int64]:
    """5 ms on average; neighbours are alike."""
    slow = np.repeat(rng.normal(0, share, n // 200 + 1), 200)[:n]
    return np.asarray(5 * MS * np.exp(slow + rng.normal(0, share, n) - share**2), np.int64)


def opened(seed: int, n: int, busy: float) -> Forest:
    """Requests at random times that keep the drive busy for such a share of the time, if that is possible."""
    rng = np.random.default_rng(seed)
    load = closed(seed, n, 1, 1)
    arrives = np.cumsum(rng.exponential(5 / busy, n) * MS).astype(np.int64)
    return dataclasses.replace(load, time_ns=arrives, parent=np.full(n, -1, np.int64), delay_ns=np.zeros(n, np.int64))


def trial(name: str, load: Forest, runs: int = 0) -> Trial:
    """Run it under the first scheduler that there is: the load makes the difference."""
    return measure(Variant("noop", name), DRIVE, load, Options(), runs)


def judged(first: Forest, second: Forest, is_open: bool = False, **more: Any) -> Answer:
    """The answer about two schedulers, "was" and "new", of which the first is in use."""
    found = (trial("was", first), trial("new", second))
    criterion: Criterion = "latency" if is_open else "waited"
    return answer(found, criterion, is_open=is_open, current="was", **more)


def faster(load: Forest, seed: int, factor: float, share: float = 0.2) -> Forest:
    """Return the load with service times drawn anew, and divided by the factor."""
    times = service(np.random.default_rng([seed, 7]), len(load.time_ns), share)
    return dataclasses.replace(load, service_ns=(times / factor).astype(np.int64))
