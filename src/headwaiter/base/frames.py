# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Columns as pandas' tables, where it is installed; and such tables, and Parquet's files, as CSV that can be read."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from headwaiter.base.errors import Problem, shown

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


def is_frame(given: object) -> TypeGuard[pd.DataFrame]:
    """Return whether it is a DataFrame; pandas is not loaded for that."""
    return any(kind.__name__ == "DataFrame" and kind.__module__.startswith("pandas") for kind in type(given).__mro__)


def frame_csv(given: pd.DataFrame) -> bytes:
    """The columns of a DataFrame as CSV with a header: times since something in seconds, the index only if it has a name."""
    table = given.reset_index() if given.index.name is not None else given
    seconds = {name: column.dt.total_seconds() for name, column in table.items() if column.dtype.kind == "m"}
    text: str = table.assign(**seconds).to_csv(index=False)
    return text.encode()


def is_parquet(head: bytes) -> bool:
    """Return whether a file's content begins so."""
    return head.startswith(b"PAR1")


def parquet_csv(path: Path, data: bytes) -> bytes:
    """The columns of a Parquet file as CSV. Problem if it is damaged, or what reads it is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415 (an optional dependency)
        import pyarrow  # noqa: F401, PLC0415 (the same)
    except ImportError:
        raise Problem(f"{path}: a Parquet file needs pandas and pyarrow (pip install headwaiter[parquet])") from None
    try:
        return frame_csv(pd.read_parquet(io.BytesIO(data), engine="pyarrow"))
    except MemoryError:
        raise Problem(f"{path}: not enough memory to read it") from None
    except Exception as e:
        # pyarrow raises whatever the damage leads to.
        cause = (str(e).splitlines() or [type(e).__name__])[0]
        raise Problem(f"{path}: a damaged Parquet file ({shown(cause[:100])})") from None
