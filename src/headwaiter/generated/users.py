# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Multi-User, DB and Scientific: processes that read and write data of their own, and compute in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwaiter.generated.files import PAGE_BYTES, File, FileSystem
from headwaiter.generated.model_machine import MS, ModelMachine, Process, Program
from headwaiter.generated.parameters import Common, number

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class MultiUser(Common):
    """Processes with a workspace each: reads and writes at random places of random files."""

    processes: int = number(1, 64)
    requests: int = number(1, 100_000)
    read_percent: int = number(0, 100)
    read_kib: int = number(4, 1024)
    write_kib: int = number(4, 1024)
    small_files: int = number(1, 10_000)
    large_files: int = number(0, 5000)
    known_percent: int = number(0, 100)
    """Files whose inode and folder are in memory from the start."""
    delay_ms: float = number(0, 1000)
    """After each request: uniform, up to so much."""


def multi_user(p: MultiUser, machine: ModelMachine, files: FileSystem) -> None:
    """Small files have 128 to 256 KiB, large ones up to 384, a hundred in a folder."""
    rng = machine.rng

    def user(workspace: list[File]) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            for _ in range(p.requests):
                file = workspace[rng.integers(len(workspace))]
                yield from me.look_up(file.about)
                reads = rng.integers(100) < p.read_percent
                pages = max(1, (p.read_kib if reads else p.write_kib) * KIB // PAGE_BYTES)
                page = int(rng.integers(max(1, file.pages - pages + 1)))
                if reads:
                    yield from me.read(file, page, pages)
                else:
                    yield from me.write(file, page, pages)
                me.sleep(rng.uniform(0, p.delay_ms) * MS)

        return program

    for i in range(p.processes):
        sizes = [*rng.uniform(128, 256, p.small_files), *rng.uniform(256, 384, p.large_files)]
        rng.shuffle(sizes)
        workspace: list[File] = []
        for k, size in enumerate(sizes):
            if k % 100 == 0:
                folder = files.folder()
            workspace.append(folder.file(size * KIB))
            if rng.integers(100) < p.known_percent:
                workspace[-1].know()
        machine.start(f"user-{i}", user(workspace))


@dataclass(frozen=True)
class Database(Common):
    """Processes that each read a part of a data file, records at random places, and write a log of their own and a common one."""

    processes: int = number(1, 64)
    data_mib: int = number(1, 4096)
    record_kib: int = number(4, 1024)
    log_mib: int = number(1, 1024)
    common_log_mib: int = number(1, 1024)
    think_ms: float = number(0, 1000)
    """Before each write of a log, and each record: the median of a lognormal distribution."""
    think_sigma: float = number(0, 3)


def database(p: Database, machine: ModelMachine, files: FileSystem) -> None:
    """Each record is read once; the logs are full when the last has been."""
    rng = machine.rng
    data = files.folder().file(p.data_mib * MIB)
    common = files.folder().new_file(p.common_log_mib * MIB)
    pages = max(1, p.record_kib * KIB // PAGE_BYTES)
    records = rng.permutation(data.pages // pages)
    written = 0

    def client(mine: list[int], log: File) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            nonlocal written
            at = 0
            for k, record in enumerate(mine):
                yield from me.read(data, record * pages, pages)
                me.think(rng.lognormal(0, p.think_sigma) * p.think_ms / 2 * MS)
                until = (k + 1) * log.pages // len(mine)
                yield from me.write(log, at, until - at)
                at = until
                share = common.pages // max(1, len(records))
                yield from me.write(common, written, share)
                written += share
                me.think(rng.lognormal(0, p.think_sigma) * p.think_ms / 2 * MS)

        return program

    for i in range(p.processes):
        log = files.folder().new_file(p.log_mib * MIB)
        machine.start(f"client-{i}", client(records[i :: p.processes].tolist(), log))


@dataclass(frozen=True)
class Scientific(Common):
    """Processes that go through large files in chunks, reading and writing, and compute after each."""

    processes: int = number(1, 64)
    operations: int = number(1, 100_000)
    file_percent: int = number(20, 200)
    """File sizes, in percent of the paper's."""
    read_percent: int = number(0, 100)
    large_kib: int = number(4, 4096)
    small_kib: int = number(4, 4096)
    burst_ms: float = number(0, 1000)
    """Processor time after each chunk: the median of a lognormal distribution."""
    burst_sigma: float = number(0, 3)


SCIENTIFIC_MIB = (500, *[100] * 3, *[10] * 10)


def scientific(p: Scientific, machine: ModelMachine, files: FileSystem) -> None:
    """A process draws a file, goes through sixteen chunks of it from a place that is drawn, and takes the next."""
    rng = machine.rng
    all_files = [files.folder().file(mib * MIB * p.file_percent / 100) for mib in SCIENTIFIC_MIB]
    in_a_row = 16

    def program(me: Process) -> Program:
        for k in range(p.operations):
            if k % in_a_row == 0:
                file = all_files[rng.integers(len(all_files))]
                pages = max(1, (p.large_kib if rng.integers(2) else p.small_kib) * KIB // PAGE_BYTES)
                page = int(rng.integers(max(1, file.pages - pages * in_a_row)))
            if rng.integers(100) < p.read_percent:
                yield from me.read(file, page, pages)
            else:
                yield from me.write(file, page, pages)
            page = (page + pages) % max(1, file.pages - pages)
            me.think(rng.lognormal(0, p.burst_sigma) * p.burst_ms * MS)

    for i in range(p.processes):
        machine.start(f"solver-{i}", program)
