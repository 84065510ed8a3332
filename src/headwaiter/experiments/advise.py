# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `advise`: random jobs for the guest, advice from their recordings, and how good that was.

Each job was recorded under one of several schedulers, and ran as long under each of them. From that recording alone `advise`
ranks them all. Its first place is held against the scheduler under which the job did best in the guest. Where all ran twice, so
is that of the second run: no advice can be expected to know more of a run than another run of the same programs tells.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.advice.advice import advise
from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.base.reading import read_text
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.fio.mixed import mixed_job
from headwaiter.judge.conditions import RunConditions
from headwaiter.lab import python
from headwaiter.lab.agree import PREFACE, process_rate
from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.script import Script, guest
from headwaiter.study.compare import EVEN
from headwaiter.study.workload import Reading, read_workload
from headwaiter.traces import Source, recording

_IMPORTS = "from headwaiter.queue import devices; from headwaiter.recorder import record"
_HANG_S = 1800
"""Wall time: the guest says nothing while a job runs."""
_LIMIT_S = 4 * 3600
NOTHING = 0.5
"""A process that has done no I/O counts as having done this share of one."""
_NUMBER = re.compile("[1-9][0-9]{0,8}")
TOLD = 0.05
"""Advice that is within this share of the best is right."""
AROUND_S = 2
"""So much longer a job runs when it is recorded, so that none of its processes ends in the recording."""
FASTEST_MIB_S = 280
"""No disk with one set of heads reads faster."""
_COLUMNS = {"run": {"kernel", "job", "scheduler", "progress"}, "advice": {"kernel", "job", "among"}}
"""What the rows of an earlier run have at least, by what they are about."""


@dataclass(frozen=True)
class Ranked:
    """The ranking that `advise` makes from a recording.

    ahead_percent: of schedulers by their names in the kernel, against the one in force.
    """

    ahead_percent: Mapping[str, float]
    outcome: str
    advised: str
    """The scheduler that would be in force if the advice was taken."""


@dataclass(frozen=True)
class Got:
    """Work done by a process of fio."""

    bytes: int
    ios: int
    mbps: float


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Boot, and make rows: of each job and scheduler what it got, and of each job what advise said and what that is worth."""
    parameters = script.environment(given)
    jobs, names, first = parameters["JOBS"].split(), parameters["SCHEDULERS"].split(), parameters["FIRST"]
    if first not in names:
        raise Problem(f"FIRST={first} is not among SCHEDULERS, and would not run")
    if parameters["RUNS"] not in ("1", "2"):
        raise Problem(f"RUNS={parameters['RUNS']}: expected 1 or 2")
    for key in ("JOBS", "RUNTIME", "DEPTH"):
        if not all(_NUMBER.fullmatch(word) for word in parameters[key].split()):
            raise Problem(f"{key}={parameters[key]}: expected numbers from 1")
    if parameters["MEASURED"] and not parameters["STORED"]:
        raise Problem("MEASURED needs the recordings, in STORED=FOLDER")
    if parameters["STORED"]:
        measured = _measured(Path(parameters["MEASURED"]), on.name) if parameters["MEASURED"] else None
        return _ranked_rows(_stored(Path(parameters["STORED"]), jobs, names, parameters), [], jobs, parameters, say, measured)
    machine = guest(script, on, given, say)
    sectors = open_drive(parameters["DRIVE"]).sectors
    runtime_s = int(parameters["RUNTIME"])
    unread_mib = FASTEST_MIB_S * (runtime_s + AROUND_S)
    for job in jobs:
        for name, longer_s in ((job, 0), (f"{job}.recorded", AROUND_S)):
            text = PREFACE + mixed_job(int(job), sectors * SECTOR_BYTES, longer_s + runtime_s, unread_mib)
            machine.files[f"/lab/jobs/{name}.fio"] = text.encode()
    python.pack(machine, _IMPORTS)
    machine.hang_s, machine.limit_s = _HANG_S, _LIMIT_S
    outcome = boot(machine, say)
    return _ranked_rows(dict(outcome.files), outcome.console, jobs, parameters, say)


def _stored(folder: Path, jobs: Sequence[str], names: Sequence[str], parameters: Mapping[str, str]) -> dict[str, bytes]:
    """The files of a run that were stored in a folder, so that its recordings can be ranked anew; Problem if one is missing.

    The lab may have been stopped before the second run of the last jobs: they have one.
    """
    wanted = [f"{job}.recording" for job in jobs]
    if not parameters["MEASURED"]:
        wanted += [f"{job}.{name}.fio" for job in jobs for name in names]
        if parameters["RUNS"] == "2":
            again = {job: [f"{job}.{name}.again.fio" for name in names] for job in jobs}
            wanted += [name for files in again.values() if all((folder / name).exists() for name in files) for name in files]
    try:
        return {name: (folder / name).read_bytes() for name in wanted}
    except OSError as error:
        raise Problem(f"{error.filename}: {error.strerror}") from None


def _ranked_rows(
    files: dict[str, bytes],
    console: list[str],
    jobs: Sequence[str],
    parameters: Mapping[str, str],
    say: Progress,
    measured: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> GuestOutcome:
    """What came back, with the rows that it makes, or that those of an earlier run become."""
    found = []
    for job in jobs:
        say(f"advise: job {job}")
        try:
            said = ranked(files[f"{job}.recording"], parameters["DRIVE"], int(parameters["DEPTH"]))
        except NoRequestsError:
            say(f"advise: job {job} asked nothing of the disk")
            continue
        if measured is None:
            found += rows_of(job, files, parameters, said)
        elif job in measured:
            found += ranked_anew(measured[job], parameters["FIRST"], said)
        else:
            raise Problem(f"{parameters['MEASURED']}: there is no job {job} of this kernel")
    files["results"] = b"".join(json.dumps(row).encode() + b"\n" for row in found)
    return GuestOutcome(files, console)


def _measured(path: Path, kernel: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of each job under one kernel that `lab run advise --json` has printed; Problem if the file is something else."""
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        document = json.loads(read_text(path))
        if document["experiment"] != "advise":
            raise KeyError
        for row in document["results"]:
            if not row.keys() >= _COLUMNS[row["what"]]:
                raise KeyError
            if row["kernel"] == kernel:
                found.setdefault(row["job"], []).append({key: value for key, value in row.items() if key != "kernel"})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Problem(f"{path}: this is not what `headwaiter lab run advise --json` prints") from None
    return found


def rows_of(job: str, files: Mapping[str, bytes], parameters: Mapping[str, str], said: Ranked) -> list[dict[str, Any]]:
    """The rows of a job, from what the guest has sent of it, and `advise` has said: see judged().

    Where both the kernel's own schedulers and ours ran, a second row of advice is about the former alone: about what every
    machine has.
    """
    names, first = parameters["SCHEDULERS"].split(), parameters["FIRST"]
    runs = [
        {name: processes(json.loads(files[f"{job}.{name}{run}.fio"])) for name in names}
        for run in ("", ".again")[: int(parameters["RUNS"])]
        if f"{job}.{first}{run}.fio" in files
    ]
    found = judged(job, runs[0], first, said, *runs[1:])
    own = [name for name in names if _is_kernels(name)]
    if first in own and 1 < len(own) < len(names):
        some = [{name: run[name] for name in own} for run in runs]
        found.append(judged(job, some[0], first, said, *some[1:])[-1] | {"among": "kernel"})
    return found


def processes(fio: Mapping[str, Any]) -> list[Got]:
    """Return what fio says of each of its processes, in their order."""
    found = []
    for job in fio["jobs"]:
        ways = [job[way] for way in ("read", "write")]
        size, ios = (sum(one[key] for one in ways) for key in ("io_bytes", "total_ios"))
        found.append(Got(size, ios, process_rate(job) / 1e6))
    return found


def progress(got: Sequence[Got], reference: Sequence[Got]) -> float:
    """Return how fast processes get their work done, each counting alike, as a ratio: the geometric mean over processes."""
    logs = [
        # A process that got nothing at all got less than an I/O.
        math.log(max(one.mbps, least) / max(other.mbps, least))
        for one, other in zip(got, reference, strict=True)
        for least in [NOTHING * min((p.mbps / p.ios for p in (one, other) if p.ios), default=1.0)]
    ]
    return math.exp(sum(logs) / len(logs))


def ranked(raw: bytes, drive_name: str, depth: int) -> Ranked:
    """What `advise` says of the recording in these bytes, on the drive that was recorded; it takes so many commands at once."""
    with tempfile.TemporaryDirectory(prefix="headwaiter-") as folder:
        path = Path(folder) / "recording.hwr"
        path.write_bytes(raw)
        source, drive = Source(path), open_drive(drive_name)
        recorded = recording.of(source)
        conditions = RunConditions(queue_depth=depth)
        # A recording of some seconds is too short for the gate, and long enough to be held against the same seconds.
        found = advise(read_workload(path, drive, Reading(None), source), drive, conditions, recorded=recorded, anyway=True)
    if found.answer is None or not found.answer.margins:
        raise Problem(f"advise ranks nothing: {'; '.join(one.text for one in found.advice)}")
    ahead = {_in_kernel(margin.scheduler): margin.ahead_percent for margin in found.answer.margins}
    return Ranked(ahead, found.answer.outcome, _in_kernel(found.answer.best or found.answer.baseline))


def _in_kernel(variant: str) -> str:
    name, colon, settings = variant.partition(":")
    return f"{find(name).kernel_name}{colon}{settings}"


def judged(
    job: str, got: Mapping[str, Sequence[Got]], first: str, said: Ranked, again: Mapping[str, Sequence[Got]] | None = None
) -> list[dict[str, Any]]:
    """A row for each scheduler, and one for the advice.

    got: by scheduler what each process got; under `first` it was recorded. What counts is what `advise` judges by: how fast
    programs get their work done. `of_best` is the progress under the one in advise's first place as a share of that under the
    best; `advised_of_best` the same of the one that the advice leaves in force; `again_of_best` the same of the one that is best
    in `again`, a second run. `holds`: the first place is within TOLD of the best, or the second run knows no better.
    """
    _check_ranked(got, said)
    paces = {name: progress(each, got[first]) for name, each in got.items()}
    rows: list[dict[str, Any]] = [
        {
            "what": "run",
            "job": job,
            "scheduler": name,
            "processes": len(each),
            "mbps": round(sum(one.mbps for one in each), 3),
            "progress": round(paces[name], 3),
            "ahead_percent": round(said.ahead_percent[name], 1),
        }
        for name, each in got.items()
    ]
    advice, share = _advice(job, paces, first, said)
    if again is not None:
        second = {name: progress(each, again[first]) for name, each in again.items()}
        known = max(second, key=lambda name: second[name])
        advice |= {"again": known, "again_of_best": share[known]}
    return [*rows, advice | {"holds": _holds(advice)}]


def ranked_anew(rows: Sequence[Mapping[str, Any]], first: str, said: Ranked) -> list[dict[str, Any]]:
    """The rows of a job, with what `advise` says now of a recording of it: what each scheduler gave stays as it was measured."""
    paces = {row["scheduler"]: row["progress"] for row in rows if row["what"] == "run"}
    _check_ranked(paces, said)
    found = [{**row, "ahead_percent": round(said.ahead_percent[row["scheduler"]], 1)} for row in rows if row["what"] == "run"]
    for row in rows:
        if row["what"] == "advice":
            some = {name: pace for name, pace in paces.items() if row["among"] == "all" or _is_kernels(name)}
            if first not in some:
                raise Problem(f"job {row['job']} was not measured under FIRST={first}")
            advice = _advice(row["job"], some, first, said)[0] | {"among": row["among"]}
            advice |= {key: row[key] for key in ("again", "again_of_best") if key in row}
            found.append(advice | {"holds": _holds(advice)})
    return found


def _check_ranked(names: Iterable[str], said: Ranked) -> None:
    if missing := [name for name in names if name not in said.ahead_percent]:
        raise Problem(f"advise does not rank {', '.join(missing)}")


def _advice(job: str, paces: Mapping[str, float], first: str, said: Ranked) -> tuple[dict[str, Any], dict[str, float]]:
    """The row about advise's first place among these, and the progress under each as a share of that under the best."""
    best = max(paces, key=lambda name: paces[name])
    place = max(paces, key=lambda name: said.ahead_percent[name])
    # Where nothing is ahead of what is in force, that stays.
    place = place if said.ahead_percent[place] > 100 * EVEN else first
    share = {name: round(pace / paces[best], 3) for name, pace in paces.items()}
    advice: dict[str, Any] = {"what": "advice", "among": "all", "job": job, "scheduler": place, "best": best}
    advice |= {"of_best": share[place], "outcome": said.outcome}
    # The advice may be one of those that did not run.
    if said.advised in share:
        advice |= {"advised": said.advised, "advised_of_best": share[said.advised]}
    return advice, share


def _holds(advice: Mapping[str, Any]) -> bool:
    """Whether the first place is within TOLD of the best, or the second run knows no better."""
    return advice["of_best"] >= 1 - TOLD or ("again" in advice and advice["again_of_best"] <= advice["of_best"])


def _is_kernels(variant: str) -> bool:
    """Whether every kernel has it: a model of one of its own schedulers, with or without settings."""
    name = variant.partition(":")[0]
    return name in catalogue() and find(name).is_model
