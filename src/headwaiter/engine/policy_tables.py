# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables that a scheduler can be given, from core's own declarations (core/table.h): checked and read by core itself."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem, shown
from headwaiter.base.reading import TEXT_BYTES, read_bytes
from headwaiter.engine.native import borrow, ffi, lib, text

Cells = NDArray[np.int64]
"""Rows of a table: shape (rows, columns)."""
Setting = int | Cells
"""The value of a setting: a tunable's number, or a table's rows."""
Readers = Mapping[tuple[str, str], Callable[[Path], Cells]]
"""Who reads files that are not plain rows, by the table's name and the file's ending, such as ("config", ".toml")."""

LEFT_OUT = ("no", "as in the row before", "one more than in the row before")


@dataclass(frozen=True)
class PolicyColumn:
    """A column: limits of its cells, whether each row has more than the one before, and what text may leave out (LEFT_OUT)."""

    name: str
    unit: str
    help: str
    minimum: int
    maximum: int
    ascending: bool
    left_out: str
    choices: tuple[str, ...]
    """Names of 0, 1, …; text has names, arrays have numbers."""


@dataclass(frozen=True)
class PolicyTable:
    """Rows that a scheduler can be given."""

    scheduler: str
    name: str
    help: str
    columns: tuple[PolicyColumn, ...]
    min_rows: int
    max_rows: int
    common: bool
    """Every scheduler has it."""

    def check(self, where: str, rows: Any) -> Cells:
        """The rows as an array of int64, shape (rows, columns). Problem, a line beginning with `where`, if core refuses them."""
        try:
            given = np.asarray(rows)
        except ValueError:
            raise Problem(f"{where}: {self.name}: rows of different lengths") from None
        if given.size == 0 and given.ndim < 3:
            given = np.empty((0, len(self.columns)), np.int64)
        if given.ndim != 2 or given.dtype.kind not in "iu" or (given.dtype == np.uint64 and (given > 2**63 - 1).any()):
            raise Problem(f"{where}: {self.name}: expected rows of whole numbers of at most 64 bits")
        cells = np.ascontiguousarray(given, np.int64)
        error = ffi.new("struct hws_table_error *")
        known = (self.scheduler.encode(), self.name.encode())
        if lib.hws_table_check(*known, borrow("int64_t[]", cells), *cells.shape, error) < 0:
            raise Problem(f"{where}: {text(error.text)}")
        return cells

    def parse(self, where: str, rows: bytes) -> Cells:
        """The rows that text says, one a line; Problem if core refuses them."""
        cells = np.empty((self.max_rows, len(self.columns)), np.int64)
        n, error = ffi.new("uint32_t *"), ffi.new("struct hws_table_error *")
        known = (self.scheduler.encode(), self.name.encode())
        if lib.hws_table_parse(*known, rows, len(rows), borrow("int64_t[]", cells), n, error) < 0:
            raise Problem(f"{where}: {text(error.text)}")
        return cells[: n[0]].copy()

    def show(self, cells: Cells, brief: bool = False) -> str:
        """Rows that have passed check() as text, one a line; `brief` leaves out what text may leave out."""
        known = (self.scheduler.encode(), self.name.encode(), borrow("int64_t[]", np.ascontiguousarray(cells)), len(cells), brief)
        length = lib.hws_table_print(*known, ffi.NULL, 0)
        room = ffi.new("char[]", length + 1)
        lib.hws_table_print(*known, room, length + 1)
        return text(room)

    def read(self, path: Path, readers: Readers | None = None) -> Cells:
        """The rows of a file: text, or what a reader makes of a file with such an ending. Problem if core refuses them."""
        reader = (readers or {}).get((self.name, path.suffix))
        if reader:
            return self.check(shown(str(path), 200), reader(path))
        return self.parse(shown(str(path), 200), read_bytes(path, TEXT_BYTES))


def _column(policy: bytes, table: bytes, index: int) -> PolicyColumn:
    c = ffi.new("struct hws_column *")
    lib.hws_column_at(policy, table, index, c)
    choices: list[str] = []
    while c.choices != ffi.NULL and c.choices[len(choices)] != ffi.NULL:
        choices.append(text(c.choices[len(choices)]))
    return PolicyColumn(
        text(c.name), text(c.unit), text(c.help), c.min, c.max, c.order == 1, LEFT_OUT[c.left_out], tuple(choices)
    )  # fmt: skip


def table_at(policy: bytes, index: int) -> PolicyTable:
    """Return the policy's table of that index; it must have as many."""
    t = ffi.new("struct hws_table *")
    status = lib.hws_table_at(policy, index, t)
    assert status != -errno.ENOENT, (policy, index)
    columns = tuple(_column(policy, ffi.string(t.name), i) for i in range(t.nr_columns))
    return PolicyTable(policy.decode(), text(t.name), text(t.help), columns, t.min_rows, t.max_rows, bool(t.common))
