# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which schedulers a kernel has, could load, and lacks."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from headwaiter.engine.schedulers import catalogue

_ALIAS = re.compile(r"alias (\S+)-iosched \S+")
_MODULE = re.compile(r"(?:.*/)?([\w-]+?)(?:[-_]iosched)?\.ko(?:\.\w+)?:")


def loadable(root: Path = Path("/"), release: str | None = None) -> set[str]:
    """Schedulers, by their names in the kernel, for which there are modules."""
    folder = root / "lib" / "modules" / (release or platform.release())
    ours = {s.kernel_name for s in catalogue().values() if s.name != "none"}
    aliases = {m[1] for line in _lines(folder / "modules.alias") if (m := _ALIAS.match(line))}
    files = {m[1].replace("_", "-") for line in _lines(folder / "modules.dep") if (m := _MODULE.match(line))}
    return ours & (aliases | files)


def known(kernel_names: Sequence[str]) -> dict[str, str]:
    """Return those of these schedulers of a kernel that can be simulated, with their names here."""
    here = {s.kernel_name: s.name for s in catalogue().values()}
    return {name: here[name] for name in kernel_names if name in here}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
