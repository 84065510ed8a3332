# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Control groups of tasks, as workloads name them: a/b, or with weights a:200/b:400."""

from __future__ import annotations

from collections.abc import Iterable

from headwaiter.engine.schedulers import catalogue

Path = tuple[tuple[str, int], ...]
"""From the root down: names, and weights beside their siblings."""

DEFAULT_WEIGHT = 100
MOST_WEIGHT = 10000


def parse_path(text: str) -> Path:
    """ValueError, with the cause, if it is no such path. An empty one is the root's."""
    return tuple(_step(part) for part in text.split("/") if part)


def _step(part: str) -> tuple[str, int]:
    name, colon, weight = part.partition(":")
    if not name or name in (".", ".."):
        raise ValueError("must be the name of a group, or a:200/b:400 of one in another")
    if colon and not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= MOST_WEIGHT):
        raise ValueError(f"weight {weight!r}: must be from 1 to {MOST_WEIGHT}")
    return name, int(weight) if colon else DEFAULT_WEIGHT


def written_path(path: Path) -> str:
    """Return the path as parse_path() takes it."""
    return "/".join(name if weight == DEFAULT_WEIGHT else f"{name}:{weight}" for name, weight in path)


def told(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return what a user has to know where tasks are in such groups: a note, or none."""
    groups = sorted({written_path(path) for path in paths if path})
    if not groups:
        return ()
    listed = ", ".join(groups[:4]) + (f" and {len(groups) - 4} more" if len(groups) > 4 else "")
    able = ", ".join(s.name for s in catalogue().values() if s.groups)
    return (f"control groups {listed}: {able} shares by their weights; to the other schedulers here all tasks are equal",)
