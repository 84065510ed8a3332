# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a search may set: the tunables of a scheduler, each with the values that are tried.

Times and sizes double from one value to the next, around the value that the search starts from; shares of a whole are apart by
as much. A zero is among the values where it is allowed, for it often means "never" or "by itself".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from headwaiter.base.errors import Problem
from headwaiter.engine.schedulers import Scheduler, Tunable

FARTHEST = 5
"""A value is doubled, and halved, up to so many times."""
SHARE_STEPS = 8
_SHARES = ("1/256", "permille", "percentile", "1/10000")
"""Units of shares of a whole."""
_UNKNOWN = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
"""Values to try of a number whose default is 0, which tells nothing of its size."""
FIXED = {
    "tick_us": "the kernel's tick",
    "kernel": "which kernel's code it is",
    "timer_resolution": "the kernel's timers",
    "wb_start_bug": "a bug of the kernel",
    "observe": "whether it measures only",
    "bucket_us": "how finely it measures",
    "budget": "a limit of blk-mq, which nobody can set",
}
"""Tunables that say what is, and not what to do: nobody would set them to get more done."""
_SAID_TWICE = {"slice_idle_us": "slice_idle"}


@dataclass(frozen=True)
class Dial:
    """A tunable with the values that are tried. start: the one without the search; ordered: neighbours are alike."""

    tunable: Tunable
    values: tuple[int, ...]
    start: int
    ordered: bool

    @property
    def name(self) -> str:
        """The tunable's name."""
        return self.tunable.name


def dials(policy: Scheduler, start: Mapping[str, int]) -> tuple[Dial, ...]:
    """Return what can be set of a scheduler, and from where: `start`, else the default. Problem if it has nothing to set."""
    found = tuple(_dial(t, start.get(t.name, t.default)) for t in policy.tunables.values() if not _is_fixed(policy, t))
    found = tuple(one for one in found if len(one.values) > 1)
    if not found:
        raise Problem(f"{policy.name} has no tunables to search")
    return found


def size(found: tuple[Dial, ...]) -> int:
    """Return how many settings there are."""
    return prod(len(one.values) for one in found)


def _is_fixed(policy: Scheduler, tunable: Tunable) -> bool:
    return tunable.name in FIXED or policy.has(_SAID_TWICE.get(tunable.name, ""))


def _dial(t: Tunable, start: int) -> Dial:
    if t.choices or t.is_flag:
        return Dial(t, tuple(range(t.minimum, t.maximum + 1)), start, False)
    base = start if start > 0 else t.default
    if t.unit in _SHARES:
        many = range(SHARE_STEPS + 1)
        values = {t.minimum + (t.maximum - t.minimum) * i // SHARE_STEPS for i in many}
    elif base > 0:
        doubled = {base << i for i in range(FARTHEST + 1)}
        values = doubled | {base >> i for i in range(FARTHEST + 1)} - {0}
    else:
        values = set(_UNKNOWN)
    allowed = {value for value in values | {0} if t.minimum <= value <= t.maximum}
    return Dial(t, tuple(sorted(allowed | {start, t.default})), start, True)
