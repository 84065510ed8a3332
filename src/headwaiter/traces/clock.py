# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Columns of times as people's tools write them: numbers in a unit, Windows' ticks since 1601, dates, times of day.

A recording's times count from its first; what is returned is nanoseconds since a base that columns of one file share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache

import numpy as np

from headwaiter.traces.fields import Array, FieldTable
from headwaiter.traces.model import MAX_TIME_NS

_DAY_NS = 86400 * 10**9
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
_DATE = re.compile(
    rf"(?:(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}})|(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}))(?:[T ]\s*{_CLOCK})?{_ZONE}", re.ASCII
)
_TIME_OF_DAY = re.compile(_CLOCK, re.ASCII)
_TICK_NS = 100


@dataclass
class Clock:
    """Converts the columns of times of one file. `scale` is that of meaning.TIMES."""

    base: int | None = None
    """Time from which the file's times count; known with the first column."""

    def column(self, table: FieldTable, column: int, what: str, scale: int, *, blank: bool = False) -> Array:
        """Times of a column in ns, int64 of shape (rows,); an empty field is -1 if `blank`. Problem at the first that is none."""
        empty = table.start[:, column] == table.end[:, column]
        if scale < 0:
            return self._since(table, table.integers_or(column, what, blank=-1 if blank else None), empty, what, _TICK_NS)
        pattern = _form(table, column, empty)
        if pattern is None:
            return table.fixed(column, what, scale, high=MAX_TIME_NS, blank=-1 if blank else None)
        texts = [table.text(row, column) for row in range(len(table))]
        read = _date_ns if pattern is _DATE else _of_day_ns()
        values = np.empty(len(table), object)
        for row, text in enumerate(texts):
            if blank and not text:
                values[row] = -1
                continue
            found = pattern.fullmatch(text)
            value = read(found) if found else None
            if value is None:
                raise table.problem(
                    row, f"{what} {text[:40]!r} is no time like that of the first line (YYYY-MM-DD HH:MM:SS.ffffff)"
                )
            values[row] = value
        return self._since(table, values, empty, what, 1)

    def _since(self, table: FieldTable, values: Array, empty: Array, what: str, unit_ns: int) -> Array:
        """Exact numbers of a unit since long ago, as ns since the base."""
        if self.base is None:
            self.base = int(min(values[~empty], default=0))
        since = values - self.base
        far = ~empty & ((since < -MAX_TIME_NS // unit_ns) | (since > MAX_TIME_NS // unit_ns))
        if far.any():
            raise table.problem(int(np.argmax(far)), f"{what} is more than 73 years from the first")
        found: Array = np.where(empty, -1, since).astype(np.int64) * np.where(empty, 1, unit_ns)
        if (early := ~empty & (found < 0)).any():
            raise table.problem(int(np.argmax(early)), f"{what} is before the first time")
        return found


def is_time(text: str) -> bool:
    """Return whether it is a time in any form, and no name of a column."""
    number = re.fullmatch(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?", text, re.ASCII)
    return bool(number or _DATE.fullmatch(text) or _TIME_OF_DAY.fullmatch(text))


def _form(table: FieldTable, column: int, empty: Array) -> re.Pattern[str] | None:
    """Return how the first time that there is is written; None: as a number."""
    if empty.all():
        return None
    text = table.text(int(np.argmin(empty)), column)
    return next((pattern for pattern in (_DATE, _TIME_OF_DAY) if pattern.fullmatch(text)), None)


@cache
def _day_ns(year: int, month: int, day: int) -> int | None:
    try:
        return (date(year, month, day).toordinal() - date(1970, 1, 1).toordinal()) * _DAY_NS
    except ValueError:
        return None


def _clock_ns(hour: str | None, minute: str | None, second: str | None, fraction: str | None) -> int | None:
    if int(hour or 0) > 24 or int(minute or 0) > 59 or int(second or 0) > 60:
        return None
    whole = (int(hour or 0) * 60 + int(minute or 0)) * 60 + int(second or 0)
    return whole * 10**9 + int((fraction or "0")[:9].ljust(9, "0"))


def _date_ns(found: re.Match[str]) -> int | None:
    year, month, day, day_first, month_second, year_last, *clock, zone = found.groups()
    midnight = _day_ns(int(year or year_last), int(month or month_second), int(day or day_first))
    of_day = _clock_ns(*clock)
    if midnight is None or of_day is None:
        return None
    ahead = 0
    if zone and zone[0] in "+-":
        ahead = (int(zone[1:3]) * 60 + int(zone[-2:])) * 60 * 10**9 * (1 if zone[0] == "+" else -1)
    return midnight + of_day - ahead


def _of_day_ns() -> Callable[[re.Match[str]], int | None]:
    """Times without a date: where one is half a day before the one above it, midnight lies between them."""
    days, last = 0, 0

    def read(found: re.Match[str]) -> int | None:
        nonlocal days, last
        value = _clock_ns(*found.groups())
        if value is not None:
            days += (last - value > _DAY_NS // 2) - (value - last > _DAY_NS // 2 and days > 0)
            last = value
            value += days * _DAY_NS
        return value

    return read
