# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables that a scheduler is given: from files, from arrays, in a run and between two calls of a policy."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, run, told, write

from headwaiter.base.errors import Problem
from headwaiter.base.reading import read_bytes
from headwaiter.engine import policy_tables
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.policy_tables import LEFT_OUT
from headwaiter.engine.schedulers import catalogue, find, settings
from headwaiter.engine.sim import ConstantDrive, Forest, Options, Task, simulate
from headwaiter.study.variants import settings_of

MS = 1_000_000
POSITIONS = find("as-seek").tables["positions"]
FLAT = "0 5000000\n"
RUN = ("run", "readers-2.fio", "-s", "as-seek", "--seeds", "0")
WIDE = "0 0\n1 8000000\n1000000 17000000\n"


def refused(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    status, out, err = run(capfd, *args)
    assert (status, out) == (2, "")
    return err


def test_every_scheduler_has_positions_first() -> None:
    for scheduler in catalogue().values():
        first = next(iter(scheduler.tables.values()))
        assert dataclasses.replace(first, scheduler="as-seek") == POSITIONS
        assert first.common and (first.min_rows, first.max_rows) == (0, 32)
    sectors, ns = POSITIONS.columns
    assert (sectors.minimum, sectors.maximum, sectors.ascending, sectors.unit) == (0, 2**55 - 1, True, "sectors")
    assert (ns.maximum, ns.ascending, ns.left_out, ns.choices) == (2**32 - 1, False, LEFT_OUT[0], ())


def test_a_file_becomes_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "p", "# of a drive\n0 1\n\n10\t2  # far\r\n")
    rows = POSITIONS.read(path)
    assert rows.tolist() == [[0, 1], [10, 2]] and rows.dtype == np.int64
    assert POSITIONS.show(rows) == POSITIONS.show(rows, brief=True) == "0 1\n10 2\n"
    assert settings(find("noop"), [f"positions={path}"])["positions"].tolist() == rows.tolist()  # type: ignore[union-attr]
    assert POSITIONS.parse("x", b"").shape == (0, 2)


def test_a_file_may_have_a_reader_of_its_own(tmp_path: Path) -> None:
    def reader(path: Path) -> Any:
        return np.array([[0, len(path.read_text())]])

    readers = {("positions", ".pos"): reader}
    assert POSITIONS.read(write(tmp_path / "a.pos", "xyz"), readers).tolist() == [[0, 3]]
    assert POSITIONS.read(write(tmp_path / "a.txt", "7 8"), readers).tolist() == [[7, 8]]
    with pytest.raises(Problem, match=r"a\.pos: positions, row 1, ns: must be at most 4294967295"):
        POSITIONS.read(tmp_path / "a.pos", {("positions", ".pos"): lambda _: np.array([[0, 2**32]])})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0 1 2", "line 1: the number of columns must be 2"),
        ("0 1\n5", "line 2: the number of columns must be 2"),
        ("0 x", "line 1, ns: must be a whole number of at most 64 bits"),
        ("0 -1", "line 1, ns: must be at least 0"),
        ("0 4294967296", "line 1, ns: must be at most 4294967295"),
        ("5 1\n5 2", "line 2, sectors: must be more than the row before's 5"),
        ("\n".join(f"{i} 1" for i in range(33)), "line 33: the number of rows must be at most 32"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(capfd: pytest.CaptureFixture[str], tmp_path: Path, text: str, why: str) -> None:
    path = write(tmp_path / "rows", text)
    for command in (("run", "readers.fio", "-s", "as-seek"), ("compare", "readers.fio", "-s", "as-seek,noop")):
        assert refused(capfd, *command, "--set", f"positions={path}") == f"headwaiter: {path}: positions, {why}\n"


def test_a_file_that_is_not_there(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "none"
    assert (
        refused(capfd, "run", "readers.fio", "-s", "as-seek", "--set", f"positions={path}")
        == f"headwaiter: {path}: No such file or directory\n"
    )


def test_a_file_must_have_a_name(capfd: pytest.CaptureFixture[str]) -> None:
    expected = "headwaiter: --set as.positions=: expected the name of a file\n"
    assert refused(capfd, "compare", "readers.fio", "-s", "as", "--set", "as.positions=") == expected


def test_a_file_for_several_schedulers_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It may be a pipe, which has its content once."""
    path, read = write(tmp_path / "rows", WIDE), []

    def reading(path: Path, most: int) -> bytes:
        read.append(path)
        return read_bytes(path, most)

    monkeypatch.setattr(policy_tables, "read_bytes", reading)
    found = settings_of((f"positions={path}",), ["as", "noop", "was"])
    assert read == [path]
    rows = POSITIONS.parse("x", WIDE.encode())
    assert list(found) == ["as", "noop", "was"] and all(np.array_equal(given["positions"], rows) for given in found.values())


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([[0, 1, 2]], "positions: the number of columns must be 2"),
        ([[0, 1], [5]], "positions: rows of different lengths"),
        ([0, 1], "positions: expected rows of whole numbers of at most 64 bits"),
        ([[0, 1.5]], "positions: expected rows of whole numbers of at most 64 bits"),
        ([[0, 2**63]], "positions: expected rows of whole numbers of at most 64 bits"),
        ([["a", "b"]], "positions: expected rows of whole numbers of at most 64 bits"),
        ([[0, -1]], "positions, row 1, ns: must be at least 0"),
        ([[0, 1], [0, 1]], "positions, row 2, sectors: must be more than the row before's 0"),
        (np.zeros((33, 2), np.int64), "positions: the number of rows must be at most 32"),
    ],
)
def test_what_is_wrong_with_an_array_is_one_line(rows: Any, why: str) -> None:
    with pytest.raises(Problem) as found:
        POSITIONS.check("here", rows)
    assert str(found.value) == f"here: {why}"
    with pytest.raises(Problem) as found:
        simulate("as-seek", ConstantDrive(MS), pair(), {"positions": rows})
    assert str(found.value) == f"as-seek: {why}"
    policy = Policy("as-seek")
    with pytest.raises(Problem) as found:
        policy.set_table("positions", rows)
    assert str(found.value) == f"as-seek: {why}"
    assert POSITIONS.check("here", []).shape == (0, 2)


def test_no_such_table(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path / "rows", "0 1")
    message = f"headwaiter: --set config={path}: noop has no tunable or table 'config' (known: positions)\n"
    assert refused(capfd, "run", "readers.fio", "-s", "noop", "--set", f"config={path}") == message
    with pytest.raises(Problem, match="noop: no table 'config'"):
        Policy("noop").set_table("config", np.zeros((1, 2), np.int64))


# --- what they do ---


def pair() -> Forest:
    """A read at 1000, and then two at once, at 1100 and at 500."""
    z = np.zeros(3, np.int64)
    tasks = [Task(k, f"t{k}", k) for k in range(3)]
    return Forest(tasks, np.array([0, 1, 1]), np.full(3, -1, np.int64), z, np.arange(3, dtype=np.uint32),
                  np.zeros(3, np.uint8), np.ones(3, np.uint8), np.array([1000, 1100, 500], np.uint64),
                  np.full(3, 8, np.uint32), np.zeros(3, np.uint16))  # fmt: skip


def test_a_run_takes_positions_from_the_drive_or_from_the_table() -> None:
    """as-seek serves who is positioned first; where all distances cost the same, the lowest sector."""
    rows = {name: POSITIONS.parse(name, text.encode()) for name, text in {"flat": FLAT, "wide": WIDE}.items()}

    def order(*given: Any) -> list[int]:
        done = simulate("as-seek", ConstantDrive(MS), pair(), {"anticipate": 0, **dict(*given)}, Options(record=True))
        return np.argsort(done.rows.complete_ns).tolist()  # type: ignore[no-any-return]

    assert order() == order({"positions": rows["flat"]}) == [0, 2, 1]
    assert order({"positions": rows["wide"]}) == [0, 1, 2]


def test_results_tell_of_tables_only_where_one_was_given(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path / "rows", WIDE)
    out = told(capfd, *RUN, "--set", f"positions={path}")
    assert out["results"][0]["tables"] == {"positions": [[0, 0], [1, 8000000], [1000000, 17000000]]}
    out = told(capfd, *RUN)
    assert "tables" not in out["results"][0]
    assert "Set: positions=(3 rows)" in good(capfd, *RUN, "--set", f"positions={path}")


def test_the_drive_s_own_positions_as_a_file_change_nothing(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path / "rows", good(capfd, "drives", "export", "barracuda-80g", "--positions"))
    plain = told(capfd, *RUN, "--positions")
    out = told(capfd, *RUN, "--set", f"positions={path}")
    del out["results"][0]["tables"]
    assert out == plain


@pytest.mark.parametrize(("rows", "chosen"), [(None, 2), (FLAT, 1), ("", 1), (WIDE, 2)])
def test_a_policy_s_table_changes_between_two_calls(rows: str | None, chosen: int) -> None:
    """The nearest goes first by the table that is in force when as-seek is asked; one that is refused changes nothing."""
    policy = Policy("as-seek", {"anticipate": 0, "positions": POSITIONS.parse("wide", WIDE.encode())})
    policy.start_task(0, 0)
    policy.insert(Request(2000, 8, 0), 0)
    assert policy.dispatch(0) == 0
    policy.complete(0, MS)
    for sector in (900, 2500):
        policy.insert(Request(sector, 8, 0), MS)
    with pytest.raises(Problem):
        policy.set_table("positions", np.zeros((1, 3), np.int64))
    if rows is not None:
        policy.set_table("positions", POSITIONS.parse("new", rows.encode()))
    assert policy.dispatch(MS) == chosen
