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
    rows = _run("pairs", kernel, {"SCHEDULERS": "mq-deadline hw-cas hw-maitre"})
    found = {(row["scheduler"], row["load"]): row for row in rows}
    ours = {load: row for (scheduler, load), row in found.items() if scheduler == "hw-maitre"}
    assert len(ours) == 8
    tar, start = "tar beside find -exec grep", "start beside an O_DSYNC writer"
    assert ours[tar]["tar_s"] + ours[tar]["find_s"] <= 1.05 * sum(found["hw-cas", tar][key] for key in ("tar_s", "find_s"))
    assert ours[start]["start_s"] <= 1.05 * found["mq-deadline", start]["start_s"]
    assert (
        ours["lookups beside four writers"]["lookups_MBps"] >= found["mq-deadline", "lookups beside four writers"]["lookups_MBps"]
    )
