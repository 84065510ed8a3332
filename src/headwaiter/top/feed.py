# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `top` records: the kernel's pages as they come, made into a trace of the last moments, and kept for a minute.

What is under way stays in the trace, however long ago it came.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np

from headwaiter.base.archives import TRACEFS
from headwaiter.base.errors import Problem
from headwaiter.base.ringbuffer import EventFormat
from headwaiter.engine.constants import Op
from headwaiter.queue.devices import Device
from headwaiter.recorder.packing import Archive
from headwaiter.recorder.record import BUFFER_KB, FINISHED, beginning
from headwaiter.traces.blkevents import make_block_trace
from headwaiter.traces.events import Events, Processes
from headwaiter.traces.model import Array, Trace
from headwaiter.traces.pages import Part, joined_moves
from headwaiter.traces.registry import ReadOptions
from headwaiter.traces.source import Source

KEPT_S = 10.0
"""For so long requests that are complete stay in the trace."""
MOST_EVENTS = 200_000
"""For less long where there are more: they are matched anew at each interval."""
PENDING_S = 600.0
"""A request without a completion for so long is given up: its completion was lost."""
MINUTE_S = 60.0
MOST_BYTES = 128 << 20
"""So much of the minute is kept; of more the latest."""


class Feed:
    """Takes what record.followed() gives; `clock` is that of its events, in ns."""

    def __init__(self, disk: Device, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.disk, self._clock = disk, clock
        self.began_ns = clock()
        self._formats: dict[int, EventFormat] = {}
        self._texts: dict[str, bytes] = {}
        self._new: list[Part] = []
        self._kept: Events | None = None
        self._processes = Processes()
        self._minute: deque[tuple[int, str, bytes]] = deque()
        self._bytes = 0

    def add(self, name: str, content: bytes | bytearray) -> None:
        """See record.Keeper."""
        data = bytes(content)
        if name.startswith("events/"):
            found = EventFormat.parse(data.decode("utf-8", "replace"))
            self._formats[found.number] = found
            self._texts[name] = data
            return
        cpu = name.partition("/")[0]
        source = Source.member(Path(self.disk.name) / name, data, keep_good=False)
        self._new.append(Part(int(cpu.removeprefix("cpu")), source, self._formats))
        self._minute.append((self._clock(), cpu, data))
        self._bytes += len(data)
        while self._minute[0][0] < self._clock() - round(MINUTE_S * 1e9) or self._bytes > MOST_BYTES:
            self._bytes -= len(self._minute.popleft()[2])

    def trace(self, now_ns: int, lost: bool = False) -> Trace | None:
        """Return what is known of the last moments, in times of the clock; None if nothing was asked for.

        lost: events have been lost, maybe completions: what seems to be under way for long is given up.
        """
        self._take()
        if self._kept is None or not len(self._kept):
            return None
        try:
            trace = make_block_trace(
                Source.member(Path(self.disk.name), b"", keep_good=False),
                "recording",
                self._kept,
                device_names=[self.disk.name],
                processes=self._processes,
                options=ReadOptions(),
            )
        except Problem:  # no request among them, but forks and exits, or flushes
            trace = None
        self._forget(trace, now_ns - round(KEPT_S * 1e9), now_ns - round((KEPT_S if lost else PENDING_S) * 1e9))
        return trace

    def _take(self) -> None:
        parts, self._new = self._new, []
        found = joined_moves(parts, 0, self._processes) if parts else {}
        if not found or not len(found["time_ns"]):
            return
        mine = found["device"] == self.disk.number
        columns = {key: column[mine] for key, column in found.items()}
        columns["device"] = np.zeros(int(mine.sum()), np.int64)
        if self._kept is not None:
            columns = {key: np.concatenate([getattr(self._kept, key), column]) for key, column in columns.items()}
        order = np.argsort(columns["time_ns"], kind="stable")
        self._kept = Events(**{key: column[order] for key, column in columns.items()})

    def _forget(self, trace: Trace | None, complete_ns: int, pending_ns: int) -> None:
        """Events of requests that were complete before one time, and of all that came before the other."""
        kept = self._kept
        assert kept is not None
        stays = kept.time_ns >= complete_ns
        stays[:-MOST_EVENTS] = False
        if trace is not None:
            waiting = (trace.complete_ns < 0) & (trace.time_ns >= pending_ns)
            stays |= _about(kept, trace.op[waiting], trace.sector[waiting]) & (kept.time_ns >= pending_ns)
            flushes = trace.flushes
            if flushes is not None and ((flushes.complete_ns < 0) & (flushes.time_ns >= pending_ns)).any():
                stays |= (kept.flush > 0) & (kept.time_ns >= pending_ns)
        self._kept = kept.rows(np.flatnonzero(stays))
        alive = set(self._kept.pid.tolist())
        names = self._processes.names
        if len(names) > 4 * len(alive) + 1024:
            self._processes = Processes(
                {pid: name for pid, name in names.items() if pid in alive},
                {pid: parent for pid, parent in self._processes.parents.items() if pid in alive},
                {pid: at for pid, at in self._processes.exits_ns.items() if pid in alive},
            )

    def seen_s(self) -> float:
        """For how long it has been recorded, a minute at most."""
        since = self._minute[0][0] if self._bytes > MOST_BYTES // 2 and self._minute else self.began_ns
        return min(MINUTE_S, (self._clock() - since) / 1e9)

    def archive(self, path: Path) -> float:
        """Write what is kept of the last minute as an archive of `headwaiter record`; how many seconds that is.

        FullError where there is no room for it.
        """
        now_ns = self._clock()
        seconds = self.seen_s()
        archive = Archive(path)
        try:
            archive.begin(beginning(TRACEFS, [self.disk], seconds, BUFFER_KB, now_ns - round(seconds * 1e9)))
            for name, text in self._texts.items():
                archive.add(name, text)
            for number, (_, cpu, data) in enumerate(list(self._minute)):
                archive.add(f"{cpu}/{number:06d}", data)
            archive.end({"ended_ns": now_ns, "reason": FINISHED, "lost": 0, "gaps": [], "stat": {}})
        finally:
            archive.close()
        return seconds


def _about(events: Events, op: Array, sector: Array) -> Array:
    """Return which events are about what was asked for at some places, or another part of it.

    With them all that happened there before: were only a part of that forgotten, completions would be taken for those of others.
    """
    places = np.sort(_key(op, sector))
    begin = _key(events.op, events.sector)
    end = begin + np.maximum(1, events.sectors)
    whole = np.flatnonzero(np.searchsorted(places, begin) < np.searchsorted(places, end))
    begins, ends = np.sort(begin[whole]), np.sort(end[whole])
    touched: Array = np.searchsorted(begins, end) > np.searchsorted(ends, begin, side="right")
    return touched


def _key(op: Array, sector: Array) -> Array:
    """Operation and place as one number."""
    key: Array = sector.astype(np.int64) + (op.astype(np.int64) << 57)
    return key


assert max(Op) < 32, "an operation has no room beside a place"
