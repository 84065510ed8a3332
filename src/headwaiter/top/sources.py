# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The intervals of `top`, one after the other: of a disk that is recorded, of its counters, or of a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from headwaiter.advice.offered import loadable
from headwaiter.base.errors import Problem
from headwaiter.engine.schedulers import known
from headwaiter.queue import devices
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.recorder.record import LOOK_EACH_S, READ_EACH_S, Tracing, followed
from headwaiter.top.feed import Feed
from headwaiter.top.interval import UNDER_WAY, DiskSetting, Look, busy_percent, counted, counters, look
from headwaiter.top.remedies import Adviser
from headwaiter.top.schema import TopDocument
from headwaiter.traces import Source, Trace, load, recording

Wait = Callable[[float], bool]
"""Waits so many seconds; true if all is to end."""
LACKING = "by the disk's counters: programs, tails and who waits for whom need tracing, as root"


class Watcher:
    """A disk that is recorded while it is looked at."""

    def __init__(self, machine: Machine, device: Device, interval: float, wait: Wait, feed: Feed, recorder: Tracing) -> None:
        self._machine, self._device, self._interval, self._wait = machine, device, interval, wait
        self._feed, self._recorder, self.adviser = feed, recorder, Adviser(feed)

    @classmethod
    @contextmanager
    def of(cls, machine: Machine, device: Device, interval: float, wait: Wait) -> Iterator[Watcher]:
        """Record until the block is left. Problem if tracing cannot be used."""
        feed = Feed(device)
        with ExitStack() as held:
            try:
                recorder = held.enter_context(followed(device, feed, issues=True))
            except Problem as e:
                raise Problem(f"{e} (--counters shows what can be seen without)") from None
            watcher = cls(machine, device, interval, wait, feed, recorder)
            held.callback(watcher.adviser.drop)
            yield watcher

    def looks(self) -> Iterator[TopDocument]:
        """A document at the end of each interval, until all is to end. Problem if the disk has vanished."""
        since_ns, before = time.monotonic_ns(), counters(self._device)
        lost = 0
        while True:
            until_ns, now_lost = self._record(since_ns + round(self._interval * 1e9), lost)
            if until_ns is None:
                return
            device = _there(self._machine, self._device)
            after = counters(device)
            # What seems to be under way on a disk that has nothing has lost its completion.
            trace = self._feed.trace(until_ns, now_lost > lost or not after[UNDER_WAY])
            lost, setting = now_lost, _setting(device)
            seconds = (until_ns - since_ns) / 1e9
            seen = look(trace, since_ns, until_ns, setting, busy_percent(before, after, seconds))
            self.adviser.look(until_ns, setting.scheduler, self._others(device), lost)
            told = _document(device, seen, seconds, lost=lost)
            yield replace(told, advice=self.adviser.text, levers=self.adviser.levers)
            since_ns, before = until_ns, after

    def _record(self, until_ns: int, lost: int) -> tuple[int | None, int]:
        """(when the interval was over, None if all is to end; how many events have been lost)."""
        next_look_ns = time.monotonic_ns() + round(LOOK_EACH_S * 1e9)
        while (now_ns := time.monotonic_ns()) < until_ns:
            if self._wait(min(READ_EACH_S, (until_ns - now_ns) / 1e9)):
                return None, lost
            self._recorder.drain()
            if time.monotonic_ns() >= next_look_ns:
                next_look_ns += round(LOOK_EACH_S * 1e9)
                lost = self._recorder.look()
        ended_ns = time.monotonic_ns()
        self._recorder.hand_over()
        return ended_ns, self._recorder.look()

    def _others(self, device: Device) -> Sequence[str]:
        """The schedulers that the kernel has for it, or could load."""
        return list(known([*device.schedulers, *sorted(loadable(self._machine.root) - set(device.schedulers))]))


def counter_looks(machine: Machine, device: Device, interval: float, wait: Wait) -> Iterator[TopDocument]:
    """Yield what the kernel's counters say of a disk, which needs no root."""
    since, before = time.monotonic(), counters(device)
    while not wait(interval):
        now = time.monotonic()
        device = _there(machine, device)
        after = counters(device)
        yield _document(device, counted(before, after, now - since, _setting(device)), now - since, notes=[LACKING])
        since, before = now, after


def recorded(path: Path, name: str, interval: float) -> Iterator[TopDocument]:
    """Yield the intervals of a recording, from its first request on."""
    source = Source(path)
    found = recording.of(source)
    trace = load(path, source=source)
    if not trace.completions_known:
        raise Problem(f"{name}: has no completions: nothing is known of who waits")
    # What never completes was lost, and not waited for until the end.
    trace = _completed(trace)
    disk = found.disks[0] if found and found.disks else None
    setting = DiskSetting.of(disk.settings) if disk else DiskSetting()
    begin, end = int(trace.time_ns[0]), int(trace.time_ns[0]) + trace.span_ns
    for number in range(max(1, int(np.ceil((end - begin) / (interval * 1e9))))):
        since = begin + round(number * interval * 1e9)
        until = min(end, since + round(interval * 1e9))
        seen = look(trace, since, until, setting)
        seconds = (until - since) / 1e9
        at = f"{(until - begin) / 1e9:.1f} s"
        yield replace(_told(name, "", at, seen, seconds), notes=list(trace.notes) if not number else [])


def _completed(trace: Trace) -> Trace:
    done = np.flatnonzero(trace.complete_ns >= 0)
    flushes = trace.flushes
    return replace(trace, **trace.columns(done), flushes=flushes.rows(flushes.complete_ns >= 0) if flushes else None)


def _there(machine: Machine, device: Device) -> Device:
    """Return the disk with its settings of now. Problem if it has vanished."""
    if not device.is_there():
        raise Problem(f"{device.name} has vanished")
    return devices.read(device.folder, machine.root / "run" / "udev" / "data")


def _setting(device: Device) -> DiskSetting:
    try:
        takes: int | None = int((device.folder / "device" / "queue_depth").read_text(encoding="ascii"))
    except (OSError, ValueError):
        takes = None
    return DiskSetting.of(device.settings, takes)


def _document(device: Device, seen: Look, seconds: float, *, lost: int = 0, notes: Sequence[str] = ()) -> TopDocument:
    told = _told(device.name, device.model, time.strftime("%Y-%m-%dT%H:%M:%S"), seen, seconds)
    return replace(told, lost=lost, notes=notes)


def _told(name: str, model: str, at: str, seen: Look, seconds: float) -> TopDocument:
    return TopDocument(
        device=name,
        model=model,
        at=at,
        seconds=seconds,
        queue=seen.queue,
        read=seen.read,
        write=seen.write,
        programs=seen.programs,
        background=seen.background,
        notes=[],
    )
