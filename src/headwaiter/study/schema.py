# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The JSON output of commands: schema "headwaiter/1". Each room has the fields of its own commands in its schema.py.

docs/json.md and docs/headwaiter-1.schema.json are made from all (`make docs`). A field that is None is absent: a run without
reads has no figures of reads. Times are of the simulated clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from headwaiter.base.records import Document, Notes, Record, Says
from headwaiter.engine.constants import OpName

Replay = Literal["closed", "open"]
Criterion = Literal["progress", "throughput", "waited", "elapsed", "latency", "p99", "max", "fairness"]
Judgement = Literal["baseline", "better", "equivalent", "worse", "cannot tell"]
AnswerOutcome = Literal["better", "keep", "cannot tell", "idle", "overloaded", "wrong drive", "alone"]

# Fields that several records have.
Scheduler = Annotated[str, Says("name of the scheduler")]
Requests = Annotated[int, Says("I/Os that were issued and completed")]
Bytes = Annotated[int, Says("total size of these I/Os", "B")]
Throughput = Annotated[float, Says("bytes by elapsed time, 0 where that is 0", "MB/s", key="throughput_MBps", head="MB/s")]
Elapsed = Annotated[float, Says("from the first issue to the last completion", "s", head="elapsed s")]


@dataclass(frozen=True, slots=True)
class Latency(Record):
    """From issue to completion, or of calls to return. Percentiles are latencies that occurred: the least that so many do not
    exceed.
    """

    mean: Annotated[float, Says("mean", "ms", head="mean ms")]
    p50: Annotated[float, Says("50th percentile", "ms")]
    p95: Annotated[float, Says("95th percentile", "ms")]
    p99: Annotated[float, Says("99th percentile", "ms", head="p99 ms")]
    p99_9: Annotated[float, Says("99.9th percentile", "ms")]
    max: Annotated[float, Says("the longest", "ms", head="max ms")]


Latencies = Annotated[Latency, Says("latency")]
Calls = Annotated[int, Says("number of calls")]
CallLatencies = Annotated[Latency, Says("latency, from call to return")]


@dataclass(frozen=True, slots=True)
class Direction(Record):
    """All reads of a run, or all writes."""

    requests: Requests
    bytes: Bytes
    throughput_mbps: Annotated[
        float, Says("bytes by the elapsed time of the whole run, 0 where that is 0", "MB/s", key="throughput_MBps")
    ]
    lat_ms: Latencies


@dataclass(frozen=True, slots=True)
class SyncRow(Record):
    """The calls of one task that wait until what was written is on the medium."""

    task: Annotated[int, Says("number of the task")]
    name: Annotated[str, Says("its name")]
    calls: Calls
    lat_ms: CallLatencies


@dataclass(frozen=True, slots=True)
class Sync(Record):
    """All calls of a run that wait until what was written is on the medium: fsync and fdatasync of job files (but not the one
    of `end_fsync`, which fio does not count either), and flushes of recordings. They are no I/Os: `requests` is without them.
    """

    calls: Calls
    lat_ms: CallLatencies
    tasks: Annotated[Sequence[SyncRow] | None, Says("a row for each task that made some")] = None


@dataclass(frozen=True, slots=True)
class CallRow(Record):
    """The calls of one task that read, or write, through the page cache."""

    task: Annotated[int, Says("number of the task")]
    name: Annotated[str, Says("its name")]
    op: Annotated[OpName, Says("operation")]
    calls: Calls
    lat_ms: CallLatencies


@dataclass(frozen=True, slots=True)
class TaskRow(Record):
    """The I/Os of one task and operation."""

    task: Annotated[int, Says("number of the task")]
    name: Annotated[str, Says("its name")]
    op: Annotated[OpName, Says("operation")]
    group: Annotated[int, Says("its thread of control: a number that tasks share which follow one another")]
    requests: Requests
    bytes: Bytes
    throughput_mbps: Throughput
    start_s: Annotated[float, Says("first issue", "s")]
    elapsed_s: Elapsed
    lat_ms: Latencies


@dataclass(frozen=True, slots=True)
class GroupRow(Record):
    """The I/Os of a thread of control: of a task, or of a chain of tasks that follow one another."""

    group: Annotated[int, Says("number of the thread of control")]
    name: Annotated[str, Says("name of its first task")]
    tasks: Annotated[int, Says("how many tasks it has")]
    requests: Requests
    bytes: Bytes
    throughput_mbps: Throughput
    elapsed_s: Elapsed
    end_s: Annotated[float, Says("last completion", "s")]
    lat_ms: Latencies


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPace(Record):
    """A program: a thread of control that waits for some of its I/O."""

    name: Annotated[str, Says("name of its first task")]
    throughput_mbps: Annotated[
        float, Says("its work by the time that it was at work", "MB/s", key="throughput_MBps", head="MB/s")
    ]
    p99_ms: Annotated[float | None, Says("99th percentile of the latencies of what it waits for", "ms")] = None
    max_ms: Annotated[float | None, Says("the longest of them", "ms")] = None
    counts: Annotated[bool, Says("it counts for progress: it is neither of the idle class nor a thread of the kernel")] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk(Record):
    """Shares of the drive's time. The parts are those of drives with a platter."""

    busy_s: Annotated[float, Says("time with at least one request", "s")]
    idle_s: Annotated[float, Says("time without a request", "s")]
    waiting_s: Annotated[float | None, Says("part of idle_s: the scheduler kept the drive idle on purpose", "s")] = None
    seek_s: Annotated[float | None, Says("time of arm movement", "s")] = None
    rotation_s: Annotated[float | None, Says("rotational delay", "s")] = None
    transfer_s: Annotated[float | None, Says("transfer to and from the platter", "s")] = None
    overhead_s: Annotated[float | None, Says("overhead of commands and of the interface", "s")] = None
    cache_hits: Annotated[int | None, Says("reads that its cache served")] = None
    seeks: Annotated[int, Says("accesses that moved the arm")]
    mean_seek_cylinders: Annotated[float | None, Says("mean distance of a seek", "cylinders")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBusy(Record):
    """The host's load."""

    processor_percent: Annotated[float, Says("share of the time of its processors", "%")]
    lock_percent: Annotated[float, Says("share of the time that the scheduler's lock was held; of several, the busiest", "%")]


@dataclass(frozen=True, slots=True)
class Anticipation(Record):
    """Waits of a scheduler that keeps the drive idle for a task's next request: number and total time."""

    waits: Annotated[int, Says("waits: A_S and A_F together", key="A")]
    met: Annotated[int, Says("successful waits: the request came", key="A_S")]
    failed: Annotated[int, Says("failed waits: it did not come in time", key="A_F")]
    other: Annotated[int, Says("waits that ended for another reason", key="A_other")]
    waits_ms: Annotated[float, Says("time of A", "ms", key="T_ms")]
    met_ms: Annotated[float, Says("time of A_S", "ms", key="T_S_ms")]
    failed_ms: Annotated[float, Says("time of A_F", "ms", key="T_F_ms")]
    other_ms: Annotated[float, Says("time of A_other", "ms", key="T_other_ms")]
    cost_ms: Annotated[
        float | None, Says("T_F_ms by A_S, where there is a successful wait", "ms", key="T_F_per_A_S_ms", head="T_F/A_S ms")
    ] = None


@dataclass(frozen=True, slots=True)
class Spread(Record):
    """A figure's values over all runs of a load."""

    low: Annotated[float, Says("the lowest, in the figure's unit")]
    high: Annotated[float, Says("the highest, in the figure's unit")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range(Record):
    """The range of each figure when the load is changed a little."""

    runs: Annotated[int, Says("number of runs: the unperturbed one, and those with small changes")]
    throughput_mbps: Annotated[Spread, Says("throughput", "MB/s", key="throughput_MBps")]
    elapsed_s: Annotated[Spread, Says("elapsed time", "s")]
    lat_mean_ms: Annotated[Spread, Says("mean latency of reads, or of writes where there are no reads", "ms")]
    lat_p99_ms: Annotated[Spread, Says("99th percentile of the same", "ms")]
    lat_max_ms: Annotated[Spread, Says("the longest of the same", "ms")]
    fairness_jain: Annotated[Spread, Says("fairness")]
    waited_s: Annotated[Spread | None, Says("how long programs waited", "s")] = None
    progress_mbps: Annotated[Spread | None, Says("progress", "MB/s", key="progress_MBps")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Record):
    """One scheduler on one load. Where throughput has a wide range, `compare` gives the figures of the median run, and `run`
    those of the unperturbed one.
    """

    scheduler: Scheduler
    variant: Annotated[str | None, Says("with the settings that `--sched` gave it, if it gave any")] = None
    tunables: Annotated[Mapping[str, int | str], Says("values of its tunables; choices by name")]
    tables: Annotated[Mapping[str, Sequence[Sequence[int]]] | None, Says("rows of the tables it was given")] = None
    elapsed_s: Elapsed
    waited_s: Annotated[
        float | None,
        Says("of closed replays: how long programs waited for their synchronous I/Os, summed over threads of control", "s"),
    ] = None
    progress_mbps: Annotated[
        float | None,
        Says(
            "how fast programs get their work done, each counting alike: the geometric mean of the rates of `programs`; absent of"
            " open replays, whose timestamps set the pace",
            "MB/s",
            key="progress_MBps",
            head="progress",
        ),
    ] = None
    requests: Requests
    bytes: Bytes
    throughput_mbps: Throughput
    programs: Annotated[Sequence[ProgramPace] | None, Says("a row for each program")] = None
    read: Annotated[Direction | None, Says("all reads")] = None
    write: Annotated[Direction | None, Says("all writes")] = None
    sync: Annotated[Sync | None, Says("all calls such as fsync")] = None
    calls: Annotated[
        Sequence[CallRow] | None,
        Says("of job files through the page cache: calls of `read` and `write`, a row for each task and operation"),
    ] = None
    lat_relative_error: Annotated[float | None, Says("of very long runs: the largest relative error of a percentile")] = None
    tasks: Annotated[Sequence[TaskRow] | None, Says("a row for each task and operation")] = None
    groups: Annotated[Sequence[GroupRow] | None, Says("a row for each thread of control, unless each is one task")] = None
    fairness_jain: Annotated[
        float | None,
        Says(
            "Jain's index of the throughput of threads of control that run side by side, 1 if all are equal; of several phases"
            " (stonewall) the lowest",
            head="fairness",
        ),
    ] = None
    fairness_phases: Annotated[Sequence[float] | None, Says("the same of each phase, if there are several")] = None
    merges: Annotated[int, Says("I/Os merged into a request")]
    dispatched: Annotated[int, Says("requests sent to the drive")]
    disk: Annotated[Disk, Says("how the drive spent its time")]
    host: Annotated[HostBusy | None, Says("how busy the host was; absent where each process has a processor")] = None
    anticipation: Annotated[Anticipation | None, Says("waits for a task's next request")] = None
    stats: Annotated[
        Mapping[str, int] | None, Says("the scheduler's own figures; `headwaiter schedulers NAME` explains them")
    ] = None
    range: Annotated[Range | None, Says("ranges over perturbed runs")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTime(Record):
    """The host. Times at the lock, and `turnaround_us`, are those of `none`: other schedulers differ (docs/calibrate.md)."""

    cores: Annotated[int, Says("processors")]
    complete_us: Annotated[float, Says("of a completion", "us")]
    switch_us: Annotated[float, Says("until a process that waited goes on", "us")]
    switch_more_us: Annotated[float, Says("more, each time that the processes of a core double beyond 4", "us")]
    lock_us: Annotated[float, Says("at the lock, where the same core had it last", "us")]
    lock_shared_us: Annotated[float, Says("the same, where another had it", "us")]
    lock_crowded_us: Annotated[float, Says("the same, where several wait", "us")]
    replayed_us: Annotated[float, Says("of the think times of a trace: processor time that counts as such", "us")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorTime(Record):
    """Processor time of I/O in the run. Fields with `_page` are for each page of 4 KiB in addition."""

    dispatch_us: Annotated[float, Says("from a scheduler's decision to the drive", "us")]
    dispatch_page_us: Annotated[float, Says("the same", "us a page")]
    dispatch_write_page_us: Annotated[float, Says("the same, in addition, for a page that is written", "us a page")]
    restart_us: Annotated[
        float, Says("after a completion while others wait: additional time until the next request is in the drive", "us")
    ]
    pass_us: Annotated[float, Says("the same where no request follows", "us")]
    turnaround_us: Annotated[float, Says("of a process before each direct I/O", "us")]
    turnaround_page_us: Annotated[float, Says("the same", "us a page")]
    copy_us: Annotated[float, Says("of an I/O through the page cache", "us")]
    copy_page_us: Annotated[float, Says("the same", "us a page")]
    fetch_page_us: Annotated[float, Says("of a page before it is read into the page cache", "us a page")]
    dirty_page_us: Annotated[
        float, Says("of a page that is written into the page cache, and again when fsync writes it back", "us a page")
    ]
    one_processor: Annotated[bool, Says("all processes share one processor")]
    host: Annotated[HostTime | None, Says("processors that processes share; absent where each has one of its own")] = None


# --- documents ---


@dataclass(frozen=True, kw_only=True)
class _Simulation(Document):
    """The simulated load."""

    workload: Annotated[str, Says("name of the file, or of the bundled workload")]
    workload_sha256: Annotated[
        str,
        Says("SHA-256 of that file as it is stored; of all files of a recording, one behind the other; else of the native CSV"),
    ]
    drive: Annotated[str, Says("the drive")]
    seed: Annotated[int, Says("seed of random load")]
    replay: Annotated[Replay | None, Says("of traces: with think times (closed) or timestamps (open)")] = None


@dataclass(frozen=True, kw_only=True)
class _Ranked(Record):
    """The ranking."""

    ranked_by: Annotated[Criterion, Says("the criterion")]
    why: Annotated[str, Says("the winner, and the reason")]
    uncertain: Annotated[str, Says("the effect of small changes of the load on the ranking; empty without any")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Record):
    """A recording's own completions against a drive model that serves the same requests at their recorded times."""

    drive: Annotated[str, Says("the drive model")]
    recorded_mbps: Annotated[float, Says("bytes by the time in which requests were under way", "MB/s", key="recorded_MBps")]
    model_mbps: Annotated[float, Says("the same on the model", "MB/s", key="model_MBps")]
    recorded_mean_ms: Annotated[float, Says("mean latency", "ms")]
    model_mean_ms: Annotated[float, Says("the same on the model", "ms")]
    off: Annotated[float, Says("factor by which the model is too slow or too fast, 1 if it is right; above 2 nothing is ranked")]
    distance: Annotated[float, Says("factor between the distributions of latency, averaged over quantiles")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed(Record):
    """A replay under the scheduler that was in force, against the recording: what programs get done in a second."""

    scheduler: Annotated[str, Says("the scheduler that was in force, or its variant")]
    programs: Annotated[int, Says("number of programs that are compared")]
    close: Annotated[int, Says("those that get what they got when they were recorded, within 10%")]
    off: Annotated[float, Says("factor by which programs get too much or too little, geometric mean; 1 if all are right")]
    farthest: Annotated[str | None, Says("the program that is farthest off, if one is not close")] = None
    farthest_factor: Annotated[float | None, Says("so many times as much as it got when it was recorded")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin(Record):
    """A scheduler against the baseline, by the criterion. Of a ratio r, x percent ahead is r = 1 + x / 100."""

    scheduler: Annotated[str, Says("the scheduler, or its variant")]
    judgement: Annotated[Judgement, Says("what may be said; `cannot tell` where the interval is too wide")]
    ahead_percent: Annotated[float, Says("how far it is ahead of the baseline", "%")]
    low_percent: Annotated[float | None, Says("the same, lower end of the 95% interval; absent where it is unknown", "%")] = None
    high_percent: Annotated[float | None, Says("the same, upper end", "%")] = None
    steady_percent: Annotated[
        float | None, Says("share of runs with small changes of the load in which it stays on the same side of the baseline", "%")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Record):
    """The verdict of a comparison."""

    outcome: Annotated[
        AnswerOutcome,
        Says(
            "`better`: `best` is better than the baseline; `keep`: nothing is; `cannot tell`; `idle`: requests seldom find the"
            " device occupied; `overloaded`: an open replay that the drive cannot keep up with; `wrong drive`: the profile does"
            " not fit the recording; `alone`: a single scheduler ran"
        ),
    ]
    text: Annotated[str, Says("the same in plain sentences")]
    by: Annotated[Criterion, Says("the criterion that the verdict goes by")]
    baseline: Annotated[str, Says("the scheduler that others are held against")]
    best: Annotated[str | None, Says("of outcome `better`: the scheduler to take")] = None
    as_good: Annotated[Sequence[str] | None, Says("of outcome `better`: those that are equivalent to the best")] = None
    module: Annotated[
        str | None, Says("the best of what needs a module, if that is better than `best`, or else than the baseline")
    ] = None
    module_margin: Annotated[Margin | None, Says("how much better it is than that")] = None
    module_text: Annotated[str | None, Says("the sentence of `text` that says so")] = None
    margin_percent: Annotated[float, Says("differences of less than this do not matter", "%")]
    contention_percent: Annotated[
        float | None, Says("under the baseline: share of I/Os that found as many under way as the device takes", "%")
    ] = None
    longer: Annotated[int | None, Says("of outcome `cannot tell`: how many times longer a recording would tell")] = None
    margins: Annotated[Sequence[Margin], Says("every scheduler, in the order of `results`; empty where no ratio means anything")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever(Record):
    """Something that helps beside another scheduler."""

    kind: Annotated[
        str,
        Says("`class`: of a program's I/O; `set`: several, with the scheduler; else a file of the disk in sysfs, or a sysctl"),
    ]
    what: Annotated[str, Says("which program, or which value")]
    text: Annotated[str, Says("what it is worth, and what it costs, in a plain sentence")]
    margin: Annotated[Margin, Says("how much better the load fares with it, under which scheduler")]
    settings: Annotated[Mapping[str, int], Says("settings of the disk that it puts, by the name of their file in sysfs")]
    apply: Annotated[Sequence[str], Says("commands that apply it")]
    undo: Annotated[Sequence[str], Says("commands that undo that")]


@dataclass(frozen=True, kw_only=True)
class _Results(Record):
    """The results."""

    processor: Annotated[ProcessorTime, Says("processor time of I/O")]
    notes: Notes
    results: Annotated[Sequence[Result], Says("a result for each scheduler, the best first")]


@dataclass(frozen=True, kw_only=True)
class RunDocument(_Results, _Simulation):
    """`headwaiter run`"""


@dataclass(frozen=True, kw_only=True)
class CompareDocument(_Results, _Ranked, _Simulation):
    """`headwaiter compare`"""

    answer: Annotated[Answer, Says("the verdict")]
    levers: Annotated[Sequence[Lever], Says("what helps beside a scheduler, the most helpful first")] = ()
    fit: Annotated[Fit | None, Says("of recordings with completions: how well the drive explains them")] = None
    replayed: Annotated[Replayed | None, Says("of these, where the scheduler in force is known: how true the replay is")] = None


@dataclass(frozen=True, slots=True)
class TunableRow(Record):
    """A knob of a scheduler."""

    name: Annotated[str, Says("its name")]
    default: Annotated[int, Says("its default; of a choice the index")]
    minimum: Annotated[int, Says("the lowest value")]
    maximum: Annotated[int, Says("the highest value")]
    unit: Annotated[str, Says("unit of its values; empty for plain numbers")]
    help: Annotated[str, Says("its effect")]
    choices: Annotated[Sequence[str], Says("names of the values 0, 1, … of a choice")]
    is_flag: Annotated[bool, Says("its values are 0 and 1")]


@dataclass(frozen=True, slots=True)
class StatRow(Record):
    """A figure that a scheduler keeps."""

    name: Annotated[str, Says("its name")]
    unit: Annotated[str, Says("its unit; empty for plain numbers")]
    help: Annotated[str, Says("its meaning")]


@dataclass(frozen=True, slots=True)
class ColumnRow(Record):
    """A column of a table."""

    name: Annotated[str, Says("its name")]
    unit: Annotated[str, Says("unit of its cells; empty for plain numbers")]
    help: Annotated[str, Says("meaning of a cell")]
    minimum: Annotated[int, Says("the lowest value")]
    maximum: Annotated[int, Says("the highest value")]
    ascending: Annotated[bool, Says("each row has more than the one before")]
    left_out: Annotated[str, Says("the value of a cell that text leaves out; `no` if it must be given")]
    choices: Annotated[Sequence[str], Says("names of the values 0, 1, … of a choice")]


@dataclass(frozen=True, slots=True)
class TableRow(Record):
    """Rows that a scheduler can be given."""

    scheduler: Scheduler
    name: Annotated[str, Says("name of the table")]
    help: Annotated[str, Says("meaning of the table")]
    columns: Annotated[Sequence[ColumnRow], Says("its columns")]
    min_rows: Annotated[int, Says("the least number of rows")]
    max_rows: Annotated[int, Says("the greatest number of rows")]
    common: Annotated[bool, Says("every scheduler has it")]


@dataclass(frozen=True, slots=True)
class CountersRow(Record):
    """Counters in rows and columns that a scheduler keeps."""

    name: Annotated[str, Says("their name")]
    help: Annotated[str, Says("their meaning")]
    rows: Annotated[int, Says("number of rows")]
    columns: Annotated[int, Says("number of columns")]


@dataclass(frozen=True, slots=True)
class PresetRow(Record):
    """Settings of a scheduler under a name of their own."""

    name: Annotated[str, Says("their name, which --sched takes")]
    help: Annotated[str, Says("their origin")]
    settings: Annotated[Sequence[str], Says("each as TUNABLE=VALUE")]


@dataclass(frozen=True, slots=True)
class SchedulerRow(Record):
    """A scheduler that there is."""

    name: Annotated[str, Says("its name")]
    summary: Annotated[str, Says("a short description")]
    source: Annotated[str, Says("its origin")]
    tunables: Annotated[Mapping[str, TunableRow], Says("its tunables by name")]
    tables: Annotated[Mapping[str, TableRow], Says("tables that it can be given, by name")]
    stats: Annotated[Mapping[str, StatRow], Says("its own figures by name")]
    counters: Annotated[CountersRow | None, Says("its counters; null if it has none", null=True)]
    presets: Annotated[Mapping[str, PresetRow], Says("settings that have names of their own, by name")]
    is_model: Annotated[bool, Says("it models the scheduler of that name in current kernels")]


@dataclass(frozen=True, kw_only=True)
class SchedulersDocument(Document):
    """`headwaiter schedulers`, `headwaiter schedulers NAME`"""

    schedulers: Annotated[Sequence[SchedulerRow], Says("all of them, or the one of that name")]


@dataclass(frozen=True, kw_only=True)
class DriveRow(Record):
    """A drive that there is."""

    drive: Annotated[str, Says("its name")]
    description: Annotated[str, Says("a short description")]
    model: Annotated[str, Says("the drive model of its profile")]
    capacity_bytes: Annotated[int, Says("capacity", "B")]
    queue_depth: Annotated[int, Says("number of requests it takes at once")]
    rotational: Annotated[bool, Says("whether it has platters")]


@dataclass(frozen=True, kw_only=True)
class DrivesDocument(Document):
    """`headwaiter drives`"""

    drives: Annotated[Sequence[DriveRow], Says("the bundled drives")]


@dataclass(frozen=True, kw_only=True)
class DriveDocument(DriveRow, Document):
    """`headwaiter drives NAME`"""

    parameters: Annotated[Mapping[str, Any], Says("its profile, as in the TOML file; `headwaiter drives models` explains it")]


@dataclass(frozen=True, slots=True)
class MeanMax(Record):
    """Service times of all requests of a trace."""

    mean: Annotated[float, Says("mean", "ms")]
    max: Annotated[float, Says("the longest", "ms")]


@dataclass(frozen=True, kw_only=True)
class ValidateDocument(Document):
    """`headwaiter validate`"""

    drive: Annotated[str, Says("the drive")]
    trace: Annotated[str, Says("name of the trace")]
    requests: Annotated[int, Says("requests in it")]
    demerit_ms: Annotated[
        float, Says("root mean square of the horizontal distance between the two distributions of service time", "ms")
    ]
    mean_absolute_error_ms: Annotated[float, Says("of a request's simulated time from its measured one, mean", "ms")]
    mean_error_ms: Annotated[float, Says("simulated less measured mean", "ms")]
    max_error_ms: Annotated[float, Says("the largest horizontal distance between the distributions", "ms")]
    measured_ms: Annotated[MeanMax, Says("service times of the real drive")]
    simulated_ms: Annotated[MeanMax, Says("service times of the model")]


@dataclass(frozen=True, kw_only=True)
class PublishedRow(Record):
    """A figure that others have published, and the same of the model."""

    drive: Annotated[str, Says("the drive")]
    source: Annotated[str, Says("who has published it, and where")]
    load: Annotated[str, Says("what the drive was asked for")]
    figure: Annotated[str, Says("what was measured")]
    measured: Annotated[float, Says("on the real drive")]
    simulated: Annotated[float, Says("on the model")]
    error: Annotated[float, Says("simulated by measured figure, less 1")]


@dataclass(frozen=True, kw_only=True)
class PublishedDocument(Document):
    """`headwaiter validate --published`"""

    figures: Annotated[Sequence[PublishedRow], Says("a row for each figure")]


@dataclass(frozen=True, kw_only=True)
class ConformanceRow(Record):
    """The decisions of a recorded kernel's scheduler and of ours."""

    recording: Annotated[str, Says("path of the recording")]
    scheduler: Scheduler
    workload: Annotated[str, Says("the recorded load")]
    kernel: Annotated[str, Says("release of the kernel")]
    requests: Annotated[int, Says("requests that the scheduler was given")]
    decisions: Annotated[int, Says("questions that at least one of the two answered with a request")]
    equal: Annotated[int, Says("decisions that are the kernel's")]
    share: Annotated[float, Says("part of the decisions that are the kernel's, from 0 to 1")]
    refused_by_both: Annotated[int, Says("questions that both refused")]
    differences: Annotated[Mapping[str, int], Says("decisions that are not the kernel's, by kind")]


@dataclass(frozen=True, kw_only=True)
class ConformDocument(Document):
    """`headwaiter conform check`"""

    conformance: Annotated[Sequence[ConformanceRow], Says("a row for each recording")]


DOCUMENTS: tuple[type[Record], ...] = (
    RunDocument,
    CompareDocument,
    SchedulersDocument,
    DrivesDocument,
    DriveDocument,
    ValidateDocument,
    PublishedDocument,
    ConformDocument,
)
