# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calibration, observation and designation in one, and a trial that decides between what they lead to.

What the matrix promises need not come true: with other intervals other requests meet, and a wait that is met need not pay. So a
few classifications and bounds G and, beside them, one interval for all are carried through, and each is run on the same load.
Intervals are chosen for what the classes were seen to do, drawn a little towards what all waits do (Matrix.shrunk). A class
with few waits keeps the interval of `as`, and so does one for which a shorter interval is not better for sure: it would be
chance, and fail elsewhere. What wins gets `prove`, so that intervals are in force only where they pay, and is run again.

The one with the lowest T_F/A_S wins that keeps the throughput of `as` and is no worse in anything else: it meets as many waits,
and no more fail. If there is none, one that meets as many, or half as many. If none keeps the throughput and has a lower
T_F/A_S, everybody is waited for as `as` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.papers.was.calibration import MAX_EMPTY, Choices, FoundClasses, calibrate
from headwaiter.papers.was.config import DEFAULT_US, Config, config
from headwaiter.papers.was.designate import BOUND_US, ClassIntervals, appraise, designate, gainful
from headwaiter.papers.was.evaluate import Evaluated, WaitSums
from headwaiter.papers.was.matrix import Matrix
from headwaiter.papers.was.observe import Observation

BOUNDS_US = (3000, 4000, 5000, 5500, BOUND_US)
"""G, where nobody says which."""
SAVINGS_US = (2000, 4000, 6000)
"""What a wait that is met may save, for intervals by gain."""
SHRINK_WAITS = 30
"""Waits by which a class is drawn towards all of them."""
FEW_WAITS = 40
"""A class with fewer keeps the interval of `as`."""
SURE = 3
"""Standard errors by which a shorter interval than that of `as` has to be better."""
FIXED_US = (1000, 2000, 3000, 4000, 8000)
"""Intervals for all."""
CONTENDERS = 12
"""Classifications that are carried through."""
LOST_THROUGHPUT = 0.005
"""Share of throughput that may be lost on the load that is fitted to, which three runs cannot tell from none."""
ENOUGH = (1.0, 0.5)
"""Share of the waits that `as` meets: what has so many comes before what has fewer."""


@dataclass(frozen=True)
class Contender:
    """A configuration, how it was made, and what it did in the trial; no matrix where everybody waits alike."""

    config: Config
    matrix: Matrix | None
    designation: ClassIntervals | None
    verdict: Evaluated | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Best first: those that lose nothing in any respect; those that meet as many waits as `as`; half as many; the rest."""
        v = self.verdict
        if v is None or v.throughput < 1 - LOST_THROUGHPUT or not v.better or v.after.cost_ms is None:
            return (len(ENOUGH) + 2, self.verdict is not None)
        share = v.after.met / v.before.met if v.before.met else 1.0
        more_fail = v.after.vain > v.before.vain
        return (sum(share < least for least in ENOUGH) + (share < 1 or more_fail), v.after.cost_ms)


@dataclass(frozen=True)
class FittedWas:
    """The winner, and among how many it was."""

    best: Contender
    calibration: FoundClasses
    tried: int


def designated(given: Config, chosen: ClassIntervals, made: Mapping[str, Any]) -> Config:
    """Return the classes with these intervals."""
    more = {"failures": chosen.failures, "waits": chosen.waits, "penalty_us": chosen.penalty_us}
    return config(given.history, given.spatial, given.temporal, chosen.wait_us, {**given.made, **made, **more}, given.prove)


def alike(wait_us: int, made: Mapping[str, Any]) -> Config:
    """One class for all. With DEFAULT_US this is `as`."""
    return config(2, [[0, 1]], [[0, 0]], [wait_us], made)


def settled(matrix: Matrix, wait_us: Sequence[int], least_us: int) -> tuple[int, ...]:
    """The intervals, one a class, and that of `as` where what the matrix says of a class may be chance."""
    usual = max(DEFAULT_US, (least_us // matrix.bucket_us + 1) * matrix.bucket_us) // matrix.bucket_us
    usual = min(usual, matrix.buckets)
    few = matrix.counts.sum(axis=1) < FEW_WAITS
    sure = surely_less(matrix, usual, wait_us)
    usual *= matrix.bucket_us
    each = zip(few.tolist(), sure.tolist(), wait_us, strict=True)
    return tuple(usual if rare or (us < usual and not certain) else us for rare, certain, us in each)


def surely_less(matrix: Matrix, usual: int, wait_us: Sequence[int]) -> NDArray[np.bool_]:
    """Whether each class's interval improves T_F/A_S against that of `usual` buckets, by SURE standard errors; shape (N,)."""
    ends = np.arange(1, matrix.buckets + 2)[None, :]
    own = (np.array(wait_us, np.int64) // matrix.bucket_us)[:, None]
    worth = matrix.failures[:, usual - 1].sum() * usual / max(1, matrix.successes[:, usual - 1].sum())
    more = np.where(ends <= own, worth, -own) - np.where(ends <= usual, worth, -usual)
    gain, squares = (matrix.counts * more).sum(axis=1), (matrix.counts * more**2).sum(axis=1)
    return np.asarray((gain > 0) & (gain**2 > SURE**2 * squares))


def fit(
    observation: Observation,
    choices: Choices,
    bounds_us: Sequence[int],
    least_us: int,
    before: WaitSums,
    trials: Callable[[Sequence[Config]], Iterable[WaitSums]],
    prove: bool = True,
) -> FittedWas:
    """The best of several classifications and bounds for what was observed.

    `before` is what `as` made of the load, `trials` runs it under `was` with one configuration after
    another. Problem if no bound can be kept, or there were no waits.
    """
    found = calibrate(observation, choices)
    made = {"from": observation.name, "max_us": observation.max_us, "bucket_us": choices.bucket_us}
    contenders: dict[bytes, Contender] = {}
    refused: Problem | None = None

    def add(classes: Config, matrix: Matrix, chosen: ClassIntervals, rule: Mapping[str, Any]) -> None:
        real = appraise(matrix, settled(matrix, chosen.wait_us, least_us))
        done = designated(classes, real, {**rule, "least_us": least_us})
        contenders.setdefault(done.rows().tobytes(), Contender(done, matrix, real))

    for c in [found.best, *(c for c in found.others if c.empty_share <= MAX_EMPTY)][:CONTENDERS]:
        classes = c.config(observation.max_us, made)
        matrix = observation.matrix(classes, choices.bucket_us)
        drawn = matrix.shrunk(SHRINK_WAITS)
        for bound_us in bounds_us:
            try:
                chosen = designate(drawn, bound_us, least_us)
            except Problem as e:
                refused = e
                continue
            add(classes, matrix, chosen, {"bound_us": bound_us})
        for saving_us in SAVINGS_US:
            add(classes, matrix, gainful(drawn, saving_us, least_us), {"saving_us": saving_us})
    if refused and all("saving_us" in c.config.made for c in contenders.values()):
        raise refused
    for wait_us in FIXED_US:
        if least_us < wait_us <= observation.max_us:
            contenders.setdefault(b"%d" % wait_us, Contender(alike(wait_us, made), None, None))
    ran = trials([c.config for c in contenders.values()])
    tried = [
        replace(c, verdict=Evaluated(observation.name, before, one)) for c, one in zip(contenders.values(), ran, strict=True)
    ]
    best = min([*tried, Contender(alike(DEFAULT_US, made), None, None)], key=lambda c: c.key)
    if prove and best.verdict:
        guarded = replace(best.config, prove=True)
        (figures,) = trials([guarded])
        best = replace(best, config=guarded, verdict=Evaluated(observation.name, before, figures))
    return FittedWas(best, found, len(tried))
