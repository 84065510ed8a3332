# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How far simulator and kernel are apart over many jobs: distributions, winners, and what failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from headwaiter.base.records import like
from headwaiter.lab.agree import THROUGHPUT_BOUND_PERCENT
from headwaiter.lab.schema import AgreementSummary, Deviation, Disagreement, JobComparison, Winner

WINNER_PERCENT = 5.0
WINNERS_SHARE = 0.95
MEDIAN_PERCENT = 2.0
NINETIETH_PERCENT = 10.0
LARGEST_PERCENT = 30.0
P99_LARGEST_PERCENT = 50.0
P99_UNTOLD_SHARE = 0.02


def winners(rows: Sequence[JobComparison]) -> list[Winner]:
    """One for each job on each kernel and drive."""
    by_job: dict[tuple[str, str, str], list[JobComparison]] = defaultdict(list)
    for row in rows:
        by_job[row.kernel, row.drive, row.job].append(row)
    out = []
    for (kernel, drive, job), found in by_job.items():
        lab = max(found, key=lambda row: row.lab_mbps)
        sim = max(found, key=lambda row: row.sim_middle_mbps)
        behind = round(100 * (1 - sim.lab_mbps / lab.lab_mbps), 2)
        # Who follows the simulator loses no more than that.
        out.append(Winner(kernel, drive, job, sim.scheduler, lab.scheduler, behind, right=behind <= WINNER_PERCENT))
    return out


def beyond_percent(row: JobComparison) -> float:
    """Return how far the lab's throughput lies outside of what was told: of a range, from its nearer end."""
    return _beyond(row.range, row.throughput_off_percent, row.sim_low_mbps, row.sim_high_mbps, row.lab_mbps)


def p99_beyond_percent(row: JobComparison) -> float:
    """Return the same of the 99th percentile."""
    return _beyond(row.p99_range, row.p99_off_percent, row.sim_p99_low_ms, row.sim_p99_high_ms, row.lab_p99_ms)


def _beyond(is_range: bool, off_percent: float, low: float, high: float, lab: float) -> float:
    return 100 * max(low - lab, lab - high, 0.0) / lab if is_range else abs(off_percent)


def distribution(scheduler: str, rows: Sequence[JobComparison]) -> Deviation:
    """Return how far throughput and the 99th percentile of latency are off, in percent without sign.

    p90_beyond is of how far it lies outside of what was told; `untold` are off by more than LARGEST_PERCENT
    (P99_LARGEST_PERCENT), and no range.
    """
    off = np.array([abs(row.throughput_off_percent) for row in rows])
    tails = np.array([abs(row.p99_off_percent) for row in rows])
    return Deviation(
        scheduler=scheduler,
        comparisons=len(rows),
        median=round(float(np.median(off)), 2),
        p75=round(float(np.percentile(off, 75)), 2),
        p90=round(float(np.percentile(off, 90)), 2),
        largest=round(float(off.max()), 2),
        p90_beyond=round(float(np.percentile([beyond_percent(row) for row in rows], 90)), 2),
        ranges=sum(row.range for row in rows),
        untold=sum(1 for row in rows if abs(row.throughput_off_percent) > LARGEST_PERCENT and not row.range),
        p99_median=round(float(np.median(tails)), 2),
        p99_p90=round(float(np.percentile(tails, 90)), 2),
        p99_p90_beyond=round(float(np.percentile([p99_beyond_percent(row) for row in rows], 90)), 2),
        p99_ranges=sum(row.p99_range for row in rows),
        p99_untold=sum(1 for row in rows if abs(row.p99_off_percent) > P99_LARGEST_PERCENT and not row.p99_range),
    )


def summary(rows: Sequence[JobComparison]) -> AgreementSummary:
    """A distribution for each scheduler and for all, who won, and whether the bounds hold."""
    names = list(dict.fromkeys(row.scheduler for row in rows))
    table = [distribution(name, [row for row in rows if row.scheduler == name]) for name in names]
    whole = distribution("all", rows)
    won = winners(rows)
    right = sum(winner.right for winner in won)
    broken = broken_bounds(whole.median, whole.p90, whole.untold, whole.p99_untold / whole.comparisons, right / len(won))
    return AgreementSummary(deviation_percent=[*table, whole], winners=won, winners_right=right, holds=not broken)


def broken_bounds(median: float, p90: float, untold: int, p99_untold_share: float, right_share: float) -> list[str]:
    """Return what is beyond its bound, in words; percents of throughput's deviation over all results."""
    every = {
        f"the median of throughput's deviation is above {MEDIAN_PERCENT:g}%": median > MEDIAN_PERCENT,
        f"the 90th percentile of throughput's deviation is above {NINETIETH_PERCENT:g}%": p90 > NINETIETH_PERCENT,
        f"throughput is off by more than {LARGEST_PERCENT:g}% and no range": untold > 0,
        f"more than {P99_UNTOLD_SHARE:.0%} of the 99th percentiles are untold": p99_untold_share > P99_UNTOLD_SHARE,
        f"the winner is wrong on more than {1 - WINNERS_SHARE:.0%} of the jobs": right_share < WINNERS_SHARE,
    }
    return [words for words, is_so in every.items() if is_so]


def failures(rows: Sequence[JobComparison]) -> list[Disagreement]:
    """Return what does not agree; the job's name says its seed."""
    return [
        like(Disagreement, row) for row in rows
        if not row.agree and abs(row.throughput_off_percent) > THROUGHPUT_BOUND_PERCENT
    ]  # fmt: skip
