# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boot a guest in virtual time, follow it, and collect what it sends.

Time in the guest is the count of its instructions (`-icount`): 2^shift ns each, and an idle guest jumps to its next timer.
With the fixed clock and no address randomisation the same input gives the same bytes. The guest's console arrives on its
first serial line; lines that begin with "@@" are for us: "@@ say TEXT", "@@ fail TEXT", "@@ done", and "@@ complaints are
expected" up to "@@ complaints are failures" where a script provokes the kernel's checks. Results come on the second line,
each as a header "file NAME BYTES" and its bytes.
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.lab.host import need, running, source_folder, temporary_folder
from headwaiter.lab.initramfs import Initramfs
from headwaiter.lab.kernels import Kernel, Progress

LAST_LINES = 15
COMPLAINT_LINES = 60
LAST_COLUMNS = 200
# What a kernel's complaint looks like, as an extended regular expression: the guest's shell searches the kernel's log for
# the same. Lockdep, RCU and all of WARN() say "WARNING:"; KASAN, atomic sleep, slab and workqueue checks say "BUG".
KERNEL_COMPLAINTS = (
    "WARNING:",
    r"\bBUG\b",
    "Oops",
    "Kernel panic",
    "general protection fault",
    "Call Trace:",
    "INFO: (task|rcu|trying to register|lockdep is turned off|[Oo]bject|[Ss]lab)",
    "(UBSAN|KASAN|ODEBUG):",
    "list_(add|del) corruption",
    "unreferenced object",
)
COMPLAINT = re.compile("|".join(KERNEL_COMPLAINTS))


@dataclass
class Guest:
    """A guest to boot. `script` is sourced by the guest's shell after the library of lab/guest; `environment` is set there."""

    kernel: Kernel
    script: str
    modules: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)  # of the host
    packed_modules: list[str] = field(default_factory=list)  # there, but not inserted
    own_modules: dict[str, bytes] = field(default_factory=dict)  # inserted after those
    tools: dict[str, bytes] = field(default_factory=dict)  # programs by name, for /bin
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    executables: dict[str, bytes] = field(default_factory=dict)
    memory_mib: int = 1024
    cpus: int = 1
    processor: str = "qemu64"
    """As QEMU names it; a host's programs may need a better one."""
    shift: int | None = 1  # one instruction takes 2^shift ns; None: the guest's time is the host's, and nothing repeats
    parameters: str = "quiet"  # of the kernel, beside those that all guests have
    hang_s: float = 120  # of wall time without a sign of life
    limit_s: float = 900  # of wall time in all

    def initramfs(self) -> bytes:
        """The guest's file system."""
        image = Initramfs()
        image.add_program("busybox")
        image.add_folder("tmp")
        for tool in self.programs:
            image.add_program(tool)
        guest = source_folder() / "lab" / "guest"
        image.add("init", (guest / "init").read_bytes(), executable=True)
        image.add("lab/library.sh", (guest / "library.sh").read_bytes())
        image.add("lab/script.sh", self.script.encode())
        variables = "".join(f"{name}='{value}'\n" for name, value in sorted(self.environment.items()))
        image.add("lab/environment.sh", variables.encode())
        image.add("lab/complaints", "".join(f"{pattern}\n" for pattern in KERNEL_COMPLAINTS).encode())
        modules = self.kernel.modules(self.modules) | self.own_modules
        for name, data in (self.kernel.modules(self.packed_modules) | modules).items():
            image.add(f"lab/modules/{name}.ko", data)
        image.add("lab/insmod", "".join(f"{name}\n" for name in modules).encode())
        for name, data in self.tools.items():
            image.add(f"bin/{name}", data, executable=True)
        for path, data in self.files.items():
            image.add(path, data)
        for path, data in self.executables.items():
            image.add(path, data, executable=True)
        return image.pack()


@dataclass(frozen=True)
class GuestOutcome:
    """The files that came back, by name, and the console's lines."""

    files: dict[str, bytes]
    console: list[str]


def boot(guest: Guest, say: Progress) -> GuestOutcome:
    """Boot, run to power-off, return the results; Problem when it fails, complains or hangs."""
    qemu = need("qemu-system-x86_64")
    with temporary_folder() as work, _sink(work / "events") as events:
        (work / "initrd").write_bytes(guest.initramfs())
        append = "console=ttyS0 panic=-1 nokaslr mitigations=off tsc=reliable random.trust_cpu=off rdinit=/init"
        append += " cryptomgr.notests"  # they would go on beside the script
        # Recording is for its lock, under which the processor and QEMU's main loop take turns. Without, the main loop may
        # find the processor halted before the instructions of its last stretch are counted, and jump to a timer from a
        # wrong time: a few per cent of all runs came out different on a busy host. QEMU records one processor only.
        icount = f"shift={guest.shift},sleep=off" + (f",rr=record,rrfile={events}" if guest.cpus == 1 else "")
        clock = ["tcg,thread=multi"] if guest.shift is None else ["tcg", "-icount", icount]
        command = [
            qemu, "-accel", *clock,
            "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-smp", str(guest.cpus), "-cpu", guest.processor,
            "-m", f"{guest.memory_mib}M",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-serial", "stdio", "-serial", f"file:{work / 'results'}",
            "-kernel", str(guest.kernel.image), "-initrd", str(work / "initrd"),
            "-append", f"{append} {guest.parameters}",
        ]  # fmt: skip
        console = _follow(command, guest, say)
        results = work / "results"
        return GuestOutcome(_unpack(results.read_bytes() if results.exists() else b"", console), console)


@contextmanager
def _sink(path: Path) -> Iterator[Path]:
    """A FIFO at `path`: what is written there is read, and forgotten. Programs are given no device as a file of theirs."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)  # as long as it is open, the end of another one is not the end
    os.set_blocking(reader, True)

    def forget() -> None:
        while os.read(reader, 1 << 16):
            pass

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        yield path
    finally:
        os.close(writer)
        thread.join()
        os.close(reader)


def _follow(command: list[str], guest: Guest, say: Progress) -> list[str]:
    """Run QEMU to its end and return the console's lines; Problem, after the guest's last words on stderr, if all is not well.

    QEMU ends when this does, however it ends.
    """
    console: list[str] = []
    failure = doing = ""
    complaint: int | None = None  # where in the console the kernel's first is
    done = expected = False
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            for line in _lines(process, guest):
                if line.startswith("@@ say "):
                    doing = line[7:]
                    say(f"{guest.kernel.release}: {doing}")
                elif line.startswith("@@ fail "):
                    failure = failure or line[8:]
                elif line == "@@ done":
                    done = True
                elif line.startswith("@@ complaints are "):
                    expected = line.endswith("expected")
                else:
                    if complaint is None and not expected and COMPLAINT.search(line):
                        complaint = len(console)
                    console.append(line)
        except _Hang as hang:
            failure = failure or str(hang)
    if complaint is not None:
        failure = f"the kernel reports: {console[complaint].strip()}{f'; then: {failure}' if failure else ''}"
    if failure or not done:
        _show(console, complaint)
        during = f" (during: {doing})" if doing else ""
        raise Problem(f"lab: {guest.kernel.release}: {failure or 'the guest ended early'}{during}")
    return console


class _Hang(Exception):
    """The guest is given up."""


def _lines(process: subprocess.Popen[bytes], guest: Guest) -> Iterator[str]:
    """The console's lines as they come; _Hang when none comes for too long."""
    assert process.stdout is not None
    started = time.monotonic()
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = started + guest.limit_s - time.monotonic()
            if left <= 0:
                raise _Hang(f"the guest does not finish within {guest.limit_s:g} s")
            if not selector.select(min(guest.hang_s, left)):
                if left > guest.hang_s:
                    raise _Hang(f"the guest hangs: no sign of life for {guest.hang_s:g} s")
                continue
            data = os.read(process.stdout.fileno(), 65536)
            *lines, rest = (rest + data).split(b"\n")
            if not data:
                lines, rest = [rest] if rest else [], b""
            yield from (raw.decode(errors="replace").rstrip("\r") for raw in lines)
            if not data:
                return


def _show(console: list[str], complaint: int | None) -> None:
    """Print the guest's last words on stderr, and before them what its kernel complained about."""
    last = max(0, len(console) - LAST_LINES)
    if complaint is not None and complaint < last:
        end = min(complaint + COMPLAINT_LINES, last)
        words = console[complaint:end] + (["…"] if end < last else []) + console[last:]
    else:
        words = console[last:]
    for line in words:
        print(f"  | {line[:LAST_COLUMNS]}", file=sys.stderr)


def _unpack(data: bytes, console: list[str]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        header, _, _ = data[at:].partition(b"\n")
        words = header.decode(errors="replace").split()
        at += len(header) + 1
        if len(words) != 3 or words[0] != "file" or not words[2].isdigit() or at + int(words[2]) > len(data):
            raise Problem(f"lab: results are damaged at byte {at}: {header[:60]!r}")
        files[words[1]] = data[at : at + int(words[2])]
        at += int(words[2])
    return files
