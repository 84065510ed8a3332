# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do tests catch a fault in the Python package? Only those that run its lines are asked, cheap ones first.

The tests run on a copy of the installed package. Once, without a fault, they tell by coverage.py which lines each of them runs
(only the files that get faults are watched). A fault is then tried on the tests of its lines; then by mypy, which `make lint`
asks; then on all tests of the same files, and of those that import the module, because what is computed once and kept seems
to belong to the first test alone. A line that runs on import belongs to every test that runs any of the file.
"""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import covering
from coverage import CoverageData
from coverage.exceptions import DataError
from planting import PACKAGE, Fault

import headwaiter

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
NOT_ASKED = {
    # Documents are made by the package: they would agree with an intended change only after `make docs`.
    *("test_docs.py", "test_tutorials.py", "test_claims.py", "test_english.py", "test_contributing.py"),
    # Other inputs each time.
    "test_fuzz.py",
    # Of the policies and the drives in C, of the sources' structure, and of these faults.
    *("test_golden.py", "test_bfq_slots.py", "test_bfq_newcomer.py", "test_disk_timing.py", "test_drive_random.py"),
    *("test_drive_layout.py", "test_structure.py", "test_mutants.py", "test_new_policy.py", "test_library.py"),
    *("test_guards.py", "test_kmod_build.py", "test_starvation.py", "test_acceptance.py"),
}
MARKS = "not thorough and not needs and not recorded and not long"
BATCHES_S = (3.0, 12.0)
"""The first tests of a fault take so long together, then the next; then come all others."""
MOST_S = 40.0
"""A fault that so many seconds of tests let through has survived."""
SPARE_S = 30.0
SITE = "import os\nif 'COVERAGE_PROCESS_START' in os.environ:\n    import coverage\n    coverage.process_startup()\n"
MYPY_S = 300.0


_running: set[int] = set()
"""Leaders of process groups."""
_ended = threading.Event()


class TimeUpError(Exception):
    """There is no time for more."""


def end_all() -> None:
    """End what runs, and begin nothing more: whoever ends this program by a signal ends its tests."""
    _ended.set()
    for group in list(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


@dataclass(frozen=True)
class Covered:
    """What ran without a fault: of each file and line the tests, and the seconds of each test."""

    tests: Mapping[str, Mapping[int, Collection[str]]]
    seconds: Mapping[str, float]
    complete: bool
    """Was there time for all tests?"""

    def of(self, fault: Fault) -> tuple[list[str], list[str]]:
        """(tests that run the fault's lines, tests of the same files): cheap ones first."""
        lines = self.tests.get(fault.file, {})
        wanted = _statement(fault)
        near = {test for line in wanted or lines for test in lines.get(line, ())}
        files = {test.partition("::")[0] for test in near} | {f"tests/{name}" for name in importers(fault.file)}
        far = {test for test in self.seconds if test.partition("::")[0] in files} - near
        return self._cheap_first(near), self._cheap_first(far)

    def _cheap_first(self, tests: Iterable[str]) -> list[str]:
        return sorted((t for t in tests if t in self.seconds), key=lambda t: (self.seconds[t], t))


def _statement(fault: Fault) -> range | None:
    """The lines of the innermost statement around a fault, which run together; None outside of functions."""
    tree = ast.parse((ROOT / fault.file).read_text(encoding="utf-8"))
    last = fault.number + fault.before.count("\n")
    inside, found = False, range(fault.number, last + 1)
    for node in ast.walk(tree):  # from the outside to the inside
        if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.Lambda)) and node.lineno <= fault.number <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                inside |= isinstance(node, ast.Lambda) or fault.number >= node.body[0].lineno
            elif not isinstance(body, list):
                found = range(node.lineno, max(last, node.end_lineno or 0) + 1)
    return found if inside else None


def importers(file: str) -> list[str]:
    """Test files that import a module by its name."""
    module = file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    parent, _, name = module.rpartition(".")
    found = []
    for path in sorted(TESTS.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (
                node.module == module or (node.module == parent and name in {a.name for a in node.names})
            ):
                found.append(path.name)
                break
    return found


def likely_first(files: Collection[str], log: str) -> list[Path]:
    """The test files that are asked; first those that import a file, or were changed in the same commits of a log."""
    points = Counter(name for file in files for name in importers(file) for _ in range(5))
    for commit in log.split("\0"):
        names = set(commit.split())
        hits = sum(file in names or file.removeprefix("src/") in names for file in files)
        points.update({Path(name).name: hits for name in names if name.startswith("tests/test_")})
    asked = (path for path in TESTS.glob("test_*.py") if path.name not in NOT_ASKED)
    return sorted(asked, key=lambda path: (-points[path.name], path.name))


class Copy:
    """A copy of the installed package, above that the package as it stands in the clone; the tests are the clone's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.plants = 0
        self._output = root / "output"
        ignored = shutil.ignore_patterns("__pycache__", "meson.build")
        shutil.copytree(Path(headwaiter.__file__).parent, root / PACKAGE, ignore=ignored)
        shutil.copytree(ROOT / PACKAGE, root / PACKAGE, ignore=ignored, dirs_exist_ok=True)
        (root / "src" / "sitecustomize.py").write_text(SITE, encoding="utf-8")
        self.env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(root / "src"),
            "HEADWAITER_SHARED": str(root / "none"),
            "HEADWAITER_REQUIRE_ALL": "",
            "HEADWAITER_SOURCE": str(ROOT),
        }
        for name in ("COVERAGE_PROCESS_START", "PYTEST_CURRENT_TEST"):
            self.env.pop(name, None)

    def run(self, args: Iterable[object], limit_s: float, env: Mapping[str, str] | None = None) -> int | None:
        """The status, None where it took longer; everything that it started ends with it."""
        if _ended.is_set():
            raise TimeUpError
        with (
            self._output.open("wb") as out,
            subprocess.Popen(
                [str(a) for a in args],
                cwd=self.root,
                env=self.env | dict(env or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ) as process,
        ):
            _running.add(process.pid)
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                _running.discard(process.pid)

    def pytest(self, *args: object, limit_s: float, env: Mapping[str, str] | None = None) -> int | None:
        fixed = ("-q", "-m", MARKS, "-p", "no:cacheprovider", f"--rootdir={ROOT}", "-c", ROOT / "pyproject.toml")
        return self.run((sys.executable, "-m", "pytest", *fixed, *args), limit_s, env)

    def measure(self, files: Collection[str], tests: Iterable[Path], processes: int, end_s: float) -> Covered:
        """Run the tests without a fault. Those that would begin after end_s (time.monotonic) do not count."""
        data, seconds = self.root / "covered", self.root / "seconds.json"
        paths = {file: str(self.root / file) for file in files}
        rc = ["[run]", "parallel = true", f"data_file = {data}", "context = ${PYTEST_CURRENT_TEST-}", "sigterm = true"]
        (self.root / "coveragerc").write_text("\n".join([*rc, "include =", *(f"  {p}" for p in paths.values()), ""]))
        env = {
            "COVERAGE_PROCESS_START": str(self.root / "coveragerc"),
            covering.DEADLINE: str(end_s),
            covering.SECONDS: str(seconds),
        }
        options = ("-n", processes, "--dist", "loadfile", "-p", "covering")
        status = self.pytest(*options, *tests, limit_s=max(0.0, end_s - time.monotonic()) + SPARE_S, env=env)
        if not seconds.exists():
            raise TimeUpError
        found: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for part in self.root.glob("covered.*"):
            one = CoverageData(str(part))
            try:
                one.read()
            except DataError:
                continue  # of a process that a test has killed
            for file, path in paths.items():
                for line, contexts in one.contexts_by_lineno(path).items():
                    # A process that a test starts adds the test's phase: `FILE::NAME (call)`.
                    found[file][line] |= {c.rpartition(" (")[0] or c for c in contexts if c}
        complete = status is not None and time.monotonic() < end_s
        return Covered(found, json.loads(seconds.read_text(encoding="utf-8")), complete)

    def _failed(self) -> str:
        """The test that pytest named last."""
        named = re.findall(r"^(?:FAILED|ERROR) .*?(test_\w+\.py(?:::\w+)?)", self._output.read_text(errors="replace"), re.M)
        return named[-1] if named else "pytest"

    def types_fit(self) -> bool:
        """Does mypy let the copy pass?"""
        cache = self.root / ".mypy_cache"
        if not cache.exists() and (ROOT / ".mypy_cache").exists():
            shutil.copytree(ROOT / ".mypy_cache", cache)
        args = ("mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", cache)
        return self.run((sys.executable, "-m", *args), MYPY_S) == 0

    def try_out(self, fault: Fault, covered: Covered, end_s: float) -> tuple[bool | None, str]:
        """Whether a fault is caught (None: there was no time to find out), and by what."""
        path = self.root / fault.file
        original, times = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(fault.text, encoding="utf-8")
        # Compiled Python is known by the seconds of its source's time and by its size, which two faults may share.
        self.plants += 1
        os.utime(path, (times.st_atime, times.st_mtime + self.plants))
        try:
            return self._asked(fault, covered, end_s)
        except TimeUpError:
            return None, "no time left"
        finally:
            path.write_text(original, encoding="utf-8")
            os.utime(path, (times.st_atime, times.st_mtime))

    def _asked(self, fault: Fault, covered: Covered, end_s: float) -> tuple[bool | None, str]:
        near, far = covered.of(fault)
        spent = 0.0
        for number, batch in enumerate(batches([*near, *far], covered.seconds)):
            expected = sum(covered.seconds[test] for test in batch)
            if spent + expected > MOST_S and number:
                break
            if time.monotonic() + expected > end_s:
                raise TimeUpError
            spent += expected
            # Other outcomes than 0 and 1 are an import that fails in a conftest and the like.
            if (status := self.pytest("-x", *(ROOT / test for test in batch), limit_s=4 * expected + SPARE_S)) != 0:
                return True, "no end" if status is None else self._failed()
            if number == 0 and not self.types_fit():
                return True, "mypy"
        if not near and not far and not self.types_fit():
            return True, "mypy"
        return (False if covered.complete else None), f"{len(near)}+{len(far)} tests"


def batches(tests: list[str], seconds: Mapping[str, float]) -> Iterator[list[str]]:
    """The tests in order: a few seconds, some more, and then parts of what may be asked at all."""
    sizes = iter((*BATCHES_S, *([MOST_S / 2] * len(tests))))
    size, batch, spent = next(sizes), list[str](), 0.0
    for test in tests:
        if batch and spent + seconds[test] > size:
            yield batch
            size, batch, spent = next(sizes, math.inf), [], 0.0
        batch.append(test)
        spent += seconds[test]
    if batch:
        yield batch
