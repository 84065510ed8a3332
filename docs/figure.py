# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draw docs/head.png: where the disk's head goes when two programs each read a file, under three schedulers.

    python docs/figure.py [FILE]
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

from headwaiter.device import DEFAULT_DRIVE, open_drive
from headwaiter.results import summarise
from headwaiter.sim import Forest, Options, Task, drive_sectors, simulate

mpl.use("agg")
from matplotlib import pyplot as plt

SCHEDULERS = ("deadline", "cfq-slice", "as")
READS = 4000
SHOWN_MS = 900.0
THINK_NS = 100_000


def two_readers(sectors: int) -> Forest:
    """Two tasks that read 4 KiB after 4 KiB, a third of the drive apart, and think 0.1 ms between."""
    n = 2 * READS
    i = np.arange(n)
    task = (i % 2).astype(np.uint32)
    start = np.array([sectors // 20, sectors // 20 + sectors // 3]) // 8 * 8
    return Forest(
        tasks=[Task(1, "reader 1", 0), Task(2, "reader 2", 1)],
        time_ns=np.zeros(n, np.int64),
        parent=np.where(i < 2, -1, i - 2).astype(np.int64),
        delay_ns=np.full(n, THINK_NS),
        task=task,
        op=np.zeros(n, np.uint8),
        flags=np.ones(n, np.uint8),
        sector=(start[task] + i // 2 * 8).astype(np.uint64),
        sectors=np.full(n, 8, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "head.png"
    drive = open_drive(DEFAULT_DRIVE)
    load = two_readers(drive_sectors(drive))
    figure, axes = plt.subplots(1, len(SCHEDULERS), figsize=(11, 2.9), sharey=True)
    for axis, name in zip(axes, SCHEDULERS, strict=True):
        with tempfile.TemporaryDirectory() as tmp:
            log = Path(tmp) / "log.csv"
            result = summarise(simulate(name, drive, load, options=Options(), log=log))
            with log.open() as f:
                rows = [r for r in csv.DictReader(f) if r["event"] == "dispatch"]
        ms = np.array([int(r["time_ns"]) / 1e6 for r in rows])
        gib = np.array([int(r["sector"]) * 512 / 2**30 for r in rows])
        shown = ms <= SHOWN_MS
        axis.plot(ms[shown], gib[shown], lw=0.5, color="#9bb7d4", zorder=1)
        axis.scatter(ms[shown], gib[shown], s=3, color="#1f4e79", zorder=2)
        axis.set_title(f"{name}: {result['throughput_MBps']:.1f} MB/s, {result['disk']['seeks']} seeks", fontsize=10)
        axis.set_xlabel("ms")
        print(f"{name}: {result['throughput_MBps']:.2f} MB/s, {result['disk']['seeks']} seeks")
    axes[0].set_ylabel("head at (GiB)")
    figure.tight_layout()
    figure.savefig(target, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
