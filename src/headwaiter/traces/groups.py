# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads of control that pass through several tasks, such as a shell loop and the processes it starts in turn.

Two sources, the better first:
- Recorded forks: children of one parent that do not overlap are one thread of control, however long the pause between
  them; the parent belongs to it if it issues nothing while a child is at work. Where children work side by side, as those of a
  server do, the parent belongs to those that take longest: what the others do hangs on neither.
- Otherwise command names: a task that begins within the gap after another of the same name has ended, and not before,
  continues it. If several have ended it continues the latest.
- And numbers, which a kernel gives in order: what nothing of its own name goes before continues a task of another name whose
  number is a little lower, if it begins within some gaps after that one has ended, and ends before whatever else continues that
  one begins. A child may be recorded under its parent's name, which it bears until it executes its program.
A task lasts from its first request's issue to its last completion (issue, where completions are unknown).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from headwaiter.traces.model import Array, TraceTask

NEAR = 4
"""Most by which the number of a task may exceed that of the task of another name that it continues."""
NEAR_GAPS = 5
"""Such a task may begin so many gaps later: it may have had to wait for the journal."""


def find_groups(
    time_ns: Array,
    complete_ns: Array,
    task: Array,
    *,
    tasks: Sequence[TraceTask],
    parents: Mapping[int, int],
    gap_ns: int,
) -> Array:
    """The group of each request, shape (n,) like the first three; equal numbers mean one thread of control.

    time_ns must be sorted; complete_ns -1 unknown; task indexes tasks; parents maps a task's id to that of its parent;
    gap_ns is the longest pause between two tasks of one name.
    """
    begin = np.full(len(tasks), np.iinfo(np.int64).max)
    end = np.full(len(tasks), -1)
    np.minimum.at(begin, task, time_ns)
    np.maximum.at(end, task, np.maximum(time_ns, complete_ns))

    head = np.arange(len(tasks))
    by_name: dict[str, list[int]] = {}
    named: list[int] = []
    by_parent: dict[int, list[int]] = {}
    for i in np.argsort(begin, kind="stable").tolist():
        if tasks[i].id in parents:
            by_parent.setdefault(parents[tasks[i].id], []).append(i)
        elif tasks[i].name:
            by_name.setdefault(tasks[i].name, []).append(i)
            named.append(i)
    for members in by_name.values():
        _chain(members, begin, end, gap_ns, head)
    _join(named, tasks, begin, end, NEAR_GAPS * gap_ns, head)
    if by_parent:
        index = {t.id: i for i, t in enumerate(tasks)}
        by_task = np.argsort(task, kind="stable")
        bounds = np.searchsorted(task[by_task], np.arange(len(tasks) + 1))
        for parent, members in by_parent.items():
            _chain(members, begin, end, None, head)
            if parent in index:
                p = index[parent]
                issued_ns = time_ns[by_task[bounds[p] : bounds[p + 1]]]
                busy = np.searchsorted(issued_ns, end[members], "right") > np.searchsorted(issued_ns, begin[members])
                _adopt(p, np.array(members), busy, begin, end, head)
    # Links point from a task to an earlier one or to its parent: follow them to the end.
    while not np.array_equal(head, head[head]):
        head = head[head]
    return head[task]


def _chain(members: list[int], begin: Array, end: Array, gap_ns: int | None, head: Array) -> None:
    """Link each of members (in order of begin) to the head of the task that it continues, if any."""
    if len(members) < 2:
        return
    first, last = begin[members].tolist(), end[members].tolist()
    ended: list[int] = []  # positions in members, in order of their end, not yet continued
    by_end = sorted(range(len(members)), key=lambda k: (last[k], k))
    upcoming = 0
    for k, start in enumerate(first):
        # A task of no duration that begins in this very instant is not over yet.
        while upcoming < len(by_end) and last[by_end[upcoming]] <= start and first[by_end[upcoming]] < start:
            ended.append(by_end[upcoming])
            upcoming += 1
        if ended and (gap_ns is None or start - last[ended[-1]] <= gap_ns):
            head[members[k]] = head[members[ended.pop()]]


def _join(members: list[int], tasks: Sequence[TraceTask], begin: Array, end: Array, gap_ns: int, head: Array) -> None:
    """Link chains of members (in order of begin) to those with a task whose number is just below that of their first."""
    index = {tasks[i].id: i for i in members}
    last: dict[int, int] = {}
    until = dict.fromkeys(members, np.iinfo(np.int64).max)  # when the task that continues one begins
    for i in members:
        chain = int(head[i])
        if chain in last:
            until[last[chain]] = begin[i]
        last[chain] = i
    for i in members:
        if head[i] != i:
            continue
        for number in range(tasks[i].id - 1, tasks[i].id - NEAR - 1, -1):
            before, mine = index.get(number), last[i]
            if before is None or tasks[before].name == tasks[i].name:
                continue
            if begin[before] >= begin[i] or not 0 <= begin[i] - end[before] <= gap_ns:
                continue
            if end[mine] <= until[before]:
                head[i] = head[before]
                until[mine], until[before] = until[before], begin[i]
                break


def _adopt(parent: int, children: Array, busy: Array, begin: Array, end: Array, head: Array) -> None:
    """Let children's chains join their parent's group, but for those with a child during which it was busy.

    Of chains that overlap only the longest does.
    """
    chains, of = np.unique(head[children], return_inverse=True)
    first, last, idle = np.full(len(chains), np.iinfo(np.int64).max), np.full(len(chains), -1), np.ones(len(chains), bool)
    np.minimum.at(first, of, begin[children])
    np.maximum.at(last, of, end[children])
    idle[of[busy]] = False
    taken: list[int] = []
    for k in np.lexsort((first, first - last)).tolist():
        if not idle[k] or any(first[k] < last[other] and first[other] < last[k] for other in taken):
            continue
        if not _reaches(head, parent, int(chains[k])):
            head[chains[k]] = parent
            taken.append(k)


def _reaches(head: Array, start: int, goal: int) -> bool:
    """Return whether following head from start ends at goal, which follows nothing; keeps wrong forks from making circles.

    The way is halved, or a chain of n forks would take n steps at each of its links.
    """
    while head[start] != start:
        head[start] = head[head[start]]
        start = int(head[start])
    return start == goal
