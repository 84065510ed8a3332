# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draw docs/head.png: where the disk's head goes when two programs each read a file, under three schedulers.

    python docs/figure.py [FILE]

The picture holds its figures as text, too, so that `docs/generate.py --check` sees whether the simulator still says the same.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from headwaiter.drives import find_drive
from headwaiter.drives.choose import DEFAULT_DRIVE, open_drive
from headwaiter.engine.sim import Forest, Options, Task, simulate
from headwaiter.judge.detail import Head, head
from headwaiter.report.head import caption as title
from headwaiter.report.head import draw_heads
from headwaiter.study.results import summarise
from headwaiter.study.schema import Result
from headwaiter.study.variants import Variant

PICTURE = Path(__file__).parent / "head.png"
SCHEDULERS = ("deadline", "cfq-slice", "as")
READS = 4000
READ_SECTORS = 8
SHOWN_MS = 700.0
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


@cache
def runs() -> tuple[tuple[Result, Head], ...]:
    """Return the figures of each scheduler, and where the head went."""
    drive = open_drive(DEFAULT_DRIVE)
    load, options = two_readers(drive.sectors), Options()
    return tuple(
        (summarise(simulate(name, drive, load, options=options)), head(Variant(name, name), drive, load, options))
        for name in SCHEDULERS
    )


def caption() -> str:
    """What is shown, for the README."""
    rpm = find_drive(DEFAULT_DRIVE).data["mechanics"]["rpm"]
    figures = "; ".join(title(result) for result, _ in runs())
    return (
        f"*Two programs each read a file, {READ_SECTORS // 2} KiB at a time, from a {rpm:g} rpm disk. A scheduler that never "
        f"waits seeks away in the {THINK_NS / 1e6:g} ms\nthat a program needs to ask for its next block; one that waits (shaded) "
        f"stays. {figures}.\n"
        "(`.venv/bin/python docs/figure.py` draws this; `headwaiter run WORKLOAD --plot FILE` draws a run of yours.)*\n"
    )


def is_current() -> bool:
    """Does the picture show what the simulator says now?"""
    with Image.open(PICTURE) as picture:
        return bool(picture.info.get("Description") == "\n".join(title(result) for result, _ in runs()))


def draw(target: Path = PICTURE) -> None:
    """Make the picture."""
    draw_heads(target, runs(), SHOWN_MS)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
    print(*(title(result) for result, _ in runs()), sep="\n")
