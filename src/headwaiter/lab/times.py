# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long the lab takes: as long as last time, for what it has run before on this host."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import writing
from headwaiter.lab.host import cache_folder

_FILE = "times.json"
LEAST_S = 2.0
"""A shorter wait is not announced."""


@contextmanager
def timed(what: str, units: int = 1) -> Iterator[float | None]:
    """Yields about how many seconds the block will take, None if that is not known; remembered of a block that ends well.

    units: of which each takes about as long as any other.
    """
    each = _known().get(what)
    began = time.monotonic()
    yield each * units if each else None
    took = time.monotonic() - began
    if took < LEAST_S:
        return
    with suppress(OSError, Problem):  # it is only for people who wait
        cache_folder().mkdir(parents=True, exist_ok=True)
        with writing(cache_folder() / _FILE) as temporary:
            temporary.write_text(json.dumps({**_known(), what: took / units}, indent=1), encoding="utf-8")


def _known() -> dict[str, float]:
    """Seconds a unit."""
    try:
        found = json.loads((cache_folder() / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: float(value) for key, value in pairs if isinstance(value, int | float) and 0 < value < 1e9}
