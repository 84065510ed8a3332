# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which schedulers a kernel has, could load, and lacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headwaiter.engine.schedulers import catalogue
from headwaiter.queue.loading import fits, patterns


def loadable(root: Path = Path("/"), release: str | None = None) -> set[str]:
    """Schedulers, by their names in the kernel, for which there are modules."""
    found = patterns(root, release)
    return {s.kernel_name for s in catalogue().values() if s.name != "none" and fits(s.kernel_name, found)}


def known(kernel_names: Sequence[str]) -> dict[str, str]:
    """Return those of these schedulers of a kernel that can be simulated, with their names here."""
    here = {s.kernel_name: s.name for s in catalogue().values()}
    return {name: here[name] for name in kernel_names if name in here}
