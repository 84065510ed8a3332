# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Windows of a recording: pieces of one length, one at a random place of each equal part of its time, one behind the other.

A recording that memory does not hold is read in windows only: once for its length and where its requests are in time, and again
for those that came in windows. What each request is, and of whom, is what the file tells; who waits for whom is found within
windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path

import numpy as np

from headwaiter.base.figures import brief
from headwaiter.base.reading import beginning, exists, most_bytes
from headwaiter.engine.sim import I64
from headwaiter.traces.formats.native import NativeColumns
from headwaiter.traces.lines import TEXT_BYTES, at, joined, line_format, texts
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import Excerpt, Trace
from headwaiter.traces.pieces import MARK, PiecesIndex, ahead, index
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS
from headwaiter.traces.streams import with_rows

LARGE_BYTES = 1 << 26
"""A recording of so much text is read from disk in pieces: in memory it takes up to ten times as much."""
EXCERPT_IOS = 80_000
"""About so many requests of a recording that memory does not hold are in windows."""
WINDOWS = 24
FEWEST_WINDOWS = 6
LATENCIES = 20
"""A window is at least so many times as long as nearly all requests take, if that leaves FEWEST_WINDOWS: seams do not count."""
_NEARLY_ALL = 0.99
_MOST_PACKED = 64
"""No stored byte stands for more bytes of a recording's text than this."""


@dataclass(frozen=True)
class Windows:
    """Pieces of a recording, in ns from its first request on; begin_ns of shape (windows,), in order, without overlaps."""

    begin_ns: I64
    length_ns: int

    def __len__(self) -> int:
        return len(self.begin_ns)

    def count(self, time_ns: I64) -> int:
        """Return how many of these sorted times lie in a window."""
        edges = np.searchsorted(time_ns, np.stack([self.begin_ns, self.begin_ns + self.length_ns]))
        return int((edges[1] - edges[0]).sum())

    def rows(self, time_ns: I64) -> tuple[I64, I64]:
        """(which of these sorted times lie in a window, by how much each comes later once windows follow each other)."""
        at = np.searchsorted(self.begin_ns, time_ns, side="right") - 1
        inside = np.flatnonzero((at >= 0) & (time_ns < self.begin_ns[at] + self.length_ns))
        return inside, (np.arange(len(self)) * self.length_ns - self.begin_ns)[at[inside]]

    def moved(self, time_ns: int) -> int:
        """A time of the recording, when windows follow each other; one between two windows is that of the seam."""
        at = int(np.searchsorted(self.begin_ns, time_ns, side="right")) - 1
        return 0 if at < 0 else at * self.length_ns + min(time_ns - int(self.begin_ns[at]), self.length_ns)


def time_text(ns: int) -> str:
    return f"{brief(ns / 1e9)} s" if ns >= 1e9 else f"{brief(ns / 1e6)} ms"


def choose(trace: Trace, ios: int, seed: int) -> Windows:
    """Windows of a trace with about so many requests."""
    return _choose(trace.time_ns - trace.time_ns[0], 1, len(trace), trace.span_ns, _latency_ns(trace), ios, seed)


def _choose(time: I64, every: int, count: int, span_ns: int, latency_ns: float, ios: int, seed: int) -> Windows:
    """Choose windows from sorted times that begin at 0, one for each `every` of the `count` requests."""
    share = min(1.0, ios / count)
    number = int(np.clip(share * span_ns / max(1, LATENCIES * latency_ns), FEWEST_WINDOWS, WINDOWS))
    part = span_ns // number + 1
    place = np.random.default_rng([seed, count]).random(number)

    def of(length: int) -> Windows:
        return Windows(np.arange(number) * part + (place * (part - length)).astype(np.int64), length)

    # A window of one place and a greater length holds the shorter one, so that more are in it.
    low, high = 1, part
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if every * of(middle).count(time) < ios else (low, middle)
    return of(low)


def _latency_ns(trace: Trace) -> float:
    known = trace.complete_ns >= 0
    return float(np.quantile((trace.complete_ns - trace.time_ns)[known], _NEARLY_ALL)) if known.any() else 0.0


def cut(trace: Trace, windows: Windows, start: int | None = None) -> Trace:
    """The requests that came in windows, one window behind the other; start: when the recording began, if not with the trace."""
    start = int(trace.time_ns[0]) if start is None else start
    rows, later = windows.rows(trace.time_ns - start)
    columns = trace.columns(rows)
    for name in ("time_ns", "complete_ns", "issue_ns", "insert_ns"):
        if name in columns:
            columns[name] = _later(columns[name], later - start)
    flushes = trace.flushes
    if flushes:
        rows, later = windows.rows(flushes.time_ns - start)
        flushes = flushes.rows(rows)
        if flushes:
            times = [_later(column, later - start) for column in (flushes.time_ns, flushes.complete_ns, flushes.issue_ns)]
            flushes = replace(flushes, time_ns=times[0], complete_ns=times[1], issue_ns=times[2])
    found = with_rows(trace, columns, flushes)
    tasks = tuple(t if t.exit_ns is None else replace(t, exit_ns=windows.moved(t.exit_ns - start)) for t in found.tasks)
    return replace(found, tasks=tasks)


def _later(times: I64, by: I64) -> I64:
    return np.where(times >= 0, times + by, -1)


# --- from disk ---


def is_large(path: Path, most: int | None = None) -> bool:
    """Return whether a file can be read in pieces, and has so much text (default: LARGE_BYTES), or more than memory holds."""
    if not exists(path) or not path.is_file():
        return False
    size, limit = path.stat().st_size, min(LARGE_BYTES if most is None else most, most_bytes())
    if size < limit // _MOST_PACKED:
        return False
    head, stored = beginning(path, TEXT_BYTES)
    return size * len(head) >= limit * max(1, stored) and line_format(head) is not None


def excerpt(
    path: Path,
    seed: int = 0,
    group_gap_ms: float = DEFAULT_GROUP_GAP_MS,
    ios: int | None = None,
    device: str | None = None,
) -> Trace:
    """Windows with about so many requests (default: EXCERPT_IOS) of a recording, read from disk in bounded memory.

    They come one behind the other. The same seed chooses the same windows. Raises Problem with one line naming file, place and
    cause if the file is not sound.
    """
    found = index(path, device=device)
    span = max(1, found.last_ns - found.first_ns)
    latency_ns = _latency_ns(found.first())
    windows = _choose(found.marks_ns - found.first_ns, MARK, found.requests, span, latency_ns, ios or EXCERPT_IOS, seed)
    rows = reduce(joined, _rows_in(found, windows))
    known = found.lines.tasks_known
    trace = make_trace(
        source=str(path),
        format=found.lines.format.name,
        **{one.name: getattr(rows, one.name) for one in fields(rows) if one.name != "task"},
        task_id=rows.task if known else None,
        # What a task is called, and its group, is told by its first row in the file, which may be in no window.
        names=found.names,
        cgroups={task.id: task.cgroup for task in found.tasks if task.cgroup},
        group_gap_ns=round(group_gap_ms * 1e6),
    )
    chosen = cut(trace, windows, found.first_ns)
    note = (
        f"the file has {found.requests:,} requests: these are the {len(chosen):,} in {len(windows)} windows of"
        f" {time_text(windows.length_ns)}, one behind the other"
    )
    told_of = Excerpt(len(windows), found.requests, span)
    return replace(chosen, excerpt=told_of, notes=(*found.notes, *chosen.notes, note), sha256=found.sha256)


def _rows_in(found: PiecesIndex, windows: Windows) -> Iterator[NativeColumns]:
    """The rows in windows, as they stand in the file; with their completions, which the index does not look at."""
    for part in ahead(texts(found.path, found.lines.skip)):
        rows = found.lines.rows(part).columns
        inside, _ = windows.rows(rows.time_ns - found.first_ns)
        yield at(rows, inside)
