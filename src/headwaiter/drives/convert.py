# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From DiskSim's parameters to a drive profile (model `disk`).

What every parameter means, and which of them DiskSim itself ignores, is told in docs/drives.md. No drive is treated
differently from another: the converter reads parameters and knows no names.

Some things are made as measured drives do them and not as DiskSim does (`as_disksim` leaves them):
- Head switch. Extractions give what is left of it behind the skew, sometimes 0.03 ms. Yet the servo must find the new track
  just as after a move by one cylinder, so a switch takes that long; it takes no longer than the skew that the drive's makers
  left for it, less the settling of a write. A read after a write takes as long.
- A negative settling time of writes is none.
- A read miss has the lesser of its two overheads, and a write that is reported from the medium at least that.
- Such a write begins there when ten or fifteen of its blocks are in the buffer, not when the first is.
- `Immediate buffer read` and `Read any free blocks` together mean that tracks are buffered from the head's arrival on.
- `Read-ahead over requested` and `Maximum read-ahead` mean what they say in every mode of reading ahead.
- A drive that reads whole tracks ahead, but in whose segment no track has room, reads ahead only of reads that continue the one
  before, and then into its whole buffer: an extraction by single reads sees what is left of the request's own segment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.drives.parv import Block, Parameters, read_curve, read_parameters
from headwaiter.drives.profile import Toml

_SPARING = (
    "none",
    "zone-tracks",
    "cylinder",
    "track",
    "cylinder-push",
    "cylinder-front",
    "cylinder-front-push",
    "disk",
    "range",
    "zone",
    "zone-push",
)
_MAPPING = ("cylinder", "serpentine", "serpentine-absolute")
_AHEAD = ("none", "track", "cylinder", "free", "whole-track")
_OVERHEADS = {
    "command": "Per-request overhead time",
    "read_hit_after_read": "Read hit over. after read",
    "read_hit_after_write": "Read hit over. after write",
    "read_miss_after_read": "Read miss over. after read",
    "read_miss_after_write": "Read miss over. after write",
    "write_hit_after_read": "Write hit over. after read",
    "write_hit_after_write": "Write hit over. after write",
    "write_miss_after_read": "Write miss over. after read",
    "write_miss_after_write": "Write miss over. after write",
    "read_completion": "Read completion overhead",
    "write_completion": "Write completion overhead",
    "data_preparation": "Data preparation overhead",
    "reselect": "First reselect overhead",
    "reselect_other": "Other reselect overhead",
    "read_disconnect_after_read": "Read disconnect afterread",
    "read_disconnect_after_write": "Read disconnect afterwrite",
    "write_disconnect": "Write disconnect overhead",
}
_EXTRA = {
    "command": "Extradisc command overhead",
    "disconnect": "Extradisc disconnect overhead",
    "disconnect_again": "Extradisc 2nd disconnect overhead",
}
_SPTF = {8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23, 24, 25, 26, 27}


def _choice(b: Block, key: str, names: tuple[str, ...], default: int | None = None) -> str:
    value = b.integer(key, default)
    if not 0 <= value < len(names):
        b.fail(key, f"must be 0..{len(names) - 1}")
    return names[value]


def _flag(b: Block, key: str, default: int = 0) -> bool:
    return b.integer(key, default) != 0


def _skew(zone: Block, key: str, turns: bool, spt: int) -> int:
    value = zone.number(key, 0.0)
    return round(value * spt) % spt if turns else int(value)


def _zone(zone: Block, turns: bool, surfaces: int, sparing: str) -> Toml:
    spt = zone.integer("Blocks per track")
    if spt < 1:
        zone.fail("Blocks per track", "must be at least 1")
    out: Toml = {
        "first_cylinder": zone.integer("First cylinder number"),
        "last_cylinder": zone.integer("Last cylinder number"),
        "sectors_per_track": spt,
        "offset": _skew(zone, "Offset of first block", turns, spt),
        "reserved": zone.integer("Empty space at zone front", 0),
        "track_skew": _skew(zone, "Skew for track switch", turns, spt),
        "cylinder_skew": _skew(zone, "Skew for cylinder switch", turns, spt),
        "spares": zone.integer("Number of spares", 0),
    }
    tracks = (out["last_cylinder"] - out["first_cylinder"] + 1) * surfaces
    places = tracks if sparing == "zone-tracks" else tracks * spt
    slips = {int(s) for s in zone.numbers("slips")}
    if min(slips, default=0) < 0:
        zone.fail("slips", "must not be negative")
    if slips := {s for s in slips if s < places}:  # one behind the zone's end skips nothing
        out["slips"] = sorted(slips)
    defects = [int(s) for s in zone.numbers("defects")]
    if len(defects) % 2:
        zone.fail("defects", "must be pairs of a bad place and its replacement")
    if defects:
        out["defects"] = [list(pair) for pair in zip(defects[::2], defects[1::2], strict=True)]
    return out


def _layout(model: Block) -> tuple[Toml, list[Toml]]:
    layout = model.block("Layout Model")
    if layout.kind != "dm_layout_g1":
        model.fail("Layout Model", f"{layout.kind} is not supported, only dm_layout_g1")
    turns = layout.text("Skew units", "sectors").startswith("rev")
    zones = layout.items("Zones")
    if not zones:
        layout.fail("Zones", "must not be empty")
    surfaces, sparing = model.integer("Number of data surfaces"), _choice(layout, "Sparing scheme used", _SPARING)
    rows: list[Toml] = []
    for z in zones:
        if not isinstance(z, Block):
            layout.fail("Zones", "must be a list of blocks")
        rows.append(_zone(z, turns, surfaces, sparing))
    geometry: Toml = {
        "surfaces": surfaces,
        # some files count them from 0
        "cylinders": max(model.integer("Number of cylinders"), *(z["last_cylinder"] + 1 for z in rows)),
        "mapping": _choice(layout, "LBN-to-PBN mapping scheme", _MAPPING),
        "sparing": sparing,
        "spare_range": max(1, layout.integer("Rangesize for sparing", 1)),
    }
    return geometry, rows


def _sampled(cylinders: int, until: int, growth: float, f: Callable[[int], float]) -> list[tuple[int, float]]:
    """A formula as points: every distance up to `until`, then each longer by a factor, and the longest."""
    last = max(1, cylinders - 1)
    distances = list(range(1, min(max(1, until), last) + 1))
    while distances[-1] < last:
        distances.append(min(last, max(distances[-1] + 1, int(distances[-1] * growth))))
    return [(d, f(d)) for d in distances]


def _hpl(mech: Block, cylinders: int, first_ten: bool) -> list[tuple[int, float]]:
    key = "HPL seek equation values"
    v = mech.numbers(key)
    ten = mech.numbers("First ten seek times") if first_ten else []
    if len(v) != 6:
        mech.fail(key, "must be six numbers")
    if first_ten and len(ten) != 10:
        mech.fail("First ten seek times", "must be ten numbers")
    if not 0 < v[0] < 1e6:
        mech.fail(key, "the first must be a number of cylinders")

    def time(d: int) -> float:
        if d <= len(ten):
            return ten[d - 1]
        if d == 1 and v[5] != -1:
            return v[5]
        return v[1] + v[2] * math.sqrt(d) if d < v[0] else v[3] + v[4] * d

    return _sampled(cylinders, int(v[0]), 1.05, time)


def _three_point(mech: Block, cylinders: int) -> tuple[float, float, float]:
    return (mech.number("Single cylinder seek time"), mech.number("Average seek time"), mech.number("Full strobe seek time"))


def lee_curve(cylinders: int, one: float, average: float, full: float) -> list[tuple[int, float]]:
    """Lee's curve a*sqrt(d-1) + b*(d-1) + c through single-cylinder, average and full-stroke time (ms)."""
    n = float(cylinders)
    a = (15 * average - 10 * one - 5 * full) / (3 * math.sqrt(n))
    b = (7 * one - 15 * average + 8 * full) / (3 * n)
    return _sampled(cylinders, 4, 1.25, lambda d: round(a * math.sqrt(d - 1) + b * (d - 1) + one, 4))


def _curve(mech: Block, cylinders: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    kind = mech.text("Seek type")
    if kind == "extracted":
        return read_curve(mech.path.parent / mech.text("Full seek curve"))
    if kind in ("hplplus10", "hpl"):
        return _hpl(mech, cylinders, kind == "hplplus10"), []
    if kind == "constant":
        time = mech.number("Constant seek time")
        return [(1, time), (2, time)], []
    if kind not in ("linear", "curve"):
        mech.fail("Seek type", f"'{kind}' is not known")
    one, average, full = _three_point(mech, cylinders)
    if kind == "curve":
        return lee_curve(cylinders, one, average, full), []
    points = {1: one, max(2, cylinders // 3): average, max(3, cylinders - 1): full}
    return sorted(points.items()), []


def _head_switch(given: float, one_cylinder: float, settle: float, revolution: float, zones: list[Toml]) -> float:
    """Return how long a change of head takes (ms), from what is given, the shortest seek and the room that the skew leaves."""
    skew = revolution * float(min(z["track_skew"] / z["sectors_per_track"] for z in zones))
    return round(max(given, min(one_cylinder, skew - max(settle, 0.0))), 6)


def _mechanics(model: Block, disk: Block, zones: list[Toml], as_disksim: bool) -> Toml:
    mech = model.block("Mechanical Model")
    cylinders = model.integer("Number of cylinders")
    if not 1 <= cylinders < 1 << 31:
        model.fail("Number of cylinders", f"{cylinders} is outside 1..2147483647")
    reads, writes = _curve(mech, cylinders)
    rpm, switch = mech.number("Rotation speed (in rpms)"), mech.number("Head switch time", 0.0)
    if rpm <= 0:
        mech.fail("Rotation speed (in rpms)", "must be positive")
    settle = mech.number("Add. write settling delay", 0.0)
    if not as_disksim:
        settle = max(0.0, settle)
        switch = _head_switch(switch, reads[0][1], settle, 60e3 / rpm, zones)
    out: Toml = {
        "rpm": rpm,
        "head_switch": switch,
        "write_settle": settle,
        "min_write_move": disk.number("Minimum seek delay", 0.0),
        "switch_after_write": not as_disksim,
        "seek": [list(p) for p in reads],
    }
    if writes:
        out["seek_write"] = [list(p) for p in writes]
    return out


def _level_misses(overhead: Toml) -> None:
    least = min(overhead["read_miss_after_read"], overhead["read_miss_after_write"])
    for last in ("read", "write"):
        overhead[f"read_miss_after_{last}"] = least
        overhead[f"write_miss_after_{last}"] = max(least, overhead[f"write_miss_after_{last}"])


def falls(data: Toml) -> list[str]:
    """Say where the seek curves of a profile fall: a longer way that takes less time is most often a wrong measurement."""
    out = []
    for key in ("seek", "seek_write"):
        points = data["mechanics"].get(key, [])
        drops = [(a, b) for a, b in pairwise(points) if b[1] < a[1]]
        if drops:
            (d0, t0), (d1, t1) = max(drops, key=lambda pair: pair[0][1] - pair[1][1])
            out.append(
                f"mechanics.{key}: falls at {len(drops)} of {len(points)} points, most from {t0:g} ms at {d0} cylinders "
                f"to {t1:g} ms at {d1}"
            )
    return out


def _bus(disk: Block, everything: Parameters) -> Toml:
    own = disk.number("Bulk sector transfer time", 0.0)
    buses = everything.instantiated("disksim_bus")
    read = max([0.0, own, *(b.number("Read block transfer time", 0.0) for b in buses)])
    write = max([0.0, own, *(b.number("Write block transfer time", 0.0) for b in buses)])
    return {
        "block_read": read,
        "block_write": write,
        "hold_read": _flag(disk, "Hold bus entire read xfer"),
        "hold_write": _flag(disk, "Hold bus entire write xfer"),
        "never_disconnect": _flag(disk, "Never disconnect"),
    }


def _cache(disk: Block) -> Toml:
    return {
        "enabled": _flag(disk, "Enable caching in buffer"),
        "segments": max(1, disk.integer("Number of buffer segments")),
        "segment": max(1, disk.integer("Segment size (in blks)")),
        "separate_write_segment": _flag(disk, "Use separate write segment"),
        "read_hits_on_written": _flag(disk, "Allow read hits on write data"),
        "almost_hits": _flag(disk, "Allow almost read hits"),
        "partial_hits_at_once": _flag(disk, "Immed transfer partial hit", 1),
        "hits_while_busy": _flag(disk, "Allow sneaky full read hits"),
        "read_watermark": disk.number("High (read) water mark", 0.0),
        "watermark_by_request": _flag(disk, "Set watermark by reqsize", 1),
        "write_watermark": disk.number("Low (write) water mark", 0.0),
        "direct": _flag(disk, "Read directly to buffer", 1),
    }


def _read_ahead(disk: Block, as_disksim: bool) -> Toml:
    over = disk.integer("Read-ahead over requested", 1)
    if over not in (-1, 0, 1):
        disk.fail("Read-ahead over requested", "must be -1, 0 or 1")
    mode, sectors = _choice(disk, "Buffer continuous read", _AHEAD), max(0, disk.integer("Maximum read-ahead (blks)", 0))
    if as_disksim and (sectors or mode == "whole-track"):
        over = 1
    if as_disksim and mode == "whole-track":
        sectors = 0
    return {
        "mode": mode,
        "sectors": sectors,
        "least": max(0, disk.integer("Minimum read-ahead (blks)", 0)),
        "requested": {-1: "drop", 0: "keep", 1: "overwrite"}[over],
        "on_idle_hit": _flag(disk, "Read-ahead on idle hit"),
        "stop_in_sector": _flag(disk, "Stop prefetch in sector"),
        "from_arrival": not as_disksim and _flag(disk, "Immediate buffer read") and _flag(disk, "Read any free blocks"),
        "sequential": False,
    }


def _buffer_sequential(cache: Toml, read_ahead: Toml, zones: list[Toml]) -> None:
    if read_ahead["mode"] == "whole-track" and cache["segment"] < min(z["sectors_per_track"] for z in zones):
        cache |= {"segments": 1, "segment": cache["segments"] * cache["segment"]}
        read_ahead["sequential"] = True


def _disk_of(everything: Parameters) -> Block:
    disks = everything.instantiated("disksim_disk")
    if not disks:
        raise Problem(f"{everything.path}: contains no disk (a block disksim_disk)")
    if len(disks) > 1:
        names = ", ".join("one that is included" if d.included else d.name for d in disks)
        raise Problem(f"{everything.path}: contains several disks ({names}): name the file of one")
    return disks[0]


def convert(path: Path, as_disksim: bool = False) -> tuple[Toml, str]:
    """The profile of the disk in a .parv or .diskspecs file, and the disk's name there. Times in ms.

    as_disksim: parameters mean what they mean to DiskSim, also where a drive does otherwise.
    """
    everything = read_parameters(path)
    disk = _disk_of(everything)
    model = disk.block("Model")
    scale = disk.number("Time scale for overheads", 1.0)
    scheduler = disk.values.get("Scheduler")
    policy = scheduler.integer("Scheduling policy", 1) if isinstance(scheduler, Block) else 1
    geometry, zones = _layout(model)
    data: dict[str, Any] = {"model": "disk", "geometry": geometry, "mechanics": _mechanics(model, disk, zones, as_disksim)}
    data["overhead"] = {k: max(0.0, round(disk.number(key, 0.0) * scale, 6)) for k, key in _OVERHEADS.items()}
    if not as_disksim:
        _level_misses(data["overhead"])
    data["extra_disconnect"] = {
        "enabled": _flag(disk, "Extra write disconnect"),
        **{k: round(disk.number(key, 0.0) * scale, 6) for k, key in _EXTRA.items()},
        "delay": disk.number("Extradisc inter-disconnect delay", 0.0),
        "seek_delta": round(disk.number("Extradisc seek delta", 0.0) * scale, 6),
    }
    data["bus"] = _bus(disk, everything)
    data["cache"] = _cache(disk)
    data["read_ahead"] = _read_ahead(disk, as_disksim)
    if not as_disksim:
        _buffer_sequential(data["cache"], data["read_ahead"], zones)
    data["write"] = {
        "mode": "immediate" if disk.integer("Fast write level", 0) else "through",
        "buffered_first": not as_disksim,
        "zero_latency": not as_disksim and _flag(disk, "Immediate buffer write"),
        "combine": _flag(disk, "Combine seq writes", 1),
    }
    data["queue"] = {
        "depth": max(1, min(1024, disk.integer("Max queue length", 1))),
        "policy": "sptf" if policy in _SPTF else "fifo",
        "preseek": max(0, min(2, disk.integer("Preseeking level", 0))),
    }
    data["zones"] = zones
    return data, disk.name
