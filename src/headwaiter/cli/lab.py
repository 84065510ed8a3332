# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter lab: real kernels, real programs, virtual time."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import writing
from headwaiter.base.parsing import assignment
from headwaiter.base.records import Record, keyed
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Group
from headwaiter.cli._options import CommaList
from headwaiter.cli._output import output_options, page, write_json, write_text
from headwaiter.cli._progress import work_bar
from headwaiter.drives.choose import DEFAULT_DRIVE
from headwaiter.lab.agree import JOBS, LAB_RUNS, SCHEDULERS, SECOND_DRIVE, compare, job_of_file, mixed
from headwaiter.lab.agreement import failures, summary
from headwaiter.lab.schema import AgreeDocument, JobComparison, LabDocument
from headwaiter.lab.script import Row, execute, experiments, read
from headwaiter.lab.survey import PASSED, survey
from headwaiter.lab.times import timed
from headwaiter.papers.was.config import READERS
from headwaiter.report.terminal import console
from headwaiter.study.ranges import RUNS
from headwaiter.study.variants import settings_of


@click.group("lab", cls=Group)
def command() -> None:
    """Run experiments in stock kernels under QEMU, in virtual time; every run gives the same result."""


@command.command("list")
def _list() -> None:
    """List the experiments."""
    out = Table(box=None, pad_edge=False)
    for heading in ("experiment", "description", "kernels", "parameters"):
        out.add_column(heading)
    for name in experiments():
        script = read(name)
        out.add_row(name, script.summary, " ".join(script.kernels), " ".join(script.needs.get("set", [])))
    console().print(out)


@command.command("run")
@click.argument("target", metavar="EXPERIMENT|SCRIPT", shell_complete=complete.among(experiments))
@click.option(
    "--kernel",
    "-k",
    "series",
    multiple=True,
    metavar="KERNEL",
    help="Series (6.12) or release (7.2.11) of Debian's cloud kernel from apt's sources, or a ./FOLDER with "
    "its unpacked packages; may be repeated [default: the script's own].",
)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the script.")
@click.option(
    "--files",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Store the files that the guest sends as FOLDER/SERIES/NAME.",
)
@click.option(
    "--module",
    "modules",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE.ko|FOLDER",
    help="Insert another module behind ours, such as a scheduler's; a FOLDER with a Kbuild is built for each kernel.",
)
@output_options
def _run(
    target: str,
    series: tuple[str, ...],
    pairs: tuple[str, ...],
    files: Path | None,
    modules: tuple[Path, ...],
    as_json: bool,
    output: Path | None,
) -> None:
    """Boot kernels, run an experiment (see 'headwaiter lab list') or a script in each, and show the results."""
    given = dict(assignment("--set", pair, "NAME=VALUE") for pair in pairs)
    if files:  # that it cannot be made must show before the kernels boot
        files.mkdir(parents=True, exist_ok=True)
    with timed(" ".join(("run", target, *series))) as seconds, work_bar(seconds) as say:
        script, rows, sent = execute(target, series, given, say, modules)
    for path, data in sent.items() if files else ():
        assert files is not None
        (files / path).parent.mkdir(parents=True, exist_ok=True)
        with writing(files / path) as temporary:
            temporary.write_bytes(data)
    _show(LabDocument(experiment=script.name, results=rows), script.summary, rows, as_json, output)


@command.command("kernels")
@click.argument("series", nargs=-1, metavar="[SERIES…]")
@click.option(
    "--try",
    "scripts",
    multiple=True,
    metavar="EXPERIMENT|SCRIPT",
    shell_complete=complete.among(experiments),
    help="Build the modules for each, and run this there; may be repeated.",
)
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Set a parameter of those that have it.")
@output_options
def _kernels(
    series: tuple[str, ...], scripts: tuple[str, ...], pairs: tuple[str, ...], as_json: bool, output: Path | None
) -> None:
    """List the newest kernel of each series that apt's sources have, and with --try whether the modules pass there."""
    given = dict(assignment("--set", pair, "NAME=VALUE") for pair in pairs)
    for script in scripts:  # a wrong name must show before kernels are fetched
        read(script)
    with timed(" ".join(("kernels", *scripts)), max(1, len(scripts))) as seconds, work_bar(seconds) as say:
        found = survey(series, scripts, say, given)
    rows: list[Row] = []
    for row in found.results:
        tried = {"built": row.built, **row.scripts} if scripts else {}
        rows.append({"series": row.series, "release": row.release, "headers": "yes" if row.headers else "no", **tried})
    _show(found, f"Kernels of {found.system}", rows, as_json, output)
    if any({row.built, *row.scripts.values()} - {"", PASSED} for row in found.results):
        sys.exit(1)


@command.command("agree")
@click.option(
    "--kernel",
    "-k",
    "kernels",
    multiple=True,
    metavar="SERIES",
    help="Series of Debian's cloud kernel; may be repeated [default: 6.12; with --random also 6.1].",
)
@click.option(
    "--drive",
    "-d",
    "drives",
    multiple=True,
    metavar="NAME",
    shell_complete=complete.drive,
    help=f"The drive's profile; may be repeated [default: {DEFAULT_DRIVE}; with --random also {SECOND_DRIVE}].",
)
@click.option(
    "--sched",
    "-s",
    "schedulers",
    cls=CommaList,
    default=",".join(SCHEDULERS),
    show_default=True,
    metavar="a,b,…",
    shell_complete=complete.schedulers,
    help="Schedulers.",
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="[SCHED.]NAME=VALUE|FILE",
    help="Override a tunable's default, or give a table, in both (headwaiter's own schedulers only).",
)
@click.option(
    "--job",
    "-j",
    "names",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=complete.among(lambda: [job.name for job in JOBS]),
    help="sequential-N or random-N with N = 1, 2, 4, 8 readers, or a fio job file on the disk itself "
    "(filename=/dev/sda); may be repeated [default: these eight].",
)
@click.option(
    "--random",
    "count",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Run N random mixed jobs instead, in turn on each kernel and drive.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    show_default=True,
    help="Seed of the first random job; each further job has the next seed.",
)
@click.option(
    "--seeds",
    type=click.IntRange(0, 1000),
    default=RUNS,
    show_default=True,
    metavar="N",
    help="Number of simulated runs of each job with small changes.",
)
@click.option(
    "--lab-runs",
    type=click.IntRange(1, 99),
    default=LAB_RUNS,
    show_default=True,
    metavar="N",
    help="Number of runs in the lab where small changes decide which scheduler is the best.",
)
@click.option(
    "--show",
    type=click.IntRange(0, 2**63 - 1),
    metavar="SEED",
    help="Print the random job of this seed for each drive, and exit.",
)
@output_options
def _agree(
    kernels: tuple[str, ...],
    drives: tuple[str, ...],
    schedulers: str,
    pairs: tuple[str, ...],
    names: tuple[str, ...],
    count: int | None,
    seed: int,
    seeds: int,
    lab_runs: int,
    show: int | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Run the same fio jobs in the simulator and under a kernel, on one drive profile, and compare.

    They agree if throughput is within 3% and p99 latency within 10%, or if the simulator gives a range, and the kernel's
    overlaps it. Exit with status 1 if they do not; with --random, if they do not overall (docs/lab.md).
    """
    if names and (count or show is not None):
        raise Problem("--job and --random are mutually exclusive")
    random = count is not None or show is not None
    kernels = tuple(dict.fromkeys(kernels)) or (("6.12", "6.1") if random else ("6.12",))
    drives = tuple(dict.fromkeys(drives)) or ((DEFAULT_DRIVE, SECOND_DRIVE) if random else (DEFAULT_DRIVE,))
    if show is not None:
        write_text("".join(f"# {drive}\n{mixed(show, drive).text}\n" for drive in drives), output)
        return
    known = {job.name: job for job in JOBS}
    given = [known[name] if name in known else job_of_file(Path(name)) for name in dict.fromkeys(names)] or list(JOBS)
    if len({job.name for job in given}) < len(given):
        raise Problem("--job: two files have the same name")
    chosen = schedulers.split(",")
    settings = settings_of(pairs, chosen, READERS) if pairs else {}
    places = list(itertools.product(kernels, drives))
    rows: list[JobComparison] = []
    runs = len(chosen) * (count or len(given) * len(places))
    with timed("agree", runs) as seconds, work_bar(seconds) as say:
        for at, (series, drive) in enumerate(places):
            jobs = [mixed(seed + i, drive) for i in range(at, count, len(places))] if count else given
            rows += compare(series, drive, chosen, jobs, say, seeds, settings, lab_runs) if jobs else []
    title = "Simulator and kernel on the same jobs and drive"
    if count is None:
        _show(AgreeDocument(results=rows), title, [keyed(row) for row in rows], as_json, output)
        if not all(row.agree for row in rows):
            sys.exit(1)
        return
    found = summary(rows)
    if as_json:
        write_json(AgreeDocument(seed=seed, results=rows, summary=found, failures=failures(rows)), output)
    else:
        _print(
            [
                (f"{title}: deviation of throughput in percent", found.deviation_percent),
                ("Disagreements", failures(rows)),
                ("Winners that the simulator missed", [w for w in found.winners if not w.right]),
            ],
            f"The simulator's winner is the kernel's, or within 5% of it, on {found.winners_right} of {len(found.winners)} jobs.",
            output,
        )
    if not found.holds:
        sys.exit(1)


def _print(tables: list[tuple[str, Sequence[Record]]], sentence: str, output: Path | None) -> None:
    with page(output) as out:
        for title, rows in tables:
            if rows:
                out.print(_table(title, [keyed(row) for row in rows]))
        out.print(sentence, soft_wrap=True)


def _show(document: Record, title: str, rows: Sequence[Row], as_json: bool, output: Path | None) -> None:
    if as_json:
        write_json(document, output)
        return
    with page(output) as out:
        out.print(_table(title, rows))


def _table(title: str, rows: Sequence[Row]) -> Table:
    """A row a result; columns in the order in which they first occur."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    out = Table(title=title, title_justify="left")
    for key in keys:
        text = any(isinstance(row.get(key), str) for row in rows)
        out.add_column(key, justify="left" if text else "right")
    for row in rows:
        out.add_row(*(str(row.get(key, "")) for key in keys))
    return out
