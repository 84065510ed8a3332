# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command as its users meet it: results, and one line for whatever is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HEADER = "time_s,task,op,sync,sector,sectors,complete_s\n"
TWO = HEADER + "".join(
    f"{0.006 * i:.6f},{t},R,1,{base + 8 * i},8,{0.006 * i + 0.005:.6f}\n"
    for i in range(40)
    for t, base in ((1, 0), (2, 1_000_000))
)


def headwaiter(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "headwaiter", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def good(*args: object) -> str:
    done = headwaiter(*args)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def bad(*args: object) -> str:
    """The one line of complaint."""
    done = headwaiter(*args)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("headwaiter: "), done.stderr
    return lines[0]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.csv"
    path.write_text(TWO)
    return path


def test_compare_json(two: Path) -> None:
    d: dict[str, Any] = json.loads(good("compare", two, "--drive", "constant:5", "--json", "--sched", "noop,as", "--no-goes-on"))
    assert d["schema"] == "headwaiter/1" and d["drive"] == "constant:5" and d["seed"] == 0
    assert {r["scheduler"] for r in d["results"]} == {"noop", "as"}
    for r in d["results"]:
        assert r["requests"] == 80 and r["bytes"] == 80 * 4096
        assert r["throughput_MBps"] == pytest.approx(r["bytes"] / 1e6 / r["elapsed_s"])
        assert set(r["read"]["lat_ms"]) == {"mean", "p50", "p95", "p99", "p99_9", "max"}
        assert sum(t["requests"] for t in r["tasks"]) == 80
        assert 0.5 <= r["fairness_jain"] <= 1
        assert "write" not in r, "a key that is not known is absent"
    noop = next(r for r in d["results"] if r["scheduler"] == "noop")
    # Two readers that think 1 ms keep a disk of 5 ms busy without a break.
    assert noop["elapsed_s"] == pytest.approx(0.4, rel=1e-3)
    assert noop["disk"]["busy_s"] == pytest.approx(0.4, rel=1e-3)
    assert "anticipation" not in noop
    waited = next(r for r in d["results"] if r["scheduler"] == "as")["anticipation"]
    assert waited["A"] == waited["A_S"] + waited["A_F"]
    assert waited["T_S_ms"] == pytest.approx(waited["A_S"] * 1.0, rel=1e-2)


def test_compare_is_deterministic(two: Path) -> None:
    command = ("compare", two, "--drive", "constant:5", "--json")
    assert good(*command) == good(*command)


@pytest.mark.thorough
def test_compare_table_and_csv(two: Path, tmp_path: Path) -> None:
    text = good("compare", two, "--drive", "constant:5", "--all")
    assert "as-95*" in text and re.search(r"^ +progress ", text, re.M)
    rows = list(csv.DictReader(io.StringIO(good("compare", two, "--drive", "constant:5", "--csv"))))
    assert float(rows[0]["progress_MBps"]) >= float(rows[-1]["progress_MBps"])
    out = tmp_path / "out.json"
    assert good("compare", two, "--drive", "constant:5", "--json", "-o", out) == ""
    assert json.loads(out.read_text())["results"]


def test_packed_traces(two: Path, tmp_path: Path) -> None:
    plain = good("run", two, "--sched", "as", "--drive", "constant:5", "--json")
    for name, pack in (("t.gz", gzip.compress), ("t.xz", lzma.compress)):
        packed = tmp_path / name
        packed.write_bytes(pack(TWO.encode()))
        d, e = json.loads(plain), json.loads(good("run", packed, "--sched", "as", "--drive", "constant:5", "--json"))
        assert d["results"] == e["results"]


def test_run_log(two: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    good("run", two, "--sched", "as", "--set", "cooperation=1", "--drive", "constant:5", "--log", log)
    rows = list(csv.DictReader(log.open()))
    assert list(rows[0]) == ["time_ns", "event", "request", "task", "op", "sector", "sectors", "reason"]
    first = [(int(r["time_ns"]) // 1_000_000, r["task"]) for r in rows if r["event"] == "dispatch"][:3]
    assert first == [(0, "1"), (6, "1"), (12, "1")]
    assert [r["reason"] for r in rows if r["event"] == "dispatch"][:3] == ["turn", "anticipated", "anticipated"]
    assert not any(r["reason"] for r in rows if r["event"] != "dispatch")


def test_open_replay_keeps_timestamps(two: Path) -> None:
    d = json.loads(good("run", two, "--sched", "noop", "--drive", "constant:1", "--replay", "open", "--json"))
    assert d["replay"] == "open"
    # 39 gaps of 6 ms, then the two last requests of 1 ms each.
    assert d["results"][0]["elapsed_s"] == pytest.approx(39 * 0.006 + 0.002, rel=1e-3)


def test_missing_completions_are_said(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("time_s,task,op,sync,sector,sectors\n0,1,R,1,0,8\n0.01,1,R,1,8,8\n")
    d = json.loads(good("run", path, "--sched", "noop", "--drive", "constant:5", "--json"))
    assert any("are used instead" in note for note in d["notes"])
    # Completed at 5 ms under noop, issued at 10: a think time of 5 ms.
    assert d["results"][0]["elapsed_s"] == pytest.approx(0.015, rel=1e-3)


def test_set_reaches_the_scheduler(two: Path) -> None:
    never = json.loads(good("run", two, "-s", "as", "--set", "antic_expire=0", "-d", "constant:5", "--json"))
    assert never["results"][0]["tunables"]["antic_expire"] == 0
    assert "anticipation" not in never["results"][0]
    d = json.loads(good("compare", two, "-s", "as,cas", "--set", "cas.antic_expire=0", "-d", "constant:5", "--json"))
    assert {r["scheduler"]: r["tunables"]["antic_expire"] for r in d["results"]} == {"as": 6, "cas": 0}


def test_a_variant_is_a_scheduler_with_settings_wherever_one_is_named() -> None:
    """As `compare` and `apply` have it; --set comes on top."""
    load = ("run", "readers-2", "--seeds", 0, "--json", "--sched")
    named = json.loads(good(*load, "bfq:low_latency=0"))["results"][0]
    assert named.pop("variant") == "bfq:low_latency=0"
    assert named == json.loads(good(*load, "bfq", "--set", "low_latency=0"))["results"][0]
    assert json.loads(good(*load, "bfq:low_latency=0", "--set", "low_latency=1"))["results"][0]["tunables"]["low_latency"] == 1
    assert "--sched low_latency=2" in bad("run", "readers-2", "--sched", "bfq:low_latency=2")


@pytest.mark.thorough
def test_a_list_that_is_given_twice_is_one_list(two: Path) -> None:
    """The second took the first one's place without a word."""

    def compared(*args: str) -> list[str]:
        return sorted(row["scheduler"] for row in json.loads(good("compare", two, "--json", *args))["results"])

    assert compared("-s", "none,bfq", "-s", "as") == compared("-s", "none,bfq,as") == ["as", "bfq", "none"]
    judged = json.loads(
        good("regret", "-w", "editor-1", "--seeds", "1", "-s", "none", "-d", "nvme-ssd", "-d", "sata-ssd", "--json")
    )
    assert [cell["drive"] for cell in judged["cells"]] == ["nvme-ssd", "sata-ssd"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("run", "-s", "none", "-s", "bfq"), "--sched is given 2 times (none, bfq); headwaiter compare takes several"),
        (("tune", "-s", "none", "-s", "bfq"), "--sched is given 2 times (none, bfq); headwaiter compare takes several"),
        (("compare", "-d", "a", "-d", "b"), "--drive is given 2 times (a, b); headwaiter regret takes several"),
    ],
)
def test_one_name_that_is_given_twice_is_refused(two: Path, args: tuple[str, ...], told: str) -> None:
    assert bad(*args, two) == f"headwaiter: {told}"


def test_a_preset_is_a_scheduler_with_its_settings() -> None:
    """Every scheduler accepts the settings of its presets, and a preset's name stands for them."""
    found = {s["name"]: s for s in json.loads(good("schedulers", "--json"))["schedulers"]}
    presets = {name: (s["name"], one["settings"]) for s in found.values() for name, one in s["presets"].items()}
    assert presets["cfq-slice-2004"] == ("cfq-slice", ["slice_sync=83", "slice_idle=4", "slice_start=dispatch"])
    for name, (scheduler, settings) in presets.items():
        named = json.loads(good("run", "readers-2", "--sched", name, "--seeds", 0, "--json"))["results"][0]
        given = [word for one in settings for word in ("--set", one)]
        spelt = json.loads(good("run", "readers-2", "--sched", scheduler, *given, "--seeds", 0, "--json"))["results"][0]
        plain = json.loads(good("run", "readers-2", "--sched", scheduler, "--seeds", 0, "--json"))["results"][0]
        assert named.pop("variant") == name and named == spelt
        assert named["tunables"] != plain["tunables"] and named["elapsed_s"] != plain["elapsed_s"]
    assert "Preset cfq-slice-2004: slice_sync=83 slice_idle=4" in good("schedulers", "cfq-slice-2004")
    own = ["compare", "readers-2", "--seeds", 0, "--json", "--sched", "cfq-slice-2004:slice_sync=90,cfq-slice-2004"]
    rows = {r["variant"]: r["tunables"] for r in json.loads(good(*own))["results"]}
    assert {name: (t["slice_sync"], t["slice_idle"]) for name, t in rows.items()} == {
        "cfq-slice-2004:slice_sync=90": (90, 4),
        "cfq-slice-2004": (83, 4),
    }
    assert "did you mean cfq-slice-2004?" in bad("run", "readers-2", "--sched", "cfq-slice-2003")


def test_schedulers() -> None:
    listing = good("schedulers")
    for name in ("noop", "deadline", "as", "cas"):
        assert any(line.split()[0] == name for line in listing.splitlines())
    assert "antic_expire" in good("schedulers", "as")
    d = json.loads(good("schedulers", "deadline", "--json"))
    assert d["schedulers"][0]["tunables"]["fifo_batch"]["default"] == 16


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--sched", "nonesuch"], ["no scheduler 'nonesuch'", "deadline"]),
        (["--sched", "as", "--set", "antic_expire=-1"], ["antic_expire=-1", "outside 0.."]),
        (["--sched", "as", "--set", "antic_expire=soon"], ["'soon'", "whole number"]),
        (["--sched", "as", "--set", "nonesuch=1"], ["no tunable or table 'nonesuch'"]),
        (["--sched", "as", "--set", "antic_expire"], ["TUNABLE=VALUE"]),
        (["--sched", "deadline", "--set", "wrap=sideways"], ["'sideways'", "one of fifo, lowest"]),
        (["--sched", "as", "--drive", "nonesuch"], ["nonesuch"]),
        (["--sched", "as", "--drive", "constant:slow"], ["constant:slow"]),
        (["--sched", "as", "--drive", "constant:-1"], ["service time"]),
        (["--sched", "as", "--queue-depth", "-1"], ["queue-depth"]),
        (["--sched", "as", "--frobnicate"], ["--frobnicate"]),
        (["--sched", "as", "--share", "7=2"], ["no task 7"]),
        (["--sched", "as", "--log", "/nonexistent/dir/log.csv"], ["/nonexistent/dir/log.csv"]),
    ],
)
def test_bad_options(two: Path, args: list[str], words: list[str]) -> None:
    defaults = [] if "--drive" in args else ["--drive", "constant:5"]
    line = bad("run", two, *defaults, *args)
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["empty"]),
        (b"\x00\x01\x02\x03" * 40, ["format"]),
        (gzip.compress(TWO.encode())[:-30], ["gz"]),
        (HEADER.encode() + b"0,1,R,1,-8,8,\n", [":2:"]),
        (HEADER.encode() + b"0,1,R,1,8,-8,\n", [":2:"]),
        (HEADER.encode() + b"0,1,Q,1,8,8,\n", [":2:", "Q"]),
        (HEADER.encode() + b"0,1,R,1,8,8,\n1,1,R,1\n", [":3:"]),
        (HEADER.encode() + b"0,1,R,1,1099511627776,8,\n", ["past the end", "constant:5"]),
    ],
)
def test_bad_traces(tmp_path: Path, content: bytes, words: list[str]) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    line = bad("run", path, "--sched", "noop", "--drive", "constant:5")
    for word in [str(path), *words]:
        assert word in line


def test_absent_file(tmp_path: Path) -> None:
    assert "no such file" in bad("compare", tmp_path / "absent", "--drive", "constant:5")
    assert bad("compare", tmp_path, "--drive", "constant:5")


def test_failed_run_leaves_nothing_behind(two: Path, tmp_path: Path) -> None:
    out = tmp_path / "sub"
    out.mkdir()
    bad("run", two, "--sched", "as", "--drive", "nonesuch", "--log", out / "log.csv", "--json", "-o", out / "x.json")
    assert list(out.iterdir()) == []


def test_wrong_command() -> None:
    assert "nonesuch" in bad("nonesuch")
    assert "Usage" in good("--help")
