# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each class its interval: equations (5) to (13) as an integer program, solved exactly by HiGHS through SciPy.

Few failures are wanted (8); a long interval has fewest, so what a failed wait costs on average stays below G (12), and intervals
of up to q are forbidden (13). Of the best solutions it is the one with the least penalty, then with the smaller intervals, the
lower class first. A solution without any failure is allowed although its average penalty does not exist. A class without a wait
gets what the nearest one below it has, or the 6 ms of Linux where there is none.

Besides, two rules that choose for each class by itself: the paper's simple one, and ours of the largest gain.

The relaxation, which the paper solves, may split a class between two intervals: it is a bound, not a solution.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.papers.was.config import DEFAULT_US
from headwaiter.papers.was.matrix import Matrix

BOUND_US = 6000
"""G of the paper's experiments."""
_TIES_AT_ONCE = 4
"""Classes whose ties are broken by one program: the digits of their intervals must fit in a double with room to spare."""

_TOO_LARGE = "HiGHS left its tolerance: the numbers of waits are too large for it"

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class ClassIntervals:
    """Intervals of class 1 … N in microseconds, and what they come to on the waits that were observed."""

    wait_us: tuple[int, ...]
    waits: int
    failures: int
    penalty_us: int
    relaxed: float | None = None
    """Failures of the relaxation: no assignment has fewer. None: it was not asked for."""

    @property
    def successes(self) -> int:
        """Waits that would have been met."""
        return self.waits - self.failures

    @property
    def mean_failure_us(self) -> float:
        """Return what a failed wait costs on average; 0 where none fails."""
        return self.penalty_us / self.failures if self.failures else 0.0


@dataclass(frozen=True)
class _Choice:
    """An interval that a class may get: bucket from 1, failures, penalty in microseconds, and its term of (12)."""

    bucket: int
    failures: int
    penalty_us: int
    excess: int


def designate(
    matrix: Matrix, bound_us: int = BOUND_US, least_us: int = 0, or_equal: bool = False, relaxed: bool = False
) -> ClassIntervals:
    """The optimum. bound_us is G; intervals of up to least_us (q) are forbidden; or_equal lets the average be G itself.

    Problem if no assignment keeps the bound, with the least G that one does.
    """
    first = _first_bucket(matrix, least_us)
    offered = [_choices(matrix, row, first, bound_us) for row in matrix.populated.tolist()]
    if all(any(not c.failures for c in choices) for choices in offered):
        chosen = [next(c for c in choices if not c.failures) for choices in offered]
    else:
        if not or_equal and bound_us <= first * matrix.bucket_us:
            raise _infeasible(matrix, first, bound_us)
        if or_equal and bound_us < first * matrix.bucket_us:
            raise _infeasible(matrix, first, bound_us)
        unit = math.gcd(*(c.excess for choices in offered for c in choices)) or 1
        chosen = _Program([_worthwhile(choices) for choices in offered], unit, 0 if or_equal else -1).solve()
    lowest = _relaxation(offered) if relaxed else None
    return _outcome(matrix, {row: c.bucket for row, c in zip(matrix.populated.tolist(), chosen, strict=True)}, first, lowest)


def heuristic(matrix: Matrix, least_us: int = 0) -> ClassIntervals:
    """The paper's simple rule: of each class the interval with the least penalty per success, the smaller one of equals."""
    first = _first_bucket(matrix, least_us)
    failures, successes = matrix.failures, matrix.successes
    chosen = {}
    for row in matrix.populated.tolist():
        best = first
        for j in range(first, matrix.buckets + 1):
            # j * B[j] / S[j] < best * B[best] / S[best], where no success at all is worse than anything.
            mine, its = j * int(failures[row, j - 1]), best * int(failures[row, best - 1])
            s, t = int(successes[row, j - 1]), int(successes[row, best - 1])
            if s and (not t or mine * t < its * s):
                best = j
        chosen[row] = best
    return _outcome(matrix, chosen, first, None)


def gainful(matrix: Matrix, saving_us: int, least_us: int = 0) -> ClassIntervals:
    """Choose for each class the interval of the largest expected gain if a met wait saves so much; the smaller one of equals.

    A wait that is met costs its own time (the middle of its bucket), one in vain all of the interval. Ours; was-online does so.
    """
    first = _first_bucket(matrix, least_us)
    ends = np.arange(1, matrix.buckets + 1) * matrix.bucket_us
    spent = np.cumsum(matrix.counts[:, :-1] * (2 * ends - matrix.bucket_us), axis=1)
    gain = 2 * (matrix.successes * saving_us - matrix.failures * ends) - spent
    best = np.argmax(gain[:, first - 1 :], axis=1) + first
    return _outcome(matrix, {row: int(best[row]) for row in matrix.populated.tolist()}, first, None)


def appraise(matrix: Matrix, wait_us: tuple[int, ...]) -> ClassIntervals:
    """Return what given intervals, whole numbers of buckets up to M, come to."""
    failures = matrix.failures
    rows = matrix.populated
    buckets = np.array(wait_us, np.int64)[rows] // matrix.bucket_us
    failed = failures[rows, buckets - 1]
    penalty_us = int((failed * buckets).sum()) * matrix.bucket_us
    return ClassIntervals(wait_us, int(matrix.counts.sum()), int(failed.sum()), penalty_us)


def _first_bucket(matrix: Matrix, least_us: int) -> int:
    first = least_us // matrix.bucket_us + 1
    if first > matrix.buckets:
        longest = matrix.buckets * matrix.bucket_us / 1000
        raise Problem(f"q of {least_us / 1000:g} ms forbids every interval: the longest that was observed is {longest:g} ms")
    if not len(matrix.populated):
        raise Problem("the matrix contains no waits: intervals cannot be chosen")
    return first


def _infeasible(matrix: Matrix, first: int, bound_us: int) -> Problem:
    shortest = first * matrix.bucket_us
    return Problem(
        f"no intervals keep the mean failed wait below G = {bound_us / 1000:g} ms: the shortest that is allowed is"
        f" {shortest / 1000:g} ms, so the nearest G that can be kept is {(shortest + 1) / 1000:g} ms"
        f"{f' ({shortest / 1000:g} ms with --or-equal)' if bound_us <= shortest else ''}"
    )


def _choices(matrix: Matrix, row: int, first: int, bound_us: int) -> list[_Choice]:
    out = []
    failures = np.cumsum(matrix.counts[row, :0:-1])[::-1].tolist()
    for j in range(first, matrix.buckets + 1):
        b, us = int(failures[j - 1]), j * matrix.bucket_us
        out.append(_Choice(j, b, b * us, b * (us - bound_us)))
    return out


def _worthwhile(choices: list[_Choice]) -> list[_Choice]:
    """Without those that another one is at least as good as in every respect."""
    out: list[_Choice] = []
    for c in choices:  # in increasing order of interval
        if not any(d.failures <= c.failures and d.penalty_us <= c.penalty_us and d.excess <= c.excess for d in out):
            out.append(c)
    return out


def _scipy() -> Any:
    try:
        from scipy import optimize, sparse  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise Problem("the optimum needs SciPy (pip install headwaiter[was]); --heuristic does not") from None
    return SimpleNamespace(
        milp=optimize.milp, Bounds=optimize.Bounds, Constraint=optimize.LinearConstraint, matrix=sparse.csr_array
    )


@contextmanager
def _silent() -> Iterator[None]:
    """HiGHS writes to standard output whatever it is told (1.8 and later: a line when it improves a solution)."""
    sys.stdout.flush()
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def _relaxation(offered: list[list[_Choice]]) -> float:
    """The least failures if a class may have several intervals, each for a share of its waits; the average may be G."""
    program = _Program(offered, 1, 0)
    found = program.run(program.failures, [], whole=False)
    if found is None:
        raise Problem(_TOO_LARGE)
    return float(program.failures @ found)


class _Program:
    """One variable for each class and choice. Everything that decides is counted in whole numbers outside the solver."""

    def __init__(self, offered: list[list[_Choice]], unit: int, most_excess: int) -> None:
        self.optimize = _scipy()
        self.offered = offered
        self.flat = [c for choices in offered for c in choices]
        self.owner = np.repeat(np.arange(len(offered)), [len(choices) for choices in offered])
        self.failures: F64 = np.array([c.failures for c in self.flat], float)
        self.penalty: F64 = np.array([c.penalty_us for c in self.flat], float)
        self.excess: F64 = np.array([c.excess // unit for c in self.flat], float)
        self.most_excess = most_excess
        self.allowed: NDArray[np.bool_] = np.ones(len(self.flat), bool)

    def run(self, goal: F64, limits: list[tuple[F64, int]], whole: bool = True) -> F64 | None:
        """Least goal within limits (row, most); None if there is no solution."""
        o = self.optimize
        n = len(self.flat)
        choose = o.matrix((np.ones(n), (self.owner, np.arange(n))), shape=(len(self.offered), n))
        constraints = [o.Constraint(choose, 1, 1)]
        for row, most in [(self.excess, self.most_excess), *limits]:
            scale = max(1.0, float(np.abs(row).max(initial=0)))
            # Half a unit of slack, in which no whole number lies: the solver's tolerance decides nothing.
            slack = 0.5 if whole else 0.0
            constraints.append(o.Constraint(row[None, :] / scale, -np.inf, (most + slack) / scale))
        with _silent():
            found = o.milp(
                goal,
                constraints=constraints,
                bounds=o.Bounds(0, self.allowed.astype(float)),
                integrality=np.full(n, int(whole)),
                options={"mip_rel_gap": 0},
            )
        if found.status == 2:
            return None
        if found.x is None or found.status:
            raise Problem(f"HiGHS found no optimum: {found.message}")
        return np.round(found.x) if whole else np.asarray(found.x, float)

    def solve(self) -> list[_Choice]:
        """The optimum, ties broken."""
        found = self._exact(self.failures, [])
        failures = self._sum(found, "failures")
        self._narrow(failures, self.most_excess)
        limits = [(self.failures, failures)]
        found = self._exact(self.excess, limits)  # of so many failures, what is least above G has the least penalty
        limits.append((self.excess, round(sum(self.excess[self._flat(found)]))))
        self._narrow(failures, limits[-1][1])
        base = float(max(len(choices) for choices in self.offered))
        for start in range(0, len(self.offered), _TIES_AT_ONCE):
            goal = np.zeros(len(self.flat))
            block = range(start, min(start + _TIES_AT_ONCE, len(self.offered)))
            for owner in block:
                mine = np.flatnonzero(self.owner == owner)
                goal[mine] = np.arange(len(mine)) * base ** (block[-1] - owner)
            if any((self.allowed & (self.owner == owner))[: self._flat(found)[owner]].any() for owner in block):
                found = self._exact(goal, limits)
            self._keep(self._flat(found)[block.start : block.stop])
        return [self.flat[k] for k in self._flat(found)]

    def _flat(self, found: list[int]) -> I64:
        """Indices into flat."""
        return np.searchsorted(self.owner, np.arange(len(self.offered))) + np.array(found, np.int64)

    def _keep(self, chosen: I64) -> None:
        """From now on these classes' choices are fixed."""
        self.allowed[np.isin(self.owner, self.owner[chosen])] = False
        self.allowed[chosen] = True

    def _narrow(self, failures: int, excess: int) -> None:
        """Leave out choices that no solution with at most these sums has: by weak duality, for the best multiplier there is."""
        start = np.searchsorted(self.owner, np.arange(len(self.offered)))

        def reduced(price: float) -> tuple[F64, float, float]:
            cost = np.where(self.allowed, self.failures + price * self.excess, np.inf)
            least = np.minimum.reduceat(cost, start)
            first = np.array([np.argmin(cost[self.owner == i]) for i in range(len(start))]) + start
            return cost - least[self.owner], failures + price * excess - least.sum(), excess - self.excess[first].sum()

        low, high = 0.0, float(self.failures.max() + 1)
        for _ in range(80):
            middle = (low + high) / 2
            if reduced(middle)[2] < 0:
                low = middle
            else:
                high = middle
        cost, slack, _ = min((reduced(low), reduced(high)), key=lambda found: found[1])
        self.allowed &= cost <= slack + 1e-6 * max(1.0, float(self.failures.sum()))

    def _exact(self, goal: F64, limits: list[tuple[F64, int]]) -> list[int]:
        """Return the index of each class's choice, checked in whole numbers."""
        x = self.run(goal, limits)
        if x is None:  # although the bound can be kept, as the caller knows
            raise Problem(_TOO_LARGE)
        found = [int(np.argmax(x[self.owner == owner])) for owner in range(len(self.offered))]
        rows = [(self.excess, self.most_excess), *limits]
        picked = np.flatnonzero(x)
        if len(picked) != len(self.offered) or any(sum(map(int, row[picked])) > most for row, most in rows):
            raise Problem(_TOO_LARGE)
        return found

    def _sum(self, found: list[int], what: str) -> int:
        return sum(getattr(choices[k], what) for choices, k in zip(self.offered, found, strict=True))


def _outcome(matrix: Matrix, bucket: dict[int, int], first: int, relaxed: float | None) -> ClassIntervals:
    """Intervals for all classes, and the sums over those that were observed."""
    failures = matrix.failures
    wait = max(DEFAULT_US, first * matrix.bucket_us)
    waits = []
    for row in range(matrix.classes):
        wait = bucket[row] * matrix.bucket_us if row in bucket else wait
        waits.append(wait)
    failed = {row: int(failures[row, j - 1]) for row, j in bucket.items()}
    return ClassIntervals(
        tuple(waits),
        int(matrix.counts.sum()),
        sum(failed.values()),
        sum(failed[row] * j * matrix.bucket_us for row, j in bucket.items()),
        relaxed,
    )
