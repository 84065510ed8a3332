# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The list of planted faults keeps up with the sources (whether each is caught, `make mutants` finds out)."""

from __future__ import annotations

import mutants
import pytest

from headwaiter.schedulers import catalogue


def test_every_fault_applies() -> None:
    assert [fault for m in mutants.mutants() if (fault := m.fault())] == []


def test_every_fault_changes_something_and_none_is_listed_twice() -> None:
    found = mutants.mutants()
    assert [m for m in found if m.find == m.replace] == []
    assert len(found) >= 60
    assert len({(m.file, m.find, m.replace) for m in found}) == len(found)


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_scheduler_has_faults(name: str) -> None:
    assert (mutants.LISTS / f"{name}.toml").exists()


def test_tests_exist() -> None:
    named = {t.split()[0] for m in mutants.mutants() for t in m.tests} | {*mutants.SUITE, *mutants.PYTHON_SUITE}
    there = {path.name for path in mutants.TESTS.glob("test_*.py")} | set(mutants.c_suite())
    assert named <= there
