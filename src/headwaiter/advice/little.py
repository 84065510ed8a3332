# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A recording of so little that no drive can be chosen for it: what is to be said then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwaiter.advice.advice import STOCK, Target, identifier, recorded_schedulers, recorded_settings
from headwaiter.advice.gate import gate, told
from headwaiter.advice.schema import Advice, AdviseDocument, Gate, Goal
from headwaiter.base.errors import Problem
from headwaiter.base.figures import brief
from headwaiter.judge.verdict import STOCK_BASELINES
from headwaiter.traces import Trace
from headwaiter.traces.recording import Recording


class TooLittleError(Problem):
    """No drive can be chosen. trace: what was recorded, None if nobody asked for anything in so many seconds."""

    def __init__(self, name: str, trace: Trace | None, recorded: Recording | None, seconds: float) -> None:
        super().__init__(f"{name}: too little was asked of it")
        self.name, self.trace, self.recorded, self.seconds = name, trace, recorded, seconds


@dataclass(frozen=True)
class Little:
    """Advice as in Advised; nothing is to be applied."""

    name: str
    target: Target | None
    goal: Goal
    current: str
    offered: tuple[str, ...]
    gate: Gate
    advice: tuple[Advice, ...]
    muted: tuple[str, ...]
    losses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    wanted: None = None

    def document(self, applied: bool) -> AdviseDocument:
        """Return what `headwaiter advise --json` prints."""
        return AdviseDocument(
            workload=self.name,
            device=self.target.device.identity if self.target else None,
            legs=[leg.name for leg in self.target.legs] if self.target else [],
            goal=self.goal,
            current=self.current,
            offered=self.offered,
            gate=self.gate,
            losses=self.losses,
            advice=self.advice,
            muted=self.muted,
            applied=applied,
            notes=self.notes,
        )


def little(of: TooLittleError, target: Target | None, goal: Goal, mute: Sequence[str]) -> Little:
    """Return what is to be said. mute: identifiers of advice to be left out."""
    settings = target.settings[0] if target else recorded_settings(of.recorded)
    offered = (*target.offered, *target.loadable) if target else recorded_schedulers(of.recorded) or STOCK
    if of.trace is None:
        opened, what = _at_rest(of.seconds), "rest"
        text = (
            f"{of.name}: nobody read or wrote it in {brief(of.seconds)} s: no scheduler matters to a disk at rest. Record while"
            " what you care about runs."
        )
    else:
        opened, what = gate(of.trace, None, of.recorded.lost if of.recorded else 0, of.seconds), "record"
        text = told(opened)
    subject = target.device.identity if target else of.name
    said = Advice(id=identifier(subject, "recording", what), kind="recording", text=text, apply=(), undo=())
    muted = said.id in mute
    return Little(
        name=of.name,
        target=target,
        goal=goal,
        current=settings.scheduler if settings else STOCK_BASELINES[0],
        offered=tuple(dict.fromkeys(offered)),
        gate=opened,
        advice=() if muted else (said,),
        muted=(said.id,) if muted else (),
    )


def _at_rest(seconds: float) -> Gate:
    """Return what the gate says of a recording without a request."""
    return Gate(open=False, seconds=seconds, requests=0, lost=0, tasks_known=True, reasons=["nothing was asked of the disk"])
