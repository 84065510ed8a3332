# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How a guest is followed to its end, good or bad, with a stand-in for QEMU that says and does what a test wants."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwaiter.base.errors import Problem
from headwaiter.lab.guest import COMPLAINT, KERNEL_COMPLAINTS, LAST_LINES, Guest, GuestOutcome, boot
from headwaiter.lab.kernels import Kernel

# Says $SAY; writes $RESULTS where QEMU would write the second serial line, and much where it would record events; ends, or
# sleeps if $SLEEP is set. Refuses devices: what a program is given to write to, it may replace.
STAND_IN = """#!/bin/sh
echo $$ >"$PID_FILE"
for word in "$@"; do
	case $word in
	*/dev/*) echo "a device: $word"; exit 1 ;;
	file:*) printf "$RESULTS" >"${word#file:}" ;;
	*rrfile=*) head -c 1000000 /dev/zero >"${word##*rrfile=}" ;;
	esac
done
printf "%s\\n" "$*" >"$PID_FILE.command"
printf "$SAY"
[ -z "$SLEEP" ] || exec sleep 1000
"""


class StandIn:
    """QEMU's place on PATH, and where temporary files go."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pid_file, self.temporary = folder / "pid", folder / "tmp"
        self.temporary.mkdir()
        (folder / "bin").mkdir()
        program = folder / "bin" / "qemu-system-x86_64"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        shutil.copy2("/bin/true", folder / "bin" / "busybox")  # any program will do
        self._patch = monkeypatch
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("PID_FILE", str(self.pid_file))
        monkeypatch.setenv("TMPDIR", str(self.temporary))
        monkeypatch.setattr("tempfile.tempdir", None)

    def does(self, say: str, results: str = "", *, sleep: bool = False) -> None:
        """What the next one does; texts are formats of printf."""
        for name, value in {"SAY": say, "RESULTS": results, "SLEEP": "1" if sleep else ""}.items():
            self._patch.setenv(name, value)

    def is_gone(self) -> bool:
        """Has the process that stood in ended, and left no files?"""
        pid = int(self.pid_file.read_text())
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return not list(self.temporary.iterdir())
        return False


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch)


def _boot(said: list[str] | None = None, hang_s: float = 60, limit_s: float = 600) -> GuestOutcome:
    return boot(Guest(Kernel("6.12.1", Path("/none")), "true", hang_s=hang_s, limit_s=limit_s),
                (said if said is not None else []).append)  # fmt: skip


def test_a_good_end(stand_in: StandIn) -> None:
    stand_in.does("hello\\r\\n@@ say working\\n@@ done\\n", "file a 3\\nxyzfile b 0\\n")
    said: list[str] = []
    outcome = _boot(said)
    assert outcome.files == {"a": b"xyz", "b": b""}
    assert outcome.console == ["hello"]
    assert said == ["6.12.1: working"]
    assert stand_in.is_gone()


@pytest.mark.parametrize(("cpus", "records"), [(1, True), (4, False)])
def test_one_processor_is_recorded_for_its_lock(stand_in: StandIn, cpus: int, records: bool) -> None:
    """QEMU refuses to record several."""
    stand_in.does("@@ done\\n")
    boot(Guest(Kernel("6.12.1", Path("/none")), "true", cpus=cpus), lambda _: None)
    command = stand_in.pid_file.with_name("pid.command").read_text()
    assert f"-smp {cpus} " in command and "sleep=off" in command and ("rr=record" in command) is records


def test_complaints_may_be_provoked(stand_in: StandIn) -> None:
    provoked = "@@ complaints are expected\\nWARNING: one\\n@@ complaints are failures\\n"
    stand_in.does(f"{provoked}@@ done\\n")
    assert _boot().console == ["WARNING: one"]
    stand_in.does(f"{provoked}WARNING: two\\n@@ done\\n")
    with pytest.raises(Problem, match="WARNING: two"):
        _boot()


@pytest.mark.parametrize(("say", "results", "message", "shown"), [
    ("one\\ntwo\\n", "", "the guest ended early", ["one", "two"]),
    ("one\\nhalf a line", "", "the guest ended early", ["one", "half a line"]),
    ("one\\n@@ say disks\\n@@ fail no disk\\n", "", "no disk (during: disks)", ["one"]),
    ("@@ fail no disk\\n@@ fail no files\\n", "", "no disk", []),
    ("one\\n@@ done\\n", "file a 4\\nxyz", "results are damaged at byte 9", []),
    ("[ 1.0] WARNING: CPU: 0 at x\\n@@ done\\n", "", "the kernel reports: [ 1.0] WARNING: CPU: 0 at x", ["WARNING"]),
    ("BUG: KASAN: x\\n@@ fail no disk\\n", "", "the kernel reports: BUG: KASAN: x; then: no disk", ["KASAN"]),
])  # fmt: skip
def test_a_bad_end(
    stand_in: StandIn, capfd: pytest.CaptureFixture[str], say: str, results: str, message: str, shown: list[str]
) -> None:
    stand_in.does(say, results)
    with pytest.raises(Problem) as problem:
        _boot()
    assert str(problem.value).removeprefix("lab: 6.12.1: ").removeprefix("lab: ").startswith(message)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(shown)
    assert all(line.startswith("  | ") and word in line for line, word in zip(lines, shown, strict=True))
    assert stand_in.is_gone()


def test_of_long_last_words_the_complaint_and_the_end_are_shown(stand_in: StandIn, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [f"line {n}" for n in range(500)]
    lines[100] = "INFO: task dd:77 blocked for more than 120 seconds."
    stand_in.does("\\n".join([*lines, ""]))
    with pytest.raises(Problem, match="blocked for more than 120 seconds"):
        _boot()
    shown = [line.removeprefix("  | ") for line in capfd.readouterr().err.splitlines()]
    assert shown[0] == lines[100]
    assert shown[-LAST_LINES:] == lines[-LAST_LINES:]
    assert len(shown) < 100


class Impatient(selectors.DefaultSelector):
    """Waits for the first words for as long as they take, and for no others."""

    heard = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.heard:
            return []
        self.heard = True
        return super().select(None)


def test_a_guest_that_falls_silent_is_ended(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("selectors.DefaultSelector", Impatient)
    stand_in.does("last words\\n", sleep=True)
    with pytest.raises(Problem, match="the guest hangs: no sign of life for 60 s"):
        _boot()
    assert capfd.readouterr().err == "  | last words\n"
    assert stand_in.is_gone()


def test_a_guest_that_goes_on_and_on_is_ended(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = iter((0.0, 0.0))
    monkeypatch.setattr("headwaiter.lab.guest.time.monotonic", lambda: next(clock, 100.0))
    stand_in.does("last words\\n", sleep=True)
    with pytest.raises(Problem, match="does not finish within 90 s"):
        _boot(hang_s=1000, limit_s=90)
    assert capfd.readouterr().err == "  | last words\n"
    assert stand_in.is_gone()


def test_a_complaint_before_a_hang_is_the_cause(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selectors.DefaultSelector", Impatient)
    stand_in.does("BUG: soft lockup\\n", sleep=True)
    with pytest.raises(Problem, match="BUG: soft lockup; then: the guest hangs"):
        _boot()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_ends_the_guest_and_leaves_nothing(stand_in: StandIn, number: signal.Signals, status: int) -> None:
    stand_in.does("up\\n", sleep=True)
    program = """
from pathlib import Path
import sys
from headwaiter.lab.guest import Guest, boot
from headwaiter.lab.kernels import Kernel
from headwaiter import cli
import click

@click.command()
def guest():
    boot(Guest(Kernel("6.12.1", Path("/none")), "true"), print)

cli.program.get_command = lambda context, name: guest
cli.main()
"""
    process = subprocess.Popen([sys.executable, "-c", program, "guest"], stderr=subprocess.PIPE)
    while not (stand_in.pid_file.exists() and stand_in.pid_file.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == status
    assert b"Traceback" not in err
    assert stand_in.is_gone()


COMPLAINTS = [
    "WARNING: CPU: 0 PID: 1 at block/blk-mq.c:1 blk_mq_run_hw_queue+0x1/0x2",
    "WARNING: possible circular locking dependency detected",
    "WARNING: inconsistent lock state",
    "WARNING: suspicious RCU usage",
    "[ BUG: Invalid wait context ]",
    "BUG: sleeping function called from invalid context at mm/slab.h:1",
    "BUG: using smp_processor_id() in preemptible [00000000] code: sh/1",
    "BUG: KASAN: slab-use-after-free in hwk_insert_requests+0x1/0x2 [headwaiter_iosched]",
    "BUG kmalloc-64 (Tainted: G           O     ): Right Redzone overwritten",
    "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 30s!",
    "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [dd:77]",
    "kernel BUG at lib/list_debug.c:59!",
    "BUG: unable to handle page fault for address: 0000000000001000",
    "Oops: general protection fault, probably for non-canonical address 0xdead",
    "UBSAN: shift-out-of-bounds in core/lib/decay.h:10:2",
    "INFO: task fio:80 blocked for more than 120 seconds.",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "INFO: trying to register non-static key.",
    "ODEBUG: free active (active state 0) object: 0 object type: hrtimer hint: hwk_timer+0x0/0x1",
    "list_del corruption. prev->next should be x, but was y",
    "unreferenced object 0xffff888003e0f000 (size 1024):",
    "Kernel panic - not syncing: Attempted to kill init!",
]
NO_COMPLAINTS = [
    "rcu: \tRCU lockdep checking is enabled.",
    "Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
    "kasan: KernelAddressSanitizer initialized",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 15669)",
    "headwaiter_iosched: loading out-of-tree module taints kernel.",
    "I/O error, dev sda, sector 128 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "sd 0:0:0:0: [sda] tag#1 DEBUG sense",
]


@pytest.mark.parametrize("tool", ["python", "grep", pytest.param("busybox", marks=pytest.mark.needs("busybox"))])
def test_complaints_are_told_from_chatter_by_host_and_guest_alike(tmp_path: Path, tool: str) -> None:
    lines = [f"[   12.345678] {line}" for pair in zip(COMPLAINTS, NO_COMPLAINTS, strict=False) for line in pair]
    lines += [f"[   12.345678] {line}" for line in COMPLAINTS[len(NO_COMPLAINTS) :]]
    if tool == "python":
        found = [line for line in lines if COMPLAINT.search(line)]
    else:
        patterns = tmp_path / "complaints"
        patterns.write_text("".join(f"{pattern}\n" for pattern in KERNEL_COMPLAINTS))
        command = [*(["busybox"] if tool == "busybox" else []), "grep", "-E", "-f", str(patterns)]
        found = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == [line for line in lines if line[15:] in COMPLAINTS]
