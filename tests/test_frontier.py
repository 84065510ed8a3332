# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throughput against waiting: the bound, and the points of schedulers (docs/regret.md)."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headwaiter.drives import find_drive
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Options, Rows
from headwaiter.regret import frontier
from headwaiter.regret.frontier import FILE_BYTES, bound, points, switch_s
from headwaiter.study.variants import parse_variants

DRIVE = find_drive("barracuda-80g")
OPTIONS = MEASURED.apply(Options(nr_requests=256, join_arriving=True))


def test_what_a_change_costs() -> None:
    """A seek over the file, and half a turn of the platter, of which the drive's read-ahead hides a part."""
    sectors, ns = zip(*DRIVE.positions, strict=True)
    told = float(np.interp(FILE_BYTES / 512, sectors, ns)) / 1e9
    assert 0.7 * told < switch_s(DRIVE, 2) < 1.3 * told
    assert 0.7 * told < switch_s(DRIVE, 8) < 1.3 * told


def test_the_bound() -> None:
    """To lose a share e, somebody waits (N - 1) s / e."""
    for lost in (0.02, 0.05, 0.5):
        assert bound(7 * 0.006 / lost, 0.006, 8) == pytest.approx(1 - lost)
    assert bound(0.001, 0.006, 8) == 0


def test_points_are_below_the_bound() -> None:
    names = ("cfq-slice:slice_sync=300", "cfq-slice:slice_sync=40", "noop")
    patient, hasty, never = points(parse_variants(",".join(names)), DRIVE, OPTIONS, 4, 1)
    assert tuple(p.name for p in (patient, hasty, never)) == names
    assert patient.wait_s > 3 * hasty.wait_s > 3 * never.wait_s
    assert 1 > patient.efficiency > hasty.efficiency > never.efficiency > 0.2
    change_s = switch_s(DRIVE, 4)
    for p in (patient, hasty, never):
        assert p.efficiency < bound(p.wait_s, change_s, 4)


def test_a_reader_alone_is_one() -> None:
    (alone,) = points(parse_variants("noop"), DRIVE, OPTIONS, 1, 1)
    assert alone.efficiency == 1 and alone.wait_s < 0.1


def test_the_first_quarter_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers of 40 s that are served only in the first 9: at a rate of 0, and whoever asks never has an answer."""
    seconds = np.arange(9) * 10**9
    numbers = np.zeros(9, np.uint32)
    early = Rows(seconds, seconds + 5_000_000, numbers.astype(np.uint64), numbers + 8, numbers, numbers.astype(np.uint8), None)
    late = replace(early, issue_ns=seconds + 31 * 10**9, complete_ns=seconds + 31 * 10**9 + 5_000_000)
    runs = iter([late, early, late])
    monkeypatch.setattr(frontier, "run", lambda *_: SimpleNamespace(rows=next(runs)))
    unserved, served = points(parse_variants("noop,as"), DRIVE, OPTIONS, 1, 1)
    assert (unserved.efficiency, unserved.wait_s, served.efficiency, served.wait_s) == (0, math.inf, 1, 0.005)
