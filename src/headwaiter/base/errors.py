# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The one way in which headwaiter says that something given to it is wrong."""

from __future__ import annotations

_LONGEST = 2000


def plain(text: str) -> str:
    """Text as one line that a terminal shows as it is: whatever cannot be printed becomes an escape such as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(text: str, most: int = 40) -> str:
    """Text as it stands in an error message: printable, and cut if it is longer than `most` characters."""
    return plain(text if len(text) <= most else text[:most] + "…")


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, for people."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


class Problem(Exception):
    """Bad input: one line that names file, line and cause. The command line prints it and exits with status 2."""

    def __init__(self, message: str) -> None:
        line = plain(message)
        if len(line) > _LONGEST:
            line = f"{line[: _LONGEST // 2]} … {line[-_LONGEST // 2 :]}"
        super().__init__(line)


class DoesNotFitError(Problem):
    """A workload that goes beyond the end of a drive."""


class NoRequestsError(Problem):
    """A trace in which nothing is asked of a disk."""


class NotFoundError(Problem):
    """A name that means no file, and nothing that is bundled."""
