# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Flash drives made at random, and closed loops of requests on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headwaiter.drives.profile import Profile, from_toml
from headwaiter.drives.validation import replay, unmeasured

KIB = 1024
MS = 1_000_000


def random_flash(seed: int) -> Profile:
    """Any valid drive that could be built: each choice is of a range that parts on sale lie in."""
    rng = np.random.default_rng(seed)

    def of(low: float, high: float) -> float:
        """Even by factors."""
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))), 6)

    def often(share: float) -> bool:
        return bool(rng.random() < share)

    def maybe(share: float, low: float, high: float) -> float:
        return of(low, high) if often(share) else 0.0

    read, program, page = of(0.02, 0.15), of(0.15, 3), int(rng.choice([8, 16, 32, 64]))
    rate = of(0.3, 8)  # GB/s of the link
    sector = 512 / rate / MS
    data: dict[str, Any] = {
        "model": "ssd",
        "description": f"random {seed}",
        "geometry": {
            "sectors": 1 << 30, "channels": int(rng.integers(1, 17)), "ways": int(rng.integers(1, 17)), "page": page,
            "block": int(rng.choice([128, 512, 1536])),
        },
        "timing": {
            "page_read": read, "page_program": program, "block_erase": of(1, 10), "transfer": maybe(0.8, 0.0002, 0.003),
            "suspend": maybe(0.8, 0.005, 0.15), "suspends": often(0.7), "page_read_middle": maybe(0.5, read, 1.3 * read),
            "page_read_slow": maybe(0.5, read, 1.6 * read), "read_more": maybe(0.3, 0.005, 0.06),
        },
        "link": {"sector_read": sector, "sector_write": sector * of(0.9, 1.4), "half_duplex": often(0.4)},
        "overhead": {"read": of(0.002, 0.05), "write": of(0.002, 0.05)},
        "controller": {
            "read": maybe(0.5, 0.0005, 0.003), "write": maybe(0.5, 0.0005, 0.006), "read_sequential": maybe(0.3, 0.0005, 0.01),
        },
        "queue": {"submissions": int(rng.choice([1, 4, 16])), "fetch": int(rng.choice([0, 16, 64]))},
        "write": {
            "buffer": int(of(4, 300)), "pool": int(of(1, 500)), "valid": round(float(rng.uniform(0, 0.9)), 2),
            "slc": int(maybe(0.3, 50, 500)), "slc_program": program * round(float(rng.uniform(0.2, 1)), 2),
            "fold": maybe(0.5, 0.1, 3), "gc_quantum": maybe(0.5, 2, 10),
            "sequential_extra": maybe(0.3, 0.1, 2), "random_extra": maybe(0.3, 0.1, 8), "large_extra": maybe(0.3, 0.1, 2),
        },
        "flush": {"protected": often(0.3), "time": maybe(0.5, 0.1, 10)},
    }  # fmt: skip
    return from_toml(data, f"random-{seed}", f"random-{seed}")


def pages_until_steady(drive: Profile) -> int:
    """Pages that a drive takes faster than it can go on to."""
    write = drive.data.get("write", {})
    return int(write.get("buffer", 64) + write.get("pool", 65536) + write.get("slc", 0))


@dataclass(frozen=True)
class Played:
    """One closed loop on a drive whose buffer is full and whose pool is empty."""

    bytes_a_second: float
    longest_ns: int


def play(drive: Profile, reads: float, kib: int, outstanding: int, n: int, seed: int = 1) -> Played:
    """So many requests at random places, of which a share reads, after those that empty the pool and fill the buffer."""
    rng = np.random.default_rng(seed)
    sectors = kib * 2
    filling = (
        int(4 * pages_until_steady(drive) * drive.data["geometry"].get("page", 32) / sectors / (1 - reads)) if reads < 1 else 0
    )
    filling += outstanding
    load = unmeasured(
        (rng.random(filling + n) >= reads).astype(np.uint8),
        (rng.integers(0, drive.facts[0] // sectors, filling + n) * sectors).astype(np.uint64),
        np.full(filling + n, sectors, np.uint32),
    )
    service = replay(drive, load, outstanding)[filling:]
    # so many are always outstanding, and that is their rate times their mean time
    return Played(outstanding * kib * KIB / service[: n - outstanding].mean() * 1e9, int(service.max()))
