# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""blktrace binaries and blkparse text: what arrived, when it was complete, and who asked for it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blkrecords import event, message, process, record

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.traces import Trace, TraceTask, load


def read(folder: Path, *records: bytes, **options: object) -> Trace:
    path = folder / "x.blktrace.0"
    path.write_bytes(b"".join(records))
    return load(path, **options)  # type: ignore[arg-type]


def rows(t: Trace) -> list[tuple[int, int, int, int]]:
    """(time, sector, sectors, complete)."""
    return list(zip(*(c.tolist() for c in (t.time_ns, t.sector, t.sectors, t.complete_ns)), strict=True))


def problem(path: Path, **options: object) -> str:
    with pytest.raises(Problem) as caught:
        load(path, **options)  # type: ignore[arg-type]
    return str(caught.value).removeprefix(str(path))


SIMPLE = [
    event(1000, "Q", "R", 800, 8, pid=5),
    event(1001, "G", "R", 800, 8, pid=5),
    event(1002, "I", "R", 800, 8, pid=5),
    event(1003, "D", "R", 800, 8, pid=5),
    event(1900, "C", "R", 800, 8, pid=0),
]


def test_one_request(tmp_path: Path) -> None:
    t = read(tmp_path, *SIMPLE)
    assert (t.format, t.tasks, t.notes) == ("blktrace", (TraceTask(5),), ())
    assert rows(t) == [(0, 800, 8, 900)]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("version", [7, 8])
@pytest.mark.parametrize("cgroup", [False, True])
def test_all_layouts_of_a_record(tmp_path: Path, order: str, version: int, cgroup: bool) -> None:
    how: dict[str, Any] = {"order": order, "version": version, "cgroup": cgroup}
    t = read(
        tmp_path,
        process(0, 5, "dd", **how),
        event(10, "A", "WSM", 900, 16, pid=5, aux=4, **how),
        event(10, "Q", "WSM", 900, 16, pid=5, **how),
        event(11, "X", "WSM", 900, 8, pid=5, aux=908, **how),
        event(12, "C", "WSM", 908, 8, **how),
        event(13, "C", "WSM", 900, 8, **how),
    )
    assert rows(t) == [(0, 900, 8, 3), (0, 908, 8, 2)]
    assert t.tasks == (TraceTask(5, "dd"),)
    assert t.flags.tolist() == [SYNC | META] * 2
    assert t.op.tolist() == [Op.WRITE] * 2


def test_merged_bios_come_apart_and_complete_together(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        event(0, "Q", "R", 100, 8, pid=1),
        event(1, "I", "R", 100, 8, pid=1),
        event(10, "Q", "R", 108, 8, pid=2),
        event(11, "M", "R", 108, 8, pid=2),
        event(20, "Q", "R", 92, 8, pid=3),
        event(21, "F", "R", 92, 8, pid=3),
        event(30, "D", "R", 92, 24),
        event(90, "C", "R", 92, 24),
    )
    assert rows(t) == [(0, 100, 8, 90), (10, 108, 8, 90), (20, 92, 8, 90)]
    assert [t.tasks[k].id for k in t.task] == [1, 2, 3]


def test_completion_in_parts_counts_when_the_last_part_is_done(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        event(0, "Q", "R", 100, 16),
        event(1, "Q", "R", 116, 8),
        event(50, "C", "R", 100, 10),
        event(60, "C", "R", 110, 14),
    )
    assert rows(t) == [(0, 100, 16, 60), (1, 116, 8, 60)]


def test_of_equal_requests_the_oldest_is_complete_first(tmp_path: Path) -> None:
    both = [event(0, "Q", "R", 100, 8, pid=1), event(5, "Q", "R", 100, 8, pid=2)]
    t = read(tmp_path, *both, event(10, "C", "R", 100, 8), event(20, "C", "R", 100, 8))
    assert t.complete_ns.tolist() == [10, 20]


def test_a_write_does_not_complete_a_read(tmp_path: Path) -> None:
    t = read(tmp_path, event(0, "Q", "R", 100, 8), event(5, "C", "W", 100, 8), event(9, "C", "R", 100, 8))
    assert t.complete_ns.tolist() == [9]


def test_what_was_under_way_at_either_end_of_the_recording(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        event(0, "C", "R", 500, 8),
        event(1, "Q", "R", 100, 8),
        event(2, "Q", "R", 108, 8),
        event(3, "Q", "R", 300, 8),
        event(9, "C", "R", 92, 24),
    )
    assert rows(t) == [(1, 100, 8, 9), (2, 108, 8, 9), (3, 300, 8, -1)]
    assert t.notes == ("1 of 3 requests without a recorded completion",)


def test_splits_cut_and_a_second_queueing_of_the_rest_is_no_new_bio(tmp_path: Path) -> None:
    modern = [
        event(0, "Q", "R", 0, 100, pid=1),
        event(1, "X", "R", 0, 40, pid=1, aux=40),
        event(2, "X", "R", 40, 40, pid=1, aux=80),
        event(3, "Q", "R", 40, 40, pid=2),
    ]
    assert rows(read(tmp_path, *modern)) == [(0, 0, 40, -1), (0, 40, 40, -1), (0, 80, 20, -1), (3, 40, 40, -1)]
    linux_4_4 = [
        event(0, "Q", "R", 0, 100, pid=1),
        event(1, "X", "R", 0, 100, pid=1, aux=40),
        event(1, "Q", "W", 40, 60, pid=2),
        event(2, "G", "R", 0, 40, pid=1),
        event(3, "Q", "R", 40, 60, pid=1),
        event(4, "X", "R", 40, 60, pid=1, aux=80),
        event(5, "Q", "R", 80, 20, pid=1),
        event(6, "Q", "R", 80, 20, pid=1),
    ]
    assert rows(read(tmp_path, *linux_4_4)) == [
        (0, 0, 40, -1), (0, 40, 40, -1), (0, 80, 20, -1), (1, 40, 60, -1), (6, 80, 20, -1),
    ]  # fmt: skip


def test_remaps_without_a_queueing_are_arrivals(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        event(0, "A", "R", 50, 8, pid=1, aux=7),
        event(1, "A", "R", 2098, 8, pid=1, aux=50),
        event(2, "Q", "R", 2098, 8, pid=1),
        event(3, "A", "R", 3000, 8, pid=1, aux=11),
        event(4, "A", "R", 4000, 8, pid=1, aux=12),
        event(5, "A", "R", 4000, 8, pid=2, aux=12),
        event(6, "Q", "R", 4000, 8, pid=2),
    )
    assert [(a, b) for a, b, _, _ in rows(t)] == [(2, 2098), (3, 3000), (4, 4000), (6, 4000)]


def test_operations_and_flags(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        event(0, "Q", "RA", 0, 8),
        event(1, "Q", "W", 8, 8),
        event(2, "Q", "WS", 16, 8),
        event(3, "Q", "FWS", 24, 8),
        event(4, "Q", "WU", 32, 8),
        event(5, "Q", "RM", 40, 8),
        event(6, "Q", "WD", 48, 2**22),
        event(7, "Q", "F", 0, 0),
        event(8, "Q", "P", 0, 8),
    )
    assert t.op.tolist() == [0, 1, 1, 1, 1, 0, 2]
    assert t.flags.tolist() == [SYNC, 0, SYNC, SYNC, SYNC, SYNC | META, 0]


def test_insertions_then_issues_stand_in_for_queue_events(tmp_path: Path) -> None:
    t = read(tmp_path, *SIMPLE[2:])
    assert rows(t) == [(0, 800, 8, 898)] and "insertions used as arrivals" in t.notes[0]
    t = read(tmp_path, *SIMPLE[3:])
    assert rows(t) == [(0, 800, 8, 897)] and "issues used as arrivals" in t.notes[0]
    (tmp_path / "x.blktrace.0").write_bytes(SIMPLE[4])
    assert problem(tmp_path / "x.blktrace.0") == ": contains no queue, insertion or issue of a request"


def test_names_forks_and_exits(tmp_path: Path) -> None:
    t = read(
        tmp_path,
        process(0, 1, "sh"),
        message(1, "fork 1 2"),
        event(1, "Q", "R", 0, 8, pid=1),
        event(2, "C", "R", 0, 8),
        process(3, 2, "sh"),
        process(3, 2, "cat"),
        event(3, "Q", "R", 8, 8, pid=2),
        event(4, "C", "R", 8, 8),
        message(9, "exit 2"),
        message(9, "cfq1 whatever 2"),
    )
    assert t.tasks == (TraceTask(1, "sh"), TraceTask(2, "cat", exit_ns=8))
    assert t.group.tolist() == [0, 0]


def test_an_exit_beyond_any_clock_is_unknown(tmp_path: Path) -> None:
    t = read(tmp_path, event(1, "Q", "R", 0, 8, pid=1), event(2, "C", "R", 0, 8), message(2**64 - 1, "exit 1"))
    assert t.tasks == (TraceTask(1, ""),)
    assert "1 exit beyond any clock treated as unknown" in t.notes


def test_processes_of_one_name_one_after_another(tmp_path: Path) -> None:
    records = []
    for k in range(4):
        begin = k * 3_000_000
        records += [process(begin, 10 + k, "cat"), event(begin, "Q", "R", k * 64, 8, pid=10 + k)]
        records += [event(begin + 1_000_000, "C", "R", k * 64, 8)]
    assert read(tmp_path, *records).group.tolist() == [0, 0, 0, 0]
    assert read(tmp_path, *records, group_gap_ms=1).group.tolist() == [0, 1, 2, 3]


def test_the_busiest_device_or_the_one_asked_for(tmp_path: Path) -> None:
    records = [event(k, "Q", "R", k, 8, device=(8, 16)) for k in range(3)]
    records += [event(9, "Q", "R", 77, 8), event(10, "D", "R", 77, 8), *(event(11, "C", "R", 77, 8) for _ in range(9))]
    t = read(tmp_path, *records)
    assert len(t) == 3
    assert t.notes[0] == "device 8,16, the busiest, of 2: 8,16 (3), 8,0 (1)"
    for name in ("8,0", "8:0"):
        assert rows(read(tmp_path, *records, device=name)) == [(9, 77, 8, 11)]
    assert ": no device '9,9'" in problem(tmp_path / "x.blktrace.0", device="9,9")


def test_all_cpus_files_of_a_recording(tmp_path: Path) -> None:
    parts = [SIMPLE[0] + SIMPLE[1], b"", SIMPLE[4], SIMPLE[2] + SIMPLE[3]]
    for cpu, part in enumerate(parts):
        (tmp_path / f"sda.blktrace.{cpu}").write_bytes(part)
    (tmp_path / "sdb.blktrace.0").write_bytes(b"not read")
    (tmp_path / "sda.blktrace.2.gz").write_bytes(b"neither")
    for cpu in range(4):
        assert rows(load(tmp_path / f"sda.blktrace.{cpu}")) == [(0, 800, 8, 900)]
    (tmp_path / "sda.blktrace.3").write_bytes(parts[3][:-5])
    with pytest.raises(Problem, match=r"sda\.blktrace\.3: byte 48: the recording is truncated within this record"):
        load(tmp_path / "sda.blktrace.0")


def test_a_directory_with_packed_and_plain_files(tmp_path: Path) -> None:
    for cpu, part in enumerate(SIMPLE):
        (tmp_path / f"sda.blktrace.{cpu}.gz").write_bytes(gzip.compress(part))
    (tmp_path / "sda.blktrace.0").write_bytes(SIMPLE[0])
    (tmp_path / "notes.txt").write_text("x")
    assert rows(load(tmp_path)) == [(0, 800, 8, 900)]


def test_payloads_that_look_like_records(tmp_path: Path) -> None:
    trap = SIMPLE[4]
    notes = [record(0, 2, category=1 << 10, payload=payload) for payload in (b"x" + trap[:7], trap * 3, trap)]
    t = read(tmp_path, notes[0], notes[1], *SIMPLE, notes[2])
    assert rows(t) == [(0, 800, 8, 900)]


@pytest.mark.parametrize(
    ("cut", "at"), [(-1, 4 * 48), (-47, 4 * 48), (-48 - 30, 3 * 48), (3, 0), (47, 0)]
)  # fmt: skip
def test_cut_within_a_record(tmp_path: Path, cut: int, at: int) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"".join(SIMPLE)[:cut])
    assert problem(path, format="blktrace") in (
        f": byte {at}: the recording is truncated within this record", f": byte {at}: not a blktrace record",
    )  # fmt: skip
    if cut != 3:
        assert problem(path).endswith("truncated within this record")


def test_cut_within_a_payload(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(SIMPLE[0] + process(5, 1, "cat")[:-1])
    assert problem(path) == ": byte 48: the recording is truncated within this record"


def test_foreign_bytes_and_versions(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(SIMPLE[0] + b"garbage" * 20 + SIMPLE[1])
    assert problem(path) == ": byte 48: not a blktrace record"
    path.write_bytes(event(0, "Q", "R", 0, 8, version=6 & 7))
    assert problem(path) == ": byte 0: blktrace record of version 6 (known: 7, 8)"
    path.write_bytes(event(0, "Q", "R", 0, 8) + event(2**63, "Q", "R", 0, 8))
    assert problem(path) == ": times differ by more than 73 years"
    path.write_bytes(process(0, 1, "x"))
    assert problem(path) == ": contains no requests"


# blkparse's text

TEXT = """\
  8,0    0        1     0.000000000  1206  A  RM 2098 + 8 <- (8,1) 50
  8,0    0        2     0.000000184  1206  Q  RM 2098 + 8 [find me]
  8,0    0        0     0.000000200     0  m   N fork 1206 1300
  8,0    0        3     0.000000949  1206  G  RM 2098 + 8 [find me]
  8,0    0        4     0.000001100  1206  P   N [find me]
  8,0    0        5     0.000001290  1206  U   N [find me] 1
  8,0    0        6     0.000001676  1206  D  RM 2098 + 8 [find me]
  8,0    1        1     0.000056992     0  C  RM 2098 + 8 [0]
  8,0    1        2     0.000100000  1300  Q  WS 5000 + 64 [jbd2/sda-8]
  8,0    1        3     0.000100500  1300  X  WS 5000 / 5032 [jbd2/sda-8]
  8,0    1        4     0.000200000     0  C  WS 5000 + 64 [0]
  8,0    1        5     0.000300000  1300  Q  FN [jbd2/sda-8]
  8,0    1        6     0.000300000  1300  D   R 36 (12 00 00 00 24 00 ..) [jbd2/sda-8]
  8,0    1        7     0.000400000  1300  Q   D 9000 + 2048 [jbd2/sda-8]
 8,16    1        7     0.000400000     7  Q   R 9000 + 2048 [x]
CPU0 (8,0):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB

Total (8,0):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB
"""


def test_blkparse_text(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(TEXT)
    t = load(path)
    assert t.format == "blkparse"
    assert rows(t) == [
        (184, 2098, 8, 56992), (100000, 5000, 32, 200000), (100000, 5032, 32, 200000), (400000, 9000, 2048, -1),
    ]  # fmt: skip
    assert t.op.tolist() == [Op.READ, Op.WRITE, Op.WRITE, Op.DISCARD]
    assert t.flags.tolist() == [SYNC | META, SYNC, SYNC, 0]
    assert t.tasks == (TraceTask(1206, "find me"), TraceTask(1300, "jbd2/sda-8"))
    assert t.group.tolist() == [0, 0, 0, 0], "forked, and in turn"
    assert t.notes[0] == "device 8,0, the busiest, of 2: 8,0 (4), 8,16 (1)"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("8,0 0 1 0.0 5 ZZ R 1 + 8 [x]\n", ":5: unknown action 'ZZ'"),
        ("8,0 0 1 zero 5 Q R 1 + 8 [x]\n", ":5: time 'zero' is not a number"),
        ("8,0 0 1 0.0 me Q R 1 + 8 [x]\n", ":5: pid 'me' is not a whole number"),
        ("8,0 0 1 0.0 5 Q ? 1 + 8 [x]\n", ":5: unknown operation '?'"),
        ("8,0 0 1 0.0 5 Q R -1 + 8 [x]\n", ":5: sector '-1' is negative"),
        ("8,0 0 1 0.0 5 Q R 1 + -8 [x]\n", ":5: number of sectors '-8' is negative"),
        ("8;0 0 1 0.0 5 Q R 1 + 8 [x]\n", ":5: '8;0' is not a device (major,minor)"),
    ],
)
def test_blkparse_errors(tmp_path: Path, line: str, said: str) -> None:
    lines = TEXT.splitlines(keepends=True)
    lines[4] = line
    path = tmp_path / "x.txt"
    path.write_text("".join(lines))
    assert problem(path).startswith(said)


def test_large_recordings_are_quick_to_pair(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    sectors = rng.integers(0, 2**20, 5000) * 8
    records = [event(k * 10, "Q", "R", int(s), 8) for k, s in enumerate(sectors)]
    records += [event(60_000 + k, "C", "R", int(s), 8) for k, s in enumerate(sectors)]
    t = read(tmp_path, *records)
    assert (t.complete_ns - 60_000 == np.arange(5000)).mean() > 0.98
    assert (t.complete_ns >= 60_000).all()
