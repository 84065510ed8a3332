# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Record the bundled trace: real programs on ext4 on a slow one-headed disk, as blktrace saw them.

A streaming reader of a big file, `find -exec cat` over a source tree (each file read by a process of its own) and a writer
that dumps a file of some MiB every second run together on a cold page cache: the load on which schedulers differ most.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from pathlib import Path

from headwaiter.errors import Problem
from headwaiter.lab.guest import Guest, boot, source_folder
from headwaiter.lab.kernels import Progress, fetch, kernel, newest
from headwaiter.paths import end_tidily_on_signals, replacing

SERVICE_NS = 4_000_000
BIG_MIB = 384
DUMP_BLOCKS = 32
PROGRAMS = [
    ("blktrace", "blktrace"),
    ("dd", "coreutils"),
    ("find", "findutils"),
    ("mkfs.ext4", "e2fsprogs"),
]


def record(series: str, say: Progress) -> bytes:
    """The raw blktrace of one run under the newest kernel of `series`."""
    headers = newest(rf"linux-headers-{series}[\w.+-]*-common")
    if headers is None:
        raise Problem(f"lab: apt knows no kernel headers of series {series} (apt-get update?)")
    (tree,) = fetch(headers, say).glob("usr/src/*/include/linux")
    sources = {f"/tree/{path.name}": path.read_bytes() for path in tree.glob("*.h")}
    guest = Guest(
        kernel(series, say),
        (source_folder() / "lab" / "guest" / "record-example.sh").read_text(),
        modules=["configfs", "null_blk", "mq-deadline"],
        programs=PROGRAMS,
        environment={"SERVICE_NS": str(SERVICE_NS), "BIG_MIB": str(BIG_MIB), "DUMP_BLOCKS": str(DUMP_BLOCKS)},
        files=sources,
        memory_mib=2048,
    )
    return boot(guest, say).files["trace.blktrace.0"]


def main() -> int:
    """The command `lab/record-example`."""
    parser = argparse.ArgumentParser(description="Record the bundled example trace in a virtual machine.")
    parser.add_argument("--kernel", default="6.12", help="series of Debian's cloud kernel (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=Path("workloads/example.blktrace.xz"))
    options = parser.parse_args()
    end_tidily_on_signals()
    try:
        trace = record(options.kernel, lambda text: print(text, file=sys.stderr))
    except Problem as problem:
        print(f"record-example: {problem}", file=sys.stderr)
        return 2
    with replacing(options.output) as aside:
        aside.write_bytes(lzma.compress(trace, preset=9 | lzma.PRESET_EXTREME))
    print(f"{options.output}: {len(trace)} bytes of trace, {options.output.stat().st_size} compressed", file=sys.stderr)
    return 0
