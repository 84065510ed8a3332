# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""calibrate: what the rates say of the host, and that nothing of the measurement is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import run, write
from fakesys import FakeSystem, machine

from headwaiter.base.errors import Problem
from headwaiter.engine.hosts import XEON_10, Cost, Host, read_host
from headwaiter.measure import calibrate as module
from headwaiter.measure.calibrate import Rate, calibrate, fitted, usual_file
from headwaiter.queue.machine import Machine

__all__ = ["machine"]

CORES = 8


def round_trip_us(cost: Cost, processes: int) -> float:
    """Return the time of a process: its own and the lock's, or that of all in line for the lock."""
    lock = {1: cost.lock, 2: cost.lock_shared}.get(processes, cost.lock_crowded)
    return max(cost.own + lock, processes * lock)


def rates_of(host: Host, counts: Sequence[int] = (1, 2, CORES)) -> list[Rate]:
    """As fio would find them; more processes cost a little more under each."""
    by_queue = {name: cost.own + cost.lock for name, cost in host.costs.items() if name in ("none", "kyber")}
    return [
        Rate(name, n, 1e6, 0.1 * (n - 1) + (by_queue[name] if name in by_queue else round_trip_us(cost, n)))
        for name, cost in host.costs.items()
        for n in counts
    ]


def test_a_host_comes_back_from_its_rates() -> None:
    found = fitted(rates_of(XEON_10), CORES, "test")
    assert found.cores == CORES
    for name in ("mq-deadline", "bfq"):
        for field in ("own", "lock", "lock_shared", "lock_crowded"):
            assert getattr(found.costs[name], field) == pytest.approx(getattr(XEON_10.costs[name], field), rel=0.01), (
                name,
                field,
            )
    assert found.costs["kyber"].own == pytest.approx(3.25) and found.costs["kyber"].lock_crowded == 0
    assert found.switch == pytest.approx(XEON_10.switch, rel=0.01)


def test_two_cores_and_one_tell_less() -> None:
    """What is not seen is as on the machine of the study, in proportion."""
    two, one = fitted(rates_of(XEON_10, (1, 2)), 2, "test"), fitted(rates_of(XEON_10, (1,)), 1, "test")
    for host in (two, one):
        cost = host.costs["mq-deadline"]
        assert cost.lock_crowded / cost.lock_shared == pytest.approx(2.08 / 1.85, rel=0.01)
    assert one.costs["bfq"].lock_shared / one.costs["bfq"].lock == pytest.approx(3.25 / 2.94, rel=0.01)


def test_noise_makes_no_negative_time() -> None:
    """A scheduler that seems to cost nothing, and less with more processes."""
    us = {("none", 1): 5.0, ("none", 2): 9.0, ("mq-deadline", 1): 4.0, ("mq-deadline", 2): 4.0}
    cost = fitted([Rate(name, n, 1e5, one) for (name, n), one in us.items()], 2, "test").costs["mq-deadline"]
    assert 0 <= cost.lock <= cost.lock_shared <= cost.lock_crowded and cost.own > 0


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_CONFIG_DIRS", f"{tmp_path}/a:{tmp_path}/b")
    assert usual_file() == tmp_path / "a/headwaiter/host.toml"
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/own")
    assert usual_file() == tmp_path / "own/headwaiter/host.toml"


# --- the device and the load ---

FIO = """#!/bin/sh
cat >{folder}/job
cat {queue}/scheduler >>{folder}/schedulers
grep -q io_uring {folder}/job && {{ echo "fio: no io_uring" >&2; exit 1; }}
for i in $(seq $(grep -c cpus_allowed {folder}/job)); do
  jobs="$jobs$comma"'{{"usr_cpu": 40.0, "sys_cpu": 60.0, "read": {{"total_ios": 300000, "runtime": 1000, "iops": 300000}}}}'
  comma=,
done
echo '{{"jobs": ['"$jobs"']}}'
"""


@pytest.fixture
def null_blk(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A kernel with null_blk, whose disk is there all the time; its folder in configfs."""
    machine.add("nullb0")
    folder = machine.root / "sys/kernel/config/nullb"
    folder.mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    fio = write(tmp_path / "tools" / "fio", FIO.format(folder=tmp_path, queue=machine.sysfs / "block" / "nullb0" / "queue"))
    fio.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fio.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    # configfs removes a folder with the files that it has made in it.
    monkeypatch.setattr(module, "_remove", shutil.rmtree)
    return folder


def test_a_null_blk_of_our_own(null_blk: Path, machine: FakeSystem, tmp_path: Path) -> None:
    """Each scheduler with each number of processes; the engine that works; the scheduler as before, the device gone."""
    queue = machine.sysfs / "block/nullb0/queue/scheduler"
    before = queue.read_text()
    found = calibrate(Machine(machine.root, tmp_path / "state"), 0.1)
    many = len(os.sched_getaffinity(0))
    assert {(one.scheduler, one.processes) for one in found.rates} >= {("none", 1), ("none", many), ("mq-deadline", 1)}
    assert found.rates[0].processor_us == pytest.approx(1e6 / 300_000) and found.device == "null_blk"
    assert found.host.source.endswith("null_blk, libaio")
    job = (tmp_path / "job").read_text()
    assert "bs=4k" in job and "iodepth=128" in job and f"filename={machine.root}/dev/nullb0" in job
    assert len(set((tmp_path / "schedulers").read_text().splitlines())) >= 2
    assert queue.read_text() == before and not list(null_blk.iterdir())


def test_a_failure_leaves_nothing(null_blk: Path, machine: FakeSystem, tmp_path: Path) -> None:
    fio = Path(shutil.which("fio") or "")
    fio.write_text(fio.read_text().replace("grep -q io_uring", "grep -q ."))
    with pytest.raises(Problem, match=r"calibrate: io_uring: fio: fio: no io_uring; libaio: "):
        calibrate(Machine(machine.root, tmp_path / "state"), 0.1)
    assert not list(null_blk.iterdir())


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Problem, match="calibrate: needs root"):
        calibrate(Machine(), 0.1)


def test_fio_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="needs fio"):
        calibrate(Machine(), 0.1)


def there() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("fio", "losetup"))) and Path("/dev/loop-control").exists()


@pytest.mark.skipif(not there(), reason="needs root, fio and loop devices")
def test_this_machine(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file that all may read, from which hosts are read; no device is left."""
    file = tmp_path / "new" / "host.toml"
    status, out, err = run(capfd, "calibrate", "-t", "0.1", "--host-file", file, "--state", tmp_path / "state", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert read_host(file).cores == found["cores"] == len(os.sched_getaffinity(0))
    assert file.stat().st_mode & 0o777 == 0o644
    assert {"none", "mq-deadline"} <= {row["scheduler"] for row in found["costs"]}
    loops = subprocess.run(["losetup", "--all"], capture_output=True, text=True, check=True).stdout
    assert not re.search("headwaiter-", loops)
    job = write(tmp_path / "job.fio", "[r]\nrw=randread\nsize=1m\ndirect=1\n")
    status, out, _ = run(capfd, "compare", job, "-d", "nvme-ssd", "-s", "none,bfq", "--host", file, "--seeds", "0", "--json")
    assert status == 0 and json.loads(out)["processor"]["host"]["cores"] == found["cores"]
