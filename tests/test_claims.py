# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the schedulers are for, on the rotating drives: the effects that the papers report, by command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DRIVES_7200 = ["maxtor-20g", "deskstar-75gxp", "barracuda-80g", "wd-re-4tb"]


def compare(path: Path, drive: str, *args: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-P", "-m", "headwaiter", "compare", str(path), "--drive", drive, "--json", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {r["scheduler"]: r for r in json.loads(done.stdout)["results"]}


def readers(path: Path, n: int, size_mib: int = 16) -> Path:
    """n synchronous sequential readers of 4 KiB that think 0.1 ms, each on a file of its own, far apart."""
    path.write_text(
        f"[global]\nrw=read\nbs=4k\ndirect=1\nioengine=psync\nthinktime=100\nsize={size_mib}m\n[reader]\nnumjobs={n}\n"
    )
    return path


@pytest.mark.parametrize(
    "drive", [pytest.param(d, marks=[] if d == "barracuda-80g" else pytest.mark.thorough) for d in DRIVES_7200]
)
def test_sequential_readers(tmp_path: Path, drive: str) -> None:
    chosen = ["--sched", "deadline,as,cfq-slice"]
    one = compare(readers(tmp_path / "1.fio", 1), drive, *chosen)
    rates = [r["throughput_MBps"] for r in one.values()]
    assert max(rates) <= 1.02 * min(rates), "with one reader there is nothing to choose"
    for n in (2, 4, 8):
        many = compare(readers(tmp_path / f"{n}.fio", n), drive, *chosen)
        ratio = {s: many[s]["throughput_MBps"] / one[s]["throughput_MBps"] for s in many}
        assert ratio["as"] >= 0.85, (n, ratio)
        assert ratio["cfq-slice"] >= 0.85, (n, ratio)
        if n == 8:
            assert ratio["deadline"] < 0.25
            assert many["cfq-slice"]["fairness_jain"] >= 0.99
            assert many["cfq-slice"]["read"]["lat_ms"]["max"] < many["as"]["read"]["lat_ms"]["max"]


def chain(path: Path, files: int, stream: int) -> Path:
    """A streaming reader, and a chain of readers that each read one file of 8 KiB and exit; the next starts 2 ms later."""
    rows = [(0.0004 * i, f"1,R,1,{2048 + 64 * i},64", 0.0004 * i + 0.0003, 1) for i in range(stream)]
    rows += [(0.012 * k, f"{k + 10},R,1,{20_000_000 + 16 * k},16", 0.012 * k + 0.010, 2) for k in range(files)]
    lines = [f"{t:.6f},{what},{c:.6f},{g}" for t, what, c, g in sorted(rows)]
    path.write_text("time_s,task,op,sync,sector,sectors,complete_s,group\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.thorough
@pytest.mark.parametrize("drive", DRIVES_7200)
def test_chain_of_short_lived_readers(tmp_path: Path, drive: str) -> None:
    r = compare(chain(tmp_path / "chain.csv", 250, 200_000), drive, "--sched", "deadline,as,cas")
    took = {s: next(g["elapsed_s"] for g in r[s]["groups"] if g["tasks"] > 1) for s in r}
    assert took["as"] >= 5 * took["deadline"], "as waits for the stream and lets the chain starve"
    # A drive that buffers whole tracks as they pass serves the next of the chain's small files from memory, whoever is served in
    # between: waiting for it gains nothing there, and costs what is waited.
    assert took["cas"] <= took["deadline"] * (1.5 if drive == "wd-re-4tb" else 1)
    assert r["cas"]["throughput_MBps"] >= 0.9 * r["as"]["throughput_MBps"]


def shares(path: Path) -> Path:
    path.write_text(
        "[global]\nrw=read\nbs=4k\ndirect=1\nioengine=psync\nthinktime=100\nsize=1g\nruntime=20\n"
        "time_based\n[reader]\nnumjobs=2\n"
    )
    return path


@pytest.mark.thorough
@pytest.mark.parametrize("drive", DRIVES_7200)
def test_proportional_shares(tmp_path: Path, drive: str) -> None:
    path = shares(tmp_path / "shares.fio")
    for anticipate, low, high in (("1", 1.9, 2.1), ("0", 0.85, 1.2)):
        r = compare(path, drive, "--sched", "as-share", "--share", "0=1", "--share", "1=2", "--set", f"anticipate={anticipate}")
        rate = {t["task"]: t["throughput_MBps"] for t in r["as-share"]["tasks"]}
        assert low <= rate[1] / rate[0] <= high, (anticipate, rate)


@pytest.mark.thorough
def test_bfq_helps_the_newcomer(tmp_path: Path) -> None:
    """A small reader that starts against eight streaming readers gets its first 10 MB at least twice as fast."""
    path = tmp_path / "newcomer.fio"
    path.write_text(
        "[global]\nrw=read\ndirect=1\nioengine=psync\nbs=128k\n"
        "[stream]\nnumjobs=8\nsize=2g\nruntime=60\ntime_based\n"
        "[newcomer]\nbs=64k\nsize=10m\nstartdelay=15\n"
    )
    r = compare(path, "barracuda-80g", "--sched", "bfq,mq-deadline")
    took = {s: next(t["elapsed_s"] for t in r[s]["tasks"] if t["name"] == "newcomer") for s in r}
    assert 2 * took["bfq"] <= took["mq-deadline"], took
