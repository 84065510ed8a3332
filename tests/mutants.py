# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make mutants: plant each fault of tests/mutants/*.toml by itself; some test must catch it.

A file there is one area of the sources:

    tests = ["test_as", "test_golden.py -k as-"]    # where a fault of this area should show: tried first, in this order
    [[mutant]]
    file = "core/policy/as/las.c"
    find = "…"         # occurs once in the file
    replace = "…"      # stands there instead
    why = "…"          # what goes wrong
    tests = […]        # optional: instead of the area's

A test is the name of a C test, or a Python test file with pytest's options. If none of those fails, all others follow: the C
tests and SUITE for a fault in C, PYTHON_SUITE for one in a file of src/headwaiter/, for which nothing is compiled. A fault is
caught when a test fails or runs out of time; one that does not apply or compile is an error of the list. Tests that compare with
documents are in neither suite. Recorded data is out of reach meanwhile: what only it would show goes unnoticed by whoever
has none. Exit status 0 only if every fault is caught.

--changed takes the faults that have to do with what has changed since the default branch of `origin`, or in the last COMMITS
commits where that is the same: those whose file, list, or one of whose tests was changed. Of more than --most of them it takes
so many, chosen by the commit. After --minutes no other one is begun, and those under way get no
further test; those that were not begun, or neither caught nor through with all tests, are told.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from rich.console import Console

import headwaiter

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
LISTS = TESTS / "mutants"
SOURCES = ("core", "sim", "bench", "examples", "tests/c", "meson.build", "meson.options", "pyproject.toml")
# The Python tests that a fault in core or sim can fail, quick ones first.
SUITE = (
    "test_golden.py",
    "test_scenes.py",
    "test_disk_timing.py",
    "test_bfq_slots.py",
    "test_drive_layout.py",
    "test_conformance.py",
    "test_bfq_newcomer.py",
    "test_fio_properties.py",
    "test_properties.py",
    "test_drives.py",
    "test_fio_semantics.py",
    "test_fio_buffered.py",
)
# Those that a fault in src/headwaiter/ can fail, quick ones first; none compares with a document.
PYTHON_SUITE = (
    "test_results.py",
    "test_report.py",
    "test_compare.py",
    "test_workload.py",
    "test_streams.py",
    "test_was_config.py",
    "test_was_figures.py",
    "test_reproduce_figures.py",
    "test_pictures.py",
    "test_live_options.py",
    "test_tables.py",
    "test_memory.py",
    "test_drive_files.py",
    "test_was_classify.py",
    "test_was_prospects.py",
    "test_was_calibrate.py",
    "test_was_observe.py",
    "test_was_designate.py",
    "test_was_cli.py",
    "test_options.py",
    "test_convert.py",
    "test_datasheet.py",
    "test_validation.py",
    "test_writing.py",
    "test_replay.py",
    "test_flushes.py",
    "test_fio_fields.py",
    "test_agreement.py",
    "test_traces.py",
    "test_traces_formats.py",
    "test_traces_blktrace.py",
    "test_fio_parser.py",
    "test_fio_semantics.py",
    "test_fio_buffered.py",
    "test_lab_agree.py",
    "test_lab.py",
    "test_lab_guest.py",
    "test_lab_kernels.py",
    "test_ranges.py",
    "test_conformance.py",
    "test_cli.py",
    "test_drives.py",
    "test_bad_input.py",
    "test_fio_properties.py",
    "test_accounting.py",
    "test_properties.py",
    "test_sharing.py",
    "test_waiting.py",
    "test_scenes.py",
)
PACKAGE = "src/headwaiter"
TIMEOUT_S = 120
BUILD_S = 600
"""For a build of everything, as a busy machine needs it."""
COMMITS = 20
NOTHING_COLLECTED = 5
"""pytest's status where every test is slow or needs a tool: that catches nothing."""


@dataclass(frozen=True)
class Mutant:
    """A one-line fault. `tests` are tried before the whole suite."""

    area: str
    file: str
    find: str
    replace: str
    why: str
    tests: tuple[str, ...] = ()

    @property
    def python(self) -> bool:
        """Is it in the Python package?"""
        return self.file.startswith(f"{PACKAGE}/")

    def concerns(self, changed: Set[str]) -> bool:
        """Do changes of these files have to do with it?"""
        own = {self.file, f"tests/mutants/{self.area}.toml"}
        for test in (words.split()[0] for words in self.tests):
            own.add(f"tests/{test}" if test.endswith(".py") else f"tests/c/{test}.c")
        return not own.isdisjoint(changed)

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


def _git(*args: str) -> str | None:
    """What git prints, None if it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def base() -> str | None:
    """The commit since which "what has changed" counts; None where there is no such history."""
    head = _git("rev-parse", "HEAD")
    landed = _git("merge-base", "HEAD", "origin/HEAD")
    if landed and landed != head:
        return landed
    older = (_git("rev-list", "--first-parent", f"--max-count={COMMITS + 1}", "HEAD") or "").split()
    return older[-1] if len(older) > 1 else None


def concerned(everything: list[Mutant], most: int) -> tuple[list[Mutant], str]:
    """(the faults of --changed, the same in words)."""
    since = base()
    changed = set((_git("diff", "--name-only", since) or "").splitlines()) if since else set()
    found = [m for m in everything if m.concerns(changed)] if since else everything
    words = f"{len(found)} of {len(everything)} planted faults have to do with what has changed"
    words += f" since {since[:12]}" if since else " (there is no history: all)"
    if len(found) > most:
        dice = random.Random(_git("rev-parse", "HEAD") or "")
        keep = set(dice.sample(range(len(found)), most))
        found = [m for i, m in enumerate(found) if i in keep]
        words += f"; {most} of them, chosen by the commit"
    return found, words


class Bench:
    """A copy of the Python package, and of the sources with a build of its own where a fault in C is to be planted."""

    def __init__(self, parent: Path, number: int, compiled: bool) -> None:
        self.root = parent / str(number)
        self.plants = 0
        # As it is installed, with library and data, and above that as it stands in the clone.
        installed = Path(headwaiter.__file__).parent
        ignored = shutil.ignore_patterns("__pycache__", "meson.build")
        shutil.copytree(installed, self.root / PACKAGE, ignore=ignored)
        shutil.copytree(ROOT / PACKAGE, self.root / PACKAGE, ignore=ignored, dirs_exist_ok=True)
        self.env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "src"),
            "HEADWAITER_SHARED": str(self.root / "none"),
            "HEADWAITER_REQUIRE_ALL": "",
            "HEADWAITER_SOURCE": str(ROOT),
        }
        self.compiled = compiled
        if compiled:
            self._compile()

    def _compile(self) -> None:
        for name in SOURCES:
            source, target = ROOT / name, self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copy2(source, target)
        self.build = self.root / "build"
        self.env["HEADWAITER_LIBRARY"] = str(self.build / "sim" / "libheadwaiter.so")
        setup = ("meson", "setup", self.build, "-Dwerror=false", "-Ddebug=false")
        if not (self.command(*setup, limit_s=BUILD_S) and self.command("ninja", "-C", self.build, "-j1", limit_s=BUILD_S)):
            sys.exit(f"the sources do not build as they are, or not within {BUILD_S} s")
        self.library = (self.build / "sim" / "libheadwaiter.so").resolve().relative_to(self.build)

    def command(self, *args: object, limit_s: float = TIMEOUT_S, good: Set[int] = frozenset({0})) -> bool:
        """Whether it succeeded in time: exited with a status that is good."""
        try:
            done = subprocess.run(
                [str(a) for a in args],
                cwd=self.root,
                env=self.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=limit_s,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode in good

    def make(self, *targets: object) -> bool:
        return not self.compiled or self.command("ninja", "-C", self.build, "-j1", *targets)

    def make_library(self) -> bool:
        return not self.compiled or self.make(self.library)

    def pytest(self, *args: str) -> bool:
        return self.command(
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "not slow and not needs",
            "-p",
            "no:cacheprovider",
            f"--rootdir={ROOT}",
            "-c",
            ROOT / "pyproject.toml",
            *args,
            good={0, NOTHING_COLLECTED},
        )

    def passes(self, test: str) -> bool:
        file, *options = test.split()
        if file.endswith(".py"):
            return self.make_library() and self.pytest(str(TESTS / file), *options)
        return self.make(f"tests/c/{file}") and self.command(self.build / "tests" / "c" / file)

    def failing(self, tests: Iterable[str], end_s: float = math.inf) -> str | None:
        """The first of the tests that does not pass, as what does not compile. TimeoutError: after end_s none begins."""
        for test in tests:
            if time.monotonic() > end_s:
                raise TimeoutError
            if not self.passes(test):
                return test
        return None

    def try_out(self, m: Mutant, end_s: float = math.inf) -> tuple[bool | None, str]:
        """Whether it was caught (None: there was no time to find out), and by what; the copy is as before afterwards."""
        path = self.root / m.file
        original, times = path.read_text(), path.stat()
        planted = original.replace(m.find, m.replace)
        path.write_text(planted)
        if m.python:
            # Compiled Python is known by the seconds of its source's time and by its size, which two faults may share.
            self.plants += 1
            os.utime(path, (times.st_atime, times.st_mtime + self.plants))
        try:
            if not (_is_python(planted) if m.python else self.make_library()):
                return False, "DOES NOT COMPILE"
            test = self.failing((*m.tests, *suite(m.python)), end_s)
            return (True, test) if test else (False, "SURVIVED")
        except TimeoutError:
            return None, "NO TIME LEFT"
        finally:
            path.write_text(original)
            if m.python:
                os.utime(path, (times.st_atime, times.st_mtime))


def suite(python: bool) -> tuple[str, ...]:
    """What any fault in Python, or in C, is tried on at last."""
    return PYTHON_SUITE if python else (*c_suite(), *SUITE)


def _is_python(text: str) -> bool:
    try:
        compile(text, PACKAGE, "exec")
    except SyntaxError:
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("only", nargs="*", help="run only mutants whose area, file or snippet contains one of these")
    parser.add_argument("--changed", action="store_true", help="run only those that have to do with what has changed")
    parser.add_argument("--most", type=int, default=60, help="with --changed: how many at most (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fault and no test of one after so long")
    args = parser.parse_args()
    end_s = time.monotonic() + 60 * args.minutes
    everything = mutants()
    if wrong := [fault for m in everything if (fault := m.fault())]:
        sys.exit("\n".join(wrong))
    chosen = [m for m in everything if not args.only or any(w in m.area or w in m.file or w in m.find for w in args.only)]
    if args.changed:
        chosen, words = concerned(chosen, args.most)
        print(words, flush=True)
    if not chosen:
        print("no planted fault to try")
        return 0
    compiled = not all(m.python for m in chosen)
    workers = len(os.sched_getaffinity(0))
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="headwaiter-mutants-") as tmp, ThreadPoolExecutor(workers) as pool:
        benches: Queue[Bench] = Queue()
        for bench in pool.map(lambda number: Bench(Path(tmp), number, compiled), range(workers)):
            benches.put(bench)

        def fails_anyhow(test: str) -> bool:
            bench = benches.get()
            try:
                return not bench.passes(test)
            finally:
                benches.put(bench)

        def one(m: Mutant) -> tuple[bool | None, str]:
            """Was it caught, and by what? None: there was no time for it."""
            if time.monotonic() > end_s:
                return None, ""
            bench = benches.get()
            try:
                caught, how = bench.try_out(m, end_s)
            finally:
                benches.put(bench)
            console.print(f"{how:32} {m.file}: {m.why}", markup=False, soft_wrap=True)
            return caught, how

        tries = list(pool.map(one, chosen))
        # What has caught a fault must pass without it.
        catchers = sorted({test for caught, test in tries if caught})
        if broken := [test for test, fails in zip(catchers, pool.map(fails_anyhow, catchers), strict=True) if fails]:
            sys.exit(f"fails without any fault: {', '.join(broken)}")
        found = [caught for caught, _ in tries]
    missed, untried = found.count(False), found.count(None)
    left = f", {untried} not tried (to the end) for want of time" if untried else ""
    print(f"{found.count(True)} passed, {missed} failed{left}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
