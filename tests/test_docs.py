# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The documents say what the tables say, and every scheduler has its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from headwaiter.engine.schedulers import catalogue

pytestmark = pytest.mark.thorough  # only whole pages and tables pass: checked before the end of a change, not during it
ROOT = Path(__file__).resolve().parent.parent


def test_generated_tables_are_current() -> None:
    command: list[str | Path] = [sys.executable, ROOT / "docs" / "generate.py", "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_scheduler_has_a_page() -> None:
    for name in catalogue():
        page = ROOT / "docs" / "schedulers" / f"{name}.md"
        assert page.is_file(), f"no {page.relative_to(ROOT)}"
        assert f"<!-- tunables: {name} -->" in page.read_text() or not catalogue()[name].tunables, page


def test_every_page_promises_the_longest_wait_that_is_tested() -> None:
    """Or says that there is no bound."""
    source = (ROOT / "tests" / "c" / "starvation.c").read_text()
    rows = re.findall(r'\{ "([a-z0-9-]+)", (\d), (\d+) \}', source)
    assert rows
    promised = {name: (int(depth), int(seconds)) for name, depth, seconds in rows}
    commits = dict(re.findall(r'\{ "([\w-]+)", (\d+) \}', source))
    assert commits
    for name in catalogue():
        page = (ROOT / "docs" / "schedulers" / f"{name}.md").read_text()
        words = " ".join(page.split())
        assert "longest wait" in words.lower(), name
        if name in promised:
            assert f"less than {promised[name][1]} s" in words, name
        if name in commits:
            assert f"A commit takes less than {commits[name]} s" in words, name
        assert ("**No bound**" in page) or (name in promised and promised[name][0] == 0), name
