# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces of block requests: one model, many file formats, and what depends on what in them."""

from headwaiter.engine.constants import Op
from headwaiter.traces.closed import closed_loop, continues, stream_order
from headwaiter.traces.formats.native import write_csv
from headwaiter.traces.model import Flushes, Trace, TraceTask, as_inserted, released, requests_of, with_flushes
from headwaiter.traces.registry import Format, ReadOptions, detect, formats, load
from headwaiter.traces.source import Source
from headwaiter.traces.streams import part, with_streams

__all__ = [
    "Flushes",
    "Format",
    "Op",
    "ReadOptions",
    "Source",
    "Trace",
    "TraceTask",
    "as_inserted",
    "closed_loop",
    "continues",
    "detect",
    "formats",
    "load",
    "part",
    "released",
    "requests_of",
    "stream_order",
    "with_flushes",
    "with_streams",
    "write_csv",
]
