# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lay out files as ext2 does.

The disk is cut into groups of 128 MiB. A group begins with its inodes, 16 in a block of 4 KiB; then come the blocks. A folder
gets a group by chance, and its files lie there one behind the other, in pieces where the space was used before. To open a file
is to read the folder's block that names it, and the block of its inode.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

PAGE_SECTORS, PAGE_BYTES = 8, 4096
GROUP_PAGES = 32768
INODES_A_BLOCK = 16
INODE_PAGES = 512
NAMES_A_BLOCK = 100
Block = tuple["File", int]


class File:
    """A file: where its pages lie, and which of them are in the page cache."""

    def __init__(self, extents: list[tuple[int, int]], about: tuple[Block, ...] = (), made: bool = False) -> None:
        """extents: (sector, pages), in the file's order; about: metadata that is read to open it; made: by a program."""
        self.about = about
        self.made = made
        self.cached: dict[int, int] = {}
        """Page to the row that reads it, or -1 if it was written."""
        self._first: list[int] = []
        self._sector: list[int] = []
        self.pages = 0
        for sector, pages in extents:
            self._first.append(self.pages)
            self._sector.append(sector)
            self.pages += pages

    def know(self) -> None:
        """Have in memory what is read to open it."""
        for block, page in self.about:
            block.cached.setdefault(page, -1)

    def sector(self, page: int) -> int:
        """Return the first sector of a page."""
        i = bisect_right(self._first, page) - 1
        return self._sector[i] + (page - self._first[i]) * PAGE_SECTORS

    def pieces(self, page: int, count: int) -> list[tuple[int, int]]:
        """Return (sector, pages) for each extent that these pages touch."""
        out = []
        while count > 0:
            i = bisect_right(self._first, page) - 1
            end = self._first[i + 1] if i + 1 < len(self._first) else self.pages
            n = min(count, end - page)
            out.append((self._sector[i] + (page - self._first[i]) * PAGE_SECTORS, n))
            page, count = page + n, count - n
        return out


class Full(Exception):
    """No space is left."""


class FileSystem:
    """Gives out space."""

    def __init__(self, rng: np.random.Generator, sectors: int, piece_pages: int = 256) -> None:
        """Over the first `sectors` of a disk; a file larger than piece_pages lies in pieces of that size on average."""
        self._rng = rng
        self._groups = sectors // PAGE_SECTORS // GROUP_PAGES
        if not self._groups:
            raise Full
        self._piece_pages = piece_pages
        self.inodes_a_block = INODES_A_BLOCK
        self._next: dict[int, int] = {}
        self._inodes: dict[int, int] = {}
        self._tables: dict[int, File] = {}

    def folder(self, beside: Folder | None = None) -> Folder:
        """A folder in a group that is drawn, or in that of another one."""
        return Folder(self, beside.group if beside else int(self._rng.integers(self._groups)))

    def allocate(self, group: int, pages: int) -> list[tuple[int, int]]:
        """Space for so many pages, in this group and those behind it."""
        out: list[tuple[int, int]] = []
        while pages:
            tries = 0
            while (at := self._next.get(group, INODE_PAGES)) >= GROUP_PAGES:
                group, tries = (group + 1) % self._groups, tries + 1
                if tries > self._groups:
                    raise Full
            n = min(pages, GROUP_PAGES - at)
            if pages > self._piece_pages:
                n = min(n, 1 + int(self._rng.exponential(self._piece_pages)))
            out.append(((group * GROUP_PAGES + at) * PAGE_SECTORS, n))
            gap = int(self._rng.integers(1, self._piece_pages)) if pages > self._piece_pages else 0
            self._next[group] = at + n + gap
            pages -= n
        return out

    def inode(self, group: int) -> Block:
        """The block of a new inode."""
        number = self._inodes.get(group, 0)
        self._inodes[group] = number + 1
        table = self._tables.get(group)
        if table is None:
            table = self._tables[group] = File([(group * GROUP_PAGES * PAGE_SECTORS, INODE_PAGES)])
        return table, min(number // self.inodes_a_block, INODE_PAGES - 1)


class Folder:
    """A folder and its own blocks."""

    def __init__(self, system: FileSystem, group: int) -> None:
        self._system = system
        self.group = group
        self._names = 0
        self._inode = system.inode(group)
        self._blocks: list[Block] = []

    def file(self, size_bytes: float, made: bool = False) -> File:
        """A file of that size."""
        if self._names % NAMES_A_BLOCK == 0:
            self._blocks.append((File(self._system.allocate(self.group, 1)), 0))
        self._names += 1
        pages = max(1, -(-round(size_bytes) // PAGE_BYTES))
        about = (self._inode, self._blocks[-1], self._system.inode(self.group))
        return File(self._system.allocate(self.group, pages), about, made)

    def new_file(self, size_bytes: float) -> File:
        """A file that is made here and now: to look it up, nothing is read."""
        file = self.file(size_bytes, made=True)
        file.know()
        return file
