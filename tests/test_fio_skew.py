# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""random_distribution=zipf, pareto and normal: how often each place comes, and that they are those of fio 3.33."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from fioload import load, run

from headwaiter.base.errors import Problem
from headwaiter.fio.names import name_hash

BLOCKS = 16384  # 64 MiB in blocks of 4 KiB
DRAWS = 20_000
NEXT_RANK = 1003  # the multiplier of fio's hash, 0x61c8864680b583eb, modulo BLOCKS


def drawn(tmp_path: Path, distribution: str, *options: str, draws: int = DRAWS) -> list[int]:
    lines = ["[a]", "direct=1", "rw=randread", "size=64m", f"random_distribution={distribution}", f"number_ios={draws}"]
    ios = run(tmp_path, "\n".join([*lines, "io_size=1g", *options, ""]), 0.001)
    return [round(io.at) // 4 for io in ios]


@pytest.mark.parametrize(
    ("distribution", "first"),
    [
        ("zipf:1.2", [9145, 16166, 9145, 12154, 9145, 15163, 16166, 12470]),
        ("pareto:0.3", [9145, 1638, 10148, 11091, 2455, 13689, 6322, 14052]),
        ("normal:20:0.3", [15933, 7625, 14575, 6290, 7615, 3607, 4143, 8316]),
    ],
)
def test_places_are_those_that_fio_wrote_down(tmp_path: Path, distribution: str, first: list[int]) -> None:
    """From write_iolog of fio 3.33, with these options."""
    assert drawn(tmp_path, distribution, draws=8) == first


@pytest.mark.parametrize("theta", [0.6, 0.99, 1.2, 2.0])
def test_zipf_ranks(tmp_path: Path, theta: float) -> None:
    """The place of rank r comes in proportion to r^-theta; rank 1 lies at the center."""
    counts = Counter(drawn(tmp_path, f"zipf:{theta}:0.25"))
    share = 1 / sum(rank**-theta for rank in range(1, BLOCKS + 1))
    for rank in (1, 2):
        expected = DRAWS * share * rank**-theta
        assert abs(counts[(BLOCKS // 4 + (rank - 1) * NEXT_RANK) % BLOCKS] - expected) < 5 * expected**0.5 + 1
    ahead = sum(counts[(BLOCKS // 4 + rank * NEXT_RANK) % BLOCKS] for rank in range(200))
    exact = DRAWS * share * sum(rank**-theta for rank in range(1, 201))
    assert abs(ahead / exact - 1) < 0.1  # the formula is an approximation behind the second


@pytest.mark.parametrize("h", [0.1, 0.2, 0.4])
def test_pareto_shares(tmp_path: Path, h: float) -> None:
    """A part h of the places takes all but h of the accesses."""
    counts = Counter(drawn(tmp_path, f"pareto:{h}:0"))
    often = sum(counts[rank * NEXT_RANK % BLOCKS] for rank in range(int(h * BLOCKS)))
    assert abs(often / DRAWS - (1 - h)) < 0.02


def test_normal_is_centered_and_as_wide_as_said(tmp_path: Path) -> None:
    back = pow(NEXT_RANK, -1, BLOCKS)
    spreads = []
    for deviation in (0, 10, 40):
        blocks = [at * back % BLOCKS for at in drawn(tmp_path, f"normal:{deviation}")]
        assert abs(sum(blocks) / DRAWS - BLOCKS / 2) < BLOCKS / 100
        spreads.append(sum((b - BLOCKS / 2) ** 2 for b in blocks) / DRAWS)
    # The mean of twelve alike has 1/144 of the square of the whole; what is added, 1/12 of the square of its width.
    for spread, width in zip(spreads, (0, 0.1, 0.4), strict=True):
        assert spread / BLOCKS**2 == pytest.approx(1 / 144 + width**2 / 12, rel=0.05)


def test_places_repeat_and_the_pass_ends_by_its_size(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nrw=randread\nsize=1m\nrandom_distribution=zipf:1.2\n", 0.01)
    assert len(ios) == 256 > len({io.at for io in ios})


def test_seeds(tmp_path: Path) -> None:
    """The name of the file decides, or a seed of the job's own; run seeds draw other numbers."""
    plain = drawn(tmp_path, "zipf", draws=50)
    assert drawn(tmp_path, "zipf", "filename=other", draws=50) != plain
    seeded = drawn(tmp_path, "zipf", "randrepeat=0", "randseed=7", draws=50)
    assert seeded == drawn(tmp_path, "zipf", "randrepeat=0", "randseed=7", "filename=other", draws=50) != plain
    text = "[a]\ndirect=1\nrw=randread\nsize=64m\nrandom_distribution=zipf\nnumber_ios=50\n"
    assert run(tmp_path, text, 0.01, seed=1) != run(tmp_path, text, 0.01, seed=2)


def test_clones_draw_places_of_their_own(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nrw=randread\nfilename=/dev/one\nsize=64m\nrandom_distribution=zipf\nnumber_ios=50\nnumjobs=2\n"
    ios = run(tmp_path, text, 0.01)
    first, second = ([io.at for io in ios if io.task == f"a.{k}"] for k in (0, 1))
    assert len(first) == len(second) == 50 and first != second


@pytest.mark.parametrize(
    ("name", "number"),
    [("a.0.0", 0xA0275764), ("", 0x61C88647), ("twelve_bytes", 0x4BE946D5), ("a_name_longer_than_twelve", 0xEA6D501F)],
)
def test_numbers_of_names(name: str, number: int) -> None:
    """With these, the places of files so named are fio's (test_fio_real.py)."""
    assert name_hash(name) == number


@pytest.mark.parametrize(
    ("distribution", "said"),
    [
        ("zipf:1", "the number of zipf must not be 1"),
        ("zipf:1.0:0.5", "the number of zipf must not be 1"),
        ("zipf:x", "'x' is not a number"),
        ("zipf:", "'' is not a number"),
        ("zipf:nan", "'nan' is not a number"),
        ("zipf:inf", "'inf' is not a number"),
        ("zipf:1.2:1.5", "the center must be between 0 and 1"),
        ("zipf:1.2:-0.5", "the center must be between 0 and 1"),
        ("zipf:1.2:0.1:3", "more than a number and a center"),
        ("zipf:1.2,pareto:0.2", "one distribution for reads and writes"),
        ("pareto:0", "the number of pareto must be between 0 and 1"),
        ("pareto:1", "the number of pareto must be between 0 and 1"),
        ("normal:-1", "the number of normal must be at least 0 and below 100"),
        ("normal:100", "the number of normal must be at least 0 and below 100"),
        ("gauss:3", "distribution 'gauss' is not known"),
    ],
)
def test_what_fio_refuses_too(tmp_path: Path, distribution: str, said: str) -> None:
    with pytest.raises(Problem) as e:
        load(tmp_path, f"[a]\nrw=randread\nsize=1m\nrandom_distribution={distribution}\n")
    assert said in str(e.value) and "test.fio:4" in str(e.value)


def test_places_that_repeat_are_not_verified(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="'verify' with places that come more than once"):
        load(tmp_path, "[a]\nrw=randwrite\ndirect=1\nsize=1m\nverify=crc32c\nrandom_distribution=zipf\n")
