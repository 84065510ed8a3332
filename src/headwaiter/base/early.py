# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The first milliseconds, while the rest is loaded: closed descriptors, and signals while there is nothing to tidy yet."""

from __future__ import annotations

import contextlib
import os
import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end the program with a message."""


def fill_closed() -> None:
    """Put /dev/null where standard input, output or error is closed: nothing that is opened later may stand in their place.

    Input is empty then. What is written to output is still an error, and what is said on error goes nowhere. Programs that are
    started have the same.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                # Those below are open, so that this is the lowest that is free.
                os.set_inheritable(os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY), True)


def heeded() -> list[int]:
    """Without those that were ignored when the program was started, as under nohup."""
    return [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]


def last_words(number: int) -> None:
    """Say on stderr which signal ended the process."""
    os.write(2, f"headwaiter: ended by {signal.Signals(number).name}\n".encode())


def end(number: int, _: object = None) -> None:
    """End at once, with the status that shells have for a signal."""
    try:
        last_words(number)
    finally:
        os._exit(128 + number)


def end_at_once_on_signals() -> None:
    """Until headwaiter.base.ending is loaded, which ends more tidily."""
    for number in heeded():
        signal.signal(number, end)
