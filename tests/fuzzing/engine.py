# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One target fuzzed in a child process: whatever it does there (an exception, a crash, a hang, all memory) is a finding.

Inputs that make the target behave in a new way (another message, another kind of result) join those that are mutated. The same
target, seed, corpus and number of executions give the same inputs.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .mutate import LARGEST_INPUT, Mutator, Records

CPU_S = 4.0
"""The longest that one execution may take."""
STUCK_S = 180.0
"""Without an execution for so long, the child is taken to hang where no signal of its own reaches it."""
MEMORY_BYTES = 1 << 30
"""More than there was at the start."""
CORPUS = Path(__file__).parent / "corpus"
_POOL = 3000
_MINIMISING = 400


class HangError(BaseException):
    """An execution took longer than CPU_S. No Exception, so that nothing that is tested catches it."""


@dataclass(frozen=True)
class Target:
    """What is fuzzed. `run(folder, data)` reads the input and returns what kind of behaviour it met.

    It raises whatever should not be raised. `folder` is the execution's own, for files.
    """

    name: str
    run: Callable[[Path, bytes], str]
    dictionary: Sequence[bytes] = ()
    records: Records | None = None


@dataclass
class Report:
    """What came of it."""

    target: str
    seed: int
    executions: int = 0
    behaviours: int = 0
    cpu_s: float = 0.0
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.executions / self.cpu_s if self.cpu_s else 0.0
        return (
            f"{self.target}: {self.executions} executions, {rate:.0f} a second, {self.behaviours} behaviours, "
            f"{len(self.findings)} findings (seed {self.seed})"
        )


def corpus(target: Target) -> list[bytes]:
    """The kept inputs of a target, in order of their names."""
    return [p.read_bytes() for p in sorted((CORPUS / target.name).iterdir())]


class _Shared:
    """Memory that parent and child share: counts, and the input under way."""

    _HEAD = struct.Struct("QQQ")

    def __init__(self) -> None:
        self.map = mmap.mmap(-1, 1 << 16)

    def write(self, executions: int, behaviours: int, data: bytes) -> None:
        self._HEAD.pack_into(self.map, 0, executions, behaviours, len(data))
        self.map[24 : 24 + len(data)] = data

    def read(self) -> tuple[int, int, bytes]:
        executions, behaviours, length = self._HEAD.unpack_from(self.map, 0)
        return executions, behaviours, self.map[24 : 24 + length]


def fuzz(target: Target, seed: int, executions: int, seconds: float, findings: Path, more: Sequence[bytes] = ()) -> Report:
    """Fuzz until so many executions or so many seconds of processor time are over. Findings become files in `findings`.

    `more` are inputs to begin with besides the corpus.
    """
    report = Report(target.name, seed)
    findings.mkdir(parents=True, exist_ok=True)
    shared = _Shared()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            _work(target, seed, executions, seconds, findings, [*corpus(target), *more], shared)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    status, usage, stuck = _wait(child, shared)
    report.executions, report.behaviours, data = shared.read()
    report.cpu_s = usage
    if status or stuck:
        how = "hang" if stuck else f"signal-{os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "engine"
        path = findings / f"{how}-{hashlib.sha1(data).hexdigest()[:12]}"
        path.write_bytes(data)
    report.findings = sorted(str(p) for p in findings.iterdir() if p.suffix != ".txt")
    return report


def _wait(child: int, shared: _Shared) -> tuple[int, float, bool]:
    last, since = -1, time.monotonic()
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return status, usage.ru_utime + usage.ru_stime, False
        executions = shared.read()[0]
        if executions != last:
            last, since = executions, time.monotonic()
        elif time.monotonic() - since > STUCK_S:
            os.kill(child, signal.SIGKILL)
            _, status, usage = os.wait4(child, 0)
            return status, usage.ru_utime + usage.ru_stime, True
        time.sleep(0.05)


def _hang(*_: object) -> None:
    raise HangError


class _Child:
    """The child's side: executions, and what they raise."""

    def __init__(self, target: Target, folder: Path, findings: Path, shared: _Shared) -> None:
        self.target, self.folder, self.findings, self.shared = target, folder, findings, shared
        self.executions = 0
        self.behaviours: set[str] = set()
        self.seen: set[str] = set()

    def attempt(self, data: bytes) -> tuple[str, BaseException | None]:
        """(behaviour, None), or ('', what was raised)."""
        self.shared.write(self.executions, len(self.behaviours), data)
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        try:
            return self.target.run(self.folder, data), None
        except (Exception, HangError) as e:
            return "", e
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def execute(self, data: bytes) -> bool:
        """Whether the input behaves in a way that is new."""
        behaviour, raised = self.attempt(data)
        self.executions += 1
        if raised:
            self._found(data, raised)
            return False
        new = behaviour not in self.behaviours
        self.behaviours.add(behaviour)
        return new

    def _found(self, data: bytes, raised: BaseException) -> None:
        key = _place(raised)
        if key in self.seen:
            return
        self.seen.add(key)
        if not isinstance(raised, HangError):
            data = self._minimised(data, key)
        name = f"{type(raised).__name__}-{hashlib.sha1(key.encode()).hexdigest()[:12]}"
        (self.findings / name).write_bytes(data)
        text = "".join(traceback.format_exception(raised))
        (self.findings / f"{name}.txt").write_text(f"{key}\n{text}", encoding="utf-8", errors="backslashreplace")

    def _minimised(self, data: bytes, key: str) -> bytes:
        """Less of the input that raises the same in the same place."""
        left, size = _MINIMISING, max(1, len(data) // 2)
        while left and size:
            at = 0
            while at < len(data) and left:
                left -= 1
                shorter = data[:at] + data[at + size :]
                raised = self.attempt(shorter)[1]
                if raised and _place(raised) == key:
                    data = shorter
                else:
                    at += size
            size //= 2
        return data


def _place(raised: BaseException) -> str:
    """What was raised, and where in the project's own code."""
    frames = traceback.extract_tb(raised.__traceback__)
    own = [f for f in frames if "/headwaiter/" in f.filename] or frames
    tail = f"{own[-1].filename.rpartition('/')[2]}:{own[-1].lineno}" if own else "?"
    return f"{type(raised).__name__} at {tail}" + (f": {raised}" if isinstance(raised, AssertionError) else "")


def _work(
    target: Target, seed: int, executions: int, seconds: float, findings: Path, seeds: list[bytes], shared: _Shared
) -> None:
    with open("/proc/self/statm", encoding="ascii") as f:
        size = int(f.read().split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES, hard))
    signal.signal(signal.SIGPROF, _hang)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    child = _Child(target, folder, findings, shared)
    rng = random.Random(f"{target.name} {seed}")
    mutator = Mutator(rng, target.dictionary, target.records)
    try:
        pool = [s for s in seeds if len(s) <= LARGEST_INPUT]
        for data in pool:
            child.execute(data)
        began = len(pool)
        while child.executions < executions and time.process_time() < seconds:
            # What is kept for ever, and what was found last, more often than the rest.
            kind = rng.random()
            if kind < 0.4:
                data = pool[rng.randrange(began)]
            else:
                data = pool[rng.randrange(len(pool))] if kind < 0.8 else pool[-1 - rng.randrange(min(len(pool), 50))]
            data = mutator.mutate(data, pool[rng.randrange(len(pool))])
            if child.execute(data):
                if len(pool) < _POOL:
                    pool.append(data)
                else:
                    pool[rng.randrange(began, len(pool))] = data
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shared.write(child.executions, len(child.behaviours), b"")
