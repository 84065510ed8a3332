# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput by operation, file size and record length, as iozone measures it: of a drive model, or by fio in a folder of a disk.

The table of the study of today's schedulers (CS350, 2023). A job file says what is done, so that both do the same. iozone
measures one process through the page cache; here several work at once, each on files of its own, and past the cache unless told.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median_low
from tempfile import mkdtemp
from typing import Any

from headwaiter.advice.advice import Target
from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem, shown
from headwaiter.engine.sim import Drive, Options
from headwaiter.fio import load_jobs
from headwaiter.judge.conditions import RunConditions
from headwaiter.measure.running import fio_there, fio_told, restored
from headwaiter.papers.cells import OPERATIONS, Cell
from headwaiter.papers.rank import EVEN, RankedPoint
from headwaiter.papers.schema import CellRow, CellWinner, TableDocument
from headwaiter.queue import devices
from headwaiter.queue.apply import apply
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Settings
from headwaiter.queue.state import State
from headwaiter.study.schema import TaskRow
from headwaiter.study.trial import measure
from headwaiter.study.variants import Variant

LEAST_KIB = 4096
"""So much a process reads or writes at least, in as many files as that takes: a small one is over before it can be timed."""
MEASURED = "measured"
"""Name of the job that counts."""
BY = "headwaiter table"
_WAYS = {
    "write": "write",
    "rewrite": "write",
    "read": "read",
    "reread": "read",
    "random read": "randread",
    "random write": "randwrite",
}
_AGAIN = ("rewrite", "reread")


@dataclass(frozen=True)
class Work:
    """The way in which each cell is measured: by so many processes, for so many seconds at most.

    buffered: through the page cache.
    """

    processes: int = 4
    seconds: float = 3.0
    buffered: bool = False

    def files(self, cell: Cell) -> int:
        """Files of each process."""
        return max(1, LEAST_KIB // cell.file_kib)

    def kib(self, cell: Cell) -> int:
        """Return what all processes read or write of a cell, and so what they need of a file system."""
        return self.processes * self.files(cell) * cell.file_kib

    def job(self, cell: Cell) -> str:
        """Return the job file for fio in an empty folder. A job that does not count does first what is to be done again."""
        files = self.files(cell)
        head = ["[global]", "ioengine=psync", f"bs={cell.record_kib}k", f"rw={_WAYS[cell.operation]}"]
        head += [f"size={files * cell.file_kib}k", f"nrfiles={files}", f"numjobs={self.processes}"]
        head += ["filename_format=$jobnum.$filenum", "file_service_type=sequential", "fallocate=none"]
        head += [f"direct={int(not self.buffered)}"]
        if self.buffered and "write" in cell.operation:
            head += ["end_fsync=1"]
        before, limit = list[str](), [f"runtime={round(1000 * self.seconds)}ms"]
        if cell.operation in _AGAIN:
            before, limit = ["[before]"], [*limit, "stonewall", "invalidate=0"]
        return "\n".join([*head, *before, f"[{MEASURED}]", *limit]) + "\n"


@dataclass(frozen=True)
class MeasuredCell:
    """The throughput of a scheduler, by its name in the kernel, in a cell; low and high: of several runs."""

    cell: Cell
    point: RankedPoint


def cells(files_kib: Sequence[int], records_kib: Sequence[int]) -> list[Cell]:
    """Return the cells of all operations; no record is longer than its file. Problem if there is none."""
    found = [Cell(op, size, record) for op in OPERATIONS for size in files_kib for record in records_kib if size % record == 0]
    if not found:
        raise Problem("--files and --records: no file is a multiple of any record")
    return found


def of_drive(
    drive: Drive,
    schedulers: Sequence[Variant],
    wanted: Sequence[Cell],
    work: Work,
    conditions: RunConditions,
    runs: int,
    progress: Callable[[str, int], None] | None = None,
) -> list[MeasuredCell]:
    """In the simulator, as the judge runs them; low and high are of `runs` more runs with small changes of the load."""

    def one(what: tuple[Cell, tuple[Variant, Options]]) -> MeasuredCell:
        cell, (variant, options) = what
        jobs = load_jobs(Path("table.fio"), drive.sectors, work.job(cell).encode())
        tick = (lambda done: progress(f"{variant.name} {cell.operation}", done)) if progress else None
        results = measure(variant, drive, jobs, options, runs, tick).runs[: 1 + runs]
        rates = [_simulated_rate([task for task in r.tasks or () if task.name.startswith(MEASURED)]) for r in results]
        return MeasuredCell(cell, RankedPoint(variant.name, cell.record_kib << 10, median_low(rates), min(rates), max(rates)))

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(one, [(cell, each) for cell in wanted for each in conditions.runs(schedulers, drive)]))


def _simulated_rate(rows: Sequence[TaskRow]) -> float:
    """MB/s of processes that begin at once, until the last of them ends: who is served first ends early, and does no more."""
    return sum(row.bytes for row in rows) / 1e6 / max(row.elapsed_s for row in rows)


def _told_rate(jobs: Sequence[Mapping[str, Any]]) -> float:
    """Return the rate by fio's account, whose run times are in ms."""
    ways = [one[way] for one in jobs if one["jobname"] == MEASURED for way in ("read", "write") if one[way]["io_bytes"]]
    return float(sum(way["io_bytes"] for way in ways) / 1e3 / max(1, *(way["runtime"] for way in ways)))


def check_folder(machine: Machine, target: Target, folder: Path, wanted: Sequence[Cell], work: Work) -> None:
    """Problem if the folder is not on that disk, or has no room for what is measured."""
    disk = on_disk(folder, machine)
    if disk.identity != target.device.identity and set(machine.legs(disk)) != set(target.legs):
        raise Problem(f"{folder}: is on {disk.name}, not on {target.device.name}")
    need, free = max(work.kib(cell) for cell in wanted) << 10, shutil.disk_usage(folder).free
    if free < need + need // 8:
        raise Problem(f"{folder}: the files need {need >> 20} MiB, and {free >> 20} MiB are free")


def of_folder(
    target: Target,
    state: State,
    folder: Path,
    schedulers: Sequence[str],
    wanted: Sequence[Cell],
    work: Work,
    runs: int,
) -> list[MeasuredCell]:
    """Measure by fio on files that are made in a folder and removed; schedulers are changed, and restored at the end.

    Problem if fio is missing or fails.
    """
    fio = fio_there()
    found = []
    with restored(target.legs, state, BY):
        for scheduler in schedulers:
            apply(target.legs, Settings(scheduler), state, BY)
            for cell in wanted:
                rates = []
                for _ in range(runs):
                    with _emptied(folder) as place:
                        rates.append(fio_told(fio, work.job(cell), _told_rate, place))
                found.append(
                    MeasuredCell(cell, RankedPoint(scheduler, cell.record_kib << 10, median_low(rates), min(rates), max(rates)))
                )
    return found


@contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """A folder in it, for files that are gone when the block is left, or the process ends."""
    try:
        place = mkdtemp(prefix="headwaiter-", dir=folder)
    except OSError as e:
        raise Problem(f"{folder}: {e.strerror}") from None
    with tidied(partial(shutil.rmtree, place, ignore_errors=True)):
        yield Path(place)


def on_disk(folder: Path, machine: Machine) -> devices.Device:
    """The disk whose file system has a folder. Problem if it is on none."""
    try:
        number = folder.stat().st_dev
        if not folder.is_dir():
            raise Problem(f"{folder}: not a folder")
    except OSError as e:
        raise Problem(f"{folder}: {e.strerror}") from None
    link = machine.sysfs / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    if not link.exists():
        raise Problem(f"{folder}: is on no disk that can be told (network, memory, or several disks at once)")
    return machine.find(link.resolve().name)


def cell_winners(measured: Sequence[MeasuredCell]) -> list[CellWinner]:
    """For each cell the best, and how far it is ahead of the next."""
    out = []
    for cell in dict.fromkeys(one.cell for one in measured):
        best, *rest = sorted((one.point for one in measured if one.cell == cell), key=lambda p: -p.mbps)
        ahead = best.mbps / rest[0].mbps - 1 if rest and rest[0].mbps else 0.0
        out.append(
            CellWinner(
                operation=cell.operation,
                file_bytes=cell.file_kib << 10,
                record_bytes=cell.record_kib << 10,
                scheduler=best.scheduler,
                ahead_percent=100 * ahead,
                even=[p.scheduler for p in rest if p.mbps >= best.mbps * (1 - EVEN)],
            )
        )
    return out


def table_document(subject: str, work: Work, measured: Sequence[MeasuredCell], notes: Sequence[str]) -> TableDocument:
    """Return what `headwaiter table --json` prints, and `watch --method table --ranking` reads."""
    rows = [
        CellRow(
            scheduler=one.point.scheduler,
            operation=one.cell.operation,
            file_bytes=one.cell.file_kib << 10,
            record_bytes=one.cell.record_kib << 10,
            throughput_mbps=one.point.mbps,
            low_mbps=one.point.low,
            high_mbps=one.point.high,
        )
        for one in measured
    ]
    return TableDocument(
        subject=shown(subject),
        processes=work.processes,
        buffered=work.buffered,
        results=rows,
        winners=cell_winners(measured),
        notes=notes,
    )
