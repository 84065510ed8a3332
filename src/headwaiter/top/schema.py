# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fields of `headwaiter top --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.description.schema import InBackground, WaitsFor
from headwaiter.study.schema import Latency, Lever


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFlow(Record):
    """Completed requests of one operation."""

    requests_per_s: Annotated[float, Says("requests", "requests/s")]
    mbps: Annotated[float, Says("their bytes", "MB/s", key="MBps")]
    mean_ms: Annotated[float | None, Says("their mean latency; absent where there are none", "ms")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopQueue(Record):
    """The device and its queue."""

    scheduler: Annotated[str | None, Says("the scheduler in force; absent where that is not known")] = None
    settings: Annotated[Mapping[str, str], Says("what is in force, by file of queue/: tunables, nr_requests and others")]
    busy_percent: Annotated[float | None, Says("share of the time in which it had at least one request", "%")] = None
    under_way: Annotated[int, Says("requests under way at the end of the interval")]
    in_device: Annotated[int | None, Says("of these in the device; absent if issues are not recorded")] = None
    most: Annotated[int | None, Says("the most requests in the device at once; absent as before")] = None
    takes: Annotated[int | None, Says("requests that the device takes at once; absent where the kernel does not tell")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopProgram(Record):
    """A program in an interval."""

    program: Annotated[str, Says("its name; where programs of one name do unlike work, it says which")]
    pids: Annotated[Sequence[int], Says("its processes; empty where they are not known")]
    read: Annotated[TopFlow, Says("reads")]
    write: Annotated[TopFlow, Says("writes")]
    lat_ms: Annotated[
        Latency | None,
        Says("latency of what it waits for, else of all, of what is under way until now; absent without", "ms"),
    ] = None
    under_way: Annotated[int, Says("its requests under way at the end of the interval")]
    waits_percent: Annotated[float, Says("share of the interval in which it waited; of several threads the sum", "%")]
    waits_for: Annotated[Sequence[WaitsFor], Says("for whom, the greatest share first; its own requests are among them")]


@dataclass(frozen=True, kw_only=True)
class TopDocument(Document):
    """`headwaiter top`"""

    device: Annotated[str, Says("name of the device, or of the recording")]
    model: Annotated[str, Says("what it is; empty where that is not known")] = ""
    at: Annotated[str, Says("when the interval ended: a time, or seconds of the recording")]
    seconds: Annotated[float, Says("length of the interval", "s")]
    lost: Annotated[int, Says("events that were lost since the beginning")] = 0
    queue: Annotated[TopQueue, Says("the device and its queue")]
    read: Annotated[TopFlow, Says("reads")]
    write: Annotated[TopFlow, Says("writes")]
    programs: Annotated[Sequence[TopProgram] | None, Says("programs, those that wait longest first; absent with --counters")] = (
        None
    )
    background: Annotated[Sequence[InBackground], Says("programs that may well wait, those that cause most waiting first")] = ()
    advice: Annotated[str, Says("which scheduler would help; empty before a minute has been seen")] = ""
    levers: Annotated[Sequence[Lever], Says("what would help beside that, the most helpful first")] = ()
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (TopDocument,)
