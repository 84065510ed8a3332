# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which classes are found, and which of several configurations wins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwaiter.base.errors import Problem
from headwaiter.papers.was.calibration import MAX_EMPTY, Candidate, Choices, _candidates, calibrate, heights, similarity
from headwaiter.papers.was.classify import Reads
from headwaiter.papers.was.config import DEFAULT_US, Config
from headwaiter.papers.was.evaluate import Evaluated, WaitSums
from headwaiter.papers.was.fit import FIXED_US, Contender, alike, fit, settled, surely_less
from headwaiter.papers.was.matrix import Matrix
from headwaiter.papers.was.observe import Observation, ObservedWaits

MS = 1_000_000


def two_kinds(each: int = 200) -> Observation:
    """Process 0 reads on after 1 ms and is always met in 1 ms; process 1 jumps about every 50 ms, and is never met."""
    task = np.tile([0, 1], each)
    time = np.arange(2 * each) * 25 * MS
    time[0::2] += 24 * MS  # not that it matters: differences are of one process
    sector = np.where(task == 0, np.arange(2 * each) * 4, (np.arange(2 * each) * 7919 % 1000) * 100_000)
    order = np.argsort(time, kind="stable")
    reads = Reads(task[order], time[order], sector[order])
    met = reads.task == 0
    waits = ObservedWaits(np.arange(2 * each), np.where(met, MS, 10 * MS), met)
    return Observation(reads, waits, 10_000, "two kinds")


def test_similarity_of_rows_with_their_sum() -> None:
    """Alike: 1. Each against the other: 0 by symmetry. A row of equal counts counts as 0, an empty one not at all."""
    assert similarity(np.array([[4, 2, 0], [2, 1, 0]])) == pytest.approx(1)
    assert similarity(np.array([[1, 0, 0], [0, 1, 0]])) == pytest.approx(0.5)
    assert similarity(np.array([[4, 2, 0], [0, 0, 0], [2, 1, 0], [1, 1, 1]])) == pytest.approx(2 / 3)
    assert similarity(np.zeros((3, 4), np.int64)) == 0


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=6))
def test_similarity_is_pearsons(rows: list[list[int]]) -> None:
    counts = np.array(rows)
    whole = counts.sum(axis=0)
    found = []
    for row in counts[counts.any(axis=1)]:
        varies = row.std() > 0 and whole.std() > 0
        found.append(float(np.corrcoef(row, whole)[0, 1]) if varies else 0.0)
    assert similarity(counts) == pytest.approx(np.mean(found) if found else 0.0, abs=1e-9)


def test_heights() -> None:
    assert heights(70, 3, halving=False) == (70, 35, 0)
    assert heights(30, 4, halving=False) == (30, 20, 10, 0)
    assert heights(70, 4, halving=True) == (70, 35, 17, 0)
    assert heights(2, 4, halving=True) == (2, 1, 1, 0)


def test_two_kinds_of_processes_become_two_kinds_of_classes() -> None:
    found = calibrate(two_kinds(), Choices())
    best = found.best
    assert best.empty_share <= MAX_EMPTY and best.similarity < 0.7 and not found.warnings
    matrix = two_kinds().matrix(best.config(10_000, {}))
    mixed = [row for row in matrix.counts.tolist() if min(row[0], row[-1]) > 4]
    assert not mixed, "no class has both, but for the first reads of a process"
    assert best.key <= min(c.key for c in found.others)


def test_what_is_given_is_kept() -> None:
    choices = Choices(history=4, classes=20, spatial=(80, 40, 0), temporal=(20, 0), bucket_us=500)
    found = calibrate(two_kinds(), choices)
    best = found.best
    assert (found.tried, best.history, best.classes) == (1, 4, 20)
    assert [p for _, p in best.spatial] == [80, 40, 0] and [p for _, p in best.temporal] == [20, 0]
    assert all(start % 500 == 0 for start, _ in best.temporal)
    counts = two_kinds().matrix(best.config(10_000, {}), 500).counts
    assert best.empty == 20 - int(counts.any(axis=1).sum())
    assert best.similarity == pytest.approx(similarity(counts))


@pytest.mark.parametrize("given", [{"spatial": (80, 0)}, {"temporal": (20, 0)}, {}])
def test_the_points_of_free_steps_are_searched(given: dict[str, tuple[int, ...]]) -> None:
    """Those of the other ones are what is left of 100."""
    found = list(_candidates(two_kinds(20), Choices(history=3, classes=8, **given)))  # type: ignore[arg-type]
    assert {c.spatial[0][1] for c in found} == ({80} if "spatial" in given else {30, 50, 70})
    assert {c.temporal[0][1] for c in found} == ({20} if "temporal" in given else {30, 50, 70})


def test_too_many_empty_classes_are_a_warning() -> None:
    found = calibrate(two_kinds(), Choices(classes=100))
    assert found.best.empty_share > MAX_EMPTY and found.within == 0
    assert "are without a wait, which is more than 30%" in found.warnings[0]
    same = two_kinds()
    same = Observation(same.reads, ObservedWaits(same.waits.read, np.full(400, MS), np.full(400, True)), 10_000, "one kind")
    assert calibrate(same, Choices(classes=2)).warnings[-1].endswith("mean correlation with the whole is 1.00, more than 0.8")


def candidate(classes: int, empty: int, correlation: float) -> Candidate:
    return Candidate(5, ((0, 50), (9, 0)), ((0, 50), (9, 0)), classes, empty, correlation)


def test_the_bound_comes_before_the_correlation() -> None:
    inside, beyond, worse = candidate(10, 3, 0.9), candidate(10, 4, 0.1), candidate(10, 5, 0.05)
    assert sorted([worse, beyond, inside], key=lambda c: c.key) == [inside, beyond, worse]
    assert candidate(10, 0, 0.5).key < candidate(10, 0, 0.6).key
    assert candidate(8, 0, 0.5).key < candidate(10, 0, 0.5).key, "of equals the smaller one"


def test_without_a_wait_there_is_nothing_to_calibrate_by() -> None:
    none = np.empty(0, np.int64)
    o = two_kinds()
    with pytest.raises(Problem, match="two kinds: the scheduler never waited, so calibration is not possible"):
        calibrate(Observation(o.reads, ObservedWaits(none, none, none.astype(bool)), 10_000, o.name), Choices())


# --- the trial ---

BEFORE = WaitSums(met=100, vain=20, vain_ms=120.0, bytes=10**9, seconds=10.0)


def figures(met: int, vain_ms: float, seconds: float = 10.0) -> WaitSums:
    return WaitSums(met, 1, vain_ms, 10**9, seconds)


def contender(after: WaitSums) -> Contender:
    return Contender(alike(1000, {}), None, None, Evaluated("", BEFORE, after))


def test_order_of_contenders() -> None:
    """As many waits met; then half as many; then fewer; then `as` itself; then what loses throughput, or is no better."""
    ordered = [
        contender(figures(100, 50.0)),
        contender(figures(120, 100.0)),
        contender(figures(60, 6.0)),
        contender(figures(10, 0.1)),
        Contender(alike(DEFAULT_US, {}), None, None),
        contender(figures(100, 1.0, seconds=10.2)),
    ]
    assert sorted(ordered[::-1], key=lambda c: c.key) == ordered
    assert contender(figures(100, 130.0)).key > ordered[4].key
    assert contender(figures(0, 0.0)).key > ordered[4].key, "who never meets a wait has no ratio"


def test_a_verdict() -> None:
    assert Evaluated("", BEFORE, figures(100, 119.0)).better is True
    assert Evaluated("", BEFORE, figures(50, 61.0)).better is False
    assert Evaluated("", BEFORE, figures(50, 60.0)).better is None
    nothing = figures(0, 0.0)
    assert Evaluated("", BEFORE, nothing).better is True and Evaluated("", nothing, nothing).better is None
    assert Evaluated("", figures(0, 5.0), figures(0, 6.0)).better is False
    assert (
        Evaluated("", BEFORE, figures(1, 1.0, seconds=10.2)).keeps_up and not Evaluated("", BEFORE, figures(1, 1, 10.21)).keeps_up
    )
    assert (BEFORE.cost_ms, nothing.cost_ms, BEFORE.rate_mbps) == (1.2, None, 100.0)


def test_fit_takes_what_the_trial_says() -> None:
    """A trial that likes an interval of 3 ms for everybody; one that likes nothing; one that likes short waits on average."""
    seen: list[Config] = []

    def likes(good: bool, config: Config) -> WaitSums:
        seen.append(config)
        return figures(100, 1.0 if good else 1000.0)

    o = two_kinds()
    fixed = fit(o, Choices(), (2000,), 0, BEFORE, lambda all_: [likes(c.classes == 1 and c.wait_us == (3000,), c) for c in all_])
    assert fixed.best.config.wait_us == (3000,) and fixed.best.matrix is None
    assert [c.prove for c in seen] == [False] * fixed.tried + [True], (
        "the trial is of what the intervals do; then what won is run"
    )
    assert fixed.best.config == seen[-1] and fixed.best.verdict is not None and fixed.best.verdict.after.cost_ms == 0.01
    assert {c.wait_us[0] for c in seen if c.classes == 1} == set(FIXED_US)
    nothing = fit(o, Choices(), (2000,), 0, BEFORE, lambda all_: [likes(False, c) for c in all_])
    assert nothing.best.config.wait_us == (DEFAULT_US,) and nothing.best.verdict is None
    classes = fit(o, Choices(), (2000, 4000), 0, BEFORE, lambda all_: [likes(c.classes > 1, c) for c in all_], prove=False)
    assert not classes.best.config.prove
    made = classes.best.config.made
    assert classes.best.config.classes > 1 and made["bound_us"] in (2000, 4000) and made["from"] == "two kinds"
    assert made["waits"] == 400 and made["penalty_us"] < made["bound_us"] * made["failures"]


def test_chance_changes_no_interval() -> None:
    """Buckets of 1 ms up to 10, and failures: few waits; few of them fail; many fail; a longer wait."""
    counts = np.zeros((4, 11), np.int64)
    counts[:, 0] = 30, 92, 70, 92
    counts[:, 7] = 0, 1, 0, 1
    counts[:, 10] = 9, 8, 30, 8
    matrix = Matrix(counts, 1000, "")
    assert settled(matrix, (9000, 4000, 2000, 8000), 0) == (6000, 6000, 2000, 8000)
    assert settled(matrix, (9000, 8000, 8000, 8000), 6500) == (7000, 8000, 8000, 8000)
    counts[1, 10] = 9
    assert settled(matrix, (9000, 4000, 2000, 8000), 0)[1] == 4000


def test_a_shorter_interval_has_to_be_better_for_sure() -> None:
    """In vain within 6 ms, one in three and all of them; met after 5 ms, which 4 ms miss."""
    counts = np.zeros((3, 11), np.int64)
    counts[:, 0] = 60, 0, 60
    counts[:, 4] = 0, 0, 40
    counts[:, 10] = 30, 90, 0
    assert surely_less(Matrix(counts, 1000, ""), 6, (4000, 4000, 4000)).tolist() == [True, True, False]


def test_fit_forbids_what_is_forbidden() -> None:
    seen: list[Config] = []

    def trials(configs: Sequence[Config]) -> list[WaitSums]:
        seen.extend(configs)
        return [BEFORE] * len(configs)

    fit(two_kinds(), Choices(classes=4), (6000,), 2000, BEFORE, trials)
    assert min(min(c.wait_us) for c in seen) == 3000
    with pytest.raises(Problem, match="no intervals keep the mean failed wait below G = 2 ms"):
        fit(two_kinds(), Choices(classes=4), (2000,), 2000, BEFORE, trials)
