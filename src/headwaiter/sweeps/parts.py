# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A folder of results: Parquet in parts, each written whole, so that what is there is right whenever the work is cut short.

A row has a key, and each key is there once. Folders are named after columns (`workload=…/drive=…`), as Hive does, and what reads
Parquet reads the folder as one table. Names that begin with `_` or `.` are not of the table.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from headwaiter.base.errors import Problem, plain
from headwaiter.base.records import Record, fields

if TYPE_CHECKING:
    import pandas as pd

_ABOUT, _LOCK = "_headwaiter.json", "_lock"
_KINDS = {str: "string", int: "int64", float: "float64", bool: "bool_"}


def check_dask() -> None:
    """Problem if what many runs need is not installed."""
    try:
        import distributed  # noqa: F401, PLC0415 (an optional dependency)
        import pandas  # noqa: F401, PLC0415
        import pyarrow  # noqa: F401, PLC0415
    except ImportError as e:
        raise Problem(f"this needs Dask and pyarrow, and {e.name} is missing: pip install 'headwaiter[sweep]'") from None


def parquet_schema(kind: type[Record], without: Sequence[str] = ()) -> Any:
    """The columns of a record, but for some."""
    import pyarrow as pa  # noqa: PLC0415

    columns = [one for one in fields(kind) if one.key not in without]
    made = [
        pa.field(one.key, getattr(pa, _KINDS[one.type])(), metadata={"meaning": one.meaning, "unit": one.unit}) for one in columns
    ]
    return pa.schema(made, metadata={"headwaiter": kind.__name__})


class ParquetParts:
    """The folder. `folders`: the columns that it is parted by."""

    def __init__(self, folder: Path, kind: type[Record], folders: Sequence[str] = ()) -> None:
        self.folder, self.kind, self.folders = folder, kind, tuple(folders)
        self._names = {one.key: one.name for one in fields(kind)}

    # --- whose it is ---

    @contextmanager
    def held(self, about: Mapping[str, Any], again: str, *, extend: bool = False) -> Iterator[None]:
        """Be the only one who writes into it. `about`: what it is made from, by which one knows it again.

        Problem if it holds something else and that is not to be extended (`again` says how), or somebody else is at work in it.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as e:
            raise Problem(f"{self.folder}: {e.strerror}") from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Problem(f"{self.folder}: another process is at work in it") from None
            self._claim(about, again, extend)
            for stale in self.folder.rglob(".part-*"):
                stale.unlink(missing_ok=True)
            self._heal()
            yield
        finally:
            os.close(handle)

    def _claim(self, about: Mapping[str, Any], again: str, extend: bool) -> None:
        path = self.folder / _ABOUT
        known = self._about()
        if known is None:
            strange = [one for one in self.folder.iterdir() if one.name != _LOCK]
            if strange:
                raise Problem(f"{self.folder}: not empty, and no results of headwaiter ({plain(strange[0].name)})")
        elif known.get("kind") != self.kind.__name__:
            raise Problem(f"{self.folder}: holds results of another kind")
        elif known.get("about") != about and not extend:
            raise Problem(f"{self.folder}: holds results of another {again}")
        text = json.dumps({"headwaiter": 1, "kind": self.kind.__name__, "about": about}, indent=1) + "\n"
        self._write(path, lambda to: to.write_text(text, encoding="utf-8"))

    def _about(self) -> dict[str, Any] | None:
        try:
            found = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise Problem(f"{self.folder / _ABOUT}: damaged") from None
        return found if isinstance(found, dict) else None

    def check(self) -> None:
        """Problem if there are no such results."""
        known = self._about() if self.folder.is_dir() else None
        if known is None or known.get("kind") != self.kind.__name__:
            raise Problem(f"{self.folder}: no results of this kind")

    # --- what is there ---

    def files(self) -> list[Path]:
        """All parts, in one order."""
        return sorted(self.folder.rglob("part-*.parquet"))

    def _column(self, path: Path, *names: str) -> Any:
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            return pq.read_table(path, columns=list(names), partitioning=None)
        except Exception as e:
            raise Problem(f"{path}: a damaged Parquet file ({plain(str(e).splitlines()[0][:100])})") from None

    def keys(self) -> dict[str, bool]:
        """The key of each row, and whether it failed."""
        found: dict[str, bool] = {}
        for path in self.files():
            table = self._column(path, "key", "error")
            found |= {
                key: error is not None for key, error in zip(*(table[c].to_pylist() for c in table.column_names), strict=True)
            }
        return found

    def _heal(self) -> None:
        """Leave one row of a key that is there twice because work was cut short between two steps. A failed one goes first."""
        seen: dict[str, tuple[Path, bool]] = {}
        drop: dict[Path, set[str]] = {}
        for path in self.files():
            table = self._column(path, "key", "error")
            for key, error in zip(table["key"].to_pylist(), table["error"].to_pylist(), strict=True):
                if key not in seen:
                    seen[key] = (path, error is not None)
                elif seen[key][1] and error is None:
                    drop.setdefault(seen[key][0], set()).add(key)
                    seen[key] = (path, False)
                else:
                    drop.setdefault(path, set()).add(key)
        for path, keys in drop.items():
            self._without(path, keys)

    def forget(self, keys: Iterable[str]) -> None:
        """Take rows of these keys out, part by part."""
        gone = set(keys)
        for path in self.files() if gone else ():
            self._without(path, gone)

    def _without(self, path: Path, keys: set[str]) -> None:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        table = pq.read_table(path, partitioning=None)
        keep = [key not in keys for key in table["key"].to_pylist()]
        if all(keep):
            return
        if not any(keep):
            path.unlink()
            return
        self._write(path, lambda to: pq.write_table(table.filter(pa.array(keep)), to))

    # --- adding ---

    def add(self, rows: Sequence[Record]) -> None:
        """Keep rows: a part for each folder that they belong to. Each appears whole, on the disk, or not at all."""
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        by: dict[Path, list[Record]] = {}
        for row in rows:
            where = self.folder.joinpath(*(f"{key}={quote(getattr(row, self._names[key]), safe='')}" for key in self.folders))
            by.setdefault(where, []).append(row)
        schema = parquet_schema(self.kind, self.folders)
        for where, some in by.items():
            columns = {name: [getattr(row, self._names[name]) for row in some] for name in schema.names}
            table = pa.table(columns, schema=schema)
            where.mkdir(parents=True, exist_ok=True)
            self._write(where / f"part-{secrets.token_hex(8)}.parquet", lambda to, table=table: pq.write_table(table, to))

    @staticmethod
    def _write(path: Path, fill: Any) -> None:
        """A file that appears whole. It stands on the disk before it has its name."""
        temporary = path.with_name(f".part-{secrets.token_hex(8)}")
        try:
            fill(temporary)
            with temporary.open("rb") as f:
                os.fsync(f.fileno())
            temporary.replace(path)
        except OSError as e:
            raise Problem(f"{path}: {e.strerror or 'cannot be written'}") from None
        finally:
            temporary.unlink(missing_ok=True)

    def frame(self) -> pd.DataFrame:
        """All rows as a DataFrame, columns in the order of the record. Problem if a part is damaged."""
        import pandas as pd  # noqa: PLC0415
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.dataset as ds  # noqa: PLC0415

        names = [one.key for one in fields(self.kind)]
        files = [str(one) for one in self.files()]
        if not files:
            return pd.DataFrame(columns=names)
        whole = parquet_schema(self.kind)
        folders = ds.partitioning(pa.schema([(name, pa.string()) for name in self.folders]), flavor="hive")
        try:
            table = ds.dataset(
                files, schema=whole, format="parquet", partitioning=folders, partition_base_dir=str(self.folder)
            ).to_table()
        except Exception as e:
            raise Problem(f"{self.folder}: a damaged Parquet file ({plain(str(e).splitlines()[0][:100])})") from None
        frame: pd.DataFrame = table.select(names).to_pandas()
        return frame
