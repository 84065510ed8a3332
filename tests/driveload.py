# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Loads for a drive alone, one request after the other or several at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwaiter.drives import Profile
from headwaiter.drives.validation import MeasuredRequests

READ, WRITE = 0, 1


def load_of(sector: Any, sectors: int, op: Any = READ, think_ns: int = 0) -> MeasuredRequests:
    s = np.asarray(sector, np.uint64)
    n = len(s)
    return MeasuredRequests(
        np.broadcast_to(np.asarray(op, np.uint8), n).copy(),
        s,
        np.full(n, sectors, np.uint32),
        np.zeros(n, np.int64),
        np.full(n, think_ns, np.int64),
    )


def random_places(drive: Profile, n: int, sectors: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, (drive.facts[0] - sectors) // sectors, n).astype(np.uint64) * sectors
