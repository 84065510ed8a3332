# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine of a fleet: its recording is judged as `headwaiter advise` judges it, and put into its class. A worker runs this."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import headwaiter
from headwaiter.advice.advice import Advised, advise
from headwaiter.advice.little import TooLittleError
from headwaiter.advice.recorded import read_recorded
from headwaiter.advice.schema import Goal
from headwaiter.description.describe import describe
from headwaiter.fleet.classes import drive_class, workload_class
from headwaiter.fleet.schema import Fate, FleetRow
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.schema import Answer
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import Reading
from headwaiter.sweeps.rows import cause_text, check_version, rows_of
from headwaiter.traces import Trace
from headwaiter.traces.busy import busy_ns

SATURATED = 95.0
"""Percent of the time in which a request is under way, from which a disk that no setting helps is saturated."""


@dataclass(frozen=True)
class FleetMachine:
    """A recording, and how it is to be judged."""

    key: str
    name: str
    path: Path
    sha256: str
    goal: Goal
    drive: str
    seed: int
    modules: bool
    """Schedulers that need a module are tried, too."""


@dataclass(frozen=True)
class MachineBatch:
    """Machines, and the version that they are to be judged by."""

    machines: Sequence[FleetMachine]
    version: str = field(default_factory=lambda: headwaiter.__version__)


def judge_machines(batch: MachineBatch) -> list[FleetRow]:
    """A row for each; one that cannot be judged says why. Problem if this is another version."""
    check_version(batch.version, "the fleet is judged by")
    return rows_of(batch.machines, _judge, unjudged)


def _about(one: FleetMachine) -> dict[str, Any]:
    return {"key": one.key, "version": headwaiter.__version__, "machine": one.name, "recording_sha256": one.sha256}


def unjudged(one: FleetMachine, cause: str | None, fate: Fate = "failed") -> FleetRow:
    """The row of a machine without advice."""
    return FleetRow(**_about(one), fate=fate, error=cause_text(cause) if cause else None)


def _judge(one: FleetMachine) -> FleetRow:
    try:
        work, drive, recorded = read_recorded(one.path, one.drive, Reading(seed=one.seed))
    except TooLittleError:
        return unjudged(one, None, "too little")
    found = advise(work, drive, RunConditions(seed=one.seed), goal=one.goal, recorded=recorded, modules=one.modules)
    trace = work.recording
    assert trace is not None
    whole = describe(trace, one.name).whole
    busy = _busy_percent(trace, trace.span_ns / 1e9 if trace.excerpt else found.gate.seconds)
    told = found.answer
    best = next((m for m in told.margins if m.scheduler == told.best), None) if told else None
    shares = shares_of(found)
    return FleetRow(
        **_about(one),
        fate=_fate(found, busy),
        workload_class=workload_class(whole),
        drive_class=drive_class(drive),
        drive=drive.name,
        requests=found.gate.requests,
        seconds=found.gate.seconds,
        read_percent=whole.read_percent,
        sequential_percent=whole.sequential_percent,
        sync_percent=whole.sync_percent,
        size_kib=whole.size_kib.median,
        depth=whole.depth.mean if whole.depth else None,
        busy_percent=busy,
        contention_percent=found.gate.contention_percent,
        current=told.baseline if told else found.current,
        outcome=told.outcome if told else None,
        setting=(told.best or told.baseline) if told else None,
        ahead_percent=best.ahead_percent if best else 0.0 if told else None,
        low_percent=best.low_percent if best else None,
        high_percent=best.high_percent if best else None,
        module=told.module if told else None,
        module_percent=told.module_margin.ahead_percent if told and told.module_margin else None,
        shares=json.dumps(shares) if shares else None,
    )


def _fate(found: Advised, busy: float | None) -> Fate:
    told = found.answer
    if told is None:
        return "too little"
    if told.outcome == "better":
        return "gains"
    if told.outcome == "idle":
        return "idle"
    if told.outcome == "overloaded" or (busy is not None and busy >= SATURATED and told.outcome == "keep"):
        return "saturated"
    return "nothing" if told.outcome in ("keep", "alone") else "cannot tell"


def shares_of(found: Advised) -> dict[str, float]:
    """Return how good each setting of the kernel's is, as a share of the best of them; {} where nothing can be told.

    Where the disk is idle, all are as good.
    """
    told: Answer | None = found.answer
    if told is None:
        return {}
    rates = {m.scheduler: 1 + m.ahead_percent / 100 for m in told.margins if _is_stock(m.scheduler, found)}
    if told.outcome == "idle":
        return dict.fromkeys(rates, 1.0)
    best = max(rates.values(), default=0.0)
    return {name: rate / best for name, rate in rates.items()} if best > 0 and math.isfinite(best) else {}


def _is_stock(name: str, found: Advised) -> bool:
    """Return whether the kernel has it."""
    variant = parse_variant(name)
    return variant.is_stock and variant.scheduler in found.offered


def _busy_percent(trace: Trace, seconds: float) -> float | None:
    """Share of the time in which a request was under way."""
    known = trace.complete_ns >= 0
    if not known.any() or seconds <= 0:
        return None
    return min(100.0, busy_ns(trace.time_ns[known], trace.complete_ns[known]) / 1e7 / seconds)
