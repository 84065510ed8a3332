# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which processes the command of a lever names: the program's, and nobody else's."""

from __future__ import annotations

import numpy as np
import pytest

from headwaiter.engine.sim import Forest, Task
from headwaiter.judge.levers import _pids


def forest(*names: str) -> Forest:
    """One task of each name, with the number 100, 101, … and a thread of control of its own."""
    none = np.zeros(0, np.int64)
    tasks = [Task(100 + i, name, i) for i, name in enumerate(names)]
    return Forest(tasks=tasks, time_ns=none, parent=none, delay_ns=none, task=none.astype(np.uint32), op=none.astype(np.uint8),
                  flags=none.astype(np.uint8), sector=none.astype(np.uint64), sectors=none.astype(np.uint32),
                  ioprio=none.astype(np.uint16))  # fmt: skip


@pytest.mark.parametrize(
    ("names", "label", "groups", "expected"),
    [
        (("cp", "db"), "cp", {0}, "$(pidof cp)"),
        (("writer", "kworker/u8:3", "db"), "writer (writes)", {0, 1}, "$(pidof writer)"),
        (("find", "cat", "db"), "find", {0, 1}, "$(pidof cat find)"),
        (("my copy", "db"), "my copy", {0}, "$(pidof 'my copy')"),
        (("dd", "dd", "db"), "dd (writes)", {1}, "101"),
        (("dd", *["dd"] * 5), "dd (writes)", {1, 2, 3, 4, 5}, "$(pidof dd)"),
    ],
)
def test_the_command_names_the_programs_processes(names: tuple[str, ...], label: str, groups: set[int], expected: str) -> None:
    """A label such as "dd (writes)" is no process; of two programs of one name, one is told by its pids."""
    load = forest(*names)
    whose = frozenset(task.name for task in load.tasks if task.group in groups)
    assert _pids(load, label, frozenset(groups), whose) == expected
