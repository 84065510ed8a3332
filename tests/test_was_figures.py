# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `was` counts and shows, on loads small enough to be worked out by hand; nothing is simulated."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import good, run, told, write

from headwaiter.base.errors import Problem
from headwaiter.cli import was as cli
from headwaiter.cli._was import verdicts_table
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task
from headwaiter.papers.was import evaluate, fit
from headwaiter.papers.was.calibration import Candidate, Choices, FoundClasses
from headwaiter.papers.was.config import Config, save
from headwaiter.papers.was.designate import ClassIntervals
from headwaiter.papers.was.evaluate import Evaluated, WaitSums
from headwaiter.papers.was.fit import BOUNDS_US, FIXED_US, alike
from headwaiter.papers.was.matrix import Matrix, to_text

MS = 1_000_000
SIX = "time_s,task,op,sync,sector,sectors\n" + "".join(f"0.{k},1,R,1,{8 * k},8\n" for k in range(6))


@pytest.fixture
def observed(tmp_path: Path) -> tuple[Path, Path]:
    """One class: five waits that are met within a millisecond, one that is in vain after the second."""
    classes = alike(2000, {})
    save(classes, tmp_path / "c.toml")
    matrix = Matrix(np.array([[5, 0, 1]], np.int64), 1000, classes.classifier)
    return tmp_path / "c.toml", write(tmp_path / "m.json", to_text(matrix, toml=False))


def test_a_bound_may_be_reached_where_that_is_allowed(capfd: pytest.CaptureFixture[str], observed: tuple[Path, Path]) -> None:
    """A millisecond fails once, for exactly 1 ms."""
    args = ("was", "designate", "-c", observed[0], "-a", observed[1], "--bound-ms", 1)
    assert "below G = 1 ms" in run(capfd, *args)[2]
    found = told(capfd, *args, "--or-equal")["designation"]
    assert (found["wait_us"], found["failures"], found["penalty_ms"], found["mean_failure_ms"]) == ([1000], 1, 1.0, 1.0)


def test_the_row_of_a_class(capfd: pytest.CaptureFixture[str], tmp_path: Path, observed: tuple[Path, Path]) -> None:
    """Six waits, one in vain: 1 ms over five that were met."""
    out = good(capfd, "was", "designate", "-c", observed[0], "-a", observed[1], "-o", tmp_path / "out.toml", "--bound-ms", 2)
    assert re.search(r"^ *1 +6 +1 +1 +1 +0\.200 *$", out, re.M), out


@pytest.mark.parametrize(
    ("given", "bounds", "least"),
    [((), BOUNDS_US, 0), (("--bound-ms", "2.5", "--least-ms", "3"), (2500,), 3000)],
)
def test_what_fit_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, given: tuple[str, ...],
    bounds: tuple[int, ...], least: int,
) -> None:  # fmt: skip
    asked: list[Any] = []

    def fitted(_observation: object, _choices: object, bounds_us: object, least_us: int, *_: object) -> None:
        asked.append((bounds_us, least_us))
        raise Problem("enough")

    monkeypatch.setattr(cli, "fit", fitted)
    assert run(capfd, "was", "fit", write(tmp_path / "t.csv", SIX), "--runs", 0, *given)[2] == "headwaiter: enough\n"
    assert asked == [(bounds, least)]


STEPS = ("--history", 4, "--classes", 9, "--spatial-steps", "60,30,0", "--temporal-steps", "40,0")


@pytest.mark.parametrize(
    ("given", "choices", "prove"),
    [
        ((), Choices(), True),
        ((*STEPS, "--bucket", 500, "--no-prove"), Choices(4, 9, (60, 30, 0), (40, 0), 500), False),
    ],
)
def test_what_fit_may_choose(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, given: tuple[object, ...],
    choices: Choices, prove: bool,
) -> None:  # fmt: skip
    asked: list[Any] = []

    def fitted(_observation: object, choices: Choices, *more: object) -> None:
        asked.append((choices, more[-1]))
        raise Problem("enough")

    monkeypatch.setattr(cli, "fit", fitted)
    assert run(capfd, "was", "fit", write(tmp_path / "t.csv", SIX), "--runs", 0, *given)[2] == "headwaiter: enough\n"
    assert asked == [(choices, prove)]


@pytest.mark.parametrize(("given", "max_us", "bucket_us"), [((), 10_000, 1000), (("--max-ms", 6, "--bucket", 500), 6000, 500)])
@pytest.mark.parametrize("command", ["calibrate", "fit", "observe"])
def test_what_is_watched(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, observed: tuple[Path, Path],
    command: str, given: tuple[object, ...], max_us: int, bucket_us: int,
) -> None:  # fmt: skip
    asked: list[Any] = []

    def watched(_name: str, _drive: object, _load: object, options: Options, *more: Any) -> None:
        asked.append((options.seed, *more[:2]))
        raise Problem("enough")

    monkeypatch.setattr(cli, "watch", watched)
    config = ("-c", observed[0]) if command == "observe" else ()
    words = ("was", command, write(tmp_path / "t.csv", SIX), *config, *given, "--seed", 7)
    assert run(capfd, *words)[2] == "headwaiter: enough\n" and asked == [(7, max_us, bucket_us)]


def test_what_calibrate_tells(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each figure under its own name, and what there is to note of the load."""
    best = Candidate(3, ((0, 70), (8, 0)), ((0, 30),), 8, 1, 0.25)
    monkeypatch.setattr(cli, "calibrate", lambda *_: FoundClasses(best, (), 12, 5))
    path = write(tmp_path / "t.mqsim", "0 0 8 8 1\n1000 0 16 8 1\n")
    found = told(capfd, "was", "calibrate", path, "--streams", 1)
    assert found["calibration"] == {
        "history": 3, "classes": 8, "empty_classes": 1, "similarity": 0.25, "spatial_steps": [[0, 70], [8, 0]],
        "temporal_steps": [[0, 30]], "candidates": 12, "candidates_within_bound": 5, "warnings": [],
    }  # fmt: skip
    assert any("1 threads inferred from sequential streams" in note for note in found["notes"])


def test_evaluate_runs_as_often_as_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[Any] = []

    def verdict(name: str, _drive: object, _load: object, config: object, options: Options, runs: int) -> Evaluated:
        asked.append((name, config, options.seed, runs))
        return Evaluated(name, *[WaitSums(1, 0, 0.0, 8, 1.0)] * 2)

    monkeypatch.setattr(cli, "verdict", verdict)
    path = write(tmp_path / "t.csv", SIX)
    for more in ((), ("--runs", 5, "--seed", 3)):
        told(capfd, "was", "evaluate", path, "--online", "--whole", *more)
    assert asked == [("t.csv", None, 0, 2), ("t.csv", None, 3, 5)]


def test_evaluate_judges_by_the_second_half(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fitted_to, judged_by = [], []

    def fitted(work: Any, _given: object) -> None:
        fitted_to.append(work.loads[0].load.sector.tolist())
        raise Problem("nothing fits")

    def verdict(name: str, _drive: object, load: Forest, *_: object) -> Evaluated:
        judged_by.append(load.sector.tolist())
        return Evaluated(name, *[WaitSums(1, 0, 0.0, 8, 1.0)] * 2)

    monkeypatch.setattr(cli, "_fitted", fitted)
    monkeypatch.setattr(cli, "verdict", verdict)
    told(capfd, "was", "evaluate", write(tmp_path / "t.csv", SIX))
    assert (fitted_to, judged_by) == ([[0, 8, 16]], [[24, 32, 40]])


@pytest.mark.parametrize(("after", "word"), [(1.0, "better"), (3.0, "worse"), (2.0, "the same")])
def test_a_verdict_in_words(after: float, word: str) -> None:
    """As waits 2 ms in vain for each wait that is met."""
    one = Evaluated("x", WaitSums(10, 1, 20.0, 8, 1.0), WaitSums(10, 1, after * 10, 8, 1.0))
    assert str(next(iter(verdicts_table([one]).columns[-1].cells))).startswith(word)


def load(times_ns: list[int]) -> Forest:
    n = len(times_ns)
    zeros, bytes_, numbers = np.zeros(n, np.int64), np.zeros(n, np.uint8), np.zeros(n, np.uint32)
    return Forest(
        [Task(0, "t", 0)], np.array(times_ns, np.int64), np.full(n, -1, np.int64), zeros, numbers, bytes_, bytes_ + 1,
        (np.arange(n) * 100).astype(np.uint64), numbers + 8, np.zeros(n, np.uint16),
    )  # fmt: skip


@pytest.mark.parametrize("runs", [0, 2])
def test_a_load_runs_as_it_is_and_so_often_changed(runs: int) -> None:
    """Three reads of 4 KiB, each served in 5 ms before the next: bytes and seconds of all runs."""
    found = evaluate.run_as(ConstantDrive(5 * MS), [load([0, 10**9, 2 * 10**9])], Options(), runs)
    assert found.bytes == 3 * 4096 * (runs + 1)


def test_time_counts_from_the_first_issue() -> None:
    found = evaluate.run_as(ConstantDrive(5 * MS), [load([10**9, 2 * 10**9])], Options(), 0)
    assert found.seconds == pytest.approx(1.005, abs=1e-3)


def test_intervals_for_all_are_longer_than_what_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 3 ms are forbidden: 4 and 8 are left of FIXED_US."""
    matrix = Matrix(np.array([[5, *[0] * 9, 1]], np.int64), 1000, "c")
    best = SimpleNamespace(config=lambda wait_us, made: dataclasses.replace(alike(wait_us, made), history=3))
    monkeypatch.setattr(fit, "calibrate", lambda *_: SimpleNamespace(best=best, others=[]))
    monkeypatch.setattr(fit, "designate", lambda *_: ClassIntervals((5000,), 6, 1, 5000))
    observation: Any = SimpleNamespace(name="x", max_us=10_000, matrix=lambda *_: matrix)
    choices: Any = SimpleNamespace(bucket_us=1000)
    tried: list[Config] = []

    def trials(configs: Sequence[Config]) -> list[WaitSums]:
        tried.extend(configs)
        return [WaitSums(1, 0, 0.0, 8, 1.0)] * len(configs)

    fit.fit(observation, choices, (6000,), 3000, WaitSums(1, 0, 0.0, 8, 1.0), trials)
    waits = {c.wait_us for c in tried}
    assert {(4000,), (8000,)} <= waits and min(min(wait) for wait in waits) > 3000
    assert set(FIXED_US) == {1000, 2000, 3000, 4000, 8000}
