# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What fio measured, job by job, against what the same jobs get from a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import good, run, told
from test_json import check

SHAPED = """model = "shaped"
description = "five at once, 1 ms each"
servers = 5
geometry.sectors = 2097152
latency = { read = [[0.0, 1.0], [1.0, 1.0]], write = [[0.0, 2.0], [1.0, 2.0]] }
ios = { rate = 100000, burst = 100 }
bytes = { rate = 4000.0, burst = 4.0 }
"""


def entry(name: str, iops: float, write_iops: float = 0, **options: str) -> dict[str, Any]:
    return {"jobname": name, "job options": {"name": name, **options}, "read": {"iops": iops}, "write": {"iops": write_iops}}


def written(path: Path, *jobs: dict[str, Any]) -> Path:
    common = {"direct": "1", "ioengine": "libaio", "filename": "/dev/nonesuch", "size": "9t", "runtime": "60", "time_based": ""}
    path.write_text(json.dumps({"global options": common, "jobs": list(jobs)}))
    return path


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    path = tmp_path / "shaped.toml"
    path.write_text(SHAPED)
    return path


def runs(folder: Path) -> list[Path]:
    """Two of one job each way, and a mix."""
    return [
        written(
            folder / f"{number}.json",
            entry("lone", 1000 + number, rw="randread", bs="4k"),
            entry("deep", 4000.0, rw="randread", bs="4k", iodepth="16", stonewall=""),
            entry("mixed", 300.0, 300.0, rw="randrw", bs="8k", rwmixread="50"),
            entry("clones", 900.0, rw="randwrite", bs="4k", numjobs="2", group_reporting=""),
        )
        for number in (100, 300, 200)
    ]


def test_jobs_of_several_runs(drive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = told(capfd, "validate", drive, "--fio", *runs(tmp_path))
    check(document, "PublishedDocument")
    found = {(row["load"], row["figure"]): row for row in document["figures"]}
    for job, measured, simulated in (("lone", 1200, 1000), ("deep", 4000, 5000), ("mixed", 600, 667), ("clones", 900, 1000)):
        row = found[job, "I/Os a second"]
        assert row["measured"] == measured and row["simulated"] == pytest.approx(simulated, rel=0.02)
        assert row["error"] == pytest.approx(row["simulated"] / measured - 1)
    assert found["lone", "I/Os a second, lowest"]["measured"] == 1100
    assert found["lone", "I/Os a second, highest"]["measured"] == 1300
    text = good(capfd, "validate", drive, "--fio", *runs(tmp_path))
    assert "within 20% of the run in the middle: 3 of 4 jobs" in text
    assert next(line for line in text.splitlines() if line.startswith("  lone")).split()[1:4] == ["1200", "1100", "1300"]


def test_errors_are_one_line(drive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "one.json", entry("a", 1.0))
    other = written(tmp_path / "other.json", entry("b", 1.0))
    twice = written(tmp_path / "twice.json", entry("a", 1.0), entry("a", 1.0))
    idle = written(tmp_path / "idle.json", entry("a", 0.0))
    lacking = written(tmp_path / "lacking.json", {"jobname": "a", "read": {}})
    bad = tmp_path / "bad.json"
    bad.write_text('{"jobs": [3]}')
    for files, says in (
        ((one, other), "has other jobs"),
        ((twice,), "'a' comes twice"),
        ((idle,), "no job did any I/O"),
        ((lacking,), "lacks iops"),
        ((bad,), "job 1: is not a table"),
        ((one, "--plot", tmp_path / "x.png"), "nothing to plot"),
    ):
        status, out, err = run(capfd, "validate", drive, "--fio", *files)
        assert (status, out) == (2, "") and says in err, says
    status, _, err = run(capfd, "validate", drive, one, other)
    assert status == 2 and "several files: see --fio" in err
