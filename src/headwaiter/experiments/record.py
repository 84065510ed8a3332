# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `record`: packs the recorder for the guest, and compares what came back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwaiter.lab import python
from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.script import Script, guest
from headwaiter.traces import Trace, load, with_flushes

_IMPORTS = "from headwaiter.queue import devices; from headwaiter.recorder import record"
_HANG_S = 600
"""Wall time: the guest says nothing while fio runs, and every I/O is traced."""
RECORDERS = ("tracefs", "blktrace")


@dataclass(frozen=True)
class Compared:
    """Two recordings of one load; times in ns."""

    requests: int
    """Requests of the first recording."""
    flushes: int
    """Flushes of the drive's cache in the first recording."""
    same: bool
    """The other has the same requests and flushes of the same tasks, in the same order, and marks them alike."""
    time_ns: int
    """The greatest difference between their times of a request, counted from the first."""
    latency_ns: int
    """The greatest difference between their latencies of a request."""


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Boot, and add a row that compares the recordings of the two recorders."""
    machine = guest(script, on, given, say)
    python.pack(machine, _IMPORTS)
    machine.hang_s = _HANG_S
    outcome = boot(machine, say)
    files = dict(outcome.files)
    if all(f"same.{name}" in files for name in RECORDERS):
        found = compared(*(_trace(files, name) for name in RECORDERS))
        files["results"] = files.get("results", b"") + json.dumps({"what": "two recorders", **vars(found)}).encode() + b"\n"
    return GuestOutcome(files, outcome.console)


def compared(one: Trace, other: Trace) -> Compared:
    """Hold two recordings of one load against each other."""
    requests, flushes = len(one), len(one.flushes) if one.flushes else 0
    one, other = with_flushes(one), with_flushes(other)
    same = len(one) == len(other)
    names = ("sector", "sectors", "op", "flags")
    same = same and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
    same = same and [one.tasks[k].id for k in one.task] == [other.tasks[k].id for k in other.task]
    if not same:
        return Compared(requests, flushes, False, 0, 0)
    apart = (one.time_ns - one.time_ns[0]) - (other.time_ns - other.time_ns[0])
    known = (one.complete_ns >= 0) & (other.complete_ns >= 0)
    latency = ((one.complete_ns - one.time_ns) - (other.complete_ns - other.time_ns))[known]
    same = bool(((one.complete_ns >= 0) == (other.complete_ns >= 0)).all())
    return Compared(requests, flushes, same, int(np.abs(apart).max()), int(np.abs(latency).max(initial=0)))


def _trace(files: Mapping[str, bytes], name: str) -> Trace:
    with tempfile.TemporaryDirectory(prefix="headwaiter-") as folder:
        path = Path(folder) / f"{name}.hwr"
        path.write_bytes(files[f"same.{name}"])
        return load(path)
