# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A drive model against service times measured on a real drive.

The demerit figure is the root mean square of the horizontal distance between the two distributions of service time
(Ruemmler & Wilkes, IEEE Computer 27(3), 1994), here by exact quantiles: at 10 000 equally spaced fractions in (0, 1], with
linear interpolation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.base.parsing import real, whole
from headwaiter.base.reading import read_bytes, unpack
from headwaiter.drives.profile import Profile
from headwaiter.engine.native import borrow, ffi, lib

FRACTIONS = 10_000
_LONGEST_US = 3.6e13
"""A year and more."""
_MOST_BLOCKS = 1 << 16
"""Most sectors of one command of an ATA disk (ACS-3, READ DMA EXT); a larger count would take the model minutes to walk."""
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredRequests:
    """Requests in the order of issue: op (0 read, 1 write), sector, sectors, measured service and think time in ns.

    Think time runs from a request's completion to the issue of the next.
    """

    op: NDArray[np.uint8]
    sector: NDArray[np.uint64]
    sectors: NDArray[np.uint32]
    service_ns: NDArray[np.int64]
    think_ns: NDArray[np.int64]


def unmeasured(
    op: NDArray[np.uint8], sector: NDArray[np.uint64], sectors: NDArray[np.uint32], think_ns: NDArray[np.int64] | None = None
) -> MeasuredRequests:
    """A load for replay(): what is to be served, with nothing to compare with. think_ns None: none."""
    none = np.zeros(len(op), np.int64)
    return MeasuredRequests(op, sector, sectors, none, none if think_ns is None else think_ns)


@dataclass(frozen=True)
class Validation:
    """The outcome, in ms; times in the order of issue."""

    measured_ms: F64
    simulated_ms: F64
    demerit_ms: float
    mean_measured_ms: float
    mean_simulated_ms: float
    max_measured_ms: float
    max_simulated_ms: float

    @property
    def mean_error_ms(self) -> float:
        """Simulated less measured mean."""
        return self.mean_simulated_ms - self.mean_measured_ms

    @property
    def mean_absolute_error_ms(self) -> float:
        """How far a request's simulated time is from its own measured one, on average: a distribution may be right while every
        request is wrong."""
        return float(np.mean(np.abs(self.simulated_ms - self.measured_ms)))

    @property
    def max_error_ms(self) -> float:
        """The largest horizontal distance between the two distributions."""
        m, s = quantiles(self.measured_ms), quantiles(self.simulated_ms)
        return float(np.max(np.abs(m - s)))


def read_trace(path: Path) -> MeasuredRequests:
    """A validation trace: `R|W action first_block block_count service_us think_us` a line, gzip or not."""
    rows: list[tuple[int, int, int, int, int]] = []
    for number, line in enumerate(unpack(path, read_bytes(path)).split(b"\n"), 1):
        fields = line.split()
        if fields:
            rows.append(_row(path, number, [f.decode("latin-1") for f in fields]))
    if not rows:
        raise Problem(f"{path}: contains no requests")
    op, sector, sectors, service, think = zip(*rows, strict=True)
    if not any(service):
        raise Problem(f"{path}: all service times are 0")
    return MeasuredRequests(
        np.array(op, np.uint8),
        np.array(sector, np.uint64),
        np.array(sectors, np.uint32),
        np.array(service, np.int64),
        np.array(think, np.int64),
    )


def _row(path: Path, number: int, fields: list[str]) -> tuple[int, int, int, int, int]:
    if len(fields) != 6 or fields[0] not in ("R", "W"):
        raise Problem(f"{path}: line {number}: not 'R|W action block blocks service_us think_us'")
    what = "block"
    try:
        block = whole(fields[2], 0, (1 << 55) - 1)
        what = "blocks"
        blocks = whole(fields[3], 1, _MOST_BLOCKS)
        what = "service_us"
        service = real(fields[4], 0, _LONGEST_US)
        what = "think_us"
        think = real(fields[5], 0, _LONGEST_US)
    except ValueError as e:
        raise Problem(f"{path}: line {number}: {what}: {e}") from None
    return int(fields[0] == "W"), block, blocks, round(service * 1000), round(think * 1000)


def replay(
    drive: Profile, load: MeasuredRequests, outstanding: int = 1, queue: NDArray[np.uint32] | None = None
) -> NDArray[np.int64]:
    """Service times in ns of the load on the drive alone, in a closed loop with so many requests at once.

    With the submission queue of each of so many places, a place has its own requests, as the columns of rows of `outstanding`;
    the loop ends where one has no more, and what has not been served took 0.
    """
    out = np.zeros(len(load.op), np.int64)
    totals = ffi.new("struct hws_replay_totals *")
    c = ffi.new("struct hws_replay *")
    c.n, c.totals = len(out), totals
    c.op, c.sector = borrow("uint8_t[]", load.op), borrow("uint64_t[]", load.sector)
    c.sectors, c.think_ns = borrow("uint32_t[]", load.sectors), borrow("int64_t[]", load.think_ns)
    if queue is not None:
        c.queue = borrow("uint32_t[]", queue)
    c.service_ns = ffi.from_buffer("int64_t[]", out, require_writable=True)
    if lib.hws_drive_replay(drive.blob, len(drive.blob), outstanding, c):
        raise Problem(f"{drive.name}: not enough memory")
    return out


def quantiles(values: F64) -> F64:
    """The quantiles at FRACTIONS equally spaced fractions in (0, 1]."""
    p = np.arange(1, FRACTIONS + 1) / FRACTIONS
    return np.quantile(values, p)


def demerit(measured: F64, simulated: F64) -> float:
    """RMS horizontal distance between two distributions, in their unit."""
    return math.sqrt(float(np.mean((quantiles(measured) - quantiles(simulated)) ** 2)))


def validate(drive: Profile, load: MeasuredRequests, name: str) -> Validation:
    """Replay a measured trace on a drive; Problem that names the trace if it does not fit the drive."""
    capacity = drive.facts[0]
    beyond = np.flatnonzero(load.sector + load.sectors > capacity)
    if len(beyond):
        raise Problem(
            f"{name}: request {beyond[0] + 1} (block {load.sector[beyond[0]]}) lies beyond the end of "
            f"{drive.name} ({capacity} blocks)"
        )
    measured, simulated = load.service_ns / 1e6, replay(drive, load) / 1e6
    return Validation(
        measured,
        simulated,
        demerit(measured, simulated),
        float(measured.mean()),
        float(simulated.mean()),
        float(measured.max()),
        float(simulated.max()),
    )
