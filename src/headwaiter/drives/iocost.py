# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Profiles made from io.cost's six numbers, against those numbers: what the way from numbers to a profile loses."""

from __future__ import annotations

from collections.abc import Iterator

from headwaiter.drives.flash import RATES, measured
from headwaiter.drives.profile import from_toml
from headwaiter.drives.published import Figure
from headwaiter.drives.sheet import from_iocost, known_models

_SOURCE = "iocost benchmark database"


def iocost_figures(models: tuple[str, ...] = ()) -> Iterator[Figure]:
    """Of these drives of the database, or of all."""
    for name in models or tuple(known_models()):
        data, _ = from_iocost(name, None)
        got = measured(from_toml(data, name, name))
        for rate in RATES:
            yield Figure(name, _SOURCE, "profile from the six numbers", rate, known_models()[name][rate], getattr(got, rate))
