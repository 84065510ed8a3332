# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What servers of published benchmarks do to files, as lists that lab/guest/player.c plays in the lab.

The same parameters give the same bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

PAGE = 4096
FOLDER = "/mnt"


@dataclass
class Playlist:
    """Files with their pages, and steps of each process."""

    files: list[tuple[str, int]] = field(default_factory=list)
    processes: list[list[str]] = field(default_factory=list)

    def text(self, name: str) -> bytes:
        """Return the text that the player reads."""
        lines = [f"F {path} {pages}" for path, pages in self.files]
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
