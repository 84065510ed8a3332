# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A profile from a data sheet, worked out by hand: what is given counts, and guesses are those that are told."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command import run, told

from headwaiter.base.errors import Problem
from headwaiter.drives import find_drive
from headwaiter.drives.datasheet import DataSheet, from_datasheet
from headwaiter.drives.profile import from_toml
from headwaiter.drives.writing import toml_text

FULL = DataSheet(
    rpm=6000,
    capacity=20 * 10**9,
    seek_average=8,
    seek_track=1,
    seek_full=16,
    seek_average_write=9,
    rate_outer=50,
    rate_inner=25,
    surfaces=2,
    head_switch=0.9,
    cache_mib=4,
    interface_rate=100,
    queue_depth=8,
    write_cache=False,
)
BARE = DataSheet(rpm=6000, capacity=10 * 10**9, seek_average=8)


def test_everything_given() -> None:
    """A turn takes 10 ms, a switch with a write's settling 0.9 + 1, a move 1 + 1; a track is read in a turn and the skew."""
    data, notes = from_datasheet(FULL)
    assert data["geometry"]["surfaces"] == 2 and data["geometry"]["sectors"] == 20 * 10**9 // 512
    mechanics: dict[str, Any] = data["mechanics"]
    assert (mechanics["rpm"], mechanics["head_switch"], mechanics["write_settle"]) == (6000, 0.9, 1.0)
    assert mechanics["seek"][0] == [1, 1] and mechanics["seek"][-1][1] == pytest.approx(16, rel=0.001)
    outer, inner = data["zones"][0], data["zones"][-1]
    # 50 and 25 MB/s for 10 ms + 1.05 * 1.9 ms.
    assert (outer["sectors_per_track"], inner["sectors_per_track"]) == (1171, 586)
    # 1.05 * 1.9 of 10 ms and 1.05 * 2 of 10 ms of 1171 sectors, and one more.
    assert (outer["track_skew"], outer["cylinder_skew"]) == (234, 246)
    lengths = [z["sectors_per_track"] for z in data["zones"]]
    assert len(lengths) == 16 and lengths == sorted(lengths, reverse=True)
    assert data["zones"][0]["first_cylinder"] == 0 and inner["last_cylinder"] == data["geometry"]["cylinders"] - 1
    assert data["bus"] == {"block_read": 0.00512, "block_write": 0.00512}, "512 bytes at 100 MB/s"
    assert data["cache"] == {"segments": 16, "segment": 512} and data["read_ahead"] == {"mode": "free", "sectors": 256}
    assert (data["write"], data["queue"]) == ({"mode": "through"}, {"depth": 8})
    assert not any("guessed" in note for key, note in notes.items() if key not in ("overhead", "zones"))
    drive = from_toml(data, "d", "d")
    assert drive.facts == (20 * 10**9 // 512, 8, True)


def test_cylinders_are_as_many_as_the_capacity_needs() -> None:
    data, _ = from_datasheet(FULL)
    room = sum((z["last_cylinder"] - z["first_cylinder"] + 1) * z["sectors_per_track"] * 2 for z in data["zones"])
    assert 0 <= room - data["geometry"]["sectors"] < 0.01 * room


def test_guesses() -> None:
    """An eighth and twice the average seek; 20 MB/s outside for 10 GB, 52% of it inside; 2 MiB; 300 MB/s."""
    data, notes = from_datasheet(BARE)
    mechanics = data["mechanics"]
    assert mechanics["seek"][0] == [1, 1.0] and mechanics["seek"][-1][1] == pytest.approx(16, rel=0.001)
    assert (mechanics["head_switch"], mechanics["write_settle"], data["geometry"]["surfaces"]) == (1.0, 0.5, 4)
    # A switch with settling: 1.5 ms, 1.05 times of which a track's time is longer.
    track_ms = 10 + 1.05 * 1.5
    assert data["zones"][0]["sectors_per_track"] == round(20e6 / 512 * track_ms / 1000)
    assert data["zones"][-1]["sectors_per_track"] == round(10.4e6 / 512 * track_ms / 1000)
    assert data["cache"] == {"segments": 16, "segment": 256} and data["write"] == {"mode": "back", "limit": 2048}
    assert data["bus"]["block_read"] == pytest.approx(512 / 300e3, abs=1e-6) and data["queue"] == {"depth": 1}
    assert {key for key, note in notes.items() if note.startswith("guessed")} >= {
        "mechanics.seek",
        "mechanics.head_switch",
        "mechanics.write_settle",
        "zones",
        "geometry.surfaces",
        "cache.segments",
        "bus",
    }
    fast, _ = from_datasheet(DataSheet(rpm=10000, capacity=10 * 10**9, seek_average=5))
    assert fast["mechanics"]["write_settle"] == 0.4
    # A larger drive reads faster, but not in proportion: 80 GB, 20 * 8 ** 0.35.
    large, _ = from_datasheet(DataSheet(rpm=6000, capacity=80 * 10**9, seek_average=8))
    assert large["zones"][0]["sectors_per_track"] == round(20e6 * 8**0.35 / 512 * track_ms / 1000)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"seek_track": 8.0}, "must rise"),
        ({"seek_full": 8.0}, "must rise"),
        ({"rate_outer": 10.0, "rate_inner": 10.5}, "exceeds"),
    ],
)
def test_what_contradicts_itself(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(Problem, match=says):
        from_datasheet(DataSheet(rpm=6000, capacity=10 * 10**9, seek_average=8, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "size_bytes"), [("80GB", 80e9), ("0.5t", 5e11), ("512000000", 512e6), ("900m", 9e8), ("1000000kB", 1e9)]
)
def test_the_command_takes_sizes_as_data_sheets_have_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], size: str, size_bytes: float
) -> None:
    out = tmp_path / "d.toml"
    status, _, err = run(
        capfd,
        "drives",
        "new",
        "--rpm",
        5400,
        "--capacity",
        size,
        "--seek-average",
        9,
        "--seek-track",
        1.5,
        "--head-switch",
        1.25,
        "--surfaces",
        1,
        "--interface",
        200,
        "--queue-depth",
        7,
        "--no-write-cache",
        "--rate-outer",
        30,
        "--rate-inner",
        30,
        "-o",
        out,
    )
    assert status == 0 and "mechanics.seek: guessed: full stroke" in err
    data = tomllib.loads(out.read_text())
    assert data["geometry"]["sectors"] == int(size_bytes) // 512
    assert (data["mechanics"]["head_switch"], data["bus"]["block_read"], data["queue"]["depth"], data["write"]["mode"]) == (
        1.25,
        0.00256,
        7,
        "through",
    )
    assert data["geometry"]["surfaces"] == 1 and data["mechanics"]["seek"][0] == [1, 1.5]


# --- profiles as text ---


def test_text_is_read_as_it_was() -> None:
    long = [[i, i / 7] for i in range(100)]
    data = {
        "model": "disk",
        "flag": True,
        "other": False,
        "section": {"pi": 3.14159265, "name": 'a "b" \\c', "long": long},
        "rows": [{"a": 1}, {"a": 2, "b": [1, 2]}],
    }
    text = toml_text(data, "one\ntwo", {"section": "of it", "section.pi": "ratio"})
    assert text.startswith("# one\n# two\n\n") and "pi = 3.14159265  # ratio\n" in text and "# of it\n[section]\n" in text
    again = tomllib.loads(text)
    assert again["section"].pop("long") == [[i, float(f"{i / 7:.9g}")] for i in range(100)]
    data["section"].pop("long")  # type: ignore[attr-defined]
    assert again == data
    assert max(map(len, text.splitlines())) <= 112


def test_values_are_rounded_to_what_the_model_counts_in() -> None:
    """Nanoseconds: a head switch of 1.0000016 ms is 1,000,002 of them. Parameters follow a head of 16 bytes."""
    data, _ = from_datasheet(FULL)
    data["mechanics"]["head_switch"] = 1.0000016
    drive = from_toml(data, "d", "d")
    at = 16 + 8 * list(drive.model.params).index("mechanics.head_switch")
    assert int.from_bytes(drive.blob[at : at + 8], sys.byteorder) == 1_000_002


def test_a_bundled_profile_as_parameters_and_facts(capfd: pytest.CaptureFixture[str]) -> None:
    depths = {d["drive"]: d["queue_depth"] for d in told(capfd, "drives")["drives"]}
    assert (depths["barracuda-80g"], depths["wd-re-4tb"]) == (1, 32)
    drive = find_drive("barracuda-80g")
    assert drive.facts[2] is True and drive.positions[0] == (0, 0)
    assert drive.positions[-1][0] > drive.facts[0] // 2, "the longest way is told, too"
    params = drive.model.params
    assert params["mechanics.rpm"].bounds.split("..")[0] != params["mechanics.rpm"].bounds.split("..")[1]
    low, high = map(float, params["mechanics.head_switch"].bounds.split(".."))
    assert low < high
