# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `again`: what programs get done in the lab, beside replays of a recording of them.

Each kind of replay is of the recording that was made under one scheduler, and stands beside the lab's run under another. The run
in the middle counts of those with small changes of the load, and the lowest and highest are told: where they lie far apart, a
run of the lab is one of several that there might have been.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headwaiter.base.errors import Problem
from headwaiter.base.records import keyed
from headwaiter.drives.choose import open_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.engine.sim import ConstantDrive, Drive, Forest, Options, Task, simulate
from headwaiter.experiments.example import sources
from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.schema import ProgramReplay, ProgramRun
from headwaiter.lab.script import Script, guest
from headwaiter.study.handover import handover
from headwaiter.study.inkernel import depth_of, kernel_options, untold
from headwaiter.study.ongoing import ThreadsDone, done_in, ongoing, work
from headwaiter.study.perturb import perturbed
from headwaiter.study.plugs import joined
from headwaiter.study.trial import first_run
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, Workload, read_workload

KINDS = tuple(itertools.product((False, True), (False, True)))
"""(programs go on, as in a kernel)."""
RUNS = 8
"""With small changes of the load, beside the one without."""
NR_REQUESTS = 64
"""As lab/guest/library.sh sets it."""
_HANG_S = 1200
"""Wall time: the guest says nothing while its programs run."""
_LIMIT_S = 4 * 3600


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Boot, and make rows: of each program under each scheduler what it got done, and what it does in each kind of replay."""
    parameters = script.environment(given)
    first, names = parameters["FIRST"], parameters["SCHEDULERS"].split()
    if first not in names:
        raise Problem(f"FIRST={first} is not among SCHEDULERS, and would not run")
    whole = guest(script, on, given, say)
    whole = replace(whole, files=whole.files | sources(on, say), hang_s=_HANG_S, limit_s=_LIMIT_S)
    outcome = boot(whole, say)
    files = dict(outcome.files)
    runs = [ProgramRun(**json.loads(line)) for line in files["results"].splitlines()]
    service_ns = int(parameters["SERVICE_NS"])
    drive: Drive = ConstantDrive(service_ns) if service_ns else open_drive(parameters["DRIVE"])
    depth = 1 if service_ns else int(parameters["DEPTH"])
    rows = [keyed(one) for one in runs]
    for apart in dict.fromkeys(one.apart_ms for one in runs):
        say(f"replay: programs that begin {apart} ms apart")
        with in_file(files[f"{first}.{apart}.blktrace.0"]) as path:
            found = Replays(path, drive, first, depth).beside([one for one in runs if one.apart_ms == apart])
        rows += [keyed(one) for one in found]
    files["results"] = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    return GuestOutcome(files, outcome.console)


@contextmanager
def in_file(data: bytes) -> Iterator[Path]:
    """A file with these bytes, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="headwaiter-") as folder:
        path = Path(folder) / "recording"
        path.write_bytes(data)
        yield path


@dataclass(frozen=True)
class Replays:
    """A recording made under `scheduler`, on a drive that takes so many commands at once."""

    path: Path
    drive: Drive
    scheduler: str
    depth: int = 1

    def beside(self, runs: Sequence[ProgramRun], kinds: Sequence[tuple[bool, bool]] = KINDS) -> list[ProgramReplay]:
        """Return what the programs of these runs do in replays of each kind, beside what they did."""
        recording = joined(read_workload(self.path, self.drive, Reading(None)))
        names = {one.program: frozenset(one.names.split()) for one in runs}
        cases = [(name, kind) for name in dict.fromkeys(one.scheduler for one in runs) for kind in kinds]

        def paces(case: tuple[str, tuple[bool, bool]]) -> list[dict[str, float]]:
            return self._paces(recording, names, *case)

        # The simulator runs outside Python's lock, so threads are enough.
        with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
            found = dict(zip(cases, pool.map(paces, cases), strict=True))
        return [
            _row(one, kind, sorted(each.get(one.program, 0.0) for each in found[one.scheduler, kind]))
            for one in runs
            for kind in kinds
        ]

    def _paces(
        self, recording: Workload, names: Mapping[str, frozenset[str]], scheduler: str, kind: tuple[bool, bool]
    ) -> list[dict[str, float]]:
        """MB/s by program, of the run without changes and those with."""
        goes_on, in_kernel = kind
        assert recording.trace and isinstance(recording.load, Forest)
        name = next((n for n in catalogue() if find(n).kernel_name == scheduler), scheduler)
        variant, options = Variant(name, name), MEASURED.apply(Options(join_arriving=True, nr_requests=NR_REQUESTS))
        options = replace(options, queue_depth=self.depth, record=True)
        if in_kernel:
            # The guest has one processor, which blktrace does not record.
            options = replace(options, one_processor=True)
            told = handover(recording.trace)
            options = told.apply(options) if told else options
            options = kernel_options(options, name, depth_of(self.drive, options), self.scheduler)
            variant = untold(variant)
        whole = ongoing(recording.trace, recording.load, self.drive.sectors)
        load = first_run(variant, self.drive, whole, options)[0] if goes_on else recording.load
        found = []
        for number in range(RUNS + 1):
            other, conditions = perturbed(load, options, number)
            outcome = simulate(name, self.drive, other, variant.settings, conditions)
            assert isinstance(other, Forest)
            found.append(by_program(done_in(outcome.rows, other), programs_of(whole.tasks, names)))
        return found


def programs_of(tasks: Sequence[Task], names: Mapping[str, frozenset[str]]) -> dict[int, str]:
    """The program that each thread of control belongs to, by the names of its processes; the kernel's own are nobody's."""
    votes: dict[int, Counter[str]] = {}
    for task in tasks:
        for program, called in names.items():
            if task.name in called:
                votes.setdefault(task.group, Counter())[program] += 1
    return {group: count.most_common(1)[0][0] for group, count in votes.items()}


def by_program(done: ThreadsDone, programs: Mapping[int, str]) -> dict[str, float]:
    """MB/s of each program, of all its threads of control together."""
    threads = {program: np.array([g for g, p in programs.items() if p == program]) for program in programs.values()}
    return {program: done.pace(each) / 1e6 for program, each in threads.items()}


def mbps(one: ProgramRun) -> float:
    """Return what a program got done in the lab, by the time that it was at work."""
    return work(one.read_bytes, one.written_bytes) / 1e6 / one.elapsed_s


def _row(one: ProgramRun, kind: tuple[bool, bool], paces: Sequence[float]) -> ProgramReplay:
    middle, lab = paces[len(paces) // 2], mbps(one)
    return ProgramReplay(
        scheduler=one.scheduler,
        apart_ms=one.apart_ms,
        program=one.program,
        goes_on=kind[0],
        in_kernel=kind[1],
        lab_mbps=round(lab, 3),
        replay_mbps=round(middle, 3),
        low_mbps=round(paces[0], 3),
        high_mbps=round(paces[-1], 3),
        off_percent=round(100 * (middle / lab - 1), 1),
    )
