# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The list of planted faults keeps up with the sources (whether each is caught, `make mutants` finds out)."""

from __future__ import annotations

import time

import mutants
import pytest

from headwaiter.engine.schedulers import catalogue


def test_every_fault_applies() -> None:
    assert [fault for m in mutants.mutants() if (fault := m.fault())] == []


def test_every_fault_changes_something_and_none_is_listed_twice() -> None:
    found = mutants.mutants()
    assert [m for m in found if m.find == m.replace] == []
    assert len(found) >= 60
    assert len({(m.file, m.find, m.replace) for m in found}) == len(found)


def test_faults_in_python_are_python() -> None:
    found = [m for m in mutants.mutants() if m.python]
    assert len(found) >= 60
    for m in found:
        compile((mutants.ROOT / m.file).read_text().replace(m.find, m.replace), f"{m.file}: {m.why}", "exec")


def test_what_has_changed_concerns_its_faults() -> None:
    m = mutants.Mutant("area", "headwaiter/x.py", "a", "b", "why", ("test_x.py -k y", "test_lib"))
    for file in ("headwaiter/x.py", "tests/mutants/area.toml", "tests/test_x.py", "tests/c/test_lib.c"):
        assert m.concerns({file, "README.md"}), file
    assert not m.concerns({"headwaiter/y.py", "tests/test_xy.py"})
    everything = [mutants.Mutant("area", f"{i}.c", "a", "b", "") for i in range(9)]
    assert all(len(mutants.concerned(everything, 4)[0]) <= 4 for _ in range(3))
    assert mutants.concerned(everything, 4) == mutants.concerned(everything, 4), "the same commit, the same choice"


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
    named = {t.split()[0] for m in mutants.mutants() for t in m.tests} | {*mutants.SUITE, *mutants.PYTHON_SUITE}
    there = {path.name for path in mutants.TESTS.glob("test_*.py")} | set(mutants.c_suite())
    assert named <= there
