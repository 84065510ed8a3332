# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sweeps and fleets without workers: what is tested then is not how work is spread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from headwaiter.sweeps import farm


class _Nobody:
    def workers(self) -> int:
        return 0


def _results(self: Any, items: Any) -> Iterator[tuple[list[Any], Any]]:
    for item in items:
        yield [item], self.run(self.pack([item]))


def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have batches run in this process, one after another."""
    monkeypatch.setattr(farm.Spreading, "results", _results)
    for room in ("sweeps.sweep", "fleet.fleet"):
        monkeypatch.setattr(f"headwaiter.{room}.workers_of", lambda *_: nullcontext(_Nobody()))
