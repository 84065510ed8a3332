# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the commands for live disks print as JSON, in the schema of study/schema.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.live.changed import ApplyDocument, RevertDocument, StatusDocument, Written
from headwaiter.live.described import DOCUMENTS as DESCRIBED
from headwaiter.live.topped import DOCUMENTS as TOPPED
from headwaiter.record import Document, Notes, Record, Says
from headwaiter.study.schema import Answer, Fit, Replay

Goal = Literal["progress", "throughput", "latency", "fairness"]
AdviceKind = Literal["scheduler", "tunables", "lever", "module", "recording", "foreign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Record):
    """Return whether a recording can tell anything of schedulers."""

    open: Annotated[bool, Says("it can")]
    seconds: Annotated[float, Says("its length", "s")]
    requests: Annotated[int, Says("its requests")]
    lost: Annotated[int, Says("events that its recorder lost")]
    depth: Annotated[int | None, Says("requests that the device takes at once; absent where no drive could be chosen")] = None
    contention_percent: Annotated[
        float | None, Says("share of requests that found as many under way; absent without depth or completions", "%")
    ] = None
    slowdown: Annotated[
        float | None, Says("how many times as long requests took as those that found none under way; absent if that is not known")
    ] = None
    processor_percent: Annotated[
        float | None, Says("share of the processors' time that so many requests take; absent without a host", "%")
    ] = None
    lock_percent: Annotated[
        float | None, Says("the same of one lock for the device, as mq-deadline's; absent without a host", "%")
    ] = None
    could_change: Annotated[
        bool | None, Says("whether a scheduler could change anything; absent where the device or completions are unknown")
    ] = None
    tasks_known: Annotated[bool, Says("it tells tasks, so that think times can be kept")]
    reasons: Annotated[Sequence[str], Says("what it lacks")]
    longer: Annotated[int | None, Says("how many times longer a recording would do")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice(Record):
    """A piece of advice."""

    id: Annotated[str, Says("its identifier: the same advice for the same device has the same; --mute takes it")]
    kind: Annotated[AdviceKind, Says("what it is about")]
    text: Annotated[str, Says("what to do, and why")]
    apply: Annotated[Sequence[str], Says("lines for a shell that do it")]
    undo: Annotated[Sequence[str], Says("lines for a shell that undo it")]


@dataclass(frozen=True, kw_only=True)
class AdviseDocument(Document):
    """`headwaiter advise`"""

    workload: Annotated[str, Says("name of the recording")]
    device: Annotated[str | None, Says("the device's identity")] = None
    legs: Annotated[Sequence[str], Says("names of the disks on whose queues the scheduler acts")]
    drive: Annotated[str | None, Says("the drive model; absent where too little was recorded to choose one")] = None
    goal: Annotated[Goal, Says("what is to be better")]
    replay: Annotated[Replay | None, Says("how the recording was replayed")] = None
    current: Annotated[str, Says("the scheduler in force, or supposed to be")]
    offered: Annotated[Sequence[str], Says("schedulers that the kernel has or could load, by their names in it")]
    gate: Annotated[Gate, Says("whether the recording can tell anything")]
    answer: Annotated[Answer | None, Says("the verdict over these schedulers; absent where the gate is closed")] = None
    losses: Annotated[Sequence[str], Says("what would stop working")]
    fit: Annotated[Fit | None, Says("how well the drive explains the recording")] = None
    advice: Annotated[Sequence[Advice], Says("what to do, the most important first")]
    muted: Annotated[Sequence[str], Says("identifiers of advice that is muted")]
    applied: Annotated[bool, Says("--apply has done it")]
    notes: Notes


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow(Record):
    """What fio did under a scheduler."""

    scheduler: Annotated[str, Says("the scheduler, by its name in the kernel")]
    processes: Annotated[int, Says("processes, each on a processor of its own")]
    iops: Annotated[float, Says("reads of 4 KiB, of all processes together", "1/s", key="iops")]
    processor_us: Annotated[float, Says("processor time of the processes, for a read", "us")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerCost(Record):
    """What an I/O costs under a scheduler."""

    scheduler: Annotated[str, Says("the scheduler")]
    own_us: Annotated[float, Says("on the processor of its process", "us")]
    lock_us: Annotated[float, Says("at the lock, where the same processor had it last", "us")]
    lock_shared_us: Annotated[float, Says("the same, where another had it", "us")]
    lock_crowded_us: Annotated[float, Says("the same, where several wait", "us")]


@dataclass(frozen=True, kw_only=True)
class CalibrateDocument(Document):
    """`headwaiter calibrate`"""

    device: Annotated[str, Says("what was read: null_blk, or a loop device over memory")]
    cores: Annotated[int, Says("processors")]
    results: Annotated[Sequence[CalibrationRow], Says("a row for each scheduler and number of processes")]
    costs: Annotated[Sequence[SchedulerCost], Says("a row for each scheduler")]
    file: Annotated[str, Says("where the host was written")]
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (
    CalibrateDocument,
    *DESCRIBED,
    *TOPPED,
    AdviseDocument,
    ApplyDocument,
    RevertDocument,
    StatusDocument,
    RankDocument,
    TableDocument,
    SelectDocument,
)
