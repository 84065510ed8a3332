# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""KVA and Bonnie++: one large file, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwaiter.generated.files import PAGE_BYTES, FileSystem
from headwaiter.generated.model_machine import MS, US, ModelMachine, Process, Program
from headwaiter.generated.parameters import Common, number

MIB = 1 << 20


@dataclass(frozen=True)
class Kva(Common):
    """Two processes that each read a half of a file, a page every so many KiB, and now and then are late."""

    file_mib: int = number(1, 4096)
    stride_kib: int = number(4, 4096)
    passes: int = number(1, 32)
    late_one_in: int = number(1, 1000)
    late_ms: float = number(0, 1000)
    later_ms: float = number(0, 1000)
    """The mean of the exponentially distributed time beyond late_ms."""


def kva(p: Kva, machine: ModelMachine, files: FileSystem) -> None:
    """The file is made and written back; nothing of it is in memory when it is read."""
    file = files.folder().file(p.file_mib * MIB)
    area, stride = file.pages // 2, p.stride_kib * 1024 // PAGE_BYTES

    def reader(begin: int) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            reads = 0
            for offset in range(p.passes):
                for page in range(begin, begin + area, stride):
                    reads += 1
                    if reads % p.late_one_in == 0:
                        me.sleep((p.late_ms + machine.rng.exponential(p.later_ms)) * MS)
                    yield from me.read(file, min(page + offset % stride, file.pages - 1))

        return program

    def main(me: Process) -> Program:
        yield from me.write_all(file)
        yield from me.sync()
        me.forget(file)
        readers = [me.start(f"reader-{i}", reader(i * area)) for i in range(2)]
        for one in readers:
            yield from me.wait(one)

    machine.start("kva", main)


@dataclass(frozen=True)
class Bonnie(Common):
    """Bonnie++: a file written, rewritten and read, by bytes and by blocks, and at last at random by several processes."""

    file_mib: int = number(1, 4096)
    byte_us: float = number(0, 1000)
    """Processor time of a page that is written or read byte by byte."""
    block_us: float = number(0, 1000)
    """And in blocks of 8 KiB."""
    seekers: int = number(0, 64)
    """Processes that read blocks at random, of which there are `seeks` in all."""
    seeks: int = number(0, 1_000_000)
    update_one_in: int = number(1, 1000)
    """One in so many of the blocks that are read at random is written, too."""


def bonnie(p: Bonnie, machine: ModelMachine, files: FileSystem) -> None:
    """The file is twice as large as memory: nothing of it is left from one phase to the next."""
    file = files.folder().file(p.file_mib * MIB)
    block = 2

    def seeker(number: int) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            for seek in range(number, p.seeks, p.seekers):
                page = int(machine.rng.integers(file.pages // block)) * block
                yield from me.read(file, page, block)
                me.think(p.block_us * block * US)
                if seek % p.update_one_in == 0:
                    yield from me.write(file, page, block)

        return program

    def main(me: Process) -> Program:
        for page_us, reads, writes in (
            (p.byte_us, False, True),
            (p.block_us, False, True),
            (p.block_us, True, True),
            (p.byte_us, True, False),
            (p.block_us, True, False),
        ):
            for page in range(0, file.pages, block):
                if reads:
                    yield from me.read(file, page, block)
                me.think(page_us * block * US)
                if writes:
                    yield from me.write(file, page, block)
            yield from me.sync()
            me.forget(file)
        seekers = [me.start(f"seeker-{i}", seeker(i)) for i in range(p.seekers)]
        for one in seekers:
            yield from me.wait(one)

    machine.start("bonnie++", main)
