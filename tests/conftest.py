# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests share: where the recorded data is, and what happens when a tool is missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def missing(what: str) -> None:
    """Skip, saying what to install; with HEADWAITER_REQUIRE_ALL=1 (CI) that is a failure."""
    if os.environ.get("HEADWAITER_REQUIRE_ALL") == "1":
        pytest.fail(f"required here: {what}")
    pytest.skip(what)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded data (../shared, or $HEADWAITER_SHARED)."""
    path = Path(os.environ.get("HEADWAITER_SHARED", ROOT.parent / "shared"))
    if not (path / "data").is_dir():
        pytest.skip(f"recorded data is not there: {path}/data (set HEADWAITER_SHARED)")
    return path
