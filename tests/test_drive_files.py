# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What drives are read from and written to: profiles, parameter files, measured traces, and what is said about bad ones."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driveload import load_of, random_places
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headwaiter.base.errors import Problem
from headwaiter.cli.drives import _value
from headwaiter.drives import bundled, find_drive, load
from headwaiter.drives.convert import convert
from headwaiter.drives.params import model, models
from headwaiter.drives.profile import from_toml
from headwaiter.drives.validation import demerit, read_trace, replay
from headwaiter.engine.constants import ParamType


def test_demerit_is_the_distance_between_shifted_distributions() -> None:
    times = np.random.default_rng(3).exponential(5.0, 5000)
    assert demerit(times, times) == 0
    assert demerit(times, times + 0.25) == pytest.approx(0.25)
    assert demerit(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == 0


@pytest.mark.parametrize("path", bundled().values(), ids=lambda p: p.stem)
def test_every_value_of_a_bundled_drive_names_its_source(path: Path) -> None:
    """A section, or each of its values, has a comment; and the head of the file says where the facts are from."""
    text = path.read_text()
    assert text.startswith("# ")
    load(path)
    if 'model = "array"' in text:
        return
    for block in text.split("\n\n")[2:]:
        lines = block.strip().splitlines()
        if lines[0].startswith("[[") or not block.strip():
            continue
        explained = lines[0].startswith("#")
        values = [line for line in lines if "=" in line and not line.startswith(("#", "[", " "))]
        assert explained or all("#" in v or lines[lines.index(v) - 1].startswith("#") for v in values), block


GOOD = """
model = "disk"
[geometry]
surfaces = 2
cylinders = 20
[mechanics]
rpm = 7200
seek = [[1, 1.0], [10, 3.0]]
[[zones]]
first_cylinder = 0
last_cylinder = 9
sectors_per_track = 100
[[zones]]
first_cylinder = 10
last_cylinder = 19
sectors_per_track = 80
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", ""),
        ('model = "disk"', "", "model: is missing"),
        ('model = "disk"', 'model = "drum"', "model: no such drive model 'drum'"),
        ("rpm = 7200", "rpm = 0", "mechanics.rpm: must be at least 100"),
        ("rpm = 7200", "rpm = -1", "mechanics.rpm: must be at least 100"),
        ("rpm = 7200", 'rpm = "fast"', "mechanics.rpm: must be a number"),
        ("rpm = 7200", "rpm = nan", "mechanics.rpm: must be a number"),
        ("rpm = 7200", "rpm = 1e300", "mechanics.rpm: is out of range"),
        ("rpm = 7200", "", "mechanics.rpm: is missing"),
        ("rpm = 7200", "rpm = 7200\nrmp = 1", "mechanics.rmp: unknown key"),
        ("surfaces = 2", "surfaces = 2.5", "geometry.surfaces: must be a whole number"),
        ("surfaces = 2", 'surfaces = 2\nmapping = "spiral"', "geometry.mapping: must be one of cylinder"),
        ("surfaces = 2", "surfaces = 2\nsectors = 100000", "geometry.sectors: is more than the zones hold"),
        ("[geometry]", "[geometri]", "geometry.surfaces: is missing"),
        ("[geometry]", "[cash]\nx = 1\n[geometry]", "cash: unknown key"),
        ("first_cylinder = 10", "first_cylinder = 9", "zones[1].first_cylinder: overlaps the zone before it"),
        ("last_cylinder = 19", "last_cylinder = 9", "zones[1].last_cylinder: lies before first_cylinder"),
        ("last_cylinder = 19", "last_cylinder = 20", "zones[1].last_cylinder: lies beyond geometry.cylinders"),
        ("last_cylinder = 19", "", "zones[1].last_cylinder: is missing"),
        ("sectors_per_track = 80", "sectors_per_track = 0", "zones[1].sectors_per_track: must be at least 1"),
        ("sectors_per_track = 80", "sectors_per_track = 80\nslips = [1, -1]", "zones.slips[1].place: must be at least 0"),
        ("sectors_per_track = 80", "sectors_per_track = 80\nslips = [1600]", "zones.slips[0].place: lies beyond the zone"),
        ("sectors_per_track = 80", "sectors_per_track = 80\nslips = 3", "zones[1].slips: must be a list"),
        ("sectors_per_track = 80", "sectors_per_track = 80\nspare = 1", "zones[1].spare: unknown key"),
        ("sectors_per_track = 80", "sectors_per_track = 80\nreserved = 1600", "zones[1]: reserved sectors and spares leave"),
        ("[10, 3.0]", "[1, 3.0]", "mechanics.seek[1].cylinders: must increase"),
        ("[10, 3.0]", "[10, 0]", "mechanics.seek[1].ms: must not be 0"),
        ("[10, 3.0]", "[10]", "mechanics.seek[1]: must have 2 values"),
        ("[[1, 1.0], [10, 3.0]]", "[]", "mechanics.seek: must have a number of rows of at least 1"),
        ("rpm = 7200", "rpm = = 1", "not TOML"),
    ],
)
def test_a_malformed_profile_is_told_by_its_key(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = tmp_path / "drive.toml"
    file.write_text(GOOD.replace(old, new, 1) if old else GOOD)
    if not says:
        assert load(file).facts[0] == 3600
        return
    with pytest.raises(Problem) as e:
        load(file)
    assert str(e.value).startswith(f"{file}: ")
    assert says in str(e.value)
    assert "\n" not in str(e.value)


def test_a_profile_without_zones_is_told() -> None:
    data = tomllib.loads(GOOD)
    del data["zones"]
    with pytest.raises(Problem, match=r"x\.toml: zones: is missing"):
        from_toml(data, "x", "x.toml")


PARV = """
disksim_bus BUS1 { type = 1, Read block transfer time = 0.1, Write block transfer time = 0.2 } # a comment
disksim_disk DISK {
   Model = dm_disk M {
      Number of data surfaces = 2, Number of cylinders = 100,
      Layout Model = dm_layout_g1 {
         LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0,
         Zones = [ dm_layout_g1_zone { First cylinder number = 0, Last cylinder number = 99, Blocks per track = 50,
            Skew for track switch = 7.0, Skew for cylinder switch = 9.0, slips = [], defects = [] } ] },
      Mechanical Model = dm_mech_g1 { Seek type = constant, Constant seek time = 4.0, Rotation speed (in rpms) = 6000,
         Head switch time = 0.5 }
   },
   Bulk sector transfer time = 0.15, Enable caching in buffer = 1, Number of buffer segments = 2,
   Segment size (in blks) = 64, Buffer continuous read = 3, Fast write level = 1
}
instantiate [ disk0 ] as DISK
topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_disk disk0 [] ] ]
"""


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "headwaiter", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_import_writes_a_profile_that_loads(tmp_path: Path) -> None:
    (tmp_path / "a.parv").write_text(PARV)
    out = tmp_path / "a.toml"
    done = run("drives", "import", tmp_path / "a.parv", "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    drive = load(out)
    assert drive.facts[0] == 100 * 100
    assert drive.data["bus"] == {
        "block_read": 0.15,
        "block_write": 0.2,
        "hold_read": False,
        "hold_write": False,
        "never_disconnect": False,
    }
    assert drive.data["write"]["mode"] == "immediate"
    assert drive.data["read_ahead"]["mode"] == "free"
    # a head switch takes as long as a one-cylinder move, but no longer than the skew: 7 of 50 sectors of 10 ms
    assert drive.data["mechanics"]["head_switch"] == pytest.approx(1.4)


def test_import_takes_parameters_as_measured_drives_do(tmp_path: Path) -> None:
    """Unless they are to be what DiskSim makes of them."""
    file = tmp_path / "a.parv"
    file.write_text(
        PARV.replace("Head switch time = 0.5", "Head switch time = 0.5, Add. write settling delay = -0.4").replace(
            "Fast write level = 1",
            """Fast write level = 0, Read miss over. after read = 3.6, Read miss over. after write = 2.2,
        Write miss over. after read = 3.3, Write miss over. after write = 0.8, Immediate buffer read = 1,
        Read any free blocks = 1, Maximum read-ahead (blks) = 40, Read-ahead over requested = 0""",
        )
    )
    (ours, _), (theirs, _) = convert(file), convert(file, as_disksim=True)
    misses = [f"{op}_miss_after_{last}" for op in ("read", "write") for last in ("read", "write")]
    assert [ours["overhead"][k] for k in misses] == [2.2, 2.2, 3.3, 2.2]
    assert [theirs["overhead"][k] for k in misses] == [3.6, 2.2, 3.3, 0.8]
    assert (ours["mechanics"]["write_settle"], theirs["mechanics"]["write_settle"]) == (0, -0.4)
    # no time to settle has to be left of the skew, 1.4 ms
    assert ours["mechanics"]["head_switch"] == pytest.approx(1.4)
    for section, key, here, there in (
        ("mechanics", "switch_after_write", True, False),
        ("read_ahead", "from_arrival", True, False),
        ("write", "buffered_first", True, False),
        ("read_ahead", "requested", "keep", "overwrite"),
    ):
        assert (ours[section][key], theirs[section][key]) == (here, there), key
    text = file.read_text()
    for flag in ("Immediate buffer read", "Read any free blocks"):  # either alone does not mean it
        file.write_text(text.replace(f"{flag} = 1", f"{flag} = 0"))
        assert not convert(file)[0]["read_ahead"]["from_arrival"]
    file.write_text(text.replace("Buffer continuous read = 3", "Buffer continuous read = 4"))
    assert convert(file)[0]["read_ahead"]["sectors"] == 40
    assert convert(file, as_disksim=True)[0]["read_ahead"]["sectors"] == 0


def test_import_warns_of_a_seek_curve_that_falls(tmp_path: Path) -> None:
    (tmp_path / "a.parv").write_text(PARV.replace("Seek type = constant", "Seek type = extracted, Full seek curve = a.seek"))
    curve = tmp_path / "a.seek"
    curve.write_text("1, 1.0\n10, 3.5\n20, 3.0\n40, 2.9\n99, 9.0\n")
    done = run("drives", "import", tmp_path / "a.parv", "-o", tmp_path / "a.toml")
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "warning: mechanics.seek: falls at 2 of 5 points, most from 3.5 ms at 10 cylinders to 3 ms at 20" in done.stderr
    curve.write_text("1, 1.0\n10, 3.0\n20, 3.0\n99, 9.0\n")
    assert run("drives", "import", tmp_path / "a.parv", "-o", tmp_path / "a.toml").stderr == ""


def test_import_forgives_what_has_no_effect(tmp_path: Path) -> None:
    file = tmp_path / "a.parv"
    file.write_text(
        PARV.replace("cylinders = 100", "cylinders = 99")
        .replace("slips = []", "slips = [3, 3, 99999]")
        .replace("= 0.15", "= -0.01")
    )
    data, _ = convert(file)
    assert data["geometry"]["cylinders"] == 100
    assert data["zones"][0]["slips"] == [3]
    assert data["bus"]["block_read"] == 0.1
    assert from_toml(data, "a", "a").facts[0] == 100 * 100 - 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "Rotation speed (in rpms) = 6000",
            "Rotation speed (in rpms) = 0",
            "line 10: Rotation speed (in rpms): must be positive",
        ),
        (
            "Rotation speed (in rpms) = 6000",
            "Rotation speed (in rpms) = fast",
            "line 10: Rotation speed (in rpms): 'fast' is not a",
        ),
        ("Rotation speed (in rpms) = 6000,", "", "line 10: Rotation speed (in rpms): is missing"),
        ("Zones = [", "Zonen = [", "Zones: must not be empty"),
        ("Blocks per track = 50,", "Blocks per track = 0,", "line 8: Blocks per track: must be at least 1"),
        ("dm_layout_g1 {", "dm_layout_g4 {", "dm_layout_g4 is not supported"),
        ("Sparing scheme used = 0", "Sparing scheme used = 11", "line 7: Sparing scheme used: must be 0..10"),
        ("Seek type = constant", "Seek type = magic", "line 10: Seek type: 'magic' is not known"),
        ("Seek type = constant", "Seek type = extracted, Full seek curve = no.seek", "no.seek: No such file"),
        ("disksim_disk DISK {", "disksim_disk DISK", "where '{' should be"),
        ("disk0 [] ] ]", "disk0 [] ]", "line 18: ends too early"),
        ("slips = [],", "slips = [1, two],", "line 9: slips: must be a list of numbers"),
        ("Fast write level = 1", "Fast write level 1", "where '=' should be"),
        ("Last cylinder number = 99", "Last cylinder number = -1", "zones[0].last_cylinder: must be at least 0"),
        ("slips = [],", "slips = [-1],", "line 9: slips: must not be negative"),
        ("disksim_disk", "disksim_tape", "contains no disk"),
        ("instantiate", "source missing.inc\ninstantiate", "missing.inc: No such file"),
    ],
)
def test_a_malformed_parameter_file_is_told_by_line_or_key(tmp_path: Path, old: str, new: str, says: str) -> None:
    file = tmp_path / "a.parv"
    assert old in PARV
    file.write_text(PARV.replace(old, new, 1))
    with pytest.raises(Problem) as e:
        from_toml(convert(file)[0], "a", str(file))
    assert str(e.value).startswith(str(tmp_path))
    assert says in str(e.value)
    assert "\n" not in str(e.value)


def test_a_failed_import_leaves_nothing_behind(tmp_path: Path) -> None:
    file, out = tmp_path / "a.parv", tmp_path / "a.toml"
    for old, new in (("= 6000", "= 0"), ("Last cylinder number = 99", "Last cylinder number = -1")):
        file.write_text(PARV.replace(old, new))
        done = run("drives", "import", file, "-o", out)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert done.stderr.startswith(f"headwaiter: {file}: ")
        assert list(tmp_path.iterdir()) == [file]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_a_parameter_file_or_profile_holds_there_is_one_line(tmp_path: Path, data: st.DataObject) -> None:
    text, suffix = data.draw(st.sampled_from([(PARV, ".parv"), (GOOD, ".toml"), ("R Hit 100 4 9000 5000\n" * 3, ".trace")]))
    for _ in range(data.draw(st.integers(1, 3))):
        at, n = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 12))
        new = data.draw(st.sampled_from([*"{}[]=,0x\n\0\xff", "", "-1", "9" * 25, "1e400", "nan"]))
        text = text[:at] + new + text[at + n :]
    file = tmp_path / f"a{suffix}"
    file.write_text(text, encoding="latin-1")
    try:
        if suffix == ".parv":
            from_toml(convert(file)[0], "a", str(file))
        elif suffix == ".toml":
            load(file)
        else:
            read_trace(file)
    except Problem as e:
        assert str(e).startswith(str(tmp_path))
        assert "\n" not in str(e)


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    (tmp_path / "a.parv").write_text("source a.parv")
    done = run("drives", "import", tmp_path / "a.parv")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "too deeply" in done.stderr


@pytest.mark.thorough
def test_validate_tells_the_demerit_and_what_is_wrong_with_a_trace(tmp_path: Path) -> None:
    (tmp_path / "a.parv").write_text(PARV)
    drive, trace = tmp_path / "a.toml", tmp_path / "a.trace"
    run("drives", "import", tmp_path / "a.parv", "-o", drive)
    trace.write_text("R Hit 100 4 9000 5000\nW Hit 900 4 1000.5 5000\n" * 20)
    done = run("validate", drive, trace, "--json", "--plot", tmp_path / "a.png")
    told = json.loads(done.stdout)
    assert told["requests"] == 40
    assert told["demerit_ms"] > 0
    assert told["measured_ms"]["mean"] == pytest.approx(5.00025)
    assert told["mean_error_ms"] == pytest.approx(told["simulated_ms"]["mean"] - told["measured_ms"]["mean"])
    times = replay(load(drive), read_trace(trace)) / 1e6 - np.tile([9.0, 1.0005], 20)
    assert told["mean_absolute_error_ms"] == pytest.approx(np.abs(times).mean())
    assert f"error per request  {np.abs(times).mean():8.3f} ms" in run("validate", drive, trace).stdout
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    trace.write_text("R Hit 9999 4 1 1\n")
    done = run("validate", drive, trace)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "request 1 (block 9999) lies beyond the end of a" in done.stderr
    assert "no such drive 'nothing'" in run("validate", "nothing", trace).stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "no requests"),
        ("R Hit 100 4 9000\n", "line 1: not 'R|W"),
        ("R Hit 1 4 9 1\nX Hit 1 1 1 1\n", "line 2: not"),
        ("R Hit 100 0 1 1\n", "line 1: blocks: 0 is outside"),
        ("R Hit -1 4 1 1\n", "block: -1 is outside"),
        ("R Hit 1 4 nan 1\n", "line 1"),
        ("R Hit 1 4 1 -1\n", "think_us: -1 is outside"),
        ("R Hit 1 4 1 1e300\n", "line 1"),
        ("R Hit 1 99999999999 1 1\n", "line 1"),
    ],
)
def test_a_malformed_trace_is_told_by_its_line(tmp_path: Path, content: str, says: str) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text(content)
    with pytest.raises(Problem) as e:
        read_trace(trace)
    assert str(e.value).startswith(f"{trace}: ")
    assert says in str(e.value)


def test_new_makes_a_drive_of_the_wanted_size_and_says_what_it_guessed(tmp_path: Path) -> None:
    out = tmp_path / "n.toml"
    done = run(
        "drives",
        "new",
        "--rpm",
        5400,
        "--capacity",
        "500GB",
        "--seek-average",
        12,
        "--rate-outer",
        90,
        "--rate-inner",
        45,
        "--cache",
        8,
        "-o",
        out,
    )
    assert done.returncode == 0
    assert "geometry.surfaces: guessed" in done.stderr
    assert "rate" not in done.stderr.replace("with rates falling evenly", "").replace("and rates", "")
    drive = load(out)
    assert drive.facts[0] == 500 * 10**9 // 512
    n = 2000
    rate = n * 512 * 512 / replay(drive, load_of(np.arange(n) * 512, 512)).sum() * 1e3
    assert rate == pytest.approx(90, rel=0.03)
    mean_ms = replay(drive, load_of(random_places(drive, 5000, 1), 1)).mean() / 1e6
    assert mean_ms == pytest.approx(12 + 30e3 / 5400, rel=0.06)
    for wrong, says in ((("--seek-full", 3), "must rise"), (("--rate-inner", 900), "exceeds")):
        bad = run("drives", "new", "--rpm", 5400, "--capacity", "500GB", "--seek-average", 12, *wrong)
        assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1), bad.stderr
        assert says in bad.stderr


@pytest.mark.thorough
def test_drives_lists_and_shows() -> None:
    listed = json.loads(run("drives", "--json").stdout)["drives"]
    assert {d["drive"] for d in listed} == set(bundled())
    shown = run("drives", "barracuda-80g").stdout
    assert "mechanics.rpm" in shown and "7200" in shown
    drive = json.loads(run("drives", "barracuda-80g", "--json").stdout)
    assert drive["parameters"]["mechanics"]["rpm"] == 7200
    assert drive["capacity_bytes"] == next(d["capacity_bytes"] for d in listed if d["drive"] == "barracuda-80g") == 80_026_361_856
    assert "timing.page_read" in run("drives", "models", "ssd").stdout
    done = run("drives", "nothing")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.thorough
def test_export_is_what_the_kernel_modules_take(tmp_path: Path) -> None:
    blob = tmp_path / "blob"
    assert run("drives", "export", "barracuda-80g", "-o", blob).returncode == 0
    assert blob.read_bytes() == find_drive("barracuda-80g").blob
    for name in bundled():
        rows = [tuple(map(int, line.split())) for line in run("drives", "export", name, "--positions").stdout.splitlines()]
        distances = [distance for distance, _ in rows]
        assert 1 <= len(rows) <= 32 and distances[0] == 0 and distances == sorted(set(distances)), name
    # 7200 rpm: half a revolution for anything but the next sector, and a full stroke within the data sheet's 20 ms.
    known = find_drive("barracuda-80g").positions
    assert known[0] == (0, 0) and known[1] == (1, 4_166_667)
    assert known == sorted(known, key=lambda row: row[1]) and known[-1][1] < 4_166_667 + 20_000_000
    assert find_drive("raid0-4x-barracuda-80g").positions[2][0] == 4 * known[2][0]
    assert run("drives", "export", "nothing").returncode == 2


@pytest.mark.parametrize("document", [tomllib.loads(GOOD), find_drive("sata-ssd").data], ids=("disk", "ssd"))
def test_a_default_that_is_shown_is_the_value_that_is_taken(document: dict[str, Any]) -> None:
    """A profile that spells a default as `drives models` shows it is the profile without it."""
    for key, p in model(document["model"], "GOOD").params.items():
        section, _, name = key.rpartition(".")
        if p.required or not section or p.type in (ParamType.LIST, ParamType.DRIVES) or name in document.get(section, {}):
            continue
        shown = p.default_text if p.type == ParamType.CHOICE else json.loads(p.default_text)
        spelt = {**document, section: {**document.get(section, {}), name: shown}}
        assert from_toml(spelt, "spelt", "spelt").blob == from_toml(document, "given", "given").blob, key


def test_rows_within_rows_are_counted_together() -> None:
    params = models()["disk"].params
    data = {"zones": [{"slips": [[1], [2]]}, {"slips": [[3]]}, {}]}
    assert (_value(params["zones.slips"], data), _value(params["zones"], data)) == ("3 rows", "3 rows")
    assert (_value(params["zones.slips"], {"zones": data["zones"][:1]}), _value(params["zones.slips"], {})) == ("2 rows", "")
