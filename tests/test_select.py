# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""select: the scheduler that the study's table has, or one's own, and into the queue of a disk; what a recording tells of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import good, run, told, write
from fakesys import FakeSystem, machine
from recordings import readers, record

from headwaiter.base.errors import Problem
from headwaiter.papers.cells import KIB, OPERATIONS, ByTable, Cell, study_table
from headwaiter.papers.selectors import check_subject, promised
from headwaiter.papers.watching import TableMethod
from headwaiter.papers.worked import Worked, worked
from headwaiter.queue.machine import Machine
from headwaiter.traces import Trace, load

__all__ = ["machine"]
NAMES = {"N": "none", "B": "bfq", "M": "mq-deadline", "K": "kyber"}
# The winners that the figures of the study give, by operation: of records of 8 KiB in files up to 1 MiB and 32 MiB, of 64 KiB up
# to 4 and 512 MiB, and of 512 KiB up to 16 and 512 MiB.
WINNERS = {
    "read": "MNMKMK",
    "reread": "KKKKMM",
    "write": "BNMNNN",
    "rewrite": "BBKMMN",
    "random read": "MKKKMM",
    "random write": "BBBKMK",
}
CELLS = ((8, "1m"), (8, "32m"), (64, "4m"), (64, "512m"), (512, "16m"), (512, "512m"))


@pytest.mark.parametrize("operation", WINNERS)
def test_the_cases_of_the_study(operation: str, capfd: pytest.CaptureFixture[str]) -> None:
    for (record_kib, size), winner in zip(CELLS, WINNERS[operation], strict=True):
        found = told(capfd, "select", "--operation", operation, "--size", size, "--record", f"{record_kib}k")
        assert found["scheduler"] == NAMES[winner], (operation, record_kib, size)
        assert (found["cell_record_bytes"], found["file_bytes"]) == (record_kib * KIB, found["cell_file_bytes"])
        assert found["results"][0] == {"scheduler": NAMES[winner], "of_best": 1.0} and len(found["results"]) == 4
        assert "in_force" not in found and found["changes"] == [] and "CS350" in found["source"]


def test_a_size_is_of_the_range_that_it_lies_in() -> None:
    """Not of the nearest bound: 2 MiB is nearer to 1 MiB than to 32 MiB, and is of the range above 1 MiB."""
    table = study_table()
    for size, bound in ((64, 1024), (1024, 1024), (1025, 32768), (2048, 32768), (32768, 32768)):
        assert table.cell("rewrite", size, 8) == Cell("rewrite", bound, 8)
    # A record length that was not measured is that of the nearest one, by ratio.
    assert [table.cell("read", 1 << 14, kib).record_kib for kib in (16, 22, 23, 128, 180, 182)] == [8, 8, 64, 64, 64, 512]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["write", "33m", "8k"], "the table has files of up to 32768 KiB with records of 8 KiB, and this is one of 33792 KiB"),
        (["write", "1g", "64k"], "the table has files of up to 524288 KiB"),
        (["write", "1m", "4k"], "the table has records of 8 to 512 KiB, and this is one of 4 KiB"),
        (["write", "32m", "1m"], "the table has records of 8 to 512 KiB, and this is one of 1024 KiB"),
        (["write", "64k", "512k"], "a record of 512 KiB is longer than a file of 64 KiB"),
        (["append", "1m", "8k"], "--operation append: expected one of write, rewrite"),
        (["write", "1000", "8k"], "--size 1000: '1000' is no multiple of 1024 bytes"),
        (["write", "1m,2m", "8k"], "--size 1m,2m: expected one size"),
    ],
)
def test_what_the_table_does_not_cover(words: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    operation, size, length = words
    status, out, err = run(capfd, "select", "--operation", operation, "--size", size, "--record", length)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


ASKED = ("--operation", "re-write", "--size", "512k", "--record", "8k")  # the study's best is bfq, by a third


def test_apply_sets_and_reads_back(machine: FakeSystem, capfd: pytest.CaptureFixture[str]) -> None:
    folder = machine.add("sda", wwn="naa.5000")
    before = machine.everything("sda")
    out = good(capfd, "select", *ASKED, "--apply", "sda", "--root", machine.root)
    assert "sda: scheduler mq-deadline -> bfq" in out and "read back: bfq; `headwaiter revert sda` restores" in out
    assert "[bfq]" in (folder / "queue" / "scheduler").read_text()
    (saved,) = Machine(machine.root).state.all()
    assert saved.by == "headwaiter select --apply"
    again = told(capfd, "select", *ASKED, "--apply", "sda", "--root", machine.root)
    assert again["changes"] == [] and again["in_force"] == {"sda": "bfq"}
    good(capfd, "revert", "sda", "--root", machine.root)
    assert machine.everything("sda") == before


def table_file(path: Path, subject: str, *rows: tuple[str, int, int, str, float]) -> Path:
    results = [
        {"operation": operation, "file_bytes": size, "record_bytes": length, "scheduler": name, "throughput_MBps": rate}
        for operation, size, length, name, rate in rows
    ]
    return write(path, json.dumps({"schema": "headwaiter/1", "subject": subject, "results": results}))


def test_what_the_kernel_has_not_is_not_chosen(machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    machine.add("sda", wwn="naa.5000")
    rows = [("write", 1 << 20, 8192, name, rate) for name, rate in (("as", 9.0), ("kyber", 7.0), ("none", 5.0))]
    file = table_file(tmp_path / "t.json", "wwn:naa.5000", *rows)
    words = ("--operation", "write", "--size", "1m", "--record", "8k", "--ranking", file)
    assert told(capfd, "select", *words)["scheduler"] == "as"
    found = told(capfd, "select", *words, "--apply", "sda", "--root", machine.root)
    assert found["scheduler"] == "kyber" and found["in_force"] == {"sda": "kyber"} and found["source"] == "wwn:naa.5000"
    table_file(tmp_path / "t.json", "wwn:naa.5000", rows[0])
    status, out, err = run(capfd, "select", *words, "--apply", "sda", "--root", machine.root)
    assert (status, out) == (2, "") and "sda: the kernel has none of the table's schedulers (as)" in err


def test_a_table_of_another_disk(machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is set by it, unless somebody says that the disk is like the model that was measured."""
    machine.add("sda", wwn="naa.5000")
    file = tmp_path / "t.json"
    words = ("select", "--operation", "write", "--size", "1m", "--record", "8k", "--ranking", file, "--root", machine.root)
    for subject in ("wwn:naa.6000", "barracuda-80g"):
        table_file(file, subject, ("write", 1 << 20, 8192, "kyber", 9.0))
        status, out, err = run(capfd, *words, "--apply", "sda")
        assert (status, out) == (2, "") and f"sda (wwn:naa.5000): the ranking was measured on {subject}" in err
    assert machine.writes == []
    assert "read back: kyber" in good(capfd, *words, "--apply", "sda", "--drive", "barracuda-80g")


@pytest.mark.parametrize("method", ["request-size", "table"])
def test_watch_refuses_a_ranking_of_another_disk(
    method: str, machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.add("sda", wwn="naa.5000")
    file = tmp_path / "r.json"
    kind, *how = ("rank", "--sizes", "4k") if method == "request-size" else ("table", "--files", "64k", "--records", "8k")
    good(capfd, kind, "barracuda-80g", "-s", "none,bfq", *how, "--runs", 1, "-t", 0.2, "--json", "-o", file)
    asked = ("watch", "sda", "--method", method, "--ranking", file, "--root", machine.root)
    words: tuple[object, ...] = (*asked, "--rounds", 1, "--sample", 0.1, "--every", 0.1)
    status, out, err = run(capfd, *words)
    assert (status, out) == (2, "") and "sda (wwn:naa.5000): the ranking was measured on barracuda-80g" in err
    assert run(capfd, *words, "--drive", "barracuda-80g")[0] == 0
    file.write_text(file.read_text().replace("barracuda-80g", "wwn:naa.5000"))
    assert run(capfd, *words)[0] == 0


def test_a_subject(machine: FakeSystem) -> None:
    machine.add("sda", wwn="naa.5000")
    device = Machine(machine.root).find("sda")
    for subject, drive in (("", ""), ("wwn:naa.5000", ""), ("cheetah-15k", "cheetah-15k")):
        check_subject(subject, device, drive)
    with pytest.raises(Problem, match=r"sda .* measured on cheetah-15k"):
        check_subject("cheetah-15k", device, "barracuda-80g")


# --- what a recording tells ---


def done(path: Path, rows: Sequence[tuple[int, str, int, int]]) -> Trace:
    """A recording of (task, operation, first sector, sectors), a millisecond apart."""
    lines = [
        f"{0.001 * i:.6f},{task},{op},1,{sector},{n},{0.001 * i + 0.0005:.6f}" for i, (task, op, sector, n) in enumerate(rows)
    ]
    return load(write(path, "time_s,task,op,sync,sector,sectors,complete_s\n" + "\n".join(lines) + "\n"))


def files(op: str, count: int, kib: int, record_kib: int, task: int = 1) -> list[tuple[int, str, int, int]]:
    """Files that are done as a whole, in order."""
    return [
        (task, op, 1_000_000 * task + 100_000 * n + 2 * at, 2 * record_kib)
        for n in range(count)
        for at in range(0, kib, record_kib)
    ]


@pytest.mark.parametrize(("op", "names"), [("R", ("read", "reread")), ("W", ("write", "rewrite"))])
def test_files_in_order(op: str, names: tuple[str, str], tmp_path: Path) -> None:
    once = files(op, 3, 512, 64)
    assert worked(done(tmp_path / "a.csv", once)) == Worked(names, 512.0, 64.0)
    # Two threads at once, each with files of its own.
    both = [row for pair in zip(files(op, 3, 512, 64), files(op, 3, 512, 64, task=2), strict=True) for row in pair]
    assert worked(done(tmp_path / "b.csv", both)) == Worked(names, 512.0, 64.0)
    # Each twice: as far as a recording tells that, it is told.
    assert worked(done(tmp_path / "c.csv", [*once, *once])) == Worked(names[1:], 512.0, 64.0)


def test_the_file_in_the_middle_of_all_that_is_done(tmp_path: Path) -> None:
    """Many small files beside a large one with more in it: the size is the large one's."""
    rows = [*files("R", 5, 64, 64), *files("R", 1, 4096, 64, task=2)]
    assert worked(done(tmp_path / "a.csv", rows)).file_kib == 4096


def test_random_access_tells_no_size(tmp_path: Path) -> None:
    rows = [(1, "W", 7919 * i % 10_000 * 16, 16) for i in range(200)]
    assert worked(done(tmp_path / "a.csv", rows)) == Worked(("random write",), None, 8.0)
    mixed = [*rows[:80], *((1, "R", 104729 * i % 10_000 * 16, 128) for i in range(120))]
    assert worked(done(tmp_path / "b.csv", mixed)) == Worked(("random read",), None, 64.0)


def test_recorded_records_are_the_programs(tmp_path: Path) -> None:
    """A simulated recording of readers, which have a thread each."""
    found = worked(load(record(tmp_path / "r.csv", readers(3, 200))))
    assert found.operations == ("read", "reread")


RATES = {
    Cell("read", 1024, 64): {"none": 1.0, "bfq": 4.0, "kyber": 2.0},
    Cell("reread", 1024, 64): {"none": 1.0, "bfq": 3.0, "kyber": 2.0},
    Cell("random write", 1024, 8): {"none": 1.0, "bfq": 2.0, "kyber": 2.0},
    Cell("random write", 4096, 8): {"none": 1.0, "bfq": 3.0},
}


def test_watch_takes_the_least_that_any_of_the_cells_promises(tmp_path: Path) -> None:
    method = TableMethod(ByTable(RATES))
    in_order = method.judge(done(tmp_path / "a.csv", files("R", 12, 512, 64)), 1.0, 0, "none", ["bfq", "kyber", "as"])
    assert in_order.advantage == {"bfq": math.log(3), "kyber": math.log(2)} and not in_order.trouble
    assert in_order.load == "read or reread, requests of 64 KiB, files of about 512 KiB"
    rows = [(1, "W", 7919 * i % 10_000 * 16, 16) for i in range(200)]
    random = method.judge(done(tmp_path / "b.csv", rows), 1.0, 0, "none", ["bfq", "kyber"])
    assert random.advantage == {"bfq": math.log(2)}, "kyber was not measured in all that it may be"
    assert random.load == "random write, requests of 8 KiB, files of an unknown size"


def test_watch_says_what_its_table_lacks(tmp_path: Path) -> None:
    method = TableMethod(ByTable(RATES))
    for rows, trouble in (
        (files("R", 1, 4096, 64), "files of up to 1024 KiB with records of 64 KiB, and this is one of 4096 KiB"),
        (files("W", 12, 512, 64), "has no write (it has read, reread, random write)"),
        (files("R", 12, 512, 32), "records of 64 to 64 KiB, and this is one of 32 KiB"),
        (files("R", 1, 64, 64), "only 1 requests"),
    ):
        found = method.judge(done(tmp_path / "a.csv", rows), 1.0, 0, "none", ["bfq"])
        assert trouble in found.trouble and found.advantage == {}


def test_every_cell_of_the_study_can_act() -> None:
    """From a window of what it is for, which is known as far as a recording tells it."""
    table = study_table()
    acted = set()
    for operation in OPERATIONS:
        for record_kib, text in CELLS:
            file_kib = int(text[:-1]) * KIB
            random = operation.startswith("random")
            again = (operation,) if operation.startswith("re") else (operation, f"re{operation}")
            what = Worked((operation,) if random else again, None if random else file_kib, record_kib)
            acted |= {cell for cell in what.cells(table) if promised(table, [cell], "none", ["bfq", "kyber", "mq-deadline"])}
    assert acted == set(table.rates) and len(acted) == 36
