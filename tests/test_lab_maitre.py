# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs on ext4 in stock kernels: maitre is no worse than the best for each, with its defaults, not told the drive's times."""

from __future__ import annotations

import pytest
from test_lab import _run


@pytest.mark.long
@pytest.mark.needs("lab")
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_readers_find_and_small_reads_at_once(kernel: str) -> None:
    rows = _run("maitre", kernel, {"SCHEDULERS": "bfq hw-cas hw-maitre"})
    found = {(row["scheduler"], row["load"]): row for row in rows}
    for readers in (2, 4, 8):
        assert found["hw-maitre", f"{readers} readers"]["of_one_reader"] >= 0.95
    find, small = "find beside a stream", "small reads beside four streams"
    assert found["hw-maitre", find]["elapsed_s"] <= found["hw-cas", find]["elapsed_s"]
    assert found["hw-maitre", small]["mean_ms"] <= found["bfq", small]["mean_ms"]
