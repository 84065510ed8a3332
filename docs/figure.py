# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draw docs/head.png: where the disk's head goes when two programs each read a file, under three schedulers.

    python docs/figure.py [FILE]

The picture holds its figures as text, too, so that `docs/generate.py --check` sees whether the simulator still says the same.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from PIL import Image

from headwaiter.drives import find_drive
from headwaiter.drives.choose import DEFAULT_DRIVE, open_drive
from headwaiter.engine.sim import Forest, Options, Task, simulate
from headwaiter.study.results import summarise
from headwaiter.study.schema import Result

mpl.use("agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / "head.png"
SCHEDULERS = ("deadline", "cfq-slice", "as")
READS = 4000
READ_SECTORS = 8
SHOWN_MS = 900.0
THINK_NS = 100_000


def two_readers(sectors: int) -> Forest:
    """Two tasks that read one block after another, a third of the drive apart, and think between."""
    n = 2 * READS
    i = np.arange(n)
    task = (i % 2).astype(np.uint32)
    start = np.array([sectors // 20, sectors // 20 + sectors // 3]) // READ_SECTORS * READ_SECTORS
    return Forest(
        tasks=[Task(1, "reader 1", 0), Task(2, "reader 2", 1)],
        time_ns=np.zeros(n, np.int64),
        parent=np.where(i < 2, -1, i - 2).astype(np.int64),
        delay_ns=np.full(n, THINK_NS),
        task=task,
        op=np.zeros(n, np.uint8),
        flags=np.ones(n, np.uint8),
        sector=(start[task] + i // 2 * READ_SECTORS).astype(np.uint64),
        sectors=np.full(n, READ_SECTORS, np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


def caption() -> str:
    """What is shown, for the README."""
    rpm = find_drive(DEFAULT_DRIVE).data["mechanics"]["rpm"]
    return (
        f"*Two programs each read a file, {READ_SECTORS // 2} KiB at a time, from a {rpm:g} rpm disk. A scheduler that never "
        f"waits seeks away in the {THINK_NS / 1e6:g} ms\nthat a program needs to ask for its next block. "
        "(`.venv/bin/python docs/figure.py` draws this.)*\n"
    )


@cache
def dispatches() -> dict[str, tuple[Result, np.ndarray, np.ndarray]]:
    """Of each scheduler its figures, and when (ms) and where (GiB) it dispatched."""
    drive = open_drive(DEFAULT_DRIVE)
    load = two_readers(drive.sectors)
    found = {}
    for name in SCHEDULERS:
        with tempfile.TemporaryDirectory() as tmp:
            log = Path(tmp) / "log.csv"
            result = summarise(simulate(name, drive, load, options=Options(), log=log))
            with log.open(encoding="utf-8") as f:
                rows = [r for r in csv.DictReader(f) if r["event"] == "dispatch"]
        ms = np.array([int(r["time_ns"]) / 1e6 for r in rows])
        gib = np.array([int(r["sector"]) * 512 / 2**30 for r in rows])
        found[name] = (result, ms, gib)
    return found


def figures() -> str:
    """A line for each scheduler: as printed, as above its part of the picture, and as the picture holds it as text."""
    return "\n".join(f"{name}: {r.throughput_mbps:.1f} MB/s, {r.disk.seeks} seeks"
                     for name, (r, _, _) in dispatches().items())  # fmt: skip


def is_current() -> bool:
    """Does the picture show what the simulator says now?"""
    with Image.open(PICTURE) as picture:
        return bool(picture.info.get("Description") == figures())


def draw(target: Path = PICTURE) -> None:
    """Make the picture."""
    figure, axes = plt.subplots(1, len(SCHEDULERS), figsize=(11, 2.9), sharey=True)
    for axis, title, (_, ms, gib) in zip(axes, figures().splitlines(), dispatches().values(), strict=True):
        shown = ms <= SHOWN_MS
        axis.plot(ms[shown], gib[shown], lw=0.5, color="#9bb7d4", zorder=1)
        axis.scatter(ms[shown], gib[shown], s=3, color="#1f4e79", zorder=2)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("ms")
    axes[0].set_ylabel("head at (GiB)")
    figure.tight_layout()
    figure.savefig(target, dpi=110, metadata={"Software": None, "Description": figures()})


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
    print(figures())
