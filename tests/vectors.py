# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sequences recorded on an unmodified kernel: requests in, the order in which they were served out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from device import Device

from headwaiter.engine.constants import SYNC
from headwaiter.engine.policy import Policy, Request

MS = 1_000_000
# Between two submissions by one thread; nothing depends on it but that all come before the first completion.
SUBMIT_NS = 10_000


@dataclass(frozen=True)
class Row:
    """One recorded sequence: requests of 8 sectors in order of submission, and the order in which they were served."""

    name: str
    tunables: Mapping[str, int]
    requests: tuple[Request, ...]
    order: tuple[int, ...]


def request(text: str) -> Request:
    place, _, ioclass = text[1:].partition("/")
    # The recorder gave level 4 with every class but "none"; mq-deadline does not look at levels.
    ioprio = int(ioclass) << 13 | 4 if ioclass not in ("", "0") else 0
    return Request(int(place), 8, "RW".index(text[0]), flags=SYNC, ioprio=ioprio)


def rows(path: Path) -> Iterator[Row]:
    """The rows of a file `id [tunables] | requests | order`."""
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        head, requests, order = line.split("|")
        name, *settings = head.split()
        yield Row(
            name,
            {k: int(v) for k, v in (s.split("=") for s in settings)},
            tuple(request(r) for r in requests.split()),
            tuple(int(i) for i in order.split()),
        )


def replay(scheduler: str, row: Row, tunables: Mapping[str, int], service_ns: int) -> tuple[int, ...]:
    """The order in which our policy serves a row; `tunables` are those of the set-up, below the row's own."""
    device = Device(Policy(scheduler, {**tunables, **row.tunables}, rotational=False, nr_requests=128), service_ns)
    for i, r in enumerate(row.requests):
        device.insert(r, i * SUBMIT_NS)
    return tuple(device.run())
