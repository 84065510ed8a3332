# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Events of the block layer, and of processes, in pages of the kernel's ring buffer (ring.py), as columns of Events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headwaiter.base.errors import shown
from headwaiter.base.ringbuffer import DamageError, EventFormat
from headwaiter.engine.constants import Op
from headwaiter.traces.events import Letters, Processes, make_flags, parse_rwbs, told_of
from headwaiter.traces.model import MAX_SECTOR, Array
from headwaiter.traces.ring import Walked, walk
from headwaiter.traces.source import Source

_LETTERS = {
    "block_bio_queue": "Q",
    "block_split": "X",
    "block_bio_remap": "A",
    "block_rq_insert": "I",
    "block_rq_issue": "D",
    "block_rq_complete": "C",
}
_AUX = {"X": "new_sector", "A": "old_sector"}
_NAMED = "QXA"
"""These happen in the name of who asks."""


class Part:
    """The events of one file of pages."""

    def __init__(self, cpu: int, source: Source, formats: Mapping[int, EventFormat]) -> None:
        self.cpu, self.source, self.formats = cpu, source, {f.name: f for f in formats.values()}
        self.walked: Walked = self._sound(lambda: walk(source.data, None))

    def _sound(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except DamageError as e:
            raise self.source.problem(e.cause, byte=e.byte) from None

    def column(self, rows: Array, format: EventFormat, name: str) -> Array:
        """Return Walked.column(); Problem if the format has no such field."""
        if name not in format.fields:
            raise self.source.problem(f"the format of {format.name} has no {name}")
        return self.walked.column(rows, format, name)

    def numbers(self, rows: Array, format: EventFormat, name: str) -> Array:
        """Return a field that is a number, as int64 or uint64."""
        found = self.column(rows, format, name)
        if found.ndim != 1:
            raise self.source.problem(f"{format.name}: {name} is not a number")
        return found

    def texts(self, rows: Array, format: EventFormat, name: str) -> Array:
        """Return a field that is text, shape (n, size)."""
        found = self.column(rows, format, name)
        if found.ndim != 2:
            raise self.source.problem(f"{format.name}: {name} is not text")
        return found

    def follow_processes(self, start: int, processes: Processes) -> None:
        """Forks and exits."""
        if fork := self.formats.get("sched_process_fork"):
            rows = self._sound(lambda: self.walked.rows(fork))
            parents, children = (self.numbers(rows, fork, name).tolist() for name in ("parent_pid", "child_pid"))
            processes.parents |= dict(zip(children, parents, strict=True))
        if exit_ := self.formats.get("sched_process_exit"):
            rows = self._sound(lambda: self.walked.rows(exit_))
            times = (self.walked.time_ns[rows].astype(np.int64) - start).tolist()
            processes.exits_ns |= dict(zip(self.numbers(rows, exit_, "pid").tolist(), times, strict=True))

    def moves(self, name: str, letter: str, start: int, processes: Processes) -> dict[str, Array]:
        """The columns of Events for one kind of event, with device numbers for its device; none without its format."""
        format = self.formats.get(name)
        if not format:
            return {}
        rows = self._sound(lambda: self.walked.rows(format))
        sector = self.numbers(rows, format, "sector").astype(np.uint64)
        # A split tells where it cuts, and not how much.
        sectors = np.ones(len(rows), np.int64) if letter == "X" else self.numbers(rows, format, "nr_sector").astype(np.int64)
        aux = self.numbers(rows, format, _AUX[letter]).astype(np.uint64) if letter in _AUX else np.zeros(len(rows), np.uint64)
        data = (sector <= MAX_SECTOR) & (sectors > 0) & (aux <= MAX_SECTOR)
        op, flags, flush = self._operations(self.texts(rows, format, "rwbs"), data, name)
        keep, sector = told_of(sector, sectors, op)
        keep &= aux <= MAX_SECTOR
        rows = rows[keep]
        pid = self.numbers(rows, format, "common_pid").astype(np.int64) & 0xFFFFFFFF
        if letter in _NAMED and "comm" in format.fields:
            self._names(pid, self.texts(rows, format, "comm"), processes)
        return {
            "time_ns": self.walked.time_ns[rows].astype(np.int64) - start,
            "action": np.full(len(rows), ord(letter), np.uint8),
            "op": op[keep],
            "flags": flags[keep],
            "flush": flush[keep],
            "sector": sector[keep],
            "sectors": sectors[keep],
            "pid": pid,
            "device": self.numbers(rows, format, "dev").astype(np.int64),
            "aux": aux[keep],
        }

    def _operations(self, rwbs: Array, data: Array, name: str) -> tuple[Array, Array, Array]:
        """(op, flags, flush) of the kernel's letters, which end at the first NUL: behind it are what the buffer held before.

        Problem if those of an event with data are not known.
        """
        kinds, which = np.unique(rwbs, axis=0, return_inverse=True) if len(rwbs) else (rwbs, np.empty(0, np.int64))
        texts = [bytes(kind).split(b"\0")[0].decode("latin-1") for kind in kinds]
        parsed = [parse_rwbs(text) for text in texts]
        which = which.reshape(-1)
        if unknown := [k for k in np.unique(which[data]).tolist() if parsed[k] is None]:
            raise self.source.problem(f"{name}: unknown operation '{shown(texts[unknown[0]])}'")
        none = Letters(Op.OTHER, False, False, 0)
        table = np.array([one or none for one in parsed], np.int64).reshape(-1, 4)[which]
        op = table[:, 0].astype(np.uint8)
        return op, make_flags(op, table[:, 1] != 0, table[:, 2] != 0), table[:, 3].astype(np.uint8)

    def _names(self, pid: Array, comm: Array, processes: Processes) -> None:
        for number, row in zip(*(one.tolist() for one in np.unique(pid, return_index=True)), strict=True):
            if number not in processes.names:
                processes.names[number] = bytes(comm[row]).split(b"\0")[0].decode("utf-8", "replace")


def joined_moves(parts: Sequence[Part], start: int, processes: Processes) -> dict[str, Array]:
    """The columns of Events of all parts, by kind and not in order of time; none where no format of the block layer is known.

    What the parts tell of processes is added to these.
    """
    columns: dict[str, list[Array]] = defaultdict(list)
    for part in parts:
        part.follow_processes(start, processes)
        for name, letter in _LETTERS.items():
            for key, column in part.moves(name, letter, start, processes).items():
                columns[key].append(column)
    return {key: np.concatenate(values) for key, values in columns.items()}
