# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a trace is: requests as columns, and the tasks that issued them.

Invariants (checked by `make_trace`, relied upon by everybody else):
 1. Columns have one length, at least 1, and are sorted by `time_ns`; requests of one instant keep their recorded order.
 2. `complete_ns` is -1 (unknown) or not before `time_ns`.
 3. `sectors` is at least 1 and `sector + sectors` at most MAX_SECTOR, so that a byte address fits in 64 bits.
 4. `task` indexes `tasks`; ids in `tasks` are distinct. `group` counts from 0 without gaps.
 5. Times are from 0 to MAX_TIME_NS, so that sums of two of them fit in 64 bits. Names are printable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.errors import Problem, plain
from headwaiter.traces.groups import find_groups

Array = npt.NDArray[Any]

SECTOR_BYTES = 512
MAX_SECTOR = 2**55
MAX_TIME_NS = 2**61
"""73 years."""
SYNC = 0x01
META = 0x02
"""Request flags: HW_RQ_SYNC and HW_RQ_META of core/elevator.h."""


class Op(IntEnum):
    """Operations, as enum hw_op of core/elevator.h numbers them."""

    READ = 0
    WRITE = 1
    DISCARD = 2
    OTHER = 3


@dataclass(frozen=True)
class Task:
    """Whom the scheduler sees: a process or thread, by the number that the recording gives it."""

    id: int
    name: str = ""
    exit_ns: int | None = None
    """None: not recorded; then a task exits when its last request has completed."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests of one device in order of arrival; n requests, every column of shape (n,).

    time_ns, complete_ns: int64, ns since the recording began; task, group: uint32; op, flags: uint8;
    sector: uint64, sectors: uint32, of 512 bytes; ioprio: uint16, class << 13 | level as the kernel has it, 0 none.
    """

    time_ns: npt.NDArray[np.int64]
    complete_ns: npt.NDArray[np.int64]
    task: npt.NDArray[np.uint32]
    group: npt.NDArray[np.uint32]
    op: npt.NDArray[np.uint8]
    flags: npt.NDArray[np.uint8]
    sector: npt.NDArray[np.uint64]
    sectors: npt.NDArray[np.uint32]
    ioprio: npt.NDArray[np.uint16]
    tasks: tuple[Task, ...]
    source: str
    format: str
    tasks_known: bool
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def completions_known(self) -> bool:
        """Whether completions were recorded at all; single requests may lack theirs even so (-1)."""
        return bool((self.complete_ns >= 0).any())

    @property
    def span_ns(self) -> int:
        """From the first arrival to the last arrival or completion."""
        return int(max(self.time_ns[-1], self.complete_ns.max()) - self.time_ns[0])

    @property
    def bytes(self) -> int:
        """Of all requests, whatever they do."""
        return int(self.sectors.sum(dtype=np.uint64)) * SECTOR_BYTES


def make_trace(
    *,
    source: str,
    format: str,
    time_ns: Array,
    sector: Array,
    sectors: Array,
    op: Array,
    flags: Array | None = None,
    complete_ns: Array | None = None,
    task_id: Array | None = None,
    group: Array | None = None,
    ioprio: Array | None = None,
    names: Mapping[int, str] | None = None,
    exits_ns: Mapping[int, int] | None = None,
    parents: Mapping[int, int] | None = None,
    group_gap_ns: int = 0,
    notes: Sequence[str] = (),
) -> Trace:
    """Put recorded columns into order, number tasks and groups, and uphold the invariants.

    All arrays have shape (n,), in any order of time. Without `flags` every read is synchronous and no write is.
    Without `task_id` everything is task 0 and the trace's tasks are unknown. Without `group` groups are found (see
    groups.py). What cannot be a request (no length, beyond MAX_SECTOR) or completes before it was issued is put right
    and told in the notes; formats whose rules forbid it check before. Raises Problem if nothing remains.
    """
    told = list(notes)
    sector, sectors = np.asarray(sector).astype(np.uint64), np.asarray(sectors).astype(np.uint64)
    keep = (sectors >= 1) & (sector <= MAX_SECTOR) & (sector + sectors <= MAX_SECTOR) & (sectors < 2**32)
    if not keep.all():
        told.append(f"{_count(int((~keep).sum()), 'request')} without length or beyond any disk left out")
    index = np.flatnonzero(keep)
    if not len(index):
        raise Problem(f"{source}: no request in it")
    time = np.asarray(time_ns)[index].astype(np.int64)
    if time.min() < 0 or time.max() > MAX_TIME_NS:
        raise Problem(f"{source}: a time in it is negative or beyond 73 years")
    order = np.argsort(time, kind="stable")
    index, time = index[order], time[order]

    def column(values: Array | None, dtype: type, default: int) -> Array:
        if values is None:
            return np.full(len(index), default, dtype)
        return np.asarray(values)[index].astype(dtype)

    ops = column(op, np.uint8, 0)
    complete = column(complete_ns, np.int64, -1)
    wrong = (complete >= 0) & (complete < time)
    if wrong.any():
        told.append(f"{_count(int(wrong.sum()), 'completion')} before the request's own issue taken as unknown")
        complete[wrong] = -1
    late = complete > MAX_TIME_NS
    if late.any():
        told.append(f"{_count(int(late.sum()), 'completion')} beyond any clock taken as unknown")
        complete[late] = -1
    ids, task = _number(column(task_id, np.int64, 0))
    names = names or {}
    exits_ns = exits_ns or {}
    tasks = tuple(Task(i, plain(names.get(i, "")), exits_ns.get(i)) for i in ids.tolist())
    if group is None:
        groups = find_groups(time, complete, task, tasks=tasks, parents=parents or {}, gap_ns=group_gap_ns)
    else:
        groups = column(group, np.int64, 0)
    return Trace(
        time_ns=time,
        complete_ns=complete,
        task=task.astype(np.uint32),
        group=_number(groups)[1].astype(np.uint32),
        op=ops,
        flags=column(flags, np.uint8, 0) if flags is not None else (ops == Op.READ).astype(np.uint8) * np.uint8(SYNC),
        sector=column(sector, np.uint64, 0),
        sectors=column(sectors, np.uint32, 0),
        ioprio=column(ioprio, np.uint16, 0),
        tasks=tasks,
        source=source,
        format=format,
        tasks_known=task_id is not None,
        notes=tuple(plain(note) for note in told),
    )


def from_zero(time_ns: Array, complete_ns: Array | None = None) -> tuple[Array, Array]:
    """Shift absolute times (shape (n,)) so that the earliest is 0; unknown completions (-1) stay unknown."""
    start = time_ns.min()
    if complete_ns is None:
        complete_ns = np.full(len(time_ns), -1, np.int64)
    return time_ns - start, np.where(complete_ns >= 0, complete_ns - start, -1)


def bytes_to_sectors(offset: Array, length: Array) -> tuple[Array, Array]:
    """The sectors that a range of bytes touches: (first, count). uint64, shape (n,)."""
    first = offset // SECTOR_BYTES
    return first, (offset + length + SECTOR_BYTES - 1) // SECTOR_BYTES - first


def _number(values: Array) -> tuple[Array, Array]:
    """Number distinct values in order of first appearance: (values, index of each element's)."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[inverse]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
