# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`headwaiter describe`: its figures of workloads whose figures are known."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ringpages
from blkrecords import event, process
from command import good, run, told, write
from test_page import PROBE, browse
from test_record import loop, read_all

from headwaiter.description.describe import describe
from headwaiter.description.programs import found_of
from headwaiter.description.schema import DescribeDocument, Quantiles
from headwaiter.engine.constants import Op
from headwaiter.report.description_page import render
from headwaiter.report.description_tables import _times, facts, lowering, threads
from headwaiter.traces import Trace, load

__all__ = ["loop"]
MS = 1_000_000


def trace(folder: Path, rows: list[tuple[float, int, str, int, int, int, float | None]]) -> Trace:
    """From (ms, task, op, sync, sector, sectors, ms of completion)."""
    lines = [
        f"{at / 1e3:.9f},{task},{op},{sync},{sector},{sectors},{'' if done is None else f'{done / 1e3:.9f}'}"
        for at, task, op, sync, sector, sectors, done in rows
    ]
    text = "\n".join(["time_s,task,op,sync,sector,sectors,complete_s", *lines]) + "\n"
    return load(write(folder / "t.csv", text))


def described(folder: Path, *rows: tuple[float, int, str, int, int, int, float | None]) -> DescribeDocument:
    return describe(trace(folder, list(rows)), "t")


def test_mix_sizes_and_places(tmp_path: Path) -> None:
    found = described(
        tmp_path,
        (0, 1, "R", 1, 1000, 8, 1),
        (2, 1, "R", 1, 1008, 8, 3),  # sequential
        (4, 1, "R", 1, 1008 + 8 + 2048, 16, 5),  # 1 MiB further
        (6, 1, "W", 0, 3080, 64, 7),  # the first write, where the last read ended
    )
    whole = found.whole
    assert (whole.requests, whole.bytes) == (4, 96 * 512)
    assert (whole.read_percent, whole.write_percent, whole.sync_percent) == (75, 25, 75)
    assert whole.size_kib == Quantiles(median=4, p95=32, max=32)
    assert whole.sequential_percent == 25
    assert whole.distance_mib == Quantiles(median=1, p95=1, max=1)
    assert whole.latency_ms == Quantiles(median=1, p95=1, max=1)
    assert (found.threads, found.tasks) == (1, 1) and found.seconds == pytest.approx(0.007)


def test_a_short_way_is_not_sequential(tmp_path: Path) -> None:
    found = described(tmp_path, (0, 1, "R", 1, 1000, 8, 1), (2, 1, "R", 1, 1016, 8, 3), (4, 1, "R", 1, 1016, 8, 5)).whole
    assert found.sequential_percent == 0
    assert found.distance_mib and found.distance_mib.max == 8 / 2048


def test_think_times_are_those_behind_synchronous_requests(tmp_path: Path) -> None:
    found = described(
        tmp_path,
        (0, 1, "R", 1, 0, 8, 10),
        (13, 1, "R", 1, 8, 8, 20),  # thinks 3 ms
        (21, 1, "W", 0, 800, 8, 22),  # thinks 1 ms
        (30, 1, "R", 1, 16, 8, 31),  # behind a write that it did not wait for
    )
    think = found.whole.think_ms
    assert think and (think.median, think.p95, think.max) == pytest.approx((1, 3, 3))


def test_depth_is_of_the_time_in_which_there_is_any(tmp_path: Path) -> None:
    """One alone for 3 ms, then idle, then two for 1 ms."""
    found = described(tmp_path, (0, 1, "R", 1, 0, 8, 3), (5, 1, "R", 1, 8, 8, 6), (5, 2, "R", 1, 80, 8, 6))
    assert found.whole.depth and (found.whole.depth.mean, found.whole.depth.p95, found.whole.depth.max) == (1.25, 2, 2)


def test_each_thread_of_control_has_its_own_figures(tmp_path: Path) -> None:
    found = described(
        tmp_path,
        (0, 1, "R", 1, 0, 8, 1),
        (0, 2, "W", 0, 80, 8, 9),
        (2, 1, "R", 1, 8, 8, 3),
    )
    first, second = found.rows
    assert (first.task, first.requests, first.read_percent, first.sequential_percent) == (1, 2, 100, 50)
    assert (second.task, second.requests, second.write_percent, second.think_ms) == (2, 1, 100, None)
    assert second.latency_ms and second.latency_ms.median == pytest.approx(9)


def test_locality(tmp_path: Path) -> None:
    """Nine requests to one MiB and one across the end of another."""
    rows = [(k, 1, "R", 1, 8 * (k % 3), 8, k + 0.5) for k in range(9)]
    found = described(tmp_path, *rows, (20, 1, "R", 1, 4092, 8, 21)).locality
    assert (found.touched_mib, found.hot_mib) == (3, 1)
    assert found.again_percent == pytest.approx(60)
    assert found.span_gib == 4100 * 512 / 2**30


def test_phases(tmp_path: Path) -> None:
    """Reads end to end for ten seconds, then writes here and there, ten times as many a second."""
    rows: list[tuple[float, int, str, int, int, int, float | None]] = []
    rows += [(100.0 * k, 1, "R", 1, 8 * k, 8, 100.0 * k + 5) for k in range(100)]
    rows += [(10_000 + 10.0 * k, 2, "W", 1, 80 * ((k * 37) % 1000), 8, 10_005 + 10.0 * k) for k in range(1000)]
    first, second = described(tmp_path, *rows).phases
    assert (first.read_percent, second.read_percent) == (100, 0)
    assert first.to_s == second.from_s == pytest.approx(10, rel=0.05)
    assert first.requests_per_s == pytest.approx(10, rel=0.05) and second.requests_per_s == pytest.approx(100, rel=0.05)
    assert first.sequential_percent > 95 and second.sequential_percent == 0 and second.mbps == pytest.approx(0.41, rel=0.05)


def test_a_steady_load_is_one_phase(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    times = np.sort(generator.uniform(0, 60_000, 3000))
    rows = [(t, 1, "R", 1, int(s) * 8, 8, t + 1) for t, s in zip(times, generator.integers(0, 1000, 3000), strict=True)]
    assert len(described(tmp_path, *rows).phases) == 1


def alternating(gap_ms: float, n: int = 400) -> list[tuple[float, int, str, int, int, int, float | None]]:
    """Two readers, each end to end, served in turn 5 ms each, each asking again gap_ms after its last."""
    rows: list[tuple[float, int, str, int, int, int, float | None]] = []
    done = {1: 0.0, 2: 0.0}
    now = 0.0
    for k in range(n):
        task = 1 + k % 2
        asked = done[task] + (gap_ms if done[task] else 0)
        now = max(now, asked) + 5
        done[task] = now
        rows.append((asked, task, "R", 1, 50_000_000 * task + 8 * (k // 2), 8, now))
    return rows


def test_deceptive_idleness(tmp_path: Path) -> None:
    found = described(tmp_path, *alternating(1.0)).deceptive
    assert found and found.near_percent > 99 and found.exposed_percent > 99 and found.lost_percent > 99
    # Each asks after 8 ms: too late to wait for.
    late = described(tmp_path, *alternating(8.0)).deceptive
    assert late and late.near_percent == 0
    alone = described(tmp_path, *[row for row in alternating(1.0) if row[1] == 1]).deceptive
    assert alone and alone.near_percent > 99 and alone.exposed_percent == 0 and alone.lost_percent == 0


def test_a_disk_that_waited_lost_nothing(tmp_path: Path) -> None:
    """The other's request is there all the time, and is served in the end."""
    mine = [(6.0 * k, 1, "R", 1, 8 * k, 8, 6.0 * k + 5) for k in range(50)]
    found = described(tmp_path, (0.5, 2, "R", 1, 100_000, 8, 400), *mine).deceptive
    assert found and found.exposed_percent == 100 and found.lost_percent == 0


def test_what_waiting_is_worth(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path, alternating(1.0))
    found = told(capfd, "describe", tmp_path / "t.csv", "-d", "barracuda-80g")["deceptive"]
    assert found["drive"] == "barracuda-80g"
    assert found["waited_never_s"] > 1.5 * found["waited_s"]
    assert found["cost_percent"] == pytest.approx(100 * (found["waited_never_s"] / found["waited_s"] - 1))


def test_the_device(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Two bios that are merged, and one that waits in the scheduler for as long as they are served."""
    ms = MS
    records = [
        event(0, "Q", "R", 800, 8, pid=5),
        event(0, "Q", "R", 808, 8, pid=5),
        event(1 * ms, "D", "R", 800, 16, pid=5),
        event(2 * ms, "Q", "R", 4000, 8, pid=6),
        event(9 * ms, "C", "R", 800, 16, pid=0),
        event(9 * ms, "D", "R", 4000, 8, pid=6),
        event(11 * ms, "C", "R", 4000, 8, pid=0),
    ]
    path = write(tmp_path / "t.blktrace.0", b"".join(records))
    device = told(capfd, "describe", path)["device"]
    assert device["requests"] == 2 and device["busy_percent"] == 100
    assert device["size_kib"] == {"median": 4, "p95": 8, "max": 8}
    assert device["service_ms"] == {"median": 2, "p95": 8, "max": 8}
    assert device["queued_ms"] == {"median": 1, "p95": 7, "max": 7}
    assert device["depth"] == {"mean": 1, "p95": 1, "max": 1}


def test_what_is_not_known_is_not_told(tmp_path: Path) -> None:
    found = described(tmp_path, (0, 1, "R", 1, 0, 8, None), (5, 1, "R", 1, 8, 8, None))
    assert (found.device, found.deceptive) == (None, None)
    assert (found.whole.latency_ms, found.whole.depth, found.whole.think_ms) == (None, None, None)


def test_for_people(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path, alternating(1.0))
    out = good(capfd, "describe", tmp_path / "t.csv", "-d", "barracuda-80g")
    assert "100.0% read, 0.0% write; 100.0% synchronous" in out
    assert "deceptive idleness" in out and "on barracuda-80g" in out
    assert max(map(len, out.splitlines())) <= 110
    written = tmp_path / "out.txt"
    good(capfd, "describe", tmp_path / "t.csv", "-d", "barracuda-80g", "-o", written)
    assert written.read_text() == out


def test_a_drive_that_is_too_small(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [(k, 1, "R", 1, 2**50 + 8 * k, 8, k + 0.5) for k in range(40)]
    trace(tmp_path, rows)  # type: ignore[arg-type]
    document = told(capfd, "describe", tmp_path / "t.csv")
    assert "drive" not in document["deceptive"] and any("no simulation" in note for note in document["notes"])
    status, _, err = run(capfd, "describe", tmp_path / "t.csv", "-d", "barracuda-80g")
    assert status == 2 and "lie past the end of barracuda-80g" in err


def test_neither_a_file_nor_a_disk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capfd, "describe", "no-such-disk")
    assert (status, out) == (2, "") and err == "headwaiter: no-such-disk: no such disk (/sys/block has the names)\n"
    status, out, err = run(capfd, "describe", tmp_path / "absent.hwr")
    assert (status, out) == (2, "") and "absent.hwr: No such file or directory" in err


# --- the page ---


def embedded(html: str, mark: str) -> dict[str, Any]:
    """The JSON of a script of the page."""
    found = re.search(rf'<script type="application/json" id="{mark}">(.*?)</script>', html, re.S)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


def test_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path, alternating(1.0))
    words = ("describe", tmp_path / "t.csv", "-d", "barracuda-80g")
    out = good(capfd, *words, "--report", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    document = told(capfd, *words)
    assert embedded(html, "results") == {**document, "rows": []}
    for title in ("Requests over time", "Where they go", "Sizes", "Times", "Threads of control"):
        assert f"<h2>{title}</h2>" in html
    assert "<h2>Phases</h2>" not in html  # there is one
    lost = f"{document['deceptive']['lost_percent']:.1f}% of those come too late"
    assert lost in html and lost in " ".join(out.split())


def test_names_are_no_markup_on_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = "time_s,task,op,sync,sector,sectors,complete_s,name\n0,1,R,1,0,8,0.001,<b>x\n1,1,R,1,0,8,1.001,<b>x\n"
    good(capfd, "describe", write(tmp_path / "t.csv", text), "--report", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "&lt;b&gt;x" in html and "<td><b>x" not in html


@pytest.mark.thorough
@pytest.mark.needs("chromium")
def test_a_browser_draws_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    records = [
        event(k * 3 * MS + dt, what, "R", 800 + 8 * k, 8, pid=5)
        for k in range(40)
        for dt, what in ((0, "Q"), (MS, "D"), (2 * MS, "C"))
    ]
    good(capfd, "describe", write(tmp_path / "t.blktrace.0", b"".join(records)), "--report", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    page = write(tmp_path / "probed.html", html.replace("</body>", PROBE + "</body>"))
    shown = re.search(r'<pre id="probe">(.*?)</pre>', browse(page, tmp_path, 1280, "--dump-dom"), re.S)
    assert shown, "scripts have run"
    seen = json.loads(unescape(shown[1]))
    assert seen["error"] == "" and int(seen["drawn"]) == seen["canvases"] == 4
    found = seen["found"]
    assert len(found["places read"]["s"]) == 40 and sum(found["sizes read"]["count"]) == 40
    assert max(found["times service time"]["ms"]) == 1 and max(found["times latency"]["ms"]) == 2
    rate = found["rate read"]
    assert np.dot(np.diff(rate["s"]), rate["rate"][:-1]) == pytest.approx(40)


@pytest.mark.thorough
def test_a_device_is_recorded_first(loop: str, capfd: pytest.CaptureFixture[str]) -> None:
    """As root, on a loop device, while something reads it end to end."""
    over = threading.Event()

    def reads() -> None:
        while not over.is_set():
            read_all(loop)

    reader = threading.Thread(target=reads)
    reader.start()
    try:
        document = told(capfd, "describe", loop, "-t", "2")
    finally:
        over.set()
        reader.join()
    row = next(row for row in document["rows"] if row["name"] == "dd")
    assert row["read_percent"] == 100 and row["sequential_percent"] > 90 and row["size_kib"]["max"] == 4
    assert document["device"]["service_ms"]["median"] > 0 and document["lost"] == 0


def test_times_have_the_unit_that_suits_them() -> None:
    assert _times(Quantiles(median=0.00664, p95=0.5, max=12_000)) == "6.64 µs (median), 0.5 ms (95%), 12 s (max)"
    assert _times(Quantiles(median=0, p95=0.1, max=9999)) == "0 ms (median), 0.1 ms (95%), 9999 ms (max)"
    assert _times(None) == "not known"


def test_each_fact_has_its_own_figures(tmp_path: Path) -> None:
    """One reader: alone for 8 ms, with a second request for 2 ms; then 20 and 60 ms of thought, and 2 and 6 MiB to go."""
    mib = 2048
    found = described(
        tmp_path,
        (0, 1, "R", 1, 0, 8, 10),
        (8, 1, "R", 1, 8, 8, 10),
        (30, 1, "R", 1, 2 * mib + 16, 8, 31),
        (91, 1, "R", 1, 8 * mib + 24, 8, 94),
    )
    told = dict(facts(found))
    # Of 14 ms with a request under way 2 with two.
    assert told["depth"] == "mean 1.14, 95% of the time at most 2, most 2"
    assert told["think time"] == "20 ms (median), 60 ms (95%), 60 ms (max)"
    assert told["latency"] == "2 ms (median), 10 ms (95%), 10 ms (max)"
    assert told["place"] == "25.0% sequential; the others away 2 MiB (median), 6 MiB (95%), 6 MiB (max)"
    table = threads(found)
    cells = {str(column.header): next(iter(column.cells)) for column in table.columns}
    assert (cells["tasks"], cells["requests"], cells["read %"], cells["sync %"], cells["KiB"]) == ("1", "4", "100", "100", "4")
    assert (cells["seq %"], cells["MiB away"], cells["think ms"], cells["95%"]) == ("25", "2", "20", "60")
    assert (cells["lat ms"], cells["depth"]) == ("2", "1.14")
    # 38 times a ms, and 100 ms once.
    steady = [(2.0 * k, 1, "R", 1, 80 * k, 8, 2.0 * k + 1) for k in range(39)]
    [thinks] = (
        column for column in threads(described(tmp_path, *steady, (177, 1, "R", 1, 0, 8, 178))).columns if column.header == "95%"
    )
    assert list(thinks.cells) == ["1"]


# --- who waits for whom ---


def copied(folder: Path, name: str = "cp", op: str = "W") -> Path:
    """As blktrace has it: find, whose reads take 20 ms, 18 of them in the queue, while nine requests of another are served."""
    records = [process(0, 5, "find"), process(0, 6, name)]
    for k in range(40):
        begin = 20 * k * MS
        mine, theirs = 10**7 + 5000 * ((37 * k) % 40), 72 * k
        records.append(event(begin, "Q", "R", mine, 8, pid=5))
        records += [event(begin, "Q", op, theirs + 8 * i, 8, pid=6) for i in range(9)]
        for i in range(9):
            records.append(event(begin + 2 * i * MS, "D", op, theirs + 8 * i, 8, pid=6))
            records.append(event(begin + 2 * (i + 1) * MS, "C", op, theirs + 8 * i, 8, pid=0))
        records.append(event(begin + 18 * MS, "D", "R", mine, 8, pid=5))
        records.append(event(begin + 20 * MS, "C", "R", mine, 8, pid=0))
    return write(folder / "t.blktrace.0", b"".join(records))


def test_who_waits_for_whom(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = copied(tmp_path)
    document = told(capfd, "describe", path)
    reads, writes = document["programs"]
    assert (reads["program"], reads["op"], reads["requests"], reads["bytes"]) == ("find", "read", 40, 40 * 4096)
    assert reads["lat_ms"]["p50"] == reads["lat_ms"]["max"] == 20
    assert (reads["above_ms"]["mean"], reads["device_ms"]["mean"]) == (18, 2)
    assert (writes["program"], writes["op"], writes["requests"]) == ("cp", "write", 360)
    assert (writes["lat_ms"]["p50"], writes["lat_ms"]["p99"], writes["lat_ms"]["p99_9"]) == (10, 18, 18)
    [sufferer] = document["sufferers"]
    assert sufferer["waited_s"] == pytest.approx(0.8) and sufferer["others_percent"] == pytest.approx(90)
    assert [(one["program"], one["op"], round(one["percent"])) for one in sufferer["waits_for"]] == [
        ("cp", "write", 90),
        ("find", "read", 10),
    ]
    [one] = document["background"]
    assert (one["program"], one["percent"], one["why"], one["pids"]) == ("cp", pytest.approx(100), "asynchronous", [6])
    assert one["command"] == "ionice -c3 -p 6"
    out = good(capfd, "describe", path)
    assert "find waits 0.8 s: 90% for cp's writes, 10% for its own reads\n" in out
    text = " ".join(out.split())
    assert "In the background: cp causes 100% of what programs wait for others, and nobody waits for what it asks for." in text
    assert "`ionice -c3 -p 6` lowers it" in text and "but not under none and kyber" in text
    cells = next(line for line in out.splitlines() if line.startswith("find ")).split()
    assert cells == ["find", "read", "40", "20", "20", "20", "20", "18", "2"]
    good(capfd, "describe", path, "--report", tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text()
    assert "<h2>Who waits for whom</h2>" in html and "90% for cp&#39;s writes" in html


def test_the_scheduler_that_was_in_force(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An archive tells it; blktrace does not."""
    events = []
    for k in range(40):
        events += [
            (
                0,
                ringpages.event(
                    "block_bio_queue", sector=10**7 + 5000 * (37 * k % 40), nr_sector=8, rwbs="R", pid=5, comm="find"
                ),
            ),
            *((0, ringpages.event("block_bio_queue", sector=72 * k + 8 * i, nr_sector=8, rwbs="W", pid=6)) for i in range(9)),
            *((2000, ringpages.event("block_rq_complete", sector=72 * k + 8 * i, nr_sector=8, rwbs="W")) for i in range(9)),
            (2000, ringpages.event("block_rq_complete", sector=10**7 + 5000 * (37 * k % 40), nr_sector=8, rwbs="R")),
        ]
    halves = [
        ringpages.page(1000 + 10**6 * n, *(ringpages.entry(*one) for one in events[20 * n : 20 * n + 20])) for n in range(40)
    ]
    path = write(tmp_path / "t.hwr", ringpages.archive(ringpages.files({0: halves})))
    words = ("-d", "constant:1")
    assert told(capfd, "describe", path, *words)["scheduler"] == "none"
    assert "does nothing under none, but works under bfq" in " ".join(good(capfd, "describe", path, *words).split())
    assert "scheduler" not in told(capfd, "describe", copied(tmp_path))


def test_the_page_of_a_trace_without_tasks(tmp_path: Path) -> None:
    lines = "".join(f"{k},{'rw'[k % 2]},{8192 * k},4096,10000\n" for k in range(20))
    path = write(tmp_path / "t.csv", "t,op,at,size,took\n" + lines)
    made = load(path, columns="time=t:s,op=op,offset=at,size=size,latency=took:us")
    assert not made.tasks_known
    html = render(describe(made, "t"), made)
    assert "<h2>Latency by operation</h2>" in html and '<p class="legend">.</p>' not in html and "Who waits" not in html


def test_write_back_is_not_reached_by_ionice(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = copied(tmp_path, "kworker/u8:2")
    [one] = told(capfd, "describe", path)["background"]
    assert (one["program"], one["command"]) == ("kworker", "")
    assert "ionice does not reach; queue/wbt_lat_usec and vm.dirty_bytes do" in " ".join(good(capfd, "describe", path).split())


def test_a_stream_that_is_waited_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    [one] = told(capfd, "describe", copied(tmp_path, op="R"))["background"]
    assert (one["program"], one["why"]) == ("cp", "stream")


def test_a_program_of_many_processes_is_lowered_by_its_name(tmp_path: Path) -> None:
    made = load(copied(tmp_path, "my cp"))
    assert [one.command for one in found_of(made).background] == ["ionice -c3 -p 6"]
    # Where tasks are no processes, nobody can name them.
    assert [one.command for one in found_of(replace(made, format="native")).background] == ["ionice -c3 'my cp' …"]
    ended = replace(made, tasks=tuple(replace(task, exit_ns=10**9) for task in made.tasks))
    assert [one.command for one in found_of(ended).background] == ["ionice -c3 'my cp' …"]
    lowered = replace(made, ioprio=np.where(made.op == Op.WRITE, 3 << 13, 0).astype(np.uint16))
    [one] = found_of(lowered).background
    assert one.idle and not one.command and "has the idle I/O priority already" in lowering(one)


def test_fast_devices_have_microseconds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace(tmp_path, [(k, 1 + k % 2, "R", 1, 8 * k, 8, k + 0.25) for k in range(40)])
    out = good(capfd, "describe", tmp_path / "t.csv", "-d", "constant:1")
    assert "Latency in µs, by program and operation" in out
    assert next(line for line in out.splitlines() if line.startswith("task 1 ")).split()[3:] == ["20"] + ["250"] * 4
    assert "Who waits for whom" not in out, "nobody waits for another"
