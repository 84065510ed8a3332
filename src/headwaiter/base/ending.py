# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Signals that end the program: within a second, and tidily.

The signal raises `Ended` in the main thread, so that temporary files go away and programs that were started end. Long loops in
other threads ask `check()`. A main thread that is in compiled code for too long is not waited for: what was registered
with `tidied` is done, and the process ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headwaiter.base.early import heeded, last_words

GRACE_S = 0.3
_received: list[int] = []
_actions: dict[object, Callable[[], Any]] = {}
_watched = threading.Event()
_dropped = threading.Event()
_told = threading.Lock()
"""Held from the moment that the end is told."""


class Ended(SystemExit):
    """The process was told to end; the code is 128 + the signal's number, as shells have it."""


class _Gentle:
    """A block that the first signal does not end. The handler and the watching thread each hear of every signal."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.left = {"handler": True, "watch": True}

    def takes(self, who: str) -> bool:
        """Return whether this signal, of which `who` hears, is the first."""
        first, self.left[who] = self.left[who], False
        if first:
            self.told.set()
        return first


_gentle: list[_Gentle] = []


@contextmanager
def gently() -> Iterator[threading.Event]:
    """Within the block the first signal only sets the event, so that what has been done can be kept; the next one ends.

    A block around this one is told of that signal when this one is left: its own work is to end, too.
    """
    block = _Gentle()
    _gentle.append(block)
    try:
        yield block.told
    finally:
        _gentle.remove(block)
        for who in [who for who, left in block.left.items() if not left and _gentle]:
            _gentle[-1].takes(who)


def check() -> None:
    """Raise Ended if the process has been told to end, or this work is not wanted any more."""
    if _received:
        raise Ended(128 + _received[0])
    if _dropped.is_set():
        raise Ended(0)


def drop(thread: threading.Thread) -> None:
    """Let a thread end at its next check(), and wait for that a moment; what it works for is not wanted any more."""
    _dropped.set()
    thread.join(GRACE_S)
    if not thread.is_alive():
        _dropped.clear()


def tell(why: Ended) -> None:
    """Say on stderr, once, which signal ended the process."""
    if _told.acquire(blocking=False):
        with contextlib.suppress(OSError, ValueError):
            last_words(int(why.code or 0) - 128)


@contextmanager
def tidied(action: Callable[[], Any]) -> Iterator[None]:
    """Do `action` when the block is left, and also if the process ends without leaving it."""
    key = object()
    _actions[key] = action
    try:
        yield
    finally:
        try:
            action()
        finally:
            del _actions[key]


def end_tidily_on_signals() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the process as this module says. For the main thread; once is enough."""
    if _watched.is_set():
        return
    _watched.set()

    def told(received: int, _: object) -> None:
        if _gentle and _gentle[-1].takes("handler"):
            return
        _received.append(received)
        raise Ended(128 + received)

    ours, pythons = os.pipe()
    os.set_blocking(pythons, False)
    signal.set_wakeup_fd(pythons, warn_on_full_buffer=False)
    for number in heeded():
        signal.signal(number, told)
    threading.Thread(target=_watch, args=(ours,), daemon=True).start()


def _watch(signals: int) -> None:
    """Python's handler of signals, which may run at any time, writes each into a pipe; `told` must wait for the main thread."""
    received = os.read(signals, 1)[0]
    while _gentle and _gentle[-1].takes("watch"):
        received = os.read(signals, 1)[0]
    _received.append(received)
    threading.Event().wait(GRACE_S)
    for action in list(_actions.values()):
        with contextlib.suppress(Exception):
            action()
    tell(Ended(128 + received))
    os._exit(128 + received)
