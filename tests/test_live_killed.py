# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""SIGKILL at any moment of a change: the disk has a valid scheduler, and `revert` restores exactly what was saved."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fakesys import DEFAULTS, FakeSystem, machine

from headwaiter.queue.apply import revert
from headwaiter.queue.devices import find
from headwaiter.queue.machine import Machine

__all__ = ["machine"]
SCRIPT = Path(__file__).with_name("killed.py")


def kill_and_revert(
    start: list[str], turns: int, longest_s: float, there: Machine, name: str, look: Callable[[], dict[str, str]]
) -> int:
    """So many times, each within `longest_s`, in which a process turns a few times; how often something was to be restored."""
    dice, restored = random.Random(17), 0
    before = look()
    command = [sys.executable, "-P", str(SCRIPT), *start]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdin and parent.stdout and parent.stderr
        for _ in range(turns):
            parent.stdin.write("go\n")
            parent.stdin.flush()
            child = int(parent.stdout.readline())
            while not there.state.all():  # it has begun
                time.sleep(0.001)
            time.sleep(dice.random() * longest_s)
            os.kill(child, signal.SIGKILL)
            gone(child)
            look()
            current = there.find(name)
            assert current.scheduler in DEFAULTS and current.scheduler in current.schedulers
            if there.state.of(current):
                revert(current, there.state)
                restored += 1
            assert look() == before
            for learnt in Path(start[1]).glob("*.watch"):
                learnt.unlink()  # with it, watch would leave the disk alone twice as long each time
        parent.stdin.close()
        assert parent.stderr.read() == "", "no process had a problem of its own"
    return restored


def gone(child: int) -> None:
    """Its parent does not wait for it; a write that it began may take its time."""
    while Path(f"/proc/{child}").exists():
        time.sleep(0.001)


@pytest.fixture
def kernel(machine: FakeSystem, tmp_path: Path) -> Iterator[Path]:
    """A socket at whose other end the fake kernel completes every write."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "kernel"))
    server.listen()

    def serve() -> None:
        """One peer after the other."""
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            # The asker may be dead before it hears the answer.
            with peer, peer.makefile() as lines, suppress(ConnectionError):
                for line in lines:
                    if line.strip():
                        machine.set(*json.loads(line))
                    peer.sendall(b"+")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield tmp_path / "kernel"
    server.close()


def turns(machine: FakeSystem, kernel: Path, number: int, what: str) -> int:
    machine.add("sda", wwn="naa.5000")
    machine.set("sda", "iosched/read_expire", "400")
    machine.set("sda", "nr_requests", "77")
    state = machine.root / "var/lib/headwaiter"

    def look() -> dict[str, str]:
        settle(kernel)
        return machine.everything("sda")

    start = [str(machine.root), str(state), "sda", str(kernel), what]
    return kill_and_revert(start, number, 0.05, Machine(machine.root, state), "sda", look)


def settle(kernel: Path) -> None:
    """The kernel has done what others asked before."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(kernel))
        peer.sendall(b"\n")
        assert peer.recv(1) == b"+"


@pytest.mark.parametrize("what", ["apply", "watch"])
def test_killed_some_times(machine: FakeSystem, kernel: Path, what: str) -> None:
    assert turns(machine, kernel, 4, what)


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["apply", "watch"])
def test_killed_two_hundred_times(machine: FakeSystem, kernel: Path, what: str) -> None:
    assert turns(machine, kernel, 200, what) > 50, "many are killed with something saved"


# --- a loop device of our own ---


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """The name of a new loop device over a file; only root can make one."""
    losetup = shutil.which("losetup", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if os.geteuid() or not losetup or not Path("/dev/loop-control").exists():
        pytest.skip("only root can make loop devices")
    file = tmp_path / "disk"
    with file.open("wb") as sparse:
        sparse.truncate(64 << 20)
    done = subprocess.run([losetup, "--find", "--show", file], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    name = Path(done.stdout.strip()).name
    if "bfq" not in (Path("/sys/block") / name / "queue/scheduler").read_text():
        subprocess.run([losetup, "--detach", f"/dev/{name}"], check=True)
        pytest.skip("this kernel lacks bfq or kyber")
    yield name
    subprocess.run([losetup, "--detach", f"/dev/{name}"], check=True)


@pytest.mark.thorough
def test_killed_on_a_loop_device(loop: str, tmp_path: Path) -> None:
    """Writes drain the queue and cannot be killed half-way; the sequence can."""
    there = Machine(folder=tmp_path / "state")

    def look() -> dict[str, str]:
        queue = find(loop).folder / "queue"
        return {
            str(p.relative_to(queue)): p.read_text() for p in sorted(queue.rglob("*")) if p.is_file() and p.stat().st_mode & 0o200
        }

    assert kill_and_revert(["/", str(tmp_path / "state"), loop, "-", "apply"], 40, 0.3, there, loop, look) > 10
