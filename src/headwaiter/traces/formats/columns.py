# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CSV of any kind with a header line, whose columns the user names: `time=ts,offset=off,size=len,op=rw,unit=bytes`.

    time      time of issue; time-unit=s (default), ms, us or ns
    offset    first byte, or with unit=sectors or unit=kib first sector of 512 bytes or KiB
    size      length in the same unit
    op        r, w, d, read, write, discard, trim, in any case; without it all are reads
    task      a number, such as a pid
    complete  time of completion; or latency, the time from issue to it; may be empty
    sync      0 or 1
    device    several devices: their names

Fields are separated by commas, semicolons or tabs, and may be in quotes. Lines before the header that begin with # do not count.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from headwaiter.engine.constants import SECTOR_BYTES, SYNC, Op
from headwaiter.traces.columns import Array, Table, split
from headwaiter.traces.devices import one_device, refuse_device
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace, bytes_to_sectors, from_zero
from headwaiter.traces.registry import Format, Options
from headwaiter.traces.source import Source

_KEYS = ("time", "offset", "size", "op", "task", "complete", "latency", "sync", "device")
_REQUIRED = ("time", "offset", "size")
_UNITS = {"bytes": 1, "sectors": SECTOR_BYTES, "kib": 1024}
_SCALES = {"s": 9, "ms": 6, "us": 3, "ns": 0}
_DELIMITERS = ",;\t"
_MOST_BYTES = 2**41 - 1
_WORDS = {
    "R": Op.READ, "READ": Op.READ, "RD": Op.READ, "W": Op.WRITE, "WRITE": Op.WRITE, "WR": Op.WRITE, "WS": Op.WRITE,
    "D": Op.DISCARD, "DISCARD": Op.DISCARD, "T": Op.DISCARD, "TRIM": Op.DISCARD, "UNMAP": Op.DISCARD,
}  # fmt: skip
_OPS = {form: int(op) for word, op in _WORDS.items() for form in (word, word.lower(), word.title())}


def sniff(head: bytes) -> bool:
    """Never: only the user knows what such a file says."""
    return False


def read(source: Source, options: Options) -> Trace:
    """Read a file as --columns describes it. Raises Problem at the first line that does not fit."""
    if options.columns is None:
        raise source.problem("CSV of any kind needs --columns")
    named, byte_unit, scale = _meaning(source, options.columns)
    source.blank(b'"')
    header, number, delimiter = _header(source, named)
    table = split(source, len(header), delimiter=delimiter, skip_lines=number)
    at = {key: header.index(name) for key, name in named.items()}
    notes: list[str] = []
    if "device" in at:
        table, notes = one_device(table, [at["device"]], options.device)
    else:
        refuse_device(source, options.device)
    time = table.fixed(at["time"], named["time"], scale, high=MAX_TIME_NS)
    complete = None
    if "complete" in at:
        complete = table.fixed(at["complete"], named["complete"], scale, high=MAX_TIME_NS, blank=-1)
    elif "latency" in at:
        latency = table.fixed(at["latency"], named["latency"], scale, high=MAX_TIME_NS, blank=-1)
        complete = np.where(latency >= 0, time + latency, -1)
    if complete is not None and (early := (complete >= 0) & (complete < time)).any():
        raise table.problem(int(np.argmax(early)), f"{named['complete']} is before {named['time']}")
    time, complete = from_zero(time, complete)
    if "op" in at:
        op = table.words(at["op"], named["op"], _OPS)
    else:
        op = np.full(len(table), Op.READ)
        notes.append("no column op: all requests are taken for reads")
    flags = np.where(op == Op.READ, SYNC, 0)
    if "sync" in at:
        flags = table.words(at["sync"], named["sync"], {"0": 0, "1": 1}) * SYNC
    sector, sectors = _places(table, at, named, byte_unit)
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=time,
        complete_ns=complete,
        sector=sector,
        sectors=sectors,
        op=op,
        flags=flags,
        task_id=table.integers(at["task"], named["task"], high=2**32 - 1) if "task" in at else None,
        group_gap_ns=options.group_gap_ns,
        notes=notes,
    )


def _meaning(source: Source, text: str) -> tuple[dict[str, str], int, int]:
    """(names of columns by key, bytes of a unit of place, decimal places of a unit of time)."""
    named: dict[str, str] = {}
    units: dict[str, str] = {"unit": "bytes", "time-unit": "s"}
    for part in text.split(","):
        key, sign, name = (word.strip() for word in part.partition("="))
        if not sign or not name:
            raise source.problem(f"--columns {part[:40]!r}: expected KEY=NAME")
        if key in named:
            raise source.problem(f"--columns: {key} occurs twice")
        if key in units:
            units[key] = name
        elif key in _KEYS:
            named[key] = name
        else:
            raise source.problem(f"--columns: unknown key {key[:40]!r} (known: {', '.join((*_KEYS, *units))})")
    for key in _REQUIRED:
        if key not in named:
            raise source.problem(f"--columns: {key} is missing")
    if "complete" in named and "latency" in named:
        raise source.problem("--columns: complete and latency say the same thing twice")
    allowed: tuple[tuple[str, Mapping[str, int]], ...] = (("unit", _UNITS), ("time-unit", _SCALES))
    for key, values in allowed:
        if units[key] not in values:
            raise source.problem(f"--columns: {key} {units[key][:40]!r} is not one of {', '.join(values)}")
    return named, _UNITS[units["unit"]], _SCALES[units["time-unit"]]


def _header(source: Source, named: Mapping[str, str]) -> tuple[list[str], int, str]:
    """(names of the columns, lines up to and including the header, what separates fields)."""
    for number, line in enumerate(source.head.split(b"\n"), 1):
        if line.strip() and not line.startswith(b"#"):
            text = line.decode("utf-8-sig", "replace")
            delimiter = max(_DELIMITERS, key=text.count)
            header = [name.strip() for name in text.split(delimiter)]
            for name in named.values():
                if header.count(name) != 1:
                    how = "is not in the header" if name not in header else "is there more than once"
                    raise source.problem(f"column {name[:40]!r} {how} ({', '.join(header)[:200]})", line=number)
            return header, number, delimiter
    raise source.problem("contains no requests")


def _places(table: Table, at: Mapping[str, int], named: Mapping[str, str], unit: int) -> tuple[Array, Array]:
    offset = table.integers(at["offset"], named["offset"], high=MAX_SECTOR * SECTOR_BYTES // unit - 1)
    size = table.integers(at["size"], named["size"], high=_MOST_BYTES // unit)
    return bytes_to_sectors(offset * unit, size * unit)


FORMAT = Format("columns", "CSV of any kind with a header line: --columns says what its columns are", sniff, read)
