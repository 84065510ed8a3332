# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CSV of any kind, whose columns the user names: `time=ts:ms,offset=off,size=len,op=rw` (meaning.py says what can be said)."""

from __future__ import annotations

from headwaiter.traces.anycsv import read as read_csv
from headwaiter.traces.meaning import parse
from headwaiter.traces.model import Trace
from headwaiter.traces.registry import Format, ReadOptions
from headwaiter.traces.source import Source


def sniff(head: bytes) -> bool:
    """Never: only the user knows what such a file says."""
    return False


def read(source: Source, options: ReadOptions) -> Trace:
    """Read a file as --columns describes it. Raises Problem at the first line that does not fit."""
    if options.columns is None:
        raise source.problem("CSV of any kind needs --columns")
    return read_csv(source, options, parse(options.columns, source.problem), FORMAT.name)


FORMAT = Format("columns", "CSV of any kind: --columns says what its columns are", sniff, read)
