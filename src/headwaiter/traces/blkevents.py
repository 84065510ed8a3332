# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From the block layer's events to the requests that were asked of it.

What is replayed is what came in, before the recorded system's own merging, so that merging is ours to do:

- A bio arrives when it is queued (Q). Where a driver such as md-raid0 passes bios on without queueing them anew, the
  remap (A) is its arrival; a remap that leads on to another remap or to a Q of the same place is not.
- A split (X) cuts the bio in two at the sector it names; both arrive when the bio did. Kernels 4.3 to 4.12 queue the
  second part again: that Q is not a new bio.
- A bio is complete when completions (C) have covered it to its end. Completions name what a whole request covers, that
  is, several bios end to end; of bios that begin at one place the oldest is completed first.
- Without Q and A in the recording (masked out when recording), insertions (I) or else issues (D) are what arrives; they
  are merged already.
Flushes never meet a scheduler, and stand apart (flushes.py). Passed-through commands are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from headwaiter.base.errors import NoRequestsError
from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces.events import Array, Bios, Events, Processes
from headwaiter.traces.flushes import find_flushes
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import Trace
from headwaiter.traces.one_device import pick_device
from headwaiter.traces.registry import ReadOptions
from headwaiter.traces.source import Source


def arrival_action(events: Events) -> tuple[bytes, str | None]:
    """(letters of the actions that count as arrivals, or none if there are none; what to tell the user of it)."""
    for letters, note in (
        (b"QA", None),
        (b"I", "no queue events recorded: insertions used as arrivals, already merged"),
        (b"D", "no queue events recorded: issues used as arrivals, already merged"),
    ):
        if events.having(letters).any():
            return letters, note
    return b"", None


def find_bios(events: Events, letters: bytes, inserted: bool = False) -> Bios:
    """The bios (requests, where only those were recorded) of one device's events, with completions; inserted: insertions, too."""
    event = np.flatnonzero(events.having(letters))
    sector, sectors = events.sector[event], events.sectors[event]
    if letters == b"QA":
        event = _without_repeats(events)
        event, sector, sectors = _cut(events, event)
    issues = _covered(events, b"D", event, sector, sectors) if letters != b"D" and events.having(b"D").any() else None
    inserts = (
        _covered(events, b"I", event, sector, sectors) if inserted and letters == b"QA" and events.having(b"I").any() else None
    )
    return Bios(event, sector, sectors, _covered(events, b"C", event, sector, sectors), issues, inserts)


def _by_task(events: Events, letters: bytes) -> tuple[Array, Array]:
    """Indexes of some events sorted by (task, time), and whether each has the same task as the one before it."""
    index = np.flatnonzero(events.having(letters))
    index = index[np.argsort(events.pid[index], kind="stable")]
    same = np.zeros(len(index), bool)
    same[1:] = events.pid[index[1:]] == events.pid[index[:-1]]
    return index, same


def _without_repeats(events: Events) -> Array:
    """Indexes, in order of time, of the Q and A events that are a bio's only or last word on where it goes."""
    index, same = _by_task(events, b"QA")
    this, following = index[:-1], index[1:]
    goes_on = same[1:] & (events.action[this] == ord("A")) & (events.sectors[this] == events.sectors[following])
    goes_on &= events.sector[this] == np.where(
        events.action[following] == ord("A"), events.aux[following], events.sector[following]
    )
    drop = np.zeros(len(events), bool)
    drop[this[goes_on]] = True

    # Second parts of splits, queued again: the Q after an X begins where X cut and ends where the Q before X ended.
    index, same = _by_task(events, b"QX")
    end = events.sector + events.sectors.astype(np.uint64)
    is_queue = events.action[index] == ord("Q")
    latest = np.maximum.accumulate(np.where(is_queue, np.arange(len(index)), -1))
    before = np.maximum(latest[:-1], 0)
    again = same[1:] & is_queue[1:] & ~is_queue[:-1] & (latest[:-1] >= 0)
    again &= events.pid[index[before]] == events.pid[index[1:]]
    again &= (events.aux[index[:-1]] == events.sector[index[1:]]) & (end[index[before]] == end[index[1:]])
    drop[index[1:][again]] = True
    return np.flatnonzero(events.having(b"QA") & ~drop)


def _cut(events: Events, bios: Array) -> tuple[Array, Array, Array]:
    """(event, sector, sectors) of the bios after all splits, in order of arrival and then of place."""
    sector = events.sector[bios]
    end = sector + events.sectors[bios].astype(np.uint64)
    index, _ = _by_task(events, b"QAX")
    is_split = events.action[index] == ord("X")
    position = np.full(len(events), -1)
    position[bios] = np.arange(len(bios))
    latest = np.maximum.accumulate(np.where(position[index] >= 0, np.arange(len(index)), -1))
    splits, origin = index[is_split], latest[is_split]
    splits, origin = splits[origin >= 0], position[index[origin[origin >= 0]]]
    point = events.aux[splits]
    sound = (events.pid[splits] == events.pid[bios[origin]]) & (events.op[splits] == events.op[bios[origin]])
    sound &= (point > sector[origin]) & (point < end[origin])
    owner = np.concatenate([np.arange(len(bios)), origin[sound]])
    begin = np.concatenate([sector, point[sound]])
    order = np.lexsort((begin, owner))
    owner, begin = owner[order], begin[order]
    fresh = np.ones(len(owner), bool)
    fresh[1:] = (owner[1:] != owner[:-1]) | (begin[1:] != begin[:-1])
    owner, begin = owner[fresh], begin[fresh]
    stop = end[owner]
    inner = owner[:-1] == owner[1:]
    stop[:-1][inner] = begin[1:][inner]
    return bios[owner], begin, (stop - begin).astype(np.int64)


def _covered(events: Events, letter: bytes, bio_event: Array, sector: Array, sectors: Array) -> Array:
    """Return when each bio was complete (letter C), issued (D) or inserted (I), int64 ns, -1 unknown: a walk in order of time."""
    complete = np.full(len(bio_event), -1, np.int64)
    done = np.flatnonzero(events.having(letter))
    when = np.concatenate([bio_event, done])
    order = np.argsort(when, kind="stable")
    bios = len(bio_event)
    end = (sector + sectors.astype(np.uint64)).tolist()
    begin = sector.tolist()
    c_end = (events.sector[done] + events.sectors[done].astype(np.uint64)).tolist()
    c_begin, c_time = events.sector[done].tolist(), events.time_ns[done].tolist()
    bio_op, c_op = events.op[bio_event].tolist(), events.op[done].tolist()
    # For each operation, the bios under way by the first sector that is still to come.
    waiting: list[dict[int, deque[int]]] = [{} for _ in range(4)]
    for k in order.tolist():
        if k < bios:
            waiting[bio_op[k]].setdefault(begin[k], deque()).append(k)
            continue
        c = k - bios
        places, place, stop = waiting[c_op[c]], c_begin[c], c_end[c]
        while place < stop:
            queue = places.get(place)
            if queue is None:
                # Somewhere in here a bio was not recorded: go on with the next one that was.
                ahead = range(place + 1, stop)
                few, many = (ahead, places) if len(ahead) < len(places) else (places, ahead)
                place = min((p for p in few if p in many), default=stop)
                continue
            bio = queue.popleft()
            if not queue:
                del places[place]
            place = end[bio]
            if place <= stop:
                complete[bio] = c_time[c]
            else:
                places.setdefault(stop, deque()).appendleft(bio)
    return complete


def make_block_trace(
    source: Source,
    format: str,
    events: Events,
    *,
    device_names: list[str],
    processes: Processes,
    options: ReadOptions,
    notes: Sequence[str] = (),
    inserted: bool = False,
) -> Trace:
    """The Trace of one device's requests. events in any order of time; their device indexes device_names.

    inserted: insertions tell when the scheduler was given a write.
    """
    letters, note = arrival_action(events.rows(np.flatnonzero(events.data)))
    if not letters:
        raise NoRequestsError(f"{source.path}: contains no queue, insertion or issue of a request")
    wanted = options.device.replace(":", ",") if options.device else None
    arrives = events.having(letters) & events.data
    mask, told = pick_device(source, device_names, events.device, wanted, arrives)
    told = [*notes, *told]
    events = events.rows(np.flatnonzero(mask))
    events = events.rows(np.argsort(events.time_ns, kind="stable"))
    moves = np.flatnonzero(events.data)
    bios = find_bios(events.rows(moves), letters, inserted)
    if not len(bios.event):
        raise NoRequestsError(f"{source.path}: contains no request of that device")
    if note:
        told.append(note)
    lost = int((bios.complete_ns < 0).sum())
    if lost:
        told.append(f"{lost} of {len(bios.event)} requests without a recorded completion")
    event = moves[bios.event]
    flushes, arrive_ns = find_flushes(events, event, bios)
    m = len(flushes.time_ns)
    none, given = np.zeros(m, np.int64), None if bios.issue_ns is None else np.concatenate([bios.issue_ns, flushes.issue_ns])
    who = np.concatenate([event, flushes.event])
    return make_trace(
        source=str(source.path),
        format=format,
        time_ns=np.concatenate([arrive_ns, flushes.time_ns]),
        sector=np.concatenate([bios.sector, none.astype(np.uint64)]),
        sectors=np.concatenate([bios.sectors, none]),
        op=np.concatenate([events.op[event], np.full(m, Op.FLUSH, np.uint8)]),
        flags=np.concatenate([events.flags[event], np.full(m, SYNC, np.uint8)]),
        complete_ns=np.concatenate([bios.complete_ns, flushes.complete_ns]),
        issue_ns=given,
        insert_ns=None if bios.insert_ns is None else np.concatenate([bios.insert_ns, np.full(m, -1, np.int64)]),
        task_id=events.pid[who],
        names=processes.names,
        exits_ns=processes.exits_ns,
        parents=processes.parents,
        group_gap_ns=options.group_gap_ns,
        notes=told,
    )
