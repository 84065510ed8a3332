# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `workloads`: what is played in the guest, and the trees that its programs work on.

Five of the eight workloads are what generated ones (headwaiter.generated) do to files, recorded and played by processes of the
guest's own on a real file system. For the others real programs run. Each gets a guest of its own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from headwaiter.base.errors import Problem, shown
from headwaiter.base.paths import WORKLOADS
from headwaiter.base.reading import read_bytes
from headwaiter.generated import generate
from headwaiter.generated.files import File
from headwaiter.generated.model_machine import ModelMachine, Process, Program
from headwaiter.lab.guest import Guest, GuestOutcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.script import Script, guest

SECTORS = 1 << 25
"""The disk on which they are generated has 16 GiB."""
PLAYED: dict[str, dict[str, float]] = {
    "kva": {"file_mib": 64, "passes": 3},
    "cold-boot": {"services": 10, "desktop": 4, "documents": 2, "windows": 1, "libraries": 100, "settings": 10, "pause_s": 0.3},
    "multi-user": {"requests": 200, "small_files": 60, "large_files": 20},
    "db": {"data_mib": 40, "log_mib": 5, "common_log_mib": 10},
    "scientific": {"operations": 100, "file_percent": 20},
}
"""Parameters that are smaller in the guest than in workloads/NAME.toml. The parameter PART divides the first of each."""
PROGRAMS: dict[str, dict[str, int]] = {
    "andrew": {"runs": 2, "processes": 8, "files": 70, "compiles": 4},
    "kernel-compile": {"sources": 80, "jobs": 4, "headers": 160, "headers_each": 20},
    "bonnie": {"file_mib": 64},
}
"""Scales of those that are real programs; PART divides the first of each, too."""


@dataclass
class PlayedRecording:
    """The work of processes, as lab/guest/player.c plays it."""

    files: dict[File, int]
    steps: list[list[str]]


def recorder(into: PlayedRecording) -> type[Process]:
    """A class of processes that write down what they do."""

    class Recorder(Process):
        def __init__(self, machine: ModelMachine, task: int, parent: Process | None) -> None:
            super().__init__(machine, task, parent)
            self.number = len(into.steps)
            into.steps.append([])

        def _note(self, what: str, *numbers: int) -> None:
            into.steps[self.number].append(" ".join([what, *map(str, numbers)]))

        def _file(self, file: File) -> int:
            return into.files.setdefault(file, len(into.files))

        def think(self, ns: float) -> None:
            self._note("t", round(ns))
            super().think(ns)

        def sleep(self, ns: float) -> None:
            # The player's programs sleep while they think, too.
            self._note("t", round(ns))
            super().sleep(ns)

        def start(self, name: str, program: Any, *, same: bool = False) -> Process:
            child = super().start(name, program, same=same)
            assert isinstance(child, Recorder)
            self._note("s", child.number)
            return child

        def wait(self, other: Process) -> Program:
            assert isinstance(other, Recorder)
            self._note("w", other.number)
            yield from super().wait(other)

        def read(self, file: File, page: int, count: int = 1) -> Program:
            self._note("r", self._file(file), page, min(count, file.pages - page))
            yield from super().read(file, page, count)

        def fault(self, file: File, page: int, around: int = 32) -> Program:
            self._note("f", self._file(file), page)
            yield from super().fault(file, page, around)

        def write(self, file: File, page: int, count: int = 1) -> Program:
            self._note("x", self._file(file), page, min(count, file.pages - page))
            yield from super().write(file, page, count)

        def sync(self) -> Program:
            self._note("y")
            yield from super().sync()

        def forget(self, file: File) -> None:
            self._note("d")
            super().forget(file)

    return Recorder


def record(name: str, changed: Mapping[str, float], seed: int = 0) -> bytes:
    """The list of a workload, in one of its draws: its files, and what each process does."""
    path = WORKLOADS / f"{name}.toml"
    into = PlayedRecording({}, [])
    load = generate(path, read_bytes(path), SECTORS, seed, recorder(into), **changed)
    folders: dict[Any, int] = {}
    lines = []
    for file, number in into.files.items():
        folder = folders.setdefault(file.about[0], len(folders))
        lines.append(f"{'M' if file.made else 'F'} /mnt/{name}/{folder}/{number} {file.pages}")
    # A flusher has no steps: the guest has its own.
    names = [task.name for task in load.tasks if task.name != "flusher"]
    started = {step for steps in into.steps for step in steps if step.startswith("s ")}
    lines += [f"P {name}", *(f"s {i + 1}" for i in range(len(names)) if f"s {i}" not in started)]
    for process, steps in zip(names, into.steps, strict=True):
        lines.append(f"P {process}")
        lines += [_shifted(step) for step in steps]
    return "".join(line + "\n" for line in lines).encode()


def _shifted(step: str) -> str:
    """Return a step for a list in which process 0 is the one that starts all."""
    what, *numbers = step.split()
    return f"{what} {int(numbers[0]) + 1}" if what in "sw" else step


def andrew_tree(scale: Mapping[str, int], seed: int = 0) -> dict[str, bytes]:
    """For each run of each process a tree of small files in five folders."""
    dice = random.Random(seed)
    return {
        f"/tree/{process}/{run}/{k % 5}/f{k}.c": b"a line of text\n" * round(140 * dice.lognormvariate(0, 1))
        for process in range(scale["processes"])
        for run in range(scale["runs"])
        for k in range(scale["files"])
    }


def kernel_tree(scale: Mapping[str, int], seed: int = 0) -> dict[str, bytes]:
    """Sources that include headers, most of them the same few, and a makefile."""
    dice = random.Random(seed)

    def text(lines: float) -> bytes:
        return b"/* words */\n" * round(lines * dice.lognormvariate(0, 1))

    out = {f"/tree/include/{k % 8}/h{k}.h": text(250) for k in range(scale["headers"])}
    for k in range(scale["sources"]):
        which = dict.fromkeys(int(dice.random() ** 3 * scale["headers"]) for _ in range(scale["headers_each"]))
        includes = b"".join(b'#include "../../include/%d/h%d.h"\n' % (h % 8, h) for h in which)
        out[f"/tree/src/{k % 6}/s{k}.c"] = includes + text(850)
    objects = " ".join(f"src/{k % 6}/s{k}.o" for k in range(scale["sources"]))
    out["/tree/Makefile"] = f"all: {objects}\n%.o: %.c\n\t@player compile $< $@ $(COMPILE_US)\n".encode()
    return out


TREES = {"andrew": andrew_tree, "kernel-compile": kernel_tree}


def scaled(name: str, part: int) -> dict[str, Any]:
    """The scale of a workload, the first figure of which is divided by `part`."""
    scale: Mapping[str, Any] = PLAYED[name] if name in PLAYED else PROGRAMS[name]
    first = next(iter(scale))
    return {**scale, first: max(1, scale[first] // part)}


def prepared(machine: Guest, name: str, part: int, sizes: Mapping[str, float] = MappingProxyType({}), seed: int = 0) -> Guest:
    """The guest of one workload: what is played in it, or the tree that its programs work on. `sizes` in place of its own."""
    scale = {**scaled(name, part), **sizes}
    if name in PLAYED:
        return replace(machine, files=machine.files | {"/lab/list": record(name, scale, seed)})
    tree = TREES[name](scale, seed) if name in TREES else {}
    environment = {key.upper(): str(value) for key, value in scale.items()}
    return replace(machine, files=machine.files | tree, environment=machine.environment | environment)


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Run each workload in a guest of its own; their results, one after another, and what was recorded."""
    environment = script.environment(given)
    names, part, seed = environment["WORKLOADS"].split(), environment["PART"], environment["SEED"]
    for name in names:
        if name not in PLAYED and name not in PROGRAMS:
            raise Problem(f"{script.name}: no workload {shown(name)} (known: {', '.join([*PLAYED, *PROGRAMS])})")
    if not part.isdecimal() or not int(part):
        raise Problem(f"{script.name}: PART={part}: must be a whole number of at least 1")
    if not seed.isdecimal() or int(seed) >= 1 << 32:
        raise Problem(f"{script.name}: SEED={seed}: must be a whole number below 2^32")
    files: dict[str, bytes] = {}
    results = b""
    for name in names:
        machine = guest(script, on, {**given, "WORKLOADS": name}, say)
        found = boot(prepared(machine, name, int(part), seed=int(seed)), say).files
        results += found.get("results", b"")
        files |= found
    return GuestOutcome(files | {"results": results}, [])
