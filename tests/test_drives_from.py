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
from headwaiter.drives.flash import RATES, measured
from headwaiter.drives.profile import from_toml, load
from headwaiter.drives.sheet import from_iocost, known_models
from headwaiter.drives.validation import MeasuredRequests, replay, unmeasured
from headwaiter.papers.flash_hosts import iocost


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "headwaiter", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def wrong(six: dict[str, float], name: str = "made") -> dict[str, float]:
    """By how much the six numbers of the profile that a line gives are off."""
    data, _ = from_iocost(" ".join(f"{rate}={number:.0f}" for rate, number in six.items()), None)
    return {rate: float(getattr(measured(from_toml(data, name, name)), rate) / six[rate] - 1) for rate in RATES}


# Large reads that bring fewer bytes than small ones; sequential small reads that are much faster than random ones, and slower;
# small writes that are as fast as large ones.
@pytest.mark.thorough
@pytest.mark.parametrize("model", ["MTFDHBA512TCK", "CT1000P3PSSD8", "Patriot_M.2_P300_1024GB", "KINGSTON_SA2000M8250G"])
def test_six_numbers_come_back(model: str) -> None:
    """As fio measures them with the processors of a host."""
    errors = {one.figure: one.error for one in iocost((model,))}
    assert len(errors) == 6
    assert max(map(abs, errors.values())) < 0.05, errors


@pytest.mark.thorough
@pytest.mark.parametrize("model", sorted(known_models()))
def test_six_numbers_of_every_drive_come_back(model: str) -> None:
    errors = {one.figure: one.error for one in iocost((model,))}
    assert max(map(abs, errors.values())) < 0.05, errors


def random_line(seed: int) -> dict[str, float]:
    """Six numbers such as a drive might have: small requests bring from a fiftieth to 1.5 times the bytes of large ones."""
    rng = np.random.default_rng(seed)

    def of(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    rbps, wbps = of(3e8, 8e9), of(1.5e8, 7e9)
    reads, writes = rbps / 4096 * of(0.06, 1.2), wbps / 4096 * of(0.02, 1.5)
    return {
        "rbps": rbps, "rseqiops": min(reads * of(0.4, 3), rbps / 4096 * 1.3), "rrandiops": reads,
        "wbps": wbps, "wseqiops": writes, "wrandiops": max(4000, writes * of(0.1, 1.3)),
    }  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
def test_six_numbers_of_lines_made_at_random_come_back(seed: int) -> None:
    six = random_line(seed)
    assert max(map(abs, wrong(six).values())) < 0.05, six


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4, 104))
def test_six_numbers_of_many_lines_come_back(seed: int) -> None:
    six = random_line(seed)
    assert max(map(abs, wrong(six).values())) < 0.05, six


def test_the_kernels_own_line_is_taken(tmp_path: Path) -> None:
    """As /sys/fs/cgroup/io.cost.model prints it."""
    out = tmp_path / "mine.toml"
    reads, writes = "rbps=2706339840 rseqiops=89698 rrandiops=110036", "wbps=1063126016 wseqiops=135560 wrandiops=130734"
    done = run("drives", "from", "--iocost", f"259:0 ctrl=user model=linear {reads} {writes}", "--capacity", "500GB", "-o", out)
    assert done.returncode == 0 and "controller.read_sequential: from sequential reads of 4 KiB" in done.stderr
    drive = load(out)
    assert drive.facts[0] == 500 * 10**9 // 512
    found = measured(drive)
    assert found.rbps == pytest.approx(2706339840, rel=0.05) and found.rseqiops == pytest.approx(89698, rel=0.05)
    assert found.wseqiops == pytest.approx(135560, rel=0.05) and found.wrandiops == pytest.approx(130734, rel=0.05)


NVME = ("capacity=1TB", "read=3500", "write=3000", "read_iops=500000", "write_iops=400000")
SATA = ("capacity=250GB", "read=560", "write=530", "read_iops=98000", "write_iops=88000", "interface=sata")


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "depth", "half"), [(NVME, 1023, False), (SATA, 32, True)])
def test_a_data_sheets_rates_come_back(tmp_path: Path, words: tuple[str, ...], depth: int, half: bool) -> None:
    out = tmp_path / "mine.toml"
    done = run("drives", "from", "--sheet", *words, "plp=yes", "-o", out)
    assert done.returncode == 0, done.stderr
    given = {key: value for key, _, value in (word.partition("=") for word in words)}
    drive = load(out)
    found = measured(drive)
    assert drive.facts[:2] == (int(given["capacity"][:-2]) * (10**12 if "TB" in words[0] else 10**9) // 512, depth)
    assert found.rbps == pytest.approx(float(given["read"]) * 1e6, rel=0.05)
    assert found.wbps == pytest.approx(float(given["write"]) * 1e6, rel=0.05)
    assert found.rrandiops == pytest.approx(float(given["read_iops"]), rel=0.05)
    assert found.wrandiops == pytest.approx(float(given["write_iops"]), rel=0.05)
    assert drive.data["link"]["half_duplex"] is half and drive.data["flush"]["protected"] is True


@pytest.mark.thorough
def test_a_data_sheet_without_memory_reads_more_slowly(tmp_path: Path) -> None:
    def read_ms(*more: str) -> float:
        out = tmp_path / "mine.toml"
        assert run("drives", "from", "--sheet", *NVME, *more, "-o", out).returncode == 0
        return float(load(out).data["timing"]["page_read"])

    assert read_ms("latency=0.05") == 0.05
    assert read_ms("latency=0.05", "dram=no") == pytest.approx(0.08)


def test_a_volumes_data_sheet(tmp_path: Path) -> None:
    """Its limits hold: 3000 requests and 125 MB a second."""
    out = tmp_path / "volume.toml"
    words = ("kind=volume", "capacity=500GB", "read=125", "write=125", "read_iops=3000", "write_iops=3000", "latency=0.7")
    done = run("drives", "from", "--sheet", *words, "-o", out)
    assert done.returncode == 0 and "servers: guessed" in done.stderr
    drive = load(out)
    assert drive.model.name == "shaped"
    for sectors, rate in ((8, 3000), (512, 125e6 / 2**18)):
        n = 12_000
        places = np.random.default_rng(1).integers(0, 10**5, n).astype(np.uint64) * 4096
        took = replay(drive, unmeasured(np.zeros(n, np.uint8), places, np.full(n, sectors, np.uint32)), 64)
        assert 64 / took[n // 3 : -64].mean() * 1e9 == pytest.approx(rate, rel=0.05), sectors


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


@pytest.mark.parametrize("shape", [0.5, 0.8])
def test_a_sweep_of_a_disk_whose_requests_hinder_each_other_is_predicted(tmp_path: Path, shape: float) -> None:
    """A virtual disk: twice as many requests bring less than twice the rate; reads have a limit of their own."""

    def iops(write: bool, size: int, depth: int) -> float:
        return float(min(depth**shape / (60e-6 + size / 512 * 0.3e-6), (3e9 if write else 1e9) / size))

    sweep = [
        job(write, size << 10, depth, iops(write, size << 10, depth))
        for write in (False, True)
        for size, depths in ((4, (1, 8, 64)), (64, (1, 8)), (256, (1, 32)))
        for depth in depths
    ]
    file, out = tmp_path / "sweep.json", tmp_path / "volume.toml"
    file.write_text(json.dumps({"jobs": sweep}))
    done = run("drives", "from", "--fio", file, "--capacity", "100GB", "-o", out)
    assert done.returncode == 0 and "latency.load: what explains" in done.stderr
    drive = load(out)
    for write, size, depth in ((False, 4, 2), (False, 8, 4), (False, 128, 8), (True, 16, 16), (True, 128, 2), (True, 256, 32)):
        n = 4000
        places = np.random.default_rng(1).integers(0, 10**4, n).astype(np.uint64) * 4096
        many = unmeasured(np.full(n, write, np.uint8), places, np.full(n, size * 2, np.uint32))
        found = depth / replay(drive, many, depth)[depth:-depth].mean() * 1e9
        assert found == pytest.approx(iops(write, size << 10, depth), rel=0.15), (write, size, depth)


@pytest.mark.thorough
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


@pytest.mark.thorough
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
    return replay(drive, MeasuredRequests(np.ones(n, np.uint8), places, np.full(n, 256, np.uint32), service, think)) / 1e6


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
