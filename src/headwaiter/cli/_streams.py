# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Standard output of a command: UTF-8 unless a terminal wants something else, and an end that is told if it cannot be written."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from headwaiter.base.early import fill_closed


class Unwritten(Exception):
    """Standard output cannot be written. No OSError, because libraries handle those in ways of their own."""

    def __init__(self, why: OSError) -> None:
        super().__init__(f"standard output: {why.strerror}")
        self.closed_pipe = isinstance(why, BrokenPipeError)


class _Output(io.FileIO):
    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as e:
            raise Unwritten(e) from None


def standard_streams() -> None:
    """Make standard output one that raises Unwritten, and see that it and the others are there.

    A terminal gets "?" for characters that it does not have; all else gets the same bytes everywhere.
    """
    fill_closed()
    terminal = os.isatty(1)
    encoding = sys.stdout.encoding if terminal else "utf-8"
    output = io.BufferedWriter(_Output(1, "wb", closefd=False))
    sys.stdout = io.TextIOWrapper(output, encoding, errors="replace", line_buffering=terminal)
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.FileIO(2, "wb", closefd=False), "utf-8", errors="replace", write_through=True)


def discard_output() -> None:
    """Let what is buffered for standard output, and all that follows, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
