# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of a recording as `describe` and `top` tell of them: their latencies, who waits for whom, who may be lowered."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

import numpy as np

from headwaiter.description.schema import InBackground, ProgramRow, Sufferer, WaitsFor
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.study.blame import KINDS, Background, Blame, Kind, background, blame, kinds_of, plural
from headwaiter.study.schema import Latency
from headwaiter.traces import Trace, with_flushes
from headwaiter.traces.model import Array

_SHARES = (0.5, 0.95, 0.99, 0.999, 1.0)
_LEAST_PERCENT = 1.0
"""A program that waits less of all waiting is not told of, nor for whom one waits for less of its time."""
MOST_PIDS = 8
"""With more processes than this, lowering each one is of no use."""
_WITH_PIDS = {"recording", "blktrace", "blkparse", "ftrace", "biosnoop"}
"""Formats whose tasks are processes."""
_KERNEL = re.compile(r"(kworker|kswapd|pdflush|flush|jbd2/|xfsaild/|btrfs-|dmcrypt|txg_sync|md\d+_)")
"""Beginnings of the names of the kernel's own threads."""
DEAF = ("none", "kyber")
"""Schedulers that ignore I/O priorities."""


@dataclass(frozen=True, eq=False)
class Found:
    """Figures of a trace's programs; they rest on `blame`."""

    blame: Blame
    rows: list[ProgramRow]
    sufferers: list[Sufferer]
    background: list[InBackground]


def found_of(trace: Trace) -> Found:
    """All of it; of a trace without tasks only the latencies by operation."""
    who = blame(trace)
    return Found(who, _rows(trace, who), sufferers(who) if trace.tasks_known else [], lowered(trace, who))


def lowered(trace: Trace, who: Blame) -> list[InBackground]:
    """The programs in the background, and the command that lowers each."""
    return [_lowered(trace, one) for one in background(trace, who)]


def latencies(values_ns: Array) -> Latency:
    """Return the latencies of at least one request, given in ns."""
    values = np.sort(values_ns)
    n = len(values)
    # The least that so many do not exceed; the sum of shares that are no whole numbers must not lose one.
    at = [min(n - 1, max(0, int(np.ceil(share * n - 1e-9)) - 1)) for share in _SHARES]
    return Latency(float(values.mean()) / 1e6, *(float(values[k]) / 1e6 for k in at))


def _rows(trace: Trace, who: Blame) -> list[ProgramRow]:
    rows = with_flushes(trace)
    code = who.of_group[rows.group] * len(KINDS) + kinds_of(rows)
    order = np.argsort(code, kind="stable")
    cuts = np.flatnonzero(np.diff(code[order])) + 1
    place = np.empty(len(who.programs), np.int64)
    place[np.argsort(-who.waited_ns, kind="stable")] = np.arange(len(who.programs))
    found = []
    for part in np.split(order, cuts):
        program, kind = divmod(int(code[part[0]]), len(KINDS))
        found.append((int(place[program]), kind, _row(rows, part, who.programs[program].name, kind)))
    return [row for *_, row in sorted(found, key=lambda one: one[:2])]


def _row(rows: Trace, part: Array, name: str, kind: int) -> ProgramRow:
    arrived, complete = rows.time_ns[part], rows.complete_ns[part]
    done = complete >= 0
    given = rows.issue_ns[part] if rows.issue_ns is not None else np.full(len(part), -1)
    told = done & (given >= 0)
    return ProgramRow(
        program=name,
        op=KINDS[kind],
        requests=len(part),
        bytes=int(rows.sectors[part].sum(dtype=np.uint64)) * SECTOR_BYTES,
        lat_ms=latencies((complete - arrived)[done]) if done.any() else None,
        above_ms=latencies((given - arrived)[told]) if told.any() else None,
        device_ms=latencies((complete - given)[told]) if told.any() else None,
    )


def sufferers(who: Blame, least_percent: float = _LEAST_PERCENT) -> list[Sufferer]:
    """Programs that have so great a part of all waiting, those that waited longest first."""
    whole = who.waited_ns.sum()
    if not whole:
        return []
    others, nobody = who.others_ns.sum(axis=1), who.nobody_ns
    found = []
    for a in np.argsort(-who.waited_ns, kind="stable").tolist():
        waited = float(who.waited_ns[a])
        if not waited or 100 * waited < least_percent * whole:
            break
        shares = 100 * who.by_ns[a] / waited
        told = [
            WaitsFor(program=who.programs[b].name, op=KINDS[k], percent=float(shares[b, k]))
            for b, k in np.argwhere(shares >= _LEAST_PERCENT).tolist()
        ]
        if (idle := float(100 * nobody[a] / waited)) >= _LEAST_PERCENT:
            told.append(WaitsFor(percent=idle))
        found.append(
            Sufferer(
                program=who.programs[a].name,
                waited_s=waited / 1e9,
                others_percent=float(100 * others[a] / waited),
                waits_for=sorted(told, key=lambda one: -one.percent),
            )
        )
    return found


def work_of(program: str, op: Kind) -> str:
    """Name whose requests these are, as in "cp's writes"; a name that tells what the program does stands alone."""
    what = plural(op)
    return program if what in program.rpartition(" (")[2] else f"{program}'s {what}"


def pids_of(trace: Trace, groups: Array) -> list[int]:
    """The processes of some threads of control that have not ended; none where the recording does not tell PIDs."""
    if trace.format not in _WITH_PIDS:
        return []
    mine = [trace.task[np.isin(trace.group, groups)]]
    if trace.flushes:
        mine.append(trace.flushes.task[np.isin(trace.flushes.group, groups)])
    tasks = [trace.tasks[number] for number in np.unique(np.concatenate(mine)).tolist()]
    return [task.id for task in tasks if task.exit_ns is None and task.id > 0]


def _lowered(trace: Trace, one: Background) -> InBackground:
    kernel = _KERNEL.match(one.program.name)
    pids = pids_of(trace, np.array(one.program.groups))
    command = ""
    if not kernel and not one.idle:
        name = one.program.name.partition(" (")[0]
        few = 0 < len(pids) <= MOST_PIDS
        command = f"ionice -c3 -p {' '.join(map(str, pids))}" if few else f"ionice -c3 {shlex.quote(name)} …"
    return InBackground(program=one.program.name, percent=100 * one.share, why=one.why, idle=one.idle, pids=pids, command=command)
