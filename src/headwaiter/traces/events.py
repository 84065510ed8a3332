# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What recordings of the block layer hold, in whatever format: its events, what they say of processes, and the bios in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.traces.model import MAX_SECTOR

Array = npt.NDArray[Any]
PREFLUSH, FUA = 1, 2
"""Marks of an event: flushed before, and on the medium when done."""

_FORK = re.compile(r"fork (\d{1,10}) (\d{1,10})\Z", re.ASCII)
_EXIT = re.compile(r"exit (\d{1,10})\Z", re.ASCII)


@dataclass(frozen=True, eq=False)
class Events:
    """Events that move data, and what there is of flushes, in order of time; every column of shape (n,).

    time_ns int64; action uint8, blkparse's letter; op, flags as in Trace, FLUSH of the kernel's own requests; flush uint8,
    PREFLUSH and FUA; sector uint64; sectors int64, 0 without data; pid int64; device int64; aux uint64: of X the sector of the
    second part, of A the sector before the remap, else 0.
    """

    time_ns: Array
    action: Array
    op: Array
    flags: Array
    flush: Array
    sector: Array
    sectors: Array
    pid: Array
    device: Array
    aux: Array

    def __len__(self) -> int:
        return len(self.time_ns)

    def rows(self, index: Array) -> Events:
        """Only the rows that index (numbers, or a mask) selects."""
        return Events(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @property
    def data(self) -> Array:
        """Mask of the events that move data. The kernel's own requests for flushes never do."""
        mask: Array = (self.sectors > 0) & (self.op != Op.FLUSH)
        return mask

    def having(self, letters: bytes) -> Array:
        """Mask of the events whose action is one of letters."""
        wanted = np.zeros(256, bool)
        wanted[list(letters)] = True
        mask: Array = wanted[self.action]
        return mask


@dataclass
class Processes:
    """Names of commands, parents and times of exit of the processes in a recording, by pid."""

    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    exits_ns: dict[int, int] = field(default_factory=dict)

    def message(self, text: str, time_ns: int) -> None:
        """Take note of a message in the recording: `fork PARENT CHILD` or `exit PID`; others mean nothing here."""
        if found := _FORK.match(text):
            self.parents[int(found[2])] = int(found[1])
        elif found := _EXIT.match(text):
            self.exits_ns[int(found[1])] = time_ns


@dataclass(frozen=True, eq=False)
class Bios:
    """Bios that arrived. event: int64, the event that it came by; sector uint64, sectors int64; the rest int64 ns, -1 unknown.

    issue_ns: when the device was given it; None where that was not recorded, or is how it arrived. insert_ns: the scheduler.
    """

    event: Array
    sector: Array
    sectors: Array
    complete_ns: Array
    issue_ns: Array | None
    insert_ns: Array | None


def make_flags(op: Array, sync: Array, meta: Array) -> Array:
    """Flags of a Trace from the operation and what the recording marks; as in the kernel all reads are synchronous."""
    waited = (op == Op.READ) | sync
    flags: Array = (waited * SYNC | meta * META).astype(np.uint8)
    return flags


_RWBS = re.compile(r"F?(R|W|N|F|DE?|ZR|ZA)([FASMBE]*)")


class Letters(NamedTuple):
    """The kernel's letters of a request, read; flush: PREFLUSH and FUA."""

    op: Op
    sync: bool
    meta: bool
    flush: int

    @property
    def may_flush(self) -> bool:
        """Return whether an event without data may be a flush's."""
        return self.op in (Op.FLUSH, Op.WRITE)


def parse_rwbs(text: str) -> Letters | None:
    """F before the operation is a flush, as operation the kernel's own, after it FUA; S sync, M meta.

    The kernel's own flush is FF in tracepoints. blkparse, which sees a read of nothing that is a flush, prints FN.
    """
    found = _RWBS.fullmatch(text)
    if not found:
        return None
    before = len(text) > len(found[1]) + len(found[2])
    own = Op.FLUSH if before else Op.OTHER
    op = {"R": Op.READ, "W": Op.WRITE, "D": Op.DISCARD, "F": Op.FLUSH, "N": own}.get(found[1][0], Op.OTHER)
    flush = PREFLUSH * before + FUA * ("F" in found[2])
    return Letters(op, before or any(letter in found[2] for letter in "SFB"), "M" in found[2], flush)


def told_of(sector: Array, sectors: Array, op: Array) -> tuple[Array, Array]:
    """(which events tell something, their sectors): those with data on a disk, and of those without data what flushes do.

    A flush without data may have the sector -1.
    """
    flush = (sectors == 0) & ((op == Op.FLUSH) | (op == Op.WRITE))
    return flush | (sectors > 0) & (sector <= MAX_SECTOR), np.where(flush & (sector > MAX_SECTOR), 0, sector)
