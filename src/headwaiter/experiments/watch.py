# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `watch`: packs headwaiter for the guest, and judges what `watch` did in each phase."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.lab import python
from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.script import Script, guest

_IMPORTS = """
from types import SimpleNamespace

import numpy.random

import headwaiter.__main__
from headwaiter.cli import watch
from headwaiter.watch.sample import ReplayMethod as Replay
from headwaiter.base.paths import WORKLOADS
from headwaiter.traces import load

# Some modules are imported only when they are used.
example = load(WORKLOADS / "example.blktrace.xz")
Replay().judge(SimpleNamespace(name="sda", identity=""), example, 1.0, 0, "mq-deadline", ["bfq"])
"""
_HANG_S = 3600
"""Wall time: the guest says nothing during a phase."""
_LIMIT_S = 7200
_DECISION = re.compile(r"^\S+ \w+ (changed|undone) ([\w-]+): ")


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Boot, and add rows: of each phase what `watch` chose, and of the whole what that gave."""
    machine = guest(script, on, given, say)
    python.pack(machine, _IMPORTS, simulates=True)
    machine.hang_s, machine.limit_s = _HANG_S, _LIMIT_S
    outcome = boot(machine, say)
    files = dict(outcome.files)
    rows = [json.loads(line) for line in files.get("results", b"").splitlines()]
    log = files.get("watch.log", b"").decode("utf-8", "replace")
    made = [row for row in rows if row["what"] != "watch"] + judged(rows, log)
    files["results"] = b"".join(json.dumps(row).encode() + b"\n" for row in made)
    return GuestOutcome(files, outcome.console)


def judged(rows: Sequence[Mapping[str, Any]], log: str) -> list[dict[str, Any]]:
    """A row for each phase, and one for all: beside the best scheduler alone.

    `scheduler` is what was in force at the end of a phase, `of_best` what that one reads alone as a share of what the best reads;
    of all phases the geometric mean of what was read, as a share of that of the best single scheduler.
    """
    alone: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["what"] == "alone":
            alone.setdefault(row["scheduler"], {})[row["load"]] = row["read_mbps"]
    if not alone:
        raise Problem("the guest has measured no scheduler alone")
    watched, ended = [row for row in rows if row["what"] == "watch"], _phases(log)
    if len(watched) != len(ended):
        raise Problem(f"watch.log tells of {len(ended)} of {len(watched)} phases")
    found = []
    for row, (chosen, switches) in zip(watched, ended, strict=True):
        best = max(alone.values(), key=lambda rates: rates[row["load"]])[row["load"]]
        found.append({**row, "scheduler": chosen, "of_best": round(alone[chosen][row["load"]] / best, 3), "switches": switches})
    name, best = max(((name, _mean(rates.values())) for name, rates in alone.items()), key=lambda pair: pair[1])
    mean = _mean(row["read_mbps"] for row in found)
    seconds = sum(row["seconds"] for row in found)
    switches = sum(row["switches"] for row in found)
    whole = {"what": "whole", "scheduler": name, "seconds": seconds, "read_mbps": round(mean, 3)}
    return [*found, {**whole, "of_best": round(mean / best, 3), "switches": switches}]


def _mean(rates: Iterable[float]) -> float:
    values = list(rates)
    return statistics.geometric_mean(values) if min(values) > 0 else 0.0


def _phases(log: str) -> list[tuple[str, int]]:
    """Return for each phase the scheduler at its end, and how often it was changed."""
    found, switches = [], 0
    for line in log.splitlines():
        if line.startswith("phase "):
            switches = 0
        elif line.startswith("end "):
            found.append((line.removeprefix("end "), switches))
        switches += _DECISION.match(line) is not None
    return found
