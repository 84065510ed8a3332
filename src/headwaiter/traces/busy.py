# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compute how long at least one request was under way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def busy_ns(begin: NDArray[Any], end: NDArray[Any]) -> int:
    """Return the time that these spans cover together, in ns; shapes (n,), n at least 1."""
    order = np.argsort(begin, kind="stable")
    done = np.maximum.accumulate(end[order])
    start = np.maximum(begin[order], np.concatenate([[np.iinfo(np.int64).min], done[:-1]]))
    return int(np.maximum(0, done - start).sum())
