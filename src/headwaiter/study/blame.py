# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Find out who waits for whom in a recording, and which programs do their work in the background.

A program waits while a synchronous request, or a flush, of one of its threads of control is under way. Each nanosecond of that is
laid to the program whose request the device was serving: its own, another's, or nobody's, where the device had nothing. What the
device serves is, of the requests that it has, the one that completes next; where issues were not recorded, of those that have
arrived. Requests that complete in one instant share alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces import Trace, stream_order, with_flushes
from headwaiter.traces.model import Array

F64 = NDArray[np.float64]
Kind = Literal["read", "write", "sync write", "flush", "discard", "other"]
"""What a request does, and whether a program waits for it: reads and flushes are always waited for."""
KINDS: tuple[Kind, ...] = ("read", "write", "sync write", "flush", "discard", "other")
READ, WRITE, SYNC_WRITE, FLUSH, DISCARD, OTHER = range(len(KINDS))
MOST = 48
"""Programs that are told apart: those whose requests are under way for the longest time. All others are one."""
EVERYTHING = "everything"
"""The one program of a trace that does not identify tasks."""
_IN_ORDER = 0.5
_FEW = 8
"""A thread of control of fewer requests does not show whether it works in order: it is like most of its name and operation."""
_IDLE_CLASS = 3
_CLASS_SHIFT = 13
LEAST_SHARE = 0.1
"""Who causes less of the others' waiting is not named as being in the background."""
_ASYNC = 0.05
"""Work is asynchronous if no larger share of its requests is waited for."""
_BUSY = 0.5
"""A stream is as fast as the disk lets it be: its program waits for so much of the recording."""
_TIMES = 4
"""A stream moves so many times the bytes of each of those, no streams themselves, that do most of the waiting for it."""
_FLUSHER = re.compile(r"(kworker)/.*|(flush)-[\d:]+")


@dataclass(frozen=True)
class Program:
    """Threads of control of one name that do the same kind of work; `groups` are their numbers in the trace.

    The name is unique in its trace: where programs of one name do unlike work, it says which.
    """

    name: str
    groups: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Blame:
    """Times for which programs waited, and for whom: float64, ns. Several threads that wait at once count each.

    waited_ns: shape (programs,). by_ns[a, b, k]: for how long of that the device served requests of program b and KINDS[k].
    The rest is for nobody: the device had nothing to do.
    """

    programs: tuple[Program, ...]
    of_group: NDArray[np.int64]
    """The number of the program of each thread of control, shape (groups,)."""
    waited_ns: F64
    by_ns: F64
    span_ns: int
    """How long the time is that was looked at."""

    @property
    def pairs_ns(self) -> F64:
        """[sufferer, culprit]: for how long the sufferer waited while the device served the culprit; the diagonal is its own."""
        whole: F64 = self.by_ns.sum(axis=2)
        return whole

    @property
    def others_ns(self) -> F64:
        """Return the waits without what programs waited for themselves."""
        pairs = self.pairs_ns
        np.fill_diagonal(pairs, 0.0)
        return pairs

    @property
    def nobody_ns(self) -> F64:
        """For how long each waited while the device had nothing to do, shape (programs,)."""
        rest: F64 = np.maximum(0.0, self.waited_ns - self.pairs_ns.sum(axis=1))
        return rest


@dataclass(frozen=True)
class Background:
    """A program that may well wait: `share` is its part of all that programs wait for others, `why` how it is known.

    "asynchronous": nobody waits for what it asks for. "stream": it goes through much data as fast as the disk lets it, and most
    of the waiting for it is of programs that move far less, and not in order. `idle`: it has the idle I/O priority already.
    """

    program: Program
    share: float
    why: Literal["asynchronous", "stream"]
    idle: bool = False


def kinds_of(rows: Trace) -> NDArray[np.int64]:
    """The number in KINDS of each row of a trace with its flushes among its requests."""
    table = np.full(256, OTHER)
    table[[Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH]] = READ, WRITE, DISCARD, FLUSH
    found = table[rows.op]
    found[(found == WRITE) & (rows.flags & SYNC > 0)] = SYNC_WRITE
    return found


def blame(trace: Trace, since_ns: int | None = None, until_ns: int | None = None) -> Blame:
    """Return who waits for whom. Where completions were not recorded, nobody is known to wait.

    since_ns: what lies before does not count. until_ns: the present, in which what has no completion is still under way.

    Millions of requests take seconds: one pass over them for each of MOST programs at most, and over those parts only in which it
    waits.
    """
    rows = with_flushes(trace)
    kind = kinds_of(rows)
    programs, of_group = _programs(trace, rows, kind)
    n = len(programs)
    waited, by = np.zeros(n), np.zeros((n, n, len(KINDS)))
    span = trace.span_ns if since_ns is None or until_ns is None else until_ns - since_ns
    found = Blame(programs, of_group, waited, by, span)
    known = rows.complete_ns >= 0
    if until_ns is not None:
        rows = replace(rows, complete_ns=np.where(known, rows.complete_ns, until_ns))
        given = rows.issue_ns >= 0 if rows.issue_ns is not None else np.zeros(len(rows), bool)
        served, known = _Served.of(rows, known | given), np.ones(len(rows), bool)
    elif known.any():
        served = _Served.of(rows, known)
    else:
        return found
    code = of_group[rows.group] * len(KINDS) + kind
    for a, begin, end in _waits(rows, known, of_group, since_ns or 0):
        times, whole = _integral(begin, end)
        waited[a] = whole[-1]
        by[a] = served.laid_to(code, times, whole, n * len(KINDS)).reshape(n, len(KINDS))
    return found


def background(trace: Trace, found: Blame | None = None) -> list[Background]:
    """The programs that cause much of the others' waiting while nobody waits for their own, those that cause most first.

    `found`: blame() of the same trace, where that is known.
    """
    found = found or blame(trace)
    rows = with_flushes(trace)
    others = found.others_ns
    whole = others.sum()
    if not trace.tasks_known or not whole:
        return []
    of = found.of_group[rows.group]
    n = len(found.programs)
    count = np.bincount(of, minlength=n)
    waited_for = np.bincount(of, weights=rows.flags & SYNC > 0, minlength=n) / np.maximum(1, count)
    in_order = np.bincount(of, weights=stream_order(rows) >= 0, minlength=n) / np.maximum(1, count)
    idle = np.bincount(of, weights=rows.ioprio >> _CLASS_SHIFT == _IDLE_CLASS, minlength=n) / np.maximum(1, count)
    bytes_ = np.bincount(of, weights=rows.sectors, minlength=n)
    streams = (in_order >= _IN_ORDER) & (found.waited_ns >= _BUSY * found.span_ns)
    caused = others.sum(axis=0)
    listed = []
    for p in np.argsort(-caused, kind="stable").tolist():
        share = float(caused[p] / whole)
        if share < LEAST_SHARE or _is_rest(found.programs[p]):
            continue
        lesser = ~streams & (_TIMES * bytes_ <= bytes_[p])
        if waited_for[p] <= _ASYNC:
            listed.append(Background(found.programs[p], share, "asynchronous", bool(idle[p] > _IN_ORDER)))
        elif streams[p] and 2 * others[lesser, p].sum() >= caused[p]:
            listed.append(Background(found.programs[p], share, "stream", bool(idle[p] > _IN_ORDER)))
    return listed


# --- programs ---


def _programs(trace: Trace, rows: Trace, kind: Array) -> tuple[tuple[Program, ...], NDArray[np.int64]]:
    """(the programs, those whose requests are under way for the longest time first, and the number of each group's)."""
    groups = int(rows.group.max()) + 1
    if not trace.tasks_known:
        return (Program(EVERYTHING, tuple(range(groups))),), np.zeros(groups, np.int64)
    requests = np.bincount(rows.group, minlength=groups)
    work = _work(rows, kind, requests)
    _, first = np.unique(rows.group, return_index=True)
    names = [_called(trace, int(task)) for task in rows.task[first].tolist()]
    by_name: dict[str, dict[int, list[int]]] = {}
    for group, name in enumerate(names):
        by_name.setdefault(name, {}).setdefault(0 if _FLUSHER.fullmatch(name) else int(work[group]), []).append(group)
    made = [one for name, works in by_name.items() for one in _of_name(name, works)]
    under_way = np.bincount(rows.group, weights=np.where(rows.complete_ns >= 0, rows.complete_ns - rows.time_ns, 0))
    made.sort(key=lambda one: (-float(under_way[list(one.groups)].sum()), -int(requests[list(one.groups)].sum())))
    if len(made) > MOST:
        rest = made[MOST - 1 :]
        made = [*made[: MOST - 1], Program(f"{len(rest)} others", tuple(sorted(g for one in rest for g in one.groups)))]
    of_group = np.zeros(groups, np.int64)
    for number, one in enumerate(made):
        of_group[list(one.groups)] = number
    return tuple(made), of_group


def _is_rest(program: Program) -> bool:
    return program.name.endswith(" others")


def _called(trace: Trace, task: int) -> str:
    """The name of a task's program; the kernel's flushers, of which there are many, have one."""
    name = trace.tasks[task].name or f"task {trace.tasks[task].id}"
    found = _FLUSHER.fullmatch(name)
    return found[1] or found[2] if found else name


def _work(rows: Trace, kind: Array, requests: Array) -> NDArray[np.int64]:
    """Return what each group mostly does: twice the number of its kind, and one more if most of it is in order."""
    groups = len(requests)
    count = np.bincount(rows.group.astype(np.int64) * len(KINDS) + kind, minlength=groups * len(KINDS))
    most = count.reshape(groups, len(KINDS)).argmax(axis=1)
    in_order = np.bincount(rows.group, weights=stream_order(rows) >= 0, minlength=groups) >= _IN_ORDER * requests
    work: NDArray[np.int64] = np.where(requests < _FEW, -1 - most, 2 * most + in_order)
    return work


def _of_name(name: str, works: dict[int, list[int]]) -> list[Program]:
    """Programs of one name, by their work; that of groups of few requests is below 0."""
    parts = {work: groups for work, groups in works.items() if work >= 0}
    for work, groups in works.items():
        if work < 0:
            kind = -1 - work
            alike = [one for one in parts if one // 2 == kind]
            place = max(alike, key=lambda one: len(parts[one])) if alike else 2 * kind
            parts[place] = [*parts.get(place, ()), *groups]
    if len(parts) == 1:
        return [Program(name, tuple(sorted(groups))) for groups in parts.values()]
    told = Counter(work // 2 for work in parts)

    def called(work: int) -> str:
        what = plural(KINDS[work // 2])
        if told[work // 2] == 1:
            return f"{name} ({what})"
        return f"{name} ({what} in order)" if work % 2 else f"{name} (random {what})"

    return [Program(called(work), tuple(sorted(groups))) for work, groups in parts.items()]


def plural(kind: str) -> str:
    """Return the plural of a kind of request: "reads", "flushes"."""
    return {"flush": "flushes", "other": "other requests"}.get(kind, f"{kind}s")


# --- waits ---


def _waits(rows: Trace, known: Array, of_group: Array, since_ns: int) -> Iterator[tuple[int, Array, Array]]:
    """(program, begins, ends) of all times in which a thread of it waits; those of one thread do not overlap."""
    mine = np.flatnonzero(known & (rows.flags & SYNC > 0))
    if not len(mine):
        return
    mine = mine[np.lexsort((rows.time_ns[mine], rows.group[mine]))]
    group, begin, end = rows.group[mine].astype(np.int64), rows.time_ns[mine], rows.complete_ns[mine]
    # Times of each thread lie above those of the one before, so that one running maximum serves all.
    above = (np.cumsum(np.concatenate([[0], np.diff(group) > 0]))) * (int(end.max()) + 1)
    done = np.maximum.accumulate(end + above) - above
    before = np.concatenate([[0], done[:-1]])
    before[np.flatnonzero(np.diff(group)) + 1] = 0
    begin = np.maximum(np.maximum(begin, before), since_ns)
    some = end > begin
    program, begin, end = of_group[group[some]], begin[some], end[some]
    order = np.argsort(program, kind="stable")
    cuts = np.flatnonzero(np.diff(program[order])) + 1
    for part in np.split(order, cuts):
        if len(part):
            yield int(program[part[0]]), begin[part], end[part]


def _integral(begin: Array, end: Array) -> tuple[F64, F64]:
    """(times, for how long all in all some threads have waited until each), between which it grows evenly."""
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    waiting = np.cumsum(np.concatenate([np.ones(len(begin)), np.full(len(end), -1.0)])[order])
    times = times[order].astype(np.float64)
    return times, np.concatenate([[0.0], np.cumsum(waiting[:-1] * np.diff(times))])


@dataclass(frozen=True, eq=False)
class _Served:
    """Services of the device, in times that do not overlap, in order: begin and end, ns, and for which rows, which share it.

    first, count: the rows of a time are order[first : first + count].
    """

    begin: F64
    end: F64
    first: Array
    count: Array
    order: Array

    @classmethod
    def of(cls, rows: Trace, known: Array) -> _Served:
        """Make it from rows whose completions are known."""
        index = np.flatnonzero(known)
        if not len(index):
            none = np.zeros(0, np.int64)
            return cls(none.astype(np.float64), none.astype(np.float64), none, none, none)
        start = rows.time_ns[index]
        if rows.issue_ns is not None:
            given = rows.issue_ns[index]
            start = np.where(given >= 0, given, start)
        complete = rows.complete_ns[index]
        by_end = np.lexsort((start, complete))
        order, start, complete = index[by_end], start[by_end], complete[by_end]
        first = np.flatnonzero(np.concatenate([[True], np.diff(complete) > 0]))
        count = np.diff(np.concatenate([first, [len(order)]]))
        end, begin = complete[first], start[first]
        before = np.concatenate([[np.iinfo(np.int64).min], end[:-1]])
        # While what completes next is not yet there, that is served which has been there for the longest time.
        least = np.minimum.accumulate(begin[::-1])[::-1]
        units = np.arange(len(begin))
        holder = np.minimum.accumulate(np.where(begin == least, units, len(units))[::-1])[::-1]
        later = np.concatenate([holder[1:], [len(units) - 1]])
        early = np.maximum(before, begin[later]), np.minimum(begin, end)
        own = np.maximum(before, begin), end
        begins, ends = (np.stack(pair, axis=1).reshape(-1) for pair in zip(early, own, strict=True))
        firsts = np.stack([first[later], first], axis=1).reshape(-1)
        counts = np.stack([np.ones_like(count), count], axis=1).reshape(-1)
        some = ends > begins
        return cls(begins[some].astype(np.float64), ends[some].astype(np.float64), firsts[some], counts[some], order)

    def laid_to(self, code: Array, times: F64, waited: F64, codes: int) -> F64:
        """Return how much of the waiting of _integral() lies in the times of rows of each code, shape (codes,)."""
        at = self._touched(times, waited)
        each = np.interp(self.end[at], times, waited) - np.interp(self.begin[at], times, waited)
        count = self.count[at]
        if (count == 1).all():
            return _sums(code[self.order[self.first[at]]], each, codes)
        place = np.repeat(self.first[at], count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return _sums(code[self.order[place]], np.repeat(each / count, count), codes)

    def _touched(self, times: F64, waited: F64) -> Array:
        """The times in which there is any waiting, as numbers in order."""
        grows = np.flatnonzero(np.diff(waited) > 0)
        low = np.searchsorted(self.end, times[grows], side="right")
        high = np.searchsorted(self.begin, times[grows + 1], side="left")
        step = np.zeros(len(self.begin) + 1, np.int64)
        np.add.at(step, low, 1)
        np.add.at(step, np.maximum(low, high), -1)
        return np.flatnonzero(np.cumsum(step[:-1]) > 0)


def _sums(code: Array, values: F64, codes: int) -> F64:
    """Return the sum of the values of each code."""
    return np.bincount(code, weights=values, minlength=codes).astype(np.float64)
