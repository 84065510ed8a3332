# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `top` says would help, a scheduler or something else, as `watch` judges a window.

In a thread, for the screen must not stand still meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from headwaiter.base import ending
from headwaiter.base.errors import Problem
from headwaiter.queue.devices import Device
from headwaiter.recorder.packing import FullError
from headwaiter.study.schema import Lever
from headwaiter.top.feed import MINUTE_S, Feed
from headwaiter.watch.decide import Window

AGAIN_S = 60.0
"""After so many seconds what was said is judged anew."""
Judge = Callable[[Device, Path, float, int, str, Sequence[str]], Window]
"""(disk, an archive, its seconds, lost events, the scheduler in force, the others) -> what `watch` would make of it."""


class Adviser:
    """Judges the last minute, and again each minute; `text` is the last verdict, or "", and `levers` what helps beside that."""

    def __init__(self, feed: Feed, judge: Judge | None = None) -> None:
        self._feed, self._judge = feed, judge or replayed
        self._thread: threading.Thread | None = None
        self._next_ns = feed.began_ns + round(MINUTE_S * 1e9)
        self.text = ""
        self.levers: Sequence[Lever] = ()

    def look(self, now_ns: int, current: str | None, candidates: Sequence[str], lost: int) -> None:
        """Begin to judge, if it is time."""
        if now_ns < self._next_ns or (self._thread and self._thread.is_alive()) or current is None:
            return
        self._next_ns = now_ns + round(AGAIN_S * 1e9)
        self._thread = threading.Thread(target=self._run, args=(current, tuple(candidates), lost), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until what was begun is judged."""
        if self._thread:
            self._thread.join()

    def drop(self) -> None:
        """Give up the judgement that is under way."""
        if self._thread and self._thread.is_alive():
            ending.drop(self._thread)

    def _run(self, current: str, candidates: Sequence[str], lost: int) -> None:
        try:
            with TemporaryDirectory(prefix="headwaiter-") as folder:
                path = Path(folder) / self._feed.disk.name
                seconds = self._feed.archive(path)
                window = self._judge(self._feed.disk, path, seconds, lost, current, candidates)
            self.text, self.levers = sentence(window), window.levers
        except (Problem, FullError, OSError) as e:
            self.text, self.levers = f"not known: {e}", ()
        except ending.Ended:
            return


def replayed(device: Device, path: Path, seconds: float, lost: int, current: str, candidates: Sequence[str]) -> Window:
    """Find remedies by the replay of `watch`. What it needs is loaded only now: the screen appears without it."""
    from headwaiter.study.workload import Reading, read_recording  # noqa: PLC0415
    from headwaiter.traces import Source  # noqa: PLC0415
    from headwaiter.watch.sample import ReplayMethod  # noqa: PLC0415

    try:
        trace = read_recording(path, Reading(), Source(path))
    except Problem as e:
        raise Problem(str(e).removeprefix(f"{path}: ")) from None
    assert trace
    return ReplayMethod(levers=True).judge(device, trace, seconds, lost, current, candidates)


def sentence(window: Window) -> str:
    """Return what a window tells, for people: the verdict of the judge."""
    if window.trouble or window.answer is None:
        return f"not known ({window.trouble or 'there is no other scheduler that can be replayed'})"
    return f"{window.answer.text} (By a replay of the last {window.seconds:.0f} s.)"
