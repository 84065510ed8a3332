# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The numbers of libheadwaiter's interface, by name: each is what its public header says."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, cast

from headwaiter.engine.native import lib

SYNC, META, PRIO = int(lib.HWS_SYNC), int(lib.HWS_META), int(lib.HWS_PRIO)
AT_HEAD, NOMERGE = int(lib.HWS_AT_HEAD), int(lib.HWS_NOMERGE)
"""Flags of an I/O: waited for, file-system metadata, prio. AT_HEAD and NOMERGE are for a policy by itself alone."""
PACED, DRIFTS, NEXT = int(lib.HWS_PACED), int(lib.HWS_DRIFTS), int(lib.HWS_NEXT)
"""Flags of a row of a Forest: it comes not before its time_ns, whatever it follows; it is as late as its task has ever been; it
is the next of its task, whichever of the task's completes."""

SECTOR_BYTES = 512
OpName = Literal["read", "write", "discard", "other"]
"""An operation in results."""


class Op(IntEnum):
    """Operations."""

    READ = lib.HWS_READ
    WRITE = lib.HWS_WRITE
    DISCARD = lib.HWS_DISCARD
    OTHER = lib.HWS_OTHER
    FLUSH = lib.HWS_FLUSH
    """A flush of the drive's own cache: it is no I/O, and only traces have it."""

    @property
    def word(self) -> OpName:
        """The operation's name in results."""
        return cast(OpName, self.name.lower())


class Directions(IntEnum):
    """Operations of a job; WRITES is a bit of BOTH, as READS is."""

    READS = lib.HWS_READS
    WRITES = lib.HWS_WRITES
    BOTH = lib.HWS_READS_AND_WRITES


class Exit(IntEnum):
    """Jobs that end with a job."""

    ITSELF = lib.HWS_EXIT_ITSELF
    GROUP = lib.HWS_EXIT_GROUP
    RUNNING = lib.HWS_EXIT_RUNNING
    ALL = lib.HWS_EXIT_ALL


class FileService(IntEnum):
    """In which order a job goes through its files."""

    IN_TURN = lib.HWS_FILES_IN_TURN
    ONE_BY_ONE = lib.HWS_FILES_ONE_BY_ONE
    RANDOM = lib.HWS_FILES_RANDOM


class Skew(IntEnum):
    """Distributions of a job's random places."""

    EVEN = lib.HWS_EVEN
    ZIPF = lib.HWS_ZIPF
    PARETO = lib.HWS_PARETO
    NORMAL = lib.HWS_NORMAL


class TunableType(IntEnum):
    """The type of a scheduler's tunable."""

    INTEGER = lib.HWS_INTEGER
    FLAG = lib.HWS_FLAG
    CHOICE = lib.HWS_CHOICE


class ParamType(IntEnum):
    """The type of a drive model's parameter."""

    NUMBER = lib.HWS_PARAM_NUMBER
    FLAG = lib.HWS_PARAM_FLAG
    CHOICE = lib.HWS_PARAM_CHOICE
    LIST = lib.HWS_PARAM_LIST
    DRIVES = lib.HWS_PARAM_DRIVES


class Progress(IntEnum):
    """States of a run after a piece of it."""

    OVER = lib.HWS_OVER
    MORE = lib.HWS_MORE
    HUNGRY = lib.HWS_HUNGRY


class IoprioClass(IntEnum):
    """The class of an I/O priority."""

    NONE = lib.HWS_IOPRIO_NONE
    RT = lib.HWS_IOPRIO_RT
    BE = lib.HWS_IOPRIO_BE
    IDLE = lib.HWS_IOPRIO_IDLE


def ioprio(kind: IoprioClass, level: int = 0) -> int:
    """An I/O priority, as ioprio_set(2) takes it."""
    return int(kind << lib.HWS_IOPRIO_SHIFT | level)


def ioprio_parts(value: int) -> tuple[IoprioClass, int]:
    """(class, level) of an I/O priority; no class for one that there is not."""
    kind = value >> lib.HWS_IOPRIO_SHIFT
    level = value & (1 << lib.HWS_IOPRIO_SHIFT) - 1
    return (IoprioClass(kind) if kind in list(IoprioClass) else IoprioClass.NONE), level
