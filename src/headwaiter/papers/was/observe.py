# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Observation: whom Linux's anticipatory scheduler waits for, and how long, when it waits up to M for everybody.

A run in the simulator is recorded once (watch()); what the waits come to in each class (Observation.matrix()) can then be counted
for any number of configurations.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.engine.sim import Drive, Load, Options, simulate
from headwaiter.papers.was.classify import Reads, classify
from headwaiter.papers.was.config import MAX_US, Config
from headwaiter.papers.was.matrix import Matrix, tabulate
from headwaiter.traces.fields import split
from headwaiter.traces.source import Source

SCHEDULER = "as"
RULES = {"cooperation": 1}
"""Those of Linux 2.6.12 to 2.6.32, which WAS builds on."""
TICK_US = 1000
BUCKET_US = 1000

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class ObservedWaits:
    """Waits that were met by a read, or in vain; columns of shape (n,). Those that something else ended are left out."""

    read: I64
    """Index of the last read that its process had made, -1: none."""
    elapsed_ns: I64
    """From the completion, in the scheduler's clock, to the end of the wait."""
    met: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.read)


@dataclass(frozen=True)
class Observation:
    """An observation of a scheduler: reads as they reached it, and its waits of up to max_us."""

    reads: Reads
    waits: ObservedWaits
    max_us: int
    name: str

    def classes(self, config: Config) -> I64:
        """The class, from 1, of the process of each wait: shape (len(waits),)."""
        if not len(self.reads):
            return np.full(len(self.waits), config.classes, np.int64)
        return np.where(self.waits.read >= 0, classify(config, self.reads)[self.waits.read], config.classes)

    def matrix(self, config: Config, bucket_us: int = BUCKET_US) -> Matrix:
        """A, by the classes of a configuration."""
        waits = (self.classes(config), self.waits.elapsed_ns, self.waits.met)
        counts = tabulate(config.classes, buckets(self.max_us, bucket_us), bucket_us, waits)
        return Matrix(counts, bucket_us, config.classifier, {"observed": self.name})


def buckets(max_us: int, bucket_us: int) -> int:
    """Return how many of them M has. Problem if it is no whole number of them."""
    if bucket_us < 1 or max_us % bucket_us or not max_us:
        raise Problem(f"a bucket of {bucket_us} us: the longest wait, {max_us} us, must be a multiple of it")
    return max_us // bucket_us


def watch(
    name: str,
    drive: Drive,
    load: Load,
    options: Options,
    max_us: int = MAX_US,
    bucket_us: int = BUCKET_US,
    progress: Callable[[int], None] | None = None,
) -> Observation:
    """Run `load` under the anticipatory scheduler with waits of up to max_us, a multiple of 1000, and record it.

    Where buckets are narrower than a tick, times are those of the ns clock by which `was` waits then, else those of its ticks.
    """
    buckets(max_us, bucket_us)
    if max_us % 1000:
        raise Problem(f"the longest wait must be whole milliseconds, not {max_us} us")
    tunables = {**RULES, "antic_expire": max_us // 1000}
    with tempfile.TemporaryDirectory(prefix="headwaiter-was-") as folder:
        log = Path(folder) / "log.csv"
        try:
            done = simulate(SCHEDULER, drive, load, tunables, options, log, progress).totals["completed"]
            if progress:
                progress(done)
            return read_log(log, name, max_us, bucket_us % TICK_US == 0)
        except Problem as e:  # nobody knows the file by its name
            raise Problem(str(e).replace(str(log), f"{name}: its log of events, in {Path(folder).parent}")) from None


def read_log(path: Path, name: str, max_us: int, ticks: bool = True) -> Observation:
    """What an event log of such a run tells. ticks: a wait begins with the tick of the completion, not with the completion."""
    table = split(Source(path), 8, delimiter=",", skip_lines=1)
    kind = table.packed(1)
    event = {word: kind == int.from_bytes(word.encode(), "big") for word in ("insert", "complete", "wait_end")}
    begins, ends = np.flatnonzero(kind == np.uint64(2**64 - 1)), np.flatnonzero(event["wait_end"])
    ends = ends[: len(begins)]
    begins = begins[: len(ends)]
    is_read = table.packed(4) == ord("R")
    time_ns = table.integers(0, "time_ns")

    def tasks(rows: I64) -> I64:
        return table.rows(rows).integers(3, "task")

    reads, done = np.flatnonzero(event["insert"] & is_read), np.flatnonzero(event["complete"])
    read_task, done_task, wait_task = tasks(reads), tasks(done), tasks(begins)
    latest_done = _latest(done, done_task, begins, wait_task)
    tick_ns = TICK_US * 1000
    done_ns = np.where(latest_done >= 0, time_ns[done[latest_done]], time_ns[begins])
    tick_elapsed_ns = time_ns[ends] - done_ns // tick_ns * tick_ns
    elapsed_ns = tick_elapsed_ns if ticks else time_ns[ends] - done_ns
    # The read that ends a wait stands right before its end.
    ending = np.full(len(kind), -1, np.int64)
    ending[reads] = read_task
    met = (ending[ends - 1] == wait_task) & (ends - 1 > begins - 1) & (time_ns[ends - 1] == time_ns[ends])
    vain = ~met & (tick_elapsed_ns >= max_us * 1000)
    kept = met | vain
    return Observation(
        Reads(read_task, time_ns[reads], table.rows(reads).integers(5, "sector")),
        ObservedWaits(_latest(reads, read_task, begins, wait_task)[kept], elapsed_ns[kept], met[kept]),
        max_us,
        name,
    )


def _latest(rows: I64, task: I64, at: I64, whose: I64) -> I64:
    """For each row of `at` the index into `rows` (ascending) of the last one before it of the same task, or -1."""
    if not len(rows):
        return np.full(len(at), -1, np.int64)
    order = np.argsort(task, kind="stable")
    span = int(max(rows[-1], at.max(initial=0))) + 1
    key = task[order] * span + rows[order]
    found = np.searchsorted(key, whose * span + at) - 1
    index = order[np.maximum(found, 0)]
    return np.where((found >= 0) & (task[index] == whose), index, -1)


def joined(observations: Sequence[Observation]) -> Observation:
    """Several as one: no two of them share a process."""
    first, *rest = observations
    for other in rest:
        if other.max_us != first.max_us:
            raise Problem(f"{first.name} was observed with waits of up to {first.max_us} us, {other.name} of {other.max_us} us")
        above = int(first.reads.task.max(initial=-1)) + 1
        shift = len(first.reads)
        reads = Reads(
            np.concatenate([first.reads.task, other.reads.task + above]),
            np.concatenate([first.reads.time_ns, other.reads.time_ns]),
            np.concatenate([first.reads.sector, other.reads.sector]),
        )
        read = other.waits.read
        waits = ObservedWaits(
            np.concatenate([first.waits.read, np.where(read >= 0, read + shift, -1)]),
            np.concatenate([first.waits.elapsed_ns, other.waits.elapsed_ns]),
            np.concatenate([first.waits.met, other.waits.met]),
        )
        first = replace(first, reads=reads, waits=waits, name=f"{first.name}, {other.name}")
    return first
