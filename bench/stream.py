# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Requests a second and memory of `headwaiter run --stream`, or `compare`, by the length of a compressed recording.

    python bench/stream.py                      10^5 and 10^6 requests
    python bench/stream.py 10000000 -s bfq      any number, under another scheduler
    python bench/stream.py --windows            and what `compare` takes, which reads windows

The recording is generated: eight programs on an NVMe drive, a request a millisecond. Seconds are those of this machine, now.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich import box
from rich.table import Table

from headwaiter.report.terminal import console

BLOCK = 100_000
SECTORS = 1 << 27


def generate(path: Path, count: int) -> None:
    """A recording of so many requests, as native CSV."""
    dice = random.Random(1)

    def row(i: int) -> str:
        how = "R,1" if i % 3 else "W,0"
        return f".{i % 1000:03d},{dice.randrange(8)},{how},{dice.randrange(SECTORS // 8) * 8},{dice.choice((8, 16, 128))}\n"

    rows = [row(i) for i in range(min(BLOCK, count))]
    with gzip.open(path, "wt", compresslevel=1) as out:
        out.write("time_s,task,op,sync,sector,sectors\n")
        for first in range(0, count, BLOCK):
            out.write("".join([f"{(first + i) // 1000}{row}" for i, row in enumerate(rows[: count - first])]))


HOW = {
    "disk": ("run", "--stream", "--replay", "open"),
    "memory": ("run", "--whole", "--seeds", "0", "--replay", "open"),
    "windows": ("compare",),
}
"""The command by where the recording is while it is used."""


def measure(path: Path, scheduler: str, where: str) -> tuple[float, float]:
    """(seconds, MiB at most) of a command."""
    name, *options = HOW[where]
    command = [sys.executable, "-m", "headwaiter", name, str(path), "-s", scheduler, "-d", "nvme-ssd", *options]
    begin = time.monotonic()
    ran = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(ran.pid, 0)
    if status:
        sys.exit(f"{path}: the run failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return time.monotonic() - begin, used.ru_maxrss * unit / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("counts", nargs="*", type=int, default=[10**5, 10**6], help="numbers of requests")
    parser.add_argument("-s", "--sched", default="mq-deadline")
    parser.add_argument("--memory", action="store_true", help="run with the whole recording in memory, too")
    parser.add_argument("--windows", action="store_true", help="compare windows of it, too")
    given = parser.parse_args()
    table = Table(box=box.SIMPLE_HEAD)
    for head in ("requests", "file, MB", "from", "seconds", "requests/s", "memory, MiB"):
        table.add_column(head, justify="left" if head == "from" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for count in given.counts:
            path = Path(folder) / "recording.csv.gz"
            generate(path, count)
            for where in ("disk", *("memory",) * given.memory, *("windows",) * given.windows):
                took, mib = measure(path, given.sched, where)
                size = f"{path.stat().st_size / 1e6:.0f}"
                table.add_row(f"{count:,}", size, where, f"{took:.0f}", f"{count / took:,.0f}", f"{mib:.0f}")
    console().print(table)


if __name__ == "__main__":
    main()
