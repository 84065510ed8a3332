# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random loads on random disks: every key of a profile is drawn from its range, and service times stay within physics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.drives import Profile
from headwaiter.drives.params import Param, models
from headwaiter.drives.profile import from_toml
from headwaiter.drives.validation import MeasuredRequests, replay
from headwaiter.engine.constants import ParamType

DISK = models()["disk"].params
LARGEST = 600  # sectors of a request


def units(p: Param) -> st.SearchStrategy[int]:
    """A value of a parameter in the blob's units: its default, an end of its range, any magnitude between."""
    if p.type == ParamType.FLAG:
        return st.integers(0, 1)
    if p.type == ParamType.CHOICE:
        return st.integers(0, len(p.choices) - 1)
    magnitude = st.floats(0, p.maximum.bit_length()).map(lambda bits: min(max(int(2**bits) - 1, p.minimum), p.maximum))
    usual = magnitude if p.required else st.just(p.default)
    return usual | magnitude | magnitude | st.sampled_from([p.minimum, p.maximum])


@st.composite
def curves(draw: st.DrawFn, key: str, least: int) -> list[list[float]]:
    distance, ms = DISK[key].columns
    distances = sorted(draw(st.sets(units(distance), min_size=least, max_size=6)))
    return [[d, max(draw(units(ms)), 1) / ms.scale] for d in distances]


@st.composite
def zones(draw: st.DrawFn, surfaces: int) -> list[dict[str, Any]]:
    rows, cylinder = [], 0
    columns = {c.key: c for c in DISK["zones"].columns}
    for _ in range(draw(st.integers(1, 3))):
        first = cylinder + draw(st.integers(0, 2))
        last = min(first + draw(st.integers(0, 1 << draw(st.integers(0, 20)))), 3_999_998)
        spt = draw(units(columns["sectors_per_track"]))
        places = (last - first + 1) * surfaces * spt
        row: dict[str, Any] = {"first_cylinder": first, "last_cylinder": last, "sectors_per_track": spt}
        for key in ("offset", "track_skew", "cylinder_skew"):
            row[key] = draw(units(columns[key]))
        for key in ("reserved", "spares"):
            row[key] = draw(st.just(0) | st.integers(0, max(1, min(spt, places // 4))))
        tracks = places // spt
        row["slips"] = sorted(draw(st.sets(st.integers(0, tracks - 1), max_size=2)))
        row["defects"] = [[draw(st.integers(0, tracks - 1)), draw(st.integers(0, tracks - 1))]] * draw(st.integers(0, 1))
        rows.append(row)
        cylinder = last + 1
    return rows


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A disk of any kind that its own checks let through."""
    data: dict[str, Any] = {"model": "disk"}
    for key, p in DISK.items():
        section, _, name = key.partition(".")
        if p.type in (ParamType.NUMBER, ParamType.FLAG, ParamType.CHOICE):
            data.setdefault(section, {})[name] = p.show(draw(units(p)))
    data["zones"] = draw(zones(data["geometry"]["surfaces"]))
    data["geometry"]["cylinders"] = data["zones"][-1]["last_cylinder"] + 1
    data["geometry"]["sectors"] = 0
    data["mechanics"]["seek"] = draw(curves("mechanics.seek", 1))
    if write := draw(curves("mechanics.seek_write", 0)):
        data["mechanics"]["seek_write"] = write
    data["cache"]["segments"] += data["cache"]["separate_write_segment"] and data["cache"]["segments"] == 1
    try:
        return from_toml(data, "random", "random")
    except Problem as e:  # spares and reserve may leave a zone without data; nothing else may be wrong
        assert "leave no room" in str(e), e
        for z in data["zones"]:
            z["spares"] = z["reserved"] = 0
            z["slips"] = []
        return from_toml(data, "random", "random")


def random_load(rng: np.random.Generator, capacity: int) -> MeasuredRequests:
    """Requests that go on from each other, stride, stay near each other, or jump."""
    n = int(rng.integers(1, 200))
    size = np.minimum(rng.integers(1, rng.choice([1, 8, 64, LARGEST]) + 1, n), capacity).astype(np.uint32)
    stride, near = int(rng.integers(0, 300)), int(rng.integers(1, 1 << 14))
    where = np.zeros(n, np.uint64)
    at = base = int(rng.integers(0, capacity))
    for i, kind in enumerate(rng.integers(0, 8, n)):
        if kind < 3:
            at += int(size[i - 1])
        elif kind < 5:
            at += stride
        else:
            at = base + int(rng.integers(0, near)) if kind < 7 else int(rng.integers(0, capacity))
        where[i] = at = min(at, capacity - int(size[i]))
    op = (rng.random(n) < rng.choice([0, 0.3, 0.6, 1])).astype(np.uint8)
    return MeasuredRequests(op, where, size, np.zeros(n, np.int64), rng.integers(0, rng.choice([1, 10**5, 10**7, 10**10]), n))


@dataclass
class Physics:
    """What a profile says about the time that things take, ns."""

    revolution: float
    sector_least: float
    sector_most: float
    move: float
    overhead: float
    block: tuple[float, float]  # of a read, of a write
    never_less: tuple[float, float]

    def __init__(self, drive: Profile) -> None:
        d = drive.data
        tracks = [z["sectors_per_track"] for z in d["zones"]]
        self.data, self.revolution = d, 60e9 / d["mechanics"]["rpm"]
        self.sector_least, self.sector_most = self.revolution / max(tracks), self.revolution / min(tracks)
        self.fewest, self.odd = min(tracks), sum(len(z["slips"]) + 2 * len(z["defects"]) for z in d["zones"])
        self.odd *= max(tracks) if d["geometry"]["sparing"] == "zone-tracks" else 1
        m = d["mechanics"]
        self.move = max(m["head_switch"] + abs(m["write_settle"]) + m["min_write_move"], 0) * 1e6
        self.move += max(self._longest(m["seek"]), self._longest(m.get("seek_write", m["seek"])))
        self.overhead = 3e6 * (sum(d["overhead"].values()) + sum(v for k, v in d["extra_disconnect"].items() if k != "enabled"))
        self.block = d["bus"]["block_read"] * 1e6, d["bus"]["block_write"] * 1e6
        o = d["overhead"]
        self.never_less = (o["command"] + o["read_completion"]) * 1e6, (o["command"] + o["write_completion"]) * 1e6

    def _longest(self, curve: list[list[float]]) -> float:
        points = [[0, 0.0], *curve]
        (d0, t0), (d1, t1) = points[-2], points[-1]
        beyond = t1 + max(0.0, (t1 - t0) / (d1 - d0)) * self.data["geometry"]["cylinders"]
        return 1e6 * float(max(beyond, *(t for _, t in points)))

    def access(self, n: int, write: bool) -> float:
        """The longest that the medium and the bus may need for n sectors."""
        bus = self.block[write]
        pieces = n // self.fewest + 2 + min(2 * self.odd, n)
        late = n > self.data["cache"]["segment"] or bus > self.sector_least
        dry = 0.0 if write else n * self.overhead
        return float(
            pieces * (self.move + 2 * self.revolution)
            + n * (self.sector_most + bus + 10)
            + dry
            + self.overhead
            + (n * (self.revolution + self.overhead) if late else 0)
        )

    def ahead(self) -> float:
        """The longest that reading ahead may keep the medium to itself."""
        n = self.data["read_ahead"]["least"]
        return float((n / self.fewest + 2) * (self.revolution + 1e3) + 2 * self.move + 2 * self.revolution)


def check(drive: Profile, load: MeasuredRequests, outstanding: int) -> None:
    times = replay(drive, load, outstanding)
    p = Physics(drive)
    sizes, writes = load.sectors.astype(int), load.op == 1
    block, fixed = np.where(writes, p.block[1], p.block[0]), np.where(writes, p.never_less[1], p.never_less[0])
    assert (times >= sizes * np.round(block) + np.round(fixed) - 2).all()
    access = np.array([p.access(int(n), bool(w)) for n, w in zip(sizes, writes, strict=True)])
    if drive.data["write"]["mode"] == "through" and outstanding == 1:
        most = access + p.ahead()
    else:  # whatever was asked for may be served first, and the cache written back in pieces
        most = access.sum() + (len(times) + writes.sum()) * p.ahead() + sizes[writes].sum() * (p.move + 2 * p.revolution)
    late = np.flatnonzero(times > most)
    assert not len(late), f"{times[late[0]] / 1e9} s, at most {np.broadcast_to(most, len(times))[late[0]] / 1e9}"
    if not writes.any():
        blocks = np.unique(np.concatenate([s + np.arange(n) for s, n in zip(load.sector.astype(int), sizes, strict=True)]))
        took = (times + load.think_ns).sum()
        assert len(blocks) * p.sector_least <= took + 1e3 * len(times)


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_service_times_are_within_physics(data: st.DataObject) -> None:
    drive = data.draw(profiles())
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    note(f"{drive.data}")
    for _ in range(10):
        check(drive, random_load(rng, drive.facts[0]), int(rng.choice([1, 1, 4, 32])))


def small(sectors_per_track: int, cylinders: int, defects: list[list[int]]) -> Profile:
    """A slow drive that buffers tracks from the head's arrival on, and gives up the bus whenever it has nothing to send."""
    return from_toml({
        "model": "disk",
        "geometry": {"surfaces": 1, "cylinders": cylinders},
        "mechanics": {"rpm": 100.0, "seek": [[1, 1e-6]]},
        "bus": {"hold_read": False},
        "cache": {"read_watermark": 1.0},
        "read_ahead": {"from_arrival": True},
        "zones": [{"first_cylinder": 0, "last_cylinder": cylinders - 1, "sectors_per_track": sectors_per_track,
                   "defects": defects}],
    }, "small", "small")  # fmt: skip


@pytest.mark.parametrize("drive", [
    pytest.param(small(3, 1, []), id="all of a track passes before its first block"),
    pytest.param(small(1, 3, [[0, 2]]), id="a block lies on another track"),
])  # fmt: skip
def test_buffering_from_arrival_takes_no_time_from_nowhere(drive: Profile) -> None:
    rng = np.random.default_rng(0)
    for outstanding in (1, 4, 32) * 40:
        times = replay(drive, random_load(rng, drive.facts[0]), outstanding)
        assert (times >= 0).all()
        assert (times < 1e13).all()


def test_what_a_drive_did_long_ago_does_not_matter() -> None:
    """Once its buffer holds other things and the platter stands as it did, the same requests take the same times."""
    turn_ns = 10_000_000
    drive = from_toml({
        "model": "disk",
        "geometry": {"surfaces": 2, "cylinders": 2000},
        "mechanics": {"rpm": 6000.0, "seek": [[1, 1.0], [1999, 10.0]]},
        "cache": {"segments": 8, "segment": 300},
        "read_ahead": {"mode": "free", "sectors": 200, "from_arrival": True},
        "zones": [{"first_cylinder": 0, "last_cylinder": 1999, "sectors_per_track": 250}],
    }, "buffered", "buffered")  # fmt: skip
    capacity = drive.facts[0]
    away = np.linspace(capacity // 2, capacity - 8, 16).astype(np.uint64)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        near = rng.integers(0, 1200, 200).astype(np.uint64)
        found = []
        for before in (0, 1, 3, 6):
            sector = np.concatenate([rng.integers(0, capacity // 4, before).astype(np.uint64), away, near])
            n = len(sector)
            think = np.zeros(n, np.int64)

            def times(sector: NDArray[np.uint64] = sector, n: int = n, think: NDArray[np.int64] = think) -> NDArray[np.int64]:
                load = MeasuredRequests(np.zeros(n, np.uint8), sector, np.full(n, 8, np.uint32), np.zeros(n, np.int64), think)
                return replay(drive, load)

            first = before + len(away)
            think[first] = 10**9 - int(times()[:first].sum()) % turn_ns
            found.append(times()[first:])
        assert all(np.array_equal(found[0], one) for one in found[1:]), seed
