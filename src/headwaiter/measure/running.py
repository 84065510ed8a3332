# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fio on disks of this machine, whose settings are restored afterwards."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from headwaiter.base.errors import Problem, shown
from headwaiter.queue.apply import apply, revert
from headwaiter.queue.devices import Device
from headwaiter.queue.settings import opened
from headwaiter.queue.state import State

T = TypeVar("T")


@contextmanager
def restored(legs: Sequence[Device], state: State, by: str) -> Iterator[None]:
    """Whatever the block changes, the settings of these disks are then as before; should it be killed, `revert` restores them."""
    known = [state.of(leg) for leg in legs]
    entry = []
    for leg in legs:
        with opened(leg) as queue:
            entry.append(queue.read())
    try:
        yield
    finally:
        troubles = []
        for leg, was, before in zip(legs, known, entry, strict=True):
            if was is None and state.of(leg):
                troubles.append(revert(leg, state)[1].trouble)
            elif was is not None:
                apply([leg], before.beside(was.before), state, by)
        if any(troubles):
            raise Problem("; ".join(filter(None, troubles)))


def fio_there() -> str:
    """Return the path of fio. Problem if it is not installed."""
    fio = shutil.which("fio")
    if fio is None:
        raise Problem("measuring a disk needs fio (Debian: apt-get install fio)")
    return fio


def fio_rate(fio: str, job: str) -> float:
    """MB/s of a job file's processes together, which only read, all for the same time."""

    def rate(jobs: Sequence[Mapping[str, Any]]) -> float:
        return float(sum(one[way]["bw_bytes"] for one in jobs for way in ("read", "write") if way in one)) / 1e6

    return fio_told(fio, job, rate)


def fio_told(fio: str, job: str, what: Callable[[Sequence[Mapping[str, Any]]], T], folder: Path | None = None) -> T:
    """Return what a function makes of fio's account of a job file's jobs. Files are in `folder`; without one it only reads."""
    command = [fio, *([] if folder else ["--readonly"]), "--output-format=json", "-"]
    done = subprocess.run(command, input=job, capture_output=True, text=True, check=False, cwd=folder)
    try:
        if done.returncode:
            raise ValueError
        return what(json.loads(done.stdout[done.stdout.index("{") :])["jobs"])
    except (ValueError, KeyError, TypeError):
        raise Problem(f"fio: {shown((done.stderr or done.stdout).strip() or 'no result', 200)}") from None
