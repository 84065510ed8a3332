# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The fields of `headwaiter describe --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.study.blame import Kind
from headwaiter.study.schema import Fit, Latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Record):
    """Quantiles of some times or lengths, in the unit of the field that has them."""

    median: Annotated[float, Says("half are no larger")]
    p95: Annotated[float, Says("95% are no larger")]
    max: Annotated[float, Says("the largest")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth(Record):
    """Numbers of requests under way at once, over the time in which any was."""

    mean: Annotated[float, Says("mean")]
    p95: Annotated[float, Says("not exceeded for 95% of the time")]
    max: Annotated[int, Says("the most")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Character(Record):
    """The character of requests, of all or of one thread of control."""

    requests: Annotated[int, Says("number of requests")]
    bytes: Annotated[int, Says("their bytes", "bytes")]
    read_percent: Annotated[float, Says("share of reads, by number", "%")]
    write_percent: Annotated[float, Says("share of writes, by number", "%")]
    sync_percent: Annotated[float, Says("share of synchronous requests: a program waits for them", "%")]
    size_kib: Annotated[Quantiles, Says("sizes", "KiB")]
    sequential_percent: Annotated[
        float, Says("share of requests that begin where the thread of control's last one of the same operation ended", "%")
    ]
    distance_mib: Annotated[
        Quantiles | None, Says("of the others, the distance to there; absent if all are sequential", "MiB")
    ] = None
    think_ms: Annotated[
        Quantiles | None,
        Says("from the completion of a synchronous request to the thread of control's next; absent if none follows", "ms"),
    ] = None
    latency_ms: Annotated[Quantiles | None, Says("from arrival to completion; absent if completions are unknown", "ms")] = None
    depth: Annotated[Depth | None, Says("requests under way at once; absent if completions are unknown")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCharacter(Character):
    """A thread of control: a task, or a chain of tasks that follow one another."""

    name: Annotated[str, Says("name of its first task")]
    task: Annotated[int, Says("number of its first task")]
    tasks: Annotated[int, Says("how many tasks it has")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Locality(Record):
    """The places of requests, in areas of 1 MiB."""

    span_gib: Annotated[float, Says("from the first to the last sector that is touched", "GiB")]
    touched_mib: Annotated[int, Says("areas that are touched", "MiB")]
    hot_mib: Annotated[int, Says("the fewest areas that hold 90% of the requests", "MiB")]
    again_percent: Annotated[float, Says("share of requests to sectors that an earlier one began at, too", "%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Record):
    """A part of the recording in which the load is much the same."""

    from_s: Annotated[float, Says("begin", "s")]
    to_s: Annotated[float, Says("end", "s")]
    requests: Annotated[int, Says("requests that arrive in it")]
    requests_per_s: Annotated[float, Says("their rate", "requests/s")]
    mbps: Annotated[float, Says("their bytes by its length", "MB/s", key="MBps")]
    read_percent: Annotated[float, Says("share of reads", "%")]
    sequential_percent: Annotated[float, Says("share of sequential requests", "%")]
    tasks: Annotated[int, Says("threads of control that ask for something")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCharacter(Record):
    """The work of the device itself, from being given a request to its completion."""

    requests: Annotated[int, Says("requests that it was given, after merging")]
    size_kib: Annotated[Quantiles, Says("their sizes", "KiB")]
    service_ms: Annotated[Quantiles, Says("time in the device", "ms")]
    queued_ms: Annotated[Quantiles, Says("time from arrival to the device, in the scheduler", "ms")]
    depth: Annotated[Depth, Says("requests in the device at once")]
    busy_percent: Annotated[float, Says("share of the time in which it had at least one, or a flush", "%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deceptive(Record):
    """Deceptive idleness: a program that reads nearby asks again within a moment, but the disk has gone elsewhere."""

    near_percent: Annotated[
        float, Says("share of synchronous reads that come within 6 ms of, and 1 MiB from, the thread of control's last one", "%")
    ]
    exposed_percent: Annotated[float, Says("share of those before which others' requests were waiting", "%")]
    lost_percent: Annotated[float, Says("share of those exposed before which one of the others' was served first", "%")]
    drive: Annotated[str | None, Says("the drive model of the simulation; absent without one")] = None
    waited_s: Annotated[float | None, Says("time that programs wait under `as` in the simulation", "s")] = None
    waited_never_s: Annotated[float | None, Says("the same if it never waits for a program (antic_expire=0)", "s")] = None
    cost_percent: Annotated[
        float | None, Says("how much longer programs wait if the scheduler never waits for them; negative: less long", "%")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRow(Record):
    """Requests of one kind of a program, and the time that they took."""

    program: Annotated[str, Says("its name; where programs of one name do unlike work, it says which")]
    op: Annotated[Kind, Says("operation")]
    requests: Annotated[int, Says("number of requests")]
    bytes: Annotated[int, Says("their bytes", "bytes")]
    lat_ms: Annotated[Latency | None, Says("from arrival to completion; absent if completions are unknown", "ms")] = None
    above_ms: Annotated[
        Latency | None, Says("of that above the device, in the scheduler; absent if issues were not recorded", "ms")
    ] = None
    device_ms: Annotated[Latency | None, Says("of that in the device; absent if issues were not recorded", "ms")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitsFor(Record):
    """For whose requests a program waits: those that the device serves meanwhile."""

    program: Annotated[str | None, Says("their program; absent: nobody's, the device had nothing to do")] = None
    op: Annotated[Kind | None, Says("their operation")] = None
    percent: Annotated[float, Says("share of the program's waiting", "%")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sufferer(Record):
    """A program that waits, and for whom."""

    program: Annotated[str, Says("its name, as above")]
    waited_s: Annotated[float, Says("how long it waited; several threads that wait at once count each", "s")]
    others_percent: Annotated[float, Says("share of that in which the device served other programs", "%")]
    waits_for: Annotated[Sequence[WaitsFor], Says("for whom, the greatest share first; its own requests are among them")]


@dataclass(frozen=True, slots=True, kw_only=True)
class InBackground(Record):
    """A program that causes much of the others' waiting, and that may well wait itself."""

    program: Annotated[str, Says("its name, as above")]
    percent: Annotated[float, Says("its share of all that programs wait for others", "%")]
    why: Annotated[
        Literal["asynchronous", "stream"],
        Says("`asynchronous`: nobody waits for its requests; `stream`: it goes through much data as fast as the disk lets it"),
    ]
    idle: Annotated[bool, Says("it has the idle I/O priority already")]
    pids: Annotated[Sequence[int], Says("its processes that have not ended; empty where the recording does not tell them")]
    command: Annotated[str, Says("line for a shell that lowers it; empty where ionice does not reach it")]


@dataclass(frozen=True, kw_only=True)
class DescribeDocument(Document):
    """`headwaiter describe`"""

    trace: Annotated[str, Says("what was described")]
    seconds: Annotated[float, Says("from the first arrival to the last arrival or completion", "s")]
    lost: Annotated[int | None, Says("events that the recorder lost; absent if it does not tell")] = None
    scheduler: Annotated[str | None, Says("the scheduler in force when the recording began; absent where it does not tell")] = (
        None
    )
    threads: Annotated[int, Says("threads of control")]
    tasks: Annotated[int, Says("tasks")]
    whole: Annotated[Character, Says("all requests")]
    flushes: Annotated[int, Says("flushes of the drive's cache that programs waited for, as `fsync` asks for")] = 0
    flush_ms: Annotated[Quantiles | None, Says("how long they took; absent without one", "ms")] = None
    locality: Annotated[Locality, Says("where they go")]
    device: Annotated[DeviceCharacter | None, Says("the device; absent if issues were not recorded")] = None
    deceptive: Annotated[Deceptive | None, Says("deceptive idleness; absent if tasks or completions are unknown")] = None
    fit: Annotated[Fit | None, Says("the drive model against the recording; absent without one")] = None
    phases: Annotated[Sequence[Phase], Says("the recording's phases, in order")]
    programs: Annotated[Sequence[ProgramRow], Says("programs by operation, those that waited longest first")] = ()
    sufferers: Annotated[Sequence[Sufferer], Says("programs that waited, those that waited longest first")] = ()
    background: Annotated[Sequence[InBackground], Says("programs that may well wait, those that cause most waiting first")] = ()
    rows: Annotated[Sequence[TaskCharacter], Says("threads of control, those with most requests first")]
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (DescribeDocument,)
