# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DiskSim's ASCII traces: `ms device block blocks flags`, flags in hexadecimal, bit 0 a read; blocks of 512 bytes.

Source: the DiskSim 4.0 reference manual, section "Input traces". Only arrivals are recorded.
"""

from __future__ import annotations

import re

import numpy as np

from headwaiter.engine.constants import Op
from headwaiter.traces.fields import split
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.one_device import one_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_LINE = re.compile(rb"\s*\d+\.\d+\s+\d+\s+\d+\s+\d+\s+[0-9a-fA-F]{1,8}\s*(\n|\Z)")
_READ = 0x1


def sniff(head: bytes) -> bool:
    """Return whether the first line is five numbers, the first with a decimal point."""
    return bool(_LINE.match(head))


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one device's requests. Raises Problem at the first line that breaks the format."""
    table, notes = one_device(split(source, 5), [1], options)
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=table.fixed(0, "time", 6, high=MAX_TIME_NS),
        sector=table.integers(2, "block", high=MAX_SECTOR),
        sectors=table.integers(3, "number of blocks", high=2**32 - 1),
        op=np.where(table.hexadecimal(4, "flags") & _READ, int(Op.READ), int(Op.WRITE)),
        notes=notes,
    )


FORMAT = Format("disksim", "DiskSim's ASCII traces (ms device block blocks flags)", sniff, read, rank=1)
