# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MQSim's ASCII traces: `ns device sector sectors op`, op 1 a read and 0 a write; sectors of 512 bytes.

Source: MQSim's README, section "Trace-based workloads". Only arrivals are recorded.
"""

from __future__ import annotations

import re

from headwaiter.engine.constants import Op
from headwaiter.traces.fields import split
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.one_device import one_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_LINE = re.compile(rb"\s*\d+\s+\d+\s+\d+\s+\d+\s+[01]\s*(\n|\Z)")
_OPS = {"1": int(Op.READ), "0": int(Op.WRITE)}


def sniff(head: bytes) -> bool:
    """Return whether the first line is five whole numbers, the last 0 or 1."""
    return bool(_LINE.match(head))


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one device's requests. Raises Problem at the first line that breaks the format."""
    table, notes = one_device(split(source, 5), [1], options)
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=table.integers(0, "time", high=MAX_TIME_NS),
        sector=table.integers(2, "sector", high=MAX_SECTOR),
        sectors=table.integers(3, "number of sectors", high=2**32 - 1),
        op=table.words(4, "op", _OPS),
        notes=notes,
    )


FORMAT = Format(
    "mqsim",
    "MQSim's ASCII traces (ns device sector sectors op)",
    sniff,
    read,
    rank=1,
    guess="read as mqsim (times in ns); --format disksim takes them as ms",
)
