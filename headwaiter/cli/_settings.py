# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--set where several schedulers run: a tunable or a table, of one of them or of all that have it."""

from __future__ import annotations

from collections.abc import Sequence

from headwaiter.engine.schedulers import find
from headwaiter.engine.tables import Setting
from headwaiter.errors import Problem, shown
from headwaiter.parsing import assignment
from headwaiter.was.config import READERS


def settings_of(pairs: Sequence[str], chosen: Sequence[str]) -> dict[str, dict[str, Setting]]:
    """By scheduler. SCHED.k=v is for one scheduler, k=v for all of them that have k."""
    out: dict[str, dict[str, Setting]] = {name: {} for name in chosen}
    for pair in pairs:
        key, value = assignment("--set", pair, "[SCHEDULER.]TUNABLE=VALUE or [SCHEDULER.]TABLE=FILE")
        scheduler, dot, name = key.rpartition(".")
        if dot and find(scheduler).name not in out:
            raise Problem(f"--set {shown(pair, 200)}: {scheduler} is not among the schedulers compared")
        having = [s for s in ([find(scheduler).name] if dot else chosen) if find(s).has(name)]
        if not having:
            whom = f"{shown(scheduler)} has no" if scheduler else "none of the schedulers has a"
            raise Problem(f"--set {shown(pair, 200)}: {whom} tunable or table '{shown(name)}'")
        rows: Setting | None = None  # a file is read once: it may be a FIFO
        for s in having:
            is_table = name in find(s).tables
            out[s][name] = find(s).parse(f"--set {pair}", name, value, READERS) if rows is None else rows
            rows = out[s][name] if is_table else None
    return out
