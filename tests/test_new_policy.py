# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`make new-policy NAME=…`: what it makes is in every place, compiles, and does what its scenario says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("core", "sim", "bench", "examples", "tests/c", "tests/golden", "tests/mutants", "docs/schedulers")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part)
    for name in ("meson.build", "meson.options"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(tree: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, tree / "core" / "new-policy", name], capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_a_new_policy_compiles_and_does_what_its_scenario_says(tree: Path) -> None:
    done = make(tree, "my-own")
    assert done.returncode == 0, done.stderr
    told = [tree / line for line in done.stdout.splitlines()]
    assert tree / "core/policy/my_own.c" in told and all(path.is_file() for path in told)
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["meson", "setup", "build"], cwd=tree, env=env, check=True, capture_output=True)
    subprocess.run(["ninja", "-C", "build"], cwd=tree, env=env, check=True, capture_output=True)
    library = env | {"HEADWAITER_LIBRARY": str(tree / "build" / "sim" / "libheadwaiter.so")}
    lines = (
        "from pathlib import Path",
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})",
        "import scenario, tomllib",
        "(case,) = tomllib.loads(Path('tests/golden/my-own.toml').read_text())['scenario']",
        "assert scenario.run(case, Path('.')).dispatches == scenario.expand(case['expect'])",
    )
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=tree, env=library, check=True)


@pytest.mark.parametrize("name", ["noop", "as-95", "as", "Toy", "1st", "a--b", "", "no/where", "thirteen-long"])
def test_a_name_that_is_taken_or_none_changes_nothing(tree: Path, name: str) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    done = make(tree, name)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
