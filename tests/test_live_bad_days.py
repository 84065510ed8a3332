# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""watch on a bad day: metrics that nobody takes, ends of every kind, others who set the scheduler, clocks that are wrong."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import run, write
from fakesys import FakeSystem, machine
from test_live_watch import QUIET, Scripted, ahead, service
from test_outputs import mounted

from headwaiter.base.ending import Ended
from headwaiter.base.errors import Problem
from headwaiter.queue.apply import apply
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Settings
from headwaiter.watch import prometheus as metrics_module
from headwaiter.watch.decide import Caution
from headwaiter.watch.prometheus import MOST_PEERS, Metrics, served
from headwaiter.watch.service import Service

__all__ = ["machine"]
ADVISE = "headwaiter advise --apply"


# --- metrics ---


def scraped(port: int, host: str = "127.0.0.1") -> str:
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


@pytest.mark.thorough
def test_idle_peers_neither_end_it_nor_keep_others_away() -> None:
    metrics = Metrics()
    metrics.add("headwaiter_changes_total", device="sda")
    with served(metrics, "127.0.0.1:0") as port:
        before = len(os.listdir("/proc/self/fd"))
        peers = []
        for _ in range(10 * MOST_PEERS):
            peers.append(socket.create_connection(("127.0.0.1", port)))
            assert len(os.listdir("/proc/self/fd")) <= before + len(peers) + MOST_PEERS + 2
        assert 'device="sda"} 1' in scraped(port)
        for peer in peers:
            peer.close()


def test_a_peer_that_says_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_module._Handler, "timeout", 0.05)
    with served(Metrics(), "127.0.0.1:0") as port, socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
        assert peer.recv(1) == b""


def test_peers_that_go_are_not_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    with served(Metrics(), "127.0.0.1:0") as port:
        for words in (b"", b"GET", b"\0\0\r\n\r\n", b"GET /metrics HTTP/1.0\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(words)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
        assert scraped(port) == "\n"
    assert capfd.readouterr().err == ""


def test_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with served(Metrics(), "[::1]:0") as port:
        assert scraped(port, "[::1]") == "\n"


@pytest.mark.parametrize("address", ["nowhere", ":9", "a:b", "a:٣", "127.0.0.1:65536", f"{'a' * 70}:9"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(Problem, match=r"^--metrics-http "), served(Metrics(), address):
        pass


def test_a_full_disk_does_not_end_the_watch(machine: FakeSystem, tmp_path: Path) -> None:
    """It is said once, and again if it comes again."""
    machine.add("sda")
    with mounted(tmp_path / "full", "size=16k") as folder:
        watching, lines = service(machine, Scripted([QUIET] * 6, lambda turn: fills[turn]()))
        watching._publish = lambda: watching.metrics.write(folder / "m.prom")
        rest = folder / "rest"

        def fill() -> None:
            with pytest.raises(OSError, match="No space"), rest.open("wb", buffering=0) as full:
                while True:
                    full.write(bytes(4096))

        def nothing() -> None:
            pass

        fills: list[Callable[[], object]] = [nothing, fill, nothing, rest.unlink, fill, nothing, nothing]
        watching.run()
        assert 'result="kept"} 4' in (folder / "m.prom").read_text(), "what was written last stays whole"
    troubles = [line.split(" ", 1)[1] for line in lines if "metrics" in line]
    assert troubles == [f"metrics are not written: {folder}/m.prom: No space left on device"] * 2
    assert sum(" sda kept " in line for line in lines) == 6


@pytest.mark.parametrize("end", [BrokenPipeError("lines"), RuntimeError("?"), Ended(143), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("where", ["window", "log", "publish"])
def test_every_end_restores(machine: FakeSystem, end: BaseException, where: str) -> None:
    """All disks are restored, also where the lines that tell it go nowhere."""
    before = {}
    for name in ("sda", "sdb"):
        machine.add(name)
        before[name] = machine.everything(name)

    def ends(*_: object) -> None:
        if {"bfq"} == {machine.current(name) for name in before} or broken:
            broken.append(True)
            raise end

    broken: list[bool] = []
    watching, _ = service(
        machine, Scripted([ahead(0.2)] * 20, ends if where == "window" else None), ("sda", "sdb"), put=True, on_exit="restore"
    )
    if where == "log":
        watching._log = ends
    if where == "publish":
        watching._publish = ends
    if where == "publish" and isinstance(end, OSError):
        watching.run()
    else:
        with pytest.raises(type(end)):
            watching.run()
    assert broken and {name: machine.everything(name) for name in before} == before


def test_a_disk_that_cannot_be_restored_keeps_no_other_from_it(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sda", "sdb"):
        machine.add(name)
    watching, lines = service(machine, Scripted([ahead(0.2)] * 8), ("sda", "sdb"), put=True, on_exit="restore")
    honest = machine.set

    def kernel(name: str, file: str, value: str) -> None:
        if (name, file, value) == ("sda", "scheduler", "mq-deadline"):
            raise OSError(5, "Input/output error")
        honest(name, file, value)

    monkeypatch.setattr(machine, "set", kernel)
    watching.run()
    assert machine.current("sda") == "bfq" and machine.current("sdb") == "mq-deadline"
    assert any("sda declined" in line and "Input/output error" in line for line in lines)


# --- beside others ---


def advised(system: FakeSystem, scheduler: str = "kyber", **more: str) -> None:
    """As `headwaiter advise --apply` does it."""
    there = Machine(system.root)
    apply(there.legs(there.find("sda")), Settings(scheduler, None, more), there.state, ADVISE)
    system.writes.clear()


def told_scheduler(watching: Service) -> list[str]:
    """What the metric says is in force."""
    return re.findall(r'^headwaiter_scheduler_info\{device="sda",scheduler="([^"]+)"', watching.metrics.text(), re.M)


@pytest.mark.parametrize("before", [None, "none", "bfq"])
@pytest.mark.parametrize(
    ("at", "scheduler", "more"), [(0, "kyber", {}), (2, "kyber", {}), (6, "kyber", {}), (6, "bfq", {"slice_idle": "0"})]
)
def test_watch_leaves_what_advise_applies(
    machine: FakeSystem, before: str | None, at: int, scheduler: str, more: dict[str, str]
) -> None:
    """Whether or not watch, or an earlier advise, has changed the disk before; and so it stays after a restart."""
    machine.add("sda", wwn="naa.5000")
    if before:
        advised(machine, before)
    other = "mq-deadline" if before == "bfq" else "bfq"
    windows = Scripted([ahead(0.2, other)] * 12, lambda turn: advised(machine, scheduler, **more) if turn == at else None)
    watching, lines = service(machine, windows, put=True, on_exit="restore")
    watching.run(rounds=14)
    assert machine.writes == [] and machine.current("sda") == scheduler == told_scheduler(watching)[0]
    [left] = [line for line in lines if "left alone" in line]
    assert f"sda declined {scheduler}: `{ADVISE}` has set " in left and lines[-1] == left
    assert 'headwaiter_overridden{device="sda"} 1' in watching.metrics.text()
    for again in range(2):
        still, lines = service(machine, Scripted([ahead(0.2, other)] * 12), put=True)
        if again:
            advised(machine, "none")
        still.run(rounds=6)
        assert machine.writes == [] and lines == [] and told_scheduler(still) == ["none" if again else scheduler]
    still, _ = service(machine, Scripted([ahead(0.2, other)] * 12), put=True)
    still.run(rounds=6)
    assert machine.writes == [], "the second advice is left alone, too"
    resumed, _ = service(machine, Scripted([ahead(0.2, other)] * 12), put=True, resume=True)
    resumed.run(rounds=6)
    assert machine.current("sda") == other == told_scheduler(resumed)[0]


@pytest.mark.parametrize("turn", [3, 5], ids=["at a change", "at an undoing"])
def test_advice_that_comes_just_before_a_change(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    """After the last look of watch: asked again once no other headwaiter can change anything."""
    machine.add("sda")
    worse = ahead(0.0, "none", replace(QUIET, latency_ms=20.0))
    windows = Scripted([*[ahead(0.2)] * 4, *[worse] * 6])
    watching, lines = service(machine, windows, put=True)
    honest = watching._change

    def late(*given: Any) -> None:
        if windows.asked == turn + 1:
            advised(machine)
        honest(*given)

    monkeypatch.setattr(watching, "_change", late)
    watching.run(rounds=8)
    assert machine.writes == [] and machine.current("sda") == "kyber" and told_scheduler(watching) == ["kyber"]
    assert any(f"`{ADVISE}` has set scheduler meanwhile" in line for line in lines)
    assert f"sda declined kyber: `{ADVISE}` has set" in lines[-1] and "left alone" in lines[-1]


def test_the_end_does_not_undo_advice(machine: FakeSystem) -> None:
    """That came after the last look."""
    machine.add("sda")
    watching, lines = service(machine, Scripted([ahead(0.2)] * 4), put=True, on_exit="restore")

    def wait(seconds: float) -> bool:
        changed = machine.current("sda") == "bfq"
        if changed:
            advised(machine)
        return changed

    watching._wait = wait
    watching.run()
    assert machine.writes == [] and machine.current("sda") == "kyber" and f"`{ADVISE}` has set" in lines[-1]


def test_the_metric_is_what_is_in_force(machine: FakeSystem) -> None:
    """Not what was decided, nor what was there at first."""
    machine.add("sda")
    refused, _ = service(machine, Scripted([ahead(0.2, "adios")] * 4), put=True)
    refused.run(rounds=4)
    assert told_scheduler(refused) == ["mq-deadline"]
    for put in (False, True):
        machine.set("sda", "scheduler", "mq-deadline")
        windows = Scripted([QUIET] * 9, lambda turn: machine.set("sda", "scheduler", "none") if turn == 1 else None)
        watching, _ = service(machine, windows, put=put)
        watching.run(rounds=2)
        assert told_scheduler(watching) == ["none"]
    machine.add("sdb")
    machine.stack("md0", "sda", "sdb")
    stacked, lines = service(machine, Scripted([QUIET] * 9, lambda turn: machine.set("sdb", "scheduler", "bfq")), ("sda",))
    machine.remove("sda")
    stacked.run(rounds=1)
    assert told_scheduler(stacked) == [] and "the disk is not there" in lines[-1]


# --- clocks ---

DAY_S = 86_400.0
Y2099 = 4_070_908_800.0


class Clocks:
    """A wall clock that may be wrong, and one that nobody sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.since_boot = 1_800_000_000.0, 1000.0
        monkeypatch.setattr(time, "time", lambda: self.wall)
        monkeypatch.setattr(time, "clock_gettime", lambda clock: {time.CLOCK_BOOTTIME: self.since_boot}[clock])

    def later(self, seconds: float) -> None:
        self.wall += seconds
        self.since_boot += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


ONE_A_DAY = Caution(changes=1, dwell=2)
WORSE = ahead(0.0, "none", replace(QUIET, latency_ms=20.0))


@pytest.mark.parametrize("wrong", [Y2099, 0.0], ids=["2099", "1970"])
@pytest.mark.parametrize("later", [DAY_S - 10_000, DAY_S + 10_000])
def test_within_a_run_no_limit_hangs_on_the_wall_clock(machine: FakeSystem, clocks: Clocks, wrong: float, later: float) -> None:
    machine.add("sda")
    right = clocks.wall

    def turn(number: int) -> None:
        if number == 4:  # a change was made
            assert machine.current("sda") == "bfq"
            clocks.wall = right
            clocks.later(later)

    clocks.wall = wrong
    windows = Scripted([*[ahead(0.2)] * 4, *[ahead(0.3, "kyber")] * 8], turn)
    watching, lines = service(machine, windows, put=True, caution=ONE_A_DAY)
    watching.run()
    assert machine.current("sda") == ("kyber" if later > DAY_S else "bfq")
    assert any("1 changes in a day are enough" in line for line in lines) == (later < DAY_S)


def test_a_block_within_a_run_does_not_hang_on_it_either(machine: FakeSystem, clocks: Clocks) -> None:
    machine.add("sda")
    right, clocks.wall = clocks.wall, Y2099

    def turn(number: int) -> None:
        if number == 7:
            assert machine.current("sda") == "mq-deadline"
            clocks.wall = right
        clocks.later(10.0)

    windows = Scripted([*[ahead(0.2)] * 4, *[WORSE] * 3, *[ahead(0.2)] * 30], turn)
    watching, lines = service(machine, windows, put=True, caution=Caution(dwell=2))
    watching.run()
    assert any("it made things worse, and is not tried for" in line for line in lines) and machine.current("sda") == "bfq"


@pytest.mark.parametrize("same_boot", [True, False])
def test_across_a_restart_the_future_is_not_trusted(machine: FakeSystem, clocks: Clocks, same_boot: bool) -> None:
    """Changes in it are forgotten, and nothing is kept off for longer than it was to be."""
    machine.add("sda")
    right, clocks.wall = clocks.wall, Y2099
    watching, lines = service(machine, Scripted([*[ahead(0.2)] * 4, *[WORSE] * 2]), put=True, caution=Caution(changes=2, dwell=2))
    watching.run()
    assert "not tried for 80 s" in lines[-1]
    clocks.wall = right
    for later, said in ((0, "not tried for 80 s more"), (50, "not tried for 30 s more"), (31, "sda changed bfq: ")):
        clocks.later(later)
        if not same_boot:
            clocks.since_boot = 5.0
        again, lines = service(machine, Scripted([ahead(0.2)] * 4), put=True, caution=ONE_A_DAY)
        again.run()
        assert said in lines[-1]


def test_a_right_clock_is_trusted_across_a_restart(machine: FakeSystem, clocks: Clocks) -> None:
    machine.add("sda")
    service(machine, Scripted([ahead(0.2)] * 4), put=True, caution=ONE_A_DAY)[0].run()
    for later, outcome in ((DAY_S / 2, "declined"), (DAY_S, "changed")):
        clocks.later(later)
        clocks.since_boot = 3.0  # of another boot
        watching, lines = service(machine, Scripted([ahead(0.3, "kyber")] * 4), put=True, caution=ONE_A_DAY)
        watching.run()
        assert f"sda {outcome} " in lines[-1]


# --- one watch for a disk ---


def size_words(machine: FakeSystem, tmp_path: Path, name: str) -> list[str]:
    """A watch that goes by counters, for long."""
    row = '{"throughput_MBps": 1, "request_bytes": 4096, "scheduler": "none"}'
    text = f'{{"schema": "headwaiter/1", "subject": "", "results": [{row}]}}'
    size = ("--method", "request-size", "--ranking", str(write(tmp_path / "r.json", text)))
    return ["watch", name, *size, "--sample", "60", "--root", str(machine.root)]


@pytest.mark.thorough
@pytest.mark.parametrize("first", [True, False], ids=["apply", "report"])
@pytest.mark.parametrize("second", [True, False], ids=["apply", "report"])
def test_a_second_watch_is_refused(
    machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str], first: bool, second: bool
) -> None:
    """By whatever name, until the first has ended, or is killed."""
    for name in ("sda", "sdb", "sdc"):
        folder = machine.add(name, wwn=f"naa.{name}")
        write(folder / "stat", "100 5 800 1000 10 0 80 500 3 7 9 0 0 0 0\n")
    machine.stack("md0", "sda", "sdb")
    words = size_words(machine, tmp_path, "sda")
    for end in (signal.SIGKILL, signal.SIGTERM):
        program = [sys.executable, "-P", "-m", "headwaiter", *words, *["--apply"] * first, "--metrics-file", str(tmp_path / "m")]
        with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as other:
            locks = machine.root / "var/lib/headwaiter"
            while not any(taken(path) for path in locks.glob("*.lock")):
                assert other.poll() is None
                time.sleep(0.01)
            for name in ("sda", "md0"):
                status, out, err = run(capfd, *size_words(machine, tmp_path, name), "--rounds", "1", *["--apply"] * second)
                assert (status, out, len(err.splitlines())) == (2, "", 1)
                assert err.startswith("headwaiter: sda: another `headwaiter watch` watches this disk")
            service(machine, Scripted([QUIET]), ("sdc",), put=second)[0].run()
            other.send_signal(end)
            other.communicate(timeout=60)
        service(machine, Scripted([QUIET]), ("sda", str(machine.root / "dev/sda")), put=second)[0].run()
    assert not list(locks.glob("*.lock")), "nothing is left"


def taken(path: Path) -> bool:
    """Whether a process has locked it."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_who_only_reports_needs_no_state(machine: FakeSystem) -> None:
    """And who cannot keep one must not change anything."""
    machine.add("sda")
    folder = machine.root / "var/lib/headwaiter"
    folder.rmdir()
    with mounted(folder, "ro"):
        service(machine, Scripted([QUIET]))[0].run()
        with pytest.raises(Problem, match=rf"^{folder}/.*: Read-only file system$"):
            service(machine, Scripted([QUIET]), put=True)
