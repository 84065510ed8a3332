# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where blocks lie, against a model that writes every place of a small drive down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwaiter.base.errors import Problem
from headwaiter.drives.profile import Profile, from_toml

SPARINGS = (
    "none",
    "zone-tracks",
    "cylinder",
    "track",
    "cylinder-push",
    "cylinder-front",
    "cylinder-front-push",
    "disk",
    "range",
    "zone",
    "zone-push",
)
MAPPINGS = ("cylinder", "serpentine", "serpentine-absolute", "band", "band-serpentine")


def profile(geometry: dict[str, Any], zones: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "disk", "geometry": geometry, "mechanics": {"rpm": 7200, "seek": [[1, 1.0], [10, 3.0]]}, "zones": zones}


@st.composite
def drives(draw: st.DrawFn) -> dict[str, Any]:
    surfaces, cylinders, spt = draw(st.integers(1, 4)), draw(st.integers(3, 8)), draw(st.integers(4, 9))
    sparing, mapping = draw(st.sampled_from(SPARINGS)), draw(st.sampled_from(MAPPINGS))
    spare_range = draw(st.integers(1, 3))
    first = draw(st.integers(0, 2))
    places = surfaces * cylinders * (1 if sparing == "zone-tracks" else spt)
    slips = sorted(draw(st.sets(st.integers(0, places - 1), max_size=2)))
    zone = {
        "first_cylinder": first,
        "last_cylinder": first + cylinders - 1,
        "sectors_per_track": spt,
        "offset": draw(st.integers(0, spt - 1)),
        "track_skew": draw(st.integers(0, spt - 1)),
        "cylinder_skew": draw(st.integers(0, spt - 1)),
        "reserved": draw(st.integers(0, spt)),
        "spares": len(slips) if sparing not in ("none", "disk") else 0,
        "slips": slips,
    }
    geometry = {
        "surfaces": surfaces,
        "cylinders": first + cylinders,
        "sparing": sparing,
        "mapping": mapping,
        "spare_range": spare_range,
        "band": draw(st.integers(1, 3)),
    }
    return profile(geometry, [zone])


def written_down(data: dict[str, Any]) -> list[tuple[int, int, int, int]]:
    """(cylinder, head, sector, angle) of every LBN, by walking over the tracks in order. Angles: mapping "cylinder" only."""
    g, z = data["geometry"], data["zones"][0]
    s, spt, spares, slips = g["surfaces"], z["sectors_per_track"], z["spares"], set(z["slips"])
    cylinders = z["last_cylinder"] - z["first_cylinder"] + 1
    tracks = [(z["first_cylinder"] + c, h) for c, h in track_order(g, z["first_cylinder"], cylinders)]
    skew, angles = 0, []
    for i, (c, _) in enumerate(tracks):
        if i:
            skew += z["track_skew"] if c == tracks[i - 1][0] else z["cylinder_skew"]
        angles.append(skew)
    kind = g["sparing"]
    if kind == "zone-tracks":
        slips = {t * spt + k for t in slips for k in range(spt)}
        spares *= spt
    total = len(tracks) * spt
    period = {
        "cylinder": s * spt,
        "cylinder-push": s * spt,
        "cylinder-front": s * spt,
        "cylinder-front-push": s * spt,
        "track": spt,
        "range": s * spt * g["spare_range"],
    }.get(kind, total)
    local = kind in ("cylinder", "cylinder-front", "track", "range")
    free: list[int] = []
    in_use: set[int] = set()
    for start in range(0, total, period):
        size = min(period, total - start)
        whole = size == period
        lead = spares if kind.startswith("cylinder-front") else 0
        mine = [p for p in range(start + (0 if local else lead), start + size) if p not in slips]
        if local and whole:
            mine = mine[len(mine) - (period - spares) :] if lead else mine[: period - spares]
        elif period < total or kind.startswith("cylinder"):
            end = start + size - (0 if lead or not whole else spares)
            mine = [p for p in mine if p < end]
        free += mine
        end = start + size - (0 if lead or not whole else spares)
        in_use |= set(range(start + lead, end)) if not local else set(range(start, start + size))
    if period == total and kind in ("zone", "zone-push", "zone-tracks"):
        keep = total - spares - (len(slips) if kind == "zone-push" else 0)
        free = free[:keep]
    out = []
    for p in free[z["reserved"] :]:
        t, k = divmod(p, spt)
        shift = sum(q < p // period * period for q in slips & in_use) if kind.startswith(("cylinder", "track")) else 0
        out.append((*tracks[t], k, (z["offset"] + angles[t] + k + shift) % spt))
    return out


def track_order(g: dict[str, Any], first: int, cylinders: int) -> list[tuple[int, int]]:
    """(cylinder within the zone, head) in the order of the tracks."""
    s, mapping, band = g["surfaces"], g["mapping"], g["band"]
    if not mapping.startswith("band"):
        from_ = {"serpentine": 0, "serpentine-absolute": first}.get(mapping)
        return [(c, s - 1 - h if from_ is not None and (c + from_) % 2 else h) for c in range(cylinders) for h in range(s)]
    out = []
    for n, start in enumerate(range(0, cylinders, band)):
        width = min(band, cylinders - start)
        for h in range(s):
            cs = range(width - 1, -1, -1) if h % 2 else range(width)
            head = s - 1 - h if mapping == "band-serpentine" and n % 2 else h
            out += [(start + c, head) for c in cs]
    return out


def made(data: dict[str, Any], room: int) -> Profile | None:
    """The drive, None if it has no room: a slip among the spares costs an LBN, too, where slips push on."""
    try:
        return from_toml(data, "small", "small") if room else None
    except Problem as e:
        assert "leave no room" in str(e) and room <= len(data["zones"][0]["slips"])
        return None


@settings(max_examples=250, deadline=None)
@given(drives())
def test_every_block_lies_where_walking_over_the_tracks_finds_it(data: dict[str, Any]) -> None:
    g = data["geometry"]
    expected = written_down(data)
    if len(expected) < 1:
        return
    drive = made(data, len(expected))
    if not drive:
        return
    n = min(len(expected), drive.facts[0])
    found = drive.locate(np.arange(n, dtype=np.uint64))
    if g["mapping"] in ("serpentine", "serpentine-absolute", "band", "band-serpentine"):
        assert found[:, 1:4].tolist() == [list(e[:3]) for e in expected[:n]]
    else:
        assert found[:, 1:5].tolist() == [list(e) for e in expected[:n]]
    # a slip among the spares costs an LBN too where slips push on; one in an incomplete range finds no spare
    slips = len(data["zones"][0]["slips"])
    assert len(expected) - slips <= drive.facts[0] <= len(expected) + (slips if g["sparing"] == "range" else 0)


@settings(max_examples=100, deadline=None)
@given(drives())
def test_runs_are_gapless_and_reach_as_far_as_they_can(data: dict[str, Any]) -> None:
    room = len(written_down(data))
    drive = made(data, room)
    if not drive:
        return
    at = drive.locate(np.arange(min(room, drive.facts[0]), dtype=np.uint64)).astype(int)
    for i, (zone, c, h, s, _, _, run) in enumerate(at[:-1]):
        follows = at[i + 1, :4].tolist() == [zone, c, h, s + 1]
        assert (run > 1) == follows


def test_a_replaced_sector_is_read_where_it_lies() -> None:
    zone = {"first_cylinder": 0, "last_cylinder": 3, "sectors_per_track": 10, "spares": 5, "defects": [[12, 77]]}
    drive = from_toml(profile({"surfaces": 2, "cylinders": 4, "sparing": "zone"}, [zone]), "d", "d")
    at = drive.locate(np.array([11, 12, 13], np.uint64))
    assert at[:, 1:4].tolist() == [[0, 1, 1], [3, 1, 7], [0, 1, 3]]
    assert at[:, 6].tolist() == [1, 1, 7]


def test_zones_follow_each_other() -> None:
    zones = [
        {"first_cylinder": 0, "last_cylinder": 9, "sectors_per_track": 20},
        {"first_cylinder": 12, "last_cylinder": 19, "sectors_per_track": 10, "reserved": 4},
    ]
    drive = from_toml(profile({"surfaces": 3, "cylinders": 20}, zones), "d", "d")
    assert drive.facts[0] == 600 + 240 - 4
    assert drive.locate(np.array([599, 600], np.uint64))[:, :4].tolist() == [[0, 9, 2, 19], [1, 12, 0, 4]]
    with pytest.raises(Exception, match="beyond"):
        drive.locate(np.array([836], np.uint64))
