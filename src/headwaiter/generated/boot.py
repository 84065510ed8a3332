# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Cold Boot: services and programs that start one after another, each from files of which little is in memory yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwaiter.generated.files import File, FileSystem
from headwaiter.generated.model_machine import MS, ModelMachine, Process, Program, S
from headwaiter.generated.parameters import Common, number

KIB = 1 << 10


@dataclass(frozen=True)
class ColdBoot(Common):
    """Services at boot, a desktop, and programs that somebody starts."""

    services: int = number(1, 200)
    at_once: int = number(1, 64)
    """Number of services that start at once."""
    desktop: int = number(0, 100)
    """Processes of the desktop, which start together."""
    documents: int = number(0, 100)
    windows: int = number(0, 100)
    libraries: int = number(1, 2000)
    library_kib: float = number(4, 100_000)
    """Median; lognormal with sigma 1."""
    touched_percent: int = number(1, 100)
    """The share of a program or library that its start reads, in pieces of 128 KiB."""
    settings: int = number(0, 1000)
    """Small files that a program reads when it starts, on average."""
    start_ms: float = number(0, 1000)
    """Processor time after each request of a program that starts: the median of a lognormal distribution."""
    start_sigma: float = number(0, 3)
    pause_s: float = number(0, 1000)
    """Between two programs that somebody starts."""


def cold_boot(p: ColdBoot, machine: ModelMachine, files: FileSystem) -> None:
    """A program is mapped, binary and libraries; then it reads settings, and one that stays reads more in the background."""
    rng = machine.rng
    lib, etc, share = files.folder(), files.folder(), files.folder()
    libraries = [lib.file(float(size)) for size in rng.lognormal(0, 1, p.libraries) * p.library_kib * KIB]
    around = 32

    def mapped(me: Process, file: File) -> Program:
        yield from me.look_up(file.about)
        yield from me.read(file, 0)
        pieces = range(0, file.pages, around)
        for piece in rng.permutation(pieces).tolist():
            if rng.integers(100) < p.touched_percent:
                yield from me.fault(file, min(piece + around // 2, file.pages - 1), around)
                me.think(rng.lognormal(0, p.start_sigma) * p.start_ms * MS)

    def settings(me: Process, small: list[File]) -> Program:
        for file in small:
            yield from me.look_up(file.about)
            yield from me.read_all(file)
            me.think(rng.lognormal(0, p.start_sigma) * p.start_ms * MS)

    def program(binary: File, linked: list[File], small: list[File], stays: bool) -> Callable[[Process], Program]:
        def background(me: Process) -> Program:
            yield from settings(me, small[len(small) // 2 :])

        def main(me: Process) -> Program:
            yield from mapped(me, binary)
            for one in linked:
                yield from mapped(me, one)
            yield from settings(me, small[: len(small) // 2] if stays else small)
            if stays:
                me.start("daemon", background)

        return main

    def new(size_kib: float, linked: float, small: int, stays: bool = False) -> Callable[[Process], Program]:
        """A program that is linked with so many libraries, of which few are the same for all."""
        binary = files.folder().file(float(rng.lognormal(0, 1)) * size_kib * KIB)
        which = (rng.uniform(0, 1, max(1, int(rng.poisson(linked)))) ** 2 * p.libraries).astype(int)
        folder = etc if stays else share
        own = [folder.file(float(size)) for size in rng.lognormal(0, 1, int(rng.poisson(small))) * 4 * KIB]
        return program(binary, [libraries[k] for k in dict.fromkeys(which.tolist())], own, stays)

    service = [new(150, 6, p.settings, stays=True) for _ in range(p.services)]
    desktop = [new(400, 25, 2 * p.settings) for _ in range(p.desktop)]
    player, console, office = new(1000, 15, p.settings), new(200, 25, p.settings), new(5000, 120, 4 * p.settings)
    editor, browser = new(300, 30, p.settings), new(800, 40, p.settings)
    documents = [share.file(float(size)) for size in rng.lognormal(0, 1, p.documents) * 30 * KIB]
    pages = [[share.file(float(size)) for size in rng.lognormal(0, 1, 20) * 8 * KIB] for _ in range(p.windows)]
    shell = new(600, 3, 2)

    def script(start: Callable[[Process], Program]) -> Callable[[Process], Program]:
        def main(me: Process) -> Program:
            yield from shell(me)
            yield from me.run("service", start)

        return main

    def opening(start: Callable[[Process], Program], shown: list[File]) -> Callable[[Process], Program]:
        def main(me: Process) -> Program:
            yield from start(me)
            yield from settings(me, shown)

        return main

    waiting = iter(service)

    def rc(me: Process) -> Program:
        for one in waiting:
            yield from me.run("rc", script(one))

    def init(me: Process) -> Program:
        starting = [me.start("rc", rc) for _ in range(p.at_once)]
        for one in starting:
            yield from me.wait(one)
        for start in desktop:
            me.start("kde", start)
            me.sleep(0.1 * S)
        started = [("xmms", player), ("konsole", console)]
        started += [("kwrite", opening(editor, [one])) for one in documents]
        started += [("konqueror", opening(browser, some)) for some in pages]
        for name, start in (*started, ("soffice", office)):
            me.sleep(p.pause_s * S)
            me.start(name, start)
            yield None

    machine.start("init", init)
