# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DiskSim's parameters as a profile: every key to its place, and the rules that measured drives taught, by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, run, write

from headwaiter.drives import load
from headwaiter.drives.convert import convert, falls, lee_curve

# Every key has a value of its own, so that none can stand in another's place.
EVERY_KEY = """
disksim_bus BUS1 {{ type = 1, Read block transfer time = 0.31, Write block transfer time = 0.32 }}
disksim_disk SPARE {{ Model = source nothing.parv }}
disksim_disk DISK {{
   Model = dm_disk M {{
      Number of data surfaces = 3, Number of cylinders = 40,
      Layout Model = dm_layout_g1 {{
         LBN-to-PBN mapping scheme = 1, Sparing scheme used = 8, Rangesize for sparing = 5, Skew units = sectors,
         Zones = [
            dm_layout_g1_zone {{ First cylinder number = 0, Last cylinder number = 29, Blocks per track = 60,
               Offset of first block = 11.0, Empty space at zone front = 2, Skew for track switch = 13.0,
               Skew for cylinder switch = 17.0, Number of spares = 4, slips = [9, 3, 9], defects = [21, 22, 23, 24] }},
            dm_layout_g1_zone {{ First cylinder number = 30, Last cylinder number = 49, Blocks per track = 50,
               Skew for track switch = 12.5, Skew for cylinder switch = 16.0 }} ] }},
      Mechanical Model = dm_mech_g1 {{ Seek type = constant, Constant seek time = 4.0, Rotation speed (in rpms) = 6000,
         Head switch time = 0.5, Add. write settling delay = 0.25 }}
   }},
   Scheduler = disksim_ioqueue {{ Scheduling policy = {policy} }},
   Bulk sector transfer time = 0.15, Time scale for overheads = 2.0, Minimum seek delay = 0.07,
   Per-request overhead time = 0.01, Read hit over. after read = 0.02, Read hit over. after write = 0.03,
   Read miss over. after read = 0.14, Read miss over. after write = 0.15, Write hit over. after read = 0.06,
   Write hit over. after write = 0.07, Write miss over. after read = 0.28, Write miss over. after write = 0.09,
   Read completion overhead = 0.21, Write completion overhead = 0.22, Data preparation overhead = 0.23,
   First reselect overhead = 0.24, Other reselect overhead = 0.25, Read disconnect afterread = 0.26,
   Read disconnect afterwrite = 0.27, Write disconnect overhead = 0.29,
   Extra write disconnect = 1, Extradisc command overhead = 0.41, Extradisc disconnect overhead = 0.42,
   Extradisc 2nd disconnect overhead = 0.43, Extradisc inter-disconnect delay = 0.44, Extradisc seek delta = 0.45,
   Hold bus entire read xfer = 0, Hold bus entire write xfer = 1, Never disconnect = 1,
   Enable caching in buffer = 1, Number of buffer segments = 7, Segment size (in blks) = 128,
   Use separate write segment = 1, Allow read hits on write data = 0, Allow almost read hits = 1,
   Allow sneaky full read hits = 0, High (read) water mark = 0.6, Low (write) water mark = 0.4,
   Buffer continuous read = 1, Maximum read-ahead (blks) = 33, Minimum read-ahead (blks) = 19,
   Read-ahead on idle hit = 1, Stop prefetch in sector = 0, Read-ahead over requested = -1,
   Immediate buffer read = 1, Read any free blocks = 1, Immediate buffer write = 1, Combine seq writes = 0,
   Fast write level = 1, Max queue length = 5, Preseeking level = 2
}}
instantiate [ disk0 ] as DISK
topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_disk disk0 [] ] ]
"""


def params(folder: Path, *changes: tuple[str, str], policy: int = 13) -> Path:
    text = EVERY_KEY.format(policy=policy)
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    write(folder / "nothing.parv", "dm_disk M { }")
    return write(folder / "a.parv", text)


def profile(folder: Path, *changes: tuple[str, str], as_disksim: bool = False, policy: int = 13) -> dict[str, Any]:
    return convert(params(folder, *changes, policy=policy), as_disksim)[0]


def test_every_key_has_its_place(tmp_path: Path) -> None:
    data, name = convert(params(tmp_path), as_disksim=True)
    assert name == "DISK"
    assert data == {
        "model": "disk",
        "geometry": {"surfaces": 3, "cylinders": 50, "mapping": "serpentine", "sparing": "range", "spare_range": 5},
        "mechanics": {"rpm": 6000, "head_switch": 0.5, "write_settle": 0.25, "min_write_move": 0.07, "switch_after_write": False,
                      "seek": [[1, 4.0], [2, 4.0]]},
        "overhead": {
            "command": 0.02, "read_hit_after_read": 0.04, "read_hit_after_write": 0.06, "read_miss_after_read": 0.28,
            "read_miss_after_write": 0.3, "write_hit_after_read": 0.12, "write_hit_after_write": 0.14,
            "write_miss_after_read": 0.56, "write_miss_after_write": 0.18, "read_completion": 0.42, "write_completion": 0.44,
            "data_preparation": 0.46, "reselect": 0.48, "reselect_other": 0.5, "read_disconnect_after_read": 0.52,
            "read_disconnect_after_write": 0.54, "write_disconnect": 0.58},
        "extra_disconnect": {"enabled": True, "command": 0.82, "disconnect": 0.84, "disconnect_again": 0.86, "delay": 0.44,
                             "seek_delta": 0.9},
        "bus": {"block_read": 0.31, "block_write": 0.32, "hold_read": False, "hold_write": True, "never_disconnect": True},
        "cache": {"enabled": True, "segments": 7, "segment": 128, "separate_write_segment": True, "read_hits_on_written": False,
                  "almost_hits": True, "partial_hits_at_once": True, "hits_while_busy": False, "read_watermark": 0.6,
                  "watermark_by_request": True, "write_watermark": 0.4, "direct": True},
        "read_ahead": {"mode": "track", "sectors": 33, "least": 19, "requested": "overwrite", "on_idle_hit": True,
                       "stop_in_sector": False, "from_arrival": False, "sequential": False},
        "write": {"mode": "immediate", "buffered_first": False, "zero_latency": False, "combine": False},
        "queue": {"depth": 5, "policy": "sptf", "preseek": 2},
        "zones": [
            {"first_cylinder": 0, "last_cylinder": 29, "sectors_per_track": 60, "offset": 11, "reserved": 2, "track_skew": 13,
             "cylinder_skew": 17, "spares": 4, "slips": [3, 9], "defects": [[21, 22], [23, 24]]},
            {"first_cylinder": 30, "last_cylinder": 49, "sectors_per_track": 50, "offset": 0, "reserved": 0, "track_skew": 12,
             "cylinder_skew": 16, "spares": 0}],
    }  # fmt: skip


def test_what_measured_drives_do_otherwise(tmp_path: Path) -> None:
    """In these keys and no other. The head switch: 12 of 50 sectors of 10 ms are the least skew, 2.167 ms of 13 of 60 the other;
    less 0.25 ms of settling, which is less than a move by one cylinder, 4 ms."""
    ours, theirs = profile(tmp_path), profile(tmp_path, as_disksim=True)
    differ = {(section, key): value for section in ours if isinstance(ours[section], dict)
              for key, value in ours[section].items() if value != theirs[section].get(key)}  # fmt: skip
    assert differ == {
        ("mechanics", "head_switch"): pytest.approx(13 / 60 * 10 - 0.25, abs=1e-6), ("mechanics", "switch_after_write"): True,
        ("overhead", "read_miss_after_write"): 0.28, ("overhead", "write_miss_after_write"): 0.28,
        ("read_ahead", "requested"): "drop", ("read_ahead", "from_arrival"): True,
        ("write", "buffered_first"): True, ("write", "zero_latency"): True,
    }  # fmt: skip
    assert ours["zones"] == theirs["zones"]


@pytest.mark.parametrize(
    ("given", "one_cylinder", "settle", "expected"),
    [
        ("0.03", "1.1", "0.2", 1.1),  # as long as a move by one cylinder
        ("0.03", "9.0", "0.2", 13 / 60 * 10 - 0.2),  # but no longer than the skew, less a write's settling
        ("0.03", "9.0", "-0.7", 13 / 60 * 10),  # a negative one is none
        ("2.5", "1.1", "0.2", 2.5),
        ("3.0", "9.0", "0.2", 3.0),  # and no shorter than what is given
    ],
)
def test_rule_1_how_long_a_head_switch_takes(tmp_path: Path, given: str, one_cylinder: str, settle: str, expected: float) -> None:
    changes = (
        ("Constant seek time = 4.0", f"Constant seek time = {one_cylinder}"),
        ("Head switch time = 0.5", f"Head switch time = {given}"),
        ("settling delay = 0.25", f"settling delay = {settle}"),
    )
    ours, theirs = (profile(tmp_path, *changes, as_disksim=flag)["mechanics"] for flag in (False, True))
    assert ours["head_switch"] == pytest.approx(expected, abs=1e-6)
    assert theirs["head_switch"] == float(given)
    # Rule 2: a negative settling time of writes is none.
    assert (ours["write_settle"], theirs["write_settle"]) == (max(0.0, float(settle)), float(settle))


@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [
        ((0.5, 0.2), (0.9, 0.1), (0.2, 0.2, 0.9, 0.2)),
        ((0.2, 0.5), (0.1, 0.9), (0.2, 0.2, 0.2, 0.9)),
        ((0.4, 0.3), (0.6, 0.5), (0.3, 0.3, 0.6, 0.5)),
    ],
)
def test_rule_4_overheads_of_misses(
    tmp_path: Path, read: tuple[float, float], written: tuple[float, float], expected: tuple[float, ...]
) -> None:
    """A read's is the lesser of the two; a write's at least that."""
    keys = [f"{op}_miss_after_{last}" for op in ("read", "write") for last in ("read", "write")]
    changes = [("Time scale for overheads = 2.0", "Time scale for overheads = 1.0")]
    for old, new in zip(("Read miss over. after read = 0.14", "Read miss over. after write = 0.15",
                         "Write miss over. after read = 0.28", "Write miss over. after write = 0.09"), (*read, *written),
                        strict=True):  # fmt: skip
        changes.append((old, f"{old.partition('=')[0]}= {new}"))
    assert tuple(profile(tmp_path, *changes)["overhead"][key] for key in keys) == expected
    assert tuple(profile(tmp_path, *changes, as_disksim=True)["overhead"][key] for key in keys) == (*read, *written)


def test_choices(tmp_path: Path) -> None:
    def found(old: str, new: object, section: str, key: str, **how: bool) -> object:
        return profile(tmp_path, (old, f"{old.partition('=')[0]}= {new}"), **how)[section][key]

    old = "Buffer continuous read = 1"
    assert [found(old, n, "read_ahead", "mode") for n in range(5)] == ["none", "track", "cylinder", "free", "whole-track"]
    old = "mapping scheme = 1"
    assert [found(old, n, "geometry", "mapping") for n in range(3)] == ["cylinder", "serpentine", "serpentine-absolute"]
    old = "Read-ahead over requested = -1"
    assert [found(old, n, "read_ahead", "requested") for n in (-1, 0, 1)] == ["drop", "keep", "overwrite"]
    old = "Sparing scheme used = 8"
    assert [found(old, n, "geometry", "sparing") for n in (0, 2, 3, 9)] == ["none", "cylinder", "track", "zone"]
    assert [found("Fast write level = 1", n, "write", "mode") for n in (0, 1, 2)] == ["through", "immediate", "immediate"]
    assert [found("Preseeking level = 2", n, "queue", "preseek") for n in (0, 1, 2, 9)] == [0, 1, 2, 2]
    assert [found("Max queue length = 5", n, "queue", "depth") for n in (0, 64, 5000)] == [1, 64, 1024]
    assert [profile(tmp_path, policy=n)["queue"]["policy"] for n in (1, 2, 8, 16, 27)] == ["fifo", "fifo", "sptf", "sptf", "sptf"]
    assert not found("Immediate buffer write = 1", 0, "write", "zero_latency")
    assert not found("Immediate buffer read = 1", 0, "read_ahead", "from_arrival")
    assert not found("Read any free blocks = 1", 0, "read_ahead", "from_arrival")
    whole = ("Buffer continuous read = 1", "Buffer continuous read = 4")
    assert profile(tmp_path, whole)["read_ahead"]["sectors"] == 33
    assert profile(tmp_path, whole, as_disksim=True)["read_ahead"]["sectors"] == 0


def test_a_whole_track_mode_without_room_for_a_track_reads_ahead_of_sequences(tmp_path: Path) -> None:
    """Tracks of 60 and of 50 sectors, seven segments: of 49 neither has room. 50 are enough, and so is any other mode."""
    whole = ("Buffer continuous read = 1", "Buffer continuous read = 4")

    def buffer(sectors: int, *changes: tuple[str, str], as_disksim: bool = False) -> tuple[int, int, bool]:
        data = profile(tmp_path, ("Segment size (in blks) = 128", f"Segment size (in blks) = {sectors}"), *changes,
                       as_disksim=as_disksim)  # fmt: skip
        return data["cache"]["segments"], data["cache"]["segment"], data["read_ahead"]["sequential"]

    assert buffer(49, whole) == (1, 343, True)
    assert buffer(50, whole) == (7, 50, False)
    assert buffer(49) == (7, 49, False)
    assert buffer(49, whole, as_disksim=True) == (7, 49, False)


def test_skews_in_turns(tmp_path: Path) -> None:
    """A quarter of a turn of 60 sectors, and a turn and a tenth."""
    zone = profile(
        tmp_path,
        ("Skew units = sectors", "Skew units = revolutions"),
        ("track switch = 13.0", "track switch = 0.25"),
        ("cylinder switch = 17.0", "cylinder switch = 1.1"),
        ("first block = 11.0", "first block = 0.5"),
    )["zones"][0]
    assert (zone["track_skew"], zone["cylinder_skew"], zone["offset"]) == (15, 6, 30)


def test_defaults_of_what_is_not_said(tmp_path: Path) -> None:
    text = EVERY_KEY.format(policy=1)
    for key in (
        "Bulk sector transfer time = 0.15, ",
        "Time scale for overheads = 2.0, ",
        "Stop prefetch in sector = 0, ",
        "Read-ahead over requested = -1,",
        "Combine seq writes = 0,",
        "Minimum seek delay = 0.07,",
    ):
        assert key in text
        text = text.replace(key, "")
    data = convert(write(tmp_path / "a.parv", text.replace("source nothing.parv", "dm_disk N { }")))[0]
    assert data["overhead"]["command"] == 0.01 and data["mechanics"]["min_write_move"] == 0
    assert data["read_ahead"]["requested"] == "overwrite" and not data["read_ahead"]["stop_in_sector"]
    assert data["write"]["combine"]


def test_fractions_of_whole_numbers_are_cut(tmp_path: Path) -> None:
    assert profile(tmp_path, ("Segment size (in blks) = 128", "Segment size (in blks) = 128.9"))["cache"]["segment"] == 128


# --- seek curves ---


def seeks(folder: Path, kind: str, **more: list[list[float]]) -> dict[int, float]:
    mechanics = profile(
        folder,
        ("Seek type = constant, Constant seek time = 4.0", f"Seek type = {kind}"),
        ("Number of cylinders = 40", "Number of cylinders = 901"),
    )["mechanics"]
    assert mechanics.get("seek_write") == more.get("writes")
    return {int(d): t for d, t in mechanics["seek"]}


def test_a_curve_that_was_measured(tmp_path: Path) -> None:
    """Distance, reads, their deviation, writes. The way to where one is takes no time."""
    points = "0, 0.0, 0, 0.1\n1, 1.5, 9, 2.5\n10, 3.25, 9, 4.25 # far\n\n900 8.0 9 9.5\n"
    write(tmp_path / "s.seek", f"Seek distances measured: 4\n{points}")
    kind = "extracted, Full seek curve = s.seek"
    assert seeks(tmp_path, kind, writes=[[1, 2.5], [10, 4.25], [900, 9.5]]) == {1: 1.5, 10: 3.25, 900: 8.0}
    write(tmp_path / "s.seek", "1, 1.5\n10, 3.25\n")
    assert seeks(tmp_path, kind) == {1: 1.5, 10: 3.25}


def test_ruemmler_and_wilkes_curve(tmp_path: Path) -> None:
    """Below 300 cylinders 2 + 0.5√d, from there 8 + 0.01d; the first ten as measured; one cylinder by itself."""
    ten = "First ten seek times = [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.05]"
    found = seeks(tmp_path, f"hplplus10, HPL seek equation values = [300, 2.0, 0.5, 8.0, 0.01, -1], {ten}")
    assert [found[d] for d in (1, 9, 10)] == [1.1, 1.9, 2.05]
    assert (found[100], found[299]) == pytest.approx((7.0, 2 + 0.5 * math.sqrt(299)))
    assert (found[300], found[900]) == pytest.approx((11.0, 17.0))
    plain = seeks(tmp_path, "hpl, HPL seek equation values = [300, 2.0, 0.5, 8.0, 0.01, 1.25]")
    assert (plain[1], plain[4]) == (1.25, 3.0)
    assert seeks(tmp_path, "hpl, HPL seek equation values = [300, 2.0, 0.5, 8.0, 0.01, -1]")[1] == 2.5


def test_three_points(tmp_path: Path) -> None:
    three = "Single cylinder seek time = 1.0, Average seek time = 8.0, Full strobe seek time = 15.0"
    assert seeks(tmp_path, f"linear, {three}") == {1: 1.0, 300: 8.0, 900: 15.0}
    curve = seeks(tmp_path, f"curve, {three}")
    assert curve[1] == 1.0 and curve[900] == pytest.approx(15.0, abs=0.05)


@pytest.mark.parametrize(("one", "average", "full"), [(1.0, 8.0, 15.0), (0.8, 8.5, 18.0), (2.0, 9.0, 20.0)])
def test_lees_curve_has_the_average_that_it_is_given(one: float, average: float, full: float) -> None:
    """Over all pairs of 20,000 cylinders, the distance d is as likely as n - d; and it rises."""
    n = 20_000
    points = np.array(lee_curve(n, one, average, full))
    d = np.arange(1, n)
    times = np.interp(d, points[:, 0], points[:, 1])
    assert (times * (n - d)).sum() / (n - d).sum() == pytest.approx(average, rel=0.01)
    assert (points[0].tolist(), points[-1, 1]) == ([1, one], pytest.approx(full, rel=0.001))
    assert (np.diff(times) >= 0).all()


def test_where_a_curve_falls() -> None:
    def said(*points: list[float]) -> list[str]:
        return falls({"mechanics": {"seek": [[1, 1.0], [9, 2.0]], "seek_write": list(points)}})

    assert said([1, 1.0], [2, 1.0], [9, 3.0]) == []
    assert said([1, 3.0], [2, 2.5], [5, 4.0], [9, 1.5], [20, 9.0]) == [
        "mechanics.seek_write: falls at 2 of 5 points, most from 4 ms at 5 cylinders to 1.5 ms at 9"
    ]


# --- the command ---


def test_import(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, out = params(tmp_path), tmp_path / "d.toml"
    capacities = []
    for args, settle in (((), True), (("--as-disksim",), False)):
        assert good(capfd, "drives", "import", path, "-o", out, *args) == ""
        drive = load(out)
        assert drive.data["mechanics"]["switch_after_write"] is settle
        assert drive.data["zones"][0]["slips"] == [3, 9] and drive.data["overhead"]["write_disconnect"] == 0.58
        capacities.append(drive.facts[0])
    assert capacities[0] == capacities[1] > 0
    write(tmp_path / "s.seek", "1, 3.0\n9, 2.0\n")
    falling = params(tmp_path, ("Seek type = constant", "Seek type = extracted, Full seek curve = s.seek"))
    status, _, err = run(capfd, "drives", "import", falling, "-o", out)
    assert status == 0 and "warning: mechanics.seek: falls at 1 of 2 points" in err


def test_included_files_are_beside_the_file(tmp_path: Path) -> None:
    inner = tmp_path / "sub"
    inner.mkdir()
    (inner / "model.inc").write_text("dm_disk M { Number of data surfaces = 1 }")
    path = write(inner / "a.parv", "disksim_disk D { Model = source model.inc }")
    with pytest.raises(Exception, match="Layout Model: is missing"):
        convert(path)
