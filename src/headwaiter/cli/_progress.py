# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How far the work is: a line on a terminal that says what runs, how much is done, how fast, and how long the rest will take."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem
from headwaiter.base.figures import brief
from headwaiter.base.reading import beginning
from headwaiter.report.terminal import a_console

_RECENT_S = 1.0
"""A task that reported within this time counts as under way."""
_READ_BYTES_PER_S = 15e6
"""Rate at which a recording in text is read, with all that is done before its replay."""
_BEGINNING_BYTES = 1 << 20
"""So much of a packed one tells how large the text is."""
_BESIDE_COLUMNS = 64
"""Columns to the right of a bar's title."""
_FEWEST_COLUMNS = 16
_SHOWN_S = 1.0
"""A shorter wait needs no bar."""


def amount(n: float) -> str:
    """Three digits and a prefix: 512, 4.1k, 1.25M."""
    for size, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size:
            return f"{brief(n / size)}{prefix}"
    return f"{n:.0f}"


class _Done(ProgressColumn):
    """I/Os done, or whatever the work is counted in, of all, and how many a second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """See ProgressColumn."""
        total = f" of {amount(task.total)}" if task.total else ""
        speed = task.finished_speed or task.speed
        return Text(f"{amount(task.completed)}{total} {self.unit}{f', {amount(speed)}/s' if speed else ''}", "progress.download")


class Parts:
    """The state of each part of the work, and which parts are under way."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.done: dict[str, int] = {}
        self.heard: dict[str, float] = {}
        self.lock = threading.Lock()

    def update(self, part: str, count: int) -> tuple[int, str]:
        """So much of a part is done: how much that is of all, and what is under way."""
        with self.lock:
            now = self.clock()
            self.done[part], self.heard[part] = count, now
            recent = [name for name, at in self.heard.items() if now - at <= _RECENT_S]
            return sum(self.done.values()), ", ".join(recent)


@contextmanager
def progress_bar(
    title: str, total: int | None, stderr: Console | None = None, unit: str = "I/Os"
) -> Iterator[Callable[[str, int], None]]:
    """A bar on a terminal, nothing in a pipe. Yields `update(part, done)`, which may be called from any thread.

    `total` is about how much there is to do; None if that is not known.
    """
    if stderr is None and not sys.stderr.isatty():
        yield lambda part, count: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        _Done(unit),
        TimeRemainingColumn(compact=True),
    )
    console = stderr or a_console(stderr=True)
    parts = Parts()
    with Progress(*columns, console=console, transient=True) as bar, tidied(lambda: console.show_cursor(True)):
        task = bar.add_task(title, total=total)

        def update(part: str, count: int) -> None:
            done, under_way = parts.update(part, count)
            words = Text(f"{title}: {under_way}")
            words.truncate(max(_FEWEST_COLUMNS, console.width - _BESIDE_COLUMNS), overflow="ellipsis")
            # An estimate may be too low.
            bar.update(task, completed=done, total=None if total is None else max(total, done), description=words.plain)

        yield update


class _Clock(Progress):
    """A bar for work that takes a given time, which passes by itself. After it nothing says how long the rest will take."""

    def get_renderables(self) -> Iterable[RenderableType]:
        """See Progress."""
        for task in self.tasks:
            task.completed = task.elapsed or 0.0
            if task.total is not None and task.completed >= task.total:
                task.total, task.description, task.fields["said"] = None, task.fields["then"], ""
        yield from super().get_renderables()


class _Passed(ProgressColumn):
    """Time that has passed, and what is left, if that is known."""

    def render(self, task: Task) -> Text:
        """See ProgressColumn."""
        if task.total is None:
            return Text(f"{task.completed:.0f} s", "progress.remaining")
        left = max(0.0, task.total - task.completed)
        said = f"  {task.fields['said']}" if task.fields["said"] else ""
        return Text(f"{task.completed:.0f} of {task.total:.0f} s, {left:.0f} s left{said}", "progress.remaining")


@contextmanager
def clock_bar(title: str, seconds: float, then: str, stderr: Console | None = None) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal that fills while so many seconds pass, nothing in a pipe; `then` is what is done with what was seen.

    Yields `say(text)`, which puts a few words beside it.
    """
    if stderr is None and not sys.stderr.isatty():
        yield lambda text: None
        return
    console = stderr or a_console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), _Passed())
    with _Clock(*columns, console=console, transient=True) as bar, tidied(lambda: console.show_cursor(True)):
        task = bar.add_task(title, total=seconds, said="", then=then)
        yield lambda text: bar.update(task, said=text)


@contextmanager
def reading_bar(path: Path, stderr: Console | None = None) -> Iterator[Callable[[str], None]]:
    """Show a bar while a file is read, for about as long as its size lets one expect.

    Yields `say(text)`, which tells what else is done before the work can begin.
    """
    if stderr is None and not sys.stderr.isatty():
        yield lambda text: None
        return
    size, text = _sizes(path)
    seconds = text / _READ_BYTES_PER_S
    title = f"{path.name}: reading {amount(size)}B"
    with clock_bar(title, seconds, title, stderr) if seconds > _SHOWN_S else nullcontext(lambda text: None) as say:
        yield say


def _sizes(path: Path) -> tuple[int, float]:
    """(bytes of a file, about how many they are unpacked); of what is none, or cannot be read, which is told later, 0."""
    try:
        if not path.is_file():
            return 0, 0
        size = path.stat().st_size
        text, stored = beginning(path, _BEGINNING_BYTES)
        return size, size * len(text) / max(1, stored)
    except (OSError, ValueError, Problem):
        return 0, 0


@contextmanager
def work_bar(seconds: float | None, stderr: Console | None = None) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal of work that has taken about so many seconds before, None if it is new; nothing in a pipe.

    Yields `say(text)`, which tells what is going on, from any thread.
    """
    if stderr is None and not sys.stderr.isatty():
        yield lambda text: None
        return
    console = stderr or a_console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), _Passed())
    with _Clock(*columns, console=console, transient=True) as bar, tidied(lambda: console.show_cursor(True)):
        task = bar.add_task("starting", total=seconds, said="", then="longer than last time")
        yield lambda text: bar.update(task, description=text, then=text)


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """A line of what is going on, on a terminal only. Yields `say(text)`."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    with a_console(stderr=True, markup=False).status("starting") as status:
        yield status.update
