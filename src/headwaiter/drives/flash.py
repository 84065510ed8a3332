# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A flash drive's profile from six rates, such as the kernel's io.cost takes and data sheets tell.

Closed forms give a first profile; then the model itself is measured, and what is off is corrected by its ratio, a few times: the
parameters that a rate depends on most are each moved by the error of that rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headwaiter.base.errors import Problem
from headwaiter.drives.profile import Profile, Toml, from_toml
from headwaiter.drives.validation import MeasuredRequests, unmeasured
from headwaiter.drives.validation import replay as served
from headwaiter.engine.constants import SECTOR_BYTES, Op

RATES = ("rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops")
_PAGE = 8
_PAGE_BYTES = _PAGE * SECTOR_BYTES
_CHANNELS = 8
_PAGE_READ_MS = 0.06
_LARGE = 2048
_DEPTH = 256
_STREAMS = 8
_ROUNDS = 12
_SURE = 0.01
"""An error of a rate below which it needs no correction."""
_BUFFER_S = 0.02
"""Random writes of so long fill the buffer, if the dies do not need more of it."""
_PAGES_A_DIE = 3
"""Pages of the buffer for each die: one that is programmed, one in the register, one on the way."""
_SLOWER = 0.97
"""The dies limit large reads, not the link, where small ones bring so much of their bytes."""
_ROOM = 1.1
"""So much faster than all reads is a link that does not limit them."""
_NEAR = 0.1
"""A rate that is farther off is told."""
_TOLD_BY = {
    "rbps": "link.sector_read", "rseqiops": "controller.read_sequential", "rrandiops": "controller.read",
    "wbps": "timing.page_program", "wseqiops": "write.sequential_extra", "wrandiops": "write.random_extra",
}  # fmt: skip
_EXTRA = {"large_extra": "wbps", "sequential_extra": "wseqiops", "random_extra": "wrandiops"}
_BUSY = 1.6
"""So many times as many dies as keep up with random reads: some stand idle while others have several to serve."""


@dataclass(frozen=True)
class Rates:
    """Bytes a second of large requests, and requests of 4 KiB a second, sequential and random."""

    rbps: float
    rseqiops: float
    rrandiops: float
    wbps: float
    wseqiops: float
    wrandiops: float


@dataclass(frozen=True)
class Known:
    """Facts that are known beside the rates; None: not known. Times in ms."""

    capacity: int
    protected: bool | None = None
    flush: float | None = None
    read: float | None = None
    half_duplex: bool = False
    depth: int = 1023


def _load(op: Op, sectors: int, sequential: bool, capacity: int, n: int) -> MeasuredRequests:
    i = np.arange(n, dtype=np.int64)
    slots = capacity // sectors
    if sequential:
        at = (i % _STREAMS) * (slots // _STREAMS) + i // _STREAMS
    else:
        at = np.random.default_rng(sectors).integers(0, slots, n)
    return unmeasured(np.full(n, op, np.uint8), (at * sectors).astype(np.uint64), np.full(n, sectors, np.uint32))


def _rate(drive: Profile, op: Op, sectors: int, sequential: bool) -> float:
    """Requests a second of a closed loop, once it has settled."""
    outstanding = min(drive.facts[1], _DEPTH if sectors == _PAGE else 32)
    settle = 2 * int(drive.data["write"]["buffer"]) * _PAGE // sectors if op == Op.WRITE else outstanding
    n = 4000 if sectors == _LARGE else 20_000
    load = _load(op, sectors, sequential, drive.facts[0], settle + n)
    times = served(drive, load, outstanding)[settle : settle + n - outstanding]
    return outstanding / float(times.mean()) * 1e9


def measured(drive: Profile) -> Rates:
    """The six rates of a profile, as fio with direct I/O and many at once would find them."""
    large = _LARGE * SECTOR_BYTES
    return Rates(
        _rate(drive, Op.READ, _LARGE, True) * large,
        _rate(drive, Op.READ, _PAGE, True),
        _rate(drive, Op.READ, _PAGE, False),
        _rate(drive, Op.WRITE, _LARGE, True) * large,
        _rate(drive, Op.WRITE, _PAGE, True),
        _rate(drive, Op.WRITE, _PAGE, False),
    )


def _small(want: Rates, write: bool) -> float:
    """Bytes a second of the faster of both kinds of small requests."""
    return _PAGE_BYTES * (max(want.wseqiops, want.wrandiops) if write else max(want.rseqiops, want.rrandiops))


def _first(want: Rates, known: Known) -> Toml:
    read_ms = known.read or _PAGE_READ_MS
    reads, writes = max(want.rbps, _small(want, False)), max(want.wbps, _small(want, True))
    ways = min(256, max(1, round(reads / _PAGE_BYTES * read_ms / 1e3 * _BUSY / _CHANNELS)))
    dies = ways * _CHANNELS
    slower = _small(want, False) * _SLOWER > want.rbps
    return {
        "model": "ssd",
        "geometry": {
            "sectors": known.capacity // SECTOR_BYTES, "channels": _CHANNELS, "ways": ways, "page": _PAGE, "block": 2048,
        },
        "timing": {
            "page_read": read_ms, "page_program": dies * _PAGE_BYTES / writes * 1e3, "block_erase": 4.0, "suspend": 0.005,
            "suspends": True, "read_more": max(0.0, dies * _PAGE_BYTES / want.rbps * 1e3 - read_ms) if slower else 0.0,
        },
        "link": {
            "sector_read": SECTOR_BYTES / (reads * (_ROOM if slower else 1)) * 1e3,
            "sector_write": SECTOR_BYTES / (2 * writes) * 1e3, "half_duplex": known.half_duplex,
        },
        "overhead": {"read": 0.01, "write": 0.01},
        "controller": {"read": 1e3 / want.rrandiops, "write": 0.0, "read_sequential": 1e3 / want.rseqiops},
        "write": {
            "buffer": min(2048, max(round(want.wrandiops * _BUFFER_S), _PAGES_A_DIE * dies)), "pool": 1, "valid": 0.0,
            "gc_idle": 200,
            **{key: writes / (_bytes(rate) * getattr(want, rate)) - 1 for key, rate in _EXTRA.items()},
        },
        "queue": {"depth": known.depth},
        "flush": {"protected": bool(known.protected), "time": known.flush or (0.02 if known.protected else 1.0)},
    }  # fmt: skip


def _bytes(rate: str) -> int:
    return 1 if rate.endswith("bps") else _PAGE_BYTES


def _corrected(data: Toml, want: Rates, got: Rates) -> None:
    def off(name: str) -> float:
        return float(getattr(got, name) / getattr(want, name))

    timing, write = data["timing"], data["write"]
    if timing["read_more"]:
        timing["read_more"] = max(1e-6, (timing["page_read"] + timing["read_more"]) * off("rbps") - timing["page_read"])
    else:
        data["link"]["sector_read"] *= off("rbps")
    data["controller"]["read"] *= off("rrandiops")
    data["controller"]["read_sequential"] *= off("rseqiops")
    work = {key: timing["page_program"] * (1 + write[key]) * off(rate) for key, rate in _EXTRA.items()}
    timing["page_program"] = max(1e-4, min(work.values()))
    write.update({key: min(999.0, value / timing["page_program"] - 1) for key, value in work.items()})


def _error(want: Rates, got: Rates) -> float:
    return max(abs(float(getattr(got, name) / getattr(want, name)) - 1) for name in RATES)


def fitted(want: Rates, known: Known, where: str) -> tuple[Toml, dict[str, str], Rates]:
    """The profile, what was guessed by key, and the rates that it gives; Problem that begins with `where`."""
    for name in RATES:
        if not 1 <= getattr(want, name) <= 1e13:
            raise Problem(f"{where}: {name}: must be a positive rate")
    data = _first(want, known)
    best, least, found = data, float("inf"), want
    for _ in range(_ROUNDS):
        got = measured(from_toml(data, "fitted", where))
        if (error := _error(want, got)) < least:
            least, found = error, got
            best = {key: dict(value) if isinstance(value, dict) else value for key, value in data.items()}
        if error < _SURE:
            break
        _corrected(data, want, got)
    for table in best.values():
        if isinstance(table, dict):
            table.update({key: float(f"{value:.5g}") for key, value in table.items() if isinstance(value, float)})
    return best, _notes(want, known, found), found


def _notes(want: Rates, known: Known, got: Rates) -> dict[str, str]:
    notes = {
        "geometry.channels": "guessed",
        "geometry.ways": "guessed: enough dies for the rates of reads",
        "timing.page_read": "given" if known.read else "guessed: usual for TLC",
        "timing.page_program": "from the fastest writes, taken for what lasts: no fast cells are told apart",
        "timing.read_more": "from large reads, where they bring fewer bytes than small ones",
        "link.sector_read": "from large reads; where they are not the fastest, more than all reads need",
        "link.sector_write": "guessed: twice what writes need",
        "controller.read": "from random reads of 4 KiB; the host's share of the work is in it",
        "controller.read_sequential": "from sequential reads of 4 KiB",
        "overhead": "guessed",
        "write.buffer": "guessed",
        "write.large_extra": "from large writes, where they bring fewer bytes than small ones",
        "write.sequential_extra": "from sequential writes of 4 KiB",
        "write.random_extra": "from random writes of 4 KiB",
        "flush.time": "given" if known.flush else "guessed",
    }
    for rate, key in _TOLD_BY.items():
        if abs(getattr(got, rate) / getattr(want, rate) - 1) > _NEAR:
            notes[key] += f"; the profile gives {getattr(got, rate):.0f} a second, not {getattr(want, rate):.0f}"
    if known.protected is None:
        notes["flush.protected"] = "guessed"
    return notes


def from_mapping(given: Mapping[str, float], where: str) -> Rates:
    """The six rates by their names in io.cost."""
    if missing := [name for name in RATES if name not in given]:
        raise Problem(f"{where}: {missing[0]}: is missing")
    return Rates(**{name: given[name] for name in RATES})
