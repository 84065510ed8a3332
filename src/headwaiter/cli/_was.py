# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `headwaiter was` shows: tables, sentences, JSON and pictures of classes and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from headwaiter.base.records import like
from headwaiter.papers.was import schema
from headwaiter.papers.was.calibration import MAX_EMPTY, FoundClasses
from headwaiter.papers.was.config import POLICY, Config
from headwaiter.papers.was.designate import ClassIntervals
from headwaiter.papers.was.evaluate import Evaluated
from headwaiter.papers.was.fit import FittedWas
from headwaiter.papers.was.matrix import Matrix
from headwaiter.papers.was.observe import Observation
from headwaiter.report.figure import figure

_MOST_ROWS = 24


def classes_table(matrix: Matrix, chosen: ClassIntervals) -> Table:
    """A row per class with a wait, the most promising first."""
    t = Table(title="classes", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    longest = matrix.buckets * matrix.bucket_us / 1000
    for head in ("class", "waits", f"failed after {longest:g} ms", "interval ms", "failed after it", "T_F/A_S ms"):
        t.add_column(head, justify="right", no_wrap=True)
    failures = matrix.failures
    rows = matrix.populated.tolist()[::-1]
    for row in rows[:_MOST_ROWS]:
        interval = chosen.wait_us[row]
        waits, failed = int(matrix.counts[row].sum()), int(failures[row, interval // matrix.bucket_us - 1])
        cost = f"{failed * interval / 1000 / (waits - failed):.3f}" if waits > failed else "–"
        cells = (row + 1, waits, int(matrix.counts[row, -1]), f"{interval / 1000:g}", failed, cost)
        t.add_row(*map(str, cells))
    if len(rows) > _MOST_ROWS:
        t.caption = f"… and {len(rows) - _MOST_ROWS} more (--json shows all)"
    return t


def calibration_lines(found: FoundClasses) -> list[str]:
    """Return what was chosen, and why."""
    b = found.best
    lines = [
        f"{b.classes} classes from the last {b.history} reads of a process; {len(b.spatial)} steps of distance and"
        f" {len(b.temporal)} of time, each with about as many reads.",
        f"Of {found.tried} classifications, {found.within} leave no more than {MAX_EMPTY:.0%} of the classes without a wait"
        f" (this one: {b.empty} of {b.classes}); of those this one's classes differ most: the mean correlation of"
        f" their waits with all waits is {b.similarity:.3f}."
        if found.within
        else f"None of {found.tried} classifications leaves no more than {MAX_EMPTY:.0%} of the classes without a wait;"
        f" this one has fewest, {b.empty} of {b.classes}. The mean correlation of classes with all waits is {b.similarity:.3f}.",
    ]
    return [*lines, *(f"Warning: {w}." for w in found.warnings)]


def designation_lines(chosen: ClassIntervals) -> list[str]:
    """Return what the intervals come to."""
    waits = f"Of {chosen.waits} waits {chosen.failures} would fail"
    cost = f", for {chosen.mean_failure_us / 1000:.3f} ms on average" if chosen.failures else ""
    bound = "" if chosen.relaxed is None else f" (the relaxation, which no intervals can beat, has {chosen.relaxed:.3f})"
    ratio = f"T_F/A_S {chosen.penalty_us / 1000 / chosen.successes:.3f} ms" if chosen.successes else "no wait would succeed"
    return [f"{waits}{cost}{bound}: {ratio}."]


def fit_lines(done: FittedWas) -> list[str]:
    """Return what won, and why."""
    best = done.best
    if best.verdict is None:
        return [
            f"None of {done.tried} configurations has a lower T_F/A_S than as without loss of throughput:"
            f" the wait is that of as, {best.config.wait_us[0] / 1000:g} ms for all processes."
        ]
    lines = [f"Best of {done.tried} configurations that were run on this load."]
    if best.matrix is None or best.designation is None:
        return [*lines, f"It waits {best.config.wait_us[0] / 1000:g} ms for all processes: no classes do better."]
    c = best.config
    lines.append(
        f"{c.classes} classes from the last {c.history} reads of a process; {len(c.spatial)} steps of distance and"
        f" {len(c.temporal)} of time; mean correlation with the whole {c.made['similarity']:.3f}, {c.made['empty_classes']}"
        f" classes without a wait; {_rule(c)}."
    )
    return [*lines, *designation_lines(best.designation)]


def _rule(c: Config) -> str:
    """Return the rule by which the intervals were chosen."""
    if "bound_us" in c.made:
        return f"G = {c.made['bound_us'] / 1000:g} ms"
    return f"intervals of the largest gain where a met wait saves {c.made['saving_us'] / 1000:g} ms"


def verdicts_table(verdicts: Sequence[Evaluated], policy: str = POLICY) -> Table:
    """A row per load: `as`, then the policy."""
    t = Table(title=f"{policy} versus as", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    t.add_column("load", no_wrap=True)
    for head in ("A_S", "A_F", "T_F ms", "T_F/A_S ms", "A_S'", "A_F'", "T_F' ms", "T_F'/A_S' ms", "throughput", "verdict"):
        t.add_column(head, justify="right", no_wrap=True)
    for v in verdicts:
        cells: list[str] = []
        for f in (v.before, v.after):
            cells += [str(f.met), str(f.vain), f"{f.vain_ms:.1f}", "–" if f.cost_ms is None else f"{f.cost_ms:.3f}"]
        better = {True: "better", False: "worse", None: "the same"}[v.better]
        t.add_row(v.name, *cells, f"{v.throughput:.3f}", better if v.keeps_up else f"{better}, but slower")
    return t


def verdict_json(v: Evaluated) -> schema.Verdict:
    """Return a verdict as a record of --json."""
    return like(schema.Verdict, v, load=v.name, as_=like(schema.Side, v.before), was=like(schema.Side, v.after))


def fit_json(done: FittedWas, workload: str, notes: Sequence[str]) -> schema.WasFitDocument:
    """Return a fit as the document of --json."""
    best = done.best
    return schema.WasFitDocument(
        workload=workload,
        tried=done.tried,
        calibration=calibration_json(done.calibration),
        wait_us=list(best.config.wait_us),
        designation=designation_json(best.designation) if best.designation else None,
        trial=verdict_json(best.verdict) if best.verdict else None,
        notes=notes,
    )


def calibration_json(found: FoundClasses) -> schema.Calibration:
    """Return a calibration as a record of --json."""
    b = found.best
    return schema.Calibration(
        history=b.history,
        classes=b.classes,
        empty_classes=b.empty,
        similarity=b.similarity,
        spatial_steps=b.spatial,
        temporal_steps=b.temporal,
        candidates=found.tried,
        candidates_within_bound=found.within,
        warnings=found.warnings,
    )


def designation_json(chosen: ClassIntervals) -> schema.Designation:
    """Return a designation as a record of --json."""
    return schema.Designation(
        wait_us=chosen.wait_us,
        waits=chosen.waits,
        failures=chosen.failures,
        penalty_ms=chosen.penalty_us / 1000,
        mean_failure_ms=chosen.mean_failure_us / 1000,
        relaxed_failures=chosen.relaxed,
    )


def draw(config: Config, observation: Observation, bucket_us: int, path: Path) -> None:
    """A picture of S, T and the classes."""
    counts = observation.matrix(config, bucket_us).counts
    met, vain = counts[:, :-1].sum(axis=1), counts[:, -1]
    with figure(path, 1, 3, figsize=(13, 4), layout="constrained") as (spatial, temporal, classes):
        for axes, steps, unit, name in ((spatial, config.spatial, "sectors", "S"), (temporal, config.temporal, "us", "T")):
            start = [at for at, _ in steps]
            axes.step([*start, max(2 * start[-1], 10)], [*(p for _, p in steps), steps[-1][1]], where="post")
            axes.set_xscale("symlog", linthresh=start[1] if len(start) > 1 else 1)
            axes.set(xlabel=f"difference ({unit})", ylabel="points", title=f"{name}: {len(steps)} steps", ylim=(0, None))
        number = range(1, config.classes + 1)
        classes.bar(number, met, label="met")
        classes.bar(number, vain, bottom=met, label="failed")
        waited = int((met + vain > 0).sum())
        classes.set(xlabel="class", ylabel="waits", title=f"{waited} of {config.classes} classes waited", yscale="symlog")
        classes.legend()
