# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Numbers for people have three digits and no exponent."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwaiter.base.figures import brief, digits


def test_digits() -> None:
    told = [digits(value) for value in (0.0, 1e-9, 0.000096, 0.0004, 0.00042, 0.0851, 1.004, 9.996, 14.25, 118.4, 1600.0)]
    assert told == ["0", "0", "0.000096", "0.0004", "0.00042", "0.085", "1.00", "10.00", "14.2", "118", "1600"]
    assert [digits(value) for value in (9999.0, 10_000.0, 49_512.6, 1.25e7)] == ["9999", "10,000", "49,513", "12,500,000"]
    assert [digits(value) for value in (-0.0044, -14.25, -49_512.6)] == ["-0.004", "-14.2", "-49,513"]
    assert [digits(value) for value in (0, 7, 42, 9999, 81_499)] == ["0", "7", "42", "9999", "81,499"]


@pytest.mark.parametrize(
    ("value", "most", "told"),
    [
        (0.0, 3, "0"), (66.0, 3, "66"), (3.5, 3, "3.5"), (0.1234, 3, "0.123"), (999.6, 3, "1000"), (3600.0, 3, "3600"),
        (13_038.4, 3, "13,038"), (0.00002, 3, "0.00002"), (-1234.5, 3, "-1234"), (99.7, 2, "100"), (100.0, 2, "100"),
        (0.523, 2, "0.52"), (math.inf, 3, "inf"),
    ],
)  # fmt: skip
def test_brief(value: float, most: int, told: str) -> None:
    assert brief(value, most) == told


def rounded_by(value: float) -> float:
    """Return the most by which digits() may be off: half of the third digit, of the third place below 1, of the second one's
    digit below 0.001.
    """
    size = abs(value)
    return 0.0005 if 0.001 <= size < 1 else size * (0.005 if size >= 1 else 0.05)


@given(st.one_of(st.floats(-1e12, 1e12), st.floats(-2, 2), st.floats(0, 0.002)), st.integers(1, 4))
@example(0.0625, 1)
@example(0.00096, 2)
def test_nobody_reads_an_exponent(value: float, most: int) -> None:
    """Nor another number than what was told, but for what is rounded."""
    for told, off in ((brief(value, most), abs(value) * 10.0 ** (1 - most) / 2), (digits(value), rounded_by(value))):
        assert "e" not in told
        assert float(told.replace(",", "")) == pytest.approx(value, rel=1e-9, abs=off + 1e-6)
