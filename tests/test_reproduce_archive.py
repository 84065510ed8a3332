# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter reproduce --archive and --compare: a run for a reviewer, and two machines' runs beside each other."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import good, run, write
from test_bad_input import bad
from test_json import check

WORDS = ("reproduce", "axboe-rand-write", "iyer-readers", "--scale", "0.05")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run."""
    folder = tmp_path_factory.mktemp("archive") / "mine"
    command = [sys.executable, "-m", "headwaiter", *WORDS, "--archive", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == (folder / "reproduction.json").read_text(encoding="utf-8")
    return folder


def changed(archive: Path, path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The findings, with something changed."""
    document = json.loads((archive / "reproduction.json").read_text(encoding="utf-8"))
    change(document)
    return write(path, json.dumps(document))


def test_what_is_in_it(archive: Path) -> None:
    """Every file has its hash, and the tables are those of the findings."""
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=archive, check=True)
    listed = {line.split("  ")[1] for line in (archive / "SHA256SUMS").read_text().splitlines()}
    there = {str(path.relative_to(archive)) for path in archive.rglob("*") if path.is_file()}
    assert there - {"SHA256SUMS"} == listed
    assert {"reproduction.json", "reproduction.txt", "reproduction.html", "machine.json"} <= there
    assert any(name.startswith("figures/axboe-rand-write-sim-") for name in there)
    check(json.loads((archive / "machine.json").read_text(encoding="utf-8")), "MachineDocument")
    for one in json.loads((archive / "reproduction.json").read_text(encoding="utf-8"))["experiments"]:
        for i, table in enumerate(one["tables"], 1):
            with (archive / f"tables/{one['name']}-sim-{i}.csv").open(newline="") as file:
                head, *rows = csv.reader(file)
            assert head == table["columns"]
            assert rows == [["" if cell is None else str(cell) for cell in row] for row in table["rows"]]


def test_two_alike(archive: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder beside its own JSON."""
    out = good(capfd, "reproduce", "--compare", archive, archive / "reproduction.json")
    assert "all" not in out and "Every claim is decided alike." in out and out.count("\n") == 3
    document = json.loads(good(capfd, "reproduce", "--compare", archive, archive, "--json"))
    check(document, "SecondRunDocument")
    assert all(one["differ_percent"] == 0 and one["decided_alike"] for one in document["claims"])
    assert all(one["alike"] == one["figures"] > 0 for one in document["experiments"])


def test_two_that_differ(archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A claim decided differently, one with other figures, one that only one has; and a figure of a table."""

    def change(document: dict[str, Any]) -> None:
        first, second, third = document["claims"]
        second["values"] = [value * 1.25 for value in second["values"]]
        third["holds"] = not third["holds"]
        first["id"] = "X1"
        figures = document["experiments"][0]["tables"][0]
        figures["rows"][0] = [cell if isinstance(cell, str) else cell * 2 for cell in figures["rows"][0]]

    other = changed(archive, tmp_path / "other.json", change)
    ids = [one["id"] for one in json.loads((archive / "reproduction.json").read_text(encoding="utf-8"))["claims"]]
    status, out, err = run(capfd, "reproduce", "--compare", archive, other)
    assert (status, err) == (1, "")
    assert out.index(ids[2]) < out.index(ids[1]), "what is decided differently comes first"
    assert f"Only in the first: {ids[0]} (sim)." in out and "Only in the second: X1 (sim)." in out
    assert f"Decided differently: {ids[2]} (sim)." in out and "20.0%" in out
    status, out, _ = run(capfd, "reproduce", "--compare", archive, other, "--json")
    document = json.loads(out)
    check(document, "SecondRunDocument")
    rows = document["experiments"][0]
    assert status == 1 and rows["figures"] - rows["alike"] > 0 and rows["differ_percent"] == 50
    columns = json.loads((archive / "reproduction.json").read_text(encoding="utf-8"))["experiments"][0]["tables"][0]["columns"]
    ours = [name for name in columns if name not in ("scheduler",) and not name.startswith("paper")]
    assert rows["figures"] - rows["alike"] == len(ours), "what the document prints is no figure of a run"


def test_the_last_digits_do_not_count(archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def change(document: dict[str, Any]) -> None:
        for one in document["claims"]:
            one["values"] = [value * (1 + 1e-12) for value in one["values"]]

    out = good(capfd, "reproduce", "--compare", archive, changed(archive, tmp_path / "other.json", change))
    assert "Every claim is decided alike." in out


def test_what_cannot_be_compared(archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def refused(path: Path, cause: str) -> None:
        assert cause in bad(capfd, "reproduce", "--compare", archive, path)

    refused(changed(archive, tmp_path / "scale", lambda d: d.update(scale=1.0)), "differ in scale (0.05, 1.0)")
    refused(changed(archive, tmp_path / "set", lambda d: d.update(settings=["as.x=1"])), "settings (none, as.x=1)")
    refused(changed(archive, tmp_path / "none", lambda d: d.update(claims=[])), "no claim is in both")
    refused(changed(archive, tmp_path / "claim", lambda d: d["claims"][1].pop("values")), "claims[1].values: missing")
    refused(changed(archive, tmp_path / "table", lambda d: d["experiments"][0].update(tables=[3])), "tables[0].columns")
    refused(write(tmp_path / "empty", ""), "not JSON")
    refused(write(tmp_path / "list", "[]"), "not the JSON of headwaiter reproduce")
    refused(write(tmp_path / "other", '{"scale": 1}'), "has no claims")
    refused(tmp_path / "absent", "No such file")
    refused(tmp_path, "SHA256SUMS: No such file")


def test_a_changed_archive(archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whoever changes a figure, or takes a file away, is found out."""
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", archive, copy], check=True)
    table = next((copy / "tables").iterdir())
    content = table.read_bytes()
    write(table, content.replace(b"1", b"2", 1))
    assert f"{table.name}: not the file whose hash SHA256SUMS has" in bad(capfd, "reproduce", "--compare", archive, copy)
    table.unlink()
    assert f"{table.name}: No such file" in bad(capfd, "reproduce", "--compare", archive, copy)
    write(table, content)
    good(capfd, "reproduce", "--compare", archive, copy)
    sums = copy / "SHA256SUMS"
    write(sums, sums.read_text() + f"{'0' * 64}  ../secret\n")
    assert "not a line of sha256sum" in bad(capfd, "reproduce", "--compare", archive, copy)


def test_where_no_archive_can_be(archive: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is told before anything runs."""
    assert "is there already" in bad(capfd, *WORDS, "--archive", archive)
    assert "is no folder that you may write into" in bad(capfd, *WORDS, "--archive", tmp_path / "absent" / "mine")
    assert "--list and --archive" in bad(capfd, *WORDS[:2], "--list", "--archive", tmp_path / "mine")
    assert "one word too many" in bad(capfd, "reproduce", "axboe", "--compare", archive, archive)
    assert "--compare and --quick are mutually exclusive" in bad(capfd, "reproduce", "--quick", "--compare", archive, archive)
    assert list(tmp_path.iterdir()) == []
