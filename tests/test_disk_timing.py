# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Service times of a small disk, worked out by hand from what the parameters mean.

A revolution takes 10 ms, a track has 100 sectors of 0.1 ms, and there are two surfaces: block 200 c + 100 h + s is sector s of
head h on cylinder c and passes s/10 ms after each full revolution. A seek over d cylinders takes 1.9 + d/10 ms. Every overhead
has a value of its own, so that each case says which of them it takes. The rules are those of DiskSim's parameters
(core/drive/disk/internal.h). A row is `R|W BLOCK COUNT [+THINK] = SERVICE`, times in ms, the think time from the last completion.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headwaiter.drives.profile import from_toml
from headwaiter.drives.validation import MeasuredRequests, replay

OVERHEADS = {
    "read_hit_after_read": 0.11,
    "read_hit_after_write": 0.12,
    "read_miss_after_read": 0.13,
    "read_miss_after_write": 0.14,
    "write_hit_after_read": 0.15,
    "write_hit_after_write": 0.16,
    "write_miss_after_read": 0.17,
    "write_miss_after_write": 0.18,
    "read_completion": 0.01,
    "write_completion": 0.02,
    "data_preparation": 0.03,
    "reselect": 0.04,
    "read_disconnect_after_read": 0.05,
    "read_disconnect_after_write": 0.06,
    "write_disconnect": 0.07,
}
CACHE = {"segments": 1, "segment": 64, "hits_while_busy": False}
MECHANICS = {"rpm": 6000, "head_switch": 1, "seek": [[1, 2.0], [99, 11.8]]}
ZONE = {"first_cylinder": 0, "last_cylinder": 99, "sectors_per_track": 100}
DISK: dict[str, Any] = {
    "model": "disk",
    "geometry": {"surfaces": 2, "cylinders": 100},
    "mechanics": MECHANICS,
    "overhead": OVERHEADS,
    "bus": {"block_read": 0.2, "block_write": 0.05},
    "cache": CACHE,
    "read_ahead": {"mode": "none"},
    "write": {"mode": "through", "buffered_first": False},
    "queue": {"preseek": 0},
    "zones": [ZONE],
}
AHEAD = {"mode": "free", "sectors": 20, "stop_in_sector": False}
ARRIVAL: dict[str, Any] = {"read_ahead": {"mode": "free", "sectors": 8, "from_arrival": True}, "cache": CACHE | {"segment": 128}}
LAP = {"read_ahead": ARRIVAL["read_ahead"] | {"sectors": 20}, "zones": [ZONE | {"track_skew": 20, "cylinder_skew": 80}]}
FAST_BUS = {"bus": {"block_read": 0.01, "block_write": 0.05}}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    # Miss overhead, sector 30 at 3.0, its first block at 3.1, reselection and preparation, 4 blocks at 0.2, completion.
    # Then ten cylinders: 3.98 + .13 + 2.9 = 7.01, sector 50 at 15.0. Then the other head: 15.58 + .13 + 1 = 16.71, too late
    # for sector 60 at 16.0. The seek of 3 cylinders hides the head switch: 26.38 + .13 + 2.2 = 28.71, sector 88 at 28.8.
    "read misses": (
        {},
        """
        R 30 4 = 3.98
        R 2050 2 = 11.60
        R 2160 1 = 10.80
        R 1488 1 = 2.80
    """,
    ),
    # Half of the request must be in the buffer before the bus is taken: two of four blocks, at 3.2. Of three, one:
    # sector 50 after 10.08 + .13 passes at 15.0.
    "water mark": (
        {"cache": CACHE | {"read_watermark": 0.5}},
        """
        R 30 4 = 4.08
        R 50 3 +6.0 = 5.70
    """,
    ),
    # The mark as a part of the segment: 4 of 64 blocks, or all of a smaller request.
    "water mark by segment": (
        {"cache": CACHE | {"read_watermark": 0.05, "watermark_by_request": False}},
        """
        R 30 6 = 4.68
        R 80 2 = 4.00
    """,
    ),
    # Never giving up the bus: preparation up front, no disconnection, no reselection; the last block leaves when it is there.
    "bus kept": (
        {"bus": {"block_read": 0.01, "block_write": 0.05, "never_disconnect": True}},
        """
        R 30 4 = 3.42
    """,
    ),
    # At 3.1 reselection and preparation: block 1 leaves till 3.22, block 2 (there at 3.2) till 3.27. Dry; .05 to let go, at 3.32
    # the bus is asked for again: 3.39. Blocks 3 and 4 (there at 3.4) leave till 3.49.
    "bus given up when the buffer runs dry": (
        {"bus": {"block_read": 0.05, "block_write": 0.05, "hold_read": False}},
        """
        R 30 4 = 3.50
    """,
    ),
    # Bus kept: the blocks at 3.1 ... 3.4 leave as they come.
    "bus held while the buffer is dry": (
        {"bus": {"block_read": 0.05, "block_write": 0.05}},
        """
        R 30 4 = 3.46
    """,
    ),
    # Sectors 95..99 end at 10.0; the other head is ready at 11.0, its sector 0 is 15 sectors on, at 11.5: 5 more end at 12.0.
    # From 199 (head 1: angle 14 at 21.4) to the next cylinder: ready at 23.5, its sector 0 at angle 15 + 40 = 55: 25.5.
    "skews": (
        FAST_BUS | {"zones": [ZONE | {"track_skew": 15, "cylinder_skew": 40}]},
        """
        R 95 10 = 12.02
        R 199 2 = 13.60
    """,
    ),
    # A head switch that takes longer than the skew costs a revolution.
    "skew too small": (
        FAST_BUS | {"mechanics": MECHANICS | {"head_switch": 1.6}, "zones": [ZONE | {"track_skew": 15}]},
        """
        R 95 10 = 22.02
    """,
    ),
    # The write starts at .17 without moving; sectors 30, 31 end at 3.2; reselection, completion. Settling only after a movement:
    # 3.26 + .18 + 2.0 + .5 = 5.94 is too late for sector 58 of cylinder 1. Then a read after a write: no settling,
    # 15.96 + .14 + 2.0 = 18.10 is in time for sector 82 of cylinder 2.
    "writing through": (
        {"mechanics": MECHANICS | {"write_settle": 0.5}},
        """
        W 30 2 = 3.26
        W 258 1 = 12.70
        R 482 1 = 2.62
    """,
    ),
    "no settling without a movement": (
        {"mechanics": MECHANICS | {"write_settle": 0.5}},
        """
        W 5 1 = 0.66
    """,
    ),
    # A negative settling time shortens the movement: 3.26 + .18 + 2.0 - .5 = 4.94 catches sector 50 of cylinder 1.
    "negative settling": (
        {"mechanics": MECHANICS | {"write_settle": -0.5}},
        """
        W 30 2 = 3.26
        W 250 1 = 1.90
    """,
    ),
    # Data at one block every 0.3 ms: blocks are there at .50, .80, 1.10, sectors 6, 7, 8 pass at .6, .7, .8: the second is late.
    # It goes to the medium at 10.7, the third at 10.8.
    "data too late for the platter": (
        {"bus": {"block_read": 0.2, "block_write": 0.3}},
        """
        W 6 3 = 10.96
    """,
    ),
    # All data in the buffer before the medium is touched: at .20 + 4 * .05 = .40 sector 3 has passed.
    "writing from a full buffer": (
        {"write": {"mode": "through", "buffered_first": True}},
        """
        W 3 4 = 10.76
    """,
    ),
    "writing as data come": (
        {},
        """
        W 3 4 = 0.76
    """,
    ),
    # Status with the last block: .15 + .03 + .10 + .02. The medium ends at 3.2; the read has let go of the bus by then, and
    # goes on from there: 3.2 + 2.1 = 5.3, sector 0 of head 1 of cylinder 2 at 10.0, first block 10.1.
    "immediate reporting": (
        {"write": {"mode": "immediate"}},
        """
        W 30 2 = 0.30
        R 500 1 = 10.08
    """,
    ),
    # A hit in what is being written waits for that too, and comes by reselection: 4.2 + .04 + .03 + .2 + .01.
    "a hit in what is being written": (
        {"write": {"mode": "immediate"}},
        """
        W 40 2 = 0.30
        R 40 1 = 4.18
        R 40 1 +5.0 = 0.35
    """,
    ),
    # Written data that are not kept for reads: the second read finds nothing and waits for the sector, at 14.0.
    "written data are not for reading": (
        {"write": {"mode": "immediate"}, "cache": CACHE | {"read_hits_on_written": False}},
        """
        W 40 2 = 0.30
        R 40 1 +5.0 = 9.08
    """,
    ),
    # What continues the write that is under way is taken at once (.16 + .03 + .10 + .02) and written without a gap, till 3.4.
    # Another write waits for that: 3.4 + .04 + .03 + .05 + .02.
    "appending": (
        {"write": {"mode": "immediate", "combine": True}},
        """
        W 30 2 = 0.30
        W 32 2 = 0.31
        W 1000 1 = 2.93
    """,
    ),
    # Without: it waits for the medium (3.2, reselection, preparation, data, completion), and loses its turn there (13.2 .. 13.4).
    "not appending": (
        {"write": {"mode": "immediate", "combine": False}},
        """
        W 30 2 = 0.30
        W 32 2 = 3.09
        W 1000 1 = 10.15
    """,
    ),
    # After a write that is no continuation: the bus is let go once more. Medium from 3.26 + .2 + .1, five cylinders: 5.96,
    # sector 0 at 10.0; then reselection (the other one) and completion. A write that continues the last one is an ordinary
    # one: its sector is just gone, and comes round at 20.1.
    "extra disconnection": (
        {
            "overhead": OVERHEADS | {"reselect_other": 0.6},
            "extra_disconnect": {
                "enabled": True,
                "command": 0.2,
                "disconnect": 0.3,
                "delay": 0.4,
                "disconnect_again": 0.5,
                "seek_delta": 0.1,
            },
        },
        """
        W 30 2 = 3.26
        W 1000 1 = 7.46
        W 1001 1 = 9.54
    """,
    ),
    # And the medium is not touched before ten blocks are there, at .20 + 10 * .05 = .70: in time for sector 8, not for sector 6.
    # A large write has fifteen wait: .95.
    "ten blocks before the medium": (
        {"extra_disconnect": {"enabled": True}},
        """
        W 8 14 = 2.26
    """,
    ),
    "no fewer than ten": (
        {"extra_disconnect": {"enabled": True}},
        """
        W 6 14 = 12.06
    """,
    ),
    "fifteen of a large write": (
        {"extra_disconnect": {"enabled": True}},
        """
        W 9 45 = 15.46
    """,
    ),
    # Reading ahead till block 34. The second read hits what has come in meanwhile, and the limit moves to 38, reached at 3.8.
    # The third finds 36 and 37, and asks the medium for 38 at 3.93 + .13; it comes round at 13.8. Bus: 4.47, then 14.1, 14.3.
    # From there till 60, at 16.0. A hit with the medium idle reads on from 60 till 74 (26.0 .. 27.4). The window then holds
    # 10 .. 74, and after one more hit 30 .. 94: block 12 is gone, and passes at 41.2, after 40.13.
    "reading ahead": (
        {"read_ahead": AHEAD},
        """
        R 10 4 = 1.98
        R 14 4 = 0.95
        R 36 4 +1.0 = 10.38
        R 50 4 +10.0 = 0.95
        R 70 4 +5.0 = 0.95
        R 12 1 +8.79 = 1.58
    """,
    ),
    # Without reading on at idle hits, block 60 .. is not there: the medium starts at 30.26 + .13, block 70 passes at 37.0.
    "no reading on": (
        {"read_ahead": AHEAD | {"on_idle_hit": False}},
        """
        R 10 4 = 1.98
        R 14 4 = 0.95
        R 36 4 +1.0 = 10.38
        R 50 4 +10.0 = 0.95
        R 70 4 +5.0 = 7.72
    """,
    ),
    # Reading ahead ends with the track (20.10 + .13 + 1 for the other head: 30.0), or with the cylinder.
    "reading ahead to the end of the track": (
        {"read_ahead": {"mode": "track", "sectors": 60}},
        """
        R 80 4 = 8.98
        R 96 4 +5.0 = 0.95
        R 100 1 +5.17 = 10.28
    """,
    ),
    "reading ahead to the end of the cylinder": (
        {"read_ahead": {"mode": "cylinder", "sectors": 60}, "zones": [ZONE | {"track_skew": 20}]},
        """
        R 80 4 = 8.98
        R 100 1 +15.0 = 0.35
    """,
    ),
    # Reading ahead is at block 20 at 2.05; the drive finishes that sector (.05), then 2.05 + .13 + .05 + 2.9 = 5.13 is too late
    # for sector 51.
    "reading ahead stops behind the sector": (
        {"read_ahead": AHEAD},
        """
        R 10 4 = 1.98
        R 2051 1 +0.07 = 13.43
    """,
    ),
    "reading ahead stops at once": (
        {"read_ahead": AHEAD | {"stop_in_sector": True}},
        """
        R 10 4 = 1.98
        R 2051 1 +0.07 = 3.43
    """,
    ),
    # The cache is emptied .52 after the write came, at 10.50: reading ahead is on its way to the other head by then, where it
    # arrives at 11.0, in time for sector 12. So the medium is free for the read at 12.0: 12.14 + 2.9, sector 20 at 22.0.
    "reading ahead stops where it is": (
        {"read_ahead": AHEAD, "write": {"mode": "back", "idle": 0.52}},
        """
        R 90 4 = 9.98
        W 112 1 = 0.25
        R 2020 1 +1.77 = 10.38
    """,
    ),
    # The very next block, while it comes in: done at 1.42; blocks 14 .. 17 are there at 1.5 .. 1.8.
    "almost a hit": (
        {"read_ahead": AHEAD} | FAST_BUS,
        """
        R 10 4 = 1.42
        R 14 4 = 0.40
    """,
    ),
    # As a miss: reading ahead is stopped at 1.5, so that block 14 comes round at 11.4.
    "not even almost": (
        {"read_ahead": AHEAD} | FAST_BUS | {"cache": CACHE | {"almost_hits": False}},
        """
        R 10 4 = 1.42
        R 14 4 = 10.40
    """,
    ),
    # Two segments hold two places; a third read takes the one used least recently, which is the second.
    "least recently used segment": (
        {"cache": CACHE | {"segments": 2}},
        """
        R 30 1 = 3.38
        R 60 1 = 3.00
        R 30 1 = 0.35
        R 90 1 = 2.65
        R 30 1 = 0.35
        R 60 1 = 6.65
    """,
    ),
    # A hit that ends with the window leaves the medium alone: 3.73 + .13 is in time for sector 60.
    "a hit up to the window's end": (
        {"read_ahead": {"mode": "none", "stop_in_sector": False}},
        """
        R 30 1 = 3.38
        R 30 1 = 0.35
        R 60 1 = 2.65
    """,
    ),
    # A write empties what it overlaps in other segments.
    "overwritten in the buffer": (
        {"cache": CACHE | {"segments": 2, "separate_write_segment": True}},
        """
        R 30 2 = 3.58
        W 31 1 = 9.68
        R 30 1 +5.0 = 5.12
    """,
    ),
    # Curve for writes of its own, and the least time of a movement in front of a write: 3.26 + .18 + 4.0 = 7.44 is
    # too late for sector 70, and 17.16 + .18 + 4.0 for 20.0; 13.26 + .18 + 3.0 = 16.44 is in time for sector 70.
    "seek curve of writes": (
        {"mechanics": MECHANICS | {"seek_write": [[1, 4.0], [99, 9.0]]}},
        """
        W 30 2 = 3.26
        W 270 1 = 13.90
        W 500 1 = 13.00
    """,
    ),
    # Heads read beside where they write: on the same track, too, a read after a write takes a head switch. 3.26 + .14 + 1.0
    # is too late for sector 42; then, after a read, 14.58 + .13 is in time for sector 48.
    "a read after a write": (
        {},
        """
        W 30 2 = 3.26
        R 42 1 = 11.32
        R 48 1 = 0.60
    """,
    ),
    "heads that read where they write": (
        {"mechanics": MECHANICS | {"switch_after_write": False}},
        """
        W 30 2 = 3.26
        R 42 1 = 1.32
    """,
    ),
    # The medium is not touched before ten blocks are there, at .20 + 10 * .05 = .70, or fifteen of a large write, at .95.
    "ten blocks in the buffer": (
        {"write": {"mode": "through", "buffered_first": True}},
        """
        W 8 14 = 2.26
    """,
    ),
    "no fewer than ten in the buffer": (
        {"write": {"mode": "through", "buffered_first": True}},
        """
        W 6 14 = 12.06
    """,
    ),
    "fifteen of a large write in the buffer": (
        {"write": {"mode": "through", "buffered_first": True}},
        """
        W 9 45 = 15.46
    """,
    ),
    # Block 14 is not there: it comes round at 11.4. That read continues the first and goes on till 38: 30 is there at 17.38, and
    # 32 after it, which continues again: from 38, at 23.8, till 54, at 25.4. 50 is there at 28.48, but continues nothing:
    # 54 passes at 35.4, after 34.03.
    "reading ahead only of reads that continue": (
        {"read_ahead": AHEAD | {"sequential": True}},
        """
        R 10 4 = 1.98
        R 14 4 = 10.40
        R 30 2 +5.0 = 0.55
        R 32 2 = 0.55
        R 50 2 +10.0 = 0.55
        R 54 2 +5.0 = 1.95
    """,
    ),
    # 3.26 + .14 + 1 for the head switch: block 32 comes round at 13.2. Nothing is read ahead: 34 at 23.4.
    "a read behind a write continues nothing": (
        {"read_ahead": AHEAD | {"sequential": True}},
        """
        W 30 2 = 3.26
        R 32 2 = 10.52
        R 34 1 = 10.00
    """,
    ),
    # Block 10 comes round at 11.0, after 1.98 + .13 and the .02 that are left of block 19. What is read ahead is there, once:
    # 12.93 + .13, and .07 of block 29, and 12 passes at 21.2.
    "requested blocks are dropped": (
        {"read_ahead": AHEAD | {"requested": "drop"}},
        """
        R 10 4 = 1.98
        R 10 4 = 10.00
        R 14 4 = 0.95
        R 12 1 = 8.65
    """,
    ),
    # What is written next into the segment, at 14.0, has not been dropped.
    "written blocks are not dropped": (
        {"read_ahead": {"mode": "none", "requested": "drop"}, "write": {"mode": "immediate"}},
        """
        R 60 1 = 6.38
        W 40 2 = 0.30
        R 40 1 +10.0 = 0.36
    """,
    ),
    # A segment of 16 keeps what was asked for: reading ahead ends at 26, and 10 is there again; block 26 passes at 12.6.
    "requested blocks are kept": (
        {"read_ahead": AHEAD | {"requested": "keep"}, "cache": CACHE | {"segment": 16}},
        """
        R 10 4 = 1.98
        R 10 1 +5.0 = 0.35
        R 26 1 +1.0 = 4.65
    """,
    ),
    # Overwritten, they pass again at 11.0, after 6.98 + .13.
    "requested blocks are overwritten": (
        {"read_ahead": AHEAD, "cache": CACHE | {"segment": 16}},
        """
        R 10 4 = 1.98
        R 10 1 +5.0 = 4.40
    """,
    ),
    # By whole tracks, and beyond the track's end as far as the maximum goes: block 100 has come in at 12.1. A segment that does
    # not hold a track has it read to its end only: block 100 passes at 32.0, after 23.98 + .13 + 1.
    "whole tracks and on": (
        {
            "read_ahead": {"mode": "whole-track", "sectors": 60},
            "cache": CACHE | {"segment": 128},
            "zones": [ZONE | {"track_skew": 20}],
        },
        """
        R 80 4 = 8.98
        R 100 1 +15.0 = 0.35
    """,
    ),
    "whole tracks in small segments": (
        {"read_ahead": {"mode": "whole-track", "sectors": 60}, "zones": [ZONE | {"track_skew": 20}]},
        """
        R 80 4 = 8.98
        R 100 1 +15.0 = 8.40
    """,
    ),
    # The head arrives at .13 and buffers from sector 2 on; 5 and 6 have passed when they are asked for. The medium stays on the
    # track: sectors 0 and 1 pass at 10.0, and leave when they are there: 10.1 + .03 + .4. Then all of the track is there.
    "from the head's arrival on": (
        ARRIVAL,
        """
        R 30 4 = 3.98
        R 5 2 = 0.55
        R 0 2 = 6.01
        R 99 1 = 0.35
        R 2 1 = 0.35
    """,
    ),
    "the first sector under the head": (
        ARRIVAL,
        """
        R 30 4 = 3.98
        R 2 1 = 0.35
    """,
    ),
    # It arrives behind the first block: blocks 2 and 3 are there when 0 and 1 pass, at 10.0, and all of the track is.
    "arrival in the middle": (
        ARRIVAL,
        """
        R 0 4 = 10.98
        R 99 1 = 0.35
        R 50 2 = 0.55
    """,
    ),
    # Sector 21 is about to pass, at 2.1: too soon for a new access (1.98 + .13), but the medium reads on anyway.
    "what is about to pass": (
        ARRIVAL,
        """
        R 10 4 = 1.98
        R 21 1 = 0.46
    """,
    ),
    # The head arrives on cylinder 1 at 5.51. At 10.0 its track ends; what is missing in front of sector 56 passes till 15.6,
    # block 230 at 13.0. From there 16.6 is too late for the other head's sector 0 (12.0, 22.0), and so is 10.88 + .13 + 1.
    "the rest of the track first": (
        ARRIVAL | LAP,
        """
        R 30 1 = 3.38
        R 288 1 = 5.80
        R 230 1 = 4.16
    """,
    ),
    "the rest of the track before the next": (
        ARRIVAL | LAP,
        """
        R 30 1 = 3.38
        R 288 1 = 5.80
        R 300 1 +1.7 = 11.46
    """,
    ),
    # Two requests in succession that go forward make a stream, which does not wait for the rest: block 300 comes in at 12.1.
    "a stream goes on": (
        ARRIVAL | LAP,
        """
        R 30 1 = 3.38
        R 288 1 = 5.80
        R 289 1 = 0.35
        R 290 1 = 0.35
        R 300 1 +1.0 = 1.46
    """,
    ),
    "least time to move": (
        {"mechanics": MECHANICS | {"min_write_move": 3.0}},
        """
        W 30 2 = 13.26
        W 470 1 = 3.90
    """,
    ),
}


def parse(text: str) -> tuple[MeasuredRequests, list[float]]:
    rows = [line.partition("=") for line in text.strip().splitlines()]
    words = [row[0].split() for row in rows]
    thinks = [float(w[3]) if len(w) > 3 else 0.0 for w in words[1:]] + [0.0]
    load = MeasuredRequests(
        np.array([w[0] == "W" for w in words], np.uint8),
        np.array([w[1] for w in words], np.uint64),
        np.array([w[2] for w in words], np.uint32),
        np.zeros(len(rows), np.int64),
        np.array([round(t * 1e6) for t in thinks], np.int64),
    )
    return load, [float(row[2]) for row in rows]


@pytest.mark.parametrize("case", CASES)
def test_service_times(case: str) -> None:
    change, text = CASES[case]
    load, expected = parse(text)
    found = replay(from_toml(DISK | change, case, case), load) / 1e6
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
