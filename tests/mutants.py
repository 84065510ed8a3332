# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""make mutants: plant each fault of tests/mutants.toml by itself; some test must catch it.

A fault is a place in core or sim (a snippet that occurs once in its file) and what stands there instead. It is caught if a
C test, or one of the Python tests named in SUITE, fails or runs out of time. A fault that does not apply or compile is an
error of the list. Exit status 0 only if every fault is caught.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "mutants.toml"
SOURCES = ("core", "sim", "bench", "tests/c", "meson.build", "meson.options", "pyproject.toml")
SUITE = ("test_golden.py", "test_bfq_slots.py", "test_properties.py", "test_vectors.py", "test_drive.py", "test_drives.py", "test_scenes.py",
         "test_fio.py")
TIMEOUT_S = 300


@dataclass(frozen=True)
class Mutant:
    """A one-line fault."""

    file: str
    find: str
    replace: str
    why: str


def mutants() -> list[Mutant]:
    """The list, checked: every snippet occurs exactly once."""
    out = []
    for i, entry in enumerate(tomllib.loads(LIST.read_text())["mutant"]):
        m = Mutant(**entry)
        count = (ROOT / m.file).read_text().count(m.find)
        if count != 1:
            sys.exit(f"{LIST.relative_to(ROOT)}: mutant {i + 1} ({m.file}): '{m.find}' occurs {count} times")
        out.append(m)
    return out


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
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = os.environ | {"PATH": path, "HEADWAITER_LIBRARY": str(self.build / "sim" / "libheadwaiter.so")}
        self.command("meson", "setup", self.build, "-Dwerror=false")
        if not self.command("ninja", "-C", self.build):
            sys.exit("the sources do not build as they are")

    def command(self, *args: object) -> bool:
        """Whether it succeeded in time."""
        try:
            done = subprocess.run([str(a) for a in args], cwd=self.root, env=self.env, capture_output=True,
                                  timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def tests_pass(self) -> bool:
        """C tests first: they are the fastest to fail."""
        if not self.command("meson", "test", "-C", self.build, "--no-rebuild", "--timeout-multiplier", "2"):
            return False
        suite = [ROOT / "tests" / name for name in SUITE if (ROOT / "tests" / name).exists()]
        return self.command(sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}",
                            "-c", ROOT / "pyproject.toml", *suite)

    def try_out(self, m: Mutant) -> str:
        """'caught', 'SURVIVED' or 'does not compile'; the copy is as before afterwards."""
        path = self.root / m.file
        original = path.read_text()
        path.write_text(original.replace(m.find, m.replace))
        try:
            if not self.command("ninja", "-C", self.build):
                return "DOES NOT COMPILE"
            return "SURVIVED" if self.tests_pass() else "caught"
        finally:
            path.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="run only mutants whose file or snippet contains one of these")
    args = parser.parse_args()
    chosen = [m for m in mutants() if not args.only or any(w in m.file or w in m.find for w in args.only)]
    workers = len(os.sched_getaffinity(0))
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="headwaiter-mutants-") as tmp:
        benches: Queue[Bench] = Queue()
        for number in range(workers):
            benches.put(Bench(Path(tmp), number))
        sound = benches.get()
        if not sound.tests_pass():
            sys.exit("the tests fail without any fault")
        benches.put(sound)

        def one(m: Mutant) -> str:
            bench = benches.get()
            try:
                verdict = bench.try_out(m)
            finally:
                benches.put(bench)
            console.print(f"{verdict:16} {m.file}: {m.why}", markup=False, soft_wrap=True)
            return verdict

        with ThreadPoolExecutor(workers) as pool:
            verdicts = list(pool.map(one, chosen))
    caught = verdicts.count("caught")
    print(f"{caught} passed, {len(verdicts) - caught} failed")
    return int(caught != len(verdicts))


if __name__ == "__main__":
    sys.exit(main())
