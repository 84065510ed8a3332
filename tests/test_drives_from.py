# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Profiles from what people have: io.cost's numbers, fio's JSON, a data sheet; and the disk of shingled tracks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwaiter.drives import find_drive
from headwaiter.drives.iocost import iocost_figures
from headwaiter.drives.profile import from_toml, load
from headwaiter.drives.validation import Measured, replay, unmeasured


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "headwaiter", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("model", ["Samsung_SSD_980_PRO_1TB", "Samsung_SSD_860", "Patriot_M.2_P300_1024GB"])
def test_six_numbers_come_back(model: str) -> None:
    """All but rseqiops: the model serves sequential reads of 4 KiB as random ones."""
    errors = {one.figure: one.error for one in iocost_figures((model,))}
    assert len(errors) == 6
    assert all(abs(errors[rate]) <= 0.1 for rate in ("rbps", "rrandiops", "wbps")), errors
    assert all(abs(errors[rate]) <= 0.2 for rate in ("wseqiops", "wrandiops")), errors


def job(write: bool, size: int, depth: int, iops: float) -> dict[str, Any]:
    ns = depth / iops * 1e9
    way = {
        "total_ios": 1000,
        "iops": iops,
        "lat_ns": {"mean": ns},
        "clat_ns": {"percentile": {"1.000000": 0.8 * ns, "50.000000": ns, "99.000000": 1.3 * ns}},
    }
    other = {"total_ios": 0}
    return {
        "job options": {"bs": f"{size // 1024}k", "iodepth": str(depth)},
        "read": other if write else way,
        "write": way if write else other,
    }


def test_a_sweep_of_fio_is_predicted(tmp_path: Path) -> None:
    """0.5 ms and 1 us a sector for reads, 20 at once, 300 MB/s at most."""

    def iops(size: int, depth: int) -> float:
        return min(min(depth, 20) / (0.5e-3 + size / 512 * 1e-6), 300e6 / size)

    sweep = [job(False, size << 10, depth, iops(size << 10, depth)) for size in (4, 64, 256) for depth in (1, 8, 64)]
    file, out = tmp_path / "sweep.json", tmp_path / "volume.toml"
    file.write_text("fio: a warning in front\n" + json.dumps({"global options": {"direct": "1"}, "jobs": sweep}))
    done = run("drives", "from", "--fio", file, "--capacity", "100GB", "-o", out)
    assert done.returncode == 0 and "servers: what explains" in done.stderr
    drive = load(out)
    for size, depth in ((8, 2), (16, 4), (32, 16), (128, 2), (4, 32)):
        n = 4000
        places = np.random.default_rng(1).integers(0, 10**4, n).astype(np.uint64) * 4096
        many = unmeasured(np.zeros(n, np.uint8), places, np.full(n, size * 2, np.uint32))
        found = depth / replay(drive, many, depth)[depth:-depth].mean() * 1e9
        assert found == pytest.approx(iops(size << 10, depth), rel=0.1), (size, depth)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: not JSON"),
        ("[]", "no list of jobs"),
        ('{"jobs": []}', "only reads"),
        ('{"jobs": [3]}', "job 1: is not a table"),
    ],
)
def test_what_is_no_sweep_is_refused(tmp_path: Path, text: str, says: str) -> None:
    file, out = tmp_path / "bad.json", tmp_path / "out.toml"
    file.write_text(text)
    done = run("drives", "from", "--fio", file, "-o", out)
    assert (done.returncode, done.stderr.count("\n"), out.exists()) == (2, 1, False)
    assert says in done.stderr and str(file) in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("from",), "give one of"),
        (("from", "--iocost", "no such drive"), "no such model"),
        (("from", "--iocost", "rbps=1000000"), "rseqiops: is missing"),
        (("from", "--sheet", "capacity=1TB", "read=3"), "write: is missing"),
        (("from", "--sheet", "colour=red"), "unknown key 'colour'"),
        (("new", "--capacity", "1TB"), "--rpm is missing"),
        (("new", "--capacity", "1TB", "--kind", "flash", "--rpm", 7200), "--rpm is of a disk"),
    ],
)
def test_errors_are_one_line(words: tuple[str, ...], says: str) -> None:
    done = run("drives", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert says in done.stderr


def test_what_does_not_rotate_needs_no_speed(tmp_path: Path) -> None:
    rates = ("--capacity", "1TB", "--read", 3000, "--write", 1000, "--read-iops", 300000, "--write-iops", 50000)
    for kind, model in (("flash", "ssd"), ("volume", "shaped")):
        out = tmp_path / f"{kind}.toml"
        assert run("drives", "new", "--kind", kind, *rates, "-o", out).returncode == 0
        assert load(out).model.name == model


def test_drives_are_grouped() -> None:
    lines = run("drives").stdout.splitlines()
    assert [line for line in lines if "GB" not in line] == ["Disks", "Flash", "Cloud volumes"]
    assert (
        lines.index("Flash")
        < next(i for i, line in enumerate(lines) if line.startswith("sata-ssd"))
        < lines.index("Cloud volumes")
    )


def small_smr() -> Any:
    disk = find_drive("barracuda-80g")
    data = {
        "model": "smr",
        "smr": {"disk": ["barracuda-80g"], "cache": 8192, "band": 4096, "clean_least": 500, "clean_most": 2000},
    }
    return disk, from_toml(data, "smr", "smr")


def written(drive: Any, n: int, think_ms: float = 0) -> Any:
    places = (np.random.default_rng(5).permutation(n) * 4096).astype(np.uint64)
    service, think = np.zeros(n, np.int64), np.full(n, round(think_ms * 1e6), np.int64)
    return replay(drive, Measured(np.ones(n, np.uint8), places, np.full(n, 256, np.uint32), service, think)) / 1e6


def test_a_media_cache_takes_writes_until_it_is_full() -> None:
    """32 writes of 128 KiB fit; each later one waits for a band, of which a sixteenth was written: 594 ms."""
    disk, smr = small_smr()
    assert smr.sectors == disk.sectors - 8192 and smr.facts[2]
    took = written(smr, 60)
    assert took[:32].max() < 100
    assert took[33:].min() > 590 and took[33:].max() < 700


def test_an_idle_disk_cleans_its_bands() -> None:
    _, smr = small_smr()
    assert written(smr, 60, think_ms=1700).max() < 100
