# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Planted faults keep up with the sources, and what tries them tells a test that fails from one that passes.

Whether each fault is caught, `make mutants` finds out.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mutants
import planting
import pytest
import trying
from planting import Fault, Survivor

from headwaiter.engine.schedulers import catalogue

# --- the lists for C ---


def test_every_fault_applies() -> None:
    assert [fault for m in mutants.mutants() if (fault := m.fault())] == []


@pytest.mark.thorough
def test_every_fault_in_c_compiles() -> None:
    gcc = shutil.which("gcc")
    assert gcc

    def errors(m: mutants.Mutant) -> str | None:
        text = (mutants.ROOT / m.file).read_text().replace(m.find, m.replace)
        folders = (mutants.ROOT, mutants.ROOT / "core", mutants.ROOT / "sim", (mutants.ROOT / m.file).parent)
        command = [gcc, "-std=gnu11", "-w", "-fsyntax-only", *(f"-I{folder}" for folder in folders), "-x", "c", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return f"{m.area}: {m.why}:\n{done.stderr}" if done.returncode else None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert [e for e in pool.map(errors, (m for m in mutants.mutants() if m.file.endswith((".c", ".h")))) if e] == []


def test_every_fault_changes_something_and_none_is_listed_twice() -> None:
    found = mutants.mutants()
    assert [m for m in found if m.find == m.replace] == []
    assert len(found) >= 60
    assert len({(m.file, m.find, m.replace) for m in found}) == len(found)


def test_what_has_changed_concerns_its_faults() -> None:
    m = mutants.Mutant("area", "core/x.c", "a", "b", "why", ("test_x.py -k y", "test_lib"))
    for file in ("core/x.c", "tests/mutants/area.toml", "tests/test_x.py", "tests/c/test_lib.c"):
        assert m.concerns({file, "README.md"}), file
    assert not m.concerns({"core/y.c", "tests/test_xy.py"})
    everything = [mutants.Mutant("area", f"{i}.c", "a", "b", "") for i in range(9)]
    assert len(mutants.concerned(everything, 4, None)[0]) == 4
    assert mutants.concerned(everything, 4, None) == mutants.concerned(everything, 4, None), "the same commit, the same choice"


def test_no_test_begins_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = mutants.Bench.__new__(mutants.Bench)
    begun: list[str] = []

    def passes(test: str) -> bool:
        begun.append(test)
        return test != "b"

    monkeypatch.setattr(bench, "passes", passes)
    assert bench.failing(["a", "b", "c"]) == "b" and begun == ["a", "b"]
    with pytest.raises(TimeoutError):
        bench.failing(["d"], time.monotonic() - 1)
    assert begun == ["a", "b"]


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_scheduler_has_faults(name: str) -> None:
    assert (mutants.LISTS / f"{name}.toml").exists()


def test_tests_exist() -> None:
    named = {t.split()[0] for m in mutants.mutants() for t in m.tests} | {*mutants.SUITE, *trying.NOT_ASKED}
    there = {path.name for path in mutants.TESTS.glob("test_*.py")} | set(mutants.c_suite())
    assert named <= there


# --- Python ---

SOURCE = '''"""Text."""
from typing import cast

LIMIT: int = 3


@decorated(4)
def f(a: int, b: str = "x y") -> int:
    print("for people", cast("int", a), encoding="utf-8")
    if a < LIMIT and b != "key":
        return g(
            a + 1,
            b,
        )
    return 0
'''


def changes(*lines: int) -> set[tuple[str, str]]:
    return {(f.before.strip(), f.after.strip()) for f in planting.faults("x.py", lines, SOURCE)}


def test_faults_are_on_the_lines_that_are_asked_for() -> None:
    assert changes(4) == {("LIMIT: int = 3", "LIMIT: int = None"), ("LIMIT: int = 3", "LIMIT: int = 4")}
    line = 'if a < LIMIT and b != "key":'
    for after in ("a <= LIMIT and", "a < LIMIT or", 'b == "key"', '"XXkeyXX"'):
        assert any(after in new for old, new in changes(10) if old == line), after
    assert ("a + 1,", "a - 1,") in changes(12) and ("return 0", "return 1") in changes(15)
    for fault in planting.faults("x.py", range(1, 20), SOURCE):
        compile(fault.text, "x.py", "exec")
        assert fault.text.splitlines()[fault.number - 1 :] != SOURCE.splitlines()[fault.number - 1 :]
        assert fault.text.splitlines()[: fault.number - 1] == SOURCE.splitlines()[: fault.number - 1]


def test_what_no_test_asks_for_stays_as_it_is() -> None:
    """Documentation, words for people, decorators, types, what only mypy reads, and the encoding that every machine has."""
    assert changes(1, 7, 8) == set()
    assert not any("XX" in new or "utf-8" not in new or "cast(None" in new for _, new in changes(9))


def test_a_sample_is_the_commits_and_spreads_over_lines() -> None:
    lines = {"src/headwaiter/base/errors.py": range(1, 100)}
    some, number = planting.sample(lines, 6, "commit")
    assert some == planting.sample(lines, 6, "commit")[0] != planting.sample(lines, 6, "other")[0]
    assert len({fault.number for fault in some}) == len(some) == 6 < number
    rest, fewer = planting.sample(lines, 6, "commit", {some[0].key})
    assert fewer < number and some[0].key not in {fault.key for fault in rest}


def test_lines_of_a_diff() -> None:
    diff = """diff --git a/headwaiter/x.py b/src/headwaiter/x.py
--- a/headwaiter/x.py
+++ b/src/headwaiter/x.py
@@ -1 +1,2 @@
-a
+b
+c
@@ -9,2 +10,0 @@ def f():
-d
-e
@@ -20 +19 @@
--- f
+++ g
--- a/src/headwaiter/y.c
+++ b/src/headwaiter/y.c
@@ -0,0 +1 @@
+h
"""
    assert planting.touched(diff) == {"src/headwaiter/x.py": {1, 2, 19}}


def test_words_select_files() -> None:
    assert list(mutants.selected_lines(["traces/model"])) == ["src/headwaiter/traces/model.py"]
    assert mutants.selected_lines([]) == mutants.selected_lines(["core/policy/as", "noop"]) == {}


def test_accepted_survivors_are_faults_that_the_tool_plants() -> None:
    found = planting.survivors()
    assert planting.stale(found) == []
    assert all(s.why for s in found) and len({s.key for s in found}) == len(found)


def test_a_survivor_is_known_by_its_text() -> None:
    file = "src/headwaiter/base/errors.py"
    fault = planting.faults(file, planting.every_line(file))[-1]
    known = Survivor(file, f"  {fault.before}", fault.after.strip(), "a reason")
    assert known.key == fault.key and planting.stale([known]) == []
    (line,) = planting.stale([known, Survivor(file, fault.before, "never = this", "a reason")])
    assert "never = this" in line
    assert planting.stale([Survivor("src/headwaiter/none.py", "a", "b", "a reason")])


def test_tests_are_those_of_the_statement_cheap_ones_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(trying, "ROOT", tmp_path)
    monkeypatch.setattr(trying, "importers", lambda file: ["test_c.py"])
    seconds = {"tests/test_a.py::one": 2.0, "tests/test_a.py::two": 1.0, "tests/test_b.py::one": 1.0, "tests/test_c.py::one": 3.0}
    covered = trying.Covered({"x.py": {11: {"tests/test_a.py::one"}, 15: {"tests/test_b.py::one", "failed"}}}, seconds, True)

    def of(number: int) -> tuple[list[str], list[str]]:
        return covered.of(Fault("x.py", number, "", "", ""))

    assert of(12) == (["tests/test_a.py::one"], ["tests/test_a.py::two", "tests/test_c.py::one"])
    assert of(15) == (["tests/test_b.py::one"], ["tests/test_c.py::one"])
    assert of(4)[0] == ["tests/test_b.py::one", "tests/test_a.py::one"], "a line that runs on import is every test's"
    assert list(trying.batches(["a", "b", "c"], {"a": 2.0, "b": 2.0, "c": 9.0})) == [["a"], ["b", "c"]]


TESTED = """from headwaiter.base.errors import shown


def test_one() -> None:
    assert shown("abc", 9) == "abc"
"""


OUTSIDE = """import subprocess
import sys


def shown(text: str, most: int) -> str:
    program = f"from headwaiter.base.errors import shown; print(shown({text!r}, {most}), end='')"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
"""


@pytest.mark.thorough
def test_faults_are_caught_survive_or_stay_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a copy: measured first, then with a fault that the test sees, with one that it does not see, and without time."""
    tree = tmp_path / "tree"
    (tree / "tests").mkdir(parents=True)
    (tree / "src").symlink_to(trying.ROOT / "src")
    shutil.copy(trying.ROOT / "pyproject.toml", tree)
    shutil.copy(trying.TESTS / "covering.py", tree / "tests")
    monkeypatch.setattr(trying, "ROOT", tree)
    file, test = "src/headwaiter/base/errors.py", tree / "tests" / "test_planted.py"
    test.write_text(TESTED, encoding="utf-8")
    monkeypatch.setattr(trying.Copy, "types_fit", lambda self: True)
    monkeypatch.setattr(trying, "importers", lambda file: [])
    source = (trying.ROOT / file).read_text(encoding="utf-8")
    copy = trying.Copy(tmp_path / "copy")
    later = time.monotonic() + 600
    covered = copy.measure({file}, [test], 1, later)
    assert covered.complete and len(covered.seconds) == 1
    seen = Fault(file, 18, "", "", source.replace("return plain(text if", "return repr(text if"))
    unseen = Fault(file, 18, "", "", source.replace('text[:most] + "…"', "text"))
    assert seen.text != source != unseen.text
    assert copy.try_out(seen, covered, later) == (True, "test_planted.py::test_one")
    assert copy.try_out(unseen, covered, later)[0] is False
    assert copy.try_out(unseen, trying.Covered(covered.tests, covered.seconds, False), later)[0] is None, "others might see it"
    assert copy.try_out(seen, covered, time.monotonic() - 1)[0] is None
    assert (copy.root / file).read_text(encoding="utf-8") == source == (trying.ROOT / file).read_text(encoding="utf-8")
    # What runs outside pytest's own process belongs to the test, too.
    test.write_text(TESTED.replace("from headwaiter.base.errors import shown", OUTSIDE), encoding="utf-8")
    near, _ = copy.measure({file}, [test], 1, later).of(seen)
    assert len(near) == 1


def test_whoever_ends_the_program_ends_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "_ended", threading.Event())
    copy = trying.Copy(tmp_path)
    timer = threading.Timer(0.2, trying.end_all)
    timer.start()
    assert copy.run(["sleep", "600"], 600) == -signal.SIGKILL
    with pytest.raises(trying.TimeUpError):
        copy.run(["true"], 600)
    timer.join()


@pytest.mark.parametrize(
    ("caught", "survived", "undecided", "fails"),
    [
        (20, 0, 0, False),
        (19, 1, 0, False),
        (1, 1, 0, False),
        (16, 4, 0, False),
        (15, 5, 0, True),
        (1, 2, 17, True),
        (0, 0, 20, False),
    ],
)
def test_a_sample_may_have_survivors_but_not_many(caught: int, survived: int, undecided: int, fails: bool) -> None:
    assert mutants.too_many([True] * caught + [False] * survived + [None] * undecided) is fails
