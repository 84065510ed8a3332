# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A reader beside a chain of short-lived tasks, each begun when the one before has ended: a closed trace made from a few numbers.

What a shell script does that starts one small program after another. A scheduler that waits for the task which it has just
served waits for a dead one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem, shown
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.engine.sim import Drive, Forest, Options, Task, simulate

_STREAM_SECTORS = (64 << 10) // SECTOR_BYTES
_READ_SECTORS = (8 << 10) // SECTOR_BYTES
_STREAM_THINK_NS = 100_000
_SAMPLE = 400
_STREAM = Task(0, "stream", 0)


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
    """When the first task begins; the stream begins at 0."""
    file_kib: int = 0
    """The stream reads files of that size, in whole reads; 0: one that does not end."""
    gap_kib: int = 0
    """From the end of such a file to the next."""


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
    if given.get("file_kib", 64) % 64:
        raise Problem(f"{path}: file_kib must be a multiple of 64, which the stream reads at once")
    try:
        return Chain(**given)
    except TypeError:
        missing = ", ".join(sorted({"tasks", "reads", "apart_sectors"} - given.keys()))
        raise Problem(f"{path}: {missing} is missing") from None


def chain_load(chain: Chain, drive: Drive, options: Options, duration_s: float) -> Forest:
    """The chain beside a stream of 64 KiB reads, which has as many as this drive alone serves in `duration_s`."""
    alone = simulate("noop", drive, _forest([_STREAM], _stream(chain, _SAMPLE)), options=options)
    streamed = max(_SAMPLE, round(duration_s * 1e9 * _SAMPLE / alone.totals["now_ns"]))
    stream = _stream(chain, min(streamed, drive.sectors // 4 // _stride(chain)))
    links = _links(chain, drive.sectors, len(stream["time_ns"]))
    columns = {name: np.concatenate([column, links[name]]) for name, column in stream.items()}
    return _forest([_STREAM, *(Task(1 + i, "chain", 1) for i in range(chain.tasks))], columns)


def _links(chain: Chain, sectors: int, row: int) -> dict[str, NDArray[np.int64]]:
    """The reads of the chain as rows of a trace from `row` on."""
    n = chain.tasks * chain.reads
    link, read = np.divmod(np.arange(n), chain.reads)
    first = sectors // 3
    room = sectors - first - chain.reads * _READ_SECTORS
    begins = np.arange(n) == 0
    return {
        "time_ns": np.where(begins, chain.begin_us * 1000, 0),
        "parent": np.where(begins, -1, np.arange(row - 1, row + n - 1)),
        "delay_ns": np.where(begins, 0, np.where(read == 0, chain.between_us, chain.think_us) * 1000),
        "task": 1 + link,
        "sector": first + link * chain.apart_sectors % room + read * _READ_SECTORS,
        "sectors": np.full(n, _READ_SECTORS),
    }


def _gap(chain: Chain) -> int:
    """Sectors from one of the stream's files to the next."""
    return (chain.gap_kib << 10) // SECTOR_BYTES if chain.file_kib else 0


def _reads_of_a_file(chain: Chain) -> int:
    return max((chain.file_kib << 10) // SECTOR_BYTES // _STREAM_SECTORS, 1)


def _stride(chain: Chain) -> int:
    """Sectors that a read of the stream is behind the one before, on average."""
    return _STREAM_SECTORS + -(-_gap(chain) // _reads_of_a_file(chain))


def _stream(chain: Chain, n: int) -> dict[str, NDArray[np.int64]]:
    """Rows of the first task."""
    row = np.arange(n)
    return {
        "time_ns": np.zeros(n, np.int64),
        "parent": row - 1,
        "delay_ns": np.where(row == 0, 0, _STREAM_THINK_NS),
        "task": np.zeros(n, np.int64),
        "sector": row * _STREAM_SECTORS + row // _reads_of_a_file(chain) * _gap(chain),
        "sectors": np.full(n, _STREAM_SECTORS),
    }


def _forest(tasks: Sequence[Task], columns: Mapping[str, NDArray[np.int64]]) -> Forest:
    """Synchronous reads with these columns."""
    n = len(columns["time_ns"])
    return Forest(
        tasks,
        time_ns=columns["time_ns"],
        parent=columns["parent"],
        delay_ns=columns["delay_ns"],
        task=columns["task"].astype(np.uint32),
        op=np.full(n, Op.READ, np.uint8),
        flags=np.full(n, SYNC, np.uint8),
        sector=columns["sector"].astype(np.uint64),
        sectors=columns["sectors"].astype(np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )
