# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drives: profiles in TOML, what they are made from, and how well they hold against measured drives.

The Python interface has a function of this package's name, headwaiter.drives(). An import of the package takes its place, so
the package can be called as well.
"""

from __future__ import annotations

import sys
from types import ModuleType

from headwaiter.drives.profile import Profile, bundled, find_drive, load

__all__ = ["Profile", "bundled", "drives", "find_drive", "load"]


def drives() -> dict[str, Profile]:
    """The bundled drives by name.

    >>> import headwaiter
    >>> drive = headwaiter.drives()["wd-re-4tb"]
    >>> drive.description
    'Western Digital RE class, 4 TB, 7200 rpm, SATA (about 2012)'
    >>> drive.sectors * 512  # bytes
    4078107924480
    """
    return {name: load(path) for name, path in bundled().items()}


class _Callable(ModuleType):
    def __call__(self) -> dict[str, Profile]:
        return drives()


sys.modules[__name__].__class__ = _Callable
