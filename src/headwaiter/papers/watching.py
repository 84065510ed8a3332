# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` sees of a disk by the study's table: a recording is held against the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwaiter.base.errors import Problem
from headwaiter.papers.cells import ByTable
from headwaiter.papers.selectors import promised
from headwaiter.papers.worked import worked
from headwaiter.queue.devices import Device
from headwaiter.traces import Trace
from headwaiter.watch.decide import Window
from headwaiter.watch.sample import recorded_window, sufficient


class TableMethod:
    """Choose by what is recorded, and a table by operation, file size and record length."""

    def __init__(self, table: ByTable) -> None:
        self._table = table

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        """See Method."""
        found = recorded_window(device, legs, seconds)
        return found if isinstance(found, Window) else self.judge(*found, current, candidates)

    def judge(self, trace: Trace, seconds: float, lost: int, current: str, candidates: Sequence[str]) -> Window:
        """Return what a recording of so many seconds tells; its load is what the table was asked for."""
        seen = sufficient(trace, seconds, lost)
        if seen.trouble:
            return seen
        try:
            what = worked(trace)
            seen = replace(seen, load=str(what))
            return replace(seen, advantage=promised(self._table, what.cells(self._table), current, candidates))
        except Problem as e:
            return replace(seen, trouble=str(e))
