# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Signals in the first milliseconds, while the rest of the program is loaded: there is nothing to tidy yet."""

from __future__ import annotations

import os
import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends the program with a word."""


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
    """Until headwaiter.ending is loaded, which ends more tidily."""
    for number in heeded():
        signal.signal(number, end)
