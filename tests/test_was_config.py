# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The configuration file of `was`: what it says, and what is refused with one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import write
from hypothesis import given
from hypothesis import strategies as st

from headwaiter.base.errors import Problem
from headwaiter.engine.schedulers import find
from headwaiter.papers.was.config import FORMAT, Config, config, load, save, to_toml

GOOD = """format = "headwaiter-was/1"
history = 5
[spatial]
steps = [[0, 70], [41, 30], [61, 0]]
[temporal]
steps = [[0, 30], [3000, 15], [9000, 0]]
[intervals]
wait_us = [6000, 6000, 2000, 2000, 4000]
"""
KNOWN = "unknown key (known: classes, prove, wait_us)"
REMARK = "must be text, a number of 64 bits, true or false, or a list of these"
PAPER = config(5, [[0, 70], [41, 30], [61, 0]], [[0, 30], [3000, 15], [9000, 0]], [6000, 6000, 2000, 2000, 4000])


def test_a_file_is_what_it_says(tmp_path: Path) -> None:
    found = load(write(tmp_path / "was.toml", GOOD))
    assert found == PAPER
    assert (found.history, found.classes, found.most_points) == (5, 5, 100)
    assert found.spatial == ((0, 70), (41, 30), (61, 0)) and found.wait_us == (6000, 6000, 2000, 2000, 4000)


def test_rows_of_the_policys_table() -> None:
    """history and classes, steps, and an interval wherever it changes: classes 1, 3 and 5."""
    choices = find("was").tables["config"].columns[0].choices
    history, classes, spatial, temporal, interval = map(choices.index, ("history", "classes", "spatial", "temporal", "interval"))
    assert PAPER.rows().tolist() == [
        [history, 0, 5], [classes, 0, 5],
        [spatial, 0, 70], [spatial, 41, 30], [spatial, 61, 0],
        [temporal, 0, 30], [temporal, 3000, 15], [temporal, 9000, 0],
        [interval, 1, 6000], [interval, 3, 2000], [interval, 5, 4000],
    ]  # fmt: skip


def steps(farthest: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.tuples(st.integers(1, farthest), st.integers(0, 100)), max_size=8, unique_by=lambda p: p[0]).map(
        lambda more: [
            [start, points]
            for start, points in zip(
                [0, *sorted(p[0] for p in more)], sorted([*(p[1] for p in more), 100], reverse=True), strict=True
            )
        ]
    )


@given(
    st.integers(2, 17), steps(2**55 - 1), steps(10**6), st.lists(st.integers(0, 10**5), min_size=1, max_size=300), st.booleans()
)
def test_what_is_written_is_read_again(
    history: int, spatial: list[list[int]], temporal: list[list[int]], wait: list[int], prove: bool
) -> None:
    made = {"from": 'a \\ b "quoted" ü', "similarity": 0.25, "traces": ["x", "y"]}
    one = config(history, spatial, temporal, wait, made, prove)
    path = Path("/") / "none"
    again = load_text(to_toml(one))
    assert again == one and again.made == made, path


def load_text(text: str) -> Config:
    import tempfile  # noqa: PLC0415 (hypothesis and tmp_path do not go together)

    with tempfile.TemporaryDirectory() as folder:
        return load(write(Path(folder) / "was.toml", text))


def test_save_writes_the_same(tmp_path: Path) -> None:
    save(PAPER, tmp_path / "was.toml")
    assert load(tmp_path / "was.toml") == PAPER
    assert len(list(tmp_path.iterdir())) == 1


def test_the_classifier_is_all_but_the_intervals() -> None:
    args = (PAPER.spatial, PAPER.temporal)
    assert config(5, *args, [1, 2, 3, 4, 5]).classifier == PAPER.classifier
    others = [config(4, *args, PAPER.wait_us), config(5, *args, [6000] * 4), config(5, args[0][:2], args[1], PAPER.wait_us),
              config(5, args[0], args[1][:2], PAPER.wait_us)]  # fmt: skip
    assert len({PAPER.classifier, *(o.classifier for o in others)}) == 5


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("headwaiter-was/1", "headwaiter-was/2", f"format: headwaiter-was/2 is another version; this one reads {FORMAT}"),
        ('format = "headwaiter-was/1"', "", f'format: is missing (this version reads "{FORMAT}")'),
        ("[61, 0]", "[61, 31]", "spatial.steps[2]: points must not increase with distance: 31 after 30"),
        ("[61, 0]", "[41, 0]", "spatial.steps[2]: the starts of steps must increase: 41 sectors after 41"),
        ("[9000, 0]", "[2000, 0]", "temporal.steps[2]: the starts of steps must increase: 2000 microseconds after 3000"),
        ("[0, 70]", "[1, 70]", "spatial.steps[0]: the first step must begin at 0 sectors, not at 1"),
        ("[3000, 15]", "[-3000, 15]", "temporal.steps[1]: microseconds: -3000 is outside 0..36028797018963967 (it is negative)"),
        ("[41, 30]", "[41, 30, 1]", "spatial.steps[1]: 3 entries, but there must be 2 to 2"),
        ("[41, 30]", "[41, 101]", "spatial.steps[1]: points: 101 is outside 0..100"),
        ("[41, 30]", "41", "spatial.steps[1]: must be a list"),
        ("[41, 30]", "[41.5, 30]", "spatial.steps[1]: sectors: must be a whole number"),
        ("[41, 30]", "[41, true]", "spatial.steps[1]: points: must be a whole number"),
        ("history = 5", "history = 1", "history: 1 is outside 2..17"),
        ("history = 5", "history = 18", "history: 18 is outside 2..17"),
        ("history = 5", "", "history: is missing"),
        ("[6000, 6000, 2000, 2000, 4000]", "[]", "intervals.wait_us: 0 entries, but there must be 1 to 512"),
        ("[6000, 6000, 2000, 2000, 4000]", str([1] * 1001), "intervals.wait_us: 1001 entries, but there must be 1 to 512"),
        ("2000, 4000]", "2000, -4000]", "intervals.wait_us[4]: -4000 is outside 0..100000 (it is negative)"),
        ("2000, 4000]", "2000, 100001]", "intervals.wait_us[4]: 100001 is outside 0..100000"),
        ("[temporal]\n", "[temporel]\n", "temporel: unknown key (known: format, history, spatial, temporal, intervals, made)"),
        ("[temporal]\nsteps", "[temporal]\nstep", "temporal.step: unknown key (known: steps)"),
        ("[temporal]\nsteps = [[0, 30], [3000, 15], [9000, 0]]\n", "", "temporal: is missing"),
        ("[intervals]\nwait_us", "[intervals]\nclass = 5\nwait_us", f"intervals.class: {KNOWN}"),
        ("[intervals]\nwait_us", "[intervals]\nprove = 1\nwait_us", "intervals.prove: must be true or false"),
        ("[intervals]\nwait_us", "[intervals]\nclasses = 6\nwait_us", "intervals.wait_us: 5 intervals for 6 classes"),
        ("[intervals]\nwait_us", "[intervals]\nclasses = 0\nwait_us", "intervals.classes: 0 is outside 1..512"),
        ("history = 5", 'history = 5\nmade = "by hand"', "made: must be a table"),
        ("history = 5", "history = 5\nmade.when = 1979-05-27", f"made.when: {REMARK}"),
        ("history = 5", "history = 5\nmade.by.hand = 1", f"made.by: {REMARK}"),
        ("history = 5", "history = 5\nmade.by = [[1]]", f"made.by: {REMARK}"),
        ("history = 5", "history = 5\nmade.by = [1, nan]", f"made.by: {REMARK}"),
        ("history = 5", f"history = 5\nmade.by = {1 << 63}", f"made.by: {REMARK}"),
        ("history = 5", 'history = 5\nmade."b y" = 1', "made: 'b y' is no name (letters, digits, - and _, 64 at most)"),
        ("history = 5", "history = 5\nhistory = 5", "not TOML: Cannot overwrite a value (at line 3, column 12)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert GOOD.count(old) == 1
    path = write(tmp_path / "was.toml", GOOD.replace(old, new))
    with pytest.raises(Problem, match=f"^{re.escape(f'{path}: {why}')}$"):
        load(path)


def test_points_that_are_all_0_tell_no_classes() -> None:
    with pytest.raises(Problem, match="all points are 0, which gives only one class"):
        config(5, [[0, 0]], [[0, 0], [10, 0]], [6000])
