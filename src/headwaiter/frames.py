# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Columns as pandas' tables, where it is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwaiter.errors import Problem

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: Mapping[str, Any], index: str | None = None) -> pd.DataFrame:
    """A DataFrame of columns of one length; `index` names the one that is its index. Problem if there is no pandas."""
    try:
        import pandas as pd  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise Problem("to_pandas() needs pandas (pip install headwaiter[pandas])") from None
    made = pd.DataFrame(dict(columns))
    return made.set_index(index) if index else made
