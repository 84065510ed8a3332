# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which schedulers a kernel has, could load, and lacks."""

from __future__ import annotations

from pathlib import Path

from headwaiter.engine.schedulers import catalogue
from headwaiter.queue.loading import fits, patterns


def loadable(root: Path = Path("/"), release: str | None = None) -> set[str]:
    """Schedulers, by their names in the kernel, for which there are modules."""
    found = patterns(root, release)
    return {s.kernel_name for s in catalogue().values() if s.name != "none" and fits(s.kernel_name, found)}
