# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How fast programs get their work done, each by itself: what a run is judged by (the criterion `progress`).

A program is a thread of control that waits for some of its I/O: a process of a job file, or a thread of a recording that reads,
writes directly, or calls fsync. Write-back is nobody's program. A program's rate is its work by the time that it was at work:
until its work was done, or for as long as it goes on (ongoing.py). A run's progress is the geometric mean of the rates, so that
each program counts alike, however much or little it does: a scheduler that gives one ten times as much, and a tenth to another,
is as good as one that changes nothing. No single program's rate says that, and so each is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.threads import is_kernel_thread
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, IoprioClass, Op, ioprio
from headwaiter.engine.sim import I64, Forest, Outcome
from headwaiter.fio import JobLoad
from headwaiter.study.ongoing import Ongoing
from headwaiter.study.results import latencies_by_task
from headwaiter.study.schema import ProgramPace
from headwaiter.study.waits import cell_count

F64 = NDArray[np.float64]
LEAST_SHARE = 0.5
"""A program that has done nothing is taken to have done so much of one I/O."""
_P99 = 99


@dataclass(frozen=True)
class Programs:
    """Columns of one length, in the order of their numbers; `done` and `active_ns` have cells as Waits has, shape (n, cells)."""

    names: tuple[str, ...]
    done: F64
    """Work, in bytes."""
    active_ns: F64
    p99_ms: F64
    """99th percentile of the latencies of what it waits for; nan where that is nothing."""
    max_ms: F64
    counts: NDArray[np.bool_]
    """Not those that were told to be idle while others want the disk: they get what is left, as they should."""

    @property
    def mbps(self) -> F64:
        """Each program's rate, MB/s; above 0."""
        rates: F64 = self.done.sum(axis=1) / np.maximum(1.0, self.active_ns.sum(axis=1)) * 1e3
        return rates

    @property
    def progress_mbps(self) -> float:
        """The geometric mean of the rates."""
        return float(np.exp(np.log(self.mbps[self.counts]).mean()))

    def rows(self) -> list[ProgramPace]:
        """As results have them."""
        columns = (self.mbps, self.p99_ms, self.max_ms, self.counts)
        return [
            ProgramPace(name=name, throughput_mbps=mbps, p99_ms=_known(p99), max_ms=_known(most), counts=counts)
            for name, mbps, p99, most, counts in zip(self.names, *(column.tolist() for column in columns), strict=True)
        ]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def waited_for(load: Forest) -> NDArray[np.bool_]:
    """Return whether somebody waits for an I/O, shape (n,)."""
    waited: NDArray[np.bool_] = (load.flags & SYNC > 0) | (load.op == Op.READ)
    return waited


def programs_of(outcome: Outcome, load: object) -> Programs | None:
    """Return the programs of jobs, or of a closed load with rows; None where nobody waits, or timestamps set the pace."""
    if isinstance(load, JobLoad):
        return _of_jobs(outcome, load)
    if not isinstance(load, Forest) or outcome.recorded is None:
        return None
    rows = outcome.rows
    return programs_in(load, np.asarray(rows.issue_ns), np.asarray(rows.complete_ns))


def programs_in(load: Forest, issue: I64, complete: I64) -> Programs | None:
    """Return the programs of a closed load whose I/Os were issued and completed at these times, ns; as programs_of().

    An issue of -1, or a completion of 0: never.
    """
    if not (load.parent >= 0).any():
        return None
    waited = waited_for(load)
    groups = load.groups
    there = np.unique(groups[waited])
    if not len(there):
        return None
    size = load.sectors.astype(np.float64) * SECTOR_BYTES
    number = np.searchsorted(there, groups)
    names: dict[int, str] = {}
    for task in load.tasks:
        names.setdefault(task.group, task.name)
    if isinstance(load, Ongoing):
        done, active, counted = _of_span(load, waited, number, len(there), issue, complete, size)
    else:
        counted = np.flatnonzero(waited)
        done, active = _of_work(number[counted], len(there), issue[counted], complete[counted], size[counted])
    p99, most = _tails(number[counted], complete[counted] - issue[counted], len(there))
    first = np.full(len(there), len(groups))
    np.minimum.at(first, number[waited], np.flatnonzero(waited))
    called = tuple(names[g] for g in there.tolist())
    own = load.recorded if isinstance(load, Ongoing) and load.recorded else load
    ios = np.bincount(own.groups[waited_for(own)], minlength=int(there[-1]) + 1)[there]
    return Programs(called, done, active, p99, most, _counting(load.ioprio[first], called, ios >= load.windows))


def _of_work(number: I64, n: int, issue: I64, complete: I64, size: F64) -> tuple[F64, F64]:
    """Work and time of programs that do all that they have, in cells of consecutive I/Os: what each adds to that."""
    cells = cell_count(len(number))
    cell = np.arange(len(number)) * cells // max(1, len(number))
    order = np.lexsort((issue, number))
    begins = np.flatnonzero(np.diff(number[order], prepend=-1))
    above = number[order] * (int(complete.max()) + 1)
    end = np.maximum.accumulate(complete[order] + above) - above
    before = np.concatenate([[0], end[:-1]])
    before[begins] = issue[order][begins]
    at = number[order] * cells + cell[order]
    return _summed(at, size[order], n, cells), _summed(at, (end - before).astype(np.float64), n, cells)


def _of_span(
    load: Ongoing, waited: NDArray[np.bool_], number: I64, n: int, issue: I64, complete: I64, size: F64
) -> tuple[F64, F64, I64]:
    """Return the programs in cells of time, from what was done while it counts, and which rows these are."""
    assert load.until_ns is not None
    until, span = load.until_ns, load.span_ns
    cells = cell_count(load.sliced)
    issued = waited & (issue >= 0)
    counted = np.flatnonzero(issued & (complete > 0))
    finished = counted[complete[counted] <= until[counted]]
    at = np.minimum(complete, span - 1) * cells // span
    done = _summed(number[finished] * cells + at[finished], size[finished], n, cells)
    goes_on = np.zeros(n, bool)
    for one in load.programs:
        goes_on[number[one.rows[waited[one.rows]][:1]]] = True
    begin, end = np.full(n, span, np.int64), np.ones(n, np.int64)
    np.minimum.at(begin, number[counted], issue[counted])
    begin[np.bincount(number[counted], minlength=n) == 0] = 0
    every = np.flatnonzero(waited)
    np.maximum.at(end, number[every], until[every])
    # One that ends has ended when all that is its own is done.
    left = np.bincount(number[every][(complete[every] < 0) | (complete[every] > until[every])], minlength=n) > 0
    last = np.zeros(n, np.int64)
    np.maximum.at(last, number[finished], complete[finished])
    end = np.where(goes_on | left, end, last)
    begin = np.minimum(begin, end - 1)
    edges = np.arange(cells + 1) * span // cells
    inside = np.clip(edges[None, :], begin[:, None], end[:, None])
    # One that has done nothing has done less than one I/O.
    nothing = done.sum(axis=1) <= 0
    mean = np.bincount(number[waited], weights=size[waited], minlength=n) / np.bincount(number[waited], minlength=n)
    done[nothing] += (LEAST_SHARE * mean[nothing] / cells)[:, None]
    active: F64 = np.diff(inside, axis=1).astype(np.float64)
    return done, active, counted.astype(np.int64)


def _counting(prios: NDArray[np.uint16], names: Sequence[str], many: NDArray[np.bool_] | bool = True) -> NDArray[np.bool_]:
    """Programs of other classes than idle that are no threads of the kernel; all, where there are no others.

    many: whether there are so many I/Os of each that what it got is not chance.
    """
    counts = np.asarray(prios < ioprio(IoprioClass.IDLE, 0)) & many
    if names:
        counts &= ~np.array([is_kernel_thread(name) for name in names])
    return counts if counts.any() else ~counts


def _summed(at: I64, values: F64, n: int, cells: int) -> F64:
    """By program and cell."""
    found: F64 = np.bincount(at, weights=values, minlength=n * cells).astype(np.float64).reshape(n, cells)
    return found


def _tails(number: I64, latency: I64, n: int) -> tuple[F64, F64]:
    """99th percentile and longest of each program, ms: the least latency that so many do not exceed."""
    p99, most = np.full(n, np.nan), np.full(n, np.nan)
    if not len(number):
        return p99, most
    order = np.lexsort((latency, number))
    count = np.bincount(number, minlength=n)
    there, first = count > 0, np.cumsum(count) - count
    place = np.maximum(-(-count * _P99 // 100) - 1, 0)
    ns = latency[order] / 1e6
    p99[there], most[there] = ns[(first + place)[there]], ns[(first + count - 1)[there]]
    return p99, most


def _of_jobs(outcome: Outcome, load: JobLoad) -> Programs | None:
    """Processes of a job file: what they have read and written, also in the page cache, until their end."""
    jobs = outcome.jobs
    if not jobs:
        return None
    size = np.array([sum(job.bytes) for job in jobs], np.float64)
    active = np.array([max(1, job.end_ns - job.begin_ns) for job in jobs], np.float64)
    least = np.array([job.fields["min_bytes"][0] or job.fields["min_bytes"][1] or SECTOR_BYTES for job in load.jobs], np.float64)
    done = np.where(size > 0, size, LEAST_SHARE * least)
    p99, most = np.full(len(jobs), np.nan), np.full(len(jobs), np.nan)
    for number, lat in latencies_by_task(outcome).items():
        if number < len(jobs):  # the flusher is behind them
            p99[number], most[number] = lat.p99, lat.max
    tasks = load.tasks[: len(jobs)]
    called = tuple(t.name for t in tasks)
    counts = _counting(np.array([t.ioprio for t in tasks], np.uint16), ())
    return Programs(called, done[:, None], active[:, None], p99, most, counts)
