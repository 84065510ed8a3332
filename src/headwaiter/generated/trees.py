# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Andrew's benchmark and a kernel's compilation: source trees, and short-lived processes that work on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwaiter.generated.files import File, FileSystem
from headwaiter.generated.model_machine import MS, ModelMachine, Process, Program
from headwaiter.generated.parameters import Common, number

KIB = 1 << 10


@dataclass(frozen=True)
class Andrew(Common):
    """Processes that run the Andrew benchmark, again and again: make folders, copy a tree, look at it, search it, build some."""

    processes: int = number(1, 64)
    runs: int = number(1, 1000)
    files: int = number(1, 1000)
    file_kib: float = number(1, 1024)
    """Median; lognormal with sigma 1."""
    folders: int = number(1, 100)
    compiles: int = number(0, 1000)
    file_ms: float = number(0, 1000)
    """Processor time after each file that is copied: the median of a lognormal distribution."""
    file_sigma: float = number(0, 3)
    compile_ms: float = number(0, 10_000)


def andrew(p: Andrew, machine: ModelMachine, files: FileSystem) -> None:
    """Each run copies a tree of its own that nobody has read yet; what it has copied it finds in memory."""
    rng = machine.rng

    def tree(make: Callable[[int], File]) -> list[File]:
        return [make(k) for k in range(p.files)]

    def benchmark(me: Process) -> Program:
        folders = [files.folder() for _ in range(p.folders)]
        sizes = rng.lognormal(0, 1, p.files) * p.file_kib * KIB
        source = tree(lambda k: folders[k * p.folders // p.files].file(float(sizes[k])))
        mine = [files.folder() for _ in range(p.folders)]
        copies = tree(lambda k: mine[k * p.folders // p.files].new_file(float(sizes[k])))

        def make_folders(me: Process) -> Program:
            me.think(p.folders * 0.1 * MS)
            yield None

        def copy(me: Process) -> Program:
            for one, other in zip(source, copies, strict=True):
                yield from me.look_up(one.about)
                yield from me.read_all(one)
                yield from me.write_all(other)
                me.think(rng.lognormal(0, p.file_sigma) * p.file_ms * MS)

        def search(me: Process) -> Program:
            for one in copies:
                yield from me.look_up(one.about)
                yield from me.read_all(one)
                me.think(0.1 * MS)

        yield from me.run("mkdir", make_folders)
        yield from me.run("cp", copy)
        yield from me.run("find", search)
        yield from me.run("grep", search)
        for k in range(p.compiles):

            def compile_one(me: Process, k: int = k) -> Program:
                yield from me.read_all(copies[k % p.files])
                me.think(rng.lognormal(0, 0.5) * p.compile_ms * MS)
                yield from me.write_all(mine[0].new_file(p.file_kib * KIB))

            yield from me.run("cc", compile_one)

    def client(me: Process) -> Program:
        for _ in range(p.runs):
            yield from me.run("andrew", benchmark)

    for i in range(p.processes):
        machine.start(f"client-{i}", client)


@dataclass(frozen=True)
class Build(Common):
    """make -j: each source is compiled by processes of its own, which read it and its headers."""

    jobs: int = number(1, 64)
    sources: int = number(1, 100_000)
    headers: int = number(1, 100_000)
    headers_each: int = number(0, 1000)
    source_kib: float = number(1, 1024)
    header_kib: float = number(1, 1024)
    """Medians; lognormal with sigma 1."""
    header_ms: float = number(0, 1000)
    """Processor time after each header: the median of a lognormal distribution."""
    header_sigma: float = number(0, 3)
    compile_ms: float = number(0, 100_000)
    """After the last of them: the median, sigma 0.7."""


def build(p: Build, machine: ModelMachine, files: FileSystem) -> None:
    """Which headers a source includes is drawn; some are included by nearly all, most by few."""
    rng = machine.rng

    def tree(count: int, kib: float) -> list[File]:
        out: list[File] = []
        for k, size in enumerate(rng.lognormal(0, 1, count) * kib * KIB):
            if k % 40 == 0:
                folder = files.folder()
            out.append(folder.file(float(size)))
        return out

    headers, sources = tree(p.headers, p.header_kib), tree(p.sources, p.source_kib)
    objects = files.folder()
    left = iter(sources)

    def compiler(source: File) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            yield from me.look_up(source.about)
            yield from me.read_all(source)
            for k in (rng.uniform(0, 1, p.headers_each) ** 3 * p.headers).astype(int).tolist():
                yield from me.look_up(headers[k].about)
                yield from me.read_all(headers[k])
                me.think(rng.lognormal(0, p.header_sigma) * p.header_ms * MS)
            me.think(rng.lognormal(0, 0.7) * p.compile_ms * MS)

        return program

    def assembler(me: Process) -> Program:
        yield from me.write_all(objects.new_file(p.source_kib * KIB * 2))

    def driver(source: File) -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            yield from me.run("cc1", compiler(source))
            yield from me.run("as", assembler)

        return program

    def job(me: Process) -> Program:
        for source in left:
            me.think(2 * MS)
            yield from me.run("gcc", driver(source))

    def make(me: Process) -> Program:
        jobs = [me.start("make", job) for _ in range(p.jobs)]
        for one in jobs:
            yield from me.wait(one)

    machine.start("make", make)
