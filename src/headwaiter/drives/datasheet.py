# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A profile from the numbers of a data sheet, and a list of what had to be guessed.

What a data sheet does not tell is set by rules of thumb that hold for the measured drives in the project's references: sixteen
zones whose track length falls evenly from outer to inner, Lee's seek curve through the three seek times, skews that just
cover a switch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from headwaiter.base.errors import Problem
from headwaiter.drives.convert import lee_curve
from headwaiter.drives.profile import Toml
from headwaiter.engine.constants import SECTOR_BYTES

_ZONES = 16


@dataclass(frozen=True)
class DataSheet:
    """None: not known. Times in ms, rates in MB/s (10^6 bytes), capacity in bytes, cache in MiB."""

    rpm: float
    capacity: int
    seek_average: float
    seek_track: float | None = None
    seek_full: float | None = None
    seek_average_write: float | None = None
    rate_outer: float | None = None
    rate_inner: float | None = None
    surfaces: int | None = None
    head_switch: float | None = None
    cache_mib: float | None = None
    interface_rate: float | None = None
    queue_depth: int = 1
    write_cache: bool = True


@dataclass
class Guesses:
    """Guessed values by key of the profile, each with the reason."""

    notes: dict[str, str] = field(default_factory=dict)

    def take(self, value: float | None, key: str, guess: float, why: str) -> float:
        """The value, or the guess, which is then noted."""
        if value is not None:
            return value
        self.notes[key] = f"{self.notes[key]}; {why}" if key in self.notes else f"guessed: {why}"
        return guess


def _zones(outer: int, inner: int, cylinders: int, revolution: float, switch: float, track: float) -> list[Toml]:
    rows = []
    n = min(_ZONES, cylinders)
    for i in range(n):
        spt = round(outer + (inner - outer) * (i / (n - 1) if n > 1 else 0))
        rows.append(
            {
                "first_cylinder": cylinders * i // n,
                "last_cylinder": cylinders * (i + 1) // n - 1,
                "sectors_per_track": spt,
                "track_skew": min(spt - 1, math.ceil(switch * 1.05 / revolution * spt)),
                "cylinder_skew": min(spt - 1, math.ceil(track * 1.05 / revolution * spt)),
            }
        )
    return rows


def _cylinders(sectors: int, surfaces: int, outer: int, inner: int) -> int:
    """Return how many cylinders the capacity needs, with the zones of _zones()."""
    n = max(1, math.ceil(sectors / surfaces / ((outer + inner) / 2)))
    while True:
        rows = _zones(outer, inner, n, 1.0, 0.0, 0.0)
        total = sum((z["last_cylinder"] - z["first_cylinder"] + 1) * z["sectors_per_track"] for z in rows) * surfaces
        if total >= sectors:
            return n
        n += max(1, (sectors - total) // (surfaces * outer))


def from_datasheet(sheet: DataSheet) -> tuple[Toml, dict[str, str]]:
    """The profile, and by key what was guessed and why; Problem if the numbers contradict each other."""
    if sheet.rpm < 100 or sheet.capacity < SECTOR_BYTES * 1000 or sheet.seek_average <= 0:
        raise Problem("drives new: rotation speed, capacity and average seek time must be positive")
    g = Guesses()
    revolution = 60e3 / sheet.rpm
    track = g.take(sheet.seek_track, "mechanics.seek", sheet.seek_average / 8, "track-to-track seek as an eighth of the average")
    full = g.take(sheet.seek_full, "mechanics.seek", sheet.seek_average * 2, "full stroke as twice the average seek")
    if not track < sheet.seek_average < full:
        raise Problem(
            f"drives new: seek times must rise from track-to-track ({track:g}) over average "
            f"({sheet.seek_average:g}) to full stroke ({full:g})"
        )
    switch = g.take(sheet.head_switch, "mechanics.head_switch", track, "as long as a track-to-track seek")
    settle = g.take(
        None if sheet.seek_average_write is None else sheet.seek_average_write - sheet.seek_average,
        "mechanics.write_settle",
        0.5 if sheet.rpm < 10000 else 0.4,
        "typical of its rotation speed",
    )
    outer_rate = g.take(sheet.rate_outer, "zones", 20.0 * (sheet.capacity / 10e9) ** 0.35, "outer rate typical of the capacity")
    inner_rate = g.take(sheet.rate_inner, "zones", outer_rate * 0.52, "inner rate 52% of the outer one")
    if inner_rate > outer_rate:
        raise Problem(f"drives new: the inner rate ({inner_rate:g}) exceeds the outer one ({outer_rate:g})")
    # skews cover a write's switch, and a sustained rate loses one a track
    switched, moved = switch + max(settle, 0.0), track + max(settle, 0.0)
    duty = 1 / (1 + switched * 1.05 / revolution)
    outer, inner = (max(8, round(r * 1e6 / SECTOR_BYTES * revolution / 1e3 / duty)) for r in (outer_rate, inner_rate))
    surfaces = int(g.take(sheet.surfaces, "geometry.surfaces", 4, "not on the sheet"))
    sectors = sheet.capacity // SECTOR_BYTES
    cylinders = _cylinders(sectors, surfaces, outer, inner)
    if cylinders < 10:
        raise Problem("drives new: capacity and rates give fewer than ten cylinders")
    g.notes["geometry.cylinders"] = "from capacity, surfaces and rates"
    g.take(None, "zones", 0, "sixteen zones, with rates falling evenly from outer to inner")
    cache = g.take(sheet.cache_mib, "cache.segments", 2, "2 MiB") * 2048
    interface = g.take(sheet.interface_rate, "bus", 300, "300 MB/s")
    segments = 16
    g.notes["overhead"] = "guessed: typical of the interface"
    data: Toml = {
        "model": "disk",
        "geometry": {"surfaces": surfaces, "cylinders": cylinders, "sectors": sectors, "mapping": "serpentine"},
        "mechanics": {
            "rpm": sheet.rpm,
            "head_switch": round(switch, 4),
            "write_settle": round(settle, 4),
            "seek": [list(p) for p in lee_curve(cylinders, track, sheet.seek_average, full)],
        },
        "overhead": dict.fromkeys(
            ("read_hit_after_read", "read_hit_after_write", "write_hit_after_read", "write_hit_after_write"), 0.05
        )
        | dict.fromkeys(
            ("read_miss_after_read", "read_miss_after_write", "write_miss_after_read", "write_miss_after_write"), 0.15
        ),
        "bus": {"block_read": round(SECTOR_BYTES / interface / 1e3, 6), "block_write": round(SECTOR_BYTES / interface / 1e3, 6)},
        "cache": {"segments": segments, "segment": max(64, int(cache) // segments)},
        "read_ahead": {"mode": "free", "sectors": max(32, int(cache) // segments // 2)},
        "write": {"mode": "back", "limit": max(64, int(cache) // 2)} if sheet.write_cache else {"mode": "through"},
        "queue": {"depth": sheet.queue_depth},
        "zones": _zones(outer, inner, cylinders, revolution, switched, moved),
    }
    return data, g.notes
