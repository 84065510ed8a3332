# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A long recording is replayed in windows: pieces of one length, one at a random place of each equal part of its time.

The windows are put one behind the other, and are replayed as one recording: pieces replayed one by one would each begin with an
idle scheduler and an empty queue. What is under way at the end of a window stands for what was under way at the beginning of the
next, and a program goes on in the next with what it did there. Each moment of the recording is as likely to be replayed as any
other, so that shares of time, and work by time, are those of the whole but for chance. How much chance has a part in it,
intervals tell (intervals.py), for which a window is a single sample. A program with fewer I/Os than there are windows does not
count (progress.py): chance alone would tell what it got.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwaiter.base.errors import counted
from headwaiter.base.figures import brief
from headwaiter.engine.sim import I64, Forest
from headwaiter.study.cost import amount
from headwaiter.study.progress import waited_for
from headwaiter.study.workload import Workload, forest_of
from headwaiter.traces import Trace, with_flushes
from headwaiter.traces.excerpt import EXCERPT_IOS, Windows, choose, cut, time_text

WHOLE_IOS = 500_000
"""A recording of up to so many requests is replayed as a whole."""
SAMPLED_RUNS = 4
"""Perturbed runs of a sample, unless somebody asks for another number."""


def sampled(work: Workload, seed: int, most: int = WHOLE_IOS, ios: int = EXCERPT_IOS) -> Workload:
    """A recording of more than `most` requests in windows that have about `ios`; what is none, or is so already, as it is."""
    trace = work.trace
    if trace is None or not isinstance(work.load, Forest) or work.windows:
        return work
    if trace.excerpt:
        load = replace(work.load, windows=trace.excerpt.windows)
        return replace(work, load=load, notes=(*work.notes, *_uncounted(load)))
    if len(trace) <= most:
        return work
    windows = choose(trace, ios, seed)
    chosen = cut(trace, windows)
    note = (
        f"replayed {len(windows)} windows of {time_text(windows.length_ns)}, {amount(len(chosen))} of {amount(len(trace))}"
        f" requests, {brief(100 * len(chosen) / len(trace), 2)}% (--whole replays all)"
    )
    load = joined(work.load, trace, chosen, windows, work.reading.speed)
    note = "; ".join([note, *_uncounted(load)])
    return replace(work, load=load, trace=chosen, whole=work.recording, notes=(*work.notes, note))


def _uncounted(load: Forest) -> list[str]:
    """Tell how many programs do not count, if there are any."""
    few = int((np.unique(load.groups[waited_for(load)], return_counts=True)[1] < load.windows).sum())
    does = "does" if few == 1 else "do"
    return [f"{counted(few, 'program')} with fewer than {load.windows} of them {does} not count"] if few else []


def joined(load: Forest, trace: Trace, chosen: Trace, windows: Windows, speed: float) -> Forest:
    """The load of a trace in windows; `chosen` is the trace in them. Times of the load were divided by `speed`."""
    whole, rows = with_flushes(trace), with_flushes(chosen)
    kept, _ = windows.rows(whole.time_ns - trace.time_ns[0])
    at = np.full(len(whole), -1, np.int64)
    at[kept] = np.arange(len(kept))
    parent = load.parent[kept]
    follows, delay = np.where(parent >= 0, at[parent], -1), load.delay_ns[kept].copy()
    orphans = np.flatnonzero((parent >= 0) & (follows < 0))
    follows[orphans] = _before(rows, orphans, parent[orphans], windows.length_ns)
    # Who follows something in a window before has thought behind that until the seam, and then goes on as the recording shows it
    # at the window's beginning: it waits, and thinks thereafter; or it thinks already.
    window = rows.time_ns // windows.length_ns
    across = np.flatnonzero((follows >= 0) & (window[follows] < window))
    begin = window[across] * windows.length_ns
    since, thought = rows.time_ns[across] - begin, delay[across] * speed
    before = np.maximum(0, begin - _done(rows)[follows[across]])
    delay[across] = (before + np.minimum(since, thought)) / speed
    forest = forest_of(rows, follows, delay)
    after = None if load.after is None else np.where(load.after[kept] >= 0, at[load.after[kept]], -1)
    shares = {task.id: task.share for task in load.tasks}
    tasks = tuple(replace(task, share=shares[task.id]) for task in forest.tasks)
    time = ((rows.time_ns - rows.time_ns[0]) / speed).astype(np.int64)
    return replace(forest, tasks=tasks, after=after, time_ns=time, windows=len(windows))


def _done(rows: Trace) -> I64:
    """Return when each was done, or came, where that is not known."""
    return np.where(rows.complete_ns >= 0, rows.complete_ns, rows.time_ns)


def _before(rows: Trace, orphans: I64, parents: I64, length_ns: int) -> I64:
    """What those follow whose parents are in no window: the last that their programs have done in windows before, -1 if nothing.

    Those that had one parent follow one; of several parents each is another.
    """
    window, done = rows.time_ns // length_ns, _done(rows)
    place = rows.group.astype(np.int64) * (int(window[-1]) + 1) + window
    order = np.lexsort((done, place))
    own = place[orphans]
    families, first, family = np.unique(np.stack([own, parents]), axis=1, return_index=True, return_inverse=True)
    family = family.ravel()
    begin = np.searchsorted(families[0], families[0])
    number, many = np.arange(len(first)) - begin, np.searchsorted(families[0], families[0], side="right") - begin
    end = np.searchsorted(place[order], families[0])
    least = np.searchsorted(place[order], families[0] - window[orphans[first]])
    found = np.where(end > least, order[np.maximum(least, end - many + number) % max(1, len(order))], -1)
    return found[family]
