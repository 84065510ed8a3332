# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A recording as advice takes it: read, with the drive that it is judged on, and what it tells beside requests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from headwaiter.advice.advice import recorded_settings, scheduler_of
from headwaiter.advice.little import TooLittleError
from headwaiter.base.errors import Problem
from headwaiter.drives import bundled
from headwaiter.engine.sim import Drive
from headwaiter.study.drive_fit import AUTO, FEWEST, completions, read_on_drive
from headwaiter.study.workload import Reading, Workload, read_recording
from headwaiter.traces import Source, recording
from headwaiter.traces.recording import Recording

Told = Callable[[str, int | None], AbstractContextManager[Callable[[str, int], None] | None]]


def _untold(_: str, __: int | None) -> AbstractContextManager[Callable[[str, int], None] | None]:
    return nullcontext(None)


def read_recorded(
    path: Path,
    drive: str,
    how: Reading,
    anyway: bool = False,
    reading: AbstractContextManager[object] | None = None,
    told: Told = _untold,
) -> tuple[Workload, Drive, Recording | None]:
    """The recording in a file, the drive of that name, or of `auto` the one that explains it best, and what its archive tells.

    reading: what is shown while it is read; told(what is done, how many drives): while a drive is chosen. Problem if it is no
    recording; TooLittleError if it is too short for a drive to be chosen.
    """
    source = Source(path)
    with reading or nullcontext():
        recorded = None if path.is_dir() else recording.of(source)
        trace = read_recording(path, how, source)
    if trace is None:
        raise Problem(f"{path}: advice needs a recording (headwaiter compare takes job files, too)")
    auto = drive == AUTO
    if auto and not anyway and completions(trace) < FEWEST and (recorded or completions(trace)):
        seconds = recorded.seconds if recorded else None
        raise TooLittleError(path.name, trace, recorded, trace.recorded[1] / 1e9 if seconds is None else seconds)
    doing, drives = ("choosing a drive", len(bundled())) if auto else ("making the replay", None)
    with told(doing, drives) as update:
        work, device = read_on_drive(trace, drive, how, scheduler_of(recorded_settings(recorded)), update)
    return work, device, recorded
