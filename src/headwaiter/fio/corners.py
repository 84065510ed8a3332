# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Job files that fio 3.33 runs with a warning, or otherwise than they read: they run here, too, and a note says what fio does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from headwaiter.base.errors import plain
from headwaiter.fio.layout import Region
from headwaiter.fio.options import DEPRECATED, Distribution
from headwaiter.fio.parser import JobSection


def time_based(s: JobSection) -> bool:
    """Return whether the passes are repeated until runtime: without that fio goes through them once."""
    return bool(s.get("time_based")) and bool(s.get("runtime"))


def notes_of(s: JobSection, regions: Sequence[Region], align: int) -> Iterator[str]:
    """Return the notes about a section's jobs, the first of which has these regions."""
    for corner in (_without_runtime, _shared_names, _deprecated):
        for what, why in corner(s):
            yield f"{plain(s.at(what).path)}:{s.at(what).line}: {why}"
    yield from _zones_beyond(s, regions, align)


Corner = Callable[[JobSection], Iterable[tuple[str, str]]]


def _without_runtime(s: JobSection) -> Iterator[tuple[str, str]]:
    if s.get("time_based") and not time_based(s):
        yield "time_based", "time_based without runtime changes nothing, as in fio 3.33, which warns of it"


def _shared_names(s: JobSection) -> Iterator[tuple[str, str]]:
    """fio takes a file that an earlier clone has for one that is there already, and gives the later ones none (its bug 1878)."""
    clones, form = s.get("numjobs", 1), s.get("filename_format", "$jobnum")
    if clones > 1 and "filename" not in s.settings and "$jobnum" not in form:
        yield (
            "filename_format",
            f"without $jobnum the {clones} processes have the same files: fio 3.33 runs only one of them (its bug 1878),"
            " here all run",
        )


def _deprecated(s: JobSection) -> Iterator[tuple[str, str]]:
    for option in sorted(DEPRECATED & s.settings.keys()):
        yield option, f"option '{option}' changes nothing, as in fio 3.33, which calls it deprecated"


def _zones_beyond(s: JobSection, regions: Sequence[Region], align: int) -> Iterator[str]:
    distribution: Distribution = s.get("random_distribution", Distribution())
    if distribution.relative or not distribution.zones or not align:
        return
    length, span = sum(length for _, length in distribution.zones), min(r.span for r in regions)
    if length // align > span // align:
        where = s.at("random_distribution")
        yield (
            f"{plain(where.path)}:{where.line}: zones of {length} bytes exceed a region of {span}: fio 3.33 ends the job at the"
            " first I/O beyond it, here the last zones are shorter"
        )
