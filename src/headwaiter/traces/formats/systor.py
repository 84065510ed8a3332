# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""SYSTOR '17 traces: CSV with the header `Timestamp,Response,IOType,LUN,Offset,Size`.

Times in seconds (of 1970), Timestamp that of issue and Response until completion, which may be missing; Offset and Size
in bytes; not sorted. Source: Lee and others, "Understanding storage traffic characteristics on enterprise virtual
desktop infrastructure", SYSTOR 2017, and the README of the traces at SNIA.
"""

from __future__ import annotations

import numpy as np

from headwaiter.engine.constants import Op
from headwaiter.traces.fields import split
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import EARLY_NS, MAX_TIME_NS, Trace
from headwaiter.traces.one_device import one_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_HEADER = b"Timestamp,Response,IOType,LUN,Offset,Size"
_OPS = {"R": int(Op.READ), "W": int(Op.WRITE)}


def sniff(head: bytes) -> bool:
    """Return whether the header is there."""
    return head.startswith(_HEADER)


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one LUN's requests. Raises Problem at the first line that breaks the format."""
    if not sniff(source.head):
        raise source.problem(f"the header {_HEADER.decode()} is missing", line=1)
    table, notes = one_device(split(source, 6, delimiter=",", skip_lines=1), [3], options)
    time = table.fixed(0, "Timestamp", 9, high=MAX_TIME_NS)
    response = table.fixed(1, "Response", 9, high=MAX_TIME_NS, blank=-1)
    time -= options.base(int(time.min()), EARLY_NS)
    complete = np.where(response >= 0, time + response, -1)
    sector, sectors = table.byte_ranges((4, "Offset"), (5, "Size"))
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=time,
        complete_ns=complete,
        sector=sector,
        sectors=sectors,
        op=table.words(2, "IOType", _OPS),
        notes=notes,
    )


FORMAT = Format("systor", "SYSTOR '17 traces (CSV)", sniff, read, headers=lambda head: 1)
