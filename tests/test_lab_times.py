# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long the lab takes, as it is told to who waits for it: as long as last time."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from command import good
from rich.console import Console

from headwaiter.cli._progress import work_bar
from headwaiter.lab import times
from headwaiter.lab.script import read
from headwaiter.lab.times import timed


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which nothing moves but a test."""
    monkeypatch.setattr(times, "cache_folder", lambda: tmp_path / "cache")
    now = [100.0]
    monkeypatch.setattr("headwaiter.lab.times.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_as_long_as_last_time(clock: list[float], tmp_path: Path) -> None:
    """By unit; what fails, or is over at once, tells nothing; a file that is damaged, or cannot be written, is no trouble."""
    with timed("run smoke", 2) as seconds:
        assert seconds is None
        clock[0] += 30
    with timed("run smoke", 3) as seconds:
        assert seconds == 45
        clock[0] += 1
    with pytest.raises(ValueError, match="it"), timed("run smoke") as seconds:
        assert seconds == 15
        clock[0] += 900
        raise ValueError("it")
    with timed("agree") as seconds:
        assert seconds is None
        clock[0] += 4
    with timed("run smoke") as one, timed("agree") as other:
        assert (one, other) == (15, 4)
    for damaged in ("{", "[]", '{"agree": "x"}', '{"agree": -1}'):
        (tmp_path / "cache" / "times.json").write_text(damaged)
        with timed("agree") as seconds:
            assert seconds is None
    (tmp_path / "cache" / "times.json").unlink()
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").touch()
    with timed("agree") as seconds:
        clock[0] += 9
    with timed("agree") as seconds:
        assert seconds is None


@pytest.mark.parametrize(("seconds", "shown"), [(60.0, "0 of 60 s, 60 s left"), (None, "0 s"), (0.0, "0 s")])
def test_the_bar_of_work_that_was_done_before(seconds: float | None, shown: str) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None, legacy_windows=False)
    with work_bar(seconds, console) as say:
        say("6.12: running kyber")
    assert "6.12: running kyber" in screen.getvalue() and shown in screen.getvalue()
    assert ("left" in screen.getvalue()) == bool(seconds)


def test_a_run_is_told_by_its_experiment(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And by the kernels that it boots."""
    seen: list[float | None] = []

    class Bar:
        def __init__(self, seconds: float | None) -> None:
            seen.append(seconds)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *given: object) -> None:
            pass

    def execute(target: str, *given: object) -> object:
        clock[0] += 20
        return read(target), [], {}

    monkeypatch.setattr("headwaiter.cli.lab.work_bar", Bar)
    monkeypatch.setattr("headwaiter.cli.lab.execute", execute)
    good(capfd, "lab", "run", "smoke", "-k", "6.12")
    good(capfd, "lab", "run", "smoke")
    good(capfd, "lab", "run", "smoke", "-k", "6.12", "--set", "X=1")
    assert seen == [None, None, 20]
