# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables and CSV: which figure stands under which head."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from command import good, told, write
from rich.table import Table

from headwaiter.report.tables import table, tasks_table, write_csv
from headwaiter.study.schema import Anticipation, Direction, Disk, GroupRow, Latency, Range, Result, Spread, TaskRow

LAT = Latency(11.125, 12.0, 13.0, 14.25, 15.0, 1600.0)
SEVERAL = Spread(21.0, 29.0)
RANGE = Range(runs=9, throughput_mbps=SEVERAL, elapsed_s=SEVERAL, lat_mean_ms=SEVERAL, lat_p99_ms=SEVERAL, lat_max_ms=SEVERAL,
              fairness_jain=SEVERAL)  # fmt: skip
FULL = Result(
    scheduler="as", tunables={}, requests=21, bytes=22_000_000, elapsed_s=20.5, throughput_mbps=23.5,
    read=Direction(20, 21_000_000, 22.5, LAT), fairness_jain=0.875, dispatched=19, merges=2,
    disk=Disk(busy_s=17.0, idle_s=4.1, seek_s=2.05, rotation_s=6.15, transfer_s=8.2, overhead_s=1.0, seeks=77, cache_hits=5),
    anticipation=Anticipation(9, 6, 3, 1, 41.0, 42.0, 43.0, 44.0, 7.1625), range=RANGE,
)  # fmt: skip
BARE = Result(
    scheduler="noop",
    tunables={},
    requests=1,
    bytes=512,
    elapsed_s=0.0,
    throughput_mbps=0.0,
    merges=0,
    dispatched=1,
    disk=Disk(busy_s=0.0, idle_s=0.0, seeks=0),
)
TWO_READERS = "time_s,task,op,sync,sector,sectors,complete_s,name\n" + "".join(
    f"{0.006 * i:.6f},{t},R,1,{base + 8 * i},8,{0.006 * i + 0.005:.6f},{name}\n"
    for i in range(12) for t, base, name in ((1, 0, "ann"), (2, 900_000, "bob"))
)  # fmt: skip


def by_head(t: Table) -> dict[str, list[str]]:
    return {str(c.header): [str(cell) for cell in c.cells] for c in t.columns}


def test_table() -> None:
    t = table([FULL, BARE], "title")
    assert by_head(t) == {
        "scheduler": ["as", "noop"], "MB/s": ["21.00–29.00", "0.00"], "elapsed s": ["20.50", "0.00"],
        "read mean ms": ["11.12", "–"], "p99 ms": ["14.2", "–"], "max ms": ["1600", "–"], "fairness": ["0.875", "–"],
        "seek": ["10%", "–"], "rotate": ["30%", "–"], "transfer": ["40%", "–"], "waiting": ["20%", "–"], "seeks": ["77", "0"],
        "A_S/A": ["6/9", "–"], "T_F/A_S ms": ["7.162", "–"],
    }  # fmt: skip
    assert [row.style for row in t.rows] == ["bold", None], "the best is bold"
    steady = replace(FULL, range=replace(RANGE, throughput_mbps=Spread(23.4, 23.6)))
    assert by_head(table([steady], ""))["MB/s"] == ["23.50"]
    assert "fairness" not in by_head(table([BARE], "")), "a column that nobody has is left out"


def test_csv() -> None:
    out = io.StringIO()
    write_csv([FULL, BARE], out)
    assert out.getvalue().endswith("\n") and "\r" not in out.getvalue()
    full, bare = csv.DictReader(io.StringIO(out.getvalue()))
    assert full == {
        "scheduler": "as", "requests": "21", "bytes": "22000000", "throughput_MBps": "23.5", "elapsed_s": "20.5",
        "read.lat_ms.mean": "11.125", "read.lat_ms.p99": "14.25", "read.lat_ms.max": "1600.0", "fairness_jain": "0.875",
        "disk.seek_s": "2.05", "disk.rotation_s": "6.15", "disk.transfer_s": "8.2", "disk.idle_s": "4.1", "disk.seeks": "77",
        "anticipation.A": "9", "anticipation.A_S": "6", "anticipation.A_F": "3", "anticipation.T_ms": "41.0",
        "anticipation.T_S_ms": "42.0", "anticipation.T_F_ms": "43.0",
        "anticipation.T_F_per_A_S_ms": "7.1625", "range.throughput_MBps.low": "21.0",
        "range.throughput_MBps.high": "29.0",
    }  # fmt: skip
    assert {k for k, v in bare.items() if v} == {
        "scheduler",
        "requests",
        "bytes",
        "throughput_MBps",
        "elapsed_s",
        "disk.idle_s",
        "disk.seeks",
    }


def row(number: int) -> TaskRow:
    return TaskRow(number, f"t{number}", "read", 0, number, 1_250_000, 2.5, 0.25, 0.75, LAT)


def test_table_of_tasks() -> None:
    rows = [row(number) for number in range(5)]
    t = tasks_table(replace(BARE, tasks=rows), limit=4)
    found = by_head(t)
    assert {head: cells[3] for head, cells in found.items()} == {
        "name": "t3",
        "op": "read",
        "requests": "3",
        "MB": "1.2",
        "MB/s": "2.50",
        "elapsed s": "0.75",
        "mean ms": "11.12",
        "p99 ms": "14.2",
        "max ms": "1600",
    }
    assert found["name"] == ["t0", "t1", "t2", "t3"]
    assert t.caption == "… and 1 more (--json shows all)"
    whole = tasks_table(replace(BARE, tasks=rows), limit=5)
    assert (len(by_head(whole)["name"]), whole.caption) == (5, None)
    chain = GroupRow(9, "t9", 17, 9, 1_250_000, 2.5, 0.75, 1.0, LAT)
    chains = by_head(tasks_table(replace(BARE, tasks=rows, groups=[chain])))
    assert (chains["name"], chains["tasks"]) == (["t9"], ["17"])


def test_run_in_detail(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", TWO_READERS)
    text = good(capfd, "run", path, "-s", "as", "--set", "antic_expire=3", "-d", "constant:5")
    lines = text.splitlines()
    assert "Set: antic_expire=3" in lines
    assert any(line.split()[:3] == ["ann", "read", "12"] for line in lines)
    assert any(line.split()[:3] == ["bob", "read", "12"] for line in lines)
    choice = good(capfd, "run", path, "-s", "deadline", "--set", "wrap=lowest", "-d", "constant:5")
    assert "Set: wrap=lowest" in choice.splitlines()


def test_a_run_says_what_small_changes_make_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures stay those of the unperturbed run."""
    import headwaiter.cli.run as command  # noqa: PLC0415

    monkeypatch.setattr(command, "others", lambda *args: [replace(FULL, throughput_mbps=rate) for rate in (2.25, 0.125)])
    path = write(tmp_path / "two.csv", TWO_READERS)
    d = told(capfd, "run", path, "-s", "noop", "-d", "constant:5")
    (note,) = d["notes"]
    assert note.endswith("throughput is 0.125 to 2.25 MB/s")
    r = d["results"][0]
    assert r["range"]["throughput_MBps"] == {"low": 0.125, "high": 2.25}
    assert r["throughput_MBps"] == pytest.approx(r["bytes"] / 1e6 / r["elapsed_s"]) != 2.25


def test_run_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", TWO_READERS)
    d = told(capfd, "run", path, "-s", "as", "--set", "antic_expire=0", "-d", "constant:5", "--seed", 41)
    assert (d["workload"], d["drive"], d["seed"], d["replay"]) == ("two.csv", "constant:5", 41, "closed")
    (r,) = d["results"]
    assert r["tunables"]["antic_expire"] == 0 and "anticipation" not in r
    assert r["range"]["runs"] == 9, "short loads are run again eight times"
    # Perturbed runs have the same tunables: where none waits, no run comes near one that does.
    waits = told(capfd, "run", path, "-s", "as", "--set", "antic_expire=6", "-d", "constant:5", "--seed", 41)["results"][0]
    assert r["range"]["throughput_MBps"]["low"] > waits["range"]["throughput_MBps"]["high"]
    assert "range" not in told(capfd, "run", path, "-s", "as", "-d", "constant:5", "--seeds", 0)["results"][0]
    assert told(capfd, "run", path, "-s", "as", "-d", "constant:5", "--seeds", 2)["results"][0]["range"]["runs"] == 3
