# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drives: physics that every profile must obey, and arrays."""

from __future__ import annotations

import numpy as np
import pytest
from driveload import READ, WRITE, load_of, random_places
from hypothesis import given, settings
from hypothesis import strategies as st

from headwaiter.drives import Profile, find_drive
from headwaiter.drives.profile import from_toml
from headwaiter.drives.validation import MeasuredRequests, replay

ROTATING = [n for n in ("maxtor-20g", "deskstar-75gxp", "barracuda-80g", "cheetah-15k", "wd-re-4tb")]


def without_cache(drive: Profile) -> Profile:
    data = {**drive.data, "cache": {"enabled": False, "segment": 4096}, "write": {"mode": "through"}}
    return from_toml(data, drive.name, drive.name)


@pytest.mark.parametrize("name", ROTATING)
def test_a_zone_is_read_at_the_rate_of_its_geometry(name: str) -> None:
    """Sectors times revolutions, less one skew a track, within 1%."""
    drive = find_drive(name)
    zone = drive.data["zones"][0]
    spt, surfaces = zone["sectors_per_track"], drive.data["geometry"]["surfaces"]
    tracks = 400
    n = spt * tracks // 512
    total_ns = int(replay(drive, load_of(np.arange(n) * 512, 512))[5:].sum())
    rate = (n - 5) * 512 / total_ns
    if "band" in drive.data["geometry"].get("mapping", ""):
        band = drive.data["geometry"]["band"]
        skew = (zone["cylinder_skew"] * (band - 1) + zone["track_skew"]) / band
    else:
        skew = (zone["track_skew"] * (surfaces - 1) + zone["cylinder_skew"]) / surfaces
    revolution_ns = 60e9 / drive.data["mechanics"]["rpm"]
    assert rate == pytest.approx(spt / (revolution_ns * (1 + skew / spt)), rel=0.01)


@pytest.mark.parametrize("name", ROTATING)
def test_random_reads_take_overhead_mean_seek_and_half_a_revolution(name: str) -> None:
    """Within 3%; the mean seek is over the same cylinders, from the profile's own curve."""
    drive = find_drive(name)
    where = random_places(drive, 20_000, 1)
    cylinders = drive.locate(where)[:, 1].astype(np.int64)
    points = np.array([[0, 0.0], *drive.data["mechanics"]["seek"]])
    seek_ms = float(np.interp(np.abs(np.diff(cylinders)), points[:, 0], points[:, 1]).mean())
    overhead_ms = drive.data["overhead"]["read_miss_after_read"] + drive.data["bus"]["block_read"]
    found_ms = replay(drive, load_of(where, 1))[1:].mean() / 1e6
    assert found_ms == pytest.approx(overhead_ms + seek_ms + 30e3 / drive.data["mechanics"]["rpm"], rel=0.03)


@pytest.mark.parametrize("name", ["wd-re-4tb", "cheetah-15k"])
def test_a_command_queue_gains_half_as_much_again(name: str) -> None:
    drive = find_drive(name)
    load = load_of(random_places(drive, 5000, 8), 8)
    alone = replay(drive, load).sum() / len(load.op)
    queued = replay(drive, load, 32).sum() / len(load.op) / 32
    assert alone / queued >= 1.5
    fifo = from_toml({**drive.data, "queue": {"depth": 32, "policy": "fifo"}}, "fifo", "fifo")
    assert replay(fifo, load, 32).sum() / len(load.op) / 32 > queued * 1.4


@pytest.mark.parametrize(("aware", "first"), [(True, "other track"), (False, "same track")])
def test_the_queue_knows_that_a_read_after_a_write_switches_heads(aware: bool, first: str) -> None:
    """A write ends at 3.2 ms. On its track sector 35 passes at 3.5, on the other one sector 45 at 4.5; a switch takes 1 ms."""
    data = {
        "model": "disk",
        "geometry": {"surfaces": 2, "cylinders": 100},
        "read_ahead": {"mode": "none"},
        "mechanics": {"rpm": 6000, "head_switch": 1, "seek": [[1, 2.0], [99, 11.8]], "switch_after_write": aware},
        "queue": {"depth": 4},
        "zones": [{"first_cylinder": 0, "last_cylinder": 99, "sectors_per_track": 100}],
    }
    times = replay(from_toml(data, "d", "d"), load_of([30, 35, 145], 2, [WRITE, READ, READ]), 3) / 1e6
    assert times.tolist() == pytest.approx([3.2, 13.7, 4.7] if first == "other track" else [3.2, 3.7, 14.7], abs=1e-4)


@pytest.mark.parametrize("step", [4, 16, 64, 256])
@pytest.mark.parametrize("think_ns", [0, 100_000])
def test_a_reader_that_skips_sectors_keeps_up_with_the_platter(step: int, think_ns: int) -> None:
    """On a drive that buffers what passes. It goes at its own pace, or at that of the medium with its skews."""
    drive = find_drive("wd-re-4tb")
    n = 3000
    times = replay(drive, load_of(np.arange(n) * step + 100_000, 2, READ, think_ns))[10:]
    zone, revolution_ns = drive.data["zones"][0], 60e9 / drive.data["mechanics"]["rpm"]
    track_ns = revolution_ns * (1 + zone["track_skew"] / zone["sectors_per_track"]) / zone["sectors_per_track"]
    pace = max(step * track_ns, think_ns + 50_000)
    assert times.mean() + think_ns <= pace * 1.05
    assert times.max() < revolution_ns


def test_a_block_that_is_being_read_for_another_request_is_not_there_yet() -> None:
    """Block 10 has passed at 1.1 ms at the earliest; the request of 150 blocks needs two tracks."""
    data = {
        "model": "disk",
        "geometry": {"surfaces": 2, "cylinders": 100},
        "cache": {"segment": 512},
        "mechanics": {"rpm": 6000, "head_switch": 1, "seek": [[1, 2.0], [99, 11.8]]},
        "queue": {"depth": 4},
        "zones": [{"first_cylinder": 0, "last_cylinder": 99, "sectors_per_track": 100}],
    }
    load = MeasuredRequests(
        np.zeros(2, np.uint8),
        np.array([0, 10], np.uint64),
        np.array([150, 1], np.uint32),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
    )
    assert replay(from_toml(data, "d", "d"), load, 2)[1] >= 1_100_000


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([0.0, 0.05, 1.0]), st.booleans())
def test_the_queue_serves_what_takes_the_shortest_positioning(seed: int, age: float, near: bool) -> None:
    """It is chosen when the medium is free, by arithmetic on places, phases and the seek curve; age is taken off."""
    data = {
        "model": "disk",
        "geometry": {"surfaces": 2, "cylinders": 100},
        "read_ahead": {"mode": "none"},
        "cache": {"enabled": False},
        "mechanics": {"rpm": 6000, "head_switch": 1.05, "seek": [[1, 2.03], [99, 11.83]]},
        "queue": {"depth": 16, "age_weight": age},
        "zones": [{"first_cylinder": 0, "last_cylinder": 99, "sectors_per_track": 100}],
    }
    n = 16
    where = np.random.default_rng(seed).choice(400 if near else 20_000, n, replace=False).astype(np.uint64)
    done_ms = replay(from_toml(data, "d", "d"), load_of(where, 1), n) / 1e6
    at = {int(w): divmod(int(w), 100) for w in where}  # track, sector
    left, now, track = [int(w) for w in where[1:]], float(done_ms[0]), at[int(where[0])][0]

    def positioning(w: int) -> float:
        distance = abs(at[w][0] // 2 - track // 2)
        move = max(1.05 if at[w][0] % 2 != track % 2 else 0.0, 1.93 + distance / 10 if distance else 0)
        return round(float(move + (at[w][1] / 10 - now - move + 1e-5) % 10 - 1e-5), 4)

    while left:  # all have waited equally long, so that age makes no difference among them
        shortest = min(left, key=positioning)
        now += positioning(shortest) + 0.1
        assert done_ms[list(where).index(shortest)] == pytest.approx(now, abs=1e-3)
        track = at[shortest][0]
        left.remove(shortest)


def test_ageing_bounds_the_longest_wait() -> None:
    drive = find_drive("wd-re-4tb")
    load = load_of(random_places(drive, 8000, 8), 8)
    aged = from_toml({**drive.data, "queue": {"depth": 32, "age_weight": 0.1}}, "aged", "aged")
    bounded = from_toml({**drive.data, "queue": {"depth": 32, "max_wait": 300}}, "bounded", "bounded")
    longest = replay(drive, load, 32).max()
    assert replay(aged, load, 32).max() < longest
    assert replay(bounded, load, 32).max() < min(longest, 0.7e9)


@pytest.mark.parametrize("name", sorted(set(ROTATING) | {"sata-ssd", "nvme-ssd", "raid0-4x-barracuda-80g"}))
@pytest.mark.parametrize("depth", [1, 7, 32])
def test_every_request_is_served_and_twice_the_same(name: str, depth: int) -> None:
    drive = find_drive(name)
    rng = np.random.default_rng(depth)
    n = 3000
    where = np.where(rng.random(n) < 0.5, random_places(drive, n, 64, depth), (np.arange(n) * 64)).astype(np.uint64)
    load = MeasuredRequests(
        (rng.random(n) < 0.4).astype(np.uint8),
        where,
        rng.integers(1, 65, n).astype(np.uint32),
        np.zeros(n, np.int64),
        rng.integers(0, 3_000_000, n),
    )
    first = replay(drive, load, depth)
    assert (first > 0).all()
    assert (replay(drive, load, depth) == first).all()


def test_a_written_cache_hides_the_medium_until_it_is_full() -> None:
    drive = find_drive("barracuda-80g")
    times = replay(drive, load_of(random_places(drive, 400, 8), 8, WRITE)) / 1e6
    held = drive.data["write"]["extents"]
    assert times[: held // 2].max() < 0.3
    assert 2 < times[-200:].mean() < replay(without_cache(drive), load_of(random_places(drive, 400, 8), 8)).mean() / 1e6


def test_sequential_writes_through_the_cache_reach_the_rate_of_the_medium() -> None:
    drive = find_drive("barracuda-80g")
    n = 4000
    reads, writes = (replay(drive, load_of(np.arange(n) * 256, 256, op)).sum() for op in (READ, WRITE))
    assert writes == pytest.approx(reads, rel=0.05)


def test_writing_through_costs_a_revolution_each() -> None:
    drive = find_drive("cheetah-15k")
    times = replay(drive, load_of(np.arange(200) * 8, 8, WRITE)) / 1e6
    assert np.median(times) == pytest.approx(60e3 / drive.data["mechanics"]["rpm"], rel=0.01)


def constant(ms: float, sectors: int = 1 << 20) -> Profile:
    return from_toml({"model": "constant", "service_ms": ms, "sectors": sectors}, f"{ms} ms", "constant")


def array(kind: str, chunk: int, *members: Profile) -> Profile:
    names = {f"m{i}": m for i, m in enumerate(members)}
    data = {"model": "array", "array": {"kind": kind, "chunk": chunk, "drives": list(names)}}
    return from_toml(data, kind, kind, names.__getitem__)


def test_a_stripe_works_on_all_drives_at_once_and_on_one_in_turn() -> None:
    stripe = array("raid0", 64, constant(4), constant(6), constant(8))
    assert stripe.facts[0] == (1 << 20) // 64 * 64 * 3
    ms = replay(stripe, load_of([0, 64, 128, 192, 0], 64)) / 1e6
    assert ms.tolist() == [4, 6, 8, 4, 4]
    assert (replay(stripe, load_of([32], 64)) / 1e6).tolist() == [6]
    assert (replay(stripe, load_of([0], 64 * 9)) / 1e6).tolist() == [8]
    # two at once on one drive wait for each other; on two they do not
    assert (replay(stripe, load_of([0, 192], 64), 2) / 1e6).tolist() == [4, 8]
    assert (replay(stripe, load_of([0, 64], 64), 2) / 1e6).tolist() == [4, 6]


def test_joined_drives_follow_each_other() -> None:
    joined = array("jbod", 64, constant(4, 1000), constant(6, 500))
    assert joined.facts[0] == 1500
    assert (replay(joined, load_of([0, 999, 1000], 1)) / 1e6).tolist() == [4, 4, 6]
    assert (replay(joined, load_of([990], 20)) / 1e6).tolist() == [6]


def test_a_stripe_of_disks_reads_on_as_fast_as_they_do_together() -> None:
    one, four = find_drive("barracuda-80g"), find_drive("raid0-4x-barracuda-80g")
    n = 300
    alone = replay(one, load_of(np.arange(n) * 1024, 1024)).sum()
    together = replay(four, load_of(np.arange(n) * 4096, 4096)).sum()
    assert together == pytest.approx(alone, rel=0.1)


def test_flash_works_in_parallel_and_pays_for_garbage() -> None:
    drive = find_drive("sata-ssd")
    load = load_of(random_places(drive, 20_000, 8), 8)
    assert replay(drive, load).mean() > 6 * replay(drive, load, 32).mean() / 32
    small = {**drive.data, "write": {**drive.data["write"], "pool": 2000, "buffer": 64, "valid": 0.9}}
    times = replay(from_toml(small, "small", "small"), load_of(np.arange(20_000) * 32, 32, WRITE)) / 1e6
    assert times[-5000:].mean() > 2 * times[100:1500].mean()
    rested = load_of(np.arange(20_000) * 32, 32, WRITE)
    rested.think_ns[10_000] = 10**12
    again = replay(from_toml(small, "small", "small"), rested) / 1e6
    assert again[10_100:11_500].mean() == pytest.approx(times[100:1500].mean(), rel=0.05)
