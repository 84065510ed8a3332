# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The columns of a fleet's Parquet, and the fields of `headwaiter fleet --json`. No program has a name in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.advice.schema import Goal
from headwaiter.base.records import Document, Notes, Record, Says

Fate = Literal["gains", "nothing", "idle", "saturated", "cannot tell", "too little", "failed"]
Number = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRow(Record):
    """A machine's recording, what it is like, and what `headwaiter advise` says of it. Figures that are not known are null."""

    key: Annotated[str, Says("what tells recordings apart: a hash of content, goal, drive, seed and version")]
    version: Annotated[str, Says("of headwaiter")]
    machine: Annotated[str, Says("name of the recording")]
    recording_sha256: Annotated[str, Says("SHA-256 of the file as it is stored")]
    error: Annotated[str | None, Says("why it could not be judged; null if it was")] = None
    fate: Annotated[str, Says("gains, nothing, idle, saturated, cannot tell, too little or failed (docs/fleet.md)")]
    workload_class: Annotated[str | None, Says("class of the workload (docs/fleet.md)")] = None
    drive_class: Annotated[str | None, Says("class of the drive: hard disk, SATA SSD, NVMe SSD or cloud volume")] = None
    drive: Annotated[str | None, Says("the drive model that explains the recording best, or that was asked for")] = None
    requests: Annotated[int | None, Says("requests of the recording")] = None
    seconds: Annotated[Number, Says("its length", "s")] = None
    read_percent: Annotated[Number, Says("share of reads, by number", "%")] = None
    sequential_percent: Annotated[Number, Says("share of requests that go on where their program's last one ended", "%")] = None
    sync_percent: Annotated[Number, Says("share of requests that a program waits for", "%")] = None
    size_kib: Annotated[Number, Says("median size of a request", "KiB")] = None
    depth: Annotated[Number, Says("requests under way at once, the mean while there is any")] = None
    busy_percent: Annotated[Number, Says("share of the time in which a request was under way", "%")] = None
    contention_percent: Annotated[Number, Says("share of requests that found as many under way as the device takes", "%")] = None
    current: Annotated[str | None, Says("what is in force, or was supposed to be")] = None
    outcome: Annotated[str | None, Says("the judge's verdict (docs/json.md, Answer)")] = None
    setting: Annotated[str | None, Says("what to have: the advised setting, or what is in force")] = None
    ahead_percent: Annotated[Number, Says("how much more programs get done with it than with what is in force", "%")] = None
    low_percent: Annotated[Number, Says("lower end of the 95% interval of that", "%")] = None
    high_percent: Annotated[Number, Says("upper end", "%")] = None
    module: Annotated[str | None, Says("what would be better still, of schedulers that need a module")] = None
    module_percent: Annotated[Number, Says("how much more it would be", "%")] = None
    shares: Annotated[str | None, Says("each setting of the kernel's as a share of the best of them, as a JSON object")] = None


Quantile = Annotated[Mapping[str, float], Says("10th, 25th, 50th, 75th and 90th percentile over machines", "%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetClass(Record):
    """Machines of one class of workload and drive."""

    workload_class: Annotated[str, Says("class of the workload")]
    drive_class: Annotated[str, Says("class of the drive")]
    machines: Annotated[int, Says("machines of this class that could be judged")]
    setting: Annotated[str, Says("the setting for the class: the one that loses least over its machines")]
    as_advised: Annotated[int, Says("machines on which it is within 5% of their best")]
    gains: Annotated[int, Says("machines that gain by their own best setting")]
    nothing: Annotated[int, Says("machines to which no setting matters")]
    idle: Annotated[int, Says("machines whose disk is nearly idle")]
    saturated: Annotated[int, Says("machines whose disk is saturated, and which no setting helps")]
    cannot_tell: Annotated[int, Says("machines of which it cannot be told")]
    gain_percent: Quantile
    loss_percent: Annotated[Mapping[str, float], Says("what they lose by it: the same percentiles", "%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetSetting(Record):
    """A setting on all machines, against each machine's own best."""

    setting: Annotated[str, Says("the scheduler with its settings; `as it is`: what each machine has now")]
    machines: Annotated[int, Says("machines of which it is known")]
    cost_percent: Annotated[float, Says("what programs get less done than with each machine's best: the mean over machines", "%")]
    loss_percent: Quantile
    losing: Annotated[int, Says("machines that lose more than 5%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStep(Record):
    """Machines that gain about so much."""

    from_percent: Annotated[float, Says("at least", "%")]
    to_percent: Annotated[float | None, Says("less than; absent: no end", "%")]
    machines: Annotated[int, Says("how many")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFailure(Record):
    """A recording that could not be judged."""

    machine: Annotated[str, Says("name of the recording")]
    error: Annotated[str, Says("why")]


@dataclass(frozen=True, kw_only=True)
class FleetDocument(Document):
    """`headwaiter fleet`"""

    goal: Annotated[Goal, Says("what is to be better")]
    machines: Annotated[int, Says("recordings")]
    fates: Annotated[Mapping[str, int], Says("how many gain, and why others do not")]
    gain_percent: Quantile
    gains: Annotated[Sequence[FleetStep], Says("how many machines gain how much")]
    classes: Annotated[Sequence[FleetClass], Says("a row for each class, the largest first")]
    one_for_all: Annotated[Sequence[FleetSetting], Says("a row for each setting, what costs least first")]
    per_class_cost_percent: Annotated[float, Says("what the settings for the classes cost, in the same way", "%")]
    failures: Annotated[Sequence[FleetFailure], Says("recordings that could not be judged, the first of them")]
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (FleetDocument,)
TABLES: tuple[type[Record], ...] = (FleetRow,)
"""Rows of the Parquet file."""
