# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the documents have of what was measured on real drives and in the lab on flash.

docs/published.json is made by `make published-docs` (headwaiter validate --published), docs/real-device/predicted.json by the
commands in docs/drives.md, lab/agree/agree-flash.json by `make lab-docs`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from headwaiter.base.figures import digits

AGREEMENT = Path(__file__).resolve().parent.parent / "lab" / "agree" / "agree-flash.json"
DEVICE = Path(__file__).resolve().parent / "real-device" / "predicted.json"
MEASUREMENTS = Path(__file__).resolve().parent / "published.json"
Rows = tuple[list[str], list[list[str]]]


def _found() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))["figures"]
    return rows


def _short(source: str) -> str:
    """A source without its title."""
    return source.rpartition("ICPE 2024, ")[2]


def _errors() -> Rows:
    """A row for each source and figure of one number: how far off."""
    kinds: dict[tuple[str, str], list[float]] = {}
    for row in _found():
        if row["figure"] != "s to start" and "figure 11d" not in row["source"] and "tables" not in row["source"]:
            kinds.setdefault((_short(row["source"]), row["figure"]), []).append(abs(row["error"]))
    head = ["published", "figure", "numbers", "error in the median", "at most"]
    return head, [[source, what, str(len(off)), f"{median(off):.1%}", f"{max(off):.1%}"] for (source, what), off in kinds.items()]


def _each(part: str) -> Rows:
    """A row for each load, with the factor by which the simulator is off."""
    head = ["load", "figure", "published", "here", "here by published"]
    return head, [
        [row["load"], row["figure"], digits(row["measured"]), digits(row["simulated"]), f"{row['error'] + 1:.2f}"]
        for row in _found()
        if part in row["source"]
    ]


def _device() -> Rows:
    """A row for each job that fio ran on a file of the machine that the documents are made on."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(DEVICE.read_text(encoding="utf-8"))["figures"]:
        found.setdefault(row["load"], []).append(row)
    head = ["job", "I/Os a second", "lowest and highest of three runs", "predicted", "off by"]
    return head, [
        [
            job,
            f"{middle['measured']:.0f}",
            f"{lowest['measured']:.0f}-{highest['measured']:.0f}",
            f"{middle['simulated']:.0f}",
            f"{middle['error']:+.0%}",
        ]
        for job, (middle, lowest, highest) in found.items()
    ]


def _lab_and_simulator() -> Rows:
    """A row for each comparison of lab and simulator on flash."""
    head = ["drive", "job", "scheduler", "lab, MB/s", "simulator", "off by", "p99 in the lab, ms", "simulator", "off by", "agree"]
    return head, [
        [
            row["drive"],
            row["job"],
            f"`{row['scheduler']}`",
            f"{row['lab_MBps']:.1f}",
            f"{row['sim_MBps']:.1f}" + (f" ({row['sim_low_MBps']:.0f}-{row['sim_high_MBps']:.0f})" if row["range"] else ""),
            f"{row['throughput_off_percent']:+.1f}%",
            f"{row['lab_p99_ms']:.3f}",
            f"{row['sim_p99_ms']:.3f}",
            f"{row['p99_off_percent']:+.0f}%",
            "yes" if row["agree"] else "no",
        ]
        for row in json.loads(AGREEMENT.read_text(encoding="utf-8"))["results"]
    ]


def table(name: str) -> Rows:
    """Head and rows of a table."""
    made: dict[str, Callable[[], Rows]] = {
        "errors": _errors,
        "beside": lambda: _each("figure 11d"),
        "device": _device,
        "lab": _lab_and_simulator,
        "targets": lambda: _each("tables 3 and 4"),
    }
    return made[name]()
