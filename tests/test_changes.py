# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Changes are told on one scale: that of the figure, with the same digits in a sentence as in a table."""

from __future__ import annotations

import math
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwaiter.study.changes import (
    LESS_IS_BETTER,
    ahead_log,
    change_percent,
    change_text,
    change_words,
    interval_text,
    interval_words,
    latency_text,
)
from headwaiter.study.compare import RANKINGS
from headwaiter.study.schema import Criterion, Margin

CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


def test_which_way_is_better_is_that_of_the_ranking() -> None:
    assert {by for by, (_, _, sign) in RANKINGS.items() if sign > 0} == LESS_IS_BETTER


@pytest.mark.parametrize(
    ("ratio", "by", "cell", "words"),
    [
        (1 / 0.43, "waited", "−57%", "57% less"),
        (1 / 2.24, "waited", "2.2x", "2.2 times as long"),
        (1 / 1.2, "elapsed", "+20%", "20% longer"),
        (1.3, "throughput", "+30%", "30% higher"),
        (43.63, "throughput", "43.6x", "43.6 times as high"),
        (0.4, "fairness", "−60%", "60% lower"),
        (1 / 1204.4, "p99", "1,204x", "1,204 times as high"),
        (1 / 0.9, "max", "−10%", "10% lower"),
        (1.996, "throughput", "+100%", "100% higher"),
        (2.0, "throughput", "2.0x", "2.0 times as high"),
        (1.0, "latency", "0%", "0% higher"),
        (1.0004, "throughput", "0%", "0% higher"),
        (0.997, "throughput", "−0.3%", "0.3% lower"),
        (1.0094, "throughput", "+0.9%", "0.9% higher"),
        (1.0096, "throughput", "+1%", "1% higher"),
        # Of what is nearly gone it is told how much is left.
        (200.0, "waited", "−99.5%", "99.5% less"),
        (201.0, "p99", "−99.5%", "99.5% lower"),
        (2500.0, "p99", "−99.96%", "99.96% lower"),
        (1e9, "p99", "−99.99%", "99.99% lower"),
        (1e-9, "waited", ">10,000x", "more than 10,000 times as long"),
        (1e-300, "latency", ">10,000x", "more than 10,000 times as high"),
    ],
)
def test_a_change_is_that_of_the_figure(ratio: float, by: Criterion, cell: str, words: str) -> None:
    assert change_text(by, math.log(ratio)) == cell
    assert change_words(by, math.log(ratio)) == words


def test_under_what_it_was_otherwise() -> None:
    assert change_words("waited", math.log(1 / 0.43), under="mq-deadline") == "57% less than under mq-deadline"
    assert change_words("throughput", math.log(2.5), under="none") == "2.5 times as high as under none"


def test_what_nothing_is_left_of() -> None:
    """Runs that move no bytes at all are infinitely far behind."""
    assert change_text("throughput", -math.inf) == "−99.99%" and change_text("waited", -math.inf) == ">10,000x"
    assert change_text("waited", math.inf) == "−99.99%"
    gone = Margin(scheduler="a", judgement="worse", ahead_percent=-100.0)
    assert ahead_log(gone.ahead_percent) == -math.inf
    assert change_percent("throughput", gone) == -100 and change_percent("waited", gone) is None
    half = Margin(scheduler="a", judgement="worse", ahead_percent=-50.0)
    assert change_percent("throughput", half) == pytest.approx(-50) and change_percent("waited", half) == pytest.approx(100)


@pytest.mark.parametrize(
    ("low", "high", "by", "cell", "words"),
    [
        (1 / 0.9, 1 / 0.2, "waited", "−80 to −10%", "10 to 80% less"),
        (41.13, 45.41, "throughput", "41.1 to 45.4x", "41.1 to 45.4 times"),
        (0.95, 1.1, "throughput", "−5 to +10%", "5% lower to 10% higher"),
        (1 / 1.1, 1 / 0.95, "waited", "−5 to +10%", "5% less to 10% longer"),
        (1.05, 1.1, "throughput", "+5 to +10%", "5 to 10% higher"),
        (1.8, 2.3, "throughput", "+80% to 2.3x", "80% higher to 2.3 times as high"),
        (0.5, 2.3, "fairness", "−50% to 2.3x", "50% lower to 2.3 times as high"),
        # More digits where the ends would be the same, and none where they are.
        (4.512, 4.534, "throughput", "4.51 to 4.53x", "4.51 to 4.53 times"),
        (4.5121, 4.5148, "throughput", "4.512 to 4.515x", "4.512 to 4.515 times"),
        (4.5, 4.50001, "throughput", "", ""),
        (4.5, 4.5, "throughput", "", ""),
        (1 / 0.4303, 1 / 0.4296, "waited", "−57.04 to −56.97%", "56.97 to 57.04% less"),
        (200.0, 240.0, "p99", "−99.6 to −99.5%", "99.5 to 99.6% lower"),
        (2e4, 3e4, "throughput", "", ""),
        (300.0, 2e4, "throughput", "300 to >10,000x", "300 to more than 10,000 times"),
    ],
)
def test_intervals(low: float, high: float, by: Criterion, cell: str, words: str) -> None:
    assert interval_text(by, math.log(low), math.log(high)) == cell
    assert interval_words(by, math.log(low), math.log(high)) == words


def test_ends_that_are_not_known() -> None:
    for ends in ((-math.inf, 1.0), (0.0, math.inf)):
        assert interval_text("waited", *ends) == interval_words("waited", *ends) == ""


@given(st.sampled_from(CRITERIA), st.floats(-700, 700), st.floats(-700, 700))
def test_nobody_reads_an_exponent(by: Criterion, one: float, other: float) -> None:
    """Nor two ends that are the same; a change has the sign, and the digits, of its sentence."""
    low, high = sorted((one, other))
    told = [change_text(by, low), change_words(by, low), interval_text(by, low, high), interval_words(by, low, high)]
    assert not any(re.search(r"e[+-]|inf|nan", text) for text in told)
    assert re.findall(r"[\d.,]+", told[0]) == re.findall(r"[\d.,]+", told[1])
    ends = re.fullmatch(r"(.*?)[%x]? to (.*)[%x]", told[2])
    assert not told[2] or ends
    assert not ends or ends[1] != ends[2]


def test_long_latencies_are_in_seconds() -> None:
    assert [latency_text(ms) for ms in (0.081, 114.2, 9999.0, 10_000.0, 49_512.6)] == [
        "0.081 ms", "114 ms", "9999 ms", "10.0 s", "49.5 s",
    ]  # fmt: skip
