# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pictures and tables of pages have the figures that they are said to have, worked out by hand. No browser is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from handmade import result
from test_describe import trace
from test_regret import cell

from headwaiter.judge.detail import Detail, Head, Shown
from headwaiter.regret.scores import judge
from headwaiter.report import charts, description_page, page
from headwaiter.report.heat import heat_map
from headwaiter.study.schema import Disk
from headwaiter.study.variants import parse_variants

EMPTY = np.empty(0)
NO_HEAD = Head(EMPTY, EMPTY, np.empty((0, 2)), True)


def drawn(chart: Any) -> list[dict[str, Any]]:
    """What each of a chart's lines, dots or cells are drawn from."""
    return [{key: list(column) for key, column in one.data_source.data.items()} for one in chart.renderers]


# --- describe ---


def test_requests_over_time(tmp_path: Path) -> None:
    """24 s in 240 parts: three reads in the first tenth of a second, a write in the second, a read at the end."""
    found = trace(
        tmp_path,
        [
            (0, 1, "R", 1, 0, 8, 1),
            (10, 1, "R", 1, 8, 8, 11),
            (20, 1, "R", 1, 16, 8, 21),
            (150, 2, "W", 0, 800, 8, 151),
            (24_000, 1, "R", 1, 24, 8, 24_001),
        ],
    )
    reads, writes = drawn(description_page._rate(found))
    assert len(reads["s"]) == len(reads["rate"]) == 241 and (reads["s"][0], reads["s"][-1]) == (0, 24)
    assert reads["rate"][:3] == pytest.approx([30, 0, 0]) and reads["rate"][-2:] == pytest.approx([10, 10])
    assert writes["rate"][:3] == pytest.approx([0, 10, 0]) and sum(writes["rate"]) == pytest.approx(10)


def test_places_sizes_and_times(tmp_path: Path) -> None:
    """A GiB is 2^21 sectors. Latencies of 2, 4 and 8 ms, of which the device takes 1, 3 and 6."""
    rows: list[Any] = [
        (0, 1, "R", 1, 0, 8, 2),
        (10, 1, "R", 1, 1 << 21, 8, 14),
        (30, 1, "W", 1, 3 << 20, 32, 38),
        (60, 2, "R", 1, 0, 8, None),
    ]
    found = trace(tmp_path, rows)
    found = replace(found, issue_ns=np.array([1_000_000, 11_000_000, 32_000_000, -1]))
    reads, writes = drawn(description_page._places(found))
    assert (reads["gib"], writes["gib"]) == ([0, 1, 0], [1.5]) and reads["s"] == pytest.approx([0, 0.01, 0.06])
    sizes = drawn(description_page._sizes(found))
    assert sizes == [{"kib": [4], "count": [3]}, {"kib": [16], "count": [1]}]
    times = {name: list(ms) for name, ms in description_page._times(found).items()}
    assert times == {"think time": [8, 16], "latency": [2, 4, 8], "service time": [1, 3, 6]}
    lines = drawn(description_page._distributions({"latency": np.array([2.0, 4.0, 8.0, 9.0])}))
    assert lines == [{"ms": [2, 4, 8, 9], "share": [25, 50, 75, 100]}]


# --- regret ---


def test_a_map_of_regrets() -> None:
    """They have 98, 97, 50 and nothing of the best 100; medians of three seeds count, and within 3% all is white."""
    variants = parse_variants("noop,deadline,cfq,as,bfq")
    values = [[[100.0]] * 3, [[98.0], [98.0], [10.0]], [[97.0]] * 3, [[50.0]] * 3, [[0.0]] * 3]
    judged = judge([cell(values, "MB/s")], variants, [0, 1, 2, 3, 4])
    [cells, _] = drawn(heat_map(judged, "d"))
    by_name = dict(zip(cells["scheduler"], zip(cells["percent"], cells["colour"], cells["ink"], strict=True), strict=True))
    white, dark = "#ffffff", "#1a1a1a"
    assert by_name["noop"] == ("0", white, dark) and by_name["deadline"] == ("2", white, dark)
    # Six shades from 3 to 100%: 50% is in the third.
    assert by_name["as"] == ("50", "#f5b97a", dark) and by_name["bfq"] == ("100", "#8f2020", white)
    assert cells["range"][1] == "2 to 90" and cells["figures"][1] == "MB/s: 98 MB/s" and set(cells["workload"]) == {"w"}
    assert drawn(heat_map(judged, "another drive"))[0]["percent"] == []


# --- compare ---


def test_programs_that_win_and_lose() -> None:
    """Those that wait longest come first; 3% are the same. Its pace, or else its waiting, tells whether a program gains."""

    def pace(name: str, rate: float, longest: float | None) -> Any:
        return SimpleNamespace(name=name, throughput_mbps=rate, max_ms=longest)

    def ran(scheduler: str, *rows: tuple[str, int, float]) -> Any:
        tasks = [SimpleNamespace(name=name, requests=n, lat_ms=SimpleNamespace(mean=ms, max=9 * ms)) for name, n, ms in rows]
        paces: dict[str, Any] = {"noop": [pace("dd", 10.0, 40.0)], "as": [pace("dd", 15.0, 90.0), pace("new", 1.0, None)]}
        return SimpleNamespace(scheduler=scheduler, variant=None, groups=None, tasks=tasks, programs=paces.get(scheduler))

    before = ran("noop", ("cat", 100, 1.0), ("dd", 60, 10.0), ("dd", 40, 10.0), ("find", 10, 10.0), ("gone", 1, 1.0))
    after = ran("as", ("cat", 100, 0.97), ("dd", 100, 5.0), ("find", 10, 25.0), ("new", 1, 1.0))
    found: Any = SimpleNamespace(results=[after, before], answer=SimpleNamespace(best="as", baseline="noop"))
    section = page._programs(found)
    assert section and section.legend.startswith("Each program under noop and under as: ")
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in section.table.split("<tr>")[1:]]
    assert rows == [
        ["program", "under as", "I/Os", "noop, MB/s", "as, MB/s", "noop, s", "as, s", "noop, max ms", "as, max ms"],
        ["dd", "gains: 50% more done; waits up to 90.0 ms", "100", "10.0", "15.0", "1.00", "0.50", "40.0", "90.0"],
        ["find", "pays: 2.5 times as long waiting", "10", "–", "–", "0.10", "0.25", "–", "–"],
        ["cat", "the same", "100", "–", "–", "0.10", "0.10", "–", "–"],
    ]
    assert re.findall(r'<td class="(wins|loses|even)">', section.table) == ["wins", "loses", "even"]


def test_throughput_over_time_and_where_it_went() -> None:
    """The last rate holds until the end. Of 10 s the disk was busy for 6, of which it sought for 1 and rotated for 2."""
    disk = Disk(busy_s=6.0, idle_s=4.0, seek_s=1.0, rotation_s=2.0, seeks=100)
    detail = Detail(EMPTY, EMPTY, np.array([0.0, 1.0, 2.0]), np.array([5.0, 7.0]))
    shown = [Shown(result(name, disk=disk), detail, NO_HEAD) for name in ("noop", "as")]
    first, _ = drawn(charts.throughput(shown, ["noop"]))
    assert first == {"s": [0, 1, 2], "rate": [5, 7, 7]}
    bars = drawn(charts.disk_time(shown))[0]
    assert bars["scheduler"] == ["as", "noop"] and (bars["seek"], bars["rotate"]) == ([10, 10], [20, 20])
    assert bars["idle"] == [40, 40]
