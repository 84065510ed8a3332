# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random mixed jobs: loads that nobody chose, to compare simulator and kernel on.

A job file has one to twelve processes of any kind: sequential or random, reading, writing or both, direct or through the page
cache, one I/O at a time or several, with and without think time, near each other or far apart. All is drawn from the seed.

Limits keep a comparison meaningful. Writers through the page cache call fsync or are paced: otherwise they copy into memory
as fast as the processor can, and the disk sees nothing of it before the run is over. And processes that go through the page
cache have large regions of their own, because the simulator's cache remembers little of what was read (docs/fio.md). In a long
run a sequential reader would still be through with its region, and read it again from memory, faster than any disk: that tells
nothing of schedulers.
"""

from __future__ import annotations

import random

RUNTIME_S = 3
MIB = 1 << 20
KIB = 1 << 10
SIZES_KIB = (4, 4, 4, 8, 16, 16, 32, 64, 64, 128, 256)
ODD_SIZES_KIB = (12, 20, 36, 52, 100, 144, 208)
REGIONS_MIB = (8, 16, 64, 256, 1024, 4096)
BUFFERED_REGIONS_MIB = (1024, 4096)


def mixed_job(seed: int, drive_bytes: int, runtime_s: int = RUNTIME_S, unread_mib: int = 0) -> str:
    """The text of a fio job file for a disk of so many bytes; the same seed and size, the same processes.

    unread_mib: the least region of a sequential reader through the page cache, if the disk or the next region does not end it.
    """
    dice = random.Random(f"headwaiter mixed job {seed}")
    processes = dice.choice((1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12))
    # All close together, or anywhere.
    spread = dice.choice((1, 1, 1, 0.01))
    origin = dice.random() * (1 - spread)
    lines = ["[global]", "filename=/dev/sda", f"runtime={runtime_s}", "time_based", "invalidate=0"]
    places: list[tuple[int, int]] = []
    number = 0
    while number < processes:
        alike = min(processes - number, dice.choice((1, 1, 1, 2, 4)))
        lines += ["", f"[p{number}]", *_process(dice, drive_bytes, alike, origin, spread, places, unread_mib)]
        if alike > 1:
            lines.append(f"numjobs={alike}")
        number += alike
    return "\n".join([*lines, ""])


def _process(
    dice: random.Random,
    drive_bytes: int,
    alike: int,
    origin: float,
    spread: float,
    places: list[tuple[int, int]],
    unread_mib: int,
) -> list[str]:
    """The options of a process, or of several that are alike."""
    rw = dice.choices(("read", "randread", "write", "randwrite", "rw", "randrw"), (36, 28, 10, 10, 6, 10))[0]
    block_kib = dice.choice(ODD_SIZES_KIB if dice.random() < 0.2 else SIZES_KIB)
    direct = dice.random() < 0.7
    queued = direct and dice.random() < 0.3
    region_mib = dice.choice(REGIONS_MIB if direct else BUFFERED_REGIONS_MIB)
    out = [f"rw={rw}", f"bs={block_kib}k", f"direct={int(direct)}", f"ioengine={'libaio' if queued else 'psync'}"]
    if queued:
        out.append(f"iodepth={dice.choice((2, 4, 8, 16))}")
    if rw in ("rw", "randrw"):
        out.append(f"rwmixread={dice.choice((30, 50, 70, 90))}")
    if rw.startswith("rand") and dice.random() < 0.5:
        out.append("norandommap")
    # Several that are alike read the same region, or each its own.
    apart = alike > 1 and (dice.random() < 0.7 or not direct)
    if direct and places and dice.random() < 0.2:
        offset_mib, region_mib = dice.choice(places)
    else:
        room_mib = drive_bytes // MIB - region_mib * (alike if apart else 1)
        offset_mib = int((origin + dice.random() * spread) * room_mib)
        if direct:
            places.append((offset_mib, region_mib))
    rest_mib = drive_bytes // MIB - offset_mib - region_mib * alike
    steps = []
    end_mib = drive_bytes // MIB - offset_mib
    if apart and rest_mib >= 0:
        step_mib = region_mib + int(dice.random() * rest_mib / alike)
        steps = [f"offset_increment={step_mib}m"]
        end_mib = step_mib  # the last has more
    if not direct and rw in ("read", "rw"):
        region_mib = max(region_mib, min(unread_mib, end_mib))
    out += [f"offset={offset_mib}m", f"size={region_mib}m", *steps]
    if dice.random() < 0.4:
        out.append(f"thinktime={round(10 ** dice.uniform(1.5, 5.2))}")
        if dice.random() < 0.3:
            out.append(f"thinktime_blocks={dice.choice((2, 4, 16, 64))}")
    if dice.random() < 0.4:
        out.append(f"startdelay={dice.randrange(1, 1000)}ms")
    if not direct and rw not in ("read", "randread"):
        out.append(_writeback(dice, block_kib))
    return out


def _writeback(dice: random.Random, block_kib: int) -> str:
    """Return what makes a writer through the page cache wait for the disk, or keeps it slower than that."""
    if dice.random() < 0.6:
        return f"fsync={dice.choice((1, 4, 16, 64))}"
    return f"rate={max(block_kib * KIB, dice.choice((100, 400, 1000, 3000)) * KIB)}"
