# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Microsoft Research Cambridge traces: CSV without a header,

    filetime,host,disk,Read or Write,offset_bytes,bytes,response

filetime in units of 100 ns since 1601, response (until completion) in the same units. Devices are named host.disk.
Source: Narayanan, Donnelly, Rowstron, "Write off-loading", FAST 2008, and the README of the traces at SNIA.
"""

from __future__ import annotations

import re

import numpy as np

from headwaiter.engine.constants import Op
from headwaiter.traces.fields import split
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import EARLY_NS, MAX_TIME_NS, Trace
from headwaiter.traces.one_device import one_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_LINE = re.compile(rb"\d{17,18},[^,\n]+,\d+,(Read|Write),", re.IGNORECASE)
_OPS = {"Read": int(Op.READ), "Write": int(Op.WRITE), "read": int(Op.READ), "write": int(Op.WRITE)}
_TICK_NS = 100
_MAX_TICKS = MAX_TIME_NS // _TICK_NS


def sniff(head: bytes) -> bool:
    """Return whether the first line begins as a record does."""
    return bool(_LINE.match(head))


def read(source: Source, options: ReadOptions) -> Trace:
    """Read one disk's requests. Raises Problem at the first line that breaks the format."""
    table, notes = one_device(split(source, 7, delimiter=","), [1, 2], options)
    ticks = table.integers(0, "timestamp")
    ticks -= options.base(int(ticks.min()), EARLY_NS // _TICK_NS)
    if (late := ticks > _MAX_TICKS).any():
        raise table.problem(int(np.argmax(late)), "timestamp is too far from the first")
    time = ticks * _TICK_NS
    complete = time + table.integers(6, "response", high=_MAX_TICKS) * _TICK_NS
    sector, sectors = table.byte_ranges((4, "offset"), (5, "size"))
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=time,
        complete_ns=complete,
        sector=sector,
        sectors=sectors,
        op=table.words(3, "operation", _OPS),
        notes=notes,
    )


FORMAT = Format("msr", "Microsoft Research Cambridge traces (CSV)", sniff, read, headers=lambda head: 0)
