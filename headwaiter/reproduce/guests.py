# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab's half: a bundled job file under schedulers in a real kernel, and what each process got."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from headwaiter.engine.schedulers import find
from headwaiter.errors import Problem
from headwaiter.lab.guest import boot
from headwaiter.lab.script import guest, named_kernel, read
from headwaiter.paths import WORKLOADS
from headwaiter.reproduce.bench import Bench

KERNEL = "6.12"
SHARES = {"axboe-rand-read": 0.5}
SHARE = 0.1
"""Of the simulator's run time, unless SHARES says otherwise: the guest is emulated."""
PLACES = "filename=/dev/sda\nzero_buffers=1\noffset_increment=512m\n"
"""Jobs have places of the disk for their files: so far apart, and with nothing to remember of what is written."""


@dataclass(frozen=True)
class Done:
    """What a process did, as fio tells it: MB/s, and its longest I/O in ms."""

    name: str
    op: Literal["read", "write"]
    throughput_mbps: float
    longest_ms: float


def job_text(bench: Bench, name: str, change: Mapping[str, str]) -> str:
    """A bundled job file for the lab, at the bench's scale."""
    text = (WORKLOADS / f"{name}.fio").read_text(encoding="utf-8")
    for old, new in change.items():
        assert old in text, old
        text = text.replace(old, new)
    return replace(bench, scale=bench.scale * SHARES.get(name, SHARE)).scaled(text.replace("[global]\n", f"[global]\n{PLACES}"))


def run_jobs(bench: Bench, name: str, drive: str, schedulers: Sequence[str], change: Mapping[str, str]) -> dict[str, list[Done]]:
    """By scheduler what each process of a job file did. Problem if the lab cannot run, or fio says what it should not."""
    on = named_kernel(KERNEL, bench.say)
    script = read("published")
    settings = [
        f"{find(one).kernel_name}:{key}={value}" for one in schedulers for key, value in bench.settings.get(one, {}).items()
    ]
    given = {
        "DRIVE": drive,
        "SCHEDULERS": " ".join(find(one).kernel_name for one in schedulers),
        "SETTINGS": " ".join(settings),
    }
    machine = guest(script, on, given, bench.say)
    text = job_text(bench, name, change)
    machine = replace(machine, files=machine.files | {f"/lab/jobs/{name}.fio": text.encode()}, hang_s=1800, limit_s=7200)
    files = boot(machine, bench.say).files
    return {one: told(files[f"{find(one).kernel_name}.{name}"]) for one in schedulers}


def told(output: bytes) -> list[Done]:
    """Of fio's JSON: a row for each process and direction in which it did something."""
    try:
        jobs: list[dict[str, Any]] = json.loads(output)["jobs"]
        return [
            Done(job["jobname"], way, job[way]["bw_bytes"] / 1e6, job[way]["lat_ns"]["max"] / 1e6)
            for job in jobs for way in _WAYS if job[way]["io_bytes"]
        ]  # fmt: skip
    except (ValueError, KeyError, TypeError) as e:
        raise Problem(f"lab: fio's output is not as expected: {e}") from None


_WAYS: tuple[Literal["read", "write"], ...] = ("read", "write")
