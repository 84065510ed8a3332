# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make mutants: plant faults, each by itself; some test must catch it.

Faults in C are listed: a file tests/mutants/AREA.toml is one area of the sources.

    tests = ["test_as", "test_golden.py -k as-"]    # where a fault of this area should show: tried first, in this order
    [[mutant]]
    file = "core/policy/as/las.c"
    find = "…"         # occurs once in the file
    replace = "…"      # stands there instead
    why = "…"          # what goes wrong
    tests = […]        # optional: instead of the area's

A test is the name of a C test, or a Python test file with pytest's options. If none of those fails, all other C tests and SUITE
follow. A fault is caught when a test fails or runs out of time; one that does not apply or compile is an error of the list.
Recorded data is out of reach meanwhile: what only it would show goes unnoticed by whoever has none.

Faults in Python are mutmut's (planting.py): on the lines that have changed, or on those of the files that a word selects, at most
--most of them, chosen by the commit; trying.py says on which tests each is tried. tests/mutants/survivors.toml has those that may
survive. Exit status 0 only if every fault in C is caught, and of the others no more survive than too_many() lets: they are a
sample of thousands, of which one in twenty survived when this was measured (docs/testing.md). Each that does is a missing
expectation.

--changed takes what has to do with the changes since the default branch of `origin`, since the last COMMITS commits where that is
the same, or --since a commit: the lines that were changed, and the faults in C whose file, list, or one of whose tests was
changed. Of more than --most of either it takes so many. After --minutes no other one is begun, and those under way get no
further test; those that were not begun, or neither caught nor through with all tests, are told.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import NoReturn

from planting import PACKAGE, SURVIVORS, Fault, Lines, every_line, sample, stale, survivors, touched
from rich.console import Console
from trying import Copy, TimeUpError, end_all, likely_first

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
TIMEOUT_S = 120
BUILD_S = 600
"""For a build of everything, as a busy machine needs it."""
COMMITS = 20
HISTORY = 400
"""So many commits tell which tests go with which source."""
PYTHON_SHARE = 0.7
MEASURE_SHARE, MEASURE_S = 0.6, 600.0
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
    for path in sorted(set(LISTS.glob("*.toml")) - {SURVIVORS}):
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


def concerned(everything: list[Mutant], most: int, since: str | None) -> tuple[list[Mutant], str]:
    """(the faults in C of --changed, the same in words)."""
    changed = set((_git("diff", "--name-only", since) or "").splitlines()) if since else set()
    found = [m for m in everything if m.concerns(changed)] if since else everything
    words = f"{len(found)} of {len(everything)} faults in C have to do with what has changed"
    words += f" since {since[:12]}" if since else " (there is no history: all)"
    if len(found) > most:
        dice = random.Random(_git("rev-parse", "HEAD") or "")
        keep = set(dice.sample(range(len(found)), most))
        found = [m for i, m in enumerate(found) if i in keep]
        words += f"; {most} of them, chosen by the commit"
    return found, words


def changed_lines(since: str | None) -> dict[str, set[int]]:
    """The lines of the package that have changed; in a new file, all."""
    lines = touched(_git("diff", "--find-renames", "--unified=0", since) or "") if since else {}
    new = (_git("ls-files", "--others", "--exclude-standard", PACKAGE) or "").splitlines()
    return lines | {file: set(every_line(file)) for file in new if file.endswith(".py")}


def selected_lines(only: list[str]) -> dict[str, range]:
    """All lines of the package's files whose path has one of the words: of those with a slash, as areas of C have none."""
    files = (str(path.relative_to(ROOT)) for path in sorted((ROOT / PACKAGE).rglob("*.py")))
    return {file: every_line(file) for file in files if any("/" in word and word in file for word in only)}


class Bench:
    """A copy of the Python package and of the sources, with a build of its own where a fault in C is planted."""

    def __init__(self, parent: Path, number: int) -> None:
        self.root = parent / str(number)
        copy = Copy(self.root)
        self.env = copy.env
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
        return self.command("ninja", "-C", self.build, "-j1", *targets)

    def make_library(self) -> bool:
        return self.make(self.library)

    def pytest(self, *args: str) -> bool:
        return self.command(
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-m",
            "not thorough and not needs",
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
        original = path.read_text()
        path.write_text(original.replace(m.find, m.replace))
        try:
            if not self.make_library():
                return False, "DOES NOT COMPILE"
            test = self.failing((*m.tests, *c_suite(), *SUITE), end_s)
            return (True, test) if test else (False, "SURVIVED")
        except TimeoutError:
            return None, "NO TIME LEFT"
        finally:
            path.write_text(original)


Found = list[bool | None]
"""Whether each fault was caught. None: there was no time to find out."""


def try_c(chosen: list[Mutant], workers: int, end_s: float, say: Callable[[str], None]) -> Found:
    """Plant the faults in C."""
    with tempfile.TemporaryDirectory(prefix="headwaiter-mutants-") as tmp, ThreadPoolExecutor(workers) as pool:
        benches: Queue[Bench] = Queue()
        for bench in pool.map(lambda number: Bench(Path(tmp), number), range(workers)):
            benches.put(bench)

        def fails_anyhow(test: str) -> bool:
            bench = benches.get()
            try:
                return not bench.passes(test)
            finally:
                benches.put(bench)

        def one(m: Mutant) -> tuple[bool | None, str]:
            if time.monotonic() > end_s:
                return None, ""
            bench = benches.get()
            try:
                caught, how = bench.try_out(m, end_s)
            finally:
                benches.put(bench)
            say(f"{how:32} {m.file}: {m.why}")
            return caught, how

        tries = list(pool.map(one, chosen))
        # What has caught a fault must pass without it.
        catchers = sorted({test for caught, test in tries if caught})
        if broken := [test for test, fails in zip(catchers, pool.map(fails_anyhow, catchers), strict=True) if fails]:
            sys.exit(f"fails without any fault: {', '.join(broken)}")
        return [caught for caught, _ in tries]


def try_python(chosen: list[Fault], workers: int, end_s: float, say: Callable[[str], None]) -> Found:
    """Plant the faults in Python. Most of the time may go to finding out which tests run their lines."""
    with tempfile.TemporaryDirectory(prefix="headwaiter-mutants-") as tmp, ThreadPoolExecutor(workers) as pool:
        copies: Queue[Copy] = Queue()
        for copy in pool.map(lambda number: Copy(Path(tmp) / str(number)), range(workers)):
            copies.put(copy)
        files = {fault.file for fault in chosen}
        log = _git("log", f"--max-count={HISTORY}", "--format=%x00", "--name-only") or ""
        begin = time.monotonic()
        until = begin + min(MEASURE_SHARE * (end_s - begin), MEASURE_S)
        try:
            covered = copy.measure(files, likely_first(files, log), workers, until)
        except TimeUpError:
            return [None] * len(chosen)
        skipped = "" if covered.complete else ": there was no time for others, and what these let through is not decided"
        say(f"{len(covered.seconds)} tests ran without a fault in {time.monotonic() - begin:.0f} s{skipped}")

        def one(fault: Fault) -> bool | None:
            if time.monotonic() > end_s:
                return None
            copy = copies.get()
            try:
                caught, how = copy.try_out(fault, covered, end_s)
            finally:
                copies.put(copy)
            say(f"{'SURVIVED' if caught is False else 'caught' if caught else 'NOT DECIDED':12} {fault}  ({how})")
            return caught

        return list(pool.map(one, chosen))


def too_many(found: Found) -> bool:
    """Whether of a sample of faults in Python more survive than chance explains: more than one, and more than a fifth."""
    survived = found.count(False)
    return survived > max(1, (survived + found.count(True)) / 5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "only", nargs="*", help="only faults in C whose area, file or snippet has one of these, and files in Python"
    )
    parser.add_argument("--changed", action="store_true", help="only those that have to do with what has changed")
    parser.add_argument("--since", metavar="COMMIT", help="with --changed: since when (default: see above)")
    parser.add_argument(
        "--most", type=int, default=60, help="of Python, and of C with --changed: how many (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no fault and no test of one after so long")
    args = parser.parse_args()
    begin = time.monotonic()

    def end(number: int, _: object) -> NoReturn:
        end_all()
        sys.exit(128 + number)

    for signaled in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signaled, end)
    everything, accepted = mutants(), survivors()
    if wrong := [*(fault for m in everything if (fault := m.fault())), *stale(accepted)]:
        sys.exit("\n".join(wrong))
    chosen = [m for m in everything if not args.only or any(w in m.area or w in m.file or w in m.find for w in args.only)]
    lines: Lines = selected_lines(args.only)
    if args.changed:
        since = args.since or base()
        chosen, words = concerned(chosen, args.most, since)
        print(words, flush=True)
        lines = {
            file: lines for file, lines in changed_lines(since).items() if not args.only or file in selected_lines(args.only)
        }
    planted, number = sample(lines, args.most, _git("rev-parse", "HEAD") or "", {s.key for s in accepted})
    if lines:
        print(
            f"{len(planted)} of {number} faults on {sum(map(len, lines.values()))} lines of Python, chosen by the commit",
            flush=True,
        )
    if not chosen and not planted:
        print("no planted fault to try")
        return 0
    workers = len(os.sched_getaffinity(0))
    console = Console(highlight=False)

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    # What is in Python has more than half of the time: its tests have to be found first.
    share = (PYTHON_SHARE if chosen else 1.0) * 60 * args.minutes
    found = try_python(planted, workers, begin + share, say) if planted else []
    found += try_c(chosen, workers, begin + 60 * args.minutes, say) if chosen else []
    missed, untried = found.count(False), found.count(None)
    left = f", {untried} not tried (to the end) for want of time" if untried else ""
    print(f"{found.count(True)} passed, {missed} failed{left}")
    return int(too_many(found[: len(planted)]) or False in found[len(planted) :])


if __name__ == "__main__":
    sys.exit(main())
