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


@pytest.mark.long
@pytest.mark.needs("lab")
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_commits_are_no_slower_than_under_mq_deadline(kernel: str) -> None:
    rows = _run("commits", kernel, {"SCHEDULERS": "mq-deadline hw-maitre"})
    found = {(row["scheduler"], row["load"], row["streams"]): row for row in rows}
    for streams in (1, 2, 4):
        ours, theirs = (found[name, "commits", streams] for name in ("hw-maitre", "mq-deadline"))
        assert ours["mean_ms"] <= theirs["mean_ms"]
        assert ours["max_lat_ms"] <= 2 * theirs["max_lat_ms"]
        assert ours["throughput_MBps"] >= theirs["throughput_MBps"]
    assert found["hw-maitre", "sqlite3", 1]["elapsed_s"] <= 5.5


@pytest.mark.long
@pytest.mark.needs("lab")
@pytest.mark.parametrize("kernel", ["6.12", "6.1"])
def test_pairs_of_programs(kernel: str) -> None:
    rows = _run("pairs", kernel, {"SCHEDULERS": "bfq hw-maitre"})
    found = {(row["scheduler"], row["load"]): row for row in rows}
    loads = {load for _, load in found}
    assert len(loads) == 8 and len(found) == 16
    for load, figures, more_is_better in (
        ("three fsync beside a stream", ("mean_ms",), False),
        ("tar beside find -exec grep", ("tar_s", "find_s"), False),
        ("lookups beside a stream", ("lookups_MBps", "throughput_MBps"), True),
        ("4 streams beside a writer", ("throughput_MBps",), True),
    ):
        ours, theirs = (sum(found[name, load][figure] for figure in figures) for name in ("hw-maitre", "bfq"))
        assert ours >= 0.95 * theirs if more_is_better else ours <= 1.05 * theirs, load
