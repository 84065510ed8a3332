# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pictures, drawn with matplotlib where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import writing

_FORMATS = ("png", "svg", "pdf")
# Neither dates nor versions: the same command writes the same bytes.
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
_DESCRIPTION = {"png": "Description", "svg": "Description", "pdf": "Subject"}


def check_form(path: Path) -> str:
    """The kind of picture that a file's name asks for; Problem if it is not known."""
    form = path.suffix.lstrip(".").lower()
    if form not in _FORMATS:
        raise Problem(f"{path}: the plot's name must end in {', '.join('.' + f for f in _FORMATS)}")
    return form


@contextmanager
def figure(path: Path, *subplots: int, description: str = "", **more: Any) -> Iterator[Any]:
    """Axes, as pyplot.subplots() makes them, whose picture goes into the file when the block ends well.

    The file has the description as text, too. Problem if the file's name has no ending that is known, or there is no matplotlib.
    """
    form = check_form(path)
    try:
        import matplotlib  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise Problem("pictures need matplotlib (pip install headwaiter[plot])") from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "headwaiter"  # or names in the file are random
    from matplotlib import pyplot  # noqa: PLC0415

    drawn, axes = pyplot.subplots(*subplots, **more)
    try:
        yield axes
        with writing(path) as temporary:
            drawn.savefig(temporary, format=form, metadata=_METADATA[form] | {_DESCRIPTION[form]: description or None})
    finally:
        pyplot.close(drawn)
