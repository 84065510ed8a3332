# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What would stop working under another scheduler: ionice classes, cgroup weights and priorities, write-back throttling."""

from __future__ import annotations

import ctypes
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from headwaiter.queue.settings import Settings

_IOPRIO_GET = {"x86_64": 252, "aarch64": 31, "riscv64": 31}
_WHO_PROCESS = 1
_CLASSES = {1: "real-time", 2: "best-effort", 3: "idle"}
_LEVEL_DEFAULT = 4
_CLASSLESS = {"none", "kyber"}
"""They ignore ionice."""
_LEVELS = {"bfq", "hw-bfq", "hw-cfq-slice", "hw-maitre"}
"""They look at levels within a class, too; the others only at classes."""
_WEIGHTS = {"bfq"}
_OTHER_WEIGHTS = {"hw-maitre"}
"""They take weights, too, but from io.weight or a file of their own."""
_FILES = {"io.bfq.weight": "100", "io.prio.class": "no-change"}
"""Files of cgroups, and what they say by default."""


@dataclass(frozen=True)
class Uses:
    """Features of a scheduler that are in use on this machine.

    priorities: processes by class and level; cgroups: by file, their names.
    """

    priorities: tuple[tuple[int, int], ...] = ()
    weights: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Return whether anything is."""
        return bool(self.priorities or self.weights or self.classes)


def uses(root: Path = Path("/"), ioprio: Callable[[int], int] | None = None) -> Uses:
    """Look at all processes and cgroups; `ioprio(pid)`: as ioprio_get(2) has it, 0 none."""
    ask = ioprio or _ioprio
    pids = [int(path.name) for path in (root / "proc").glob("[0-9]*")]
    found = [(value >> 13, value & 7) for pid in pids if (value := ask(pid)) > 0]
    said = sorted(one for one in found if one[0] in _CLASSES and one != (2, _LEVEL_DEFAULT))
    return Uses(tuple(said), tuple(_set(root, "io.bfq.weight")), tuple(_set(root, "io.prio.class")))


def losses(found: Uses, old: Settings, new: str) -> list[str]:
    """Return what a switch from these settings to another scheduler would end, in sentences."""
    told = []
    if old.scheduler not in _CLASSLESS and new in _CLASSLESS:
        counts = Counter(_CLASSES[one] for one, _ in found.priorities)
        if counts:
            said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            told.append(f"ionice: {new} ignores the I/O priorities that processes have ({said})")
        if found.classes:
            told.append(f"{new} ignores io.prio.class of {_names(found.classes)}")
    elif old.scheduler in _LEVELS and new not in _LEVELS and any(one == 2 for one, _ in found.priorities):
        told.append(f"ionice: {new} tells classes apart, but not levels within best-effort, which processes have")
    if old.scheduler in _WEIGHTS and new not in _WEIGHTS and found.weights:
        if new in _OTHER_WEIGHTS:
            told.append(f"{new} takes weights from io.weight or io.maitre.weight, not io.bfq.weight of {_names(found.weights)}")
        else:
            told.append(f"{new} ignores io.bfq.weight of {_names(found.weights)}: their shares end")
    if new in _WEIGHTS and old.scheduler not in _WEIGHTS and old.wbt_lat_usec:
        told.append(f"write-back throttling ends under {new} (wbt_lat_usec is {old.wbt_lat_usec} now)")
    return told


def _names(found: tuple[str, ...]) -> str:
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more cgroups" if len(found) > 3 else "")


def _set(root: Path, file: str) -> Iterator[str]:
    """cgroups in which a file says something else than its default."""
    top = root / "sys" / "fs" / "cgroup"
    for folder, _, names in os.walk(top):
        if file not in names:
            continue
        try:
            lines = Path(folder, file).read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        if any(line.removeprefix("default ").strip() not in ("", _FILES[file]) for line in lines):
            yield "/" + str(Path(folder).relative_to(top))


def _ioprio(pid: int) -> int:
    """Return the I/O priority that a process was given; 0 if it has none, or it cannot be told."""
    number = _IOPRIO_GET.get(platform.machine())
    if number is None:
        return 0
    value = int(ctypes.CDLL(None).syscall(number, _WHO_PROCESS, pid))
    # Of a process that was given none, the kernel makes one up from its nice value, in the class `none`.
    return max(0, value)
