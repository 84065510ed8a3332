# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What servers of published benchmarks do to files, as lists that lab/guest/player.c plays in the lab.

The same parameters give the same bytes.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Sequence
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


BODY_MU, BODY_SIGMA = 9.357, 1.318
TAIL_FROM, TAIL_ALPHA = 133_000, 1.1
TAIL_SHARE = 0.07
"""File sizes in bytes of Barford and Crovella, "Generating representative web workloads" (SIGMETRICS 1998): a lognormal body, and
a Pareto tail for 7% of the files. Popularity follows Zipf's law there."""
LARGEST_PAGES = 512
"""2 MiB: the tail's mean does not converge, and few files must not be all that a run reads."""


def surge(clients: int, requests: int, files: int, mapped: bool) -> bytes:
    """Clients that each ask for one file after another, by Zipf's law, of sizes as on web servers of the 1990s.

    A server's process answers one of them at a time, by read() of 8 KiB or out of memory; a request costs 1 ms of other work.
    """
    dice = random.Random(0)

    def size() -> float:
        if dice.random() < TAIL_SHARE:
            return TAIL_FROM * dice.paretovariate(TAIL_ALPHA)
        return dice.lognormvariate(BODY_MU, BODY_SIGMA)

    pages = [min(LARGEST_PAGES, math.ceil(size() / PAGE)) for _ in range(files)]
    ranks = list(itertools.accumulate(1 / (rank + 1) for rank in range(files)))
    # The popular are not neighbours in the folders.
    order = dice.sample(range(files), files)
    return _served(pages, clients, requests, mapped, lambda: order[bisect.bisect(ranks, dice.random() * ranks[-1])])


def web_server(servers: int, requests: int, files: int, mapped: bool) -> bytes:
    """Processes that send one file after another, of all with the same probability, by read() of 8 KiB or out of memory.

    Sizes are lognormal with a median of 8 KiB, as of small pages and some pictures; a request costs 1 ms of other work.
    """
    dice = random.Random(0)
    pages = [max(1, round(2 * dice.lognormvariate(0, 1.3))) for _ in range(files)]
    return _served(pages, servers, requests, mapped, lambda: dice.randrange(files))


def _served(pages: Sequence[int], servers: int, requests: int, mapped: bool, choose: Callable[[], int]) -> bytes:
    """Files of so many pages in folders of 50, and what each process sends of them."""
    playlist = Playlist([(f"{FOLDER}/{k // 50}/{k}", count) for k, count in enumerate(pages)])
    for _ in range(servers):
        steps = []
        for _ in range(requests):
            k = choose()
            reads = [f"r {k} {page} {min(2, pages[k] - page)}" for page in range(0, pages[k], 2)]
            touched = [f"f {k} {page}" for page in range(pages[k])] if mapped else reads
            steps += [*touched, f"c {k}", "t 1000000"]
        playlist.processes.append(steps)
    return playlist.text("web")
