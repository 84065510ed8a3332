# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run a guest script: an experiment of lab/experiments by name, or any file.

What a script needs stands in its comments, "# lab: KEY WORD …":

- kernels: series on which to run by default (6.1, 6.12), or "debug"
- programs: host programs to pack (fio mkfs.ext4 …)
- modules: kernel modules to insert beside ours
- stock: kernel modules to insert instead of ours and all others
- packed: modules that the script inserts itself
- own: modules of lab/guest, or of the script's own folder, to compile and pack, that the script inserts itself
- drives: profiles to pack as /lab/drives/NAME
- tools: C programs, of the same, to compile (static) and pack
- memory: MiB of the guest, with 2^shift ns an instruction under `shift`
- set: NAME=VALUE, a parameter and its default, for the script's environment
- host: the script's other half, on the host (HOSTS): it prepares files and makes something of what comes back

A script prints results with `result`, a JSON object a line; each becomes a row, with the kernel put first.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import writing
from headwaiter.base.parsing import assignment
from headwaiter.lab import debug
from headwaiter.lab.guest import Guest, GuestOutcome, boot
from headwaiter.lab.host import GUEST_PROGRAMS, cache_folder, guest_source, need, run, source_folder, temporary_folder
from headwaiter.lab.kernels import SERIES, Kernel, Progress, kernel
from headwaiter.lab.modules import build, build_one, foreign

if TYPE_CHECKING:
    from headwaiter.drives import Profile

Row = dict[str, Any]

KEYS = ("kernels", "programs", "modules", "stock", "packed", "own", "drives", "tools", "memory", "shift", "set", "host")
HEADER = re.compile(r"^# lab: (\w+) (.*)$", re.MULTILINE)
# The host's halves: modules with a function run(script, on, given, say) that does what boot(guest(…)) does for other scripts.
HOSTS = {
    "advise": "headwaiter.experiments.advise",
    "again": "headwaiter.experiments.again",
    "conformance": "headwaiter.experiments.conformance",
    "example": "headwaiter.experiments.example",
    "record": "headwaiter.experiments.record",
    "refuse": "headwaiter.experiments.refuse",
    "watch": "headwaiter.experiments.watch",
    "workloads": "headwaiter.experiments.workloads",
}
BASE_MODULES = ["configfs", "null_blk", "mq-deadline", "kyber-iosched", "bfq"]


@dataclass(frozen=True)
class Script:
    """A parsed script."""

    name: str
    text: str
    needs: dict[str, list[str]] = field(default_factory=dict)
    foreign: tuple[Path, ...] = ()
    """Modules that somebody else has made, inserted behind ours: files, or folders to be built."""

    @property
    def kernels(self) -> Sequence[str]:
        """Series to run on unless others are asked for."""
        return self.needs.get("kernels", SERIES)

    @property
    def summary(self) -> str:
        """The first line of comment after the licence."""
        lines = [line[2:] for line in self.text.splitlines() if line.startswith("# ") and "SPDX" not in line]
        return lines[0] if lines and not lines[0].startswith("lab:") else ""

    def number(self, key: str, default: int) -> int:
        """A needed quantity, such as memory."""
        words = self.needs.get(key, [str(default)])
        if len(words) != 1 or not words[0].isdigit():
            raise Problem(f"{self.name}: '# lab: {key} {' '.join(words)}': expected a number")
        return int(words[0])

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Parameters with their values."""
        values = dict(assignment(f"{self.name}: '# lab: set'", word, "NAME=VALUE") for word in self.needs.get("set", []))
        for name, value in given.items():
            if name not in values:
                raise Problem(f"{self.name} has no parameter {name} (it has {', '.join(values) or 'none'})")
            if not re.fullmatch(r"[\w.,:/ +=-]*", value):
                raise Problem(f"{name}={value}: only letters, digits, spaces and .,:/+=- are allowed")
            values[name] = value
        return values


def experiments() -> dict[str, Path]:
    """The experiments that there are, by name."""
    scripts = sorted((source_folder() / "lab" / "experiments").glob("*/*.sh"))
    return {path.stem: path for path in scripts if path.stem == path.parent.name}


def read(target: str) -> Script:
    """An experiment by name, or the script in a file; Problem if it is neither."""
    path = experiments().get(target) or Path(target)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(experiments())
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise Problem(f"{target}: neither an experiment ({names}) nor a script: {why}") from None
    needs: dict[str, list[str]] = {}
    for key, words in HEADER.findall(text):
        if key not in KEYS:
            raise Problem(f"{path}: '# lab: {key}': unknown (known: {', '.join(KEYS)})")
        needs.setdefault(key, []).extend(shlex.split(words))
    return Script(path.stem, text, needs)


def tool(name: str, *, preloaded: bool = False) -> bytes:
    """A program of lab/guest, compiled statically; or a library that is loaded before those of a program."""
    source = guest_source(source_folder(), name)
    if source is None:
        raise Problem(f"lab: no tool {name} in lab/guest")
    target = cache_folder() / "tools" / name
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        kind = ["-shared", "-fPIC"] if preloaded else ["-static"]
        with temporary_folder() as folder, writing(target) as aside:  # two runs share the cache
            run([need("gcc"), "-O2", "-Wall", *kind, "-o", str(folder / name), str(source)])
            aside.write_bytes((folder / name).read_bytes())
    return target.read_bytes()


def drive_files(name: str, profile: Profile | None = None) -> dict[str, bytes]:
    """What library.sh's drive_disk wants of a drive: its profile as headwaiter_disk takes it, and its positioning times.

    profile: that drive, unless it is to be found by its name.
    """
    from headwaiter.drives import find_drive  # noqa: PLC0415 (needs the compiled library; booting does not)

    drive = profile or find_drive(name)
    path = f"/lab/drives/{Path(name).stem}"
    return {path: drive.blob, f"{path}.positions": drive.positions_text.encode()}


def guest(script: Script, on: Kernel, given: Mapping[str, str], say: Progress, profile: Profile | None = None) -> Guest:
    """The guest that a script runs in. profile: the drive that DRIVE names, unless it is to be found by that name."""
    programs = script.needs.get("programs", [])
    for program in programs:
        if program not in GUEST_PROGRAMS:
            raise Problem(f"{script.name}: '# lab: programs {program}': unknown (known: {', '.join(GUEST_PROGRAMS)})")
    environment = script.environment(given)
    drives = {word for words in script.needs.get("drives", []) for word in words.split(",")}
    files = {path: data for name in sorted(drives) for path, data in drive_files(name).items()}
    if "DRIVE" in environment:
        files |= drive_files(environment["DRIVE"], profile)
        environment["DRIVE"] = Path(environment["DRIVE"]).stem
    stock = script.needs.get("stock")
    machine = Guest(
        on,
        script.text,
        modules=BASE_MODULES + script.needs.get("modules", []) if stock is None else stock,
        packed_modules=script.needs.get("packed", []),
        own_modules=(build(on, say) if stock is None else {})
        | {name: data for path in script.foreign for name, data in foreign(on, path, say).items()},
        programs=programs,
        tools={name: tool(name) for name in script.needs.get("tools", [])},
        environment={"KERNEL": on.name} | environment,
        files=files | {f"/lab/modules/{name}.ko": build_one(on, name, say) for name in script.needs.get("own", [])},
        memory_mib=script.number("memory", 1024),
        shift=script.number("shift", 1),
    )
    if on.debug:
        machine.memory_mib *= debug.MEMORY_TIMES
        # Processors that really run at the same time find more than runs that repeat.
        machine.cpus, machine.shift, machine.parameters = debug.CPUS, None, debug.PARAMETERS
        machine.hang_s, machine.limit_s = debug.HANG_S, debug.LIMIT_S
    return machine


def named_kernel(name: str, say: Progress) -> Kernel:
    """The debug kernel, or the newest of a series."""
    return debug.debug_kernel(say) if name == debug.NAME else kernel(name, say)


def rows(name: str, on: Kernel, outcome: GuestOutcome) -> list[Row]:
    """The results of one boot."""
    try:
        lines = outcome.files.get("results", b"").decode().splitlines()
        return [{"kernel": on.name, **json.loads(line)} for line in lines]
    except (ValueError, TypeError) as error:
        raise Problem(f"{name}: a result is not a JSON object: {error}") from None


def _run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Run a script on one kernel."""
    names = script.needs.get("host", [])
    if not names:
        return boot(guest(script, on, given, say), say)
    if len(names) > 1 or names[0] not in HOSTS:
        raise Problem(f"{script.name}: '# lab: host {' '.join(names)}': unknown (known: {', '.join(HOSTS)})")
    outcome: GuestOutcome = importlib.import_module(HOSTS[names[0]]).run(script, on, given, say)
    return outcome


def execute(
    target: str, series: Sequence[str], given: Mapping[str, str], say: Progress, modules: Sequence[Path] = ()
) -> tuple[Script, list[Row], dict[str, bytes]]:
    """Run a script on each kernel in turn; its rows, and the other files it sent as SERIES/NAME.

    modules: files and folders of somebody else's, see modules.foreign().
    """
    script = replace(read(target), foreign=tuple(modules))
    found: list[Row] = []
    files: dict[str, bytes] = {}
    for one in series or script.kernels:
        on = named_kernel(one, say)
        outcome = _run(script, on, given, say)
        found += rows(script.name, on, outcome)
        files |= {f"{on.series if '/' in one else one}/{name}": data for name, data in outcome.files.items() if name != "results"}
    return script, found, files
