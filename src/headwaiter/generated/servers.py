# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers of small files after the profile of FFSB, as lab/guest/server.c is one: web, mail, file and metadata servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwaiter.generated.files import PAGE_BYTES, File, FileSystem, Folder
from headwaiter.generated.model_machine import ModelMachine, Process, Program
from headwaiter.generated.parameters import Common, number

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Server(Common):
    """Threads that read, overwrite, append to, create and delete whole files that are drawn."""

    threads: int = number(1, 64)
    operations: int = number(1, 100_000)
    """Operations that each thread does."""
    files: int = number(1, 100_000)
    folders: int = number(1, 1000)
    least_kib: int = number(4, 1024)
    most_kib: int = number(4, 1024)
    memory_mib: int = number(1, 65_536)
    """For the data of files; their metadata stay in memory once they have been read."""
    read: int = number(0, 100)
    """How often this is done, and what follows, as parts of their sum; if all are 0, files are read."""
    write: int = number(0, 100)
    append: int = number(0, 100)
    create: int = number(0, 100)
    delete: int = number(0, 100)


class Store:
    """The files that there are, and whose data are in memory: those used last."""

    def __init__(self, p: Server, machine: ModelMachine, files: FileSystem) -> None:
        self._p, self._machine = p, machine
        self._folders = [files.folder() for _ in range(p.folders)]
        self.files = [self._drawn(made=False) for _ in range(p.files)]
        self._in_memory: dict[File, int] = {}
        self._pages = 0

    def _drawn(self, made: bool) -> File:
        folder = self._folder()
        size = int(self._machine.rng.integers(self._p.least_kib, max(self._p.least_kib, self._p.most_kib) + 1)) * KIB
        return folder.new_file(size) if made else folder.file(size)

    def _folder(self) -> Folder:
        return self._folders[self._machine.rng.integers(len(self._folders))]

    def any(self, gone: bool = False) -> File | None:
        """One of the files, which is deleted if it is to be; None if there is none."""
        if not self.files:
            return None
        at = int(self._machine.rng.integers(len(self.files)))
        file = self.files[at]
        if gone:
            self.files[at] = self.files[-1]
            self.files.pop()
            self._pages -= self._in_memory.pop(file, 0)
            for page in range(file.pages):
                self._machine.dirty.pop((file, page), None)
        return file

    def made(self) -> File:
        """A new file, which others find when it is written."""
        return self._drawn(made=True)

    def grown(self) -> File:
        """A page behind the end of a file: it lies wherever a folder has space."""
        return self._folder().new_file(PAGE_BYTES)

    def used(self, me: Process, file: File) -> None:
        """Note that its data are in memory now. The data used longest ago leave it, but for what is still to be written."""
        self._pages += file.pages - self._in_memory.pop(file, 0)
        self._in_memory[file] = file.pages
        for old in list(self._in_memory):
            if self._pages * PAGE_BYTES <= self._p.memory_mib * MIB:
                break
            if old is not file and not any((old, page) in self._machine.dirty for page in range(old.pages)):
                self._pages -= self._in_memory.pop(old)
                me.forget(old)


def server(p: Server, machine: ModelMachine, files: FileSystem) -> None:
    """Whatever changes what there is dirties the blocks that tell of it: the folder's, and the inode's."""
    store = Store(p, machine, files)
    kinds = [kind for kind in ("read", "write", "append", "create", "delete") for _ in range(getattr(p, kind))] or ["read"]

    def told(me: Process, file: File) -> Program:
        for block, page in file.about:
            yield from me.write(block, page)

    def operate(me: Process, kind: str) -> Program:
        if kind == "create":
            file = store.made()
            yield from me.write_all(file)
            yield from told(me, file)
            store.files.append(file)
            store.used(me, file)
            return
        found = store.any(gone=kind == "delete")
        if found is None:
            return
        yield from me.look_up(found.about)
        if kind == "read":
            yield from me.read_all(found)
        elif kind == "write":
            yield from me.write_all(found)
        elif kind == "append":
            yield from me.write_all(store.grown())
        if kind in ("append", "delete"):
            yield from told(me, found)
        if kind in ("read", "write"):
            store.used(me, found)

    def thread() -> Callable[[Process], Program]:
        def program(me: Process) -> Program:
            for _ in range(p.operations):
                yield from operate(me, kinds[machine.rng.integers(len(kinds))])

        return program

    for i in range(p.threads):
        machine.start(f"thread-{i}", thread())
