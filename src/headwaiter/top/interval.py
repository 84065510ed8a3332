# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `top` tells of an interval: from a trace, whether it was recorded just now or long ago, or from the disk's counters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from headwaiter.base.errors import Problem
from headwaiter.description.programs import latencies, lowered, pids_of, sufferers
from headwaiter.description.schema import InBackground, Sufferer
from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.queue.devices import Device, current_scheduler
from headwaiter.study.blame import Blame, blame
from headwaiter.top.schema import TopFlow, TopProgram, TopQueue
from headwaiter.traces import Trace, requests_of, with_flushes
from headwaiter.traces.model import Array

SHOWN = ("nr_requests", "wbt_lat_usec", "read_ahead_kb")
"""Settings that are told beside the scheduler's tunables."""
COUNTERS, UNDER_WAY = 11, 8
"""So many fields of `stat` are read, and this one tells how many requests are under way."""


@dataclass(frozen=True)
class DiskSetting:
    """Settings in force on a disk; `takes`: requests that the device takes at once."""

    scheduler: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    takes: int | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str], takes: int | None = None) -> DiskSetting:
        """From the files of queue/, as Device.settings has them."""
        found = {name.removeprefix("iosched/"): text for name, text in settings.items() if name.startswith("iosched/")}
        found |= {name: settings[name] for name in SHOWN if name in settings}
        return cls(current_scheduler(settings.get("scheduler", "")), found, takes)


@dataclass(frozen=True)
class Look:
    """The figures of an interval."""

    queue: TopQueue
    read: TopFlow
    write: TopFlow
    programs: Sequence[TopProgram] | None
    background: Sequence[InBackground] = ()


def look(trace: Trace | None, since_ns: int, until_ns: int, setting: DiskSetting, busy_percent: float | None = None) -> Look:
    """What is to be seen from one time of a trace to another: what completes between the two, and is under way at the second.

    None: nothing was asked for. busy_percent: as the kernel counts it, where that is known.
    """
    seconds = max(1, until_ns - since_ns) / 1e9
    rows = _within(trace, since_ns, until_ns) if trace else None
    if rows is None:
        queue = TopQueue(scheduler=setting.scheduler, settings=setting.settings, under_way=0, takes=setting.takes)
        nothing = TopFlow(requests_per_s=0.0, mbps=0.0)
        return Look(replace(queue, busy_percent=busy_percent or 0.0), nothing, nothing, ())
    every = with_flushes(rows)
    found = blame(rows, since_ns, until_ns)
    told = {one.program: one for one in sufferers(found, least_percent=0.0)}
    programs = [_program(rows, every, found, p, told.get(one.name), seconds, until_ns) for p, one in enumerate(found.programs)]
    programs.sort(key=lambda one: (-one.waits_percent, -(one.read.mbps + one.write.mbps), one.program))
    whole = np.ones(len(every), bool)
    queue = _queue(every, since_ns, until_ns, setting, busy_percent)
    return Look(
        queue, _flow(every, whole, Op.READ, seconds), _flow(every, whole, Op.WRITE, seconds), programs, lowered(rows, found)
    )


def _within(trace: Trace, since_ns: int, until_ns: int) -> Trace | None:
    """The rows that are under way at some time of an interval, as they are known at its end; None if there are none."""
    flushes = trace.flushes
    done = trace.complete_ns >= 0
    kept = (trace.time_ns < until_ns) & (~done | (trace.complete_ns > since_ns))
    if flushes:
        kept_flushes = (flushes.time_ns < until_ns) & ((flushes.complete_ns < 0) | (flushes.complete_ns > since_ns))
        flushes = flushes.rows(kept_flushes)
        if flushes:
            flushes = replace(flushes, complete_ns=_by(flushes.complete_ns, until_ns), issue_ns=_by(flushes.issue_ns, until_ns))
    if not kept.any():
        return None
    columns = trace.columns(np.flatnonzero(kept))
    # Those that are left are numbered anew, without gaps.
    every = np.concatenate([columns["group"], flushes.group]) if flushes else columns["group"]
    group = np.unique(every, return_inverse=True)[1].astype(np.uint32)
    columns["group"] = group[: len(columns["group"])]
    if flushes:
        flushes = replace(flushes, group=group[len(columns["group"]) :])
    columns["complete_ns"] = _by(columns["complete_ns"], until_ns)
    if trace.issue_ns is not None:
        columns["issue_ns"] = _by(columns["issue_ns"], until_ns)
    return replace(trace, **columns, flushes=flushes)


def _by(times: Array, until_ns: int) -> Array:
    """Return those that have come by then."""
    return np.where(times <= until_ns, times, -1)


def _flow(rows: Trace, mask: Array, op: Op, seconds: float) -> TopFlow:
    done = mask & (rows.op == op) & (rows.complete_ns >= 0)
    n = int(done.sum())
    took = (rows.complete_ns - rows.time_ns)[done]
    return TopFlow(
        requests_per_s=n / seconds,
        mbps=int(rows.sectors[done].sum(dtype=np.uint64)) * SECTOR_BYTES / 1e6 / seconds,
        mean_ms=float(took.mean()) / 1e6 if n else None,
    )


def _program(trace: Trace, rows: Trace, found: Blame, p: int, told: Sufferer | None, seconds: float, until_ns: int) -> TopProgram:
    mine = found.of_group[rows.group] == p
    waited_for = mine & (rows.flags & SYNC > 0)
    of = waited_for if waited_for.any() else mine
    under_way = rows.complete_ns < 0
    took = np.where(under_way, until_ns, rows.complete_ns) - rows.time_ns
    return TopProgram(
        program=found.programs[p].name,
        pids=pids_of(trace, np.array(found.programs[p].groups)),
        read=_flow(rows, mine, Op.READ, seconds),
        write=_flow(rows, mine, Op.WRITE, seconds),
        lat_ms=latencies(took[of]) if of.any() else None,
        under_way=int((mine & under_way).sum()),
        waits_percent=float(found.waited_ns[p]) / seconds / 1e7,
        waits_for=told.waits_for if told else (),
    )


def _queue(rows: Trace, since_ns: int, until_ns: int, setting: DiskSetting, busy_percent: float | None) -> TopQueue:
    end = np.where(rows.complete_ns >= 0, rows.complete_ns, until_ns)
    begin, stop, in_device, most = rows.time_ns, end, None, None
    if rows.issue_ns is not None:
        given = rows.issue_ns >= 0
        issue, end, still = rows.issue_ns[given], end[given], rows.complete_ns[given] < 0
        # What was merged is one request of the device.
        order, first = requests_of(issue, end, rows.op[given], still)
        one = order[first]
        begin, stop, in_device = issue[one], end[one], int(still[one].sum())
        most = _most(begin, stop)
    if busy_percent is None:
        busy_percent = 100 * _union(np.maximum(begin, since_ns), stop) / max(1, until_ns - since_ns)
    return TopQueue(
        scheduler=setting.scheduler,
        settings=setting.settings,
        busy_percent=min(100.0, busy_percent),
        under_way=int((rows.complete_ns < 0).sum()),
        in_device=in_device,
        most=most,
        takes=setting.takes,
    )


def _most(begin: Array, end: Array) -> int:
    """Return how many were there at once, at most."""
    if not len(begin):
        return 0
    times = np.concatenate([begin, end])
    # One that ends makes room for one that begins in the same instant.
    step = np.concatenate([np.ones(len(begin), np.int64), np.full(len(end), -1)])
    return int(np.cumsum(step[np.lexsort((step, times))]).max())


def _union(begin: Array, end: Array) -> int:
    """Return how long at least one was there."""
    order = np.argsort(begin, kind="stable")
    done = np.maximum.accumulate(end[order]) if len(order) else end
    before = np.concatenate([[0], done[:-1]])
    return int(np.maximum(0, done - np.maximum(begin[order], before)).sum())


# --- the kernel's counters ---


def counters(device: Device) -> tuple[int, ...]:
    """The first eleven counters of a disk's `stat`. Problem if they cannot be read."""
    path = device.folder / "stat"
    try:
        found = tuple(int(word) for word in path.read_text(encoding="ascii").split()[:COUNTERS])
    except (OSError, ValueError) as e:
        raise Problem(f"{path}: {getattr(e, 'strerror', None) or 'not numbers'}") from None
    if len(found) < COUNTERS:
        raise Problem(f"{path}: only {len(found)} counters")
    return found


def busy_percent(before: Sequence[int], after: Sequence[int], seconds: float) -> float:
    """Share of the time between two readings in which the disk had at least one request."""
    return min(100.0, (after[9] - before[9]) / max(1e-9, seconds) / 10)


def counted(before: Sequence[int], after: Sequence[int], seconds: float, setting: DiskSetting) -> Look:
    """Return what two readings of the counters tell; nothing of programs."""
    change = [b - a for a, b in zip(before, after, strict=True)]

    def flow(first: int) -> TopFlow:
        n, _, sectors, ms = change[first : first + 4]
        rate = n / max(1e-9, seconds)
        return TopFlow(requests_per_s=rate, mbps=sectors * SECTOR_BYTES / 1e6 / max(1e-9, seconds), mean_ms=ms / n if n else None)

    queue = TopQueue(
        scheduler=setting.scheduler,
        settings=setting.settings,
        busy_percent=busy_percent(before, after, seconds),
        under_way=after[UNDER_WAY],
        takes=setting.takes,
    )
    return Look(queue, flow(0), flow(4), None)
