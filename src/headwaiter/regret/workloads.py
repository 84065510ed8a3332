# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A folder of workloads, each with a line that says what is contested in it.

The line is a comment in the file, `# contested: …`, or a row of a table in the folder's README.md, `| NAME | … |`, under a head
`| workload | contested |`. The files are fio jobs, chains (chains.py), or whatever else headwaiter reads.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from headwaiter.base.errors import Problem, plain, shown
from headwaiter.base.paths import WORKLOADS
from headwaiter.base.reading import exists, is_folder, read_bytes, read_text
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import Drive, Forest, Load, Options
from headwaiter.fio import JobLoad, load_jobs
from headwaiter.fio.mixed import mixed_job
from headwaiter.regret.chains import Chain, chain_load, parse_chain
from headwaiter.regret.contested import Metric, parse_contested
from headwaiter.study.workload import Reading, read_recording, read_workload, replay
from headwaiter.traces import Source, Trace

BUNDLED = WORKLOADS / "regret"
_LINE = re.compile(rb"^\s*[#;]+\s*contested:(.*)$", re.MULTILINE)
_ROW = re.compile(r"\|([^|]+)\|([^|]+)\|\s*")
_GENERATOR = re.compile(rb"^\s*generator\s*=", re.MULTILINE)
_HEAD_BYTES = 1 << 16
_README = "README.md"
_PASS_S = 20.0
"""How long a chain's stream is on a disk."""
_SSD_S, _QUEUED_SSD_S, _PATIENT_SSD_S = 3.0, 1.0, 8.0
"""How long an SSD works at most: SATA's, one with more queues, and either where somebody comes once a second."""
_SATA_DEPTH = 32
_RANDOM_S = 10
"""How long a random job runs on a disk."""


@dataclass(frozen=True)
class Contest:
    """A workload and what is contested in it."""

    name: str
    path: Path
    metrics: tuple[Metric, ...]
    chain: Chain | None = None
    job: int | None = None
    """The number of a random job, which is drawn for each drive; there is no file then."""

    @property
    def is_of_programs(self) -> bool:
        """Return whether the work of programs counts, and not only I/Os of the disk."""
        return any(m.kind == "progress" for m in self.metrics)

    @property
    def is_patient(self) -> bool:
        """Return whether it takes seconds whatever the drive: bursts, the start of a program."""
        return any(m.kind in ("burst", "span") for m in self.metrics)


@dataclass(frozen=True)
class Fitted:
    """A workload on a drive. What counts is from begin_ns to end_ns; all of it if that is None."""

    load: Load
    window_ns: tuple[int, int] | None


def read_contests(paths: Sequence[Path], otherwise: str | None = None) -> list[Contest]:
    """The workloads of folders and files, in the order of a README's table, else by name. Problem names what is wrong, and where.

    otherwise: what is contested in files given by name that do not say it.
    """
    found: list[Contest] = []
    for path in paths:
        if is_folder(path):
            found += _folder(path)
        else:
            line = _comment(path)
            found.append(_contest(path, otherwise if line is None else line, "--contested" if line is None else f"{path}"))
    names = [c.name for c in found]
    if twice := next((c for c in found if names.count(c.name) > 1), None):
        raise Problem(f"{twice.path}: there are two workloads of the name '{shown(twice.name)}'")
    return found


def random_contests(count: int, first: int, contested: str | None = None) -> list[Contest]:
    """So many random jobs (fio/mixed.py), by their numbers. What is contested is progress, if nothing else is said."""
    metrics = parse_contested("--contested", contested or "progress")
    numbers = range(first, first + count)
    return [Contest(f"random-{number}", Path(f"random-{number}.fio"), metrics, job=number) for number in numbers]


def _folder(folder: Path) -> list[Contest]:
    rows = _table(folder / _README) if exists(folder / _README) else {}
    found: dict[str, Contest] = {}
    for path in sorted(p for p in folder.iterdir() if p.name != _README and p.is_file()):
        name = path.name.split(".")[0]
        line, where = _comment(path), f"{path}"
        if line is None and name in rows:
            where, line = rows[name]
        if line is not None or path.suffix == ".fio":
            if name in found:
                raise Problem(f"{path}: {found[name].path.name} is of the same name")
            found[name] = _contest(path, line, where)
    for name in [name for name in rows if name not in found]:
        where, line = rows[name]
        path = BUNDLED / f"{name}.toml"  # chains are known by name
        if not path.is_file():
            raise Problem(f"{where}: there is no workload '{shown(name)}' in {folder}")
        found[name] = _contest(path, line, where)
    if not found:
        raise Problem(f"{folder}: contains no workload with a line of what is contested")
    return [found[name] for name in sorted(found, key=lambda name: _order(rows, name))]


def _order(rows: dict[str, tuple[str, str]], name: str) -> tuple[int, list[str | int]]:
    """Sort as in the table; else by name, numbers in it as numbers."""
    at = list(rows).index(name) if name in rows else len(rows)
    return at, [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _comment(path: Path) -> str | None:
    try:
        with path.open("rb") as f:
            match = _LINE.search(f.read(_HEAD_BYTES))
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    return match[1].decode("utf-8", "replace").strip() if match else None


def _table(readme: Path) -> dict[str, tuple[str, str]]:
    """Return for each workload in the README's table where that stands, and what is contested."""
    rows: dict[str, tuple[str, str]] = {}
    inside = False
    for number, line in enumerate(read_text(readme).splitlines(), 1):
        match = _ROW.fullmatch(line)
        name, text = (cell.strip() for cell in match.groups()) if match else ("", "")
        if not match or (name, text) == ("workload", "contested"):
            inside = bool(match)
        elif inside and name.strip("-: "):
            rows[name.strip("`")] = (f"{readme}:{number}", text)
    return rows


def _contest(path: Path, line: str | None, where: str) -> Contest:
    if line is None:
        raise Problem(f"{path}: does not say what is contested in it (a line '# contested: MB/s in all; …')")
    metrics = parse_contested(where, line)
    chain = None
    if path.suffix == ".toml" and not _GENERATOR.search(read_bytes(path)):
        chain = parse_chain(path, read_text(path))
    return Contest(plain(path.name.split(".")[0]), path, metrics, chain)


def fit(contest: Contest, drive: Drive, options: Options) -> Fitted:
    """The workload on a drive, cut to what an SSD does in a few seconds; the first quarter does not count."""
    limit_s = _limit_s(drive, contest.is_patient)
    if contest.chain:
        return Fitted(chain_load(contest.chain, drive, options, limit_s or _PASS_S), None)
    load = _load(contest, drive, Reading(seed=options.seed))
    if isinstance(load, JobLoad):
        load = _cut(load, limit_s)
    _check(contest, load)
    end_ns = max((job.fields["runtime_ns"] for job in load.jobs), default=0) if isinstance(load, JobLoad) else 0
    return Fitted(load, (end_ns // 4, end_ns) if end_ns else None)


def _load(contest: Contest, drive: Drive, reading: Reading) -> Load:
    if contest.job is not None:
        text = mixed_job(contest.job, drive.sectors * SECTOR_BYTES, _RANDOM_S)
        return load_jobs(contest.path, drive.sectors, text.encode())
    trace = _recording(contest.path)
    work = replay(contest.path, trace, drive, reading) if trace else read_workload(contest.path, drive, reading)
    return work.load


@lru_cache(maxsize=8)
def _recording(path: Path) -> Trace | None:
    """The trace in a file, read once for all drives and seeds; None if it holds jobs or a generated workload."""
    return read_recording(path, Reading(), Source(path))


def _limit_s(drive: Drive, patient: bool) -> float | None:
    """Return how long jobs run at most; None: as long as they say."""
    _, depth, rotates = getattr(drive, "facts", (0, 1, True))
    if rotates:
        return None
    return _PATIENT_SSD_S if patient else _SSD_S if depth <= _SATA_DEPTH else _QUEUED_SSD_S


def _cut(load: JobLoad, limit_s: float | None) -> JobLoad:
    if limit_s is None:
        return load
    limit_ns = round(limit_s * 1e9)
    jobs = (
        dataclasses.replace(job, fields={**job.fields, "runtime_ns": min(job.fields["runtime_ns"], limit_ns)})
        for job in load.jobs
    )
    return dataclasses.replace(load, jobs=tuple(jobs))


def _check(contest: Contest, load: Load) -> None:
    """Return whether those whom the metrics name are there."""
    for m in contest.metrics:
        for name in (m.of, m.during):
            if name and not members(load, name):
                raise Problem(f"{contest.path}: contested: there is no job or task '{shown(name)}'")
        if m.kind == "burst" and (isinstance(load, Forest) or not all(burst_ios(load, i) > 1 for i in members(load, m.of or ""))):
            raise Problem(f"{contest.path}: contested: '{shown(m.of or '')}' makes no bursts (thinktime_blocks)")


def members(load: Load, name: str) -> list[int]:
    """Indices of the tasks that a name means: those called so, or clones of that job."""
    clone = re.compile(rf"{re.escape(name)}(\.\d+)?")
    return [i for i, task in enumerate(load.tasks) if clone.fullmatch(task.name)]


def burst_ios(load: Load, task: int) -> int:
    """Return how many I/Os a job makes between two think times."""
    assert isinstance(load, JobLoad)
    fields = load.jobs[task].fields
    return int(fields["think_blocks"]) if fields["think_ns"] else 0
