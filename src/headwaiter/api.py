# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python interface: what the commands do, with typed results. `import headwaiter` offers all of it (docs/api.md)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from rich.table import Table

from headwaiter.base.errors import Problem
from headwaiter.base.frames import frame, frame_csv, is_frame
from headwaiter.base.outputs import writing
from headwaiter.base.records import json_text
from headwaiter.engine.constants import Op
from headwaiter.engine.policy_tables import Cells, Setting
from headwaiter.engine.schedulers import Scheduler, catalogue, find
from headwaiter.engine.sim import Drive, Outcome, Rows
from headwaiter.judge.conditions import checked
from headwaiter.judge.detail import Head, head, pictured
from headwaiter.judge.judge import MARGIN, Judged, judge, runs_of
from headwaiter.judge.levers import pull
from headwaiter.papers.was.config import READERS
from headwaiter.report.head import draw_heads
from headwaiter.report.html import html_table, paragraphs
from headwaiter.report.page import check_libraries, render
from headwaiter.report.tables import csv_rows, heading, show, table, tasks_table
from headwaiter.report.terminal import console
from headwaiter.study.drive_fit import read_on_drive
from headwaiter.study.ranges import label
from headwaiter.study.schema import Answer, CompareDocument, Criterion, Margin, Replay, Result, RunDocument
from headwaiter.study.single import run_single
from headwaiter.study.variants import ALL, parse_variant, parse_variants
from headwaiter.study.workload import Reading, Workload, find_workload
from headwaiter.study.workload import read_trace as read
from headwaiter.sweeps.sweep import sweep as sweep_cells
from headwaiter.traces import Source, Trace
from headwaiter.traces.registry import DEFAULT_GROUP_GAP_MS
from headwaiter.tuning import tune as tuning
from headwaiter.tuning.schema import Shown, TuneDocument

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Comparison",
    "Conditions",
    "Problem",
    "Run",
    "Trace",
    "Tuning",
    "compare",
    "read_trace",
    "run",
    "schedulers",
    "sweep",
    "tune",
]

Settings = Mapping[str, int | str | Cells]


class Conditions(TypedDict, total=False):
    """Conditions under which a workload is read and run.

    All have the defaults of the options of `headwaiter compare`, which explains them.
    """

    replay: Replay
    group_gap_ms: float
    device: str
    streams: int
    speed: float
    shares: Mapping[int, int]
    queue_depth: int
    merging: bool
    max_sectors: int
    nr_requests: int | None
    wbt_depth: int | None
    pull_ahead: bool
    settled: bool
    positions: bool
    host: str
    cores: int
    turnaround: str
    dispatch_time: str | None
    copy_time: str
    one_processor: bool
    cpus: int
    goes_on: bool
    whole: bool
    seed: int


def _reading(given: Conditions) -> Reading:
    names = {one.name for one in fields(Reading)} - {"shares"}
    known: dict[str, Any] = {name: value for name, value in given.items() if name in names}
    return Reading(**known, shares=tuple(given.get("shares", {}).items()))


def _check(given: Conditions) -> None:
    if unknown := sorted(set(given) - set(Conditions.__annotations__)):
        raise TypeError(f"unknown condition {', '.join(unknown)} (known: {', '.join(Conditions.__annotations__)})")


def _on_drive(
    given: str | Path | Trace | pd.DataFrame | None, drive: str | Path | Drive | None, reading: Reading
) -> tuple[Workload, Drive]:
    if is_frame(given):
        given = read_trace(given, reading.group_gap_ms, reading.device, reading.streams)
    work = given if isinstance(given, Trace) else find_workload(None if given is None else str(given))
    return read_on_drive(work, str(drive) if isinstance(drive, Path) else drive, reading)


def _tunables(scheduler: str, given: Settings) -> dict[str, Setting]:
    """Settings of a scheduler, checked; a choice by name or number, a table as rows or as the name of a file."""
    policy = find(scheduler)
    for name in given:
        if not policy.has(name):
            known = ", ".join([*policy.tunables, *policy.tables])
            raise Problem(f"{scheduler} has no tunable or table '{name}' (known: {known})")
    return {
        name: policy.parse(f"{scheduler}.{name}", name, value, READERS) if isinstance(value, str) else value
        for name, value in given.items()
    }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Schedulers on one workload, the best first. Printed, it is the verdict and a table of them all; so in a notebook.

    >>> import headwaiter
    >>> c = headwaiter.compare("readers-8", schedulers=["mq-deadline", "as"], runs=0)
    >>> c.best.scheduler
    'as'
    >>> c["as"].throughput_mbps > 20 * c["mq-deadline"].throughput_mbps
    True
    >>> c["mq-deadline"].read.lat_ms.p99 < c["as"].read.lat_ms.max  # ms
    True
    """

    study: Judged = field(repr=False)
    """The result from which the document is made: workload, drive, conditions, trials (headwaiter.judge.judge)."""

    @property
    def document(self) -> CompareDocument:
        """All figures, as `--json` prints them (docs/json.md)."""
        return self.study.document()

    @property
    def results(self) -> Sequence[Result]:
        """A result for each scheduler, the best first."""
        return self.study.results

    @property
    def best(self) -> Result:
        """The first of them."""
        return self.results[0]

    @property
    def answer(self) -> Answer:
        """Return which scheduler to take, how sure that is and what it costs; `answer.text` says it in plain sentences."""
        return self.study.answer

    def __getitem__(self, scheduler: str) -> Result:
        """The result of a scheduler or variant. KeyError if it did not run."""
        return {label(r): r for r in self.results}[scheduler]

    def to_json(self) -> str:
        """The JSON that `headwaiter compare --json` prints."""
        return json_text(self.document)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each variant, with the columns of `--csv`. Problem without pandas (`pip install headwaiter[pandas]`).

        The index is a variant's full name. `change_percent` is how its figure changes against the baseline's, as the table tells
        it; `ahead_percent`, and the ends of its interval (`low_percent`, `high_percent`), are above 0 where it is better.

        >>> import headwaiter
        >>> c = headwaiter.compare("readers-2", schedulers=["mq-deadline", "bfq:low_latency=0", "as"], runs=0)
        >>> c.to_pandas()["throughput_MBps"].idxmax()
        'as'
        >>> c.to_pandas().loc["bfq:low_latency=0", ["scheduler", "judgement"]].tolist()
        ['bfq', 'better']
        """
        rows = csv_rows(*_judged(self.study))
        return frame({name: [row[name] for row in rows] for name in rows[0]}, "variant")

    def report(self, path: str | Path) -> None:
        """Write the page of `headwaiter compare --report`, for which all run once more. Problem without Bokeh and Jinja2."""
        check_libraries()
        with writing(Path(path)) as temporary:
            temporary.write_text(render(self.study, pictured(self.study)), encoding="utf-8")

    def __repr__(self) -> str:
        return f"{self.answer.text}\n({_title(self.study)}: {', '.join(map(label, self.results))})"

    def __str__(self) -> str:
        return _text(self.answer.text, _title(self.study), table(*_judged(self.study)))

    def _repr_html_(self) -> str:
        return paragraphs(self.answer.text, _title(self.study)) + html_table(table(*_judged(self.study)))


def _title(found: Judged) -> str:
    return heading(found.work, found.drive)


def _judged(found: Judged) -> tuple[Sequence[Result], Sequence[Margin], Criterion]:
    return found.results, found.answer.margins, found.criterion


def _text(*parts: str | Table) -> str:
    """Text and tables, a blank line between two, as wide as they are."""
    buffer = io.StringIO()
    for part in parts:
        show(console(buffer), part)
        buffer.write("\n")
    return buffer.getvalue().rstrip("\n")


@dataclass(frozen=True, eq=False)
class Run:
    """One scheduler on a workload. Printed, it is the table of `headwaiter run`; a notebook shows it as one.

    >>> import headwaiter
    >>> r = headwaiter.run("example", "as")
    >>> r.result.anticipation.met <= r.result.anticipation.waits
    True
    >>> int(r.ios.sectors.sum()) * 512 == r.result.bytes
    True
    """

    document: RunDocument
    """All figures, as `--json` prints them (docs/json.md)."""
    title: str
    """Workload and drive."""
    outcome: Outcome = field(repr=False)
    head: Head = field(repr=False)
    """The path of the head: time and place of the first dispatches, and the waits between them."""

    @property
    def result(self) -> Result:
        """The figures of the scheduler."""
        return self.document.results[0]

    @property
    def ios(self) -> Rows:
        """A row for each I/O, in columns of shape (n,): issue_ns, complete_ns, sector, sectors, task (an index), op."""
        rows = self.outcome.rows
        there = rows.complete_ns >= 0  # a program that goes on has more than it comes to
        columns = {one.name: getattr(rows, one.name)[there] for one in fields(Rows) if one.name != "memory"}
        return rows if there.all() else Rows(**columns, memory=rows.memory)

    def to_json(self) -> str:
        """The JSON that `headwaiter run --json` prints."""
        return json_text(self.document)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each I/O: issue_s, latency_ms, task (its name), op, sector, sectors. Problem without pandas.

        >>> import headwaiter
        >>> ios = headwaiter.run("example", "as").to_pandas()
        >>> list(ios.columns)
        ['issue_s', 'latency_ms', 'task', 'op', 'sector', 'sectors']
        >>> "dd" in set(ios.task)
        True
        """
        rows = self.ios
        names = np.array([t.name for t in self.outcome.tasks], object)
        words = np.array([op.word for op in Op], object)
        return frame(
            {
                "issue_s": rows.issue_ns / 1e9,
                "latency_ms": (rows.complete_ns - rows.issue_ns) / 1e6,
                "task": names[rows.task],
                "op": words[rows.op],
                "sector": rows.sector,
                "sectors": rows.sectors,
            }
        )

    def plot(self, path: str | Path) -> None:
        """Draw where the head went, waits shaded, into a file (.png, .svg, .pdf). Problem without matplotlib."""
        draw_heads(Path(path), [(self.result, self.head)])

    def __str__(self) -> str:
        return _text(self.title, table([self.result]), tasks_table(self.result))

    def _repr_html_(self) -> str:
        return paragraphs(self.title) + html_table(table([self.result])) + html_table(tasks_table(self.result))


def compare(
    workload: str | Path | Trace | pd.DataFrame | None = None,
    drive: str | Path | Drive | None = None,
    schedulers: Sequence[str] | None = None,
    settings: Mapping[str, Settings] | None = None,
    by: Criterion | None = None,
    runs: int | None = None,
    current: str | None = None,
    margin: float = MARGIN,
    anyway: bool = False,
    levers: bool = False,
    **conditions: Unpack[Conditions],
) -> Comparison:
    """Run a workload under several schedulers (default: all), as `headwaiter compare` does.

    workload: a trace, a fio job file or a generated workload, as the name of a file or of a bundled workload, a Trace of
    read_trace(), or a DataFrame with the columns of native CSV; default: the bundled example. drive: a name of drives(), a TOML
    file, "constant:MS", a drive, or "auto": the bundled one that explains the recording best (default: that, where the recording
    has completions). schedulers: names, or variants
    such as "bfq:low_latency=0". settings: of each scheduler tunables and tables by name. by: the ranking. runs: perturbed runs
    of each, to check whether small changes decide the result (default: 8 of short loads). current: the scheduler that others
    are held against; margin: the share by which they must differ to matter. anyway: judge even if the drive is not the recorded
    one. levers: try what may help beside a scheduler, too (`document.levers`). conditions: as Conditions. Raises Problem if
    something given is wrong.

    >>> import headwaiter
    >>> c = headwaiter.compare("readers-2", schedulers=["mq-deadline", "as", "as:antic_expire=0"], runs=0)
    >>> c["as:antic_expire=0"].throughput_mbps < c["as"].throughput_mbps
    True
    >>> c.answer.baseline, c.answer.best
    ('mq-deadline', 'as')
    """
    _check(conditions)
    variants = parse_variants(ALL if schedulers is None else ",".join(schedulers), (), READERS)
    for name in settings or {}:
        if name not in {v.scheduler for v in variants}:
            raise Problem(f"settings: {name} is not among the schedulers compared")
    given = {name: _tunables(name, one) for name, one in (settings or {}).items()}
    variants = [replace(v, settings={**given.get(v.scheduler, {}), **v.settings}) for v in variants]
    if current is not None and current not in {v.name for v in variants}:
        raise Problem(f"current: {current} is not among the schedulers compared")
    work, device = _on_drive(workload, drive, _reading(conditions))
    how = checked(dict(conditions))
    found = judge(work, device, variants, how, by=by, runs=runs, current=current, margin=margin, anyway=anyway)
    return Comparison(replace(found, levers=tuple(pull(found))) if levers else found)


def run(
    workload: str | Path | Trace | pd.DataFrame,
    scheduler: str,
    drive: str | Path | Drive | None = None,
    settings: Settings | None = None,
    runs: int | None = None,
    **conditions: Unpack[Conditions],
) -> Run:
    """Run a workload under one scheduler, as `headwaiter run` does, and keep a row for each I/O (33 bytes).

    Arguments as of compare(). runs=0 leaves out the perturbed runs, and with them the range of the figures.
    """
    _check(conditions)
    named = parse_variant(scheduler, READERS)
    work, device = _on_drive(workload, drive, _reading(conditions))
    how = checked(dict(conditions))
    work = how.load(work, device)
    one = replace(named, settings={**named.settings, **_tunables(named.scheduler, settings or {})})
    ((variant, options),) = how.runs([one], device, work.trace)
    options = replace(options, record=True)
    done = run_single(work, device, variant, options, runs_of(work, runs), seed=options.seed)
    return Run(done.document, heading(work, device), done.outcome, head(variant, device, done.load, options))


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Tunables for a workload, found on one part of it and judged on another. Printed, it is the verdict."""

    study: tuning.Tuned = field(repr=False)
    """The result from which the document is made: the parts, the search, the verdict (headwaiter.tuning.tune)."""

    @property
    def document(self) -> TuneDocument:
        """All figures, as `--json` prints them (docs/json.md)."""
        return self.study.document()

    @property
    def recommended(self) -> bool:
        """Return whether the settings are better than the start on the part that the search has not seen, too."""
        return self.study.recommended

    @property
    def settings(self) -> Shown:
        """Tunables that differ from the start in the best settings, recommended or not."""
        return self.study.settings

    @property
    def scheduler(self) -> str:
        """The scheduler to take, as compare() takes it: with the settings if they are recommended, else the start."""
        return (self.study.best if self.recommended else self.study.start).name

    @property
    def answer(self) -> Answer | None:
        """The judge's verdict on the part held out; None if the search found nothing to judge."""
        return self.study.judged.answer if self.study.judged else None

    def to_json(self) -> str:
        """The JSON that `headwaiter tune --json` prints."""
        return json_text(self.document)

    def to_pandas(self) -> pd.DataFrame:
        """A row for each setting that was run: its tunables, and how far ahead it is. Problem without pandas."""
        rows = self.document.tried
        starts = {row.tunable: row.start for row in self.study.rows}
        columns: dict[str, Any] = {name: [row.settings.get(name, start) for row in rows] for name, start in starts.items()}
        return frame({**columns, "ahead_percent": [row.ahead_percent for row in rows]})

    def __repr__(self) -> str:
        return self.study.text


def tune(
    workload: str | Path | Trace | pd.DataFrame,
    scheduler: str,
    drive: str | Path | Drive | None = None,
    by: Criterion | None = None,
    trials: int | None = None,
    seconds: float | None = None,
    runs: int | None = None,
    margin: float = MARGIN,
    anyway: bool = False,
    **conditions: Unpack[Conditions],
) -> Tuning:
    """Search for the best tunables of a scheduler, as `headwaiter tune` does: on one part of a workload, judged on another.

    scheduler: a name, or a variant from which the search starts. by: the figure to improve. trials, seconds: how many settings
    are tried and for how long, whichever ends first (default: 64 settings). The other arguments are those of compare(); `seed` is
    the search's, too. Raises Problem without Optuna (`pip install 'headwaiter[tune]'`).

    >>> import headwaiter
    >>> found = headwaiter.tune("readers-2", "mq-deadline", drive="wd-re-4tb", trials=4, runs=0)
    >>> found.recommended, found.scheduler
    (False, 'mq-deadline')
    """
    _check(conditions)
    reading = _reading(conditions)
    work, device = _on_drive(workload, drive, reading)
    path = find_workload(str(workload)) if isinstance(workload, str | Path) else Path(work.name)
    start = parse_variant(scheduler, READERS)
    how = checked(dict(conditions))
    found = tuning.tune(
        path, work, device, start, how, reading, by=by, trials=trials, seconds=seconds, runs=runs, margin=margin, anyway=anyway
    )
    return Tuning(found)


def schedulers() -> dict[str, Scheduler]:
    """All schedulers by name, with their tunables, tables and statistics.

    >>> import headwaiter
    >>> headwaiter.schedulers()["as"].tunables["antic_expire"].unit
    'ms'
    """
    return dict(catalogue())


def read_trace(
    path: str | Path | pd.DataFrame,
    group_gap_ms: float = DEFAULT_GROUP_GAP_MS,
    device: str | None = None,
    streams: int = 0,
    columns: str | None = None,
) -> Trace:
    """A trace of any known format: columns of shape (n,), in order of arrival (headwaiter.traces.model). Options as of compare().

    A bundled workload is found by its name. A DataFrame has a row for each request. `columns` says what the columns of CSV or of
    a DataFrame mean, as `headwaiter import --columns` does; without it a DataFrame has those of native CSV (docs/traces.md).
    Raises Problem, with one line naming file, place and cause, if it is not sound.

    >>> import headwaiter
    >>> trace = headwaiter.read_trace("example")
    >>> trace.format, len(trace), trace.bytes, trace.completions_known
    ('blktrace', 4943, 419078144, True)
    >>> headwaiter.compare(trace, schedulers=["mq-deadline", "bfq"], runs=0).answer.outcome
    'keep'
    """
    how = Reading(group_gap_ms=group_gap_ms, device=device, streams=streams)
    if not is_frame(path):
        return read(find_workload(str(path)), how, columns=columns)
    made = Source.member(Path("DataFrame"), frame_csv(path), keep_good=False)
    return replace(read(made.path, how, made, columns), sha256="")


def sweep(
    spec: str | Path | Mapping[str, Any],
    output: str | Path,
    workers: int | None = None,
    cluster: str | None = None,
    extend: bool = False,
    retry: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> pd.DataFrame:
    """Run all combinations of workloads, drives, schedulers, tunables, conditions and seeds, as `headwaiter sweep` does.

    spec: a sweep file, or a mapping of the same form (docs/sweep.md). output: the folder of the results; cells that are done in
    it are not run again. workers: processes [default: one for each processor]. cluster: "slurm", "kubernetes", or the address of
    a Dask scheduler. extend: add to results of another sweep. retry: run cells again that failed. progress("cells", how many are
    done) comes after each batch. Returns a DataFrame with a row for each cell and the columns of the Parquet; where a cell
    failed, `error` says why. Raises Problem if something given is wrong, or without `pip install headwaiter[sweep]`.

    >>> import headwaiter, tempfile
    >>> cells = {"workloads": "readers-2", "drives": "barracuda-80g", "schedulers": ["mq-deadline", "as"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = headwaiter.sweep(cells, f"{folder}/results", workers=1)
    >>> found.set_index("variant")["throughput_MBps"].idxmax()
    'as'
    """
    done = sweep_cells(
        spec,
        Path(output),
        workers=workers,
        cluster=cluster,
        extend=extend,
        retry=retry,
        readers=READERS,
        progress=progress,
    )
    return done.frame()
