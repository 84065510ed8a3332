# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Choosing one device of a recording of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.traces.fields import FieldTable
from headwaiter.traces.registry import ReadOptions
from headwaiter.traces.source import Source

_LISTED = 16


def pick_device(
    source: Source,
    names: Sequence[str],
    code: npt.NDArray[Any],
    wanted: str | None,
    weight: npt.NDArray[np.bool_] | None = None,
) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """(mask of the rows of one device, notes).

    code, shape (n,), gives each row's device as an index into names; wanted is a name, or None for the device with most
    rows, counting only those where weight is true (by default all). Raises Problem if wanted is none of names.
    """
    counts = np.bincount(code if weight is None else code[weight], minlength=len(names))
    order = np.argsort(-counts, kind="stable").tolist()
    listing = ", ".join(f"{names[k]} ({counts[k]})" for k in order[:_LISTED])
    if len(names) > _LISTED:
        listing += ", …"
    if wanted is not None:
        if wanted not in names:
            raise source.problem(f"no device {wanted!r} (devices and their requests: {listing})")
        chosen = list(names).index(wanted)
    else:
        chosen = int(np.argmax(counts))
    notes = []
    if len(names) > 1:
        why = "as requested" if wanted is not None else "the busiest"
        notes.append(f"device {names[chosen]}, {why}, of {len(names)}: {listing}")
    return code == chosen, notes


def one_device(table: FieldTable, columns: list[int], options: ReadOptions) -> tuple[FieldTable, list[str]]:
    """The rows of one device, which these columns name, and notes. Raises Problem if there is no device of the name wanted.

    Of a piece of a file: NoRequestsError if it has none of that device, Problem if none is wanted and there are several.
    """
    devices, code = table.distinct(columns)
    names = [".".join(name) for name in devices]
    if options.origin is None:
        mask, notes = pick_device(table.source, names, code, options.device)
        return table.rows(np.flatnonzero(mask)), notes
    wanted = options.origin.device = options.device or options.origin.device or names[0]
    if options.device is None and set(names) != {wanted}:
        several = ", ".join(dict.fromkeys([wanted, *names[:_LISTED]]))
        raise Problem(f"{table.source.path}: has several devices ({several}, …): --device chooses one")
    if wanted not in names:
        raise NoRequestsError(f"{table.source.path}: no device {wanted!r}")
    return table.rows(np.flatnonzero(code == names.index(wanted))), []


def refuse_device(source: Source, wanted: str | None) -> None:
    """For formats that tell no device: Problem if one was asked for."""
    if wanted is not None:
        raise source.problem(f"no device {wanted!r}: traces of this format do not name devices")
