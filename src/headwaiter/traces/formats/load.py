# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Block traces as blkreplay keeps them (*.load): prose, a header line, then `start_s ; sector ; sectors ; op ; 0 ; 0`.

The prose and header of the file that it was made from may come before its own. op is R, W or RA (read-ahead, a read).
Only arrivals are recorded: neither completions nor tasks.
Source: the two production traces of Schoebel-Theuer, 2012, which are in this format.
"""

from __future__ import annotations

import re

from headwaiter.engine.constants import Op
from headwaiter.traces.fields import split
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.one_device import refuse_device
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source

_HEADER = re.compile(rb"^start *; *sector *; *length *; *op *;[^\n]*(\n|\Z)", re.MULTILINE)
_OPS = {"R": int(Op.READ), "W": int(Op.WRITE), "RA": int(Op.READ)}


def sniff(head: bytes) -> bool:
    """Return whether the header line is somewhere in the beginning, below the prose."""
    return bool(_HEADER.search(head))


def read(source: Source, options: ReadOptions) -> Trace:
    """Read a trace. Raises Problem at the first line below the header that breaks the format."""
    refuse_device(source, options.device)
    header = -1
    for found in _HEADER.finditer(source.data):
        header = found.start()
    if header < 0:
        raise source.problem("the header line (start ; sector; length ; op ; …) is missing")
    table = split(source, 6, delimiter=";", skip_lines=source.data.count(b"\n", 0, header) + 1)
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=table.fixed(0, "start", 9, high=MAX_TIME_NS),
        sector=table.integers(1, "sector", high=MAX_SECTOR),
        sectors=table.integers(2, "length", high=2**32 - 1),
        op=table.words(3, "op", _OPS),
    )


FORMAT = Format("load", "blkreplay's load files (start ; sector ; length ; op ; …)", sniff, read)
