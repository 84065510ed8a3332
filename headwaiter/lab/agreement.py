# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How far simulator and kernel are apart over many jobs: distributions, winners, and what failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwaiter.lab.agree import THROUGHPUT_BOUND_PERCENT
from headwaiter.lab.script import Row

WINNER_PERCENT = 5.0
WINNERS_SHARE = 0.9
MEDIAN_PERCENT = 2.0
NINETIETH_PERCENT = 10.0
LARGEST_PERCENT = 30.0


@dataclass(frozen=True)
class Winner:
    """The best scheduler on a job, by throughput in the lab, and by the low end of its range in the simulator.

    Right if they are one, or nearly.
    """

    kernel: str
    drive: str
    job: str
    simulator: str
    lab: str
    behind_percent: float

    @property
    def right(self) -> bool:
        """Does who follows the simulator lose no more than WINNER_PERCENT?"""
        return self.behind_percent <= WINNER_PERCENT


def winners(rows: Sequence[Row]) -> list[Winner]:
    """One for each job on each kernel and drive."""
    by_job: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_job[row["kernel"], row["drive"], row["job"]].append(row)
    out = []
    for (kernel, drive, job), found in by_job.items():
        lab = max(found, key=lambda row: float(row["lab_MBps"]))
        # Nobody would take a scheduler for the better end of its range.
        sim = max(found, key=lambda row: float(row["sim_low_MBps"]))
        behind = 100 * (1 - sim["lab_MBps"] / lab["lab_MBps"])
        out.append(Winner(kernel, drive, job, sim["scheduler"], lab["scheduler"], round(behind, 2)))
    return out


def beyond_percent(row: Row) -> float:
    """How far the lab's throughput lies outside of what was told: of a range, from its nearer end."""
    if not row["range"]:
        return float(abs(row["throughput_off_percent"]))
    low, high, lab = row["sim_low_MBps"], row["sim_high_MBps"], row["lab_MBps"]
    return float(100 * max(low - lab, lab - high, 0.0) / lab)


def distribution(rows: Sequence[Row]) -> Row:
    """Of how far throughput is off, in percent without sign.

    p90_beyond is of how far it lies outside of what was told; `untold` are off by more than LARGEST_PERCENT, and no range.
    """
    off = np.array([abs(row["throughput_off_percent"]) for row in rows])
    return {
        "comparisons": len(rows),
        "median": round(float(np.median(off)), 2),
        "p75": round(float(np.percentile(off, 75)), 2),
        "p90": round(float(np.percentile(off, 90)), 2),
        "largest": round(float(off.max()), 2),
        "p90_beyond": round(float(np.percentile([beyond_percent(row) for row in rows], 90)), 2),
        "ranges": sum(row["range"] for row in rows),
        "untold": sum(1 for row in rows if abs(row["throughput_off_percent"]) > LARGEST_PERCENT and not row["range"]),
    }


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """A distribution for each scheduler and for all, who won, and whether the bounds hold."""
    names = list(dict.fromkeys(row["scheduler"] for row in rows))
    table = [{"scheduler": name, **distribution([row for row in rows if row["scheduler"] == name])} for name in names]
    whole = {"scheduler": "all", **distribution(rows)}
    won = winners(rows)
    right = sum(winner.right for winner in won)
    holds = (
        right >= WINNERS_SHARE * len(won)
        and whole["median"] <= MEDIAN_PERCENT
        and whole["p90"] <= NINETIETH_PERCENT
        and not whole["untold"]
    )
    return {
        "deviation_percent": [*table, whole],
        "winners": [{**vars(winner), "right": winner.right} for winner in won],
        "winners_right": right,
        "holds": holds,
    }


def failures(rows: Sequence[Row]) -> list[Row]:
    """What does not agree; the job's name says its seed."""
    keys = (
        "kernel",
        "drive",
        "scheduler",
        "job",
        "lab_MBps",
        "sim_MBps",
        "throughput_off_percent",
        "sim_low_MBps",
        "sim_high_MBps",
    )
    return [
        {key: row[key] for key in keys} for row in rows
        if not row["agree"] and abs(row["throughput_off_percent"]) > THROUGHPUT_BOUND_PERCENT
    ]  # fmt: skip
