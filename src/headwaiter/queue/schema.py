# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `headwaiter apply`, `revert` and `status` print as JSON. Nothing else is imported: they must work where little does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.base.records import Document, Record, Says


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Record):
    """A file of queue/ that was written."""

    device: Annotated[str, Says("name of the disk")]
    file: Annotated[str, Says("the file")]
    old: Annotated[str, Says("what it said before")]
    new: Annotated[str, Says("what it says now")]


@dataclass(frozen=True, kw_only=True)
class ApplyDocument(Document):
    """`headwaiter apply`"""

    changes: Annotated[Sequence[Written], Says("what was changed")]
    commands: Annotated[Sequence[str], Says("lines for a shell that do the same")]
    undo: Annotated[Sequence[str], Says("lines for a shell that restore what was before")]
    persisted: Annotated[str, Says("the file of udev rules that was written; empty without --persist")] = ""


@dataclass(frozen=True, kw_only=True)
class RevertDocument(Document):
    """`headwaiter revert`"""

    changes: Annotated[Sequence[Written], Says("what was restored")]
    commands: Annotated[Sequence[str], Says("lines for a shell that do the same")]
    rules: Annotated[Sequence[str], Says("names of disks whose udev rule was taken away")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskStatus(Record):
    """A disk that headwaiter has changed and not restored."""

    device: Annotated[str, Says("its name")]
    identity: Annotated[str, Says("its identity")]
    present: Annotated[bool, Says("it is there")]
    changed: Annotated[str, Says("when")]
    by: Annotated[str, Says("by which command")]
    before: Annotated[str, Says("the scheduler before")]
    wanted: Annotated[str, Says("the scheduler that was chosen")]
    now: Annotated[str | None, Says("the scheduler in force; absent where the disk is gone")] = None
    changes: Annotated[
        Sequence[str], Says("settings beside the scheduler that are otherwise than before, as `file old -> new`")
    ] = ()
    overridden: Annotated[str, Says("the file of queue/ that somebody else has set since; empty where there is none")]
    unavailable: Annotated[
        str, Says("why the running kernel has no scheduler such as was chosen; empty where it has, or the disk is gone")
    ] = ""
    persistent: Annotated[bool, Says("a udev rule of headwaiter sets it again")] = False
    revert: Annotated[Sequence[str], Says("lines for a shell that restore what was before")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign(Record):
    """Something of this machine that sets schedulers, too."""

    kind: Annotated[Literal["udev", "tuned", "unit", "tmpfiles"], Says("what it is")]
    file: Annotated[str, Says("where it stands")]
    line: Annotated[int, Says("in which line")]
    scheduler: Annotated[str, Says("the scheduler that it sets; empty where that cannot be told")]
    disks: Annotated[str, Says("pattern of names that it is for; empty: not told by name")]
    conditions: Annotated[Sequence[str], Says("what else a disk must be, as a udev rule has it")]
    when: Annotated[str, Says("when it acts")]
    acts_on: Annotated[Sequence[str], Says("names of disks here that it is for")]
    may_act_on: Annotated[Sequence[str], Says("names of disks here of which that cannot be told")]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow(Record):
    """A change that was begun."""

    time: Annotated[str, Says("when")]
    device: Annotated[str, Says("name of the disk")]
    identity: Annotated[str, Says("its identity")]
    by: Annotated[str, Says("by which command")]
    old: Annotated[str, Says("the scheduler before")]
    new: Annotated[str, Says("the scheduler that was chosen")]


@dataclass(frozen=True, kw_only=True)
class StatusDocument(Document):
    """`headwaiter status`"""

    disks: Annotated[Sequence[DiskStatus], Says("disks that are changed and not restored")]
    foreign: Annotated[Sequence[Foreign], Says("what else sets schedulers")]
    history: Annotated[Sequence[HistoryRow], Says("all changes, the oldest first")]


DOCUMENTS: tuple[type[Record], ...] = (
    ApplyDocument,
    RevertDocument,
    StatusDocument,
)
