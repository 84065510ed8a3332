# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The experiment `workloads`: what is recorded for the guest, what its player does, and all eight in a guest, tiny."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from types import FunctionType

import pytest
from test_lab import _run

from headwaiter.base.errors import Problem
from headwaiter.experiments import workloads
from headwaiter.generated.model_machine import Process
from headwaiter.lab import guest, script
from headwaiter.traces import load

ALL = [*workloads.PLAYED, *workloads.PROGRAMS]


@pytest.mark.parametrize("name", workloads.PLAYED)
def test_a_list_names_what_it_uses(name: str) -> None:
    """Every file and process that a step names is there, and each process but the first is started once."""
    text = workloads.record(name, workloads.scaled(name, 8)).decode()
    assert text == workloads.record(name, workloads.scaled(name, 8)).decode()
    pages = [int(n) for n in re.findall(r"^[FM] \S+ (\d+)$", text, re.M)]
    processes = len(re.findall(r"^P ", text, re.M))
    for file, page, *count in re.findall(r"^[rx] (\d+) (\d+) (\d+)$", text, re.M):
        assert int(page) + int(count[0]) <= pages[int(file)] and int(count[0]) > 0
    assert all(int(page) < pages[int(file)] for file, page in re.findall(r"^f (\d+) (\d+)$", text, re.M))
    assert sorted(int(n) for n in re.findall(r"^s (\d+)$", text, re.M)) == list(range(1, processes))
    assert set(re.findall(r"^w (\d+)$", text, re.M)) <= set(re.findall(r"^s (\d+)$", text, re.M))


@pytest.mark.parametrize("name", workloads.PLAYED)
def test_a_process_waits_for_those_that_it_has_started(name: str) -> None:
    for steps in workloads.record(name, workloads.scaled(name, 8)).decode().split("P ")[1:]:
        begun: set[str] = set()
        for what, number in re.findall(r"^([sw]) (\d+)$", steps, re.M):
            assert what == "s" or number in begun
            begun.add(number)


def test_what_a_program_waits_for_is_recorded() -> None:
    """A late read of KVA's comes after a sleep, one in eight; a recorder has each way in which a process spends time."""
    text = workloads.record("kva", workloads.scaled("kva", 8)).decode()
    reads, late = len(re.findall(r"^r ", text, re.M)), [int(ns) for ns in re.findall(r"^t (\d+)$", text, re.M) if int(ns) > 6e6]
    assert len(late) == pytest.approx(reads / 8, rel=0.1)
    spends = {name for name, of in vars(Process).items() if isinstance(of, FunctionType) and "now_ns" in of.__code__.co_names}
    assert spends - {"__init__", "await_row", "follow"} <= set(vars(workloads.recorder(workloads.PlayedRecording({}, []))))


def test_files_that_are_made_are_not_there_before() -> None:
    """The database makes its logs: one for each client and one for all."""
    text = workloads.record("db", workloads.scaled("db", 8)).decode()
    kinds = [kind for kind, folder in re.findall(r"^([FM]) (\S+) \d+$", text, re.M)]
    clients = len(re.findall(r"^P client", text, re.M))
    assert kinds.count("M") == clients + 1 and "F" in kinds
    assert {int(n) for n in re.findall(r"^x (\d+) ", text, re.M)} == {i for i, kind in enumerate(kinds) if kind == "M"}


def test_the_player_does_what_the_list_says(tmp_path: Path) -> None:
    player = tmp_path / "player"
    player.write_bytes(script.tool("player"))
    player.chmod(0o755)
    steps = ["P first", "s 1", "w 1", "r 0 1 2", "f 0 2", "P second", "t 1000", "x 1 3 1"]
    files = [f"F {tmp_path}/a/b/old 3", f"M {tmp_path}/a/new 4"]
    (tmp_path / "list").write_text("\n".join([*files, *steps, ""]))
    subprocess.run([player, "make", tmp_path / "list"], check=True)
    assert (tmp_path / "a" / "b" / "old").stat().st_size == 3 * 4096 and not (tmp_path / "a" / "new").exists()
    subprocess.run([player, "play", tmp_path / "list"], check=True)
    assert (tmp_path / "a" / "new").stat().st_size == 4 * 4096
    (tmp_path / "list").write_text("\n".join([*files, *steps, "r 0 3 1", ""]))
    assert subprocess.run([player, "play", tmp_path / "list"], check=False).returncode == 1, "beyond the end of a file"
    (tmp_path / "a" / "h.h").write_text("x")
    (tmp_path / "a" / "s.c").write_text('#include "h.h"\n')
    subprocess.run([player, "compile", tmp_path / "a" / "s.c", tmp_path / "o", "10"], check=True)
    assert (tmp_path / "o").stat().st_size > 0
    (tmp_path / "a" / "s.c").write_text('#include "none.h"\n')
    failed = subprocess.run([player, "compile", tmp_path / "a" / "s.c", tmp_path / "o", "10"], check=False, capture_output=True)
    assert failed.returncode == 1 and b"none.h" in failed.stderr


def test_the_server_does_as_many_operations_as_it_is_told(tmp_path: Path) -> None:
    """Creates alone, deletes alone, appends alone: what there is afterwards. Files have 1 to 16 blocks."""
    server = tmp_path / "server"
    server.write_bytes(script.tool("server"))
    server.chmod(0o755)
    folder = tmp_path / "files"
    folder.mkdir()

    def sizes() -> list[int]:
        return [path.stat().st_size for path in folder.glob("*/*")]

    def serve(files: int, operations: int, *weights: str) -> int:
        given: list[str | Path] = [server, "serve", folder, str(files), "5", "1", "4", str(operations), *weights]
        return subprocess.run(given, check=False, capture_output=True).returncode

    subprocess.run([server, "make", folder, "200", "5"], check=True)
    made = sizes()
    assert len(made) == 200 and {size % 4096 for size in made} == {0} and {size // 4096 for size in made} == set(range(1, 17))
    assert serve(200, 25, "read=80", "write=20") == 0 and sorted(sizes()) == sorted(made)
    assert serve(200, 25, "append=100") == 0 and sum(sizes()) == sum(made) + 100 * 4096
    assert serve(200, 25, "create=100") == 0 and len(sizes()) == 300
    assert serve(300, 25, "delete=100") == 0 and len(sizes()) == 200
    assert serve(0, 1, "delete=100") == 1, "no file is left"
    assert serve(1, 1, "read=50") == serve(1, 1, "read=50", "sleep=50") == 2


def test_the_first_figure_of_a_scale_is_divided() -> None:
    for name in ALL:
        whole, half = workloads.scaled(name, 1), workloads.scaled(name, 2)
        first = next(iter(whole))
        assert half[first] == max(1, whole[first] // 2) and {**half, first: 0} == {**whole, first: 0}
        assert workloads.scaled(name, 10**6)[first] == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"WORKLOADS": "kva ftp"}, "no workload ftp"),
        ({"PART": "0"}, "PART=0: must be"),
        *(({"SEED": seed}, f"SEED={seed}: must be") for seed in ("-1", "x", str(1 << 32))),
    ],
)
def test_what_is_asked_for_is_checked_before_a_guest_boots(given: dict[str, str], message: str) -> None:
    with pytest.raises(Problem, match=message):
        workloads.run(script.read("workloads"), None, given, lambda text: None)  # type: ignore[arg-type]


def test_draws_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEED draws what is played and the trees anew; the files of each guest come back, recordings beside results."""
    seen: list[guest.Guest] = []

    def boot(machine: guest.Guest, say: object) -> guest.GuestOutcome:
        seen.append(machine)
        name = machine.environment["WORKLOADS"]
        return guest.GuestOutcome({"results": f"{name}\n".encode(), f"{name}.0.blktrace.0": name.encode()}, [])

    def machine(read: script.Script, on: object, given: dict[str, str], say: object) -> guest.Guest:
        return guest.Guest(on, "", environment=dict(read.environment(given)))  # type: ignore[arg-type]

    monkeypatch.setattr(workloads, "boot", boot)
    monkeypatch.setattr(workloads, "guest", machine)
    names = "kva andrew kernel-compile"
    for seed in ("0", "0", "7"):
        given = {"WORKLOADS": names, "PART": "16", "SEED": seed, "RECORD": "1"}
        found = workloads.run(script.read("workloads"), None, given, lambda text: None)  # type: ignore[arg-type]
        assert found.files["results"].decode().split() == names.split()
        assert all(found.files[f"{name}.0.blktrace.0"] == name.encode() for name in names.split())
    first, again, other = ([machine.files for machine in seen[i : i + 3]] for i in (0, 3, 6))
    assert first == again and all(one != two for one, two in zip(first, other, strict=True))
    assert other[0]["/lab/list"] == workloads.record("kva", workloads.scaled("kva", 16), 7)


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_all_eight_run_in_a_guest(tmp_path: Path) -> None:
    """Tiny; one of them also under a scheduler that does not wait, and recorded."""
    files: dict[str, bytes] = {}
    given = {"WORKLOADS": "kva", "SCHEDULERS": "mq-deadline hw-as", "PART": "16", "RECORD": "1", "SEED": "3"}
    rows = _run("workloads", "6.12", given, files)
    for k, row in enumerate(rows):
        path = tmp_path / f"kva.{k}.blktrace.0"
        path.write_bytes(files[f"6.12/{path.name}"])
        of_recording = float(load(path).sectors.sum()) * 512 / 1e6
        assert of_recording == pytest.approx(row["elapsed_s"] * row["throughput_MBps"], rel=0.05)
    rows += _run("workloads", "6.12", {"WORKLOADS": " ".join(ALL[1:]), "SCHEDULERS": "hw-as", "PART": "16"})
    assert [row["workload"] for row in rows] == ["kva", *ALL]
    assert [row["scheduler"] for row in rows] == ["mq-deadline", *["hw-as"] * len(ALL)]
    for row in rows:
        assert row["elapsed_s"] > 0 and row["throughput_MBps"] > 0
        assert ("A" in row) == (row["scheduler"] == "hw-as")
    waits = {row["workload"]: row for row in rows if "A" in row}
    assert all(row["A"] == row["A_S"] + row["A_F"] for row in waits.values())
    assert waits["kva"]["A_F"] >= 2 and waits["kva"]["T_F_ms"] / waits["kva"]["A_F"] > 4
