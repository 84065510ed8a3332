# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A profile of the same class with more room: for a recording of a larger drive than any that was measured.

What a class of drives is like, its times, hardly depends on its capacity. An SSD gets more places, and as many more erased pages.
A disk gets more bits in a track and more tracks, as its makers do it: a third of the growth (as an exponent) makes tracks longer,
and the transfer faster; the rest makes them more. A stroke over the same share of the surface takes as long as before.
"""

from __future__ import annotations

import copy
import math

from headwaiter.base.errors import Problem, counted
from headwaiter.base.figures import brief
from headwaiter.drives.profile import Profile, Toml, from_toml
from headwaiter.engine.constants import SECTOR_BYTES

LARGEST = 64
"""So many times as large as it was measured, and no more: that would be another class."""
_LONGER_TRACKS = 1 / 3


def enlarged(profile: Profile, sectors: int) -> Profile | None:
    """The profile with at least so many sectors; None if its model cannot be enlarged so far."""
    if sectors <= profile.sectors:
        return profile
    factor = sectors / profile.sectors
    if factor > LARGEST or profile.model.name not in ("ssd", "disk"):
        return None
    data = copy.deepcopy(profile.data)
    if profile.model.name == "ssd":
        data["geometry"]["sectors"] = sectors
        write = data.get("write", {})
        if "pool" in write:
            write["pool"] = round(write["pool"] * factor)
    else:
        _disk(data, factor, sectors)
    name = f"{profile.name}, enlarged to {size_text(sectors)}"
    try:
        return from_toml(data, name, name)
    except Problem:
        return None  # more than the model has numbers for


def taking(profile: Profile, requests: int) -> Profile:
    """The profile of a drive that takes so many requests at once; itself if they are its own, or more than its model has.

    What stands before a disk of one command, and takes more, gives it one after another, as they came.
    """
    if requests == profile.facts[1]:
        return profile
    data = copy.deepcopy(profile.data)
    data.setdefault("queue", {})["depth"] = requests
    if profile.facts[1] == 1 and profile.model.name == "disk":
        data["queue"]["policy"] = "fifo"
    name = f"{profile.name}, taking {counted(requests, 'request')}"
    try:
        return from_toml(data, name, name)
    except Problem:
        return profile


def size_text(sectors: int) -> str:
    """A capacity as it stands on drives: 1.9 TB."""
    size = sectors * SECTOR_BYTES
    return f"{brief(size / 1e12)} TB" if size >= 1e12 else f"{brief(size / 1e9)} GB"


def _disk(data: Toml, factor: float, sectors: int) -> None:
    """Longer tracks, and more of them, in place."""
    longer = factor**_LONGER_TRACKS
    zones = data["zones"]
    tracks = [max(1, round(zone["sectors_per_track"] * longer)) for zone in zones]
    surfaces = data["geometry"]["surfaces"]
    wide = [zone["last_cylinder"] - zone["first_cylinder"] + 1 for zone in zones]
    # Rounded up, so that there is room even where lengths were rounded down.
    more = sectors / (surfaces * sum(width * track for width, track in zip(wide, tracks, strict=True)))
    first = 0
    for zone, before, track in zip(zones, wide, tracks, strict=True):
        width = math.ceil(before * more)
        for skew in ("track_skew", "cylinder_skew"):
            if skew in zone:
                zone[skew] = min(track - 1, round(zone[skew] * track / zone["sectors_per_track"]))
        zone.update(first_cylinder=first, last_cylinder=first + width - 1, sectors_per_track=track)
        zone.pop("slips", None)
        zone.pop("defects", None)
        first += width
    data["geometry"].update(cylinders=first, sectors=sectors)
    for curve in ("seek", "seek_write"):
        if curve in data["mechanics"]:
            data["mechanics"][curve] = _stretched(data["mechanics"][curve], more)


def _stretched(curve: list[list[float]], factor: float) -> list[list[float]]:
    """Return the seek times at distances `factor` times as long; that to the next track stays."""
    found: dict[int, float] = {}
    for distance, ms in curve:
        found[1 if distance == 1 else max(2, round(distance * factor))] = ms
    return [[distance, ms] for distance, ms in sorted(found.items())]
