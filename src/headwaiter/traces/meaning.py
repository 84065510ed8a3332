# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the columns of a CSV file mean, as --columns says it: `time=ts:ms,sector=lba,size=len,op=rw`, or the name of a preset.

KEY=NAME or KEY=NAME:UNIT. NAME is a column's name in the header, or its number, from 1; files without a header have only numbers.
`op=NAME:0=r/1=w` says what the words of a column stand for. KEYS has the keys, PRESETS the published traces that have one form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headwaiter.base.errors import Problem, shown
from headwaiter.engine.constants import SECTOR_BYTES, Op

Failure = Callable[[str], Problem]

TIMES = {"s": 9, "ms": 6, "us": 3, "ns": 0, "filetime": -2}
"""Decimal places of a unit in ns; filetime counts 100 ns since 1601."""
PLACES = {"bytes": 1, "sectors": SECTOR_BYTES, "kib": 1024, "mib": 1 << 20}
KEYS = ("time", "offset", "sector", "size", "sectors", "op", "task", "complete", "latency", "sync", "device")
_IN_SECTORS = {"sector": "offset", "sectors": "size"}
_TIMED, _PLACED = ("time", "complete", "latency"), ("offset", "size")
_LETTERS = {"r": Op.READ, "w": Op.WRITE, "d": Op.DISCARD, "f": Op.FLUSH, "o": Op.OTHER}
_MOST_UNIT = 1 << 30

# Of SCSI's commands READ and WRITE with 6, 10, 12 and 16 bytes, UNMAP and SYNCHRONIZE CACHE, as CloudPhysics has them.
_SCSI = "08=r/28=r/a8=r/88=r/0a=w/2a=w/aa=w/8a=w/42=d/35=f/91=f"
PRESETS = {
    "spc": "device=1,sector=2,size=3,op=4,time=5",
    "alibaba": "device=1,op=2,offset=3,size=4,time=5:us",
    "tencent": "time=1,sector=2,sectors=3,op=4:0=r/1=w,device=5",
    "cloudphysics": f"time=2,op=3:{_SCSI},size=4,sector=5",
}


@dataclass(frozen=True)
class Meaning:
    """Columns by key (time, offset, size, …), the units of those that have one, and the words of operations."""

    names: Mapping[str, str]
    scales: Mapping[str, int]
    """Decimal places of the columns that are times."""
    bytes: Mapping[str, int]
    """Bytes in a unit of the columns `offset` and `size`."""
    words: Mapping[str, Op] = field(default_factory=dict)


def parse(text: str, problem: Failure) -> Meaning:
    """Return what --columns says. `problem` makes the error that is raised if it cannot be meant."""

    def wrong(cause: str) -> Problem:
        return problem(f"--columns{cause}")

    names: dict[str, str] = {}
    units: dict[str, str] = {}
    words: dict[str, Op] = {}
    for part in PRESETS.get(text.strip(), text).split(","):
        key, sign, name = (word.strip() for word in part.partition("="))
        if not sign or not name:
            known = f", or one of {', '.join(PRESETS)}" if "=" not in text else ""
            raise wrong(f" {shown(part[:40])!r}: expected KEY=NAME{known}")
        known_units: Mapping[str, int] = TIMES if key in _TIMED else PLACES
        if key == "op" and ":" in name and "=" in name:
            name, _, listed = name.partition(":")
            words = _words(listed, wrong)
        elif key in (*_TIMED, *_PLACED) and ":" in name:
            rest, _, unit = name.rpartition(":")
            if unit in known_units or (key in _PLACED and unit.isascii() and unit.isdecimal()):
                name, units[key] = rest, unit
        if key in _IN_SECTORS:
            key = _IN_SECTORS[key]
            units[key] = "sectors"
        if key in names or (key in units and key in ("unit", "time-unit")):
            raise wrong(f": {key} occurs twice")
        if key in ("unit", "time-unit"):
            units[key] = name
        elif key in KEYS:
            names[key] = name
        else:
            raise wrong(f": unknown key {shown(key[:40])!r} (known: {', '.join((*KEYS, 'unit', 'time-unit'))})")
    for key in ("time", *_PLACED):
        if key not in names:
            raise wrong(f": {key} is missing")
    if "complete" in names and "latency" in names:
        raise wrong(": complete and latency say the same thing twice")
    scales = {key: _unit(units.get(key, units.get("time-unit", "s")), "time-unit", TIMES, wrong) for key in _TIMED}
    places = {key: _unit(units.get(key, units.get("unit", "bytes")), "unit", PLACES, wrong) for key in _PLACED}
    return Meaning(names, scales, places, words)


def _unit(unit: str, key: str, known: Mapping[str, int], wrong: Failure) -> int:
    if unit in known:
        return known[unit]
    if known is PLACES and unit.isascii() and unit.isdecimal() and len(unit) < 11 and 1 <= int(unit) <= _MOST_UNIT:
        return int(unit)
    more = ", or a number of bytes" if known is PLACES else ""
    raise wrong(f": {key} {shown(unit[:40])!r} is not one of {', '.join(known)}{more}")


def _words(listed: str, wrong: Failure) -> dict[str, Op]:
    """WORD=LETTER/WORD=LETTER."""
    found: dict[str, Op] = {}
    for part in listed.split("/"):
        word, sign, letter = (text.strip() for text in part.partition("="))
        if not sign or letter.lower() not in _LETTERS:
            raise wrong(f": op has {shown(part[:40])!r}: expected WORD=r, WORD=w, WORD=d, WORD=f or WORD=o")
        found[word.casefold()] = _LETTERS[letter.lower()]
    return found
