# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fields of `headwaiter rank --json`, of `table` and of `select`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.queue.schema import Written


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow(Record):
    """A scheduler's throughput with requests of a size."""

    scheduler: Annotated[str, Says("the scheduler; of a disk by its name in the kernel")]
    request_bytes: Annotated[int, Says("size of the requests", "B")]
    throughput_mbps: Annotated[float, Says("throughput; of several runs that in the middle", "MB/s", key="throughput_MBps")]
    low_mbps: Annotated[float, Says("the lowest of all runs", "MB/s", key="low_MBps")]
    high_mbps: Annotated[float, Says("the highest of all runs", "MB/s", key="high_MBps")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeWinner(Record):
    """The best scheduler for requests of a size."""

    request_bytes: Annotated[int, Says("size of the requests", "B")]
    scheduler: Annotated[str, Says("the scheduler with the highest throughput")]
    ahead_percent: Annotated[float, Says("how far it is ahead of the next", "%")]
    even: Annotated[Sequence[str], Says("schedulers that are behind it by less than 2%")]


@dataclass(frozen=True, kw_only=True)
class RankDocument(Document):
    """`headwaiter rank`"""

    subject: Annotated[str, Says("the drive model, or the disk's identity")]
    pattern: Annotated[Literal["sequential", "random", "mixed"], Says("how the processes read (mixed: every second at random)")]
    processes: Annotated[int, Says("number of processes")]
    results: Annotated[Sequence[RankRow], Says("a row for each size and scheduler")]
    winners: Annotated[Sequence[SizeWinner], Says("a row for each size")]
    notes: Notes


FileBytes = Annotated[int, Says("size of the files", "B")]


RecordBytes = Annotated[int, Says("length of the records in which they are read or written", "B")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow(Record):
    """A scheduler's throughput in an operation on files of a size, in records of a length."""

    scheduler: Annotated[str, Says("the scheduler; of a disk by its name in the kernel")]
    operation: Annotated[str, Says("the operation, as iozone names it")]
    file_bytes: FileBytes
    record_bytes: RecordBytes
    throughput_mbps: Annotated[float, Says("throughput; of several runs that in the middle", "MB/s", key="throughput_MBps")]
    low_mbps: Annotated[float, Says("the lowest of all runs", "MB/s", key="low_MBps")]
    high_mbps: Annotated[float, Says("the highest of all runs", "MB/s", key="high_MBps")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellWinner(Record):
    """The best scheduler for an operation on files of a size, in records of a length."""

    operation: Annotated[str, Says("the operation")]
    file_bytes: FileBytes
    record_bytes: RecordBytes
    scheduler: Annotated[str, Says("the scheduler with the highest throughput")]
    ahead_percent: Annotated[float, Says("how far it is ahead of the next", "%")]
    even: Annotated[Sequence[str], Says("schedulers that are behind it by less than 2%")]


@dataclass(frozen=True, kw_only=True)
class TableDocument(Document):
    """`headwaiter table`"""

    subject: Annotated[str, Says("the drive model, or the disk's identity")]
    processes: Annotated[int, Says("number of processes")]
    buffered: Annotated[bool, Says("through the page cache, each write with an fsync at its end")]
    results: Annotated[Sequence[CellRow], Says("a row for each cell and scheduler")]
    winners: Annotated[Sequence[CellWinner], Says("a row for each cell")]
    notes: Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRow(Record):
    """A scheduler of a cell."""

    scheduler: Annotated[str, Says("the scheduler")]
    of_best: Annotated[float, Says("its throughput as a share of the best's")]


@dataclass(frozen=True, kw_only=True)
class SelectDocument(Document):
    """`headwaiter select`"""

    operation: Annotated[str, Says("the operation, as iozone names it")]
    file_bytes: FileBytes
    record_bytes: RecordBytes
    source: Annotated[str, Says("what the table was measured on")]
    cell_over_bytes: Annotated[int, Says("the table's cell is for files that are larger than this", "B")]
    cell_file_bytes: Annotated[int, Says("the cell is for files up to this size", "B")]
    cell_record_bytes: Annotated[int, Says("length of its records", "B")]
    scheduler: Annotated[str, Says("the scheduler that is chosen; of a disk the best that its kernel has")]
    results: Annotated[Sequence[ChoiceRow], Says("the schedulers of the cell, the best first")]
    changes: Annotated[Sequence[Written], Says("what was changed; empty without --apply")]
    in_force: Annotated[Mapping[str, str] | None, Says("the scheduler by name of the disk, as read back after --apply")]


DOCUMENTS: tuple[type[Record], ...] = (
    RankDocument,
    TableDocument,
    SelectDocument,
)
