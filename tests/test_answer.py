# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verdict: right where the answer is known, and said in words that name what was measured."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, run, told, write
from handmade import DISK, result
from knownanswers import MS, closed, faster, judged, opened, trial

from headwaiter.base.errors import Problem
from headwaiter.base.nearest import did_you_mean
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Rows
from headwaiter.judge.verdict import ComparedTrials, answer, baseline, field_of
from headwaiter.study.intervals import Interval, bootstrap, paired, wins
from headwaiter.study.progress import Programs
from headwaiter.study.schema import Answer, Criterion, Result
from headwaiter.study.trial import Trial, measure
from headwaiter.study.variants import Variant, default_set, parse_variant, parse_variants
from headwaiter.study.waits import Waits, added_waits, backlog, contention

# --- loads with a known answer ---


def verdicts(case: str, seeds: int) -> Counter[str]:
    """What is said of the second scheduler, over so many recordings."""
    found: Counter[str] = Counter()
    for seed in range(seeds):
        load = closed(seed, 16_000, 3, 4000.0 if case == "idle" else 4.0, 0.05)
        factor = {"8% better": 1.08, "8% worse": 1 / 1.08}.get(case, 1.0)
        first, second = load, faster(load, seed, factor, 0.05)
        if case == "overloaded":
            first = opened(seed, 4000, 1.3)
            second = faster(first, seed, 1.08)
        said = judged(first, second, case == "overloaded", seed=seed)
        new = [m.judgement for m in said.margins if m.scheduler == "new"]
        found[said.outcome if case in ("idle", "overloaded") else new[0]] += 1
    return found


KNOWN = {
    "equal": "equivalent",
    "8% better": "better",
    "8% worse": "worse",
    "idle": "idle",
    "overloaded": "overloaded",
}


@pytest.mark.parametrize("case", KNOWN)
def test_verdicts_are_right_where_the_answer_is_known(case: str) -> None:
    assert verdicts(case, 6)[KNOWN[case]] == 6


@pytest.mark.thorough
@pytest.mark.parametrize("case", KNOWN)
def test_verdicts_are_right_in_95_of_100_seeds(case: str) -> None:
    found = verdicts(case, 100)
    assert found[KNOWN[case]] >= 95, found
    assert found["better"] <= 5 or case == "8% better", found


@pytest.mark.thorough
def test_intervals_hold_as_often_as_they_say_and_nothing_equal_is_better() -> None:
    """Recordings far too short for their noise: 30 stretches in which the disk is slow or fast by a fifth."""
    held = better = 0
    for seed in range(100):
        load = closed(seed, 6000, 3, 4, 0.2)
        (new,) = (m for m in judged(load, faster(load, seed, 1.0, 0.2), seed=seed).margins if m.scheduler == "new")
        assert new.low_percent is not None and new.high_percent is not None
        held += new.low_percent < 0 < new.high_percent
        better += new.judgement == "better"
    assert held >= 90 and better <= 5


def test_the_same_workload_recorded_twice_does_not_reverse_a_verdict() -> None:
    for factor in (0.93, 1.0, 1.07, 1.3):
        said = {
            m.judgement
            for seed in range(6)
            for load in [closed(seed, 3000, 3, 4, 0.2)]
            for m in judged(load, faster(load, seed, factor, 0.2), seed=seed).margins
            if m.scheduler == "new"
        }
        assert not {"better", "worse"} <= said, factor


# --- intervals ---


@pytest.mark.parametrize(
    ("low", "high", "judgement"),
    [
        (0.0489, 0.5, "better"),
        (0.0487, 0.5, "cannot tell"),
        (-0.5, -0.0489, "worse"),
        (-0.5, -0.0487, "cannot tell"),
        (-0.0487, 0.0487, "equivalent"),
        (-0.0489, 0.01, "cannot tell"),
        (-math.inf, math.inf, "cannot tell"),
    ],
)
def test_judgements_against_a_margin_of_5_percent(low: float, high: float, judgement: str) -> None:
    assert Interval(0.0, low, high).judge(0.05) == judgement


def test_how_much_longer_to_record() -> None:
    edge = math.log(1.05)
    assert Interval(edge + 0.1, edge - 0.1, edge + 0.3).longer(0.05) == pytest.approx(4.0), (
        "half as wide takes four times as long"
    )
    assert Interval(0.0, -2 * edge, 2 * edge).longer(0.05) == pytest.approx(4.0)
    assert Interval(edge, 0, 1).longer(0.05) > 1e9


def test_bootstrap_of_the_ratio_of_sums() -> None:
    rng = np.random.default_rng(1)
    base = rng.exponential(1, 200) + 1
    costs = np.array([base, base / 2, rng.permutation(base)])
    same, half, shuffled = bootstrap(costs, 0, 5)
    assert same == Interval(0.0, 0.0, 0.0)
    for log in (half.point, half.low, half.high):
        assert log == pytest.approx(math.log(2)), "paired, there is no doubt of it"
    assert shuffled.low < -0.01 and shuffled.high > 0.01 and abs(shuffled.point) < 1e-9
    assert bootstrap(costs, 0, 5) == bootstrap(costs, 0, 5) != bootstrap(costs, 0, 6)
    few = bootstrap(costs[:, :11], 0, 5)
    assert math.isinf(few[1].low) and math.isinf(few[1].high) and few[0] == Interval(0.0, 0.0, 0.0)
    nothing = bootstrap(np.zeros((2, 50)), 0, 5)
    assert math.isinf(nothing[1].high)


def test_the_more_are_compared_the_wider_is_each_interval() -> None:
    rng = np.random.default_rng(2)
    costs = rng.exponential(1, (12, 200)) + 1
    (_, alone), (_, among, *_) = bootstrap(costs[:2], 0, 5), bootstrap(costs, 0, 5)
    assert among.high - among.low > 1.15 * (alone.high - alone.low)


def test_cells_that_are_alike_for_long_are_fewer_than_they_seem() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.2, 240)
    slow = np.repeat(rng.normal(0, 0.2, 12), 20)
    base = np.full(240, 5.0)
    widths = [i.high - i.low for i in (bootstrap(np.array([base, base + extra]), 0, 5)[1] for extra in (noise, slow))]
    assert widths[1] > 2 * widths[0]


def test_ratios_of_runs() -> None:
    intervals = paired([[10, 11, 12], [20, 20, 30]], 0, less_is_better=False)
    assert [round(math.exp(x), 3) for x in (intervals[1].low, intervals[1].point, intervals[1].high)] == [1.818, 2.0, 2.5]
    assert paired([[10, 10, 10], [20, 20, 20]], 0, less_is_better=True)[1].point == pytest.approx(-math.log(2))
    assert wins([[10, 10, 10, 10], [20, 30, 9, 11], [9, 8, 7, 6]], 0, less_is_better=False) == [1.0, 0.75, 1.0]


# --- waits ---


def forest(*rows: tuple[int, int, int, int, int]) -> tuple[Rows, Forest]:
    """Task, sync, op, issue and completion in ms."""
    load = dataclasses.replace(
        closed(0, 3 * len(rows), 3, 1),
        task=np.array([r[0] for r in rows], np.uint32),
        flags=np.array([r[1] for r in rows], np.uint8),
        op=np.array([r[2] for r in rows], np.uint8),
    )
    at = [np.array([r[i] for r in rows], np.int64) * MS for i in (3, 4)]
    return Rows(at[0], at[1], load.sector, load.sectors, load.task, load.op, None), load


def test_programs_wait_while_any_of_their_requests_is_under_way() -> None:
    rows, load = forest(
        (0, 1, 0, 0, 10), (1, 1, 0, 2, 6), (0, 1, 0, 5, 8), (0, 1, 0, 9, 15), (0, 0, 1, 20, 90), (0, 1, 0, 30, 34)
    )
    assert (added_waits(rows, load) / MS).tolist() == [10, 4, 0, 5, 0, 4]


def test_contention_is_above_the_depth_of_the_device() -> None:
    issue, complete = np.array([0, 1, 2, 30]), np.array([10, 11, 12, 40])
    assert [contention(issue, complete, depth) for depth in (1, 2, 3)] == [0.5, 0.25, 0.0]
    assert contention(np.array([0, 10]), np.array([10, 20]), 1) == 0.0, "the first has just been completed"


def test_backlog() -> None:
    issue, complete = np.zeros(300, np.int64), np.full(300, 10)
    assert backlog(issue, complete) == 1.0 and backlog(issue[:200], complete[:200]) == 0.0
    assert backlog(np.append(issue, 10), np.append(complete, 40)) == pytest.approx(0.25)


def test_overload_is_a_matter_of_backlog_or_lag() -> None:
    cells = np.ones(1)
    assert not Waits(cells, cells, cells, 1.0, 0.09, 0.04).overloaded
    assert Waits(cells, cells, cells, 1.0, 0.11, 0.0).overloaded and Waits(cells, cells, cells, 1.0, 0.0, 0.06).overloaded
    late = dataclasses.replace(opened(1, 1000, 0.5), service_ns=np.full(1000, 5 * MS))
    found = trial("a", late).waits
    assert found and found.lag == 0.0 and not found.overloaded


def test_latency_is_of_what_the_load_waits_for() -> None:
    load = closed(1, 300, 3, 4)
    writes = dataclasses.replace(load, op=np.ones(300, np.uint8))
    mixed = dataclasses.replace(load, op=(np.arange(300) % 3 == 0).astype(np.uint8))
    sums = []
    for one in (load, writes, mixed):
        t = trial("a", one)
        assert t.waits
        sums.append(t.waits.latency_ns.sum() / (t.result.read or t.result.write).lat_ms.mean / MS)  # type: ignore[union-attr]
    assert sums == [pytest.approx(300), pytest.approx(300), pytest.approx(200)]


def test_waits_of_a_run() -> None:
    """One task that reads for 5 ms and thinks for 4 on average: it waits 5 ms a read."""
    t = trial("a", dataclasses.replace(closed(1, 100, 1, 4), service_ns=np.full(100, 5 * MS)))
    assert t.result.waited_s == pytest.approx(0.5) and t.contention == 0.0
    assert trial("a", opened(1, 100, 0.5)).result.waited_s is None, "an open replay paces itself by its timestamps"


def test_larger_changes_of_think_times_count_for_the_verdict_but_not_for_the_range() -> None:
    t = measure(Variant("noop", "noop"), ConstantDrive(5 * MS), closed(1, 300, 3, 4), Options(), 4)
    assert len(t.runs) == 1 + 4 + 2 and t.result.range and t.result.range.runs == 5


# --- sentences ---


def trials(*results: Result, runs: int = 1, contended: float | None = 0.5) -> list[Trial]:
    return [Trial(Variant(r.scheduler, r.variant or r.scheduler), r, (r,) * runs, None, contended) for r in results]


def said(criterion: Criterion, *results: Result, **more: Any) -> Answer:
    return answer(trials(*results, runs=9), criterion, is_open=False, **more)


def test_each_criterion_sums_up_its_own() -> None:
    """Half the waiting at thrice the latency."""
    base = trial("base", closed(1, 900, 3, 4))
    assert base.waits
    waits = dataclasses.replace(base.waits, waited_ns=base.waits.waited_ns / 2, latency_ns=3 * base.waits.latency_ns)
    both = [base, dataclasses.replace(base, waits=waits)]
    known: dict[Criterion, float] = {"waited": math.log(2), "latency": -math.log(3)}
    for criterion, ahead in known.items():
        assert field_of(both, criterion, 0, 0.05, 0).intervals[1].point == pytest.approx(ahead)


def test_the_best_and_what_it_costs() -> None:
    bfq = result("bfq", 24.3, p99=118.0, waited_s=20.0, fairness_jain=0.8)
    found = said("waited", bfq, result("mq-deadline", 19.2, p99=34.2, waited_s=50.0, fairness_jain=1.0))
    assert found.text.startswith("Of your kernel's schedulers: bfq; programs wait 60% less than under mq-deadline. It costs")
    assert found.text.endswith("It costs: 99th percentile of read latency is 118 ms against mq-deadline's 34.2 ms.")
    assert (found.outcome, found.best, found.baseline) == ("better", "bfq", "mq-deadline")
    fast = said("throughput", result("bfq", 24.4), result("mq-deadline", 19.2))
    assert fast.text.startswith("Of your kernel's schedulers: bfq; throughput is 27% higher than under mq-deadline")
    assert "It costs" not in fast.text and "27 to 27" not in fast.text and "because" not in fast.text, "nothing empty"
    far = said("throughput", result("as", 60.0), result("mq-deadline", 20.0))
    assert far.text == "Of these schedulers: as; throughput is 3.0 times as high as under mq-deadline."


def test_the_kernel_s_own_come_first_and_modules_after_them() -> None:
    rows = [result("as", 25.0), result("bfq", 24.5), result("kyber", 24.4), result("cas", 24.4), result("mq-deadline", 10.0)]
    found = said("throughput", *rows)
    assert found.best == "bfq" and "As good: kyber." in found.text and found.as_good == ("kyber",)
    assert found.text.endswith("No module would add to that.") and not found.module
    far = said("throughput", rows[0], result("bfq", 20.0), rows[-1])
    assert (far.best, far.module) == ("bfq", "as") and far.module_margin and far.module_margin.ahead_percent == pytest.approx(25)
    assert "With a module, as (hw-as in the kernel): throughput is 25% higher than under bfq." in far.text
    has_it = said("throughput", rows[0], result("bfq", 20.0), rows[-1], have=["mq-deadline", "as"])
    assert has_it.best == "as" and has_it.text.startswith("Of your kernel's schedulers: as;")


def test_intervals_do_not_widen_with_what_needs_a_module() -> None:
    """The kernel's own are judged among themselves."""
    load = closed(5, 3000, 3, 4)
    base, bfq = trial("mq-deadline", load), trial("bfq", faster(load, 5, 1.1))
    others = [dataclasses.replace(trial(f"as{i}", faster(load, 6 + i, 1.0)), variant=Variant("as", f"as{i}")) for i in range(9)]
    both = [dataclasses.replace(one, variant=Variant(one.variant.name, one.variant.name)) for one in (base, bfq)]
    few, many = (answer(rows, "waited", is_open=False).margins[1] for rows in (both, [*both, *others]))
    assert few == many


def test_settings_are_advised_only_where_they_matter() -> None:
    """Within the margin of the best, the scheduler as it comes."""
    rows = [result("bfq", 20.0), result("bfq", 20.5, variant="bfq:low_latency=0"), result("mq-deadline", 10.0)]
    assert said("throughput", *rows).best == "bfq"
    rows[1] = result("bfq", 25.0, variant="bfq:low_latency=0")
    assert said("throughput", *rows).best == "bfq:low_latency=0"


def programs(*mbps: float, p99: float = 10.0, longest: float = 20.0) -> Programs:
    n = len(mbps)
    done, active = np.array(mbps)[:, None] * 1e6, np.full((n, 1), 1e9)
    tails = np.full(n, p99), np.full(n, longest)
    return Programs(tuple("abcdef"[:n]), done, active, *tails, np.ones(n, bool))


def by_progress(*found: tuple[str, Programs], p99: dict[str, float] | None = None) -> Answer:
    rows = []
    for name, one in found:
        r = result(name, progress_mbps=one.progress_mbps, p99=(p99 or {}).get(name, 10.0))
        rows.append(Trial(Variant(name, name), r, (r,) * 9, None, 0.5, one))
    return answer(rows, "progress", is_open=False)


def test_each_program_counts_alike() -> None:
    """Twice as much for one is no gain if another gets half; and who pays is named."""
    even = by_progress(("mq-deadline", programs(10, 1)), ("bfq", programs(20, 0.5)))
    assert even.outcome == "keep" and even.margins[1].ahead_percent == pytest.approx(0)
    assert even.text.endswith("It costs: a gets 50% less done than under bfq.")
    gain = by_progress(("mq-deadline", programs(10, 1)), ("bfq", programs(30, 0.5)))
    assert gain.outcome == "better" and "programs get 22% more done than under mq-deadline" in gain.text
    assert "It costs: b gets 50% less done than under mq-deadline." in gain.text


def test_a_longest_wait_that_grows_tenfold_is_told_first() -> None:
    found = by_progress(("mq-deadline", programs(1, 1, 1)), ("bfq", programs(9, 9, 0.05, longest=10_500.0)))
    assert "It costs: a's longest wait is 10.5 s against mq-deadline's 20.0 ms; c gets 95% less done" in found.text


def test_where_as_much_is_done_the_slowest_reads_decide() -> None:
    same = programs(5, 5)
    tails = {"mq-deadline": 300.0, "kyber": 290.0, "bfq": 40.0}
    felt = by_progress(("mq-deadline", same), ("kyber", same), ("bfq", same), p99=tails)
    assert (felt.outcome, felt.best, felt.by) == ("better", "bfq", "p99")
    assert "bfq; programs get about as much done, and 99th percentile of read latency is 87% lower than under mq" in felt.text
    not_felt = by_progress(("mq-deadline", same), ("bfq", same), p99={"mq-deadline": 0.4, "bfq": 0.1})
    assert not_felt.outcome == "keep", "less than a millisecond"
    slower = by_progress(("mq-deadline", same), ("bfq", programs(2, 2)), p99={"mq-deadline": 300.0, "bfq": 40.0})
    assert slower.outcome == "keep", "where programs get less done the tail does not count"


def test_who_is_held_against_whom() -> None:
    found = trials(result("as"), result("none"), result("mq-deadline"))
    assert [baseline(found, current) for current in (None, "as", "none")] == [2, 0, 1]
    assert (baseline(found[:2], None), baseline(found[:1], None)) == (1, 0)


def test_nothing_is_better() -> None:
    rows = [result("mq-deadline", 20.0), result("none", 19.9), result("kyber", 19.8), result("bfq", 10.0)]
    found = said("throughput", *rows)
    assert found.outcome == "keep"
    assert found.text == (
        "Of your kernel's schedulers: keep mq-deadline; no other is better by more than 5% of throughput. Equivalent: none and"
        " kyber. Worse: bfq."
    )
    assert [m.judgement for m in found.margins] == ["baseline", "equivalent", "equivalent", "worse"]
    assert said("throughput", *rows, current="bfq").best == "mq-deadline", "held against the slowest"
    assert said("throughput", *rows[:2], margin=0.001).margins[1].judgement == "worse"


def test_of_many_a_few_are_named() -> None:
    names = ("noop", "deadline", "cfq", "as", "kyber", "bfq")
    worse = [result(name, 10.0 - i) for i, name in enumerate(names)]
    found = said("throughput", result("mq-deadline", 20.0), *worse)
    assert "Worse: kyber and bfq. No module would add to that." in found.text
    found = answer(trials(result("mq-deadline", 20.0), *worse, runs=9), "throughput", is_open=False, have=names)
    assert found.text.endswith("Worse: noop, deadline, cfq and 3 more.")
    found = said("throughput", result("mq-deadline", 20.0), *worse[:4], have=names)
    assert found.text.endswith("Worse: noop, deadline, cfq and as.")


def test_what_depends_on_small_changes_cannot_be_told() -> None:
    both = trials(result("bfq", 24.0), result("mq-deadline", 20.0), runs=9)
    shaken = tuple(result("bfq", rate) for rate in (24, 24, 24, 24, 24, 24, 19, 18, 24))
    found = answer([dataclasses.replace(both[0], runs=shaken), both[1]], "throughput", is_open=False)
    assert found.outcome == "cannot tell"
    assert found.text == (
        "Cannot tell: bfq may be better: throughput is 20% higher than under mq-deadline (95% interval: 10% lower to 20% higher),"
        " depending on small changes of think times and starts. Keep mq-deadline."
    )
    assert found.margins[0].steady_percent == pytest.approx(100 * 7 / 9)


def test_an_interval_is_not_enough_where_small_changes_undo_it() -> None:
    both = trials(result("bfq", 24.0), result("mq-deadline", 20.0))
    for steady, judgement in ((0.89, "cannot tell"), (0.91, "better")):
        found = ComparedTrials(both, "waited", 1, [Interval(0.2, 0.1, 0.3), Interval(0, 0, 0)], [steady, 1.0], 0.05, False)
        assert found.judge(0) == judgement


def test_a_short_recording_cannot_tell() -> None:
    load = closed(3, 1500, 3, 4, 0.3)
    found = judged(load, faster(load, 3, 1.15, 0.3))
    assert found.outcome == "cannot tell" and found.longer and found.longer >= 2
    assert f"Record {found.longer} times longer; until then, keep was." in found.text
    (new,) = (m for m in found.margins if m.scheduler == "new")
    ends = [
        math.log1p(percent / 100) for percent in (new.ahead_percent, new.low_percent, new.high_percent) if percent is not None
    ]
    assert found.longer == math.ceil(Interval(*ends).longer(0.05)) > 2
    few = closed(3, 90, 3, 4)
    found = judged(few, faster(few, 3, 1.5))
    assert "the sample is too small for an interval" in found.text and "Record for a minute at least." in found.text


def test_an_idle_disk() -> None:
    rows = (result("bfq", 10.2, mean=2.0), result("mq-deadline", 10.0, mean=2.1))
    found = answer(trials(*rows, runs=9, contended=0.004), "throughput", is_open=False)
    assert found.outcome == "idle" and found.contention_percent == pytest.approx(0.4)
    assert "no scheduler will matter. Only 0.4% of the requests" in found.text and found.text.endswith("Keep mq-deadline.")
    assert answer(trials(*rows, contended=0.021), "throughput", is_open=False).outcome != "idle"
    assert found.text.startswith("Your disk serves requests as they come: no scheduler")
    quiet = [dataclasses.replace(row, disk=dataclasses.replace(DISK, busy_s=0.1, idle_s=0.9)) for row in rows]
    found = answer(trials(*quiet, runs=9, contended=0.0), "throughput", is_open=False)
    assert found.text.startswith("Your disk is nearly idle: no scheduler will matter.")
    tail = (result("bfq", 10.0, p99=5.0), result("mq-deadline", 10.0, p99=50.0))
    assert answer(trials(*tail, runs=9, contended=0.0), "throughput", is_open=False).outcome == "better", "reads feel it"
    waits = answer(trials(result("as", 20.0), rows[1], runs=9, contended=0.0), "throughput", is_open=False)
    assert waits.outcome == "better", "one that waits may win where those that do not have nothing to order"


def test_an_overloaded_replay_has_no_ratio(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i * 2} 0 {(i * 7919) % 900000 * 8} 8 1\n" for i in range(2000))
    path = write(tmp_path / "rush.trace", rows)
    d = told(capfd, "compare", path, "-s", "none,mq-deadline", "-d", "barracuda-80g", "--seeds", 0)
    assert d["answer"]["outcome"] == "overloaded" and d["answer"]["margins"] == []
    text = good(capfd, "compare", path, "-s", "none,mq-deadline", "-d", "barracuda-80g", "--seeds", 0)
    assert "cannot keep up" in text and "no ratio is given" in text and "verdict" not in text
    slow = trial("slow", opened(1, 1500, 1.5))
    fast = trial("fast", dataclasses.replace(opened(1, 1500, 1.5), service_ns=np.full(1500, 2 * MS)))
    found = answer((fast, slow), "latency", is_open=True)
    assert found.text.startswith("Only fast can keep up with this recording at its timestamps; under the others")


def test_writes_are_not_ranked_by_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i * 20} 0 {(i * 7919) % 9000 * 800} 8 0\n" for i in range(300))
    path = write(tmp_path / "writes.trace", rows)
    text = good(capfd, "compare", path, "-s", "none,mq-deadline", "--seeds", 0)
    assert not re.search(r"\bread", text.split("\n(processor")[0]) and "write latency" in text


def test_a_single_scheduler_is_alone() -> None:
    assert said("throughput", result("as")).text == "Only as ran: there is nothing to compare."


# --- variants ---


def test_variants() -> None:
    found = parse_variants("mq-deadline,bfq,bfq:low_latency=0,as:antic_expire=3:tick_us=500,bfq", ["slice_idle=4"])
    assert [v.name for v in found] == ["mq-deadline", "bfq", "bfq:low_latency=0", "as:antic_expire=3:tick_us=500"]
    by = {v.name: dict(v.settings) for v in found}
    assert by["bfq"] == {"slice_idle": 4} and by["bfq:low_latency=0"] == {"slice_idle": 4, "low_latency": 0}
    own = parse_variants("bfq:slice_idle=2,bfq", ["bfq.slice_idle=4"])
    assert [dict(v.settings)["slice_idle"] for v in own] == [2, 4], "a variant's own settings come first"
    assert parse_variant("bfq").is_stock and not parse_variant("as").is_stock
    assert default_set()[:4] == ["none", "mq-deadline", "kyber", "bfq"] and len(default_set()) == 16


def test_variants_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = write(tmp_path / "two.fio", "[global]\nfilename=/dev/sda\nsize=2m\nbs=64k\nrw=read\n[a]\n[b]\noffset=9g\n")
    args = ("compare", job, "-s", "as:antic_expire=0,as,mq-deadline", "--seeds", 1)
    d = told(capfd, *args, "--current", "as:antic_expire=0")
    found = {r.get("variant", r["scheduler"]): r["tunables"].get("antic_expire") for r in d["results"]}
    assert found["as:antic_expire=0"] == 0 and found["as"] != 0 and len(found) == 3
    assert d["answer"]["baseline"] == "as:antic_expire=0"
    assert told(capfd, *args)["answer"]["baseline"] == "mq-deadline"
    text = good(capfd, *args)
    assert "as:antic_expire=0* " in text
    status, _, err = run(capfd, *args, "--current", "bfq")
    assert status == 2 and "--current bfq: not among the schedulers compared" in err


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("compare", "-s", "mq_deadline"), "mq-deadline"),
        (("compare", "-s", "BFQ"), "bfq"),
        (("compare", "-s", "cfq-slic"), "cfq-slice"),
        (("compare", "-s", "hw-as"), "as"),
        (("compare", "-s", "bfq:low_latncy=0"), "low_latency"),
        (("compare", "-s", "bfq", "--set", "bfq.low_latncy=0"), "low_latency"),
        (("compare", "-d", "wd-re-4t"), "wd-re-4tb"),
        (("run", "x", "-s", "as", "--set", "antic_expir=3"), "antic_expire"),
        (("comapre",), "compare"),
    ],
)
def test_did_you_mean(args: tuple[str, ...], meant: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, *args)
    assert status == 2 and f"; did you mean {meant}?" in err


def test_nothing_like_it_is_not_guessed() -> None:
    assert (
        did_you_mean("xyzzy", ["bfq", "none"]) == ""
        and did_you_mean("MQ_Deadline", ["mq-deadline"]) == "; did you mean mq-deadline?"
    )


def test_settings_of_variants_are_checked() -> None:
    with pytest.raises(Problem, match="no tunable or table 'nonesuch'"):
        parse_variant("as:nonesuch=1")
    assert field_of(trials(result("a", 20.0), result("b", 10.0)), "throughput", 1, 0.05, 0).steady is None


def test_cells_that_take_away_leave_an_interval() -> None:
    """Cells of paces may be negative, and so may a resample's sum be: the interval is wide, and still a number."""
    rng = np.random.default_rng(4)
    costs = np.ones((2, 60))
    costs[1] += rng.normal(0, 30, 60)
    costs[1] += 1 - costs[1].mean()
    assert (costs.sum(axis=1) > 0).all()
    found = bootstrap(costs, 0, 0)[1]
    assert np.isfinite([found.point, found.low, found.high]).all() and 1 < found.high - found.low < 30
