# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Values of options as fio 3.33 writes them: sizes, times, lists for reads and writes, percentages.

Every function takes the text of a value and returns what it means; ValueError says what is wrong with it. Sizes are in
bytes, times in ns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from headwaiter.base.errors import shown
from headwaiter.base.parsing import whole

T = TypeVar("T")

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SIZE = re.compile(r"(0x[0-9a-f]+|\d+)([kmgtp]?)(ib|i|b)?", re.ASCII)
_TIME = re.compile(r"(\d+)([a-z]*)", re.ASCII)
_TIME_NS = {
    "us": 1_000,
    "usec": 1_000,
    "ms": 1_000_000,
    "msec": 1_000_000,
    "s": 1_000_000_000,
    "sec": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
LARGEST = 1 << 62
LONGEST_NS = 1 << 61


@dataclass(frozen=True)
class Percent:
    """A share of something, 0 … 100."""

    value: int


def size(value: str, kb_base: int = 1024) -> int:
    """`4k`, `1m`, `0x1000`: bytes.

    As in fio, k is 1024 with kb_base 1024 (the default) and 1000 with kb_base 1000. Of the names with an i, only those
    that end in `ib` are the other way round (1kib is 1000 with kb_base 1024); `ki` is the same as `k`.
    """
    match = _SIZE.fullmatch(value.lower())
    if not match:
        raise ValueError(f"'{shown(value)}' is not a size (such as 4096, 4k, 1m, 10g)")
    digits, prefix, unit = match.groups()
    number = _number(digits, "larger than any drive", value)
    base = kb_base
    if unit == "ib":
        if not prefix:
            raise ValueError(f"'{shown(value)}' is not a size (such as 4096, 4k, 1m, 10g)")
        base = 1000 if kb_base == 1024 else 1024
    elif unit == "i" and not prefix:
        raise ValueError(f"'{shown(value)}' is not a size (such as 4096, 4k, 1m, 10g)")
    number *= int(base ** _POWERS[prefix])
    if number > LARGEST:
        raise ValueError(f"'{shown(value)}' is larger than any drive")
    return number


def _number(digits: str, otherwise: str, value: str) -> int:
    try:
        return whole(digits, 0, LARGEST)
    except ValueError:
        raise ValueError(f"'{shown(value)}' is {otherwise}") from None


def size_or_percent(value: str, kb_base: int = 1024) -> int | Percent:
    """A size, or a share such as `50%`."""
    if not value.endswith("%"):
        return size(value, kb_base)
    number = integer(value[:-1], 0, 100, what=value)
    return Percent(number)


def integer(value: str, low: int = 0, high: int = (1 << 32) - 1, what: str | None = None) -> int:
    """A whole number within low … high. `what` is the value as the user wrote it."""
    return whole(value, low, high, what)


def fraction(value: str) -> float:
    """A number that need not be whole; finite."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"'{shown(value)}' is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"'{shown(value)}' is not a number")
    return number


def count(value: str, kb_base: int = 1024) -> int:
    """A positive number of things; fio allows `10k` here too."""
    number = size(value, kb_base)
    if not 1 <= number < 1 << 32:
        raise ValueError(f"{shown(value)} is outside 1..4294967295")
    return number


def duration(value: str, unit: str) -> int:
    """A time in ns; without a unit in `unit`, the option's own."""
    match = _TIME.fullmatch(value.lower())
    if not match or match.group(2) not in {"", *_TIME_NS}:
        raise ValueError(f"'{shown(value)}' is not a time (such as 10, 500us, 20ms, 30s, 5m, 1h)")
    number = _number(match.group(1), "longer than 73 years", value) * _TIME_NS[match.group(2) or unit]
    if number > LONGEST_NS:
        raise ValueError(f"'{shown(value)}' is longer than 73 years")
    return number


def flag(value: str | None) -> bool:
    """0 or 1; no value at all means 1 for the options that may stand alone."""
    if value is None or value == "1":
        return True
    if value == "0":
        return False
    raise ValueError(f"'{shown(value)}' is neither 0 nor 1")


def choice(value: str, allowed: tuple[str, ...]) -> str:
    """One of a few words."""
    if value in allowed:
        return value
    raise ValueError(f"'{shown(value)}' is not one of {', '.join(allowed)}")


def span(value: str, parse: Callable[[str], int]) -> tuple[int, int]:
    """`low-high` or `low:high`, in either order; one value is both ends."""
    parts = re.split("[-:]", value)
    if len(parts) > 2:
        raise ValueError(f"'{shown(value)}' is not a range (such as 4k-64k)")
    low, high = parse(parts[0]), parse(parts[-1])
    return min(low, high), max(low, high)


def per_direction(value: str, parse: Callable[[str], T], separators: str = ",") -> tuple[T | None, T | None]:
    """`r`, `r,w` or `r,w,t`: one value for all, else one each; one left out is None. Trims are checked and dropped."""
    parts = [p.strip() for p in re.split(f"[{separators}]", value)]
    if len(parts) > 3:
        raise ValueError(f"'{shown(value)}' has more than three parts (reads, writes, trims)")
    parsed = [parse(p) if p else None for p in parts]
    if all(p is None for p in parsed):
        raise ValueError("a value is missing")
    return (parsed[0], parsed[0]) if len(parsed) == 1 else (parsed[0], parsed[1])


def shares(value: str, parse: Callable[[str], T]) -> tuple[tuple[T, int], ...]:
    """`thing/percent:thing/percent…`, as fio sorts them: the smallest share first.

    What is left of 100 is divided among those that name no percentage.
    """
    found: list[tuple[T, int | None]] = []
    for part in value.split(":"):
        thing, _, percent = part.partition("/")
        found.append(
            (parse(thing.strip()), integer(percent.strip().removesuffix("%"), 0, 100, part) if percent.strip() else None)
        )
    left = 100 - sum(percent or 0 for _, percent in found)
    open_ = sum(percent is None for _, percent in found)
    if left < 0:
        raise ValueError(f"'{shown(value)}': the percentages add up to more than 100")
    filled = ((thing, left // open_ if percent is None else percent) for thing, percent in found)
    return tuple(sorted(filled, key=lambda share: share[1]))


def zones(value: str, parse: Callable[[str], int]) -> tuple[tuple[int, int], ...]:
    """`access/length:access/length…`: percentages of the accesses, and how long each zone is (0: not said)."""
    found = []
    for part in value.split(":"):
        access, _, length = part.partition("/")
        found.append((integer(access.strip(), 0, 100, part), parse(length.strip()) if length.strip() else 0))
    if sum(access for access, _ in found) != 100:
        raise ValueError(f"'{shown(value)}': the accesses do not add up to 100%")
    return tuple(found)
