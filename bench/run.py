# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make bench: simulated requests a second and instructions a request, per policy and per drive model.

Seconds are those of this machine, now: compare within one table. Instructions are counted by valgrind and repeatable;
they are the difference of two runs of different length, so that start-up does not count.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich import box
from rich.table import Table

from headwaiter.drives import find_drive
from headwaiter.engine.schedulers import catalogue
from headwaiter.report.terminal import console

FULL = 1_000_000
DRIVES = "barracuda-80g,wd-re-4tb,sata-ssd,nvme-ssd,samsung-980-pro"
SHORT, LONG = 20_000, 60_000


def seconds(bench: Path, args: list[str]) -> float:
    """Processor seconds of the run itself."""
    return float(subprocess.run([bench, *args], check=True, capture_output=True, text=True).stdout)


def instructions(bench: Path, args: list[str]) -> int:
    """Instructions of the whole process."""
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp}/out", bench, *args],
            check=True,
            capture_output=True,
            text=True,
        )
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    assert found, done.stderr
    return int(found.group(1))


def measure(bench: Path, policy: str, pattern: str, profile: list[str], n: int) -> tuple[float, float | None]:
    """(requests a second, instructions a request or None without valgrind)."""
    rate = n / seconds(bench, [policy, pattern, str(n), *profile])
    if not shutil.which("valgrind"):
        return rate, None
    few, many = (instructions(bench, [policy, pattern, str(k), *profile]) for k in (SHORT, LONG))
    return rate, (many - few) / (LONG - SHORT)


def _blob(folder: Path, name: str) -> str:
    """A profile as a file for the compiled part."""
    path = folder / name
    path.write_bytes(find_drive(name).blob)
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path, help="the compiled bench/bench.c")
    parser.add_argument("--requests", type=int, default=FULL)
    parser.add_argument("--drives", default=DRIVES, help="profiles to time under noop and alone, comma-separated")
    args = parser.parse_args()
    table = Table(title=f"{args.requests} requests of 4 KiB from 32 tasks", title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("policy", "drive", "load", "Mrequests/s", "÷ noop", "instructions/request", "÷ noop"):
        table.add_column(head, justify="left" if head in ("policy", "drive", "load") else "right")
    with tempfile.TemporaryDirectory() as tmp:
        cases: list[tuple[str, str, list[str]]] = [(p, "constant", []) for p in catalogue()]
        blobs = {name: [_blob(Path(tmp), name)] for name in args.drives.split(",")}
        cases += [("noop", name, blob) for name, blob in blobs.items()]
        base: dict[str, tuple[float, float | None]] = {}
        for policy, drive, profile in cases:
            for pattern in ("seq", "random"):
                rate, count = measure(args.bench, policy, pattern, profile, args.requests)
                base.setdefault(pattern, (rate, count))
                rate0, count0 = base[pattern]
                table.add_row(
                    policy,
                    drive,
                    pattern,
                    f"{rate / 1e6:.2f}",
                    f"{rate / rate0:.2f}",
                    f"{count:.0f}" if count else "–",
                    f"{count / count0:.2f}" if count and count0 else "–",
                )
                print(f"\r{policy} {drive} {pattern}".ljust(60), end="", file=sys.stderr, flush=True)
        alone = Table(title="drive models alone", title_justify="left", box=box.SIMPLE_HEAD)
        for head in ("drive", "load", "at once", "Mrequests/s", "instructions/request"):
            alone.add_column(head, justify="left" if head in ("drive", "load") else "right")
        for name, blob in blobs.items():
            for pattern, at_once in (("seq", 1), ("random", 1), ("random", 32), ("random", 128)):
                rate, count = measure(args.bench, f"alone:{at_once}", pattern, blob, args.requests)
                alone.add_row(name, pattern, str(at_once), f"{rate / 1e6:.2f}", f"{count:.0f}" if count else "–")
    print("\r".ljust(60), end="\r", file=sys.stderr)
    console().print(table)
    console().print(alone)
    if not shutil.which("valgrind"):
        print("Instructions are not counted: install valgrind (apt-get install valgrind).")


if __name__ == "__main__":
    main()
