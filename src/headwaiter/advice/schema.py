# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fields of `headwaiter advise --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.study.schema import Answer, Fit, Replay, Replayed

Goal = Literal["progress", "throughput", "latency", "fairness"]
AdviceKind = Literal["scheduler", "tunables", "lever", "module", "recording", "foreign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Record):
    """Return whether a recording can tell anything of schedulers."""

    open: Annotated[bool, Says("it can")]
    seconds: Annotated[float, Says("its length", "s")]
    requests: Annotated[int, Says("its requests")]
    lost: Annotated[int, Says("events that its recorder lost")]
    depth: Annotated[int | None, Says("requests that the device takes at once; absent where no drive could be chosen")] = None
    contention_percent: Annotated[
        float | None, Says("share of requests that found as many under way; absent without depth or completions", "%")
    ] = None
    slowdown: Annotated[
        float | None, Says("how many times as long requests took as those that found none under way; absent if that is not known")
    ] = None
    processor_percent: Annotated[
        float | None, Says("share of the processors' time that so many requests take; absent without a host", "%")
    ] = None
    lock_percent: Annotated[
        float | None, Says("the same of one lock for the device, as mq-deadline's; absent without a host", "%")
    ] = None
    could_change: Annotated[
        bool | None, Says("whether a scheduler could change anything; absent where the device or completions are unknown")
    ] = None
    tasks_known: Annotated[bool, Says("it tells tasks, so that think times can be kept")]
    reasons: Annotated[Sequence[str], Says("what it lacks")]
    longer: Annotated[int | None, Says("how many times longer a recording would do")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice(Record):
    """A piece of advice."""

    id: Annotated[str, Says("its identifier: the same advice for the same device has the same; --mute takes it")]
    kind: Annotated[AdviceKind, Says("what it is about")]
    text: Annotated[str, Says("what to do, and why")]
    apply: Annotated[Sequence[str], Says("lines for a shell that do it")]
    undo: Annotated[Sequence[str], Says("lines for a shell that undo it")]


@dataclass(frozen=True, kw_only=True)
class AdviseDocument(Document):
    """`headwaiter advise`"""

    workload: Annotated[str, Says("name of the recording")]
    device: Annotated[str | None, Says("the device's identity")] = None
    legs: Annotated[Sequence[str], Says("names of the disks on whose queues the scheduler acts")]
    drive: Annotated[str | None, Says("the drive model; absent where too little was recorded to choose one")] = None
    goal: Annotated[Goal, Says("what is to be better")]
    replay: Annotated[Replay | None, Says("how the recording was replayed")] = None
    current: Annotated[str, Says("the scheduler in force, or supposed to be")]
    offered: Annotated[Sequence[str], Says("schedulers that the kernel has or could load, by their names in it")]
    gate: Annotated[Gate, Says("whether the recording can tell anything")]
    answer: Annotated[Answer | None, Says("the verdict over these schedulers; absent where the gate is closed")] = None
    losses: Annotated[Sequence[str], Says("what would stop working")]
    fit: Annotated[Fit | None, Says("how well the drive explains the recording")] = None
    replayed: Annotated[Replayed | None, Says("how true a replay under the scheduler in force is")] = None
    advice: Annotated[Sequence[Advice], Says("what to do, the most important first")]
    muted: Annotated[Sequence[str], Says("identifiers of advice that is muted")]
    applied: Annotated[bool, Says("--apply has done it")]
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (AdviseDocument,)
