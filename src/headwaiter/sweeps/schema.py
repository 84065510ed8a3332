# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The columns of a sweep's Parquet, and the fields of `headwaiter sweep --json` and of `sweep report --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from headwaiter.base.records import Document, Notes, Record, Says

Figure = float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRow(Record):
    """A cell of a sweep: a run, and what came of it. Figures that it does not have are null, and so are all of a failed one."""

    key: Annotated[str, Says("what tells cells apart: a hash of all that decides the figures")]
    version: Annotated[str, Says("of headwaiter")]
    workload: Annotated[str, Says("name of the workload; from the folder's name")]
    drive: Annotated[str, Says("name of the drive, or auto; from the folder's name")]
    workload_sha256: Annotated[str, Says("SHA-256 of the workload's file as it is stored")]
    drive_model: Annotated[str | None, Says("the drive that was simulated: of auto the one that explains the recording best")]
    scheduler: Annotated[str, Says("name of the scheduler")]
    variant: Annotated[str, Says("the scheduler with the settings that the sweep gives it")]
    settings: Annotated[str, Says("these settings, as a JSON object")]
    conditions: Annotated[str, Says("the conditions that the sweep gives, as a JSON object")]
    seed: Annotated[int, Says("0: the workload as it is; others change it a little (docs/sweep.md)")]
    runs: Annotated[int, Says("runs with small changes of the load, beside the one that the figures are of")]
    error: Annotated[str | None, Says("why the cell failed; null if it did not")] = None
    replay: Annotated[str | None, Says("of traces: closed or open")] = None
    elapsed_s: Annotated[Figure, Says("from the first issue to the last completion", "s")] = None
    requests: Annotated[int | None, Says("I/Os that were issued and completed")] = None
    bytes: Annotated[int | None, Says("total size of these I/Os", "B")] = None
    throughput_mbps: Annotated[Figure, Says("bytes by elapsed time", "MB/s", key="throughput_MBps")] = None
    throughput_low_mbps: Annotated[Figure, Says("the lowest of all runs", "MB/s", key="throughput_low_MBps")] = None
    throughput_high_mbps: Annotated[Figure, Says("the highest of all runs", "MB/s", key="throughput_high_MBps")] = None
    progress_mbps: Annotated[Figure, Says("how fast programs get their work done", "MB/s", key="progress_MBps")] = None
    progress_low_mbps: Annotated[Figure, Says("the lowest of all runs", "MB/s", key="progress_low_MBps")] = None
    progress_high_mbps: Annotated[Figure, Says("the highest of all runs", "MB/s", key="progress_high_MBps")] = None
    waited_s: Annotated[Figure, Says("how long programs waited for I/O", "s")] = None
    fairness_jain: Annotated[Figure, Says("Jain's index of the programs' shares")] = None
    read_requests: Annotated[int | None, Says("reads")] = None
    read_mbps: Annotated[Figure, Says("throughput of reads", "MB/s", key="read_MBps")] = None
    read_mean_ms: Annotated[Figure, Says("latency of reads: mean", "ms")] = None
    read_p50_ms: Annotated[Figure, Says("50th percentile", "ms")] = None
    read_p95_ms: Annotated[Figure, Says("95th percentile", "ms")] = None
    read_p99_ms: Annotated[Figure, Says("99th percentile", "ms")] = None
    read_max_ms: Annotated[Figure, Says("the longest", "ms")] = None
    write_requests: Annotated[int | None, Says("writes")] = None
    write_mbps: Annotated[Figure, Says("throughput of writes", "MB/s", key="write_MBps")] = None
    write_mean_ms: Annotated[Figure, Says("latency of writes: mean", "ms")] = None
    write_p50_ms: Annotated[Figure, Says("50th percentile", "ms")] = None
    write_p95_ms: Annotated[Figure, Says("95th percentile", "ms")] = None
    write_p99_ms: Annotated[Figure, Says("99th percentile", "ms")] = None
    write_max_ms: Annotated[Figure, Says("the longest", "ms")] = None
    sync_calls: Annotated[int | None, Says("calls such as fsync")] = None
    sync_mean_ms: Annotated[Figure, Says("latency of these calls: mean", "ms")] = None
    sync_p99_ms: Annotated[Figure, Says("99th percentile", "ms")] = None
    merges: Annotated[int | None, Says("I/Os merged into a request")] = None
    dispatched: Annotated[int | None, Says("requests sent to the drive")] = None
    busy_s: Annotated[Figure, Says("time of the drive with at least one request", "s")] = None
    idle_s: Annotated[Figure, Says("time without a request", "s")] = None
    waiting_s: Annotated[Figure, Says("part of idle_s: the scheduler kept the drive idle on purpose", "s")] = None
    seeks: Annotated[int | None, Says("accesses that moved the arm")] = None
    processor_percent: Annotated[Figure, Says("how busy the host's processors were", "%")] = None
    lock_percent: Annotated[Figure, Says("how long the scheduler's lock was held", "%")] = None
    waits: Annotated[int | None, Says("waits of the scheduler for a task's next request")] = None
    waits_met: Annotated[int | None, Says("of these the successful ones")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFailure(Record):
    """Cells that failed for one reason."""

    error: Annotated[str, Says("why they failed")]
    cells: Annotated[int, Says("how many did")]


@dataclass(frozen=True, kw_only=True)
class SweepDocument(Document):
    """`headwaiter sweep`"""

    results: Annotated[str, Says("the folder with the Parquet")]
    cells: Annotated[int, Says("cells of the sweep")]
    done: Annotated[int, Says("cells that were run now")]
    kept: Annotated[int, Says("cells whose results were there already")]
    failed: Annotated[int, Says("cells that failed, now or before")]
    failures: Annotated[Sequence[SweepFailure], Says("why, the most frequent reason first")]
    workers: Annotated[int, Says("workers at the end; 0 if none was needed")]
    reads: Annotated[int, Says("how often a workload was read, over all workers")]
    lost: Annotated[int, Says("batches of cells that were run again because their worker had gone")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepBest(Record):
    """The best variant on a workload and drive, under the conditions of the sweep."""

    workload: Annotated[str, Says("the workload")]
    drive: Annotated[str, Says("the drive")]
    conditions: Annotated[str, Says("the conditions, as a JSON object")]
    variant: Annotated[str, Says("the best variant by the figure, as the mean over seeds")]
    value: Annotated[float, Says("the figure's mean over seeds, in its unit")]
    baseline: Annotated[str, Says("the variant that it is held against: the first of the sweep")]
    of_baseline: Annotated[float | None, Says("how many times as good it is as the baseline; absent where that has no figure")]
    cells: Annotated[int, Says("cells that were compared")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepStanding(Record):
    """A variant over all workloads, drives, conditions and seeds of a sweep."""

    variant: Annotated[str, Says("the scheduler with its settings")]
    cells: Annotated[int, Says("cells in which it was compared")]
    of_best: Annotated[float, Says("how good it was, as a share of the best of each cell: the geometric mean")]
    worst: Annotated[float, Says("the least of these shares")]
    worst_in: Annotated[str, Says("where that was: workload and drive")]
    first: Annotated[int, Says("in how many cells it was the best, or within 1% of it")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEffect(Record):
    """A value of a tunable or condition that was swept, over all cells that differ in nothing else."""

    name: Annotated[str, Says("SCHEDULER.TUNABLE, or the condition")]
    value: Annotated[str, Says("the value")]
    cells: Annotated[int, Says("cells that were compared")]
    of_best: Annotated[float, Says("how good it was, as a share of the best value in the same cell: the geometric mean")]


@dataclass(frozen=True, kw_only=True)
class SweepReportDocument(Document):
    """`headwaiter sweep report`"""

    results: Annotated[str, Says("the folder with the Parquet")]
    by: Annotated[str, Says("the figure that is compared")]
    cells: Annotated[int, Says("cells in the folder")]
    failures: Annotated[Sequence[SweepFailure], Says("cells that failed, the most frequent reason first")]
    best: Annotated[Sequence[SweepBest], Says("a row for each workload, drive and conditions")]
    standings: Annotated[Sequence[SweepStanding], Says("a row for each variant, the best first")]
    effects: Annotated[Sequence[SweepEffect], Says("a row for each value of what was swept")]
    notes: Notes


DOCUMENTS: tuple[type[Record], ...] = (SweepDocument, SweepReportDocument)
TABLES: tuple[type[Record], ...] = (SweepRow,)
"""Rows of the Parquet file, from which its columns are made and documented."""
