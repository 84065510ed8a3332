# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/ablation.py: that its list fits the sources, and what becomes of measured values."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
import ablation

from headwaiter.engine.schedulers import catalogue


def test_the_list_fits_the_sources() -> None:
    policy, mechanisms = ablation.mechanisms()
    assert policy in catalogue() and len(mechanisms) > 10
    assert len({m.name for m in mechanisms}) == len(mechanisms)
    assert [fault for m in mechanisms for fault in m.faults()] == []
    for m in mechanisms:
        assert all(edit["find"] != edit["replace"] for edit in m.edits)


def test_an_entry_that_does_not_fit() -> None:
    edit = {"file": "core/elevator.h", "find": "nowhere at all", "replace": ""}
    assert ablation.Mechanism("m", [edit]).faults() == ["ablation.toml: m: core/elevator.h: 'nowhere at all' occurs 0 times"]


def test_a_row() -> None:
    """MB/s and Jain's index of two others, and of the policy whole and without a mechanism."""
    reference = {
        "readers-2 on d": np.array([[[10.0, 1.0]], [[8.0, 1.0]]]),
        "readers-3 on d": np.array([[[10.0, 1.0]], [[10.0, 1.0]]]),
    }
    whole = {"readers-2 on d": np.array([[[10.0, 1.0]]]), "readers-3 on d": np.array([[[2.5, 1.0]]])}
    less = {"readers-2 on d": np.array([[[2.5, 1.0]]]), "readers-3 on d": np.array([[[10.0, 1.0]]])}
    found = ablation.medians(whole, reference)
    assert found == pytest.approx({"readers-2 on d": 0.0, "readers-3 on d": 0.5})
    assert ablation.row("m", less, reference, found) == {
        "without": "m", "mean": 25, "worst": 50, "close": 1, "worst_in": "readers-2 on d", "grown": 1, "shrunk": 1, "cells": 2,
    }  # fmt: skip
