# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables of docs/was-workloads.md: what the anticipatory schedulers make of the generated workloads, beside the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from headwaiter.base.paths import WORKLOADS
from headwaiter.drives.choose import DEFAULT_DRIVE, open_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Forest, Options, simulate
from headwaiter.generated import generate
from headwaiter.papers.was.config import load
from headwaiter.papers.was.evaluate import verdict
from headwaiter.study.results import summarise
from headwaiter.study.schema import Result

FITTED = Path(__file__).parent / "was"

MAX_SECTORS = 1024
"""A request has no more: 512 KiB, as on the disks and kernels of the paper."""


@dataclass(frozen=True)
class WaitCounts:
    """WaitCounts begun, met and failed; ms spent in the latter two."""

    begun: int
    met: int
    failed: int
    met_ms: float
    failed_ms: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a row: A, A_S, A_F, A_F/A, T_S/A_S, T_F/A_S."""
        shares = (self.failed / self.begun, self.met_ms / self.met, self.failed_ms / self.met)
        return (f"{self.begun}", f"{self.met}", f"{self.failed}", *(f"{share:.3f}" for share in shares))


# Tables 2 to 9 and 10 to 13, column "Static 6 ms (LAS)".
PAPER = {
    "kva": WaitCounts(83851, 78413, 5438, 4859, 32628),
    "cold-boot": WaitCounts(2749, 2501, 248, 2153, 1488),
    "andrew": WaitCounts(40389, 32065, 8324, 78857, 49944),
    "kernel-compile": WaitCounts(5654, 5083, 571, 6985, 3426),
    "bonnie": WaitCounts(40923, 33080, 7843, 52200, 47058),
    "multi-user": WaitCounts(1980, 791, 1189, 3249, 7134),
    "db": WaitCounts(2559, 1931, 628, 5516, 3768),
    "scientific": WaitCounts(1242, 856, 386, 8428, 2316),
}
# T_F/A_S in ms, recomputed: Static 6 ms, WAS (Cold Boot), WAS (Andrew's-like).
PAPER_COSTS = {
    "kva": (0.416, 0.161, 0.159),
    "cold-boot": (0.595, 0.443, 0.461),
    "andrew": (1.558, 1.546, 1.541),
    "kernel-compile": (0.674, 0.632, 0.597),
    "bonnie": (1.423, 1.459, 1.403),
    "multi-user": (9.019, 6.716, 7.269),
    "db": (1.951, 1.458, 1.412),
    "scientific": (2.706, 2.317, 2.514),
}
PAPER_WITHOUT_READAHEAD = {"kva": 88411, "andrew": 77005, "multi-user": 55335, "db": 56755}


def _load(name: str, **changed: Any) -> Forest:
    path = WORKLOADS / f"{name}.toml"
    return generate(path, path.read_bytes(), open_drive(DEFAULT_DRIVE).sectors, 0, **changed)


@cache
def result(name: str, readahead: bool = True) -> Result:
    """Return what `as` does by the rules of Linux 2.6.12 and later."""
    drive = open_drive(DEFAULT_DRIVE)
    load = _load(name) if readahead else _load(name, readahead_kib=0)
    options = MEASURED.apply(Options(max_sectors=MAX_SECTORS, nr_requests=256, join_arriving=True))
    return summarise(simulate("as", drive, load, {"cooperation": 1}, options), tasks=False)


def waits(found: Result) -> WaitCounts:
    """Those of a result."""
    a = found.anticipation
    assert a
    return WaitCounts(a.waits, a.met, a.failed, a.met_ms, a.failed_ms)


def table() -> list[tuple[str, ...]]:
    """A row of the paper's and one of ours for each workload."""
    out: list[tuple[str, ...]] = []
    for name, paper in PAPER.items():
        found = result(name)
        speed = (f"{found.requests}", f"{found.elapsed_s:.0f}", f"{found.throughput_mbps:.1f}")
        out += [(f"`{name}`", "paper", *paper.cells, "", "", ""), ("", "ours", *waits(found).cells, *speed)]
    return out


def fitted() -> list[tuple[str, ...]]:
    """T_F/A_S with configurations fitted to two of the workloads, and throughput as multiples of that of `as`.

    As `was evaluate -c FILE NAME --runs 0` has them.
    """
    drive, options = open_drive(DEFAULT_DRIVE), MEASURED.apply(Options(nr_requests=256))
    configs = [load(FITTED / f"{name}.toml") for name in ("cold-boot", "andrew")]
    out: list[tuple[str, ...]] = []
    for name, paper in PAPER_COSTS.items():
        one = _load(name)
        verdicts = [verdict(name, drive, one, config, options, 0) for config in (*configs, None)]
        costs = [verdicts[0].before.cost_ms, *(v.after.cost_ms for v in verdicts)]
        failed = [f"{v.after.vain / v.before.vain - 1:+.0%}".replace("-", "\N{MINUS SIGN}") for v in verdicts]
        out.append((f"`{name}`", "paper", *(f"{cost:.3f}" for cost in paper), "", "", "", "", ""))
        ours = [f"{cost:.3f}" for cost in costs if cost is not None]
        out.append(("", "ours", *ours, failed[0], *(f"{v.throughput:.3f}" for v in verdicts)))
    return out


def without_readahead() -> list[tuple[str, ...]]:
    """How many waits there are without read-ahead, as multiples of those with it."""
    out: list[tuple[str, ...]] = []
    for name, paper in PAPER_WITHOUT_READAHEAD.items():
        ours, on = waits(result(name, False)).begun, waits(result(name)).begun
        out.append((f"`{name}`", f"{paper}", f"{paper / PAPER[name].begun:.2f}", f"{ours}", f"{ours / on:.2f}"))
    return out
