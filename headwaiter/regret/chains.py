# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A reader beside a chain of short-lived tasks, each begun when the one before has ended: a closed trace made from a few numbers.

What a shell script does that starts one small program after another. A scheduler that waits for the task which it has just
served waits for a dead one.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.engine.sim import Drive, Forest, Options, Task, simulate
from headwaiter.errors import Problem, shown

_STREAM_SECTORS = (64 << 10) // SECTOR_BYTES
_READ_SECTORS = (8 << 10) // SECTOR_BYTES
_STREAM_THINK_NS = 100_000
_SAMPLE = 400


@dataclass(frozen=True)
class Chain:
    """`tasks` tasks of `reads` reads of 8 KiB one behind the other, each task's begin so many sectors behind the last one's."""

    tasks: int
    reads: int
    apart_sectors: int
    between_us: int = 2000
    """From a task's end to the begin of the next."""
    think_us: int = 200
    """Between the reads of a task."""
    begin_us: int = 500_000
    """Of the first task; the stream begins at 0."""


def parse_chain(path: Path, text: str) -> Chain:
    """The chain in a TOML file. Problem if it is none."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise Problem(f"{path}: {e}") from None
    known = {one.name for one in fields(Chain)}
    for name, value in given.items():
        if name not in known:
            raise Problem(f"{path}: '{shown(name)}' is unknown (known: {', '.join(sorted(known))})")
        if type(value) is not int or not 1 <= value <= 10**9:
            raise Problem(f"{path}: {name} must be a whole number from 1 to {10**9}")
    try:
        return Chain(**given)
    except TypeError:
        missing = ", ".join(sorted({"tasks", "reads", "apart_sectors"} - given.keys()))
        raise Problem(f"{path}: {missing} is missing") from None


def chain_load(chain: Chain, drive: Drive, options: Options, duration_s: float) -> Forest:
    """The chain beside a stream of 64 KiB reads, which has as many as this drive alone serves in `duration_s`."""
    alone = simulate("noop", drive, _stream(_SAMPLE), options=options)
    streamed = max(_SAMPLE, round(duration_s * 1e9 * _SAMPLE / alone.totals["now_ns"]))
    stream = _stream(min(streamed, drive.sectors // 4 // _STREAM_SECTORS))
    n, links = len(stream.time_ns), chain.tasks * chain.reads
    link, read = np.divmod(np.arange(links), chain.reads)
    first = drive.sectors // 3
    room = drive.sectors - first - chain.reads * _READ_SECTORS
    parent = np.arange(n - 1, n + links - 1)
    parent[0] = -1
    delay_ns = np.where(read == 0, chain.between_us, chain.think_us) * 1000
    delay_ns[0] = 0
    time_ns = np.zeros(links, np.int64)
    time_ns[0] = chain.begin_us * 1000
    whole = _forest(
        np.concatenate([stream.time_ns, time_ns]),
        np.concatenate([stream.parent, parent]),
        np.concatenate([stream.delay_ns, delay_ns]),
        np.concatenate([stream.task, 1 + link]),
        np.concatenate([stream.sector, first + link * chain.apart_sectors % room + read * _READ_SECTORS]),
        np.concatenate([stream.sectors, np.full(links, _READ_SECTORS)]),
    )
    tasks = [Task(0, "stream", 0), *(Task(1 + i, "chain", 1) for i in range(chain.tasks))]
    return Forest(tasks, **whole)


def _stream(n: int) -> Forest:
    delay_ns = np.full(n, _STREAM_THINK_NS)
    delay_ns[0] = 0
    sector = np.arange(n) * _STREAM_SECTORS
    columns = _forest(np.zeros(n), np.arange(n) - 1, delay_ns, np.zeros(n), sector, np.full(n, _STREAM_SECTORS))
    return Forest([Task(0, "stream", 0)], **columns)


def _forest(time_ns, parent, delay_ns, task, sector, sectors):  # type: ignore[no-untyped-def]
    n = len(time_ns)
    return {
        "time_ns": time_ns.astype(np.int64),
        "parent": parent.astype(np.int64),
        "delay_ns": delay_ns.astype(np.int64),
        "task": task.astype(np.uint32),
        "op": np.full(n, Op.READ, np.uint8),
        "flags": np.full(n, SYNC, np.uint8),
        "sector": sector.astype(np.uint64),
        "sectors": sectors.astype(np.uint32),
        "ioprio": np.zeros(n, np.uint16),
    }
