# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fleets: each machine is advised as `advise` advises it, and what is said of all is what is true of a fleet that is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import fleets
import numpy as np
import pandas as pd
import pytest
from command import run, told
from fleets import Known
from pandas.testing import assert_frame_equal

from headwaiter.base.errors import Problem
from headwaiter.description.schema import Character, Depth, Quantiles
from headwaiter.drives.choose import open_drive
from headwaiter.fleet.classes import drive_class, workload_class
from headwaiter.fleet.fleet import PARTS, judge_fleet, recordings_of
from headwaiter.fleet.summary import AS_IT_IS, document_of
from headwaiter.report.fleets import fleet_verdict, render
from headwaiter.sweeps import farm


@pytest.fixture(scope="module")
def known() -> list[Known]:
    return fleets.fleet(5)


@pytest.fixture(scope="module")
def folder(known: list[Known], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fleets.record_all(known, tmp_path_factory.mktemp("fleet") / "recordings")


@pytest.fixture(scope="module")
def judged(folder: Path) -> pd.DataFrame:
    return judge_fleet([str(folder)], workers=2)


def check(machines: Sequence[Known], frame: pd.DataFrame) -> None:
    """Class and setting are right for 95% of machines, and the cost of one setting for all is within 5% of the truth."""
    found = document_of(frame, "progress")
    rows = {Path(name).stem: row for name, row in frame.set_index("machine").iterrows()}
    assert set(frame["fate"]) <= {"gains", "nothing", "idle", "saturated", "cannot tell"}
    true = {one.name: fleets.truth(one) for one in machines}
    classes = [(rows[one.name]["workload_class"], rows[one.name]["drive_class"]) for one in machines]
    right = [got == (one.workload_class, one.drive_class) for got, one in zip(classes, machines, strict=True)]
    assert np.mean(right) >= 0.95, [one for one, good in zip(zip(classes, machines, strict=True), right, strict=True) if not good]
    # What is advised, and what the class is to have, is what is best, or within the margin of what matters.
    of_class = {(one.workload_class, one.drive_class): one.setting for one in found.classes}
    for settings in (
        {one.name: rows[one.name]["setting"] for one in machines},
        {one.name: of_class[one.workload_class, one.drive_class] for one in machines if right[machines.index(one)]},
    ):
        best = [true[name].get(setting, 0.0) >= 0.95 for name, setting in settings.items()]
        assert np.mean(best) >= 0.95, [(name, settings[name]) for name, good in zip(settings, best, strict=True) if not good]
    for one in found.one_for_all:
        name = "mq-deadline" if one.setting == AS_IT_IS else one.setting
        cost = 100 * np.mean([1 - of[name] for of in true.values()])
        assert one.cost_percent == pytest.approx(cost, abs=5), one.setting


@pytest.mark.thorough
def test_what_is_said_is_true(known: list[Known], judged: pd.DataFrame) -> None:
    check(known, judged)


@pytest.mark.long
def test_a_thousand_machines(tmp_path: Path) -> None:
    machines = fleets.fleet(1000, seed=1)
    fleets.record_all(machines, tmp_path / "recordings")
    check(machines, judge_fleet([str(tmp_path / "recordings")], parquet=tmp_path / "fleet.parquet"))


@pytest.mark.thorough
def test_each_is_advised_as_advise_does(folder: Path, judged: pd.DataFrame, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("machine0000.csv", "machine0001.csv"):
        alone = told(capfd, "advise", folder / name)
        row = judged.set_index("machine").loc[name]
        answer = alone["answer"]
        assert (row["outcome"], row["drive"], row["current"]) == (answer["outcome"], alone["drive"], answer["baseline"])
        assert row["setting"] == answer.get("best", answer["baseline"])
        if "best" in answer:
            (margin,) = (one for one in answer["margins"] if one["scheduler"] == answer["best"])
            assert row["ahead_percent"] == pytest.approx(margin["ahead_percent"])


@pytest.mark.thorough
def test_the_command(folder: Path, judged: pd.DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.csv").write_text("no recording")
    words = ["fleet", folder / "machine0000.csv", folder / "machine000[12].csv", tmp_path / "bad.csv", "--workers", 2]
    table, page = tmp_path / "fleet.parquet", tmp_path / "fleet.html"
    status, out, err = run(capfd, *words, "--parquet", table, "-o", page, "--json")
    found = json.loads(out)
    assert (status, err) == (1, "")
    assert (found["machines"], found["fates"]["failed"]) == (4, 1)
    assert found["failures"][0]["machine"] == "bad.csv"
    frame = pd.read_parquet(table)
    assert not table.with_name(table.name + PARTS).exists()
    columns = [name for name in frame.columns if name not in ("key", "machine")]
    good = frame[frame["error"].isna()]
    assert_frame_equal(good[columns].reset_index(drop=True), judged[columns].head(3), check_dtype=False)
    assert "How many gain how much" in page.read_text()
    assert "program0" not in page.read_text() + out + frame.to_string()


@pytest.mark.thorough
def test_cut_short_it_goes_on(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is judged is not judged again."""
    table = tmp_path / "fleet.parquet"
    places = [str(folder / "machine0002.csv"), str(folder / "machine0004.csv")]
    results = farm.Spreading.results

    def first(self: farm.Spreading[object, object], items: Sequence[object]) -> object:
        for one in results(self, items):
            yield one
            raise KeyboardInterrupt

    monkeypatch.setattr(farm.Spreading, "results", first)
    with pytest.raises(KeyboardInterrupt):
        judge_fleet(places, workers=1, parquet=table)
    assert not table.exists()
    monkeypatch.setattr(farm.Spreading, "results", results)
    counts: list[tuple[int, int]] = []
    judge_fleet(places, workers=1, parquet=table, began=lambda *one: counts.append(one))
    assert counts == [(2, 1)]
    assert len(pd.read_parquet(table)) == 2


def test_wrong_places_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for place in ("empty", "gone", "*.gone"):
        status, out, err = run(capfd, "fleet", tmp_path / place)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"headwaiter: {tmp_path / place}: no"), err
    (tmp_path / "a.csv").write_text("")
    status, _, err = run(capfd, "fleet", tmp_path / "a.csv", "--drive", "hdd")
    assert (status, err.count("\n")) == (2, 1)
    with pytest.raises(Problem):
        recordings_of([str(tmp_path / "none")])
    (tmp_path / "empty" / ".hidden").write_text("")
    (tmp_path / "empty" / "b").write_text("")
    assert [one.name for one in recordings_of([str(tmp_path / "empty"), str(tmp_path / "*.csv")])] == ["b", "a.csv"]


def rows(shares: Sequence[Mapping[str, float]], classes: Sequence[str]) -> pd.DataFrame:
    best = [max(one, key=lambda name: one[name]) for one in shares]
    return pd.DataFrame(
        {
            "machine": [f"m{i}" for i in range(len(shares))], "error": None, "outcome": "better", "fate": "gains",
            "workload_class": classes, "drive_class": "hard disk", "current": "a",
            "ahead_percent": [100 * (1 / one["a"] - 1) for one in shares], "setting": best,
            "shares": [json.dumps(one) for one in shares],
        }
    )  # fmt: skip


def test_one_setting_for_all_costs_what_each_lacks_of_its_best() -> None:
    """By hand."""
    shares = [{"a": 0.5, "b": 1.0, "c": 0.9}, {"a": 0.5, "b": 1.0, "c": 0.9}, {"a": 0.8, "b": 0.4, "c": 1.0}]
    found = document_of(rows(shares, ["x", "x", "y"]), "progress")
    assert {one.setting: round(one.cost_percent, 6) for one in found.one_for_all} == {
        "c": round(100 * 0.2 / 3, 6), "b": 20.0, "a": 40.0, AS_IT_IS: 40.0,
    }  # fmt: skip
    assert [(one.workload_class, one.machines, one.setting, one.as_advised) for one in found.classes] == [
        ("x", 2, "b", 2),
        ("y", 1, "c", 1),
    ]
    assert found.per_class_cost_percent == 0
    assert [one.machines for one in found.gains] == [0, 0, 0, 1, 0, 2, 0, 0]
    assert found.gain_percent["p50"] == pytest.approx(100)
    assert "One setting for all that costs least is c: programs get 6.7% less done" in fleet_verdict(found)
    assert "costs 0.0%; leaving all as it is, 40.0%" in render(found)


def character(reads: float, sequential: float, depth: float | None) -> Character:
    spread = Quantiles(median=1, p95=1, max=1)
    at_once = None if depth is None else Depth(mean=depth, p95=depth, max=9)
    return Character(
        requests=1, bytes=1, read_percent=reads, write_percent=100 - reads, sync_percent=100, size_kib=spread,
        sequential_percent=sequential, depth=at_once,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reads", "sequential", "depth", "said"),
    [
        (100, 99, 1.0, "sequential reads, one at a time"),
        (5, 0, 3.0, "random writes, several at once"),
        (50, 40, 20.0, "mixed reads and writes, many at once"),
        (90, 60, None, "sequential reads"),
    ],
)
def test_classes_of_workloads(reads: float, sequential: float, depth: float | None, said: str) -> None:
    assert workload_class(character(reads, sequential, depth)) == said


@pytest.mark.parametrize(
    ("drive", "said"),
    [("wd-re-4tb", "hard disk"), ("sata-ssd", "SATA SSD"), ("nvme-ssd", "NVMe SSD"), ("constant:1", "hard disk")],
)
def test_classes_of_drives(drive: str, said: str) -> None:
    assert drive_class(open_drive(drive)) == said
