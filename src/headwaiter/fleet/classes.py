# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Into which classes workloads and drives fall: few enough for a fleet to have a setting for each, by what schedulers go by.

A workload is classed by what is asked for (reads, writes, both), whether programs go through it in order, and how much of it is
under way at once; a drive by what it is made of.
"""

from __future__ import annotations

from headwaiter.description.schema import Character
from headwaiter.drives.profile import Profile
from headwaiter.engine.sim import Drive

ONE_KIND = 90.0
"""Percent of requests of one operation from which the other does not count."""
IN_ORDER, AT_RANDOM = 60.0, 25.0
"""Percent of sequential requests."""
ALONE, CROWDED = 1.5, 8.0
"""Requests under way at once."""
_SATA_DEPTH = 32
HARD_DISK, SATA_SSD, NVME_SSD, VOLUME = "hard disk", "SATA SSD", "NVMe SSD", "cloud volume"


def drive_class(drive: Drive) -> str:
    """The class of a drive; of one without a profile that of a hard disk."""
    if not isinstance(drive, Profile):
        return HARD_DISK
    if drive.kind == "volume":
        return VOLUME
    _, depth, rotates = drive.facts
    if rotates:
        return HARD_DISK
    return SATA_SSD if depth <= _SATA_DEPTH else NVME_SSD


def workload_class(found: Character) -> str:
    """The class of a workload."""
    what = "reads" if found.read_percent >= ONE_KIND else "writes" if found.write_percent >= ONE_KIND else "reads and writes"
    order = (
        "sequential" if found.sequential_percent >= IN_ORDER else "random" if found.sequential_percent <= AT_RANDOM else "mixed"
    )
    depth = found.depth.mean if found.depth else None
    if depth is None:
        return f"{order} {what}"
    return f"{order} {what}, {'one at a time' if depth < ALONE else 'several at once' if depth < CROWDED else 'many at once'}"
