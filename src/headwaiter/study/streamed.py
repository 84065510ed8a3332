# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A trace that memory does not hold, replayed from disk: open, under one scheduler, with figures of fixed size."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headwaiter.base.errors import DoesNotFitError, Problem, plain
from headwaiter.base.reading import is_folder
from headwaiter.engine.sim import Drive, Options, Pieces, simulate
from headwaiter.study.drive_fit import drive_for
from headwaiter.study.results import coarse_note, processor_time, summarise
from headwaiter.study.schema import RunDocument
from headwaiter.study.variants import Variant
from headwaiter.study.workload import OPEN, Reading
from headwaiter.traces import Trace
from headwaiter.traces.excerpt import is_large
from headwaiter.traces.pieces import PiecesIndex, index, placed


@dataclass(frozen=True)
class Streamed:
    """A trace on disk, on a drive. head: its first requests, in memory."""

    name: str
    index: PiecesIndex
    head: Trace
    drive: Drive
    load: Pieces
    notes: tuple[str, ...]


def streams_itself(path: Path, reading: Reading) -> bool:
    """Return whether a file is so large, and replayed so, that it is better read from disk."""
    return reading.replay == OPEN and is_large(path)


def open_streamed(
    path: Path, drive: str | Drive | None, reading: Reading, progress: Callable[[int], None] | None = None
) -> Streamed:
    """A trace, read once, and the drive: the one that is given, or that the first requests tell. progress: rows read so far.

    Raises Problem if something in `reading` needs the whole trace in memory, and if the trace is not sound or fits not the drive.
    """
    if reading.replay not in (None, OPEN):
        raise Problem("--stream replays timestamps: a closed replay needs the whole recording in memory (see docs/traces.md)")
    if reading.streams:
        raise Problem("--stream keeps no row of a request: --streams is not for it")
    if is_folder(path) or not path.is_file():
        raise Problem(f"{path}: --stream needs a file, which is read twice")
    found = index(path, progress, reading.device)
    head = found.first()
    device, notes = drive_for(drive, head, path.name)
    if found.end > device.sectors:
        raise DoesNotFitError(
            f"{placed(path, found.end_line)}: the request ends at sector {found.end}, past the end of {device.name}, which has"
            f" {device.sectors} sectors"
        )
    load = found.load(reading.speed)
    known = {task.id for task in load.tasks}
    for task, share in reading.shares:
        if task not in known:
            raise Problem(f"--share {task}={share}: the workload has no task {task}")
    shares = dict(reading.shares)
    load = dataclasses.replace(load, tasks=tuple(dataclasses.replace(t, share=shares.get(t.id, t.share)) for t in load.tasks))
    told = ["replayed from disk, open, at its timestamps"]
    if reading.speed != 1:
        told.append(f"timestamps were divided by {reading.speed:g}")
    return Streamed(plain(path.name), found, head, device, load, (*found.notes, *told, *notes))


def run_streamed(
    streamed: Streamed,
    variant: Variant,
    options: Options,
    *,
    seed: int,
    log: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> RunDocument:
    """Run a scheduler on it; log and progress as in simulate()."""
    options = dataclasses.replace(options, record=False)
    outcome = simulate(variant.scheduler, streamed.drive, streamed.load, variant.settings, options, log, progress)
    name = variant.name if variant.name != variant.scheduler else None
    result = dataclasses.replace(summarise(outcome, True), variant=name)
    return RunDocument(
        workload=streamed.name,
        workload_sha256=streamed.index.sha256,
        drive=streamed.drive.name,
        seed=seed,
        replay=OPEN,
        processor=processor_time(options),
        notes=[*streamed.notes, *coarse_note([result], options.exact)],
        results=[result],
    )
