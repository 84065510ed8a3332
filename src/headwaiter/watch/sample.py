# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` sees of a disk in a while: a recording that is replayed, or it or the counters held against a table."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headwaiter.advice.advice import queue_of
from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import Op
from headwaiter.engine.schedulers import known
from headwaiter.engine.sim import I64, Drive
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.judge import judge
from headwaiter.judge.levers import LeverQueue, pull
from headwaiter.queue.devices import Device
from headwaiter.queue.settings import opened
from headwaiter.recorder.record import FINISHED, record
from headwaiter.study.drive_fit import AUTO, REFUSED, choose_drive, doubt, fit
from headwaiter.study.variants import Variant
from headwaiter.study.waits import added_waits
from headwaiter.study.workload import Reading, Workload, open_forest, read_recording, replay
from headwaiter.traces import Source, Trace, recording, with_flushes
from headwaiter.watch.decide import FEWEST, Window

F64 = NDArray[np.float64]
LOST_SHARE = 0.001
_MOST_PROVEN = 10
"""So many windows that a drive model does not explain make watch choose another, however long it has fitted."""


class StoppedError(Exception):
    """All is to end."""


class Method(Protocol):
    """A way of comparing schedulers in a window."""

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        """See a disk for a while. Problem if that is not possible; StoppedError if a signal came meanwhile."""


class Selector(Protocol):
    """A way to choose by what is known beforehand."""

    def advantage(self, seen: Window, current: str, candidates: Sequence[str]) -> Mapping[str, float]:
        """Logarithms of throughput against the current scheduler's; empty where nothing is known of that."""


@dataclass(frozen=True)
class _Proven:
    """A drive model, and how many more windows it has explained than not."""

    drive: Drive
    times: int

    def after(self, fits: bool) -> _Proven:
        """One more window."""
        return _Proven(self.drive, min(self.times + 1, _MOST_PROVEN) if fits else max(0, self.times - 1))


class ReplayMethod:
    """Choose by a replay of what is recorded, on a drive model (`auto`: chosen by the first recording that tells).

    levers: try what may help beside a scheduler, too.
    """

    def __init__(self, drive: str = AUTO, *, levers: bool = False) -> None:
        self._drives: dict[str, _Proven] = {}
        self._name, self._levers = drive, levers

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        """See Method."""
        found = recorded_window(device, legs, seconds)
        return found if isinstance(found, Window) else self.judge(device, *found, current, candidates)

    def judge(self, device: Device, trace: Trace, seconds: float, lost: int, current: str, candidates: Sequence[str]) -> Window:
        """Return what a recording of so many seconds tells."""
        seen = sufficient(trace, seconds, lost)
        if seen.trouble:
            return seen
        names = known([current, *candidates])
        if current not in names:
            return replace(seen, trouble=f"{current} cannot be simulated")
        try:
            drive, line = self._drive(device, trace, names[current])
            work = replay(Path(device.name), trace, drive, Reading())
        except Problem as e:
            return replace(seen, trouble=str(e))
        if line:
            return replace(seen, trouble=line)
        return self._replayed(seen, work, drive, device, current, names)

    def _drive(self, device: Device, trace: Trace, scheduler: str) -> tuple[Drive, str]:
        """The model, and why it does not explain this window, if so.

        A model that was chosen stays until it has failed as often as it has fitted: a drive's cache may make a window look like
        another drive, and that window must not be judged, but the disk is the same.
        """
        if self._name != AUTO:
            named = open_drive(self._name)
            return named, _explains(trace, named, scheduler)
        kept = self._drives.get(device.identity)
        if kept:
            refusal = _explains(trace, kept.drive, scheduler)
            self._drives[device.identity] = kept = kept.after(not refusal)
            if kept.times > 0:
                return kept.drive, refusal
        found = choose_drive(replace(trace, device_model=device.model), device.name, scheduler)[0]
        refusal = _explains(trace, found, scheduler)
        if not refusal:
            self._drives[device.identity] = _Proven(found, 1)
        return found, refusal

    def _replayed(
        self, seen: Window, work: Workload, drive: Drive, device: Device, current: str, names: Mapping[str, str]
    ) -> Window:
        """Return what the judge says of them, as it would say to anybody."""
        variants = [Variant(name, name) for name in names.values()]
        try:
            found = judge(
                work,
                drive,
                variants,
                RunConditions(),
                current=names[current],
                have=names.values(),
                recorded_under=names[current],
                doubted=False,
                tasks=False,
            )
            levers = pull(found, _queue(device)) if self._levers else []
        except Problem as e:
            return replace(seen, trouble=str(e))
        if not found.answer.margins:
            return replace(seen, trouble=found.answer.text)
        leads = {m.scheduler: math.log1p(m.ahead_percent / 100) for m in found.answer.margins}
        ahead = {name: leads[here] for name, here in names.items() if name != current}
        share = (found.answer.contention_percent or 0.0) / 100
        return replace(seen, contention=share, advantage=ahead, answer=found.answer, levers=levers)


def _queue(device: Device) -> LeverQueue:
    """The queue whose settings levers would change. Problem if it cannot be read."""
    with opened(device) as queue:
        return queue_of([device.name], queue.read())


def _explains(trace: Trace, drive: Drive, scheduler: str) -> str:
    """Why a model does not explain a recording; "" if it does, without a look at other models, which takes long."""
    how = fit(trace, drive, scheduler)
    return doubt(how, trace, drive, scheduler)[0] if how and how.off > REFUSED else ""


def recorded_window(device: Device, legs: Sequence[Device], seconds: float) -> tuple[Trace, float, int] | Window:
    """A recording, its seconds and how many events it lost; or a window with nothing. Problem and StoppedError as of Method."""
    with TemporaryDirectory(prefix="headwaiter-") as folder:
        path = Path(folder) / device.name
        done = record(legs, seconds, path)
        if done.trouble:
            raise Problem(f"{device.name}: {done.trouble}")
        if done.reason != FINISHED:
            raise StoppedError
        source = Source(path)
        try:
            trace = read_recording(path, Reading(), source)
        except NoRequestsError:
            return _nothing(done.sofar.seconds, "only 0 requests")
        except Problem as e:  # it may name a file of the recording, which nobody else sees
            return _nothing(done.sofar.seconds, re.sub(rf"{re.escape(str(path))}[^\s:]*: ", "", str(e)))
        recorded = recording.of(source)
    assert trace
    return trace, done.sofar.seconds, recorded.lost if recorded else 0


def sufficient(trace: Trace, seconds: float, lost: int) -> Window:
    """Return what a recording tells by itself; its trouble, if it is too little to judge by."""
    seen = measured(trace, seconds, lost)
    if seen.requests < FEWEST:
        return replace(seen, trouble=f"only {seen.requests} requests")
    if lost > LOST_SHARE * (seen.requests + lost):
        return replace(seen, trouble=f"{lost} events were lost")
    return seen


class CounterMethod:
    """Choose by the disk's counters and a selector: no tracing is needed."""

    def __init__(self, selector: Selector, wait: Callable[[float], bool]) -> None:
        """wait(seconds): true if the wait was cut short, because all is to end."""
        self._selector, self._wait = selector, wait

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        """See Method."""
        before, began = counted(device), time.monotonic()
        if self._wait(seconds):
            raise StoppedError
        return self.judge(before, counted(device), time.monotonic() - began, current, candidates)

    def judge(
        self, before: Sequence[int], after: Sequence[int], seconds: float, current: str, candidates: Sequence[str]
    ) -> Window:
        """Return what two readings of the counters tell, so many seconds apart."""
        reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms, flying = (
            a - b if i < 8 else a for i, (a, b) in enumerate(zip(after, before, strict=True))
        )
        requests = reads + writes
        seen = Window(
            seconds=seconds,
            requests=requests,
            mbps=(read_sectors + write_sectors) * 512 / 1e6 / max(seconds, 1e-9),
            latency_ms=(read_ms if reads else write_ms) / max(1, reads or writes),
            request_bytes=(read_sectors + write_sectors) * 512 / max(1, requests),
            read_share=reads / max(1, requests),
            outstanding=float(flying),
            waited_s=read_ms / 1000,
        )
        if requests < FEWEST:
            return replace(seen, trouble=f"only {requests} requests")
        return replace(seen, advantage=self._selector.advantage(seen, current, candidates))


def counted(device: Device) -> tuple[int, ...]:
    """The first nine counters of a disk's `stat`. Problem if they cannot be read."""
    path = device.folder / "stat"
    try:
        found = tuple(int(word) for word in path.read_text(encoding="ascii").split()[:9])
    except (OSError, ValueError) as e:
        raise Problem(f"{path}: {getattr(e, 'strerror', None) or 'not numbers'}") from None
    if len(found) < 9:
        raise Problem(f"{path}: only {len(found)} counters")
    return found


def measured(trace: Trace, seconds: float, lost: int) -> Window:
    """Return what a recording tells without any replay."""
    done = trace.complete_ns >= 0
    reads = np.asarray(trace.op == Op.READ)
    of = (reads if (reads & done).any() else np.ones(len(trace), bool)) & done
    latency = (trace.complete_ns - trace.time_ns)[of]
    span = max(1, trace.span_ns)
    return Window(
        seconds=seconds,
        requests=len(trace),
        mbps=trace.bytes / 1e6 / max(seconds, 1e-9),
        latency_ms=float(latency.mean()) / 1e6 if len(latency) else 0.0,
        request_bytes=trace.bytes / len(trace),
        read_share=float(reads.mean()),
        outstanding=float((trace.complete_ns - trace.time_ns)[done].sum() / span) if done.any() else 0.0,
        lost=lost,
        waited_s=float(_waited_ns(trace).sum()) / 1e9,
    )


def _waited_ns(trace: Trace) -> F64:
    """For how long each program waited, as recorded, shape (programs,)."""
    rows = with_flushes(trace)
    load = open_forest(rows)
    shift = int(rows.time_ns[0])
    complete = np.where(rows.complete_ns >= 0, rows.complete_ns - shift, load.time_ns)
    waited = added_waits(_Times(load.time_ns, complete), load)  # type: ignore[arg-type]
    return np.bincount(load.groups, weights=waited).astype(np.float64)


@dataclass(frozen=True)
class _Times:
    """As much of rows as waits need."""

    issue_ns: I64
    complete_ns: I64


def _nothing(seconds: float, trouble: str) -> Window:
    return Window(seconds, 0, 0.0, 0.0, 0.0, 0.0, trouble=trouble)
