# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of docs/remedies.md: what each remedy against deceptive idleness is worth, and what it costs somebody else."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import headwaiter
from headwaiter.base.figures import brief
from headwaiter.study.schema import Result

DRIVES = ("barracuda-80g", "wd-re-4tb")
NOTHING = "mq-deadline"
SECONDS = 20
READERS = ("one", "two")
OTHER = "other"

_HEAD = f"[global]\nrw=read\nsize=1g\nruntime={SECONDS}\ntime_based\n"
_READS = {
    "alone": "direct=1\nbs=64k\nthinktime=2000\n",
    "eight": "direct=1\nbs=64k\nthinktime=16000\nthinktime_blocks=8\nioengine=libaio\niodepth=8\n",
    "cache": "direct=0\nbs=64k\nthinktime=2000\n",
    "large": "direct=1\nbs=1m\nthinktime=32000\n",
}
"""How a reader reads, thinking for 2 ms for each 64 KiB."""
_ANOTHER = "[other]\ndirect=1\nrw=randread\nbs=4k\nthinktime=20000\n"


@dataclass(frozen=True)
class Remedy:
    """What is done against deceptive idleness, and who does it."""

    what: str
    who: str
    scheduler: str = NOTHING
    reads: str = "alone"


REMEDIES = (
    Remedy("nothing", ""),
    Remedy("wait for the same reader's next request (anticipation)", "kernel", "as"),
    Remedy("wait, and serve what is near meanwhile (cooperative)", "kernel", "cas"),
    Remedy("turns of time, idling at their end", "kernel", "cfq-slice"),
    Remedy("turns of budget, idling", "kernel", "bfq"),
    Remedy("the same without favour for newcomers", "kernel", "bfq:low_latency=0"),
    Remedy("turns for those that gain, waits by optimal stopping", "kernel", "maitre"),
    Remedy("read ahead through the page cache", "kernel, program", reads="cache"),
    Remedy("ask for eight reads at once", "program", reads="eight"),
    Remedy("read 1 MiB at a time", "program", reads="large"),
    Remedy("read ahead, and turns", "all", "maitre", "cache"),
    Remedy("read 1 MiB at a time, and turns", "all", "maitre", "large"),
)


@cache
def _result(drive: str, scheduler: str, reads: str, names: tuple[str, ...]) -> Result:
    how = _READS[reads]
    text = _HEAD + "".join(_ANOTHER if name == OTHER else f"[{name}]\n{how}" for name in names)
    with tempfile.TemporaryDirectory(prefix="headwaiter-") as folder:
        path = Path(folder) / "readers.fio"
        path.write_text(text)
        return headwaiter.run(path, scheduler, drive, runs=0).document.results[0]


def _of(result: Result, names: tuple[str, ...]) -> float:
    """MB/s of these programs together."""
    return sum(program.throughput_mbps or 0.0 for program in result.programs or () if program.name in names)


def table(drive: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads and the rows of the table of a drive."""
    alone = _of(_result(drive, NOTHING, "alone", ("one",)), ("one",))
    found: list[tuple[str, ...]] = []
    for one in REMEDIES:
        got = _result(drive, one.scheduler, one.reads, (*READERS, OTHER))
        other = next(program for program in got.programs or () if program.name == OTHER)
        both = _of(got, READERS)
        tail = "–" if other.p99_ms is None else brief(other.p99_ms)
        cells = (brief(both), f"{both / alone:.2f}", brief(1000 * (other.throughput_mbps or 0)), tail)
        found.append((one.what, one.who, f"`{one.scheduler}`", *cells))
    heads = ("remedy", "whose", "scheduler", "two readers, MB/s", "by one alone", "other's reads, kB/s", "their p99, ms")
    return heads, found
