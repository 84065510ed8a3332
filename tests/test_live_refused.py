# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""advise: what is refused is told behind the advice, and changes nothing; a disk at rest, and one that is not there."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command import good, run, told, write
from fakesys import FakeSystem, machine
from recordings import readers, record
from rich.console import Console
from ringpages import archive, entry, event, files, page
from test_live_advise import with_module
from test_live_watch import QUIET, Scripted

from headwaiter.advice import advice
from headwaiter.cli._progress import clock_bar, reading_bar
from headwaiter.cli.record import record_with_line
from headwaiter.cli.watch import _Shown
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Queue
from headwaiter.recorder.record import RecordingDone, Sofar
from headwaiter.study.drive_fit import choose_drive
from headwaiter.traces import load
from headwaiter.watch.service import Rules, Service

__all__ = ["machine"]
DRIVE = ("-d", "barracuda-80g")
HEAD = "time_s,task,op,sync,sector,sectors,complete_s\n"


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four readers, between which a scheduler that does not wait goes back and forth."""
    return record(tmp_path_factory.mktemp("four") / "four.csv", readers(4, 1300, think_ms=4))


@pytest.fixture
def better(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> FakeSystem:
    """A machine that could load what is better."""
    monkeypatch.setattr(advice, "default_set", lambda: ["none", "mq-deadline", "as"])
    with_module(machine, "hw-as")
    return machine


# --- refused ---


def unchanged(machine: FakeSystem, name: str, before: dict[str, str]) -> bool:
    """The disk, and what is kept of it."""
    kept = list((machine.root / "var/lib/headwaiter").glob("*.json"))
    return machine.everything(name) == before and not kept and not Machine(machine.root).state.all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wwn", "options", "message"),
    [
        ("", ("--apply", "--persist"), "sda: has no WWN and no serial"),
        ("", ("--persist",), "sda: has no WWN and no serial"),
        ('naa."5', ("--apply", "--persist"), "'naa.\"5' cannot stand in a udev rule"),
    ],
)
def test_without_a_rule_nothing_is_applied(
    better: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path, wwn: str, options: Any, message: str
) -> None:
    """Nor is anything put where the rule was to be."""
    better.add("sda", wwn=wwn)
    before, rule = better.everything("sda"), tmp_path / "my.rules"
    status, out, err = run(capfd, "advise", four, *DRIVE, "--on", "sda", *options, "-o", rule, "--root", better.root)
    assert status == 2 and "To apply:" in out
    assert len(err.splitlines()) == 1 and message in err
    assert ("Nothing was changed." in out) == ("--apply" in options)
    assert better.writes == [] and unchanged(better, "sda", before) and not rule.exists()


@pytest.mark.thorough
def test_what_would_stop_working_is_told_with_the_advice(
    better: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    better.add("sda", scheduler="bfq", wwn="naa.1")
    group = better.root / "sys/fs/cgroup/a"
    group.mkdir(parents=True)
    write(group / "io.bfq.weight", "default 500\n")
    words = ("advise", four, *DRIVE, "--on", "sda", "--apply", "--root", better.root)
    for more in ((), ("--persist",)):
        status, out, err = run(capfd, *words, *more)
        assert status == 2 and "This would stop working:" in out and "Nothing was changed." in out and "ATTR" not in out
        assert len(err.splitlines()) == 1 and "--force" in err and better.writes == []
    status, out, err = run(capfd, *words, "--json")
    found = json.loads(out)
    assert status == 2 and "--force" in err and found["advice"] and found["applied"] is False and better.writes == []


@pytest.mark.thorough
def test_what_the_kernel_refuses(
    better: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    better.add("sda", wwn="naa.1")
    before = better.everything("sda")

    def kernel(queue: Queue, file: str, value: str) -> None:
        if value == "hw-as":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        better.set(queue.device.name, file, value)

    monkeypatch.setattr(Queue, "_set", kernel)
    words = ("--on", "sda", "--apply", "--persist", "--root", better.root)
    status, out, err = run(capfd, "advise", four, *DRIVE, *words)
    assert status == 2 and "To apply:" in out and "Nothing was changed." in out and "ATTR" not in out
    assert len(err.splitlines()) == 1 and "'hw-as' is refused" in err and unchanged(better, "sda", before)


@pytest.mark.thorough
def test_both_are_done(better: FakeSystem, four: Path, capfd: pytest.CaptureFixture[str]) -> None:
    better.add("sda", wwn="naa.1")
    status, out, err = run(capfd, "advise", four, *DRIVE, "--on", "sda", "--apply", "--persist", "--root", better.root)
    assert status == 0 and better.current("sda") == "hw-as" and out.splitlines()[-1].startswith("ACTION==")
    assert "`headwaiter revert sda` restores" in " ".join(err.split())


# --- too little ---


@pytest.fixture
def recorded(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes | str], None]:
    """A disk, sda, of which this is recorded."""
    machine.add("sda", wwn="naa.1")

    def says(content: bytes | str) -> None:
        def recording(legs: Any, seconds: float, path: Path) -> RecordingDone:
            write(path, content)
            return RecordingDone("tracefs", "time", Sofar(seconds, 0, 0, 0, 99), ())

        monkeypatch.setattr("headwaiter.cli.advise.record_with_line", recording)

    return says


def test_a_disk_at_rest(machine: FakeSystem, recorded: Callable[[bytes | str], None], capfd: pytest.CaptureFixture[str]) -> None:
    """Whether nothing at all happened, or something elsewhere on the machine; and whatever drive it is."""
    elsewhere = page(1000, entry(10, event("sched_process_fork", parent_pid=1, child_pid=2)))
    sentence = "sda: nobody read or wrote it in 60 s: no scheduler matters to a disk at rest."
    for content in (files({}), files({0: [elsewhere]})):
        recorded(archive(content))
        for drive in ((), DRIVE):
            status, out, err = run(capfd, "advise", "sda", *drive, "--apply", "--root", machine.root)
            assert (status, err) == (0, "sda: recording for 60 s\n")
            assert sentence in " ".join(out.split()) and "Nothing was changed." in out and "mq-deadline is in force" in out
    status, out, _ = run(capfd, "advise", "sda", "--root", machine.root, "--json")
    found = json.loads(out)
    assert (status, found["gate"]["requests"], found["current"], found["legs"]) == (0, 0, "mq-deadline", ["sda"])
    assert "drive" not in found and found["offered"] == ["none", "mq-deadline", "kyber", "bfq"]
    [advice] = found["advice"]
    assert advice["kind"] == "recording" and advice["text"].startswith(sentence)
    status, out, _ = run(capfd, "advise", "sda", "--root", machine.root, "--json", "--mute", advice["id"])
    assert json.loads(out)["muted"] == [advice["id"]] and json.loads(out)["advice"] == []
    assert machine.writes == []


def test_too_few_requests(
    machine: FakeSystem, recorded: Callable[[bytes | str], None], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """They tell no drive, of a disk or in a file; completions are there."""
    few = HEAD + "".join(f"{i},1,R,1,{8000 * i},8,{i}.01\n" for i in range(12))
    recorded(few)
    status, out, err = run(capfd, "advise", "sda", "--root", machine.root)
    said = " ".join(out.split())
    assert (status, err) == (0, "sda: recording for 60 s\n") and said.startswith(
        "sda; mq-deadline is in force (sda) Recorded: 11 s"
    )
    assert "it has 12 requests, and 2000 are the least. Record 167 times longer." in said and "/" not in said
    found = told(capfd, "advise", write(tmp_path / "few.csv", few), "--root", machine.root)
    assert (found["workload"], found["gate"]["longer"], found["current"]) == ("few.csv", 167, "mq-deadline")
    status, out, err = run(capfd, "advise", "sda", "--anyway", "--root", machine.root)
    assert status == 2 and "sda: --drive auto needs a recording with completions, and this has only 12" in err
    none = write(tmp_path / "none.csv", HEAD.replace(",complete_s", "") + "0,1,R,1,0,8\n1,1,R,1,8,8\n")
    status, _, err = run(capfd, "advise", none, "--root", machine.root)
    assert status == 2 and "and this has none" in err


def test_a_recording_that_cannot_be_read_is_named_by_its_disk(
    machine: FakeSystem, recorded: Callable[[bytes | str], None], capfd: pytest.CaptureFixture[str]
) -> None:
    recorded("nothing of the kind\n")
    status, out, err = run(capfd, "advise", "sda", "--root", machine.root)
    assert (status, out) == (2, "") and "the recording of sda: " in err and "headwaiter-" not in err
    recorded(HEAD + "".join(f"{i},1,R,1,{8000 * i + (1 << 33)},8,{i}.01\n" for i in range(40)))
    status, _, err = run(capfd, "advise", "sda", *DRIVE, "--root", machine.root)
    assert status == 2 and "the recording of sda: request 0 " in err and "headwaiter-" not in err


def test_a_large_disk_has_a_drive(machine: FakeSystem, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """14 TB: its completions are there, and one of the bundled drives is enlarged."""
    places = [(i * 7919 % 97) * (14 * 10**12 // 512 // 97) for i in range(60)]
    path = write(tmp_path / "14tb.csv", HEAD + "".join(f"{2 * i},1,R,1,{at},8,{2 * i}.012\n" for i, at in enumerate(places)))
    found = told(capfd, "advise", path, "--root", machine.root)
    assert found["drive"] and found["advice"][0]["text"].startswith("This recording cannot tell: it has 60 requests, and")


def test_what_stands_in_dev_and_is_no_disk(machine: FakeSystem, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A pipe is a trace's; below another root there are its own."""
    for name in ("/dev/sdzz", "/dev/mapper/none", machine.root / "dev" / "sdzz"):
        status, out, err = run(capfd, "advise", name, "--root", machine.root)
        assert (status, out, err) == (2, "", f"headwaiter: {name}: no such device\n")
    reader, writer = os.pipe()
    os.write(writer, HEAD.encode() + b"0,1,R,1,0,8,0.01\n")
    os.close(writer)
    out = good(capfd, "advise", f"/dev/fd/{reader}", "--root", machine.root)
    assert "Recorded: 0.01 s, 1 request, 0 events lost" in out and "it has 1 request, and" in " ".join(out.split())
    os.close(reader)


# --- how far it is ---


def a_terminal() -> tuple[io.StringIO, Console]:
    screen = io.StringIO()
    return screen, Console(file=screen, force_terminal=True, width=120, color_system=None, legacy_windows=False)


def test_a_recording_says_how_long_it_goes_on() -> None:
    screen, console = a_terminal()
    with clock_bar("sda: recording", 60, "sda: storing", console) as say:
        say("5 requests/s")
    assert "sda: recording" in screen.getvalue() and "0 of 60 s, 60 s left  5 requests/s" in screen.getvalue()
    screen, console = a_terminal()
    with clock_bar("sda: recording", 0.0, "sda: storing", console):
        pass
    assert "sda: storing" in screen.getvalue() and "left" not in screen.getvalue()


def test_reading_a_large_file_is_told_with_how_long_it_takes(tmp_path: Path) -> None:
    """A packed one takes longer. What is soon read has no bar, and what cannot be read is told by who reads it."""
    lines = {}
    text = b"".join(b"%d,%d\n" % (i, i * i % 7919) for i in range(200_000))
    packed = gzip.compress(text)
    sizes = (("plain", b"time_s", 150_000_000), ("packed", packed, 50_000_000), ("small", b"t", 1_000_000))
    for name, head, size in sizes:
        path = tmp_path / name
        path.write_bytes(head)
        with path.open("r+b") as f:
            f.truncate(size)
        screen, console = a_terminal()
        with reading_bar(path, console) as say:
            say("trying a drive")
        lines[name] = screen.getvalue()
    assert "plain: reading 150MB" in lines["plain"] and "0 of 10 s, 10 s left  trying a drive" in lines["plain"]
    found = re.search(r"packed: reading 50MB.* 0 of (\d+) s", lines["packed"])
    assert found and int(found[1]) == pytest.approx(50e6 * len(text) / len(packed) / 15e6, rel=0.15)
    assert not lines["small"]
    for path in (tmp_path, tmp_path / "none", tmp_path / ("n" * 300)):
        with reading_bar(path, console):
            pass


def test_the_rates_of_a_recording_are_said(monkeypatch: pytest.MonkeyPatch, machine: FakeSystem, tmp_path: Path) -> None:
    """Rates are those since they were said last."""
    machine.add("sda")
    said: list[str] = []

    class Bar:
        def __init__(self, *given: Any) -> None:
            assert given == ("sda: recording", 9.0, "sda: storing what was recorded")

        def __enter__(self) -> Callable[[str], None]:
            return said.append

        def __exit__(self, *given: object) -> None:
            pass

    def recording(disks: Any, seconds: float, output: Path, each_second: Callable[[Sofar], None], **more: Any) -> RecordingDone:
        each_second(Sofar(1.0, 100, 10**6, 0, 5))
        each_second(Sofar(3.0, 2100, 5 * 10**6, 7, 5))
        return RecordingDone("tracefs", "time", Sofar(seconds, 0, 0, 0, 0), ())

    monkeypatch.setattr("headwaiter.cli.record.clock_bar", Bar)
    monkeypatch.setattr("headwaiter.cli.record.record", recording)
    record_with_line([Machine(machine.root).find("sda")], 9.0, tmp_path / "x")
    assert said == ["100 requests/s  1.0 MB/s  0 lost", "1k requests/s  2.0 MB/s  7 lost"]


def test_the_choice_of_a_drive_says_which_it_tries(four: Path) -> None:
    seen: list[tuple[str, int]] = []
    chosen, _ = choose_drive(load(four), "four", progress=lambda name, done: seen.append((name, done)))
    names = list(dict.fromkeys(name for name, _ in seen))
    assert chosen.name in names and len(names) > 3 and seen == [(name, done) for name in names for done in (0, 1)]


def test_a_window_of_a_watch_says_how_long_it_goes_on(monkeypatch: pytest.MonkeyPatch, machine: FakeSystem) -> None:
    """And a watch of one window ends with it."""
    machine.add("sda")
    seen: list[Any] = []

    @contextmanager
    def bar(*given: Any) -> Iterator[None]:
        seen.append(given)
        yield
        seen.append("over")

    monkeypatch.setattr("headwaiter.cli.watch.clock_bar", bar)
    monkeypatch.setattr("headwaiter.watch.service.Service._pause", lambda *given: pytest.fail("what for?"))
    windows = Scripted([QUIET])
    method = _Shown(windows)
    Service(Machine(machine.root), ["sda"], method, Rules(9.0, 60.0), lambda line: None, lambda seconds: False).run(1)
    assert seen == [("sda: window", 9.0, "sda: judging it"), "over"]
