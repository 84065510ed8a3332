# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The matrix A of observation: how many waits of each class were met in each bucket of time, and how many were in vain.

As a file it is JSON or TOML:

    format = "headwaiter-was-matrix/1"
    classifier = "…"          # of the configuration by which the waits were classed (Config.classifier)
    classes = 100
    bucket_us = 1000          # width of a bucket
    buckets = 10              # up to M
    [rows]                    # of the classes that waited: successes by bucket, then failures
    28 = [120, 100, 50, 38, 9, 21, 13, 8, 0, 5, 80]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import parse_toml
from headwaiter.base.reading import TEXT_BYTES, read_bytes
from headwaiter.papers.was.config import remarks

MATRIX_FORMAT = "headwaiter-was-matrix/1"
_MOST_CLASSES = 512
_MOST_BUCKETS = 10_000
_MOST_COUNT = 2**40

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Matrix:
    """counts, int64 of shape (N, M+1): row i is class i+1, column j successes in bucket j+1, the last column failures."""

    counts: I64
    bucket_us: int
    classifier: str
    made: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def classes(self) -> int:
        """N."""
        return len(self.counts)

    @property
    def buckets(self) -> int:
        """M, in buckets."""
        return int(self.counts.shape[1]) - 1

    @property
    def populated(self) -> I64:
        """The rows, from 0, with a wait in them."""
        return np.flatnonzero(self.counts.any(axis=1))

    @property
    def failures(self) -> I64:
        """B of equation (5), shape (N, M): waits of class i+1 that fail if its interval is j+1 buckets."""
        return np.ascontiguousarray(np.cumsum(self.counts[:, :0:-1], axis=1)[:, ::-1])

    @property
    def successes(self) -> I64:
        """Shape (N, M): waits of class i+1 that end well within j+1 buckets."""
        return np.cumsum(self.counts[:, :-1], axis=1)

    def shrunk(self, weight: int) -> Matrix:
        """Each class's shares of outcomes, drawn towards those of all waits together as if it had `weight` of these besides.

        What few waits of a class say is mostly chance; of many it stays nearly as it is. The classes keep their weights:
        counts are in tenths of a wait.
        """
        own = self.counts.sum(axis=1, keepdims=True)
        whole = self.counts.sum(axis=0) / max(1, self.counts.sum())
        counts = np.rint(10 * own * (self.counts + weight * whole) / np.maximum(own + weight, 1))
        return replace(self, counts=counts.astype(np.int64))


def tabulate(classes: int, buckets: int, bucket_us: int, waits: tuple[I64, I64, NDArray[np.bool_]]) -> I64:
    """The counts of waits: (class from 1, elapsed ns, met), each of shape (n,).

    A wait that was met at once counts in the first bucket; one that was met after the last counts as a failure.
    """
    which, elapsed_ns, met = waits
    bucket = np.maximum(-(-elapsed_ns // (bucket_us * 1000)), 1)
    column = np.where(met & (bucket <= buckets), bucket - 1, buckets)
    flat = np.bincount((which - 1) * (buckets + 1) + column, minlength=classes * (buckets + 1))
    return flat.astype(np.int64).reshape(classes, buckets + 1)


def to_text(matrix: Matrix, toml: bool) -> str:
    """The file's text."""
    data: dict[str, Any] = {
        "format": MATRIX_FORMAT,
        "classifier": matrix.classifier,
        "classes": matrix.classes,
        "bucket_us": matrix.bucket_us,
        "buckets": matrix.buckets,
        "made": dict(matrix.made),
        "rows": {str(i + 1): matrix.counts[i].tolist() for i in matrix.populated.tolist()},
    }
    if toml:
        return tomli_w.dumps(data)
    rows = data.pop("rows")
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
    return json.dumps(data, indent=1)[:-2] + ',\n "rows": {\n' + lines + "\n }\n}\n"


def load_matrix(path: Path) -> Matrix:
    """A matrix from a file. Problem with one line that names the file and the cause."""
    raw = read_bytes(path, TEXT_BYTES)
    try:
        data = _json(raw) if raw.lstrip()[:1] == b"{" else parse_toml(str(path), raw)
        return _from_data(data)
    except Problem as e:
        raise Problem(str(e) if str(e).startswith(f"{path}:") else f"{path}: {e}") from None


def _json(raw: bytes) -> Any:
    try:
        data = json.loads(raw)
        json.dumps(data, ensure_ascii=False).encode()  # half of a surrogate pair could not be written again
    except (ValueError, RecursionError) as e:
        raise Problem(f"not JSON: {e}") from None
    return data


def _from_data(data: Mapping[str, Any]) -> Matrix:
    version = data.get("format")
    if version is None:
        raise Problem(f'format: is missing (this version reads "{MATRIX_FORMAT}")')
    if version != MATRIX_FORMAT:
        raise Problem(f"format: {shown(str(version))} where {MATRIX_FORMAT} is expected")
    classes = _count(data, "classes", 1, _MOST_CLASSES)
    bucket_us = _count(data, "bucket_us", 1, 1_000_000)
    buckets = _count(data, "buckets", 1, _MOST_BUCKETS)
    classifier, rows, made = data.get("classifier"), data.get("rows"), remarks(data.get("made", {}))
    if not isinstance(classifier, str) or not isinstance(rows, dict):
        raise Problem("classifier must be text, rows a table")
    counts = np.zeros((classes, buckets + 1), np.int64)
    for key, row in rows.items():
        if not (key.isascii() and key.isdecimal() and len(key) < 5 and 1 <= int(key) <= classes):
            raise Problem(f"rows.{shown(key)}: no class from 1 to {classes}")
        if not isinstance(row, list) or len(row) != buckets + 1:
            raise Problem(f"rows.{key}: must be a list of {buckets + 1} counts")
        for value in row:
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_COUNT:
                raise Problem(f"rows.{key}: {shown(str(value))} is not a count")
        counts[int(key) - 1] = row
    return Matrix(counts, bucket_us, classifier, made)


def _count(data: Mapping[str, Any], key: str, low: int, high: int) -> int:
    value = data.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise Problem(f"{key}: must be a whole number from {low} to {high}")
