# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Chunk reads (Seelam et al., OLS 2005): find over a source tree, a new process for each file; beside them an endless reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwaiter.generated.files import PAGE_BYTES, File, FileSystem
from headwaiter.generated.model_machine import MS, US, ModelMachine, Process, Program
from headwaiter.generated.parameters import Common, number

KIB, MIB = 1 << 10, 1 << 20
INODES_A_BLOCK = 32
"""An inode has 128 bytes: the default of mke2fs until 2008."""


@dataclass(frozen=True)
class Chunks(Common):
    """Chains of processes, each of which reads one file and exits; and a process that reads one large file."""

    instances: int = number(1, 16)
    """Number of `find` processes, each on a tree of its own."""
    files: int = number(1, 100_000)
    folder_files: int = number(1, 10_000)
    beside: int = number(1, 1000)
    """So many folders lie in one group of blocks: those of one folder of the topmost level."""
    file_kib: float = number(1, 1024)
    """Median; lognormal with sigma 1."""
    start_ms: float = number(0, 1000)
    """Until a new process asks for its file: fork, exec, and what it is linked with, all of it in memory."""
    stream_mib: int = number(0, 1 << 20)
    """Size of the large file; 0: there is none."""
    block_us: float = number(0, 1000)
    """Processor time for each page of the large file."""


def chunks(p: Chunks, machine: ModelMachine, files: FileSystem) -> None:
    """A tree lies folder by folder, as tar unpacks it; find looks up each file, and cat reads it."""
    rng = machine.rng
    files.inodes_a_block = INODES_A_BLOCK

    def tree() -> list[File]:
        out: list[File] = []
        folder = None
        for k, size in enumerate(rng.lognormal(0, 1, p.files) * p.file_kib * KIB):
            if k % p.folder_files == 0:
                folder = files.folder(beside=folder if k % (p.folder_files * p.beside) else None)
            assert folder
            out.append(folder.file(float(size)))
        return out

    def cat(file: File) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            me.think(p.start_ms * MS)
            yield from me.read_all(file)

        return program

    def find(mine: list[File]) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            for file in mine:
                yield from me.look_up(file.about)
                yield from me.run("cat", cat(file))

        return program

    def stream(file: File) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            for page in range(0, file.pages, 64 * KIB // PAGE_BYTES):
                yield from me.read(file, page, 64 * KIB // PAGE_BYTES)
                me.think(p.block_us * 64 * KIB // PAGE_BYTES * US)

        return program

    for i in range(p.instances):
        machine.start(f"find-{i}", find(tree()))
    if p.stream_mib:
        machine.start("stream", stream(files.folder().file(p.stream_mib * MIB)))
