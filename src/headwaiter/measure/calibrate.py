# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What I/O costs the processors of this machine under each scheduler of its kernel, measured on a device that does nothing.

That is a null_blk of our own, or, where the kernel has none, a loop device over a file in memory, whose workers disturb. No disk
is touched. fio reads at random, 128 at once, from one process, from two, and from one on each processor.

What counts is the processor time of a process for a read: who waits for the lock spins. How it divides into the scheduler's own
and the lock's cannot be seen from outside: in one process as on the machine of the flash study; with more, the lock takes what is
more than under `none`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem, shown
from headwaiter.engine.hosts import BY_QUEUE, FILE, KERNEL, MODEL, TIMES, XEON_10, Cost, Host, places
from headwaiter.measure.running import fio_there, fio_told, restored
from headwaiter.measure.schema import CalibrateDocument, CalibrationRow, SchedulerCost
from headwaiter.queue.apply import apply
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Settings

BY = "headwaiter calibrate"
DEPTH = 128
_CONFIGFS = Path("sys/kernel/config/nullb")
_MIB = 1 << 20
_FILE_MIB = 64
_ENGINES = ("io_uring", "libaio")
_FIRST_S = 0.2
"""An engine that works does so for so long."""


@dataclass(frozen=True)
class Rate:
    """fio's figures: reads a second, and processor time for a read."""

    scheduler: str
    processes: int
    iops: float
    processor_us: float


@dataclass(frozen=True)
class CalibratedHost:
    """A host, and what it was made from. device: what was read, in words."""

    host: Host
    rates: tuple[Rate, ...]
    device: str
    notes: tuple[str, ...]

    def document(self, file: Path) -> CalibrateDocument:
        """Return what `headwaiter calibrate --json` prints."""
        return CalibrateDocument(
            device=self.device,
            cores=self.host.cores,
            results=[
                CalibrationRow(scheduler=r.scheduler, processes=r.processes, iops=r.iops, processor_us=r.processor_us)
                for r in self.rates
            ],
            costs=[
                SchedulerCost(
                    scheduler=name,
                    own_us=cost.own,
                    lock_us=cost.lock,
                    lock_shared_us=cost.lock_shared,
                    lock_crowded_us=cost.lock_crowded,
                )
                for name, cost in self.host.costs.items()
            ],
            file=str(file),
            notes=self.notes,
        )


def usual_file() -> Path:
    """Return the file for a calibration: the user's if XDG_CONFIG_HOME says where, else the machine's, for it takes root."""
    own, *machine = places()
    return own if os.environ.get("XDG_CONFIG_HOME") or not machine else machine[0]


def calibrate(machine: Machine, seconds: float, progress: Callable[[str], None] = lambda what: None) -> CalibratedHost:
    """Measure this machine, so many seconds each time. The devices that it makes are gone at every end."""
    if os.geteuid():
        raise Problem("calibrate: needs root, to make a device and to set its scheduler")
    fio = fio_there()
    cpus = sorted(os.sched_getaffinity(0))
    with _device(machine) as (name, what):
        device = machine.find(name)
        node = machine.root / "dev" / name
        engine = _engine(fio, node, cpus)
        rates, notes = [], []
        with restored([device], machine.state, BY):
            for scheduler in KERNEL:
                try:
                    apply([device], Settings(scheduler), machine.state, BY)
                except Problem as e:
                    if scheduler in ("none", MODEL):
                        raise
                    notes.append(f"{scheduler} was not measured: {e}")
                    continue
                for processes in sorted({1, min(2, len(cpus)), len(cpus)}):
                    progress(f"{scheduler}, {processes} of {len(cpus)} processors")
                    rates.append(_rate(fio, node, scheduler, cpus[:processes], seconds, engine))
    host = fitted(rates, len(cpus), f"headwaiter calibrate, Linux {os.uname().release}: {what}, {engine}")
    return CalibratedHost(host, tuple(rates), what, tuple(notes))


# --- what the rates say ---


def fitted(rates: Sequence[Rate], cores: int, source: str) -> Host:
    """The host that explains them. Rates of none and mq-deadline are there, each in one process and more."""
    by = {(one.scheduler, one.processes): one for one in rates}
    one_us, known = by["none", 1].processor_us, XEON_10.costs["none"]
    scale = one_us / (known.own + known.lock)

    def took(scheduler: str, processes: int) -> float:
        """Microseconds of a process for a read, without what more processes cost whatever the scheduler."""
        return by[scheduler, processes].processor_us - by["none", processes].processor_us + one_us

    costs = {"none": Cost(round(one_us, 3), 0.0, 0.0, 0.0)}
    for scheduler in KERNEL[1:]:
        if (scheduler, 1) not in by:
            continue
        theirs = XEON_10.costs[scheduler]
        alone = took(scheduler, 1)
        if scheduler in BY_QUEUE:
            costs[scheduler] = Cost(round(alone, 3), 0.0, 0.0, 0.0)
            continue
        own = alone * theirs.own / (theirs.own + theirs.lock)
        lock = alone - own
        shared = max(lock, _lock(took(scheduler, 2), own, 2)) if (scheduler, 2) in by else lock * theirs.lock_shared / theirs.lock
        grown = shared * theirs.lock_crowded / theirs.lock_shared
        crowded = max(shared, _lock(took(scheduler, cores), own, cores)) if cores > 2 else grown
        costs[scheduler] = Cost(*(round(us, 3) for us in (own, lock, shared, crowded)))
    scaled = {name: round(getattr(XEON_10, name) * scale, 3) for name in TIMES}
    return Host(name=FILE.removesuffix(".toml"), source=source, cores=cores, costs=costs, **scaled)


def _lock(took_us: float, own_us: float, processes: int) -> float:
    """Return how long a lock is held, if so many processes, each with so much of its own, take so long for an I/O.

    Each goes round in own + lock, or all of them stand in line for the lock, whichever is longer.
    """
    free, full = took_us - own_us, took_us / processes
    return free if own_us >= (processes - 1) * free else full


# --- the load ---


def _job(node: Path, cpus: Sequence[int], seconds: float, engine: str) -> str:
    lines = ["[global]", f"filename={node}", "rw=randread", "bs=4k", "direct=1", "norandommap", f"ioengine={engine}"]
    lines += [f"iodepth={DEPTH}", "time_based", f"runtime={round(1000 * seconds)}ms"]
    return "\n".join([*lines, *(line for cpu in cpus for line in (f"[on{cpu}]", f"cpus_allowed={cpu}"))]) + "\n"


def _engine(fio: str, node: Path, cpus: Sequence[int]) -> str:
    """The first that fio and this kernel have."""
    troubles = []
    for engine in _ENGINES:
        try:
            fio_told(fio, _job(node, cpus[:1], _FIRST_S, engine), len)
        except Problem as e:
            troubles.append(f"{engine}: {e}")
        else:
            return engine
    raise Problem(f"calibrate: {'; '.join(troubles)}")


def _rate(fio: str, node: Path, scheduler: str, cpus: Sequence[int], seconds: float, engine: str) -> Rate:
    def told(jobs: Sequence[Mapping[str, Any]]) -> Rate:
        ios = sum(one["read"]["total_ios"] for one in jobs)
        busy_s = sum((one["usr_cpu"] + one["sys_cpu"]) / 100 * one["read"]["runtime"] / 1000 for one in jobs)
        if not ios or not busy_s:
            raise Problem("calibrate: fio read nothing")
        return Rate(scheduler, len(cpus), float(sum(one["read"]["iops"] for one in jobs)), 1e6 * busy_s / ios)

    return fio_told(fio, _job(node, cpus, seconds, engine), told)


# --- the device ---


@contextmanager
def _device(machine: Machine) -> Iterator[tuple[str, str]]:
    """Name and kind of a device that does nothing; it is gone when the block is left, or the process ends."""
    with _module(machine) as configfs:
        if configfs:
            with _null(machine, configfs) as name:
                yield name, "null_blk"
            return
    with _loop() as name:
        yield name, "a loop device over memory (this kernel has no null_blk; its workers disturb)"


@contextmanager
def _module(machine: Machine) -> Iterator[Path | None]:
    """null_blk's folder in configfs; None where the kernel has none. A module that was loaded for this goes again."""
    folder = machine.root / _CONFIGFS
    modprobe = shutil.which("modprobe")
    if folder.is_dir() or not modprobe:
        yield folder if folder.is_dir() else None
        return
    if subprocess.run([modprobe, "null_blk", "nr_devices=0"], capture_output=True, check=False).returncode:
        yield None
        return
    with tidied(lambda: subprocess.run([modprobe, "-r", "null_blk"], capture_output=True, check=False)):
        yield folder if folder.is_dir() else None


@contextmanager
def _null(machine: Machine, configfs: Path) -> Iterator[str]:
    """One of our own, with a hardware queue for each processor, that completes at once."""
    ours = configfs / f"headwaiter-{os.getpid()}"
    try:
        ours.mkdir()
    except OSError as e:
        raise Problem(f"{ours}: {e.strerror}") from None
    with tidied(lambda: _remove(ours)):
        wanted = {"size": 1024, "blocksize": 512, "queue_mode": 2, "irqmode": 1, "hw_queue_depth": 1023}
        for file, value in {**wanted, "submit_queues": os.cpu_count() or 1, "power": 1}.items():
            try:
                (ours / file).write_text(f"{value}\n")
            except OSError as e:
                raise Problem(f"{ours / file}: {e.strerror}") from None
        # Kernels differ in whether the folder gives the name.
        number = (ours / "index").read_text().strip() if (ours / "index").exists() else "0"
        yield ours.name if (machine.sysfs / "block" / ours.name).exists() else f"nullb{number}"


def _remove(ours: Path) -> None:
    (ours / "power").write_text("0\n")
    ours.rmdir()


@contextmanager
def _loop() -> Iterator[str]:
    """A loop device over a file in memory."""
    losetup = shutil.which("losetup")
    if not losetup:
        raise Problem("calibrate: the kernel has no null_blk, and a loop device needs losetup (util-linux)")
    handle, name = mkstemp(prefix="headwaiter-", dir=_memory())
    file = Path(name)
    with tidied(lambda: file.unlink(missing_ok=True)):
        try:
            os.posix_fallocate(handle, 0, _FILE_MIB * _MIB)
        except OSError as e:
            raise Problem(f"{file}: {e.strerror}") from None
        finally:
            os.close(handle)
        made = subprocess.run([losetup, "--find", "--show", name], capture_output=True, text=True, check=False)
        node = made.stdout.strip()
        if made.returncode or not node:
            raise Problem(f"calibrate: losetup: {shown(made.stderr.strip() or 'no device', 200)}")
        with tidied(lambda: subprocess.run([losetup, "--detach", node], capture_output=True, check=False)):
            yield Path(node).name


def _memory() -> Path:
    """A folder whose files are in memory, with room. Problem if there is none."""
    folders = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()]
    for _, where, kind, flags, *_ in folders:
        folder = Path(where)
        if kind == "tmpfs" and "rw" in flags.split(",") and os.access(folder, os.W_OK):
            room = os.statvfs(folder)
            if room.f_bavail * room.f_frsize >= 2 * _FILE_MIB * _MIB:
                return folder
    raise Problem(f"calibrate: the kernel has no null_blk, and no tmpfs has room for {2 * _FILE_MIB} MiB (mount one)")
