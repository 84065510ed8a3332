# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Job files run on the constant drive, for tests: what was issued, when, where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.engine.sim import ConstantDrive, Options, simulate
from headwaiter.fio import JobLoad, load_jobs

MS = 1_000_000
SECTORS = 1 << 31
KIB = 1024


@dataclass(frozen=True)
class Io:
    """One I/O: times in ms, offset and length in KiB."""

    task: str
    op: str
    issue: float
    done: float
    at: float
    length: float


def load(tmp_path: Path, text: str, sectors: int = SECTORS) -> JobLoad:
    path = tmp_path / "test.fio"
    path.write_text(text)
    return load_jobs(path, sectors)


def run(
    tmp_path: Path, text: str, service_ms: float = 5, sectors: int = SECTORS, sched: str = "noop", **options: Any
) -> list[Io]:
    """Every I/O in order of issue. The drive serves one at a time, each in service_ms."""
    jobs = load(tmp_path, text, sectors)
    drive = ConstantDrive(round(service_ms * MS), sectors)
    o = simulate(sched, drive, jobs, options=Options(record=True, merging=options.pop("merging", False), **options))
    assert o.totals["issued"] == o.totals["completed"] == len(o.rows.op)
    return [
        Io(o.tasks[t].name, "RW"[op], i / MS, c / MS, s * 512 / KIB, n * 512 / KIB)
        for t, op, i, c, s, n in zip(
            o.rows.task,
            o.rows.op,
            o.rows.issue_ns.tolist(),
            o.rows.complete_ns.tolist(),
            o.rows.sector.tolist(),
            o.rows.sectors.tolist(),
            strict=True,
        )
    ]


def places(ios: list[Io]) -> str:
    """`R0+4 W8+4`: direction, offset and length of each."""
    return " ".join(f"{io.op}{io.at:.12g}+{io.length:g}" for io in ios)


def issues(ios: list[Io]) -> list[float]:
    return [io.issue for io in ios]
