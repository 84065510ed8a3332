# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What servers of published benchmarks do to files, as lists that lab/guest/player.c plays in the lab.

The same parameters give the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

PAGE = 4096
FOLDER = "/mnt"


@dataclass
class Playlist:
    """Files with their pages, and steps of each process."""

    files: list[tuple[str, int]] = field(default_factory=list)
    made: list[tuple[str, int]] = field(default_factory=list)
    """Files that a process makes; their numbers follow those of `files`."""
    processes: list[list[str]] = field(default_factory=list)

    def text(self, name: str) -> bytes:
        """As the player reads it."""
        lines = [*(f"F {path} {pages}" for path, pages in self.files), *(f"M {path} {pages}" for path, pages in self.made)]
        lines += [f"P {name}", *(f"s {i + 1}" for i in range(len(self.processes)))]
        for steps in self.processes:
            lines += [f"P {name}", *steps]
        return "".join(f"{line}\n" for line in lines).encode()


def web_server(servers: int, requests: int, files: int, mapped: bool) -> bytes:
    """Processes that send one file after another, of all with the same probability, by read() of 8 KiB or out of memory.

    Sizes are lognormal with a median of 8 KiB, as of small pages and some pictures; a request costs 1 ms of other work.
    """
    dice = random.Random(0)
    pages = [max(1, round(2 * dice.lognormvariate(0, 1.3))) for _ in range(files)]
    playlist = Playlist([(f"{FOLDER}/{k // 50}/{k}", count) for k, count in enumerate(pages)])
    for _ in range(servers):
        steps = []
        for _ in range(requests):
            k = dice.randrange(files)
            reads = [f"r {k} {page} {min(2, pages[k] - page)}" for page in range(0, pages[k], 2)]
            touched = [f"f {k} {page}" for page in range(pages[k])] if mapped else reads
            steps += [*touched, f"c {k}", "t 1000000"]
        playlist.processes.append(steps)
    return playlist.text("web")


Action = Callable[["FileServer", int], Iterator[str]]


class FileServer:
    """FFSB's operations on files of 4 to 64 KiB in 100 folders, by threads that each have their own files to remove."""

    def __init__(self, files: int, threads: int) -> None:
        self.dice = random.Random(0)
        self.pages = [self.dice.randint(1, 16) for _ in range(files)]
        self.playlist = Playlist([(f"{FOLDER}/{k % 100}/{k}", count) for k, count in enumerate(self.pages)])
        self.mine = [list(range(t, files, threads)) for t in range(threads)]

    def _any(self, thread: int) -> int:
        return self.dice.choice(self.mine[thread])

    def read(self, thread: int) -> Iterator[str]:
        """A whole file."""
        k = self._any(thread)
        yield f"r {k} 0 {self.pages[k]}"
        yield f"c {k}"

    def write(self, thread: int) -> Iterator[str]:
        """A whole file again."""
        k = self._any(thread)
        yield f"x {k} 0 {self.pages[k]}"
        yield f"c {k}"

    def append(self, thread: int) -> Iterator[str]:
        """Four pages more."""
        k = self._any(thread)
        yield f"x {k} {self.pages[k]} 4"
        yield f"c {k}"
        self.pages[k] += 4

    def create(self, thread: int) -> Iterator[str]:
        """A new file."""
        k = len(self.pages)
        count = self.dice.randint(1, 16)
        self.pages.append(count)
        self.playlist.made.append((f"{FOLDER}/{self.dice.randrange(100)}/{k}", count))
        self.mine[thread].append(k)
        yield f"x {k} 0 {count}"
        yield f"c {k}"

    def delete(self, thread: int) -> Iterator[str]:
        """A file that this thread may remove."""
        k = self._any(thread)
        self.mine[thread].remove(k)
        yield f"u {k}"


PROFILES: dict[str, Sequence[tuple[Action, int]]] = {
    "web": [(FileServer.read, 100)],
    "file": [(FileServer.read, 80), (FileServer.write, 20)],
    "mail": [(FileServer.read, 40), (FileServer.create, 40), (FileServer.delete, 20)],
    "meta": [(FileServer.create, 40), (FileServer.append, 40), (FileServer.delete, 20)],
}
"""FFSB's profiles: operations and their shares in percent."""


def file_server(profile: str, files: int, operations: int, threads: int = 4) -> bytes:
    """Threads that each do so many operations of a profile."""
    server = FileServer(files, threads)
    actions, weights = zip(*PROFILES[profile], strict=True)
    for thread in range(threads):
        steps: list[str] = []
        for action in server.dice.choices(actions, weights, k=operations):
            steps += action(server, thread)
        server.playlist.processes.append(steps)
    return server.playlist.text(profile)
