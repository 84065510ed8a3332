# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Choosing one device of a recording of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.traces.fields import FieldTable
from headwaiter.traces.registry import ReadOptions
from headwaiter.traces.source import Source

_LISTED = 16


class SeveralDevicesError(Problem):
    """The pieces of a file are of several devices, and nobody has said of which to read."""


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
    devices = Counter(dict(zip(names, counts.tolist(), strict=True)))
    if wanted is not None and wanted not in devices:
        raise source.problem(f"no device {wanted!r} (devices and their requests: {_listed(devices)})")
    chosen = wanted if wanted is not None else busiest(devices)
    why = "as requested" if wanted is not None else "the busiest"
    notes = [device_note(devices, chosen, why)] if len(names) > 1 else []
    return code == list(names).index(chosen), notes


def busiest(devices: Counter[str]) -> str:
    """Return which device has most requests; of several with as many the first."""
    return devices.most_common(1)[0][0]


def device_note(devices: Counter[str], chosen: str, why: str) -> str:
    """What is said of a choice among several; devices: of each, how many requests it has."""
    return f"device {chosen}, {why}, of {len(devices)}: {_listed(devices)}"


def _listed(devices: Counter[str]) -> str:
    most = ", ".join(f"{name} ({count})" for name, count in devices.most_common(_LISTED))
    return most + ", …" * (len(devices) > _LISTED)


def one_device(table: FieldTable, columns: list[int], options: ReadOptions) -> tuple[FieldTable, list[str]]:
    """The rows of one device, which these columns name, and notes. Raises Problem if there is no device of the name wanted.

    Of a piece of a file: NoRequestsError if it has none of that device, or its devices are only counted; SeveralDevicesError if
    none is wanted and there are several.
    """
    devices, code = table.distinct(columns)
    names = [".".join(name) for name in devices]
    if options.origin is None:
        mask, notes = pick_device(table.source, names, code, options.device)
        return table.rows(np.flatnonzero(mask)), notes
    if options.origin.devices is not None:
        options.origin.devices.update(dict(zip(names, np.bincount(code, minlength=len(names)).tolist(), strict=True)))
        raise NoRequestsError(f"{table.source.path}: devices are counted")
    wanted = options.origin.device = options.device or options.origin.device or names[0]
    if options.device is None and set(names) != {wanted}:
        raise SeveralDevicesError(f"{table.source.path}: has several devices")
    if wanted not in names:
        raise NoRequestsError(f"{table.source.path}: no device {wanted!r}")
    return table.rows(np.flatnonzero(code == names.index(wanted))), []


def refuse_device(source: Source, wanted: str | None) -> None:
    """For formats that tell no device: Problem if one was asked for."""
    if wanted is not None:
        raise source.problem(f"no device {wanted!r}: traces of this format do not name devices")
