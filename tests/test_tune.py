# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter tune: what is searched, where it is searched and judged, and when its settings are recommended."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command import good, run, told, write
from recordings import readers, record

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import Reading, find_workload, read_workload
from headwaiter.tuning.halves import halves
from headwaiter.tuning.search import TuningBench, variant_of
from headwaiter.tuning.space import FIXED, dials, size

READERS = """
[global]
rw=read
bs=64k
direct=1
runtime=5
time_based
size=20g
[backup]
offset=100g
[client]
numjobs=2
offset_increment=300g
offset=500g
"""
SHORT = "[a]\nrw=randread\nbs=4k\nsize=256k\n[b]\nrw=read\nbs=64k\nsize=1m\noffset=1g\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write(tmp_path / "readers.fio", READERS)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    return write(tmp_path / "short.fio", SHORT)


@pytest.mark.parametrize("name", catalogue())
def test_values_lie_in_range_around_the_default(name: str) -> None:
    """Zero is among them where it is allowed; a scheduler without tunables that one could set is refused."""
    policy = find(name)
    if all(one in FIXED for one in policy.tunables):
        with pytest.raises(Problem, match=f"{name} has no tunables to search"):
            dials(policy, {})
        return
    for one in dials(policy, {}):
        t = one.tunable
        assert one.start == t.default and {t.default} < set(one.values) and list(one.values) == sorted(set(one.values))
        assert all(t.minimum <= value <= t.maximum for value in one.values)
        assert 0 in one.values or t.minimum > 0
        if t.choices or t.is_flag:
            assert one.values == tuple(range(t.minimum, t.maximum + 1))
        assert t.name not in FIXED and t.name != "slice_idle_us"


def test_a_search_starts_from_given_settings() -> None:
    """They are told in names, but for those that are changed."""
    start = parse_variant("bfq:slice_idle=2:low_latency=0")
    found = dials(find("bfq"), {"slice_idle": 2, "low_latency": 0})
    at = {one.name: i for i, one in enumerate(found)}
    values = [one.start for one in found]
    assert (values[at["slice_idle"]], values[at["low_latency"]]) == (2, 0)
    assert variant_of(start, found, tuple(values)).name == start.name
    values[at["slice_idle"]] = 4
    changed = variant_of(start, found, tuple(values))
    assert changed.name == "bfq:low_latency=0:slice_idle=4" and changed.settings == {"slice_idle": 4, "low_latency": 0}
    assert size(found) > 10**6


def test_parts_of_a_recording_are_its_halves(tmp_path: Path) -> None:
    path = record(tmp_path / "four.csv", readers(4, 200))
    drive = open_drive("constant:5")
    work = read_workload(path, drive, Reading())
    parts = halves(path, work, drive, Reading(), RunConditions())
    assert work.trace and parts.trained.trace and parts.held.trace
    assert [len(one.trace) for one in (parts.trained, parts.held)] == [len(work.trace) // 2] * 2  # type: ignore[arg-type]
    assert parts.trained_under == parts.held_under


def test_what_is_generated_runs_with_another_seed(short: Path) -> None:
    drive = open_drive("wd-re-4tb")
    parts = halves(short, read_workload(short, drive, Reading()), drive, Reading(), RunConditions(seed=7))
    assert (parts.trained_under.seed, parts.held_under.seed) == (7, 8)
    assert parts.held_name == "a run with seed 8"
    path = find_workload("metadata-server")
    made = halves(path, read_workload(path, drive, Reading()), drive, Reading(), RunConditions())
    assert len({len(one.load.time_ns) for one in (made.trained, made.held)}) == 2  # type: ignore[attr-defined]


def test_a_long_wait_counts_against_settings(short: Path) -> None:
    """Not as a figure, but by how much it exceeds what is borne."""
    drive, start = open_drive("wd-re-4tb"), parse_variant("bfq")
    found = dials(find("bfq"), {})
    values = tuple(one.start for one in found)
    bench = TuningBench(start, found, read_workload(short, drive, Reading()), drive, RunConditions(), None)
    usual = bench.run([values])
    assert bench.patience_ms == 1000
    hasty = TuningBench(start, found, read_workload(short, drive, Reading()), drive, RunConditions(), None, patience_ms=1e-3)
    assert hasty.run([values])[0] < usual[0] - 1


@pytest.mark.thorough
def test_readers_beside_a_backup(capfd: pytest.CaptureFixture[str], job: Path) -> None:
    """It is found that bfq raises the weight of each of them."""
    found = told(capfd, "tune", job, "-s", "bfq", "-d", "wd-re-4tb", "--trials", "16", "--seeds", "2")
    best = ":".join(["bfq", *(f"{name}={value}" for name, value in found["settings"].items())])
    assert found["settings"]["low_latency"] == 0 and found["recommended"]
    assert found["apply"] == [f"headwaiter apply sdX {best}"] and found["undo"] == ["headwaiter revert sdX"]
    assert found["text"].startswith(f"Take {best}. On a run with seed 1, which the search has not seen: programs get ")
    assert "It costs: " in found["text"]
    row = next(one for one in found["tunables"] if one["tunable"] == "low_latency")
    assert row["without_percent"] > 50 and row["importance_percent"] > 10
    assert sum(one["importance_percent"] for one in found["tunables"]) == pytest.approx(100)
    assert found["answer"]["best"] == best and len(found["results"]) == 2
    assert found["tried"][0] == {"settings": {}, "ahead_percent": 0}


@pytest.mark.parametrize(
    ("workload", "how"),
    [
        ("example", ("-s", "bfq")),
        pytest.param("nas", ("-s", "mq-deadline", "-d", "barracuda-80g"), marks=pytest.mark.thorough),
        pytest.param("nvme", ("-s", "kyber", "-d", "nvme-ssd"), marks=pytest.mark.thorough),
        pytest.param("readers-4", ("-s", "as", "-d", "wd-re-4tb"), marks=pytest.mark.thorough),
    ],
)
def test_what_is_recommended_is_better_where_nobody_has_looked(
    capfd: pytest.CaptureFixture[str], workload: str, how: tuple[str, ...]
) -> None:
    """And what is not better there is not recommended."""
    found = told(capfd, "tune", workload, *how, "--trials", "6", "--seeds", "2")
    margins = {one["scheduler"]: one for one in found["answer"]["margins"]} if found["answer"] else {}
    mine = next((one for name, one in margins.items() if one["judgement"] != "baseline"), None)
    if found["recommended"]:
        assert mine and (mine["low_percent"] > 0 or found["answer"]["by"] == "p99") and found["apply"]
    else:
        assert not found["apply"] and not found["text"].startswith("Take")
        assert mine is None or mine["judgement"] != "better"


def test_the_defaults_are_as_good(capfd: pytest.CaptureFixture[str], short: Path) -> None:
    """On a drive where nothing that a scheduler does matters, no interval is needed to say so."""
    found = told(capfd, "tune", short, "-s", "deadline", "-d", "constant:5", "--trials", "6", "--seeds", "0")
    assert found["text"].startswith("The defaults are as good: on a run with seed 0, none of ")
    assert (found["settings"], found["answer"], found["results"], found["apply"]) == ({}, None, [], [])


@pytest.mark.thorough
def test_the_same_seed_finds_the_same(capfd: pytest.CaptureFixture[str], short: Path) -> None:
    how = ("tune", short, "-s", "bfq", "-d", "wd-re-4tb", "--trials", "12", "--seeds", "0")
    first = told(capfd, *how)
    assert told(capfd, *how) == first
    assert [row["settings"] for row in told(capfd, *how, "--seed", "5")["tried"]] != [row["settings"] for row in first["tried"]]


def test_a_small_space_is_searched_to_its_end(short: Path) -> None:
    """Two tunables of maitre have few values; a search that has tried all stops."""
    found = headwaiter.tune(str(short), "as:antic_expire=0", drive="constant:5", by="p99", trials=8, runs=0).document
    assert (found.ranked_by, found.trials, found.scheduler) == ("p99", 8, "as:antic_expire=0")
    small = headwaiter.tune(str(short), "kyber", drive="constant:5", trials=2000, runs=0).document
    assert small.trials < 2000 and len(small.tried) <= 169


def test_a_search_ends_with_its_time(short: Path) -> None:
    found = headwaiter.tune(str(short), "bfq", drive="constant:5", seconds=0.001, runs=0)
    assert found.document.trials == 4 and not found.recommended and found.scheduler == "bfq" and found.answer is None
    assert len(found.to_pandas()) == len(found.document.tried)


@pytest.mark.parametrize("text", ["0", "x", "", "2d", "1e9", "nan"])
def test_a_wrong_time(capfd: pytest.CaptureFixture[str], short: Path, text: str) -> None:
    status, _, err = run(capfd, "tune", short, "-s", "bfq", "--time", text)
    assert status == 2 and err.startswith("headwaiter: --time ") and err.count("\n") == 1


def test_without_optuna(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    """One line says what to install."""
    monkeypatch.setitem(sys.modules, "optuna", None)
    for words in (("tune", short, "-s", "bfq"), ("advise", "nas", "--tune")):
        assert run(capfd, *words) == (2, "", "headwaiter: tune needs Optuna (pip install 'headwaiter[tune]')\n")


@pytest.mark.thorough
def test_what_is_printed(capfd: pytest.CaptureFixture[str], job: Path) -> None:
    text = good(capfd, "tune", job, "-s", "bfq", "-d", "wd-re-4tb", "--trials", "8", "--time", "10m", "--seeds", "0")
    assert "readers.fio on wd-re-4tb; bfq by progress of programs" in text
    assert "To apply: headwaiter apply sdX bfq:" in text and "low_latency=0\nTo undo: headwaiter revert sdX\n" in text
    assert "slice_idle" in text and "settings were tried on a run with seed 0." in text


@pytest.mark.thorough
def test_advice_takes_them(capfd: pytest.CaptureFixture[str]) -> None:
    """The verdict with them is of the half that the search has not seen. If they do not win it, a note says so, and all stays."""
    how = ("advise", "nas", "-d", "barracuda-80g")
    without, found = told(capfd, *how), told(capfd, *how, "--tune", "4")
    (note,) = (one.removeprefix("--tune: ") for one in found["notes"] if one.startswith("--tune: "))
    if "the verdict is of the second" in note:
        best = found["answer"]["best"]
        assert len(found["answer"]["margins"]) == 2 and note.startswith(best)
        name, _, value = best.rpartition(":")[2].partition("=")
        assert any(
            line.startswith(f"echo {value} >") and line.endswith(f"/{name}") for a in found["advice"] for line in a["apply"]
        )
    else:
        assert found["answer"] == without["answer"]
