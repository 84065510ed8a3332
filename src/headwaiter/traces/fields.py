# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fields of big text files, found and converted for all lines at once.

A file is one array of bytes; a field is a pair of positions in it; a conversion walks the characters of all fields of a
column in step. Only a field that does not convert is looked at by itself, to say what is wrong and in which line.
Numbers are exact: a time of 1456095145.133076 s keeps its microseconds, which a double would not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.traces.model import MAX_SECTOR, bytes_to_sectors
from headwaiter.traces.source import Source

Array = npt.NDArray[Any]

_MAX_WIDTH, _DIGITS = 64, 19
_POWERS = 10 ** np.arange(_DIGITS, dtype=np.uint64)
_ROWS = 4096
"""Converted at once, so that their digits stay in the cache."""
_LONGEST_BYTES = 2**41 - 1
"""The longest request whose sectors can be counted in 32 bits."""
_SPACES = (9, 13, 32)
_PLAIN = re.compile(rb"[-+]?[0-9]+\Z")
_HEX = re.compile(rb"[0-9a-fA-F]{1,8}\Z")
_DECIMAL = re.compile(rb"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?\Z")
INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class FieldTable:
    """Fields of a text: row i, column j is data[start[i, j]:end[i, j]], in line lines[i] (from 1) of the file."""

    source: Source
    data: Array
    start: Array
    end: Array
    lines: Array

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self, index: Array) -> FieldTable:
        """Only the rows that index (numbers, or a mask) selects."""
        return FieldTable(self.source, self.data, self.start[index], self.end[index], self.lines[index])

    def text(self, row: int, column: int) -> str:
        """One field as text, whatever its bytes."""
        return self._raw(row, column).decode("utf-8", "replace")

    def problem(self, row: int, cause: str) -> Problem:
        return self.source.problem(cause, line=int(self.lines[row]))

    def integers(self, column: int, what: str, *, low: int = 0, high: int = INT64_MAX) -> Array:
        """Whole numbers, int64 of shape (rows,). Problem names the first field that is none, or outside low..high."""
        value, good = self._digits(self.start[:, column], self.end[:, column])
        values: Array
        good &= (self.end[:, column] > self.start[:, column]) & (value <= INT64_MAX)
        values = value.astype(np.int64)
        for row in np.flatnonzero(~good).tolist():
            values[row] = self._integer(row, column, what)
        outside = (values < low) | (values > high)
        if outside.any():
            row = int(np.argmax(outside))
            negative = "negative" if values[row] < 0 <= low else "out of range"
            raise self.problem(row, f"{what} {self._shown(row, column)} is {negative}")
        return values

    def integers_or(self, column: int, what: str, blank: int | None) -> Array:
        """Return a column of whole numbers, with `blank` for an empty field, if it is given."""
        if blank is None:
            return self.integers(column, what)
        values = np.full(len(self), blank, np.int64)
        filled = np.flatnonzero(self.start[:, column] < self.end[:, column])
        if len(filled):
            values[filled] = self.rows(filled).integers(column, what)
        return values

    def byte_ranges(self, offset: tuple[int, str], length: tuple[int, str]) -> tuple[Array, Array]:
        """The sectors that ranges of bytes touch: (first, count). Each column is given with its name."""
        first = self.integers(*offset, high=MAX_SECTOR * SECTOR_BYTES - 1)
        return bytes_to_sectors(first, self.integers(*length, high=_LONGEST_BYTES))

    def hexadecimal(self, column: int, what: str) -> Array:
        """Hexadecimal numbers of up to 8 digits, int64 of shape (rows,)."""
        packed = self.packed(column)
        distinct, inverse = np.unique(packed, return_inverse=True)
        values = []
        for code in distinct.tolist():
            text = code.to_bytes(8, "big").lstrip(b"\0")
            if not _HEX.match(text):
                row = int(np.argmax(packed == code))
                raise self.problem(row, f"{what} {self._shown(row, column)} is not a hexadecimal number")
            values.append(int(text, 16))
        return np.array(values, np.int64)[inverse]

    def fixed(
        self, column: int, what: str, scale: int, *, low: int = 0, high: int = INT64_MAX, blank: int | None = None
    ) -> Array:
        """Decimal numbers times 10**scale, rounded half up; int64 of shape (rows,). An empty field is blank, if given.

        With scale 9, seconds become nanoseconds. Raises Problem as integers() does.
        """
        start, end = self.start[:, column], self.end[:, column]
        dot = np.minimum(self._dots[np.searchsorted(self._dots, start)], end)
        whole, good = self._digits(start, dot)
        # Digits beyond the scale: the first of them rounds, the others only have to be digits.
        inside = np.minimum(np.minimum(dot + 1, end) + scale, end)
        fraction, good_fraction = self._digits(np.minimum(dot + 1, end), inside)
        rest, good_rest = self._digits(inside, np.minimum(inside + 1, end))
        good &= good_fraction & good_rest & (end - inside <= 1)
        good &= (end - start > (dot < end)) & (whole < INT64_MAX // 10**scale)
        shift = np.maximum(scale - (inside - np.minimum(dot + 1, end)), 0)
        scaled = whole * 10**scale + fraction * np.power(10, shift).astype(np.uint64) + (rest >= 5)
        values: Array = scaled.astype(np.int64)
        for row in np.flatnonzero(~good).tolist():
            if blank is not None and start[row] == end[row]:
                values[row] = blank
                continue
            values[row] = self._decimal(row, column, what, scale)
        outside = (values < low) | (values > high)
        if blank is not None:
            outside &= start < end
        if outside.any():
            row = int(np.argmax(outside))
            how = "negative" if values[row] < low else "out of range"
            raise self.problem(row, f"{what} {self._shown(row, column)} is {how}")
        return values

    def words(self, column: int, what: str, meaning: Mapping[str, int]) -> Array:
        """Words of a small vocabulary (up to 8 characters each) as the numbers they mean; int64 of shape (rows,)."""
        packed = self.packed(column)
        length = self.end[:, column] - self.start[:, column]
        values = np.full(len(self), -1, np.int64)
        for word, number in meaning.items():
            values[(packed == int.from_bytes(word.encode(), "big")) & (length == len(word))] = number
        if (values < 0).any():
            row = int(np.argmax(values < 0))
            known = ", ".join(word for word in meaning if word)
            raise self.problem(row, f"unknown {what} {self._shown(row, column)} (known: {known})")
        return values

    def packed(self, column: int) -> Array:
        """Fields of up to 8 characters as big-endian numbers, uint64 of shape (rows,); longer ones are 2**64 - 1."""
        start, end = self.start[:, column], self.end[:, column]
        value = np.zeros(len(self), np.uint64)
        for k in range(min(8, int((end - start).max(initial=0)))):
            here = start + k < end
            value[here] = value[here] << np.uint64(8) | self.data[start[here] + k]
        value[end - start > 8] = 2**64 - 1
        return value

    def distinct(self, columns: list[int]) -> tuple[list[tuple[str, ...]], Array]:
        """Distinct combinations of columns in order of first appearance, and which one each row has, shape (rows,)."""
        code = np.zeros(len(self), np.int64)
        for column in columns:
            start, end = self.start[:, column], self.end[:, column]
            width = max(1, int((end - start).max(initial=0)))
            if width > _MAX_WIDTH:
                row = int(np.argmax(end - start))
                raise self.problem(row, f"field {self._shown(row, column)} is too long")
            letters = np.zeros((len(self), width), np.uint8)
            for k in range(width):
                here = start + k < end
                letters[here, k] = self.data[start[here] + k]
            inverse = np.unique(letters.view(f"S{width}")[:, 0], return_inverse=True)[1]
            code = np.unique(code * (int(inverse.max(initial=0)) + 1) + inverse, return_inverse=True)[1]
        first = np.unique(code, return_index=True)[1]
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return [tuple(self.text(int(first[k]), c) for c in columns) for k in order], rank[code]

    @cached_property
    def _dots(self) -> Array:
        return np.append(np.flatnonzero(self.data == ord(".")), len(self.data))

    def _raw(self, row: int, column: int) -> bytes:
        return bytes(self.data[self.start[row, column] : self.end[row, column]].tobytes())

    def _shown(self, row: int, column: int) -> str:
        text = self.text(row, column)
        return repr(text if len(text) <= 40 else text[:40] + "…")

    def _digits(self, start: Array, end: Array) -> tuple[Array, Array]:
        """Unsigned numbers of up to 19 digits (leading zeros apart); an empty field is 0. (value, validity)."""
        value = np.zeros(len(start), np.uint64)
        width = end - start
        good = width <= _MAX_WIDTH
        most = min(_DIGITS, int(width.max(initial=0)))
        place = np.arange(most)
        for first in range(0, len(start), _ROWS):
            rows = slice(first, first + _ROWS)
            digit = self.data.take(end[rows, None] - (1 + place), mode="clip") - np.uint8(ord("0"))
            digit *= width[rows, None] > place
            good[rows] &= (digit <= 9).all(axis=1)
            value[rows] = digit @ _POWERS[:most]
        for row in np.flatnonzero(good & (width > _DIGITS)).tolist():
            good[row] = not self.data[start[row] : end[row] - _DIGITS].tobytes().strip(b"0")
        return value, good

    def _integer(self, row: int, column: int, what: str) -> int:
        raw = self._raw(row, column)
        if not raw:
            raise self.problem(row, f"{what} is missing")
        if not _PLAIN.match(raw):
            raise self.problem(row, f"{what} {self._shown(row, column)} is not a whole number")
        if len(raw) > _MAX_WIDTH or abs(int(raw)) > INT64_MAX:
            raise self.problem(row, f"{what} {self._shown(row, column)} is out of range")
        return int(raw)

    def _decimal(self, row: int, column: int, what: str, scale: int) -> int:
        raw = self._raw(row, column)
        if not raw:
            raise self.problem(row, f"{what} is missing")
        if not _DECIMAL.match(raw):
            raise self.problem(row, f"{what} {self._shown(row, column)} is not a number")
        number = Decimal(raw.decode("ascii"))
        if number.adjusted() + scale > 18 or abs(number.scaleb(scale)) > INT64_MAX - 1:
            raise self.problem(row, f"{what} {self._shown(row, column)} is out of range")
        return int((number.scaleb(scale) + Decimal("0.5")).__floor__())


def split(source: Source, columns: int, *, delimiter: str | None = None, skip_lines: int = 0) -> FieldTable:
    """Cut a text into rows of exactly `columns` fields; empty lines do not count.

    delimiter None means any run of blanks; otherwise blanks around fields are dropped. skip_lines leaves out a header.
    Raises Problem at the first line with more or fewer fields, and if there is no row at all.
    """
    data, begin, end, lines = _lines(source, skip_lines, delimiter)
    if delimiter is None:
        start, stop, row = _tokens(data, begin, end)
        counts = np.bincount(row, minlength=len(lines))
    else:
        cuts = np.flatnonzero(data == ord(delimiter))
        cuts = cuts[np.searchsorted(cuts, begin[0]) :] if len(begin) else cuts
        counts = np.searchsorted(cuts, end) - np.searchsorted(cuts, begin) + 1
    wrong = counts != columns
    if wrong.any():
        k = int(np.argmax(wrong))
        raise source.problem(f"{counts[k]} fields where {columns} are expected", line=int(lines[k]))
    if delimiter is not None:
        grid = cuts.reshape(len(lines), columns - 1)
        start = np.concatenate([begin[:, None], grid + 1], axis=1).ravel()
        stop = np.concatenate([grid, end[:, None]], axis=1).ravel()
        _strip(data, start, stop)
    return FieldTable(source, data, start.reshape(-1, columns), stop.reshape(-1, columns), lines)


def split_ragged(source: Source) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Blank-separated tokens of lines that differ in number: (data, start, end, first, line_end, lines).

    Line k (not empty) has tokens first[k] to first[k + 1] - 1, ends at byte line_end[k] and is lines[k] in the file.
    """
    data, begin, end, lines = _lines(source, 0)
    start, stop, row = _tokens(data, begin, end)
    return data, start, stop, np.searchsorted(row, np.arange(len(lines) + 1)), end, lines


def _lines(source: Source, skip: int, delimiter: str | None = None) -> tuple[Array, Array, Array, Array]:
    """(data, begin, end, number) of the lines that hold anything; blanks at their ends are not part of them.

    A delimiter is no blank: where a tab separates fields, the one at an end has an empty field beside it.
    """
    data = np.frombuffer(source.data, np.uint8)
    breaks = np.flatnonzero(data == ord("\n"))
    end = np.append(breaks, len(data))
    begin = np.append(0, breaks + 1)
    begin, end = begin[skip:].copy(), end[skip:].copy()
    _strip(data, begin, end, delimiter)
    filled = np.flatnonzero(begin < end)
    if not len(filled):
        raise source.problem("contains no requests")
    return data, begin[filled], end[filled], filled + 1 + skip


def _strip(data: Array, start: Array, end: Array, but: str | None = None) -> None:
    """Move starts and ends inward past blanks (`but` one), in place."""
    here = np.flatnonzero(start < end)
    while len(here := here[_blank(data[start[here]], but)]):
        start[here] += 1
        here = here[start[here] < end[here]]
    here = np.flatnonzero(start < end)
    while len(here := here[_blank(data[end[here] - 1], but)]):
        end[here] -= 1
        here = here[start[here] < end[here]]


def _blank(bytes_: Array, but: str | None = None) -> Array:
    blank: Array = (bytes_ == _SPACES[0]) | (bytes_ == _SPACES[1]) | (bytes_ == _SPACES[2])
    return blank if but is None else blank & (bytes_ != ord(but))


def _tokens(data: Array, begin: Array, end: Array) -> tuple[Array, Array, Array]:
    """(start, end, row) of the tokens within the given lines."""
    solid = np.zeros(len(data) + 2, bool)
    solid[1:-1] = ~(_blank(data) | (data == ord("\n")))
    change = np.flatnonzero(solid[1:] != solid[:-1])
    start, stop = change[0::2], change[1::2]
    first = np.searchsorted(start, begin[0])
    start, stop = start[first:], stop[first:]
    return start, stop, np.searchsorted(begin, start, "right") - 1
