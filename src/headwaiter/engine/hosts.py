# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hosts: how many processors there are, and what an I/O costs them under each scheduler.

On a fast drive they decide: a scheduler with one lock for the whole device lets through so many I/Os a second, however many
processors ask. sim/host.c tells the model. A host is one of HOSTS, or a file that `headwaiter calibrate` has written; it knows
the four schedulers of Linux. What others cost is estimated: they hold the lock as mq-deadline does, longer by their instructions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.parsing import parse_toml
from headwaiter.base.reading import TEXT_BYTES, exists, read_bytes
from headwaiter.engine.sim import Options

LARGEST_US = 1e6
MOST_CORES = 1024
MODEL = "mq-deadline"
"""By its cost those of unmeasured schedulers are told."""
KERNEL = ("none", MODEL, "kyber", "bfq")
"""Schedulers that a host has measured."""
BY_QUEUE = ("none", "kyber")
"""Those that have a lock for each hardware queue; others have one for the device."""

# Instructions of a random request of 4 KiB, all in all (`make bench`). Without the simulator's own, bfq's are 2.3 times
# mq-deadline's: as much longer does it hold its lock on a real machine (flash study of 2024, one process).
_SIMULATOR = 1320
_INSTRUCTIONS = {
    "noop": 1446, "deadline": 1878, "as": 2267, "as-95": 2342, "cas": 2256, "was": 2547, "was-online": 2660, MODEL: 1903,
    "kyber": 1690, "as-seek": 5649, "as-share": 4693, "cfq": 1753, "cfq-slice": 2340, "bfq": 2668, "maitre": 3222,
}  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Processor time of an I/O under a scheduler, in us: `own` on its process's core, completion included, and at the lock.

    lock: where the same core had it last; lock_shared: where another had it, or has it; lock_crowded: where several wait.
    """

    own: float
    lock: float
    lock_shared: float
    lock_crowded: float

    def times(self, factor: float) -> Cost:
        """Return the cost with the lock held `factor` times as long."""
        return Cost(self.own, self.lock * factor, self.lock_shared * factor, self.lock_crowded * factor)


@dataclass(frozen=True)
class Host:
    """A machine's processors. Times in microseconds; what is said of a page is of 4 KiB."""

    name: str
    source: str
    cores: int
    complete: float
    """The part of `own` that the completion takes."""
    switch: float
    """Until a process that waited goes on."""
    switch_more: float
    """More, each time that the processes of a core double beyond 4."""
    page: float
    """Time for a page of direct I/O, which is not copied."""
    worker: float
    """From a completion or a timer to a decision, where a worker of the kernel makes it."""
    copy: float
    """Time for an I/O through the page cache."""
    copy_page: float
    costs: Mapping[str, Cost]
    """By scheduler: of those of the kernel, none and mq-deadline at least."""

    def cost(self, scheduler: str) -> Cost:
        """Return the cost of a scheduler, measured or estimated."""
        if scheduler in self.costs:
            return self.costs[scheduler]
        own = {name: number - _SIMULATOR for name, number in _INSTRUCTIONS.items()}
        return self.costs[MODEL].times(own.get(scheduler, own[MODEL]) / own[MODEL])

    def base(self, options: Options, cores: int = 0, spread: bool = False) -> Options:
        """Return the options with this host, whatever the scheduler."""
        return replace(
            options,
            cores=min(cores or self.cores, MOST_CORES),
            spread=spread,
            one_processor=False,
            dispatch_ns=_ns(self.worker), dispatch_page_ns=0, dispatch_write_page_ns=0, restart_ns=0, pass_ns=0,
            turnaround_page_ns=_ns(self.page),
            copy_ns=_ns(self.copy), copy_page_ns=_ns(self.copy_page),
            complete_ns=_ns(self.complete),
            switch_ns=_ns(self.switch), switch_more_ns=_ns(self.switch_more),
            replayed_ns=_ns(self.costs["none"].own - self.complete),
        )  # fmt: skip

    def under(self, options: Options, scheduler: str) -> Options:
        """Options of base() with a scheduler's cost."""
        cost = self.cost(scheduler)
        return replace(
            options,
            turnaround_ns=_ns(max(0.0, cost.own - self.complete)),
            lock_by_queue=scheduler in BY_QUEUE,
            lock_ns=_ns(cost.lock), lock_shared_ns=_ns(cost.lock_shared), lock_crowded_ns=_ns(cost.lock_crowded),
        )  # fmt: skip

    def table(self) -> dict[str, Any]:
        """Return the table that a file has."""
        times = {name: getattr(self, name) for name in TIMES}
        costs = {name: {one.name: getattr(cost, one.name) for one in fields(Cost)} for name, cost in self.costs.items()}
        return {"name": self.name, "source": self.source, "cores": self.cores, "times": times, **costs}


TIMES = ("complete", "switch", "switch_more", "page", "worker", "copy", "copy_page")


def _ns(us: float) -> int:
    return round(1000 * us)


XEON_10 = Host(
    name="xeon-10",
    source="fitted to figures 2, 3 and 7 of Ren et al., ICPE 2024: 10 cores, Linux 6.3, io_uring, hyper-threads and turbo off;"
    " worker, copy and page are guessed",
    cores=10,
    complete=0.8,
    switch=2.2,
    switch_more=0.6,
    page=0.04,
    worker=2.0,
    copy=1.0,
    copy_page=0.35,
    costs={
        "none": Cost(2.40, 0.18, 0.18, 0.18),
        "mq-deadline": Cost(1.92, 1.27, 1.85, 2.08),
        "kyber": Cost(2.90, 0.35, 0.35, 0.35),
        "bfq": Cost(1.16, 2.94, 3.25, 3.43),
    },
)
HOSTS = {host.name: host for host in (XEON_10,)}
LAB = "lab"
"""A processor for each process, and the same time under every scheduler: what the lab's kernels have under QEMU."""
AUTO = "auto"
FILE = "host.toml"


def places() -> Iterator[Path]:
    """Return the files in which a calibration may be; the first counts before others (XDG base directories)."""
    own = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '')}/.config"
    folders = [own, *(os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")]
    return (Path(folder) / "headwaiter" / FILE for folder in folders if folder.startswith("/"))


def here() -> Host | None:
    """This machine's own, if it was calibrated. Problem if its file is not sound."""
    found = next((path for path in places() if exists(path)), None)
    return read_host(found) if found else None


def find_host(name: str) -> Host | None:
    """A host by its name or file; None is the lab. Problem if there is none."""
    if name == LAB:
        return None
    if name in HOSTS:
        return HOSTS[name]
    if "/" in name or name.endswith(".toml"):
        return read_host(Path(name))
    known = (AUTO, LAB, *HOSTS)
    raise Problem(f"--host {shown(name)}: neither a file nor known{did_you_mean(name, known)} ({', '.join(known)}, FILE.toml)")


def read_host(path: Path) -> Host:
    """Read a file that `headwaiter calibrate` wrote. A Problem names the file and what is wrong with it."""
    data = parse_toml(str(path), read_bytes(path, TEXT_BYTES))
    known = {"name", "source", "cores", "times"}
    for key in data:
        if key not in known and key not in KERNEL:
            raise Problem(f"{path}: {shown(key)}: unknown key{did_you_mean(key, [*known, *KERNEL])}")
    cores = data.get("cores")
    if isinstance(cores, bool) or not isinstance(cores, int) or not 1 <= cores <= MOST_CORES:
        raise Problem(f"{path}: cores: must be a whole number from 1 to {MOST_CORES}")
    costs = {name: Cost(**_numbers(path, data, name, [one.name for one in fields(Cost)])) for name in KERNEL if name in data}
    for name in ("none", MODEL):
        if name not in costs:
            raise Problem(f"{path}: {name}: is missing")
    name, source = data.get("name", path.stem), data.get("source", "")
    if not isinstance(name, str) or not isinstance(source, str):
        raise Problem(f"{path}: name, source: must be text")
    return Host(name=name, source=source, cores=cores, **_numbers(path, data, "times", TIMES), costs=costs)


def _numbers(path: Path, data: Mapping[str, Any], section: str, names: Sequence[str]) -> dict[str, float]:
    """Times of a section: each must be there."""
    table = data.get(section)
    if not isinstance(table, dict):
        raise Problem(f"{path}: {section}: must be a table")
    for key in table:
        if key not in names:
            raise Problem(f"{path}: {section}.{shown(key)}: unknown key{did_you_mean(key, names)}")
    for name in names:
        value = table.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise Problem(f"{path}: {section}.{name}: must be a number of microseconds")
        if not 0 <= value <= LARGEST_US:
            raise Problem(f"{path}: {section}.{name}: must be from 0 to {LARGEST_US:g} us")
    return {name: float(table[name]) for name in names}
