# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Formats of other people's traces: small ones made here, and facts of the real ones in ../shared."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces import Trace, closed_loop, load

LOAD = """\
Copyright somebody

start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0
      0.000000000 ;    481999264 ;   16 ; R ; 0.0 ; 0.0
   1000.017724735 ;    626343408 ;    8 ; W ; 0.0 ; 0.0
      0.268725043 ;    880563232 ;    1 ; RA ; 0.0 ; 0.0
"""
DISKSIM = "13.191135\t30\t0\t5\t1\n17.829285\t20\t576560\t6\t1\n24.314779\t20\t7\t24\t8000000\n"
MQSIM = "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n16187000 1 34567136 64 1\n"
MSR = (
    "128166385295514663,hm,0,Write,9056014336,2048,2833\n"
    "128166385295514660,hm,0,Read,1023,2,10\n"
    "128166385295514878,hm,1,Write,11855351808,512,2617\n"
)
SYSTOR = (
    "Timestamp,Response,IOType,LUN,Offset,Size\n"
    "1456095145.133076001,0.000806000,R,0,899056122368,131072\n"
    "1456095145.126285000,0.008044000,W,0,4256049987072,122880\n"
    "1456095145.126285000,,W,0,0,512\n"
)
IOLOG3 = (
    "fio version 3 iolog\n30 /dev/x add\n40 /dev/x open\n50 /dev/x write 0 4096\n80 /dev/x trim 4096 2147483648\n"
    "90 /dev/x sync 0 0\n95 /dev/y read 512 1\n99 /dev/x close\n"
)
IOLOG2 = (
    "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x read 0 4096\n/dev/x wait 500 0\n/dev/x write 4096 4096\n"
    "/dev/x wait 250 0\n/dev/x read 8192 512\n/dev/x close\n"
)
SRT_HEADER = (
    b"$$TR_IOREC-1.3 (made for a test)\0\nversion = 1.3;\ndisks = {\n 0 -> {\n disktype = hp335h,\n sectorsize = 256,\n"
    b' sections = { 8 -> { "/" } }\n },\n'
    b" 1 -> {\n disktype = other, adaptor = 1 -> { x },\n sectorsize = 1024 }\n };\n\f"
)


def srt_record(
    sec: int, usec: int, size: int, sector: int, flags: int, *, disk: int = 0, version: int = 4, kind: int = 1
) -> bytes:
    words = [version << 16 | kind, sec, usec, 100, 2500, size, sector, 8 << 24 | disk << 8 | 15, 4, 7, flags, 0]
    words += [1] * (version >= 4) + [9] * (kind == 2)
    return struct.pack(f">{len(words) + 1}I", 4 * len(words) + 4, *words)


SRT = SRT_HEADER + srt_record(0, 5, 8192, 33, 0x101) + srt_record(1, 7, 1024, 6, 0x100) + srt_record(2, 0, 1024, 5, 0, disk=1)
BY_NAME: dict[str, bytes] = {
    "load": LOAD.encode(), "disksim": DISKSIM.encode(), "mqsim": MQSIM.encode(), "msr": MSR.encode(),
    "systor": SYSTOR.encode(), "iolog": IOLOG3.encode(), "srt": SRT,
}  # fmt: skip


def read(folder: Path, content: str | bytes, **options: object) -> Trace:
    path = folder / "trace"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return load(path, **options)  # type: ignore[arg-type]


def rows(t: Trace) -> list[tuple[int, int, int, int, int]]:
    """(time, complete, sector, sectors, op)."""
    columns = (t.time_ns, t.complete_ns, t.sector, t.sectors, t.op)
    return list(zip(*(c.tolist() for c in columns), strict=True))


@pytest.mark.parametrize("name", BY_NAME)
def test_formats_are_known_by_content(tmp_path: Path, name: str) -> None:
    t = read(tmp_path, BY_NAME[name])
    assert t.format == name
    assert not t.tasks_known
    assert len(t.tasks) == 1


def test_load(tmp_path: Path) -> None:
    want = [(0, -1, 481999264, 16, 0), (268725043, -1, 880563232, 1, 0), (1000017724735, -1, 626343408, 8, 1)]
    assert rows(read(tmp_path, LOAD)) == want
    prose_and_header = LOAD[: LOAD.index("      0.0")]
    assert rows(read(tmp_path, prose_and_header + LOAD)) == want


def test_disksim(tmp_path: Path) -> None:
    t = read(tmp_path, DISKSIM)
    assert rows(t) == [(17829285, -1, 576560, 6, 0), (24314779, -1, 7, 24, 1)]
    assert t.notes == ("device 20, the busiest, of 2: 20 (2), 30 (1)",)
    assert rows(read(tmp_path, DISKSIM, device="30")) == [(13191135, -1, 0, 5, 0)]


def test_mqsim(tmp_path: Path) -> None:
    assert rows(read(tmp_path, MQSIM)) == [(11565000, -1, 31244784, 64, 1), (16187000, -1, 34567136, 64, 0)]


def test_msr(tmp_path: Path) -> None:
    t = read(tmp_path, MSR)
    assert rows(t) == [(0, 1000, 1, 2, 0), (300, 283600, 17687528, 4, 1)]
    assert t.notes == ("device hm.0, the busiest, of 2: hm.0 (2), hm.1 (1)",)


def test_systor(tmp_path: Path) -> None:
    assert rows(read(tmp_path, SYSTOR)) == [
        (0, 8044000, 8312597631, 240, 1), (0, -1, 0, 1, 1), (6791001, 7597001, 1755968989, 256, 0),
    ]  # fmt: skip


def test_iolog_3(tmp_path: Path) -> None:
    t = read(tmp_path, IOLOG3)
    assert rows(t) == [(50_000, -1, 0, 8, 1), (80_000, -1, 8, 2**22, 2)]
    assert rows(read(tmp_path, IOLOG3, device="/dev/y")) == [(95_000, -1, 1, 1, 0)]


def test_iolog_2_is_a_chain(tmp_path: Path) -> None:
    t = read(tmp_path, IOLOG2)
    assert rows(t) == [(0, 0, 0, 8, 0), (500_000, 500_000, 8, 8, 1), (750_000, 750_000, 16, 1, 0)]
    assert t.tasks_known
    parent, delay = closed_loop(t)
    assert (parent.tolist(), delay.tolist()) == ([-1, 0, 1], [0, 500_000, 250_000])


def test_srt(tmp_path: Path) -> None:
    t = read(tmp_path, SRT)
    assert rows(t) == [(5000, 2505000, 16, 17, 0), (1000007000, 1002507000, 3, 2, 1)]
    assert t.flags.tolist() == [SYNC, 0]
    t = read(tmp_path, SRT, device="1")
    assert rows(t) == [(2 * 10**9, 2 * 10**9 + 2500000, 10, 2, 1)]
    assert t.flags.tolist() == [SYNC]


def test_srt_records_of_several_kinds(tmp_path: Path) -> None:
    kinds = [
        srt_record(k, 0, 512, 2 * k, 1, version=v, kind=kind) for k, (v, kind) in enumerate([(1, 1), (3, 2), (4, 2), (4, 1)])
    ]
    assert [r[2] for r in rows(read(tmp_path, SRT_HEADER + b"".join(kinds)))] == [0, 3]
    t = read(tmp_path, SRT_HEADER.replace(b"sectorsize", b"sector_size") + kinds[0])
    assert t.notes == ("the header does not give the sector size of disk 0: 512 bytes assumed",)


AT = len(SRT_HEADER)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LOAD.replace(" W ", " X "), ":5: unknown op 'X' (known: R, W, RA)"),
        (LOAD.replace("626343408", "-626343408"), ":5: sector '-626343408' is negative"),
        (LOAD.replace("; 0.0\n", "\n", 1), ":4: 5 fields where 6 are expected"),
        (LOAD[: LOAD.index("      0.0")], ": contains no requests"),
        (DISKSIM.replace("576560", "5765z"), ":2: block '5765z' is not a whole number"),
        (DISKSIM.replace("8000000", "80g"), ":3: flags '80g' is not a hexadecimal number"),
        (MQSIM.replace("64 0", "-64 0"), ":2: number of sectors '-64' is negative"),
        (MQSIM.replace("64 0", "64 2"), ":2: unknown op '2' (known: 1, 0)"),
        (MSR.replace("Read", "Erase"), ":2: unknown operation 'Erase'"),
        (MSR.replace(",10\n", "\n"), ":2: 6 fields where 7 are expected"),
        (MSR.replace(",10\n", ",9223372036854775807\n"), ":2: response '9223372036854775807' is out of range"),
        (SYSTOR.replace(",512\n", ",-512\n"), ":4: Size '-512' is negative"),
        (SYSTOR.replace(",R,", ",T,"), ":2: unknown IOType 'T'"),
        (IOLOG3.replace("trim", "erase"), ":5: unknown action 'erase'"),
        (IOLOG3.replace(" 4096 2147483648", ""), ":5: offset and length are missing"),
        (IOLOG3.replace("write 0 4096", "write 0"), ":4: neither `file action` nor"),
        (IOLOG3.replace("write 0 4096", "wait 5 0"), ":4: wait is not allowed in version 3"),
        (IOLOG3.replace("50 ", "-50 "), ":4: time '-50' is negative"),
        (IOLOG3.replace("version 3", "version 4"), ":1: not an iolog of version 2 or 3"),
        (IOLOG3[: IOLOG3.index("30")], ": contains no requests"),
        (SRT[:60], ": the header (from $$TR_IOREC-1.3 to a form feed) is incomplete"),
        (SRT_HEADER, ": contains no requests"),
        (SRT[:-3], f": byte {AT + 112}: the trace is truncated within this record"),
        (SRT[: AT + 6], f": byte {AT}: the trace is truncated within this record"),
        (SRT + b"junkjunkjunk", f": byte {AT + 168}: not a record"),
    ],
)
def test_errors_name_place_and_cause(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(Problem) as caught:
        read(tmp_path, content)
    assert str(caught.value).removeprefix(str(tmp_path / "trace")).startswith(said)


# The real ones. Counts and shares are those of ../shared/data/README.md and of the files' own lines.


@pytest.mark.parametrize(
    ("file", "format", "requests", "reads", "writes"),
    [
        ("linux-webserver-2.load.gz", "load", 269007, 148674 + 344, 119989),
        ("windows-mssql.load.gz", "load", 42976, 2528, 40448),
        ("ajw.1week.srt", "srt", 42252, 10887, 31365),
        ("disksim-ascii.trace", "disksim", 19968, 15943, 4025),
        ("mqsim-wsrch-small.trace", "mqsim", 8340, 8340, 0),
        ("msr-cambridge1-sample.csv", "msr", 1000, 508, 492),
        ("systor17-traces-sample.csv.gz", "systor", 999, 826, 173),
        ("takeoverjp-sample.blktrace.0", "blktrace", 963, 963, 0),
        ("fio-t0038.iolog", "iolog", 20, 0, 10),
    ],
)
def test_recorded_traces(shared: Path, file: str, format: str, requests: int, reads: int, writes: int) -> None:
    t = load(shared / "data/traces" / file)
    counted = (len(t), int((t.op == Op.READ).sum()), int((t.op == Op.WRITE).sum()))
    assert (t.format, *counted) == (format, requests, reads, writes)
    assert (np.diff(t.time_ns) >= 0).all()


def devices(t: Trace) -> list[int]:
    """How many requests each device has, from the note that tells of the choice."""
    return [int(part.split("(")[1].rstrip(")")) for part in t.notes[0].split(": ", 1)[1].split(", ")]


def test_devices_of_the_recorded_traces(shared: Path) -> None:
    found = {name: devices(load(shared / "data/traces" / name)) for name in (
        "ajw.1week.srt", "disksim-ascii.trace", "mqsim-wsrch-small.trace",
    )}  # fmt: skip
    assert {name: (len(counts), sum(counts)) for name, counts in found.items()} == {
        "ajw.1week.srt": (2, 44519),
        "disksim-ascii.trace": (14, 100000),
        "mqsim-wsrch-small.trace": (6, 24783),
    }


def test_recorded_week_fits_its_disk_and_its_week(shared: Path) -> None:
    t = load(shared / "data/traces/ajw.1week.srt")
    end = t.sector + t.sectors
    assert int(end.max()) <= 1449 * 8 * 113 * 256 // 512, "the geometry that its header gives"
    assert 0.9 < t.span_ns / (7 * 86400e9) <= 1
    assert (t.complete_ns > t.time_ns).all()


def test_recorded_database_is_mostly_sequential(shared: Path) -> None:
    t = load(shared / "data/traces/windows-mssql.load.gz")
    assert round(float((t.sector[1:] == (t.sector + t.sectors)[:-1]).mean()), 2) == 0.84


def test_recorded_web_server_lasts_an_hour(shared: Path) -> None:
    t = load(shared / "data/traces/linux-webserver-2.load.gz")
    assert 3600 < t.span_ns / 1e9 < 3602
    assert not t.completions_known


def test_recorded_blktrace_is_one_reader_that_waits(shared: Path) -> None:
    t = load(shared / "data/traces/takeoverjp-sample.blktrace.0")
    assert (t.complete_ns > t.time_ns).all()
    parent, delay = closed_loop(t)
    assert (parent == np.arange(-1, 962)).all()
    assert (delay >= 0).all()
