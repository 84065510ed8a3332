# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make mutants: plant each fault of tests/mutants/*.toml by itself; some test must catch it.

A file there is one area of the sources:

    tests = ["test_as", "test_golden.py -k as-"]    # where a fault of this area should show: tried first, in this order
    [[mutant]]
    file = "core/policy/as.c"
    find = "…"         # occurs once in the file
    replace = "…"      # stands there instead
    why = "…"          # what goes wrong
    tests = […]        # optional: instead of the area's

A test is the name of a C test, or a Python test file with pytest's options. If none of those fails, all C tests and SUITE
follow. A fault is caught when a test fails or runs out of time; one that does not apply or compile is an error of the list.
Recorded data is out of reach meanwhile: what only it would show goes unnoticed by whoever has none. Exit status 0 only if
every fault is caught.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
LISTS = TESTS / "mutants"
SOURCES = ("core", "sim", "bench", "tests/c", "meson.build", "meson.options", "pyproject.toml")
# The Python tests that a fault in core or sim can fail, quick ones first.
SUITE = ("test_golden.py", "test_scenes.py", "test_disk_timing.py", "test_bfq_slots.py", "test_drive_layout.py",
         "test_conformance.py", "test_bfq_newcomer.py", "test_fio_properties.py", "test_properties.py", "test_drives.py",
         "test_fio_semantics.py", "test_fio_buffered.py")
TIMEOUT_S = 120


@dataclass(frozen=True)
class Mutant:
    """A one-line fault. `tests` are tried before the whole suite."""

    area: str
    file: str
    find: str
    replace: str
    why: str
    tests: tuple[str, ...] = ()

    def fault(self) -> str | None:
        """What is wrong with the entry itself, as the sources are now."""
        count = (ROOT / self.file).read_text().count(self.find)
        return None if count == 1 else f"tests/mutants/{self.area}.toml: {self.file}: '{self.find}' occurs {count} times"


def mutants() -> list[Mutant]:
    """The whole list, by area."""
    out = []
    for path in sorted(LISTS.glob("*.toml")):
        area = tomllib.loads(path.read_text())
        for entry in area["mutant"]:
            tests = tuple(entry.pop("tests", area.get("tests", ())))
            out.append(Mutant(path.stem, **entry, tests=tests))
    return out


def c_suite() -> list[str]:
    """The C tests, as tests/c/meson.build names them."""
    return re.findall(r"^\s*'((?:test|fuzz)_\w+)',$", (TESTS / "c" / "meson.build").read_text(), re.M)


class Bench:
    """A copy of the sources with a build of its own."""

    def __init__(self, parent: Path, number: int) -> None:
        self.root = parent / str(number)
        for name in SOURCES:
            source, target = ROOT / name, self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copy2(source, target)
        self.build = self.root / "build"
        self.env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HEADWAITER_LIBRARY": str(self.build / "sim" / "libheadwaiter.so"),
            "HEADWAITER_SHARED": str(self.root / "none"),
            "HEADWAITER_SOURCE": str(ROOT),
        }
        if not (self.command("meson", "setup", self.build, "-Dwerror=false", "-Ddebug=false") and self.make()):
            sys.exit("the sources do not build as they are")
        self.library = (self.build / "sim" / "libheadwaiter.so").resolve().relative_to(self.build)

    def command(self, *args: object) -> bool:
        """Whether it succeeded in time."""
        try:
            done = subprocess.run([str(a) for a in args], cwd=self.root, env=self.env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def make(self, *targets: object) -> bool:
        return self.command("ninja", "-C", self.build, "-j1", *targets)

    def pytest(self, *args: str) -> bool:
        return self.command(sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider",
                            f"--rootdir={ROOT}", "-c", ROOT / "pyproject.toml", *args)

    def passes(self, test: str) -> bool:
        file, *options = test.split()
        if file.endswith(".py"):
            return self.make(self.library) and self.pytest(str(TESTS / file), *options)
        return self.make(f"tests/c/{file}") and self.command(self.build / "tests" / "c" / file)

    def failing(self, tests: Iterable[str]) -> str | None:
        """The first of the tests that does not pass. Whatever does not compile fails as well."""
        return next((t for t in tests if not self.passes(t)), None)

    def try_out(self, m: Mutant) -> tuple[bool, str]:
        """Whether it was caught, and by what; the copy is as before afterwards."""
        path = self.root / m.file
        original = path.read_text()
        path.write_text(original.replace(m.find, m.replace))
        try:
            if not self.make(self.library):
                return False, "DOES NOT COMPILE"
            test = self.failing((*m.tests, *c_suite(), *SUITE))
            return (True, test) if test else (False, "SURVIVED")
        finally:
            path.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("only", nargs="*", help="run only mutants whose area, file or snippet contains one of these")
    args = parser.parse_args()
    everything = mutants()
    if wrong := [fault for m in everything if (fault := m.fault())]:
        sys.exit("\n".join(wrong))
    chosen = [m for m in everything if not args.only or any(w in m.area or w in m.file or w in m.find for w in args.only)]
    workers = len(os.sched_getaffinity(0))
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="headwaiter-mutants-") as tmp, ThreadPoolExecutor(workers) as pool:
        benches: Queue[Bench] = Queue()
        for bench in pool.map(lambda number: Bench(Path(tmp), number), range(workers)):
            benches.put(bench)

        def failing_anyhow() -> str | None:
            bench = benches.get()
            try:
                return bench.failing((*c_suite(), *SUITE))
            finally:
                benches.put(bench)

        def one(m: Mutant) -> bool:
            bench = benches.get()
            try:
                caught, how = bench.try_out(m)
            finally:
                benches.put(bench)
            console.print(f"{how:32} {m.file}: {m.why}", markup=False, soft_wrap=True)
            return caught

        unharmed = pool.submit(failing_anyhow)
        tries = [pool.submit(one, m) for m in chosen]
        if test := unharmed.result():
            pool.shutdown(cancel_futures=True)
            sys.exit(f"{test} fails without any fault")
        missed = [t.result() for t in tries].count(False)
    print(f"{len(chosen) - missed} passed, {missed} failed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
