# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A profile of the model `shaped` from a sweep of fio jobs: fio's own JSON, a file a job or several in one.

Jobs at depth 1 tell how long a request takes by its size, and their percentiles how that varies; jobs at greater depths tell how
many are served at once; the greatest rates that were seen are the limits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.base.reading import TEXT_BYTES, read_bytes
from headwaiter.drives.profile import Toml
from headwaiter.engine.constants import SECTOR_BYTES

_SHARES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 1.0)
_UNIT_SECTORS = (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 8)
"""In which I/Os may be counted; the first that explains a sweep best."""
_TRIED = 24
_MOST_AT_ONCE = 1024
_NEAR_LIMIT = 0.8
"""A job that moves as much of the greatest rate of its direction may be at that limit."""
_CLEARLY = 0.02
"""By so much less must a table of load be off, in the mean of the logarithms, to be taken instead of a number of servers."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Row:
    """fio's figures of one direction of one job. Times in ms."""

    write: bool
    size: int
    at_once: int
    iops: float
    mean: float
    percentiles: tuple[tuple[float, float], ...]


def _bytes(text: object, where: str) -> int:
    value = str(text).split(",")[0].strip().lower().removesuffix("ib").removesuffix("b")
    unit = value[-1:] if value[-1:] in _UNITS else ""
    digits = value.removesuffix(unit) if unit else value
    if not digits.isdecimal() or not 512 <= int(digits) * _UNITS[unit] <= 1 << 30:
        raise Problem(f"{where}: bs: '{value[:20]}' is not a size of 512 B to 1 GiB")
    return int(digits) * _UNITS[unit]


def _count(text: object, where: str, name: str) -> int:
    if not str(text).isdecimal() or not 1 <= int(str(text)) <= 1 << 20:
        raise Problem(f"{where}: {name}: '{str(text)[:20]}' is not a number of at least 1")
    return int(str(text))


def _rows(path: Path, document: Any) -> Iterable[Row]:
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        raise Problem(f"{path}: not fio's JSON: no list of jobs")
    common = document.get("global options") or {}
    for number, job in enumerate(document["jobs"], 1):
        where = f"{path}: job {number}"
        if not isinstance(job, dict):
            raise Problem(f"{where}: is not a table")
        options = {**common, **(job.get("job options") or {})}
        depth = _count(options.get("iodepth", 1), where, "iodepth") * _count(options.get("numjobs", 1), where, "numjobs")
        size = _bytes(options.get("bs", "4k"), where)
        both = [way for way in ("read", "write") if (job.get(way) or {}).get("total_ios")]
        for way in both if len(both) == 1 else []:  # of a mix it is not known which waited for which
            found = job[way]
            try:
                lat, spread = found["lat_ns"], found["clat_ns"].get("percentile", {})
                points = tuple(sorted((float(share) / 100, ns / 1e6) for share, ns in spread.items()))
                yield Row(way == "write", size, depth, float(found["iops"]), float(lat["mean"]) / 1e6, points)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise Problem(f"{where}: {way}: lacks iops, lat_ns or clat_ns") from None


def _document(path: Path) -> Any:
    """A file of fio's; Problem if it is not JSON."""
    text = read_bytes(path, TEXT_BYTES).decode("utf-8", "replace")
    start = text.find("{")  # fio may put its warnings in front
    try:
        return json.loads(text[start:] if start >= 0 else text)
    except (json.JSONDecodeError, RecursionError) as e:
        line = getattr(e, "lineno", 1)
        raise Problem(f"{path}: line {line}: not JSON") from None


def fio_jobs(path: Path) -> Iterable[tuple[str, tuple[dict[str, str], dict[str, Any]]]]:
    """Each job of one of fio's JSON files: its name, its options, and what was measured."""
    document = _document(path)
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        raise Problem(f"{path}: not fio's JSON: no list of jobs")
    common = document.get("global options") or {}
    seen: set[str] = set()
    for number, job in enumerate(document["jobs"], 1):
        if not isinstance(job, dict) or not isinstance(job.get("job options") or {}, dict):
            raise Problem(f"{path}: job {number}: is not a table")
        name = str(job.get("jobname", number))
        if name in seen:
            raise Problem(f"{path}: job {number}: '{name[:20]}' comes twice (clones: group_reporting=1)")
        seen.add(name)
        yield name, ({**common, **(job.get("job options") or {})}, job)


def read_fio(paths: Sequence[Path]) -> list[Row]:
    """The jobs of fio's JSON files that only read or only write; Problem if there is none."""
    rows: list[Row] = []
    for path in paths:
        document = _document(path)
        rows += [row for row in _rows(path, document) if row.iops > 0 and row.mean > 0 and math.isfinite(row.iops + row.mean)]
    if not rows:
        raise Problem(f"{paths[0]}: no job that only reads or only writes")
    return rows


def _line(rows: list[Row]) -> tuple[float, float]:
    """ms of a request, and ms of a sector: the least relative error at depth 1."""
    lone = [row for row in rows if row.at_once == 1] or [min(rows, key=lambda row: row.at_once)]
    x = np.array([row.size / SECTOR_BYTES for row in lone])
    y = np.array([row.at_once / row.iops * 1e3 for row in lone])
    if len(set(x.tolist())) < 2:
        return float(y.mean()), 0.0
    slope, base = np.polyfit(x, y, 1, w=1 / y)
    slope = max(0.0, float(slope))
    return max(1e-4, float(base) if slope and base > 0 else float((y - slope * x).min())), slope


def _table(rows: list[Row], base: float) -> list[list[float]]:
    """Quantiles of the smallest requests at depth 1, scaled to the mean `base`."""
    lone = min(rows, key=lambda row: (row.at_once, row.size))
    if len(lone.percentiles) < 2:
        return [[0.0, base], [1.0, base]]
    share, ms = np.array(lone.percentiles).T
    points = np.interp(_SHARES, share, np.maximum.accumulate(ms))
    mean = float(((points[1:] + points[:-1]) / 2 * np.diff(_SHARES)).sum())
    return [[s, float(f"{p * base / (mean or 1):.5g}")] for s, p in zip(_SHARES, points, strict=True)]


def _some(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The greatest first; of many, some."""
    distinct = np.unique(values)[::-1]
    chosen = np.unique(np.linspace(0, len(distinct) - 1, min(len(distinct), _TRIED)).round())
    return np.asarray(distinct[chosen.astype(int)], float)


def _limits(rows: list[Row], took_s: NDArray[np.float64]) -> tuple[int, int, float, float, float]:
    """Servers, sectors that count as one I/O, so counted I/Os and bytes a second: those that explain the measured rates best.

    Last, how far off they are, as the mean of the logarithms' differences.
    The limits are among the rates that were seen. Of those that explain as much, the widest.
    """
    iops = np.array([row.iops for row in rows])
    size, at_once = (np.array(column, float) for column in zip(*((row.size, row.at_once) for row in rows), strict=True))
    servers = np.unique(np.clip(np.round(iops * took_s), 1, 1024))
    by_servers = np.minimum(at_once, servers[:, None]) / took_s  # a row for each number of servers
    best, found = math.inf, (1, _UNIT_SECTORS[0], 1.0, 1.0)
    for unit in _UNIT_SECTORS:
        counts = np.ceil(size / SECTOR_BYTES / unit)
        for ios in _some(iops * counts):
            for most in _some(iops * size):
                rates = np.minimum(by_servers, np.minimum(ios / counts, most / size))
                off = np.abs(np.log(rates / iops)).sum(axis=1)
                i = int(off.argmin())
                if off[i] < best - 1e-9:
                    best, found = float(off[i]), (int(servers[i]), unit, float(ios), float(most))
    return *found, best / len(rows)


@dataclass(frozen=True)
class _Load:
    """How many times as long a request takes beside others, the bytes a second of reads and writes, and how far off that is."""

    times: tuple[tuple[int, float], ...]
    bytes_a_second: Mapping[bool, float]
    off: float


def _load(rows: list[Row], took_s: NDArray[np.float64]) -> _Load | None:
    """What explains rates that rise with each request that is added, but by less and less; None without two depths.

    By depth that is the job which is held back least, since others may be at a limit of bytes; a depth at which all are tells
    nothing. Between the depths that do the powers of two lie on a line of the logarithms.
    """
    kinds: dict[tuple[bool, int, int], list[float]] = {}
    alone_s: dict[tuple[bool, int, int], float] = {}
    for row, took in zip(rows, took_s, strict=True):
        kind = row.write, row.size, row.at_once
        kinds.setdefault(kind, []).append(row.iops)
        alone_s[kind] = float(took)
    rate = {kind: float(np.median(found)) for kind, found in kinds.items()}
    most = {w: max((rate[k] * k[1] for k in kinds if k[0] == w), default=math.inf) for w in (False, True)}
    free = [kind for kind in kinds if rate[kind] * kind[1] < _NEAR_LIMIT * most[kind[0]]]
    depths = sorted({at_once for _, _, at_once in free} - {1})
    if not depths or depths[-1] > _MOST_AT_ONCE:
        return None
    points = [(1, 1.0)]
    for n in depths:
        slower = min(n / (rate[kind] * alone_s[kind]) for kind in free if kind[2] == n)
        before, least = points[-1]
        points.append((n, min(max(slower, least), least * n / before)))
    at, by = np.log(np.array(points)).T

    def times(n: int) -> float:
        return float(np.exp(np.interp(math.log(n), at, by))) * max(1.0, n / depths[-1])

    powers = {1 << k for k in range(depths[-1].bit_length())} | set(depths)
    off = [
        abs(math.log(min(n / (alone_s[write, size, n] * times(n)), most[write] / size) / iops))
        for (write, size, n), found in kinds.items()
        for iops in found
    ]
    return _Load(tuple((n, float(f"{times(n):.4g}")) for n in sorted(powers)), most, sum(off) / len(off))


def _rate(most: float) -> Toml:
    """The limit of so many bytes a second."""
    return {"rate": float(f"{most / 1e6:.5g}"), "burst": float(f"{max(1.0, most / 1e9):.4g}")}


def volume(rows: list[Row], capacity: int) -> tuple[Toml, dict[str, str]]:
    """The profile, and by key what was guessed."""
    lines: dict[bool, tuple[float, float]] = {}
    notes: dict[str, str] = {}
    for write in (False, True):
        own = [row for row in rows if row.write == write]
        lines[write] = _line(own or rows)
        if not own:
            notes[f"latency.{'write' if write else 'read'}"] = "guessed: as the other direction, which alone was measured"
    took = [(lines[row.write][0] + lines[row.write][1] * row.size / SECTOR_BYTES) / 1e3 for row in rows]
    servers, unit, ios, most, off = _limits(rows, np.array(took))
    notes["servers"] = notes["ios"] = notes["bytes.rate"] = "what explains the rates at greater depths best"
    notes["slow"] = "not measured"
    latency = {
        ("write" if write else "read"): _table([row for row in rows if row.write == write] or rows, lines[write][0])
        for write in (False, True)
    }
    slopes = {f"sector_{'write' if write else 'read'}": float(f"{lines[write][1]:.5g}") for write in (False, True)}
    data: Toml = {
        "model": "shaped",
        "servers": servers,
        "geometry": {"sectors": capacity // SECTOR_BYTES},
        "latency": {**latency, **slopes},
        "ios": {"rate": max(1, round(ios)), "burst": max(1, round(ios / 1000)), "unit": unit},
        "bytes": _rate(most),
        "queue": {"depth": min(1024, max(128, *(row.at_once for row in rows)))},
    }
    load = _load(rows, np.array(took))
    if load and load.off + _CLEARLY < off:
        _hinder(data, notes, load)
    return data, notes


def _hinder(data: Toml, notes: dict[str, str], load: _Load) -> None:
    """Say in a profile that requests hinder each other, instead of how many servers there are."""
    rates = {write: rate for write, rate in load.bytes_a_second.items() if math.isfinite(rate)}
    most = max(rates.values())
    data["servers"] = min(1024, 4 * load.times[-1][0])
    data["latency"]["load"] = [list(point) for point in load.times]
    data["bytes"] = _rate(most)
    for write, rate in rates.items():
        if rate < most:
            data["bytes"]["write_rate" if write else "read_rate"] = _rate(rate)["rate"]
    del data["ios"], notes["ios"]
    notes["latency.load"] = notes["servers"]
    notes["servers"] = "enough: latency.load tells what more of them bring"
