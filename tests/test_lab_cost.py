# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a request costs under our schedulers and the kernel's own, in instructions, on a disk that takes no time."""

from __future__ import annotations

import pytest
from test_lab import _run

EVEN = 0.99
"""The guest's memory moves every figure by half a percent, the kernel's own too: two builds: mq-deadline 42,553 and 42,780."""


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_ours_cost_no_more_than_the_kernels_own() -> None:
    """I/O per second of virtual time, all in one boot."""
    rows = _run("cost", "6.12", {"IOS": "8000", "SCHEDULERS": "mq-deadline hw-deadline hw-as bfq hw-cfq-slice"})
    for rw in ("randread", "read"):
        iops = {row["scheduler"]: row["iops"] for row in rows if row["rw"] == rw}
        assert iops["hw-deadline"] >= EVEN * iops["mq-deadline"], (rw, iops)
        assert iops["hw-as"] >= EVEN * iops["mq-deadline"], (rw, iops)
        assert iops["hw-cfq-slice"] > iops["bfq"], (rw, iops)
