# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter reproduce: what experiments ask for, and what they and their tables make of what runs give; nothing is simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from headwaiter.papers.reproduce import iyer, seelam
from headwaiter.papers.reproduce.bench import Bench
from headwaiter.papers.reproduce.catalogue import EXPERIMENTS
from headwaiter.papers.reproduce.cs350 import SCHEDULERS, Study
from headwaiter.papers.reproduce.guests import job_text
from headwaiter.papers.reproduce.lists import surge


class Scripted:
    """Loads are what was asked for; a run gives what `result` makes of its drive, load and scheduler."""

    def __init__(self, result: Callable[[str, Mapping[str, Any], str], Mapping[str, Any]]) -> None:
        self.result = result
        self.more: list[Mapping[str, object]] = []

    @property
    def bench(self) -> Bench:
        """As experiments take it, at full scale."""
        return cast("Bench", self)

    def count(self, number: float, least: int = 1) -> int:
        return max(least, round(number))

    def jobs(self, name: str, drive: Any, change: Mapping[str, str] | None = None) -> Any:
        return {"name": name, **{line.partition("=")[0]: line.partition("=")[2] for line in (change or {}).values()}}

    def generated(self, name: str, drive: Any, process: Any = None, seed: int = 0, **given: Any) -> Any:
        return {"name": name, **given}

    def run(self, drive: Any, load: Any, variant: str, **more: Any) -> Any:
        self.more.append(more)
        return SimpleNamespace(**self.result(drive, load, variant))


def rows(name: str, found: Any) -> list[list[Any]]:
    """Return the rows of the one table of an experiment."""
    (table,) = EXPERIMENTS[name].tables(found)
    return [list(row) for row in table.rows]


def claim(name: str, number: str, found: Any) -> list[float]:
    """The figures by which a claim is decided."""
    (one,) = (one for one in EXPERIMENTS[name].claims if one.id == number)
    return [check.value for check in one.checks(found)]


def test_time_that_anticipation_saves_clients() -> None:
    """A fifth of the time, of as many runs in all; without the compilations half of it."""

    def elapsed(_: str, load: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        each = (8 if "compiles" not in load else 5) if name == iyer.WITH else 10
        return {"elapsed_s": load["processes"] * load["runs"] * each}

    bench = Scripted(elapsed)
    found = iyer.andrew(bench.bench)
    assert found.whole == {n: (128, 160) for n in (1, 2, 4)} and bench.more == [{"max_sectors": 128}] * 12
    whole, reading = EXPERIMENTS["iyer-andrew"].tables(found)
    assert whole.rows == [[n, 128, 160, pytest.approx(0.2)] for n in (1, 2, 4)] and reading.rows[0] == [1, 80, 160, 0.5]
    assert claim("iyer-andrew", "ID4", found) == [pytest.approx(0.2)] and claim("iyer-andrew", "ID12", found) == [0.5]


def test_shares_are_told_by_priority_in_a_kernel() -> None:
    """The job file for the lab has two readers that differ in nothing else."""
    text = job_text(Bench(), "iyer-shares", iyer.ONE_AND_TWO)
    assert "prioclass=2\n[one]\nprio=7\n[two]\nprio=6\n" in text and "[reader]" not in text and "runtime=10000ms" in text


def test_files_of_a_published_shape() -> None:
    """SURGE's: most are small, a few hold most of the bytes; the popular ones are asked for again and again, and lie apart."""
    text = surge(48, 16, 6000, False).decode().splitlines()
    pages = [int(line.split()[2]) for line in text if line.startswith("F ")]
    assert len(pages) == 6000 and 2 <= np.median(pages) <= 4 and max(pages) == 512
    top = sorted(pages, reverse=True)
    assert sum(top[:600]) > 0.5 * sum(pages)
    asked = Counter(line.split()[1] for line in text if line.startswith("c "))
    assert sum(asked.values()) == 48 * 16 and sum(count for _, count in asked.most_common(60)) > 0.4 * 48 * 16
    assert max(int(k) for k, _ in asked.most_common(20)) > 1000
    mapped = surge(2, 3, 50, True).decode()
    assert "\nf " in mapped and "\nr " not in mapped and mapped.count("\nt 1000000") == 6


def test_what_an_adversary_takes() -> None:
    """The longer it pauses the more, and the less the more it asks for at once."""

    def requests(_: str, load: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        lost = int(load["thinktime"].removesuffix("ms")) / int(load["thinktime_blocks"])
        return {"requests": 1000 - (10 * lost if name == iyer.WITH else 0)}

    found = iyer.adversary(Scripted(requests).bench)
    assert len(found) == 6 * 9 and iyer.Trick(8, 20, 0.975) in found
    assert claim("iyer-adversary", "ID8", found) == [pytest.approx(0.4)], "at once one, and 40 ms"
    first, *_, last = rows("iyer-adversary", found)
    assert first == [1, *(pytest.approx(1 - pause / 100) for pause in (2, 5, 8, 12, 15, 18, 20, 25, 40))]
    assert last[0] == 16 and last[-1] == pytest.approx(0.975)


def test_no_scheduler_is_the_best_at_all_sizes() -> None:
    """On a disk `as` is always ahead; on four the one that is ahead at 4 KiB is behind at 256."""

    def rate(drive: str, load: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        kib = int(load["bs"].removesuffix("k"))
        ahead = {"as": 2.0}.get(name, 1.0) if drive == seelam.DRIVE else {"noop": 8.0, "cfq": kib / 32 + 5.0}.get(name, 1.0)
        return {"throughput_mbps": kib * ahead}

    found = seelam.sizes(Scripted(rate).bench)
    assert found[seelam.DRIVE]["as"] == [8, 32, 128, 512] and found[seelam.ARRAY]["cfq"] == [20.5, 88, 448, 3328]
    assert seelam.least_regret(found[seelam.DRIVE]) == 0
    # noop loses 5 / 13 at 256 KiB; cfq loses 2.875 / 8 at 4 KiB, which is less.
    assert claim("seelam-sizes", "SE15", found) == [pytest.approx(2.875 / 8)]
    one, four = EXPERIMENTS["seelam-sizes"].tables(found)
    assert one.rows[1] == ["as", 8, 32, 128, 512] and four.rows[3] == ["cfq", 20.5, 88, 448, 3328]


def test_a_selector_is_judged_by_what_it_has_not_learnt_from() -> None:
    """It takes none in the first case, where bfq would have been better, and bfq in the second."""

    def rates(*mbps: float) -> dict[str, float]:
        return dict(zip(SCHEDULERS, mbps, strict=True))

    a, b = ("read", 8, 1), ("write", 8, 1)
    study = Study({a: rates(10, 9, 8, 7), b: rates(1, 5, 2, 3)}, {a: rates(8, 10, 5, 4), b: rates(4, 20, 5, 15)})
    assert study.selector == pytest.approx((0.8 + 1) / 2)
    assert study.single == pytest.approx(rates((0.8 + 0.2) / 2, 1.0, (0.5 + 0.25) / 2, (0.4 + 0.75) / 2))
    assert claim("study", "CS3", {"d": study}) == [pytest.approx(0.9)]
    cases, scores = EXPERIMENTS["study"].tables({"d": study})
    assert cases.columns[-1] == "paper: best"
    assert cases.rows == [
        ["read", "1 MiB", "8 KiB", 8, 10, 5, 4, "bfq", "mq-deadline"],
        ["write", "1 MiB", "8 KiB", 4, 20, 5, 15, "bfq", "bfq"],
    ]
    assert scores.rows[-1] == ["selector", pytest.approx(0.9)]
