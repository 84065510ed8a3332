# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files as people have them: lines that a tool adds, cells that are empty, tables of any kind, and what is no trace at all."""

from __future__ import annotations

import gzip
import itertools
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_traces_text import read, rows

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.engine.constants import SYNC, Op
from headwaiter.traces import Trace, load
from headwaiter.traces.events import FUA, PREFLUSH, parse_rwbs
from headwaiter.traces.meaning import PRESETS

ISSUE = "          dd-801   [001] .....   100.000001: block_rq_issue: 8,0 R 4096 () 2048 + 8 [dd]\n"
DONE = "          <idle>-0 [001] d.h..   100.000501: block_rq_complete: 8,0 R () 2048 + 8 [0]\n"


# --- lines that a tool adds ---


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("CPU:1 [LOST EVENTS]", "events were lost while recording (number unknown)"),
        ("CPU:1 [1234 EVENTS DROPPED]", "1234 events were lost while recording"),
        ("CPU:1 [EVENTS DROPPED]", "events were lost while recording (number unknown)"),
        ("CPU:0 [LOST 4 EVENTS]\nCPU:1 [5 EVENTS DROPPED]", "9 events were lost while recording"),
        ("  dd  801 [001]  100.0: PERF_RECORD_LOST lost 7", "7 events were lost while recording"),
        ("what else a tool may say", "1 line not known here and not used (the first: line 2)"),
        ("one\ntwo", "2 lines not known here and not used (the first: line 2)"),
    ],
)
@pytest.mark.parametrize("head", ["# tracer: nop\n", "cpus=2\n"])
def test_lines_between_events_are_counted(tmp_path: Path, head: str, lines: str, said: str) -> None:
    t = read(tmp_path, f"{head}{lines}\n{ISSUE}{DONE}")
    assert rows(t) == [(0, Op.READ, 2048, 8, 500)] and said in t.notes


def test_more_unknown_lines_than_events_are_no_recording(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=":1: not an event of ftrace"):
        read(tmp_path, f"a\nb\nc\n{ISSUE}{DONE}", format="ftrace")


# --- blkparse ---

SUMMARY = """CPU0 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB
 Read depth:             1        \t Write depth:             0

Throughput (R/W): 8KiB/s / 0KiB/s
Events (8,0): 3 entries
Skips: 0 forward (0 -   0.0%)
"""


def _parsed(at_s: int, sector: int, device: str = "8,0") -> str:
    return "".join(
        f"  {device}    0        {k} {at_s:5d}.{ns:09d}   801  {what} {sector} + 8 [{who}]\n"
        for k, (ns, what, who) in enumerate([(0, "Q   R", "dd"), (2000, "D   R", "dd"), (500_000, "C   R", "0")])
    )


def test_a_recording_behind_a_summary_counts(tmp_path: Path) -> None:
    t = read(tmp_path, _parsed(0, 2048) + SUMMARY + _parsed(9, 4096) + SUMMARY)
    assert t.sector.tolist() == [2048, 4096] and t.time_ns.tolist() == [0, 9_000_000_000]
    assert "2 recordings, one behind the other (the second begins in line 11)" in t.notes


def test_recordings_of_one_time_do_not_mix(tmp_path: Path) -> None:
    t = read(tmp_path, _parsed(0, 2048) + SUMMARY + _parsed(0, 4096) + SUMMARY)
    assert t.sector.tolist() == [2048]
    assert "3 lines behind a summary (from line 11 on) not used: another recording, whose times begin anew" in t.notes
    # Those of two disks are of one time.
    both = _parsed(0, 2048) + SUMMARY + _parsed(0, 4096, "8,16")
    assert read(tmp_path, both, device="8,16").sector.tolist() == [4096]


def test_blkparse_names_its_input_anywhere(tmp_path: Path) -> None:
    for text in (f"Input file x added\n{_parsed(0, 8)}", f"{_parsed(0, 8)}Input file x added\n"):
        t = read(tmp_path, text)
        assert rows(t) == [(0, Op.READ, 8, 8, 500)] and not any("line" in note for note in t.notes)
    assert "1 line not known here and not used (the first: line 4)" in read(tmp_path, f"{_parsed(0, 8)}Bad fs action 0\n").notes


def test_skips_are_losses(tmp_path: Path) -> None:
    """blkparse counts them where it reads as events come, with a separator of thousands where the locale has one."""
    text = _parsed(0, 2048) + SUMMARY.replace("0 forward (0 -", "3 forward (1,234 -")
    assert "1234 events were lost while recording" in read(tmp_path, text).notes
    assert not any("lost" in note for note in read(tmp_path, _parsed(0, 2048) + SUMMARY).notes)


def test_every_spelling_of_an_operation() -> None:
    """F, what is done, F, A, S, M: as blkparse (fill_rwbs) and the kernel (blk_fill_rwbs) put them together."""
    for before, op, fua, ahead, sync, meta in itertools.product("F ", "RWDNF", "F ", "A ", "S ", "M "):
        found = parse_rwbs((before + op + fua + ahead + sync + meta).replace(" ", ""))
        assert found, (before, op)
        own = {"R": Op.READ, "W": Op.WRITE, "D": Op.DISCARD, "F": Op.FLUSH, "N": Op.OTHER}[op]
        if before == "F" and op == "N":
            own = Op.FLUSH
        elif before == "F" or op != "F":
            assert found.flush == PREFLUSH * (before == "F") + FUA * (fua == "F")
        if before == "F" or op != "F" or fua != "F":  # FF is the kernel's own, and no F with FUA
            assert found.op == own
        assert found.meta == (meta == "M") and (found.sync or sync == " ")


# --- biosnoop ---

TOP = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)\n"


def _snoop(*cells: str) -> str:
    return "{:<11} {:<14} {:<7} {:<9} {:<1} {:<10} {:<7} {:>7}\n".format(*cells)


def test_a_cell_may_be_empty(tmp_path: Path) -> None:
    text = (
        TOP
        + _snoop("0.000000", "dd", "801", "sda", "R", "2048", "4096", "0.51")
        + _snoop("0.1", "?", "0", "", "R", "0", "0", "8.20")
    )
    t = read(tmp_path, text + _snoop("0.2", "my prog", "", "sda", "W", "8", "512", "1.00").replace("        sda", " 5      sda"))
    assert [row[1:4] for row in rows(t)] == [(Op.READ, 2048, 8), (Op.WRITE, 8, 1)]
    assert [task.name for task in t.tasks] == ["dd", "my prog"]
    assert "1 line without a disk or a length (flushes, commands) left out" in t.notes


def test_cells_may_touch_and_columns_be_more(tmp_path: Path) -> None:
    top = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  PATTERN QUE(ms) LAT(ms)\n"
    cells = ("0.500000", 12), ("a name of 15 xy", 15), ("80000001", 8), ("nvme0n1p12", 10), ("R", 2), ("21474836470", 11)
    row = "".join(f"{cell:<{width}}" for cell, width in cells) + "123456 R          0.10    0.90\n"
    t = read(tmp_path, top + row)
    assert rows(t) == [(0, Op.READ, 21474836470, 242, 1000)]
    assert (t.tasks[0].id, t.tasks[0].name) == (80000001, "a name of 15 xy")


def test_cells_that_are_too_long_push_the_others(tmp_path: Path) -> None:
    text = TOP + "1234567.000000 a-very-long-name-of-a-program 1234567890 mapper-disk-01 W 123456789012 1048576 12345.67\n"
    t = read(tmp_path, text)
    assert rows(t) == [(0, Op.WRITE, 123456789012, 2048, 12345670)] and t.tasks[0].id == 1234567890


def test_what_bpftrace_says_of_losses(tmp_path: Path) -> None:
    text = (
        TOP
        + "Lost 64 events\n"
        + _snoop("0.000000", "dd", "801", "sda", "R", "2048", "4096", "0.51")
        + "Possibly lost 6 samples\n"
    )
    assert "70 events were lost while recording" in read(tmp_path, text).notes


# --- fio, DiskSim, MQSim ---


def test_jobs_that_share_a_log(tmp_path: Path) -> None:
    head = "fio version 3 iolog\n"
    text = f"{head}0 f add\n10 f read 0 4096\n{head}0 f add\n5 f write 8192 512\n20 f read 0 512\n"
    t = read(tmp_path, text)
    assert [row[:4] for row in rows(t)] == [(5, Op.WRITE, 16, 1), (10, Op.READ, 0, 8), (20, Op.READ, 0, 1)]
    assert len(t.tasks) == 2 and any("the logs of 2 jobs in one file" in note for note in t.notes)
    old = "fio version 2 iolog\n"
    t = read(tmp_path, f"{old}f read 0 512\nf wait 10 0\nf read 512 512\n{old}f wait 4 0\nf read 1024 512\n")
    assert [row[:3] for row in rows(t)] == [(0, Op.READ, 0), (4, Op.READ, 2), (10, Op.READ, 1)]
    with pytest.raises(Problem, match=":3: another version begins here"):
        read(tmp_path, f"{head}10 f read 0 4096\n{old}f read 0 512\n")


def test_whole_numbers_may_be_of_two_formats(tmp_path: Path) -> None:
    text = "0 0 2048 8 1\n15 0 4096 8 0\n"
    guessed = read(tmp_path, text)
    assert guessed.format == "mqsim" and guessed.time_ns.tolist() == [0, 15]
    assert "read as mqsim (times in ns); --format disksim takes them as ms" in guessed.notes
    assert not read(tmp_path, text, format="mqsim").notes
    told = read(tmp_path, text, format="disksim")
    assert told.time_ns.tolist() == [0, 15_000_000] and not told.notes


# --- tables of any kind ---


def _table(tmp_path: Path, columns: str, text: str) -> Trace:
    return read(tmp_path, text, columns=columns)


BASE = "time=ts,offset=off,size=len,op=op"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (f"{BASE},latency=ms:ms", "ts,off,len,op,ms\n1.5,4096,4096,R,8.0\n"),
        ("time=ts,sector=lba,size=n,op=op,latency=us:us", "ts,lba,n,op,us\n1.5,8,4096,R,8000\n"),
        ("time=ts,offset=lba:sectors,size=n:bytes,op=op,latency=us:us", "ts,lba,n,op,us\n1.5,8,4096,R,8000\n"),
        ("time=ts,offset=b:4096,sectors=n,op=op,latency=l", "ts\tb\tn\top\tl\n1.5\t1\t8\tread\t0.008\n"),
        (f"{BASE},latency=l:ms", "ts off len op l\n1.5  4096   4096 R   8\n"),
        (f"{BASE},latency=l:ms", "ts;off;len;op;l\n1,500;4096;4096;R;8,0\n"),
        ("time=1,offset=2,size=3,op=4,latency=5", "1.5,4096,4096,R,0.008\n"),
        ("time=1,offset=2,size=3,op=4,latency=5", "when,where,how much,what,how long\n1.5,4096,4096,R,0.008\n"),
        (f"{BASE}:40=r/42=w,latency=l", "ts,off,len,op,l\n1.5,4096,4096,40,0.008\n"),
        (f"{BASE},complete=c", "ts,off,len,op,c\n2025-01-01 10:00:00.500,4096,4096,R,2025-01-01 10:00:00.508\n"),
        (f"{BASE},complete=c", "ts,off,len,op,c\n2025-01-01T23:59:59.996Z,4096,4096,R,2025-01-02T01:00:00.004+01:00\n"),
        (f"{BASE},complete=c", 'ts,off,len,op,c\n"31.12.2024 23:59:59.996",4096,4096,R,01.01.2025 00:00:00.004\n'),
        (f"{BASE},complete=c", "ts;off;len;op;c\n31.12.2024 23:59:59,996;4096;4096;R;01.01.2025 00:00:00,004\n"),
        (f"{BASE},complete=c", "ts,off,len,op,c\n10:00:00.5,4096,4096,R,10:00:00.508\n"),
        (
            "time=ts:filetime,offset=off,size=len,op=op,complete=c:filetime",
            "ts,off,len,op,c\n133800000000000000,4096,4096,R,133800000000080000\n",
        ),
        (f"{BASE},latency=l:ms", "ts,off,len,op,l\n1735725600.123456789,4096,4096,RA,8\n"),
    ],
)  # fmt: skip
def test_a_request_in_every_table(tmp_path: Path, columns: str, text: str) -> None:
    """A read of 8 sectors at sector 8 that takes 8 ms."""
    t = _table(tmp_path, columns, text)
    assert rows(t) == [(0, Op.READ, 8, 8, 8000)] and t.flags.tolist() == [SYNC]


def test_exact_times_of_dates(tmp_path: Path) -> None:
    t = _table(tmp_path, BASE, "ts,off,len,op\n2024-02-29 23:59:59.999999999,0,512,W\n2024-03-01 00:00:00,512,512,WS\n")
    assert t.time_ns.tolist() == [0, 1] and t.flags.tolist() == [0, SYNC]


def test_numbers_as_operations(tmp_path: Path) -> None:
    text = "ts,off,len,op\n0,0,512,0\n1,512,512,1\n"
    t = _table(tmp_path, BASE, text)
    assert t.op.tolist() == [Op.READ, Op.WRITE]
    assert "op: 0 is taken for a read and 1 for a write (op=op:0=w/1=r says otherwise)" in t.notes
    t = _table(tmp_path, f"{BASE}:0=w/1=r", text)
    assert t.op.tolist() == [Op.WRITE, Op.READ] and not t.notes
    with pytest.raises(Problem, match=r":2: unknown op '0' \(known: 1\)"):
        _table(tmp_path, f"{BASE}:1=r", text)


def test_tasks_by_name_and_flushes(tmp_path: Path) -> None:
    t = _table(tmp_path, f"{BASE},task=who", "ts,off,len,op,who\n0,0,512,W,cat\n1,0,0,FF,cat\n2,512,512,R,dd\n")
    assert [(task.id, task.name) for task in t.tasks] == [(1, "cat"), (2, "dd")]
    assert t.flushes is not None and t.flushes.time_ns.tolist() == [1_000_000_000] and len(t) == 2


@pytest.mark.parametrize(
    ("columns", "text", "said"),
    [
        (BASE, "ts,off,len,op\n01/02/2025 10:00,0,512,R\n", "'01/02/2025 10:00' is not a number"),
        (BASE, "ts,off,len,op\n2025-02-30 10:00:00,0,512,R\n", ":2: ts '2025-02-30 10:00:00' is no time"),
        (BASE, "ts,off,len,op\n2025-02-03 10:00:00,0,512,R\n7,0,512,R\n", ":3: ts '7' is no time"),
        ("time=1,offset=2,size=9", "0,0,512\n", ":1: column '9' is not in the header"),
        (f"time=ts,offset=off,size={'7' * 5000}", "ts,off,len\n0,0,512\n", "is not in the header"),
        ("time=ts,offset=off:\u0663,size=len", "ts,off,len\n0,0,512\n", "is not in the header"),
        ("time=ts:weeks,offset=off,size=len", "ts,off,len\n0,0,512\n", "column 'ts:weeks' is not in the header"),
        ("time=ts,sector=a,offset=b,size=len", "ts,a,b,len\n0,0,0,512\n", "offset occurs twice"),
        (f"{BASE}:0=q", "ts,off,len,op\n0,0,512,R\n", "expected WORD=r"),
        ("spc2", "0,0,512\n", "expected KEY=NAME, or one of spc, alibaba, tencent, cloudphysics"),
        (f"{BASE},complete=c", "ts,off,len,op,c\n2025-02-03,0,512,R,2025-02-02\n", "c is before the first time"),
        (
            "time=ts:filetime,offset=off,size=len",
            "ts,off,len\n1,0,512\n133800000000000000,0,512\n",
            ":3: ts is more than 73 years from the first",
        ),
    ],
)
def test_tables_that_do_not_fit(tmp_path: Path, columns: str, text: str, said: str) -> None:
    with pytest.raises(Problem) as e:
        _table(tmp_path, columns, text)
    assert said in str(e.value)


PUBLISHED = {
    "spc": ("0,20941264,8192,W,0.551706\n0,20939840,8192,r,0.554041\n", [(0, 1, 20941264, 16), (2335, 0, 20939840, 16)]),
    "alibaba": (
        "419,W,8792731648,16384,1577808144360767\n419,R,8792748032,4096,1577808144361000\n",
        [(0, 1, 17173304, 32), (233, 0, 17173336, 8)],
    ),
    "tencent": (
        "1538323200,12910952,128,0,1063\n1538323201,12911080,8,1,1063\n",
        [(0, 0, 12910952, 128), (1_000_000, 1, 12911080, 8)],
    ),
    "cloudphysics": (
        "version,time,op,size,lbn\n1,33898,2a,512,42932745\n1,33899,28,6656,40409911\n",
        [(0, 1, 42932745, 1), (1_000_000, 0, 40409911, 13)],
    ),
}


@pytest.mark.parametrize("name", PRESETS)
def test_published_tables_are_found_by_content(tmp_path: Path, name: str) -> None:
    text, wanted = PUBLISHED[name]
    found = read(tmp_path, text)
    assert found.format == name and [row[:4] for row in rows(found)] == wanted
    assert [row[:4] for row in rows(read(tmp_path, text, columns=name))] == wanted


def test_a_published_table_of_one_line_or_with_another_header(tmp_path: Path) -> None:
    assert read(tmp_path, "ASU,LBA,Size,Opcode,Timestamp\n0,20941264,8192,W,0.551706\n").format == "spc"
    assert read(tmp_path, "0,20941264,8192,W,0.551706\n").format == "spc"


# --- tables in memory, and Parquet ---

FRAME = pd.DataFrame(
    {
        "when": pd.to_datetime(["2025-01-01 10:00:00.5", "2025-01-01 10:00:00.6"]),
        "lba": [2048, 4096],
        "bytes": [4096, 8192],
        "op": ["R", "W"],
        "took": pd.to_timedelta([8, 4], unit="ms"),
    }
)
MEANS = "time=when,sector=lba,size=bytes,op=op,latency=took"
SAYS = [(0, Op.READ, 2048, 8, 8000), (100_000, Op.WRITE, 4096, 16, 4000)]


def test_a_table_of_pandas() -> None:
    trace = headwaiter.read_trace(FRAME, columns=MEANS)
    assert rows(trace) == SAYS
    native = pd.DataFrame({"time_s": [0.0, 0.5], "task": [1, 1], "op": ["R", "R"], "sync": 1, "sector": [0, 8], "sectors": 8})
    done = headwaiter.compare(native, schedulers=["noop", "as"], drive="constant:5", runs=0)
    assert done["as"].requests == 2 and done.document.workload == "DataFrame"
    with pytest.raises(Problem, match="DataFrame:2: lba 'x' is not a whole number"):
        headwaiter.read_trace(FRAME.assign(lba="x"), columns=MEANS)


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    FRAME.to_parquet(path)
    assert rows(load(path, columns=MEANS)) == SAYS
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows(load(packed, columns=MEANS)) == SAYS
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(Problem, match=r"t\.parquet: a damaged Parquet file"):
        load(path, columns=MEANS)


def test_parquet_without_what_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    FRAME.to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Problem, match=r"needs pandas and pyarrow \(pip install headwaiter\[parquet\]\)"):
        load(path, columns=MEANS)


# --- what is no trace ---

FOREIGN = {
    b"\x17\x08\x44tracing6\0": "trace-cmd's own file: `trace-cmd report -i",
    b"PERFILE2h\0\0\0": "perf's own file: `perf script --ns -i",
    b"<!DOCTYPE html>\n<html>\n<head><title>Android System Trace</title><script>systrace": "a page of systrace: `sed",
    b'{\n  "traceEvents": [{"name": "x"}]}': "a trace of Chrome or Perfetto: `traceconv",
    b'{\n  "fio version" : "fio-3.33",\n "jobs" : []}': "fio's results (JSON)",
    b'note: x\n{\n  "fio version" : "fio-3.33"}': "fio's results (JSON)",
    b"fio-3.33\nStarting 1 process\n\na: (groupid=0, jobs=1)\n": "fio's results",
    b'{"sysstat": {\n "hosts": []}}': "iostat's output (JSON)",
    b"Linux 6.1.0-13-amd64 (host) \t11/25/26 \t_x86_64_\t(2 CPU)\n\navg-cpu:  %user\n": "iostat's output",
    b"Device             tps    kB_read/s\nsda 1 2\n": "iostat's output",
    b"==================== All Devices ====================\n\n            ALL           MIN\nQ2Q  0.1\n": "btt's output",
    b"     0.000 ( 0.012 ms): dd/801 read(fd: 0, buf: 0x7f, count: 512)   = 512\n": "perf trace's output",
    b'801  read(0, "x", 512) = 512\n': "strace's output",
    b"BeginHeader\n  DiskRead,  TimeStamp,     Process Name ( PID)\n": "xperf's dump",
    b"     usecs               : count     distribution\n         0 -> 1          : 4    |****    |\n": "a histogram",
    b"PK\x03\x04xx": "a zip archive: `unzip",
    b"BZh91AY": "compressed with bzip2",
}


@pytest.mark.parametrize("content", FOREIGN, ids=list(FOREIGN.values()))
def test_what_is_no_trace_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(Problem) as e:
        load(path)
    assert str(e.value).startswith(f"{path}: {FOREIGN[content]}") and str(e.value).isprintable()


def test_an_unknown_table_is_told_how_to_name_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n1,2,3\n")
    with pytest.raises(Problem, match=r"no known trace format .*`headwaiter import --columns` reads CSV of any kind"):
        load(path)


def test_a_large_table_is_read_in_bounded_time(tmp_path: Path) -> None:
    """As exact as a small one: of a hundred thousand rows the last."""
    n = 100_000
    lines = "".join(f"{k * 0.001:.3f},{8 * k},4096,R\n" for k in range(n))
    t = _table(tmp_path, "time=1,sector=2,size=3,op=4", lines)
    assert len(t) == n and t.time_ns[-1] == (n - 1) * 1_000_000 and np.all(np.diff(t.sector.astype(np.int64)) == 8)
