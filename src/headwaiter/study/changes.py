# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How figures, and how they change, are told to people: on one scale, so that a sentence has the number of the table.

A change is that of the figure itself: who waits 57% less has -57%, who waits 2.2 times as long has 2.2x, and a throughput that
is 30% higher has +30%. Verdicts are worked out on another scale, on which ahead is always above 0 (`Interval`, `Margin`).
"""

from __future__ import annotations

import math

from headwaiter.base.figures import digits
from headwaiter.study.schema import Criterion, Margin

LESS_IS_BETTER: frozenset[Criterion] = frozenset({"waited", "elapsed", "latency", "p99", "max"})
"""Less is better of these figures by which schedulers are ranked; more of the others."""
TIMES = 2.0
"""From this factor on a rise is told as a factor, not in percent."""
FARTHEST = 10_000
"""Greater factors are told as more than this, and the falls to the inverse of one as 99.99%."""
LONG_MS = 10_000
"""Latencies from here on are told in seconds."""
_MINUS = "\u2212"
_MORE_DIGITS = 2
"""Behind the point, at most, to tell the ends of an interval apart."""

# Of a figure that rises to a multiple: "2.2 times as _"; that rises, and that falls, by a percentage.
_HIGH = ("high", "higher", "lower")
_WORDS: dict[str, tuple[str, str, str]] = {
    "progress": ("much", "more", "less"),
    "waited": ("long", "longer", "less"),
    "elapsed": ("long", "longer", "less"),
}


def latency_text(ms: float) -> str:
    """A latency with its unit."""
    return f"{digits(ms / 1000)} s" if ms >= LONG_MS else f"{digits(ms)} ms"


def factor(by: Criterion, ahead_log: float) -> float:
    """Return what the figure is of the baseline's; `ahead_log`: the logarithm of a ratio, above 0 where it is better."""
    own = -ahead_log if by in LESS_IS_BETTER else ahead_log
    return math.exp(own) if own < math.log(10 * FARTHEST) else math.inf


def ahead_log(percent: float) -> float:
    """The logarithm of a ratio of which a Margin tells how many percent ahead it is."""
    return math.log1p(percent / 100) if percent > -100 else -math.inf


def change_text(by: Criterion, ahead_log: float) -> str:
    """Return how the figure changes against the baseline, in a cell: `−57%`, `+30%`, `2.2x`."""
    sign, number, unit = _told(factor(by, ahead_log))
    return f"{sign}{number}{unit}"


def change_words(by: Criterion, ahead_log: float, under: str = "") -> str:
    """Return the change in a sentence: `57% less`, `2.2 times as long`; than, or as, `under` something, if it is named."""
    sign, number, unit = _told(factor(by, ahead_log))
    multiple, more, less = _WORDS.get(by, _HIGH)
    if unit == "x":
        return f"{_spelled(number)} times as {multiple}" + (f" as under {under}" if under else "")
    word = less if sign == _MINUS else more
    return f"{number}% {word}" + (f" than under {under}" if under else "")


def interval_text(by: Criterion, low: float, high: float) -> str:
    """Between which changes it lies, in a cell: `−80 to −10%`; "" where an end is unknown, or no digit tells the ends apart."""
    found = _ends(by, low, high)
    if not found:
        return ""
    (sign, number, unit), (sign_2, number_2, unit_2) = found
    return f"{sign}{number}{'' if unit == unit_2 else unit} to {sign_2}{number_2}{unit_2}"


def interval_words(by: Criterion, low: float, high: float) -> str:
    """Return the interval in a sentence: `10 to 80% less`, `7.9 to 8.5 times`; "" as interval_text()."""
    found = _ends(by, low, high)
    if not found:
        return ""
    (sign, number, unit), (sign_2, number_2, unit_2) = found
    multiple, more, less = _WORDS.get(by, _HIGH)
    if unit == unit_2 == "x":
        return f"{_spelled(number)} to {_spelled(number_2)} times"
    if sign_2 == _MINUS == sign:
        return f"{number_2} to {number}% {less}"
    if unit == unit_2 and sign != _MINUS:
        return f"{number} to {number_2}% {more}"
    first = f"{number}% {less if sign == _MINUS else more}"
    return f"{first} to " + (f"{_spelled(number_2)} times as {multiple}" if unit_2 == "x" else f"{number_2}% {more}")


def change_percent(by: Criterion, margin: Margin) -> float | None:
    """A verdict's change in percent of the baseline's figure; None where that has none."""
    found = factor(by, ahead_log(margin.ahead_percent))
    return None if math.isinf(found) else 100 * (found - 1)


def _spelled(number: str) -> str:
    return f"more than {number[1:]}" if number.startswith(">") else number


def _told(of: float, more: int = 0) -> tuple[str, str, str]:
    """A factor as sign, number and unit: `x`, or `%` of a change; with `more` digits behind the point."""
    if of > FARTHEST:
        return "", f">{FARTHEST:,}", "x"
    if of >= TIMES:
        return "", f"{of:,.{(of < 100) + more}f}", "x"
    percent = abs(100 * (of - 1))
    if of < 1:
        # Of what is nearly gone the rest is told.
        percent = min(percent, 99.99)
        more = max(more, sum(percent >= edge for edge in (99.5, 99.95)))
    number = f"{percent:.{(percent < 0.95) + more}f}"
    if not float(number):
        return "", "0", "%"
    return _MINUS if of < 1 else "+", number, "%"


def _ends(by: Criterion, low: float, high: float) -> tuple[tuple[str, str, str], tuple[str, str, str]] | None:
    """Both ends of an interval, the lower change first, told with as many digits as tell them apart."""
    if math.isinf(low) or math.isinf(high):
        return None
    first, last = sorted(factor(by, end) for end in (low, high))
    told = ((_told(first, more), _told(last, more)) for more in range(_MORE_DIGITS + 1))
    return next((ends for ends in told if ends[0] != ends[1]), None)
