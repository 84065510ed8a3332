# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fields of `headwaiter calibrate --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from headwaiter.base.records import Document, Notes, Record, Says


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow(Record):
    """fio's figures under a scheduler."""

    scheduler: Annotated[str, Says("the scheduler, by its name in the kernel")]
    processes: Annotated[int, Says("processes, each on a processor of its own")]
    iops: Annotated[float, Says("reads of 4 KiB, of all processes together", "1/s", key="iops")]
    processor_us: Annotated[float, Says("processor time of the processes, for a read", "us")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerCost(Record):
    """Processor time of an I/O under a scheduler."""

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


DOCUMENTS: tuple[type[Record], ...] = (CalibrateDocument,)
