# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Numbers as people read them: three digits, and never an exponent."""

from __future__ import annotations

import math
from decimal import Decimal

GROUPED = 10_000
"""Whole numbers from here on have their digits in groups."""


def digits(value: float) -> str:
    """Return a number for a column: three digits, or all in front of the point. All of an int."""
    if value < 0:
        return f"-{digits(-value)}"
    if value >= GROUPED:
        return f"{value:,.0f}"
    if isinstance(value, int) or value >= 100 or value < 1e-6:
        return f"{value:.0f}"
    if value >= 1:
        return f"{value:.{2 - math.floor(math.log10(value))}f}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.{1 - math.floor(math.log10(value))}f}".rstrip("0")


def brief(value: float, most: int = 3) -> str:
    """Return a number for a sentence: to `most` digits, all of them in front of the point, and no zeros at the end."""
    if not math.isfinite(value):
        return f"{value}"
    if abs(value) >= 10**most:
        return digits(round(value))
    return f"{Decimal(f'{value:.{most}g}'):f}"
