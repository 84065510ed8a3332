# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The JSON output of `headwaiter was`, workload-dependent anticipation. See schema.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from headwaiter.base.records import Document, Notes, Record, Says

Observed = Annotated[str, Says("names of the workloads, and the drive")]


@dataclass(frozen=True, kw_only=True)
class Calibration(Record):
    """Classes of processes that a search has found."""

    history: Annotated[int, Says("I/Os of a process that its class depends on")]
    classes: Annotated[int, Says("number of classes")]
    empty_classes: Annotated[int, Says("classes without a wait")]
    similarity: Annotated[float, Says("mean correlation of the waits of a class with all waits")]
    spatial_steps: Annotated[Sequence[Sequence[int]], Says("pairs: least distance in sectors, points")]
    temporal_steps: Annotated[Sequence[Sequence[int]], Says("pairs: least time in us, points")]
    candidates: Annotated[int, Says("classifications that were tried")]
    candidates_within_bound: Annotated[int, Says("of them, those with few enough classes without a wait")]
    warnings: Annotated[Sequence[str], Says("shortcomings of the classification that was chosen")]


@dataclass(frozen=True, kw_only=True)
class Designation(Record):
    """An interval for each class, and its result on the waits that were observed."""

    wait_us: Annotated[Sequence[int], Says("interval of class 1, 2, …", "us")]
    waits: Annotated[int, Says("waits that were observed")]
    failures: Annotated[int, Says("waits that would be in vain")]
    penalty_ms: Annotated[float, Says("their time together", "ms")]
    mean_failure_ms: Annotated[float, Says("their mean time", "ms")]
    relaxed_failures: Annotated[
        float | None, Says("lower bound of failures, from the relaxation; null if it was not asked for", null=True)
    ]


@dataclass(frozen=True, kw_only=True)
class Side(Record):
    """Waits and throughput of a load under one scheduler."""

    met: Annotated[int, Says("waits that met the request", key="A_S")]
    vain: Annotated[int, Says("waits in vain", key="A_F")]
    vain_ms: Annotated[float, Says("time of A_F", "ms", key="T_F_ms")]
    cost_ms: Annotated[float | None, Says("T_F_ms by A_S; null where no wait was met", "ms", key="T_F_per_A_S_ms", null=True)]
    rate_mbps: Annotated[float, Says("throughput", "MB/s", key="throughput_MBps")]


@dataclass(frozen=True, kw_only=True)
class Verdict(Record):
    """A load under `as` and under `was`."""

    load: Annotated[str, Says("name of the load")]
    as_: Annotated[Side, Says("under `as`", key="as")]
    was: Annotated[Side, Says("under `was`")]
    throughput: Annotated[float, Says("throughput of `was` as a multiple of that of `as`")]
    better: Annotated[bool | None, Says("T_F/A_S is lower under `was`; null if they are the same", null=True)]
    keeps_up: Annotated[bool, Says("no more throughput is lost than the permitted share")]


@dataclass(frozen=True, kw_only=True)
class WasCalibrateDocument(Document):
    """`headwaiter was calibrate`"""

    workload: Observed
    calibration: Annotated[Calibration, Says("the classes")]
    notes: Notes


@dataclass(frozen=True, kw_only=True)
class WasDesignateDocument(Document):
    """`headwaiter was designate`"""

    designation: Annotated[Designation, Says("the intervals")]


@dataclass(frozen=True, kw_only=True)
class WasFitDocument(Document):
    """`headwaiter was fit`"""

    workload: Observed
    tried: Annotated[int, Says("configurations that were run")]
    calibration: Annotated[Calibration, Says("the classes")]
    wait_us: Annotated[Sequence[int], Says("interval of class 1, 2, … of the configuration that won", "us")]
    designation: Annotated[Designation | None, Says("its intervals, where classes have their own")] = None
    trial: Annotated[Verdict | None, Says("its trial, where it was better than `as`")] = None
    notes: Notes


@dataclass(frozen=True, kw_only=True)
class WasEvaluateDocument(Document):
    """`headwaiter was evaluate`"""

    policy: Annotated[str, Says("the scheduler judged, in the column `was`: was or was-online")]
    drive: Annotated[str, Says("the drive")]
    verdicts: Annotated[Sequence[Verdict], Says("a row for each trace")]
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (
    WasCalibrateDocument,
    WasDesignateDocument,
    WasFitDocument,
    WasEvaluateDocument,
)
