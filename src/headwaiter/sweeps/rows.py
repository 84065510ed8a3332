# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a worker makes of a batch: a row for each item, also for one that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import headwaiter
from headwaiter.base.ending import Ended
from headwaiter.base.errors import Problem, plain

Item = TypeVar("Item")
Row = TypeVar("Row")
_LONGEST = 500


def check_version(version: str, work: str) -> None:
    """Problem if this is another version than the work was given out by. work: such as "the sweep is of"."""
    if version != headwaiter.__version__:
        raise Problem(f"a worker has headwaiter {headwaiter.__version__}, and {work} {version}")


def rows_of(items: Sequence[Item], run: Callable[[Item], Row], failed: Callable[[Item, str], Row]) -> list[Row]:
    """Run items one after another; one that fails has the row that `failed` makes of the cause, and the others are run."""
    rows = []
    for item in items:
        try:
            rows.append(run(item))
        except Ended:
            raise
        except MemoryError:
            rows.append(failed(item, "out of memory"))
        except Problem as e:
            rows.append(failed(item, str(e)))
        except Exception as e:  # whatever it is, the others are run
            rows.append(failed(item, f"{type(e).__name__}: {e}"))
    return rows


def cause_text(cause: str) -> str:
    """Return a cause as a row has it: in one line, and not longer than that takes."""
    return plain(cause)[:_LONGEST]
