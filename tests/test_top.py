# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`headwaiter top`: what it tells of an interval, how it shows that, and how it records, advises and ends."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import good, run, told, write
from fakesys import FakeSystem
from ringpages import entry, event, format_text, page
from test_blame import MS, behind, trace
from test_record import Kernel, kernel

from headwaiter.base.errors import Problem
from headwaiter.base.records import json_text
from headwaiter.queue import devices
from headwaiter.queue.devices import Device
from headwaiter.recorder import tracefs
from headwaiter.report.tables import show
from headwaiter.report.terminal import console
from headwaiter.study.schema import Answer, Lever, Margin
from headwaiter.top.feed import Feed
from headwaiter.top.interval import DiskSetting, Look, counted, look
from headwaiter.top.remedies import Adviser, sentence
from headwaiter.top.schema import TopDocument, TopProgram
from headwaiter.top.screen import duration, screen
from headwaiter.top.sources import recorded
from headwaiter.traces import load
from headwaiter.watch.decide import Window

__all__ = ["kernel"]
S = 10**9


def shown(found: TopDocument, width: int, height: int | None = None) -> list[str]:
    """The lines of the screen."""
    from io import StringIO  # noqa: PLC0415

    out = console(StringIO())
    out.width = width
    show(out, screen(found, width, height))
    return out.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def document(seen: Look, **more: Any) -> TopDocument:
    parts = {name: getattr(seen, name) for name in ("queue", "read", "write", "programs", "background")}
    return TopDocument(device="sda", at="2026-01-02T03:04:05", seconds=2.0, notes=[], **parts | more)


def program(seen: Look, name: str) -> TopProgram:
    assert seen.programs is not None
    return next(one for one in seen.programs if one.program == name)


# --- an interval ---


def test_what_completes_in_an_interval_counts_and_what_is_under_way_waits() -> None:
    before, reads = (0, 0, 5, 0, "r"), [(8, 8, 12, 0, "r"), (13, 18, 40, 0, "r"), (25, 25, 26, 0, "r")]
    made = trace([before, *reads, (9, 12, 18, 1, "w"), (19, None, 50, 1, "w")])
    seen = look(made, 10 * MS, 20 * MS, DiskSetting("bfq", {"slice_idle": "8"}, takes=31))
    # One read and one write complete; a read, which has been served for 2 ms, and a write are under way.
    assert (seen.read.requests_per_s, seen.write.requests_per_s) == (100, 100)
    assert (seen.read.mean_ms, seen.write.mean_ms) == (4, 9)
    assert seen.read.mbps == pytest.approx(4096 / 1e6 * 100)
    queue = seen.queue
    assert (queue.scheduler, queue.takes, queue.under_way, queue.in_device, queue.most) == ("bfq", 31, 2, 1, 1)
    assert queue.busy_percent == pytest.approx(100)
    a, b = program(seen, "a"), program(seen, "b")
    # From 10 to 12 and from 13 to 20 ms; the device serves it for 4 ms of that.
    assert a.waits_percent == pytest.approx(90) and a.under_way == 1 and b.waits_percent == 0
    assert {(one.program, one.op): round(one.percent, 1) for one in a.waits_for} == {("a", "read"): 44.4, ("b", "write"): 55.6}
    # A wait that is not over counts for as long as it has been.
    assert a.lat_ms and a.lat_ms.max == 7 and b.lat_ms and b.lat_ms.max == 9
    assert a.pids == () or list(a.pids) == []


def test_programs_keep_their_names_when_others_have_gone() -> None:
    """b has nothing in the second interval."""
    made = trace([(0, 0, 5, 1, "w"), (11, 11, 15, 2, "r"), (12, 15, 16, 3, "s")])
    seen = look(made, 10 * MS, 20 * MS, DiskSetting())
    assert sorted(one.program for one in seen.programs or ()) == ["c", "d"]
    assert program(seen, "c").read.requests_per_s == 100 and program(seen, "d").write.requests_per_s == 100


def test_nothing_was_asked_for() -> None:
    for made in (None, trace([(0, 0, 5, 1, "w")])):
        seen = look(made, 10 * MS, 20 * MS, DiskSetting("none"))
        assert seen.programs == () and seen.queue.under_way == 0 and seen.read.requests_per_s == 0
        assert any("nothing was asked of it" in line for line in shown(document(seen), 80))


def test_a_flush_is_waited_for_until_it_is_done() -> None:
    seen = look(trace([(0, 1, 30, 0, "f"), (5, 5, 8, 1, "r")]), 4 * MS, 14 * MS, DiskSetting())
    a = program(seen, "a")
    assert a.waits_percent == pytest.approx(100) and a.under_way == 1 and a.lat_ms and a.lat_ms.max == 14


def test_the_background_is_named() -> None:
    [one] = look(behind("w"), 0, 100 * MS, DiskSetting()).background
    assert (one.program, one.why) == ("cp", "asynchronous")


def test_counters() -> None:
    before = (100, 0, 800, 1000, 10, 0, 80, 50, 0, 5000, 6000)
    after = (300, 0, 2400, 1400, 10, 0, 80, 50, 7, 6000, 9000)
    seen = counted(before, after, 2.0, DiskSetting("none"))
    assert (seen.read.requests_per_s, seen.read.mean_ms) == (100, 2) and seen.read.mbps == pytest.approx(1600 * 512 / 2e6)
    assert (seen.write.requests_per_s, seen.write.mean_ms) == (0, None)
    assert (seen.queue.busy_percent, seen.queue.under_way, seen.programs) == (50, 7, None)


# --- the screen ---


@pytest.mark.parametrize("width", [40, 60, 70, 80, 132])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    seen = look(behind("w"), 0, 100 * MS, DiskSetting("mq-deadline", {f"tunable_{k}": "12345" for k in range(12)}, 31))
    lines = shown(document(seen, advice="bfq, under which programs would wait 56% less"), width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert "find" in text and "90% cp's writes" in text and "scheduler mq-deadline: tunable_0 12345" in text
    assert "What would help: bfq, under which" in text and "In the background: cp" in text
    heads = next(line for line in lines if line.startswith("program")).split()
    # What matters most is there at any width, the rest where there is room.
    assert heads[0] == "program" and heads[-3:] == ["waits", "most", "for"]
    assert ("longest" in heads) == (width >= 60) and ("PID" in heads) == (width >= 80)


def test_few_lines_show_few_programs() -> None:
    made = trace([(k, k, k + 1, k % 8, "r") for k in range(16)], {k: f"p{k}" for k in range(8)})
    seen = look(made, 0, 20 * MS, DiskSetting("none"))
    lines = shown(document(seen), 80, 12)
    assert len(lines) <= 12 and any("more)" in line for line in lines)
    assert sum(line.startswith("p") and not line.startswith("program") for line in lines) == 5
    assert not any("more)" in line for line in shown(document(seen), 80))


def test_durations() -> None:
    assert [duration(v) for v in (0.05, 0.9, 12.34, 421, 1500, 90_000)] == ["50µs", "900µs", "12.3ms", "421ms", "1.5s", "90s"]


def test_ionice_under_a_scheduler_that_does_not_hear_it() -> None:
    for scheduler, words in (("none", "does nothing under none, but works under bfq"), ("bfq", "works under bfq, and under mq")):
        seen = look(behind("w"), 0, 100 * MS, DiskSetting(scheduler))
        assert words in " ".join(" ".join(shown(document(seen), 80)).split())


def test_names_are_no_markup() -> None:
    made = trace([(0, 0, 1, 0, "r")], {0: "[b]x[/b]"})
    assert any("[b]x[/b]" in line for line in shown(document(look(made, 0, 2 * MS, DiskSetting())), 80))


# --- what is recorded ---


def pages(*events: tuple[Any, ...]) -> bytes:
    """A page of (ns, Q, D or C, sector, pid, sectors; by default 8)."""
    names = {"Q": "block_bio_queue", "D": "block_rq_issue", "C": "block_rq_complete"}
    begin = events[0][0]
    before, parts = begin, []
    for at, letter, sector, pid, *more in events:
        fields = {"sector": sector, "nr_sector": (more or [8])[0], "rwbs": "R", "pid": pid, "comm": f"p{pid}"}
        parts.append(entry(at - before, event(names[letter], **fields)))
        before = at
    return page(begin, *parts)


class Clock:
    """One that is set."""

    now = 1000 * S

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def disk(tmp_path: Path) -> Device:
    machine = FakeSystem(tmp_path / "root")
    return devices.read(machine.add("sda"), tmp_path)


@pytest.fixture
def feed(disk: Device) -> tuple[Feed, Clock]:
    clock = Clock()
    made = Feed(replace(disk, major=8, minor=0), clock)
    for name in (*tracefs.EVENTS, tracefs.ISSUES, tracefs.INSERTS):
        made.add(f"events/{name}", format_text(name.split("/")[1]).encode())
    return made, clock


def test_events_come_in_parts_and_what_is_under_way_stays(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed
    t = clock.now
    assert made.trace(t) is None
    made.add("cpu0/000000", pages((t, "Q", 8, 5), (t + MS, "D", 8, 5), (t + 2 * MS, "Q", 800, 6)))
    made.add("cpu1/000000", pages((t + 3 * MS, "C", 8, 0)))
    first = made.trace(t + S)
    assert first is not None and first.complete_ns.tolist() == [t + 3 * MS, -1] and first.format == "recording"
    # A minute later the second still waits; it is given to the device, and done.
    for after, letter in ((60, "D"), (80, "C")):
        clock.now = t + after * S
        made.add("cpu0/000001", pages((clock.now, letter, 800, 6)))
        late = made.trace(clock.now)
        assert late is not None and 800 in late.sector
    assert late is not None and late.sector.tolist() == [800], "the first one is forgotten"
    assert (late.issue_ns is not None and late.issue_ns.tolist()) == [t + 60 * S] and late.complete_ns.tolist() == [t + 80 * S]
    assert [task.name for task in late.tasks] == ["p6"]
    made.trace(clock.now + 20 * S)
    assert made.trace(clock.now + 20 * S) is None, "all is forgotten"


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_is_complete_seems_to_wait(feed: tuple[Feed, Clock], seed: int) -> None:
    """Bios at eight places, again and again, each served alone or with its neighbour, after a moment or half a minute."""
    made, clock = feed
    generator = np.random.default_rng(seed)
    waiting: dict[int, int] = {}  # when each place is to be done
    for _ in range(150):
        clock.now += S
        events: list[tuple[int, str, int, int, int]] = []
        for place in [place for place, done in waiting.items() if done <= clock.now]:
            if place in waiting:
                both = place % 2 == 0 and place + 1 in waiting and generator.random() < 0.5
                for one in (place, place + 1)[: 1 + both]:
                    del waiting[one]
                events += [(0, letter, 8 * place, 8 * (1 + both), 0) for letter in "DC"]
        for place in range(8):
            if place not in waiting and generator.random() < 0.4:
                waiting[place] = clock.now + S * int(generator.choice([1, 2, 30]))
                events.append((0, "Q", 8 * place, 8, 5))
        if events:
            made.add("cpu0/0", pages(*((clock.now + k, *one[1:3], one[4], one[3]) for k, one in enumerate(events))))
        found = made.trace(clock.now + 1000)
        assert found is not None and sorted((found.sector[found.complete_ns < 0] // 8).tolist()) == sorted(waiting)


def test_what_is_under_way_in_the_device_is_known(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed
    t = clock.now
    made.add("cpu0/000000", pages((t, "Q", 8, 5), (t + MS, "D", 8, 5)))
    found = made.trace(t + S)
    assert found is not None and found.issue_ns is not None and found.issue_ns.tolist() == [t + MS]
    assert look(found, t, t + S, DiskSetting()).queue.in_device == 1


def test_after_losses_what_seems_to_wait_is_given_up(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed
    made.add("cpu0/000000", pages((clock.now, "Q", 8, 5)))
    assert made.trace(clock.now + 30 * S) is not None
    assert made.trace(clock.now + 30 * S, lost=True) is not None
    assert made.trace(clock.now + 30 * S) is None


def test_of_many_events_the_latest_stay(feed: tuple[Feed, Clock], monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is under way."""
    monkeypatch.setattr("headwaiter.top.feed.MOST_EVENTS", 4)
    made, clock = feed
    t = clock.now
    made.add("cpu0/0", pages((t, "Q", 8000, 6), *((t + 10 * k + i, "QC"[i], 8 * k, 5) for k in range(1, 9) for i in (0, 1))))
    whole, rest = made.trace(t + MS), made.trace(t + MS)
    assert whole is not None and len(whole) == 9
    assert rest is not None and rest.sector.tolist() == [8000, 56, 64]


def test_other_disks_are_not_shown(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed
    made.disk = replace(made.disk, minor=16)
    made.add("cpu0/000000", pages((clock.now, "Q", 8, 5)))
    assert made.trace(clock.now) is None


def test_the_last_minute_is_an_archive(feed: tuple[Feed, Clock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, clock = feed
    began = clock.now
    for second in range(100):
        clock.now = began + second * S
        made.add("cpu0/000000", pages((clock.now, "Q", 8 * second, 5), (clock.now + MS, "C", 8 * second, 0)))
    assert made.archive(tmp_path / "a.hwr") == 60
    found = load(tmp_path / "a.hwr")
    assert found.sector.tolist() == [8 * second for second in range(39, 100)] and (found.complete_ns >= 0).all()
    monkeypatch.setattr("headwaiter.top.feed.MOST_BYTES", 3 * len(pages((1, "Q", 8, 5), (2, "C", 8, 0))))
    made.add("cpu0/000000", pages((clock.now, "Q", 8, 5), (clock.now + MS, "C", 8, 0)))
    made.archive(tmp_path / "b.hwr")
    assert len(load(tmp_path / "b.hwr")) == 3


# --- advice ---

WINDOW = Window(60.0, 2000, 5.0, 10.0, 16384.0, 0.9)


ANSWER = Answer(
    outcome="better",
    text="Of your kernel's schedulers: bfq; programs get 58% more done than under mq-deadline.",
    by="progress",
    baseline="mq-deadline",
    best="bfq",
    margin_percent=5.0,
    margins=(),
)
LEVER = Lever(
    kind="class",
    what="cp in the idle class",
    text="cp in the idle class under bfq: the others get 3.7 times as much done; cost: cp gets 90% less done.",
    margin=Margin(scheduler="bfq", judgement="better", ahead_percent=270.0),
    settings={},
    apply=("ionice -c3 -p $(pidof cp)",),
    undo=("ionice -c2 -n4 -p $(pidof cp)",),
)


def test_a_sentence() -> None:
    assert sentence(replace(WINDOW, answer=ANSWER)) == f"{ANSWER.text} (By a replay of the last 60 s.)"
    assert sentence(replace(WINDOW, trouble="only 3 requests")) == "not known (only 3 requests)"
    assert sentence(WINDOW) == "not known (there is no other scheduler that can be replayed)"


def test_what_helps_beside_a_scheduler_is_told_with_its_command() -> None:
    seen = look(behind("w"), 0, 100 * MS, DiskSetting("mq-deadline"))
    lines = shown(document(seen, advice="keep it", levers=[LEVER, LEVER, LEVER]), 80)
    assert " ".join(" ".join(lines).split()).count(f"Besides, {LEVER.text}") == 2, "no more than two have room"
    assert "  ionice -c3 -p $(pidof cp)" in lines
    assert json.loads(json_text(document(seen, levers=[LEVER])))["levers"][0]["undo"] == list(LEVER.undo)


def test_advice_comes_after_a_minute_and_again_each_minute(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed
    asked: list[Any] = []

    def judge(*given: Any) -> Window:
        asked.append(given[2:])
        return replace(WINDOW, answer=replace(ANSWER, text=f"Judgement {len(asked)}."), levers=(LEVER,) * (len(asked) - 1))

    adviser = Adviser(made, judge)
    for second in range(0, 140, 2):
        clock.now = made.began_ns + second * S
        made.add("cpu0/000000", pages((clock.now, "Q", 8, 5)))
        adviser.look(clock.now, "none", ["bfq"], 7)
        adviser.wait()
        assert bool(adviser.text) == (second >= 60)
    assert asked == [(60.0, 7, "none", ("bfq",))] * 2 and adviser.text.startswith("Judgement 2.")
    assert adviser.levers == (LEVER,)


def test_advice_that_cannot_be_had_is_told(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed

    def judge(*_: Any) -> Window:
        raise Problem("no room")

    adviser = Adviser(made, judge)
    adviser.look(clock.now + 60 * S, "none", ["bfq"], 0)
    adviser.wait()
    assert (adviser.text, adviser.levers) == ("not known: no room", ())


def test_the_replay_of_watch_judges(feed: tuple[Feed, Clock]) -> None:
    made, clock = feed
    t = clock.now
    for k in range(30):
        made.add("cpu0/000000", pages((t + k * MS, "Q", 8 * k, 5), (t + k * MS + 1000, "C", 8 * k, 0)))
    adviser = Adviser(made)
    adviser.look(t + 60 * S, "none", ["bfq"], 0)
    adviser.wait()
    assert adviser.text == "not known (only 30 requests)"


# --- the command ---


def test_a_recording_interval_by_interval(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = "".join(f"{k / 10},1,R,1,{80 * k},8,{k / 10 + 0.05},find\n" for k in range(30))
    path = write(tmp_path / "t.csv", f"time_s,task,op,sync,sector,sectors,complete_s,name\n{lines}")
    found = list(recorded(path, "t.csv", 1.0))
    assert [one.at for one in found] == ["1.0 s", "2.0 s", "3.0 s"]
    assert [one.read.requests_per_s for one in found[:2]] == [10, 10]
    out = good(capfd, "top", path, "-i", "1")
    assert out.count("busy 50%") == 2 and out.count("busy 53%") == 1, "the last one is shorter"
    assert good(capfd, "top", path, "-i", "1", "--batch", "2").count("busy") == 2
    assert told(capfd, "top", path, "-i", "1", "--once")["programs"][0]["waits_percent"] == pytest.approx(50)


def test_without_completions_nothing_can_be_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.csv", "time_s,task,op,sync,sector,sectors\n0,1,R,1,0,8\n")
    status, out, err = run(capfd, "top", path)
    assert (status, out) == (2, "") and "has no completions" in err and len(err.splitlines()) == 1
    status, _, err = run(capfd, "top", path, "--counters")
    assert status == 2 and "--counters is for a disk" in err


class Ticking:
    """The time, of which a hundredth of a second passes whenever it is asked for."""

    strftime = staticmethod(time.strftime)

    def __init__(self) -> None:
        self.now = time.monotonic_ns()

    def monotonic_ns(self) -> int:
        self.now += 10 * MS
        return self.now


def test_a_disk_is_recorded_and_nothing_stays_switched_on(
    kernel: Kernel, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Ticking()
    monkeypatch.setattr("headwaiter.top.sources.time", clock)
    now = clock.now + 15 * MS
    first = ((now, "Q", 8, 6), (now + 1000, "D", 8, 6), (now + 2000, "C", 8, 0))
    kernel.pages = {0: [pages(*first, (now + 3000, "Q", 80, 70))], 1: []}
    kernel.disk("sda")
    found = told(capfd, "top", "sda", "--root", kernel.root.parent, "--once", "-i", "0.1")
    programs = {one["program"]: one for one in found["programs"]}
    assert programs["p6"]["pids"] == [6] and programs["p6"]["lat_ms"]["max"] == 0.002
    assert programs["p70"]["under_way"] == 1 and found["queue"]["under_way"] == 1 and found["queue"]["in_device"] == 0
    assert found["queue"]["scheduler"] == "none"
    assert kernel.kept[f"events/{tracefs.ISSUES}/enable"] == "1"
    assert not kernel.made[0].exists(), "the instance, and all that is on in it"


def test_a_disk_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    FakeSystem(tmp_path).add("sda")
    status, out, err = run(capfd, "top", "sdz", "--root", tmp_path)
    assert (status, out) == (2, "") and err == f"headwaiter: sdz: no such disk ({tmp_path}/sys/block has the names)\n"


def test_a_stack_of_disks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    machine = FakeSystem(tmp_path)
    for name in ("sda", "sdb"):
        machine.add(name)
    machine.stack("md0", "sda", "sdb")
    status, _, err = run(capfd, "top", "md0", "--root", tmp_path)
    assert status == 2 and "md0: has no queue of its own; name one of its disks (sda, sdb)" in err


def test_where_tracing_is_denied(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    FakeSystem(tmp_path).add("sda")
    write(tmp_path / "sys/block/sda/stat", "5 0 40 1 2 0 16 1 0 1 1 0 0 0 0\n")

    def place() -> Path:
        raise tracefs.DeniedError("this kernel has no tracefs")

    monkeypatch.setattr(tracefs, "place", place)
    status, out, err = run(capfd, "top", "sda", "--root", tmp_path)
    assert (status, out) == (2, "") and len(err.splitlines()) == 1
    assert "this kernel has no tracefs (--counters shows what can be seen without)" in err
    text = good(capfd, "top", "sda", "--root", tmp_path, "--counters", "--once", "-i", "0.1")
    assert "busy 0%" in text and "scheduler mq-deadline" in text and "need tracing, as root" in " ".join(text.split())


def test_a_disk_that_vanishes(kernel: Kernel, capfd: pytest.CaptureFixture[str]) -> None:
    folder = kernel.disk("sda")
    threading.Timer(0.2, lambda: (folder / "diskseq").write_text("4\n")).start()
    status, _, err = run(capfd, "top", "sda", "--root", kernel.root.parent, "--json", "-i", "0.1")
    assert (status, err) == (2, "headwaiter: sda has vanished\n") and not kernel.made[0].exists()


# --- on a terminal ---


def on_terminal(folder: Path, ends: Sequence[bytes | int]) -> tuple[int, str, list[Any], list[Any]]:
    """(status, what was shown, the terminal's settings before and after) of top by counters, ended by keys or a signal."""
    FakeSystem(folder).add("sda")
    write(folder / "sys/block/sda/stat", "5 0 40 1 2 0 16 1 0 1 1 0 0 0 0\n")
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    words = [sys.executable, "-P", "-m", "headwaiter", "top", "sda", "--root", str(folder), "--counters", "-i", "0.1"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    seen = b""
    left = list(ends)
    while process.poll() is None or select.select([ours], [], [], 0.1)[0]:
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 65536)
        if left and seen.count(b"busy 0%") >= 2:
            end = left.pop(0)
            os.write(ours, end) if isinstance(end, bytes) else process.send_signal(end)
    after = termios.tcgetattr(theirs)
    os.close(theirs)
    os.close(ours)
    return process.wait(), seen.decode(errors="replace"), before, after


@pytest.mark.parametrize("end", [b"q", b"\x03", signal.SIGINT, signal.SIGTERM])
def test_it_ends_by_a_key_or_a_signal_and_leaves_the_terminal_as_it_was(tmp_path: Path, end: bytes | int) -> None:
    """In the alternate screen, without a cursor; both are put back."""
    if end == b"\x03":  # no terminal of ours controls the process: its letter is no signal
        end = b"xQ"
    status, seen, before, after = on_terminal(tmp_path, [end])
    assert status == 0 and before == after, seen
    assert seen.index("\x1b[?1049h") < seen.index("busy") < seen.rindex("\x1b[?1049l") and seen.rindex("\x1b[?25h") > 0
    assert "Traceback" not in seen and not re.search(r"headwaiter: ", seen)


def test_json_documents_follow_one_another(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    FakeSystem(tmp_path).add("sda")
    write(tmp_path / "sys/block/sda/stat", "5 0 40 1 2 0 16 1 0 1 1 0 0 0 0\n")
    out = good(capfd, "top", "sda", "--root", tmp_path, "--counters", "--batch", "2", "-i", "0.1", "--json")
    found, end = json.JSONDecoder().raw_decode(out)
    assert found["device"] == "sda" and "programs" not in found and json.loads(out[end:])["read"]["MBps"] == 0
    assert np.isclose(found["seconds"], 0.1, atol=1.0)
