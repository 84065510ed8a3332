# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A profile from key=value pairs: io.cost's model line, the name of a drive that others measured, or a data sheet's rates."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.parsing import real
from headwaiter.drives.flash import RATES, Known, fitted, from_mapping
from headwaiter.drives.profile import Toml
from headwaiter.engine.constants import SECTOR_BYTES

_TABLE = Path(__file__).with_name("iocost.toml")
_TB = 10**12
_LARGEST = 10**17
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_KINDS = ("flash", "volume")
_ANSWERS = {"yes": True, "true": True, "no": False, "false": False}
KEYS = ("kind", "capacity", "read", "write", "read_iops", "write_iops", "plp", "dram", "latency", "interface", "depth")
Made = tuple[Toml, dict[str, str]]


@cache
def known_models() -> dict[str, dict[str, float]]:
    """The six numbers and the capacity of each drive of the public database."""
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def _pairs(text: str, where: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if equals:
            found[key.strip().lower().replace("-", "_")] = value
        elif ":" not in word:  # io.cost.model begins with the device's number
            raise Problem(f"{where}: '{shown(word)}' is not key=value")
    return found


def _number(text: str, where: str, key: str, low: float, high: float) -> float:
    try:
        return real(text, low, high)
    except (ValueError, OverflowError):
        raise Problem(f"{where}: {key}: '{shown(text)}' is not a number of {low:g} to {high:g}") from None


def size(text: str, where: str) -> int:
    """A capacity such as 1TB, in bytes."""
    value = text.strip().lower().removesuffix("b")
    unit = value[-1:] if value[-1:] in _UNITS and value else ""
    least = SECTOR_BYTES * 4096
    found = _number(value.removesuffix(unit) if unit else value, where, "capacity", 0, _LARGEST) * _UNITS[unit]
    if not least <= found <= _LARGEST:
        raise Problem(f"{where}: capacity: '{shown(text)}' is not one of 2 MB to 100 PB")
    return round(found)


def from_iocost(text: str, capacity: int | None) -> Made:
    """From a line of six numbers, or from the name of a drive in the database."""
    where = "--iocost"
    if "=" in text:
        pairs = _pairs(text, where)
        numbers = {key: _number(pairs[key], where, key, 1, 1e13) for key in RATES if key in pairs}
    else:
        by_name = {name.lower().replace(" ", "_"): name for name in known_models()}
        name = text.strip().lower().replace(" ", "_")
        if name not in by_name:
            raise Problem(f"{where}: no such model '{shown(text)}'{did_you_mean(text, known_models())}")
        numbers = known_models()[by_name[name]]
        capacity = capacity or int(numbers["capacity"])
    data, notes, _ = fitted(from_mapping(numbers, where), Known(capacity or _TB), where)
    if capacity is None:
        notes["geometry.sectors"] = "guessed: 1 TB"
    return data, notes


def from_sheet(words: tuple[str, ...], capacity: int | None = None, where: str = "--sheet") -> Made:
    """From what a data sheet tells: see KEYS. Rates in MB/s, latency of a 4 KiB read in ms."""
    pairs = _pairs(" ".join(words), where)
    if unknown := [key for key in pairs if key not in KEYS]:
        raise Problem(f"{where}: unknown key '{shown(unknown[0])}'{did_you_mean(unknown[0], KEYS)} (known: {', '.join(KEYS)})")
    kind = pairs.get("kind", "flash")
    if kind not in _KINDS:
        raise Problem(f"{where}: kind: '{shown(kind)}' is not flash or volume; of a disk make one by `drives new --rpm`")
    if "capacity" in pairs:
        capacity = size(pairs["capacity"], where)
    if capacity is None:
        raise Problem(f"{where}: capacity: is missing")
    if missing := [key for key in ("read", "write", "read_iops", "write_iops") if key not in pairs]:
        raise Problem(f"{where}: {missing[0]}: is missing")
    read, write = (_number(pairs[key], where, key, 0.1, 1e6) * 1e6 for key in ("read", "write"))
    read_iops, write_iops = (_number(pairs[key], where, key, 1, 1e9) for key in ("read_iops", "write_iops"))
    latency = _number(pairs["latency"], where, "latency", 0.001, 10_000) if "latency" in pairs else None
    depth = round(_number(pairs["depth"], where, "depth", 1, 1023)) if "depth" in pairs else None
    if kind == "volume":
        return _volume(capacity, max(read, write), max(read_iops, write_iops), latency, depth)
    flags = {key: _answer(pairs[key], where, key) for key in ("plp", "dram") if key in pairs}
    sata = pairs.get("interface", "nvme").lower()
    if sata not in ("nvme", "sata", "sas"):
        raise Problem(f"{where}: interface: '{shown(sata)}' is not nvme, sata or sas")
    protected = flags.get("plp")
    known = Known(
        capacity,
        protected,
        read=(latency or 0.06) + (0.03 if flags.get("dram") is False else 0.0),
        half_duplex=sata == "sata",
        depth=depth or (32 if sata == "sata" else 1023),
    )
    # A sheet tells one rate of small writes: sequential ones fill pages, and reach that of large ones or of the controller.
    numbers = {
        "rbps": read,
        "wbps": write,
        "rseqiops": read_iops,
        "rrandiops": read_iops,
        "wseqiops": max(write_iops, min(write / 4096, read_iops)),
        "wrandiops": write_iops,
    }
    data, notes, _ = fitted(from_mapping(numbers, where), known, where)
    notes["timing.page_read"] = "from the latency given" if latency else "guessed: usual for TLC"
    if flags.get("dram") is False:
        notes["timing.page_read"] += "; 0.03 ms more for mapping tables that are not in memory"
    notes["write.sequential_extra"] = "guessed: sequential writes reach the rate of large ones"
    return data, notes


def _answer(text: str, where: str, key: str) -> bool:
    if text.lower() not in _ANSWERS:
        raise Problem(f"{where}: {key}: '{shown(text)}' is neither yes nor no")
    return _ANSWERS[text.lower()]


def _volume(capacity: int, rate: float, ios: float, latency: float | None, depth: int | None) -> Made:
    typical = latency or 0.8
    spread = ((0.0, 0.6), (0.1, 0.75), (0.25, 0.85), (0.5, 0.95), (0.75, 1.1), (0.9, 1.3), (0.99, 2.5), (0.999, 6.0), (1.0, 20.0))
    table = [[share, float(f"{typical * factor:.5g}")] for share, factor in spread]
    servers = min(1024, max(8, round(2 * ios * typical / 1e3)))
    data: Toml = {
        "model": "shaped",
        "servers": servers,
        "geometry": {"sectors": capacity // SECTOR_BYTES},
        "latency": {"read": table, "write": table},
        "ios": {"rate": round(ios), "burst": max(1, round(ios / 100)), "unit": 512},
        "bytes": {"rate": rate / 1e6, "burst": max(1.0, rate / 1e8)},
        "queue": {"depth": depth or 128},
    }
    notes = {
        "latency.read": "guessed: a spread usual for cloud volumes" + ("" if latency else ", around 0.8 ms"),
        "latency.write": "guessed: as for reads",
        "servers": "guessed: twice what the limit needs",
        "ios.burst": "guessed: 10 ms of the rate",
        "ios.unit": "guessed: 256 KiB",
        "bytes.burst": "guessed: 10 ms of the rate",
        "queue.depth": "given" if depth else "guessed",
    }
    return data, notes
