# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make fuzz: all targets, or some, for so long; findings become files that --replay runs again.

python -m fuzzing [TARGET …] [--seconds N | --executions N] [--seed N] [--jobs N] [--samples FOLDER]
python -m fuzzing TARGET --replay FILE
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .engine import fuzz
from .targets import TARGETS


def main() -> int:
    """Status 1 if there were findings."""
    parser = argparse.ArgumentParser(prog="fuzzing", description="Fuzz what headwaiter reads.")
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of processor time for each target")
    parser.add_argument("--executions", type=int, default=1 << 62, help="of each target")
    parser.add_argument("--seed", type=int, help="the same seed gives the same inputs [default: a new one]")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="targets at once")
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="where inputs with findings are put")
    parser.add_argument("--samples", type=Path, help="a folder of TARGET/FILE to begin with, besides the corpus")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one input of the target")
    given = parser.parse_args()
    chosen = given.targets or list(TARGETS)
    if given.replay:
        with tempfile.TemporaryDirectory() as folder:
            print(TARGETS[chosen[0]].run(Path(folder), given.replay.read_bytes()))
        return 0
    if given.seconds == float("inf") and given.executions == 1 << 62:
        given.seconds = 3600.0
    seed = random.SystemRandom().getrandbits(32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)

    def one(name: str) -> bool:
        samples = sorted((given.samples / name).glob("*")) if given.samples else []
        report = fuzz(
            TARGETS[name], seed, given.executions, given.seconds, given.findings / name, [p.read_bytes() for p in samples]
        )
        print(report, flush=True)
        for path in report.findings:
            print(f"  python -m fuzzing {name} --replay {path}", flush=True)
        return bool(report.findings)

    with ThreadPoolExecutor(max_workers=given.jobs) as pool:
        return int(any(list(pool.map(one, chosen))))


if __name__ == "__main__":
    sys.exit(main())
