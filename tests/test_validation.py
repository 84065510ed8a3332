# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The figures of `validate`, on times chosen so that each can be worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from command import good, told, write

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.drives import find_drive, validation
from headwaiter.drives.validation import FRACTIONS, MeasuredRequests, Validation, demerit, quantiles, read_trace, validate

TRACE = "R Hit 100 8 9000 5000\nW Miss 7 16 1000.5 250\n\nR Hit 0x10 1 0 0\n"


def of(measured: list[float], simulated: list[float]) -> Validation:
    m, s = np.array(measured), np.array(simulated)
    return Validation(m, s, demerit(m, s), float(m.mean()), float(s.mean()), float(m.max()), float(s.max()))


def test_quantiles_go_from_just_above_the_least_to_the_largest() -> None:
    """Between two values linearly: of 0 and 10, a tenth of a percent is 0.01."""
    q = quantiles(np.array([10.0, 0.0]))
    assert FRACTIONS == len(q) == 10_000
    assert (q[0], q[9], q[4999], q[-1]) == (pytest.approx(0.001), pytest.approx(0.01), pytest.approx(5), 10)


def test_the_demerit_is_the_root_mean_square_of_the_distance() -> None:
    """0 and 10 against 0 and 20: 10p apart at the fraction p; the mean of p² over k/N is (N+1)(2N+1)/6N²."""
    n = 10_000
    expected = 10 * math.sqrt((n + 1) * (2 * n + 1) / (6 * n * n))
    assert demerit(np.array([0.0, 10.0]), np.array([20.0, 0.0])) == pytest.approx(expected)
    assert demerit(np.array([3.0, 5.0, 4.0]), np.array([5.0, 3.0, 4.0])) == 0, "whichever request they are of"
    assert demerit(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == pytest.approx(2)


def test_errors() -> None:
    """Measured 0 and 10, simulated 20 and 0: 10 apart at the top, 20 and 10 request by request, the means 5 apart."""
    v = of([0.0, 10.0], [20.0, 0.0])
    assert (v.max_error_ms, v.mean_absolute_error_ms, v.mean_error_ms) == pytest.approx((10, 15, 5))
    assert of([3.0, 5.0], [5.0, 3.0]).max_error_ms == 0
    assert of([5.0, 9.0, 1.0], [5.0, 2.0, 1.0]).max_error_ms == pytest.approx(4), "9 and 5 are the largest"
    assert of([4.0, 4.0], [1.0, 2.0]).mean_error_ms == -2.5


def test_a_trace_is_read_as_it_is_written(tmp_path: Path) -> None:
    """Microseconds in, nanoseconds out; places may be hexadecimal; empty lines are none."""
    load = read_trace(write(tmp_path / "t", TRACE))
    assert (load.op.tolist(), load.sector.tolist(), load.sectors.tolist()) == ([0, 1, 0], [100, 7, 16], [8, 16, 1])
    assert (load.service_ns.tolist(), load.think_ns.tolist()) == ([9_000_000, 1_000_500, 0], [5_000_000, 250_000, 0])


def one(sector: int, sectors: int) -> MeasuredRequests:
    ones = np.ones(1, np.int64)
    return MeasuredRequests(
        np.zeros(1, np.uint8), np.array([sector], np.uint64), np.array([sectors], np.uint32), ones * 10**6, ones * 0
    )


def test_a_request_is_no_larger_than_a_command_of_a_disk(tmp_path: Path) -> None:
    """One for the whole disk would walk every track of the model."""
    path = tmp_path / "trace"
    path.write_text("R Miss 5000 65536 8000 100\n", encoding="ascii")
    assert read_trace(path).sectors.tolist() == [65536]
    path.write_text("R Miss 5000 65537 8000 100\n", encoding="ascii")
    with pytest.raises(Problem, match=r"line 1: blocks: 65537 is outside 1\.\.65536"):
        read_trace(path)


def test_requests_may_end_where_the_drive_ends() -> None:
    drive = find_drive("barracuda-80g")
    capacity = drive.facts[0]
    v = validate(drive, one(capacity - 8, 8), "t")
    assert v.mean_measured_ms == v.max_measured_ms == 1.0 and v.max_simulated_ms == v.mean_simulated_ms > 0
    says = rf"t: request 1 \(block {capacity - 7}\) lies beyond the end of barracuda-80g \({capacity}"
    with pytest.raises(Problem, match=says):
        validate(drive, one(capacity - 7, 8), "t")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Measured 4, 8 and 9 ms, simulated 6, 2 and 10: means 7 and 6, errors 2, -6 and 1."""
    path = write(tmp_path / "t.trace", "R Hit 1 8 4000 1\nW Hit 2 8 8000 1\nR Hit 3 8 9000 1\n")
    monkeypatch.setattr(validation, "replay", lambda drive, load: np.array([6, 2, 10]) * 1_000_000)
    # In order: 4, 8, 9 and 2, 6, 10. They are 2 apart from 2 and 6 up to 8 and 6, then cross, and 1 at the top.
    p = np.arange(1, FRACTIONS + 1) / FRACTIONS * 2
    apart = np.interp(p, [0, 1, 2], [4, 8, 9]) - np.interp(p, [0, 1, 2], [2, 6, 10])
    root = float(np.sqrt((apart**2).mean()))
    assert told(capfd, "validate", "barracuda-80g", path) == {
        "schema": "headwaiter/1", "version": headwaiter.__version__, "drive": "barracuda-80g", "trace": "t.trace", "requests": 3,
        "demerit_ms": pytest.approx(root),
        "mean_absolute_error_ms": pytest.approx(3), "mean_error_ms": pytest.approx(-1), "max_error_ms": pytest.approx(2),
        "measured_ms": {"mean": 7.0, "max": 9.0}, "simulated_ms": {"mean": 6.0, "max": 10.0},
    }  # fmt: skip
    assert [line.split() for line in good(capfd, "validate", "barracuda-80g", path).splitlines()] == [
        line.split()
        for line in (
            "barracuda-80g: 3 requests of t.trace",
            f"demerit figure {root:.3f} ms ({root / 7:.1%} of the mean)",
            "error per request 3.000 ms (mean absolute value)",
            "mean, measured 7.000 ms",
            "mean, model 6.000 ms (error -1.000)",
            "maximum, measured 9.000 ms",
            "maximum, model 10.000 ms",
            "largest distance between the distributions 2.000 ms",
        )
    ]
