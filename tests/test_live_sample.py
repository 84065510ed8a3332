# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `watch` makes of a window."""

from __future__ import annotations

import math
from typing import Any

from fakesys import FakeSystem, machine
from recordings import readers, record
from test_fit import at_work

import headwaiter
from headwaiter.live.machine import Machine
from headwaiter.live.sample import Replay
from headwaiter.traces import load

__all__ = ["machine"]


# --- a window ---


def test_a_window_is_judged_as_anybody_judges_it(machine: FakeSystem, tmp_path: Any) -> None:
    """The same first place, margin and interval as of `compare`, `advise` and the Python interface."""
    machine.add("sda")
    path = record(tmp_path / "four.csv", readers(4, 1300))
    trace, names = load(path), ["mq-deadline", "none", "bfq"]
    seen = Replay("barracuda-80g").judge(Machine(machine.root).find("sda"), trace, 9.0, 0, "mq-deadline", ["none", "bfq"])
    asked = headwaiter.compare(path, "barracuda-80g", names).answer
    assert seen.answer and sorted(seen.answer.margins, key=str) == sorted(asked.margins, key=str)
    assert (seen.answer.best, seen.answer.text) == (asked.best, asked.text)
    assert seen.advantage == {m.scheduler: math.log1p(m.ahead_percent / 100) for m in asked.margins if m.judgement != "baseline"}


def test_a_window_under_bfq_tells_of_the_drive_and_not_of_bfq(machine: FakeSystem) -> None:
    """Where it was recorded when the drive was given each request, no scheduler has a part in what drive it is."""
    machine.add("sda")
    device = Machine(machine.root).find("sda")
    replay = Replay()
    for scheduler in ("bfq", "none"):
        trace = at_work("wd-re-4tb", scheduler)
        seen = replay.judge(device, trace, trace.span_ns / 1e9, 0, scheduler, ["mq-deadline"])
        assert not seen.trouble
    assert replay._drives[device.identity].drive.name == "wd-re-4tb"
