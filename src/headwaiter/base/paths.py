# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Find the package's own files: beside its modules where it is installed, in the checkout where it is editable."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
INSTALLED = (PACKAGE / "data").is_dir()
_DATA = PACKAGE / "data" if INSTALLED else PACKAGE.parents[1]
DRIVES = _DATA / "drives"
WORKLOADS = _DATA / "workloads"
HEADER = PACKAGE / "headwaiter.h" if INSTALLED else _DATA / "sim" / "headwaiter.h"


def library() -> Path:
    """The shared library. Of an editable install meson-python's loader knows where it was built."""
    name = "libheadwaiter.so"
    if INSTALLED:
        return PACKAGE / name
    from importlib.resources import files  # noqa: PLC0415 (slow, and no installed package needs it)

    return Path(str(files("headwaiter").joinpath(name)))
