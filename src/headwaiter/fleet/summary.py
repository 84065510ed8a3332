# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a fleet comes to: a setting for each class, how many machines gain how much, and what one setting for all would cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.advice.schema import Goal
from headwaiter.base.errors import counted
from headwaiter.fleet.schema import FleetClass, FleetDocument, FleetFailure, FleetSetting, FleetStep

if TYPE_CHECKING:
    import pandas as pd

F64 = NDArray[np.float64]
PERCENTILES = (10, 25, 50, 75, 90)
STEPS = (0.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
AS_IT_IS = "as it is"
FATES = ("gains", "nothing", "idle", "saturated", "cannot tell", "too little", "failed")
_CLOSE = 0.95
_LEAST = 1e-6
_MOST_FAILURES = 20


def document_of(frame: pd.DataFrame, goal: Goal) -> FleetDocument:
    """All that is told of a fleet's rows."""
    judged = frame[frame["outcome"].notna()]
    gains = _gains(judged)
    shares = [json.loads(text) if text else {} for text in judged["shares"].where(judged["shares"].notna(), None)]
    classes, chosen = _classes(judged, shares)
    known = [i for i, each in enumerate(shares) if each]
    costs = _costs(judged, shares, known)
    own = [1 - shares[i].get(chosen[i], 1.0) for i in known]
    notes = []
    if len(known) < len(judged):
        notes.append(f"{counted(len(judged) - len(known), 'machine')} could not be compared, and do not count for costs")
    failed = frame[frame["error"].notna()]
    return FleetDocument(
        goal=goal,
        machines=len(frame),
        fates={fate: int((frame["fate"] == fate).sum()) for fate in FATES},
        gain_percent=_quantiles(gains),
        gains=_steps(gains),
        classes=classes,
        one_for_all=costs,
        per_class_cost_percent=100 * float(np.mean(own)) if own else 0.0,
        failures=[
            FleetFailure(machine=name, error=error)
            for name, error in zip(failed["machine"][:_MOST_FAILURES], failed["error"][:_MOST_FAILURES], strict=True)
        ],
        notes=notes,
    )


def _gains(judged: pd.DataFrame) -> F64:
    """Return what each gains by its own advice, in percent; 0 where none is given."""
    found: F64 = judged["ahead_percent"].fillna(0.0).to_numpy(float)
    return np.where((judged["fate"] == "gains").to_numpy(), found, 0.0)


def _quantiles(values: Any) -> dict[str, float]:
    """Return p10 to p90 by name; {} for no values."""
    if not len(values):
        return {}
    found = np.percentile(np.asarray(values, float), PERCENTILES)
    return {f"p{at}": float(value) for at, value in zip(PERCENTILES, found, strict=True)}


def _steps(gains: F64) -> list[FleetStep]:
    """Machines that gain nothing are none of them."""
    edges: list[float | None] = [*STEPS, None]
    out = []
    for low, high in pairwise(edges):
        assert low is not None
        inside = (gains > 0) & (gains >= low) & (gains < (np.inf if high is None else high))
        out.append(FleetStep(from_percent=low, to_percent=high, machines=int(inside.sum())))
    return out


def _least_loss(shares: Sequence[Mapping[str, float]]) -> str | None:
    """The setting that loses least over machines that have shares, among those that all have; None if there is none.

    Losses are multiplied: half of what is possible on one machine is not made up for by nothing on another.
    """
    some = [one for one in shares if one]
    common = [name for name in (some[0] if some else {}) if all(name in one for one in some)]
    means = {name: float(np.mean([np.log(max(one[name], _LEAST)) for one in some])) for name in common}
    # Of those that are as good the simplest: a scheduler as it comes.
    close = [name for name, mean in means.items() if mean >= max(means.values()) - 1e-3]
    return min(close, key=lambda name: (name.count(":"), -means[name], name), default=None)


def _classes(judged: pd.DataFrame, shares: Sequence[Mapping[str, float]]) -> tuple[list[FleetClass], dict[int, str]]:
    """A row for each class; and the setting for each machine's class, by its row."""
    out: list[FleetClass] = []
    chosen: dict[int, str] = {}
    fates, gains = judged["fate"].to_numpy(), _gains(judged)
    classes: dict[tuple[str, str], list[int]] = {}
    for i, one in enumerate(zip(judged["workload_class"], judged["drive_class"], strict=True)):
        classes.setdefault(one, []).append(i)
    for (workload, drive), rows in classes.items():
        current = judged["current"].to_numpy()[rows]
        setting = _least_loss([shares[i] for i in rows]) or str(max(set(current), key=list(current).count))
        chosen |= dict.fromkeys(rows, setting)
        got = [shares[i].get(setting, 1.0) for i in rows if shares[i]]
        count = {fate: int((fates[rows] == fate).sum()) for fate in FATES}
        out.append(
            FleetClass(
                workload_class=workload,
                drive_class=drive,
                machines=len(rows),
                setting=setting,
                as_advised=sum(share >= _CLOSE for share in got),
                gains=count["gains"],
                nothing=count["nothing"],
                idle=count["idle"],
                saturated=count["saturated"],
                cannot_tell=count["cannot tell"],
                gain_percent=_quantiles(gains[rows]),
                loss_percent=_quantiles([100 * (1 - share) for share in got]),
            )
        )
    return sorted(out, key=lambda one: (-one.machines, one.drive_class, one.workload_class)), chosen


def _costs(judged: pd.DataFrame, shares: Sequence[Mapping[str, float]], known: Sequence[int]) -> list[FleetSetting]:
    names = list(dict.fromkeys(name for i in known for name in shares[i]))
    current = judged["current"].to_numpy()
    losses = {name: [1 - shares[i][name] for i in known if name in shares[i]] for name in names}
    losses[AS_IT_IS] = [1 - shares[i].get(current[i], 1.0) for i in known]
    out = [
        FleetSetting(
            setting=name,
            machines=len(each),
            cost_percent=100 * float(np.mean(each)),
            loss_percent=_quantiles([100 * one for one in each]),
            losing=sum(one > 1 - _CLOSE for one in each),
        )
        for name, each in losses.items()
        if each
    ]
    return sorted(out, key=lambda one: (one.cost_percent, one.setting))
