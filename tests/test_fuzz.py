# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Everything that headwaiter reads, fuzzed for a few seconds a format, with another seed for each commit (docs/testing.md)."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from fuzzing.engine import CORPUS, corpus
from fuzzing.targets import TARGETS


def commit_number() -> str:
    """A number for the commit at hand: each has its own, and CI runs again what its developer ran."""
    try:
        git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT)
        return str(int(git.stdout[:8], 16))
    except (OSError, subprocess.CalledProcessError):  # there is no git, or the files are no checkout
        return str(random.SystemRandom().getrandbits(32))


SEED = os.environ.get("HEADWAITER_FUZZ_SEED") or commit_number()
EXECUTIONS = 2000


def fuzzing(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fuzzing", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT / "tests",
        env=os.environ | environment,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS)
def test_fuzz(tmp_path: Path, target: str) -> None:
    done = fuzzing(target, "--executions", str(EXECUTIONS), "--seed", SEED, "--findings", str(tmp_path))
    told = "".join(p.read_text(encoding="utf-8") for p in sorted(tmp_path.rglob("*.txt")))
    assert done.returncode == 0, f"HEADWAITER_FUZZ_SEED={SEED} finds it again\n{done.stdout}{done.stderr}{told}"
    assert f"{EXECUTIONS} executions" in done.stdout


@pytest.mark.thorough
def test_a_seed_gives_the_same_inputs_in_every_process(tmp_path: Path) -> None:
    """Python orders a set of strings anew in each process: a finding of CI would not be found again."""
    arguments = ("native", "iolog", "--executions", "500", "--seed", "7", "--jobs", "1", "--findings")
    told = []
    for number in ("1", "2"):
        done = fuzzing(*arguments, str(tmp_path / number), PYTHONHASHSEED=number)
        assert done.returncode == 0, done.stdout + done.stderr
        told.append(re.findall(r"(\w+): (\d+) executions, \d+ a second, (\d+) behaviours", done.stdout))
    assert told[0] == told[1] and len(told[0]) == 2


def test_every_target_has_a_corpus() -> None:
    assert {p.name for p in CORPUS.iterdir()} == set(TARGETS)
    assert all(len(data) <= 1 << 14 for target in TARGETS.values() for data in corpus(target))


def test_the_corpus_leads_deep(tmp_path: Path) -> None:
    """At least one kept input of every format is sound: a mutation of garbage is garbage."""
    for name, target in TARGETS.items():
        said = [target.run(tmp_path, data) for data in corpus(target)]
        assert any(not text.startswith(":") for text in said), name
