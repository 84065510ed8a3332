# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a trace is: requests as columns, and the tasks that issued them.

Invariants (checked by `make_trace` in making.py, relied upon by everybody else):
 1. Columns have one length, at least 1, and are sorted by `time_ns`; requests of one instant keep their recorded order.
 2. `complete_ns` is -1 (unknown) or not before `time_ns`.
 3. `sectors` is at least 1 and `sector + sectors` at most MAX_SECTOR, so that a byte address fits in 64 bits.
 4. `task` indexes `tasks`; ids in `tasks` are distinct. `group` counts from 0 without gaps.
 5. Times are from 0 to MAX_TIME_NS, so that sums of two of them fit in 64 bits. Names are printable,
   without blanks at either end.
 6. Flushes are sorted by `time_ns`, and 2 and 4 hold for them, too. A task may have nothing but flushes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.engine.cgroups import Path
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op

Array = npt.NDArray[Any]

MAX_SECTOR = 2**55
MAX_TIME_NS = 2**61
"""73 years."""


@dataclass(frozen=True)
class TraceTask:
    """Whom the scheduler sees: a process or thread, by the number that the recording gives it."""

    id: int
    name: str = ""
    exit_ns: int | None = None
    """None: not recorded; then a task exits when its last request has completed."""
    cgroup: Path = ()
    """The control group that it is in; empty: the root, or not recorded."""


@dataclass(frozen=True, eq=False)
class Flushes:
    """Flushes of the drive's own cache that programs wait for, as fsync asks for; columns as in Trace, shape (m,)."""

    time_ns: npt.NDArray[np.int64]
    complete_ns: npt.NDArray[np.int64]
    issue_ns: npt.NDArray[np.int64]
    """When the device was given the one that served it, -1 unknown."""
    task: npt.NDArray[np.uint32]
    group: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.time_ns)

    def rows(self, index: Array) -> Flushes | None:
        """Only those that index (numbers, a slice or a mask) selects; None if there are none."""
        found = Flushes(**{f.name: getattr(self, f.name)[index] for f in fields(self)})
        return found if len(found) else None


@dataclass(frozen=True)
class Excerpt:
    """The recording that a trace has only windows of: how many they are, and the requests and the time of all of it."""

    windows: int
    requests: int
    span_ns: int


@dataclass(frozen=True, eq=False)
class Trace:
    """Requests of one device in order of arrival; n requests, every column of shape (n,).

    time_ns, complete_ns: int64, ns since the recording began; task, group: uint32; op, flags: uint8;
    sector: uint64, sectors: uint32, of 512 bytes; ioprio: uint16, as ioprio_set(2) takes it, 0 none.
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
    tasks: tuple[TraceTask, ...]
    source: str
    format: str
    tasks_known: bool
    """Each request has its task, recorded or inferred."""
    notes: tuple[str, ...] = ()
    tasks_inferred: bool = False
    """They are threads that were inferred from places (streams.py), and no processes."""
    issue_ns: npt.NDArray[np.int64] | None = None
    """When the device was given each request, -1 unknown; requests that were merged have one time. None: not recorded."""
    insert_ns: npt.NDArray[np.int64] | None = None
    """When the scheduler was given each request, -1 unknown: later than it was submitted if write-back was throttled. None: as
    issue_ns."""
    flushes: Flushes | None = None
    """Flushes of the drive's cache, which programs wait for. None: there were none, or they were not recorded."""
    processors: int | None = None
    """Number of processors of the recording machine; None: not recorded."""
    nr_requests: int | None = None
    """The device's nr_requests under a scheduler; None: not recorded, or no scheduler was in force."""
    device_depth: int | None = None
    """Number of requests that the device takes at once, by sysfs; None: not recorded."""
    rotational: bool | None = None
    """What the kernel took the device for (queue/rotational), as it does each virtio disk for one that rotates; None: not
    recorded."""
    scheduler: str = ""
    """In force when it was recorded, by its name here; empty: not recorded, or none of ours."""
    schedulers: tuple[str, ...] = ()
    """Those that the recorded kernel offered, by their names here; empty: not recorded."""
    device_model: str = ""
    """The kernel's name of the device; empty: not recorded."""
    excerpt: Excerpt | None = None
    """The recording of which this trace holds only windows; None if the trace is all of it."""
    sha256: str = ""
    """The digest of what it was read from (Source.sha256); empty if that was no file, or a part of one."""

    def __len__(self) -> int:
        return len(self.time_ns)

    def columns(self, index: Array | slice) -> dict[str, Any]:
        """The columns that there are, by name, of those rows that index (numbers, a slice or a mask) selects."""
        found = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: column[index] for name, column in found if isinstance(column, np.ndarray)}

    @property
    def recorded(self) -> tuple[int, int]:
        """(requests, ns) of all that was recorded, windows or not."""
        return (self.excerpt.requests, self.excerpt.span_ns) if self.excerpt else (len(self), self.span_ns)

    @property
    def completions_known(self) -> bool:
        """Return whether completions were recorded at all; single requests may lack theirs even so (-1)."""
        return bool((self.complete_ns >= 0).any())

    @property
    def span_ns(self) -> int:
        """From the first arrival to the last arrival or completion."""
        return int(max(self.time_ns[-1], self.complete_ns.max()) - self.time_ns[0])

    @property
    def bytes(self) -> int:
        """Return the bytes of all requests, whatever they do."""
        return int(self.sectors.sum(dtype=np.uint64)) * SECTOR_BYTES


def with_flushes(trace: Trace) -> Trace:
    """With its flushes among the requests, as rows without sectors, of operation FLUSH: no invariant holds of their lengths."""
    flushes = trace.flushes
    if flushes is None:
        return trace
    m = len(flushes)
    none = {name: np.zeros(m, getattr(trace, name).dtype) for name in ("sector", "sectors", "ioprio")}
    rows = {
        **none,
        "time_ns": flushes.time_ns,
        "complete_ns": flushes.complete_ns,
        "task": flushes.task,
        "group": flushes.group,
        "op": np.full(m, Op.FLUSH, np.uint8),
        "flags": np.full(m, SYNC, np.uint8),
    }
    order = np.argsort(np.concatenate([trace.time_ns, flushes.time_ns]), kind="stable")
    columns: dict[str, Any] = {name: np.concatenate([getattr(trace, name), more])[order] for name, more in rows.items()}
    given = None if trace.issue_ns is None else np.concatenate([trace.issue_ns, flushes.issue_ns])[order]
    unknown = np.full(m, -1, np.int64)
    inserted = None if trace.insert_ns is None else np.concatenate([trace.insert_ns, unknown])[order]
    return replace(trace, **columns, issue_ns=given, insert_ns=inserted, flushes=None)


def requests_of(*keys: Array) -> tuple[Array, Array]:
    """(order, begins): rows in an order in which those that the device had as one request stand together, and where each begins.

    keys: what rows of one request share, as their issue, completion and operation, shape (n,). Requests are in order of them.
    """
    order = np.lexsort(keys[::-1])
    new = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    return order, np.flatnonzero(np.concatenate([[len(order) > 0], new]))


THROTTLED_NS = 50_000
"""A write that the scheduler was given later than this was held back."""


RELEASED_NS = 1_000_000
"""Who was held back until a flush was done goes on so soon after it."""


def as_inserted(trace: Trace) -> Trace:
    """With every write at the time at which the scheduler was given it, where that was recorded, in this order.

    Who throttles write-back (wbt) holds a write back before it meets the scheduler. Submitted it was with the one before it: a
    scheduler would seem to have had both. A write that was held back while another program's flush was made comes when it was
    submitted, since the drive would have finished it no sooner. Otherwise its program would seem to think while it waits.
    """
    if trace.insert_ns is None:
        return trace
    held = (trace.op == Op.WRITE) & (trace.insert_ns - trace.time_ns > THROTTLED_NS)
    if not held.any():
        return trace
    stays = held & ~_behind_flush(trace, np.flatnonzero(held))
    sooner = _sooner(trace, stays)
    return _at(trace, np.where(stays & (sooner == 0), trace.insert_ns, trace.time_ns - sooner))


def released(trace: Trace) -> Trace:
    """With writes at the times at which they would have been submitted had nobody throttled write-back.

    The trace itself, if nothing was held. as_inserted() has when writes met the scheduler.
    """
    if trace.insert_ns is None:
        return trace
    sooner = _sooner(trace, np.zeros(len(trace), np.bool_))
    return replace(_at(trace, trace.time_ns - sooner), insert_ns=None) if sooner.any() else trace


def _at(trace: Trace, time_ns: Array) -> Trace:
    """The rows at these times, in their order."""
    order = np.argsort(time_ns, kind="stable")
    return replace(trace, **{**trace.columns(order), "time_ns": time_ns[order]})


def _sooner(trace: Trace, stays: npt.NDArray[np.bool_]) -> Array:
    """How much sooner each row would be submitted if no write but those that `stays` were held back, shape (n,), ns.

    Whoever is held back waits inside the submission, and submits the next write when it is through with that: so each was held
    for the time until the next one, or until it was inserted if that is shorter, and the next ones would have come sooner by as
    much, up to one of another request that is still held.
    """
    assert trace.insert_ns is not None
    found = np.zeros(len(trace), np.int64)
    rows = np.flatnonzero((trace.op == Op.WRITE) & (trace.insert_ns >= 0))
    rows = rows[np.argsort(trace.task[rows], kind="stable")]
    if len(rows) < 2:
        return found
    this, following = rows[:-1], rows[1:]
    pause = trace.time_ns[following] - trace.time_ns[this]
    wait = np.minimum(pause, trace.insert_ns[this] - trace.time_ns[this])
    wait = np.where((wait > THROTTLED_NS) & ~stays[this], wait, 0)
    ends = stays[following] & (trace.insert_ns[following] != trace.insert_ns[this])
    goes_on = (trace.task[this] == trace.task[following]) & (pause - wait <= THROTTLED_NS) & ~ends
    sooner = np.concatenate([[0], np.cumsum(wait)])
    begins = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    found[rows] = sooner - np.repeat(sooner[begins], np.diff(begins, append=len(rows)))
    return found


def _behind_flush(trace: Trace, rows: Array) -> npt.NDArray[np.bool_]:
    """Which of these writes somebody waits for, and met the scheduler while another program's flush was made, or right after it.

    The drive finished none of them before the flush. Shape (n,).
    """
    found = np.zeros(len(trace), np.bool_)
    flushes = trace.flushes
    if trace.insert_ns is None or flushes is None:
        return found
    rows = rows[(trace.flags[rows] & SYNC != 0) & (trace.complete_ns[rows] >= 0)]
    order = np.argsort(flushes.complete_ns, kind="stable")
    done = flushes.complete_ns[order]
    last = np.searchsorted(done, trace.complete_ns[rows], "right") - 1
    # One flush may serve several programs, the writer's own among them.
    for back in range(int(np.unique(done, return_counts=True)[1].max())):
        this = order[np.maximum(last - back, 0)]
        end_ns = flushes.complete_ns[this]
        during = (last >= back) & (end_ns > trace.time_ns[rows]) & (trace.insert_ns[rows] <= end_ns + RELEASED_NS)
        during &= flushes.issue_ns[this] <= trace.insert_ns[rows]
        found[rows[during & (flushes.group[this] != trace.group[rows])]] = True
    return found


EARLY_NS = 3600 * 10**9
"""No row of a file that is read in pieces is earlier than its first piece by so much."""


def from_zero(time_ns: Array, complete_ns: Array | None = None, start: int | None = None) -> tuple[Array, Array]:
    """Shift absolute times (shape (n,)) so that the earliest, or `start`, is 0; unknown completions (-1) stay unknown."""
    start = int(time_ns.min()) if start is None else start
    if complete_ns is None:
        complete_ns = np.full(len(time_ns), -1, np.int64)
    return time_ns - start, np.where(complete_ns >= 0, complete_ns - start, -1)


def bytes_to_sectors(offset: Array, length: Array) -> tuple[Array, Array]:
    """The sectors that a range of bytes touches: (first, count). uint64, shape (n,)."""
    first = offset // SECTOR_BYTES
    return first, (offset + length + SECTOR_BYTES - 1) // SECTOR_BYTES - first
