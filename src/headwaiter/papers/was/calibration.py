# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calibration: which classes? Steps by Algorithm 1, and their number and points, k and N by search.

The paper leaves the choice to a person who looks at plots. A good classification has classes whose waits last differently from
those of all processes together, and few classes that nobody is ever in. Both can be computed: of the candidates with no more
than 30% empty classes the one wins whose rows of A correlate least with their sum.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.papers.was.classify import classes_of_sums, differences, histories, points, weights
from headwaiter.papers.was.config import Config, Steps, config
from headwaiter.papers.was.matrix import tabulate
from headwaiter.papers.was.observe import BUCKET_US, Observation, buckets
from headwaiter.papers.was.prospects import maps, prospect

MAX_EMPTY = 0.3
"""Share of classes that may be without a wait."""
SIM_MAX = 0.8
"""Mean correlation from which a classification is called bad."""
HISTORIES = (3, 5, 8)
CLASS_COUNTS = (100, 70, 50, 35, 25, 18, 12, 8, 5, 3)
STEP_COUNTS = (2, 3, 4, 6, 8)
TOPS = (30, 50, 70)
"""Points of the first spatial step; the first temporal one has the rest of 100."""

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Choices:
    """The choices of the search; None where it is free. Points of steps are in decreasing order."""

    history: int | None = None
    classes: int | None = None
    spatial: tuple[int, ...] | None = None
    temporal: tuple[int, ...] | None = None
    bucket_us: int = BUCKET_US


@dataclass(frozen=True)
class Candidate:
    """A classification and how good it is."""

    history: int
    spatial: Steps
    temporal: Steps
    classes: int
    empty: int
    """Classes without a wait."""
    similarity: float
    """Mean correlation of the rows of A with their sum."""

    @property
    def empty_share(self) -> float:
        """Return the share of classes without a wait."""
        return self.empty / self.classes

    @property
    def key(self) -> tuple[Any, ...]:
        """Best first: within the bound on empty classes, least similar; beyond it, fewest empty ones. Else the smaller one."""
        beyond = self.empty_share > MAX_EMPTY
        size = (len(self.spatial) + len(self.temporal), self.history, self.classes)
        return (beyond, self.empty_share if beyond else 0.0, round(self.similarity, 9), *size, self.spatial, self.temporal)

    def config(self, wait_us: int | Sequence[int], made: Mapping[str, Any]) -> Config:
        """A configuration with these classes; one interval is for all of them."""
        waits = [wait_us] * self.classes if isinstance(wait_us, int) else wait_us
        more = {"similarity": round(self.similarity, 4), "empty_classes": self.empty}
        return config(self.history, self.spatial, self.temporal, waits, {**made, **more})


@dataclass(frozen=True)
class FoundClasses:
    """The outcome of the search."""

    best: Candidate
    others: tuple[Candidate, ...]
    """The best ones of other numbers of classes or lengths of the history, best first."""
    tried: int
    within: int
    """How many of them have no more empty classes than allowed."""

    @property
    def warnings(self) -> list[str]:
        """Return what is wrong with the best one."""
        out = []
        if self.best.empty_share > MAX_EMPTY:
            out.append(f"{self.best.empty_share:.0%} of the classes are without a wait, which is more than {MAX_EMPTY:.0%}")
        if self.best.similarity > SIM_MAX:
            out.append(
                f"classes differ little: their mean correlation with the whole is {self.best.similarity:.2f}, more than {SIM_MAX}"
            )
        return out


def similarity(counts: I64) -> float:
    """Mean Pearson correlation of the rows with a wait, shape (n, M+1), with their sum; a row without variation counts as 0.

    1: all classes are alike. 0 if there is no row.
    """
    rows = counts[counts.any(axis=1)].astype(float)
    if not len(rows):
        return 0.0
    whole = rows.sum(axis=0) - rows.sum() / rows.shape[1]
    rows -= rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((rows**2).sum(axis=1) * (whole**2).sum())
    correlation = np.divide(rows @ whole, spread, out=np.zeros(len(rows)), where=spread > 0)
    return float(correlation.mean())


def heights(top: int, steps: int, halving: bool) -> tuple[int, ...]:
    """Points of so many steps from `top` down to 0: by equal differences, or each half of the one before it."""
    if halving:
        return (*(max(1, top >> i) for i in range(steps - 1)), 0)
    return tuple(round(top * (steps - 1 - i) / (steps - 1)) for i in range(steps))


def _heights(given: tuple[int, ...] | None, top: int) -> Iterator[tuple[int, ...]]:
    if given:
        yield given
        return
    yield from dict.fromkeys(heights(top, n, halving) for n in STEP_COUNTS for halving in (False, True))


def calibrate(observation: Observation, choices: Choices) -> FoundClasses:
    """The best classification of what was observed. Problem if there is nothing to tell classes by."""
    if not len(observation.waits):
        raise Problem(
            f"{observation.name}: the scheduler never waited, so calibration is not possible"
            " (it waits for a process only while another one has requests queued)"
        )
    tried, within, best = 0, 0, dict[tuple[int, int], Candidate]()
    for c in _candidates(observation, choices):
        tried += 1
        within += c.empty_share <= MAX_EMPTY
        shape = (c.history, c.classes)
        if shape not in best or c.key < best[shape].key:
            best[shape] = c
    first, *others = sorted(best.values(), key=lambda c: c.key)
    return FoundClasses(first, tuple(others), tried, within)


def _candidates(o: Observation, choices: Choices) -> Iterator[Candidate]:
    spatial_map, temporal_map = maps(o.reads, choices.bucket_us)
    spatial, temporal, _ = differences(o.reads)
    tops = TOPS if not (choices.spatial and choices.temporal) else TOPS[:1]
    functions = {
        (prospect(s, spatial_map), prospect(t, temporal_map))
        for top in tops
        for s, t in itertools.product(_heights(choices.spatial, top), _heights(choices.temporal, 100 - top))
    }
    columns = buckets(o.max_us, choices.bucket_us)
    for history in (choices.history,) if choices.history else HISTORIES:
        near = _of_waits(histories(spatial, o.reads.task, history), o.waits.read)
        soon = _of_waits(histories(temporal, o.reads.task, history), o.waits.read)
        for s, t in sorted(functions):
            # Waits of equal prospects are in one class, whatever N is: counted together, N costs nothing.
            total, which = np.unique((points(s, near) + points(t, soon)) @ weights(history), return_inverse=True)
            alike = tabulate(len(total), columns, choices.bucket_us, (which + 1, o.waits.elapsed_ns, o.waits.met))
            for classes in (choices.classes,) if choices.classes else CLASS_COUNTS:
                own = classes_of_sums(total, history, classes, s[0][1] + t[0][1])
                counts = np.add.reduceat(alike, np.flatnonzero(np.diff(own, prepend=0)))
                yield Candidate(history, s, t, classes, classes - len(counts), similarity(counts))


def _of_waits(entries: I64, read: I64) -> I64:
    """The histories at waits; that of a process without a read is all zero."""
    return np.where(read[:, None] >= 0, entries[read], 0)
