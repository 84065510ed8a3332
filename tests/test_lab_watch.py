# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`watch` in the lab: how its choices are judged, and what they are."""

from __future__ import annotations

from typing import Any

import pytest
from test_lab import _run

from headwaiter.base.errors import Problem
from headwaiter.experiments.watch import judged

LOG = """2026-01-01T00:00:10+00:00 sda kept mq-deadline: nothing else is far enough ahead
phase readers
2026-01-01T00:00:20+00:00 sda changed bfq: ahead
2026-01-01T00:00:30+00:00 sda undone mq-deadline: latency rose
2026-01-01T00:00:40+00:00 sda changed hw-as: ahead
end hw-as
phase chains
end hw-as
"""


def rows() -> list[dict[str, Any]]:
    alone = {("bfq", "readers"): 10.0, ("bfq", "chains"): 6.4, ("hw-as", "readers"): 40.0, ("hw-as", "chains"): 1.6}
    return [
        *({"what": "alone", "scheduler": s, "load": load, "seconds": 10, "read_mbps": rate} for (s, load), rate in alone.items()),
        *(
            {"what": "watch", "scheduler": "", "load": load, "seconds": 60, "read_mbps": r}
            for load, r in (("readers", 32.0), ("chains", 2.0))
        ),
    ]


def test_choices_are_held_against_the_best_alone() -> None:
    readers, chains, whole = judged(rows(), LOG)
    assert (readers["scheduler"], readers["of_best"], readers["switches"]) == ("hw-as", 1.0, 3)
    assert (chains["scheduler"], chains["of_best"], chains["switches"]) == ("hw-as", 0.25, 0)
    # Alone both schedulers have a geometric mean of 8.
    assert (whole["read_mbps"], whole["of_best"], whole["seconds"], whole["switches"]) == (8.0, 1.0, 120, 3)


def test_a_log_without_a_phase_is_refused() -> None:
    with pytest.raises(Problem, match="1 of 2 phases"):
        judged(rows(), LOG.replace("end hw-as\nphase chains\n", ""))
    with pytest.raises(Problem, match="no scheduler alone"):
        judged(rows()[4:], LOG)


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_watch_changes_the_scheduler() -> None:
    """It has all that it needs in the guest, and sees soon that eight readers are better off than under mq-deadline."""
    given = {"PHASES": "readers", "PHASE": "40", "ALONE": "2", "SCHEDULERS": "mq-deadline", "SAMPLE": "3", "EVERY": "5"}
    *_, watched, whole = _run("watch", "6.12", given)
    assert (watched["what"], watched["switches"]) == ("watch", 1) and watched["scheduler"] != "mq-deadline"
    alone = whole["read_mbps"] / whole["of_best"]
    assert alone > watched["read_mbps"] > 0.1 * alone


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_watch_finds_the_best_for_each_phase() -> None:
    """Nearly: within 5% of the best single scheduler of a phase, and over the whole run."""
    found = [row for row in _run("watch", "6.12", {}) if row["what"] != "alone"]
    assert [row["load"] for row in found[:-1]] == ["readers", "mixed", "chains"]
    assert all(row["of_best"] >= 0.95 for row in found)
