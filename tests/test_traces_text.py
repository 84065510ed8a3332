# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Block events as text (ftrace, perf script), biosnoop's lines, and CSV whose columns the user names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.traces import Trace, load

FTRACE = """# tracer: nop
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
              dd-4711    [001] d..1.   100.000001: block_bio_queue: 8,0 R 1000 + 16 [dd]
              dd-4711    [001] d..1.   100.000002: block_split: 8,0 R 1000 / 1008 [dd]
              dd-4711    [001] d..1.   100.000003: block_rq_issue: 8,0 R 4096 () 1000 + 8 [dd]
   interrupted-99   ( 4711) [000] d.h1. 100.000100: block_rq_complete: 8,0 W () 90000 + 8 [0]
   my cat-x-99      ( 4711) [000] .....   100.000500000: block_bio_queue: 8,0 WSM 5000 + 8 [my cat-x]
CPU:1 [LOST 12 EVENTS]
          <idle>-0       [001] d.h1.   100.002001: block_rq_complete: 8,0 R () 1000 + 8 none,0,0 [0]
          <idle>-0       [001] d.h1.   100.003001: block_rq_complete: 8,0 R () 1008 + 8 [0]
            bash-12      [001] .....   100.004000: sched_process_fork: comm=bash pid=12 child_comm=bash child_pid=4711
            bash-4711    [001] .....   100.005001: sched_process_exit: comm=dd pid=4711 prio=120
            bash-12      [001] .....   100.006000: sched_switch: prev_comm=bash ==> next_comm=dd
            bash-12      [001] .....   100.007000: block_bio_queue: 8,0 FF 18446744073709551615 + 0 [bash]
"""
PERF = """              dd  4711 [001]   100.000001:           block:block_bio_queue: 8,0 R 1000 + 16 [dd]
        ffffffff8137a1b5 submit_bio_noacct+0x295 ([kernel.kallsyms])

              dd  4711/4712 [001]   100.000002:               block:block_split: 8,0 R 1000 / 1008 [dd]
        my cat-x    99 [000]   100.000500:           block:block_bio_queue: 8,0 WSM 5000 + 8 [my cat-x]
         swapper     0 [001]   100.002001:         block:block_rq_complete: 8,0 R () 1000 + 8 [0]
         swapper     0 [001]   100.003001:         block:block_rq_complete: 8,0 R () 1008 + 8 be,0,4 [0]
"""
BIOSNOOP = """Attaching 5 probes...
TIME(s)     COMM           PID     DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
0.010000    two words      1950    sda     W 13092560   4096      1.0    4.0
0.002000    supervise      1951    sda     R 8          1024      0.0    1.5
0.020000    supervise      1951    sda     WS 16         512      0.0    1.5
"""


def read(tmp_path: Path, text: str, **options: str) -> Trace:
    """A text as a trace; options as load() takes them."""
    path = tmp_path / "recording"
    path.write_text(text)
    return load(path, **options)  # type: ignore[arg-type]


def rows(trace: Trace) -> list[tuple[int, int, int, int, int]]:
    """(time in us, op, sector, sectors, us to completion or -1)."""
    took = np.where(trace.complete_ns >= 0, (trace.complete_ns - trace.time_ns) // 1000, -1)
    columns = (trace.time_ns // 1000, trace.op, trace.sector, trace.sectors, took)
    return list(zip(*(c.tolist() for c in columns), strict=True))


WANTED = [(0, 0, 1000, 8, 2000), (0, 0, 1008, 8, 3000), (499, 1, 5000, 8, -1)]


def test_ftrace(tmp_path: Path) -> None:
    t = read(tmp_path, FTRACE)
    assert t.format == "ftrace" and rows(t) == WANTED
    assert [(task.id, task.name) for task in t.tasks] == [(4711, "dd"), (99, "my cat-x")]
    assert t.flags.tolist() == [SYNC, SYNC, SYNC | META]
    assert t.tasks[0].exit_ns == 5_000_000
    assert "12 events were lost while recording" in t.notes


def test_perf_script_says_the_same(tmp_path: Path) -> None:
    t = read(tmp_path, PERF)
    assert t.format == "ftrace" and rows(t) == WANTED
    assert [(task.id, task.name) for task in t.tasks] == [(4711, "dd"), (99, "my cat-x")]


def test_issues_stand_in_for_queue_events(tmp_path: Path) -> None:
    text = """a-1 [000] ..... 5.0: block_rq_issue: 8,0 WS 4096 () 8 + 8 be,0,4 [a]
a-1 [000] ..... 5.5: block_rq_complete: 8,0 WS () 8 + 8 be,0,4 [0]
"""
    t = read(tmp_path, text)
    assert rows(t) == [(0, 1, 8, 8, 500_000)] and t.flags.tolist() == [SYNC]
    assert any("issues used as arrivals" in note for note in t.notes)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("1000 + 16 [dd]", "1000 * 16 [dd]", ":4: block_bio_queue without a request"),
        ("R 1000 + 16", "Q 1000 + 16", ":4: unknown operation 'Q'"),
        ("1000 / 1008", "1000 + 1008", ":5: block_split without a request"),
    ],
)
def test_ftrace_names_the_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(Problem) as e:
        read(tmp_path, FTRACE.replace(old, new), format="ftrace")
    assert str(e.value).endswith(said)


def test_biosnoop(tmp_path: Path) -> None:
    t = read(tmp_path, BIOSNOOP)
    # The read began at 0.5 ms, the first write came at 5 ms.
    assert t.format == "biosnoop"
    assert rows(t) == [(0, 0, 8, 2, 1500), (4500, 1, 13092560, 8, 5000), (18000, 1, 16, 1, 1500)]
    assert [(task.id, task.name) for task in t.tasks] == [(1950, "two words"), (1951, "supervise")] or t.tasks[
        1
    ].name == "two words"
    assert t.flags.tolist() == [SYNC, 0, SYNC]


def test_our_script_prints_what_is_read(tmp_path: Path) -> None:
    """The header that docs/biosnoop.bt prints, and a line as its format has it."""
    script = (Path(__file__).parent.parent / "docs" / "biosnoop.bt").read_text()
    header = script.partition('printf("')[2].partition("\\n")[0]
    line = script.partition('printf("%llu')[2].partition("\\n")[0]
    assert len(("%llu" + line).split()) == len(header.split())
    t = read(tmp_path, f"{header}\n2000000 dd 7 8,0 RA 100 4096 500000 1000000\n")
    assert rows(t) == [(0, 0, 100, 8, 1500)] and t.tasks[0].name == "dd"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" T ", " ", ":2: column T is missing"),
        ("LAT(ms)", "QUE(ms)", ":2: column 'QUE' is there twice"),
        ("R 8          1024", "R 8", ":4: 8 fields where 9 are expected"),
        ("R 8 ", "8 8 ", ":4: unknown operation '8'"),
    ],
)
def test_biosnoop_names_the_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(Problem) as e:
        read(tmp_path, BIOSNOOP.replace(old, new), format="biosnoop")
    assert said in str(e.value)


CSV = """# made by hand
"ts";"off";"len";"rw";"pid";"lat"
10.5;4096;4096;Read;7;2
11;0;512;WRITE;8;
"""


def test_columns_by_name(tmp_path: Path) -> None:
    t = read(tmp_path, CSV, columns="time=ts,offset=off,size=len,op=rw,task=pid,latency=lat,time-unit=ms")
    assert t.format == "columns"
    assert rows(t) == [(0, 0, 8, 8, 2000), (500, 1, 0, 1, -1)]
    assert [task.id for task in t.tasks] == [7, 8]


def test_columns_in_sectors_and_of_one_device(tmp_path: Path) -> None:
    text = "d,t,lba,n\na,5,100,8\nb,6,200,8\na,9,116,16\n"
    t = read(tmp_path, text, columns="time=t,offset=lba,size=n,unit=sectors,device=d,time-unit=us")
    assert rows(t) == [(0, Op.READ, 100, 8, -1), (4, Op.READ, 116, 16, -1)]
    assert any("device a, the busiest" in note for note in t.notes)
    assert any("all requests are taken for reads" in note for note in t.notes)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("time=ts,offset=off", "size is missing"),
        ("time=ts,offset=off,size=len,colour=x", "unknown key 'colour'"),
        ("time=ts,offset=off,size=len,op=kind", ":2: column 'kind' is not in the header"),
        ("time=ts,offset=off,size=len,unit=pages", "unit 'pages' is not one of bytes, sectors, kib"),
        ("time=ts,offset=off,size=len,op=pid", ":3: unknown pid '7'"),
        ("time", "expected KEY=NAME"),
    ],
)
def test_columns_that_do_not_fit(tmp_path: Path, columns: str, said: str) -> None:
    with pytest.raises(Problem) as e:
        read(tmp_path, CSV, columns=columns)
    assert said in str(e.value)


def test_empty_fields_between_tabs(tmp_path: Path) -> None:
    """At both ends of a line, too: a tab there is no blank."""
    text = "\tt\tn\tlba\tdone\n \t0\t4096\t512\t\r\n\t1\t4096\t1024\t1.5\n\n"
    t = read(tmp_path, text, columns="time=t,offset=lba,size=n,complete=done")
    assert t.sector.tolist() == [1, 2] and t.sectors.tolist() == [8, 8]
    assert t.complete_ns.tolist() == [-1, 1_500_000_000]
    with pytest.raises(Problem, match=":2: 6 fields where 5 are expected"):
        read(tmp_path, text.replace("512\t\r", "512\t\t\r"), columns="time=t,offset=lba,size=n")


def test_columns_in_kib(tmp_path: Path) -> None:
    """Whether somebody waits is as the file says, and not by the operation."""
    text = "t,at,n,op,s\n0,1,4,r,0\n1,3,2,w,1\n2,9,1,r,1\n"
    t = read(tmp_path, text, columns="time=t,offset=at,size=n,op=op,sync=s,unit=kib")
    assert t.sector.tolist() == [2, 6, 18] and t.sectors.tolist() == [8, 4, 2]
    assert t.flags.tolist() == [0, SYNC, SYNC]


def test_all_losses_count(tmp_path: Path) -> None:
    assert "15 events were lost while recording" in read(tmp_path, f"{FTRACE}CPU:0 [LOST 3 EVENTS]\n").notes
