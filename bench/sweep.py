# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Cells a second of `headwaiter sweep` by the number of workers, where processors' time goes, and memory of workers.

    python bench/sweep.py                       2,000 cells with one worker, then with two
    python bench/sweep.py -c 500 1 2 4          so many cells, and these numbers of workers

The clock starts when the first cells are done, so that starting workers does not count. Seconds are those of this machine, now.
"beside" is what the command itself takes of a processor for what its workers take: Dask's scheduler, and writing Parquet.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from rich import box
from rich.table import Table

import headwaiter
from headwaiter.report.terminal import console

WORKLOADS = ["readers-1", "readers-2", "readers-4", "readers-8"]
VARIANTS = 10
HEADS = ("workers", "cells", "seconds", "cells/s", "times", "workers' s", "beside", "MiB, first half", "MiB, second half")
DRIVES = ["barracuda-80g", "wd-re-4tb"]


@dataclass
class Watched:
    """A sweep while it runs: (time, cells done, processor time of this process, of its workers, memory of the largest worker)."""

    me: psutil.Process = field(default_factory=psutil.Process)
    workers: list[psutil.Process] = field(default_factory=list)
    seen: list[tuple[float, int, float, float, int]] = field(default_factory=list)

    def look(self, _: str, cells: int) -> None:
        """Called after each batch."""
        if not self.workers:
            self.workers = self.me.children(recursive=True)
        workers = sum(sum(one.cpu_times()[:2]) for one in self.workers)
        memory = max(one.memory_info().rss for one in self.workers)
        self.seen.append((time.monotonic(), cells, sum(self.me.cpu_times()[:2]), workers, memory))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("workers", nargs="*", type=int, default=[1, 2], help="numbers of workers")
    parser.add_argument("-c", "--cells", type=int, default=2000, help="cells (default: 2000)")
    given = parser.parse_args()
    asked = {
        "workloads": WORKLOADS, "drives": DRIVES,
        "schedulers": ["mq-deadline", "none", "bfq", "as"],
        "tunables": {"bfq": {"low_latency": [0, 1], "slice_idle": [0, 8]}, "as": {"antic_expire": [0, 2, 6, 10]}},
        "seeds": max(1, given.cells // (len(WORKLOADS) * len(DRIVES) * VARIANTS)),
    }  # fmt: skip
    table = Table(box=box.SIMPLE_HEAD)
    for head in HEADS:
        table.add_column(head, justify="right")
    one: float | None = None
    for workers in given.workers:
        watched = Watched()
        with tempfile.TemporaryDirectory() as folder:
            frame = headwaiter.sweep(asked, Path(folder) / "results", workers=workers, progress=watched.look)
        first, last = watched.seen[0], watched.seen[-1]
        took, cells = last[0] - first[0], last[1] - first[1]
        own, others = last[2] - first[2], last[3] - first[3]
        one = one or cells / took
        memory = [seen[4] / 2**20 for seen in watched.seen]
        half = len(memory) // 2
        table.add_row(
            str(workers), f"{len(frame):,}", f"{took:.0f}", f"{cells / took:.1f}", f"{cells / took / one:.2f}", f"{others:.0f}",
            f"{100 * own / others:.0f}%", f"{max(memory[:half]):.0f}", f"{max(memory[half:]):.0f}",
        )  # fmt: skip
    console().print(table)
    print(f"{os.cpu_count()} processors")


if __name__ == "__main__":
    main()
