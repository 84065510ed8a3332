# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter was: from a recording of a machine to waits that fit it (workload-dependent anticipation)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from headwaiter.base.errors import Problem, shown
from headwaiter.base.outputs import distinct
from headwaiter.base.parsing import whole
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Group
from headwaiter.cli._devices import device
from headwaiter.cli._options import Finite, announce, conditions, load_options, reading
from headwaiter.cli._output import file_option, json_option, output_option, output_options, page, write_json, write_text
from headwaiter.cli._progress import progress_bar
from headwaiter.cli._was import (
    calibration_json,
    calibration_lines,
    classes_table,
    designation_json,
    designation_lines,
    draw,
    fit_json,
    fit_lines,
    verdict_json,
    verdicts_table,
)
from headwaiter.drives.choose import DEFAULT_DRIVE, open_drive
from headwaiter.engine.sim import Drive, Options
from headwaiter.papers.was.calibration import Choices, calibrate
from headwaiter.papers.was.config import CLASSES, DEFAULT_US, HISTORY, MAX_US, POLICY, Config, load, to_toml
from headwaiter.papers.was.designate import BOUND_US, designate, heuristic
from headwaiter.papers.was.evaluate import ONLINE, WaitSums, run_as, run_was, verdict
from headwaiter.papers.was.fit import BOUNDS_US, FittedWas, alike, designated, fit
from headwaiter.papers.was.matrix import load_matrix, to_text
from headwaiter.papers.was.observe import BUCKET_US, Observation, joined, watch
from headwaiter.papers.was.schema import WasCalibrateDocument, WasDesignateDocument, WasEvaluateDocument
from headwaiter.papers.was.sysfs import SYSFS, install, read_counters
from headwaiter.papers.was.timetable import BY_ID, UNITS, PartOfDay, Units, at, lasting, timetable
from headwaiter.report.tables import print_notes
from headwaiter.report.terminal import console
from headwaiter.study import plugs
from headwaiter.study.cost import plan
from headwaiter.study.inkernel import depth_of
from headwaiter.study.trial import SoFar
from headwaiter.study.workload import NR_REQUESTS, Workload, find_workload, read_halves, read_workload

F = TypeVar("F", bound=Callable[..., Any])


@click.group("was", cls=Group)
def command() -> None:
    """Workload-dependent anticipation: classes of processes, and the wait for each.

    `fit` does it all from a recording; `load` puts the result into a disk's scheduler, `schedule` by the time of day.
    """


def _points(_: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """P,P,…: points of steps, in decreasing order."""
    if text is None:
        return None
    try:
        points = tuple(whole(part.strip(), 0, 100) for part in text.split(","))
    except ValueError as e:
        raise Problem(f"{parameter.opts[0]} {shown(text)}: {e}") from None
    if sorted(points, reverse=True) != list(points):
        raise Problem(f"{parameter.opts[0]} {shown(text)}: points must not increase with distance")
    return points


_CHOICES = (
    click.option(
        "--history",
        type=click.IntRange(2, 17),
        metavar="K",
        help=f"Number of I/Os in a history [default: search; the paper: {HISTORY}].",
    ),
    click.option(
        "--classes", type=click.IntRange(1, 512), metavar="N", help=f"Number of classes [default: search; the paper: {CLASSES}]."
    ),
    click.option("--spatial-steps", callback=_points, metavar="P,P,…", help="Points of S, one per step [default: search]."),
    click.option("--temporal-steps", callback=_points, metavar="P,P,…", help="Points of T [default: search]."),
    file_option("--plot", metavar="FILE", help="Draw S, T and the classes (.png, .svg, .pdf; needs matplotlib)."),
)
_WAITS = (
    click.option(
        "--max-ms",
        type=click.IntRange(1, 100),
        default=MAX_US // 1000,
        show_default=True,
        metavar="M",
        help="The fixed wait of the observation, and the longest interval.",
    ),
    click.option(
        "--bucket",
        "bucket_us",
        type=click.IntRange(1, 1_000_000),
        default=BUCKET_US,
        show_default=True,
        metavar="US",
        help="Resolution of times; M must be a multiple of it.",
    ),
)
_BOUND = "Upper bound on the average cost of a failed wait"
_least = click.option(
    "--least-ms", type=Finite(0, 1000), default=0.0, show_default=True, metavar="q", help="Forbid intervals of up to q."
)
_TRIAL = (
    click.option("--bound-ms", type=Finite(0.001, 1000), metavar="G", help=f"{_BOUND} [default: try several]."),
    _least,
    click.option(
        "--runs",
        type=click.IntRange(0, 100),
        default=2,
        show_default=True,
        metavar="N",
        help="Further runs of each trial, with small changes of processor time, starts and think times.",
    ),
    click.option(
        "--prove/--no-prove",
        default=True,
        show_default=True,
        help="Wait otherwise than as does only while that is seen to be worth it.",
    ),
)
_BOUNDS = (
    click.option(
        "--bound-ms", type=Finite(0.001, 1000), default=BOUND_US / 1000, show_default=True, metavar="G", help=f"{_BOUND}."
    ),
    _least,
)


def _with(*groups: tuple[Callable[[F], F], ...]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return add


_config = click.option(
    "--config",
    "-c",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="WAS.toml",
    help="The configuration.",
)


@dataclass(frozen=True)
class _Work:
    """Loads on a drive, and what there is to note of them."""

    drive: Drive
    options: Options
    loads: list[Workload]

    @property
    def notes(self) -> list[str]:
        return list(dict.fromkeys(note for load in self.loads for note in load.notes))


def _options(given: dict[str, Any], drive: Drive) -> Options:
    """Return options of the kernels that the document measured: their number of requests, no write-back throttling."""
    how = conditions(given)
    how = replace(how, nr_requests=NR_REQUESTS if how.nr_requests is None else how.nr_requests, wbt_depth=how.wbt_depth or 0)
    options = how.options(drive)
    return how.of(options, POLICY, depth_of(drive, options))


def _work(workloads: tuple[str, ...], given: dict[str, Any]) -> _Work:
    drive = open_drive(given["drive"] or DEFAULT_DRIVE)
    paths = [find_workload(name) for name in workloads or (None,)]
    return _Work(drive, _options(given, drive), [plugs.joined(read_workload(path, drive, reading(given))) for path in paths])


def _observed(work: _Work, max_ms: int, bucket_us: int) -> Observation:
    """All loads, each run by itself."""
    found = []
    for one in work.loads:
        total = announce(one.load, work.drive, work.options, 1, 0)
        name = f"{one.name} on {work.drive.name}"
        with progress_bar(name, total) as update:
            tick = partial(update, name)
            found.append(watch(name, work.drive, one.load, work.options, max_ms * 1000, bucket_us, tick))
    return joined(found)


def _fitted(work: _Work, given: dict[str, Any]) -> tuple[FittedWas, Observation]:
    """The best configuration for all loads together."""
    observation = _observed(work, given["max_ms"], given["bucket_us"])
    bound = given["bound_ms"]
    bounds = BOUNDS_US if bound is None else (round(bound * 1000),)
    loads = [one.load for one in work.loads]
    runs = given["runs"]
    before = run_as(work.drive, loads, work.options, runs)
    each = sum(plan(one, work.drive, work.options, 1, runs).total_ios for one in loads)

    def trials(configs: Sequence[Config]) -> Iterator[WaitSums]:
        with progress_bar("trying configurations", each * len(configs)) as update:
            for number, config in enumerate(configs, 1):
                so_far = SoFar(partial(update, f"{number} of {len(configs)}"))
                yield run_was(config, work.drive, loads, work.options, runs, so_far)

    return fit(observation, _choices(given), bounds, round(given["least_ms"] * 1000), before, trials, given["prove"]), observation


def _choices(given: dict[str, Any]) -> Choices:
    return Choices(given["history"], given["classes"], given["spatial_steps"], given["temporal_steps"], given["bucket_us"])


def _say(lines: list[str], notes: list[str]) -> None:
    out = console()
    for line in lines:
        out.print(line, soft_wrap=True)
    print_notes(out, notes)


def _files(workloads: tuple[str, ...], **written: Path | None) -> None:
    read = {f"WORKLOAD {name}": find_workload(name) for name in workloads}
    distinct({**read}, {f"--{name}": path for name, path in written.items()})


def _put(text: str, output: Path | None, as_json: bool) -> None:
    """A configuration, to its file or, where nothing else goes there, to stdout."""
    if output or not as_json:
        write_text(text, output)


@command.command("calibrate")
@click.argument("workload", shell_complete=complete.workload, nargs=-1)
@output_option("WAS.toml")
@_with(_CHOICES, _WAITS)
@json_option
@load_options
def _calibrate(workload: tuple[str, ...], output: Path | None, plot: Path | None, as_json: bool, **given: Any) -> None:
    """Find classes for WORKLOADs (traces or job files; default: the bundled example).

    The configuration waits M for every class, for use by observe.
    """
    _files(workload, output=output, plot=plot)
    work = _work(workload, given)
    observation = _observed(work, given["max_ms"], given["bucket_us"])
    found = calibrate(observation, _choices(given))
    made = {"from": observation.name, "max_us": observation.max_us, "bucket_us": given["bucket_us"]}
    config = found.best.config(observation.max_us, made)
    if plot:
        draw(config, observation, given["bucket_us"], plot)
    _put(to_toml(config), output, as_json)
    if as_json:
        document = WasCalibrateDocument(workload=observation.name, calibration=calibration_json(found), notes=work.notes)
        write_json(document, None)
    elif output:
        _say(calibration_lines(found), work.notes)


@command.command("observe")
@click.argument("workload", shell_complete=complete.workload, nargs=-1)
@_config
@output_option("MATRIX.json|.toml")
@_with(_WAITS)
@click.option(
    "--from-device",
    "live",
    metavar="DISK",
    shell_complete=device,
    help="Take the counters of a disk's scheduler instead (hw-was).",
)
@click.option(
    "--sysfs", type=click.Path(path_type=Path), default=SYSFS, show_default=True, metavar="FOLDER", help="Mount point of sysfs."
)
@load_options
def _observe(workload: tuple[str, ...], config: Path, output: Path | None, live: str | None, sysfs: Path, **given: Any) -> None:
    """Count how long the waits of each class last when all wait up to M: the matrix A."""
    _files(workload, output=output)
    classes = load(config)
    if live:
        if workload:
            raise Problem("--from-device uses the disk's counters: it takes no WORKLOAD")
        matrix, notes = read_counters(classes, live, sysfs), list[str]()
    else:
        work = _work(workload, given)
        matrix, notes = _observed(work, given["max_ms"], given["bucket_us"]).matrix(classes, given["bucket_us"]), work.notes
    write_text(to_text(matrix, toml=bool(output) and output.suffix == ".toml"), output)  # type: ignore[union-attr]
    if output:
        _say([f"{int(matrix.counts.sum())} waits in {len(matrix.populated)} of {matrix.classes} classes"], notes)


@command.command("designate")
@_config
@click.option(
    "--matrix", "-a", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="MATRIX", help="Output of observe."
)
@output_option("WAS.toml")
@_with(_BOUNDS)
@click.option("--or-equal", is_flag=True, help="Also allow an average cost of exactly G.")
@click.option("--heuristic", "simple", is_flag=True, help="Choose by the least penalty per success instead, class by class.")
@json_option
def _designate(
    config: Path, matrix: Path, output: Path | None, bound_ms: float, least_ms: float, or_equal: bool, simple: bool, as_json: bool
) -> None:
    """Give each class the interval with the fewest failed waits, while a failed wait costs less than G on average."""
    distinct({"-a": matrix}, {"-o": output})
    classes, observed = load(config), load_matrix(matrix)
    if observed.classifier != classes.classifier:
        raise Problem(f"{matrix}: its waits were classified by a configuration other than {config}")
    try:
        chosen = (
            heuristic(observed, round(least_ms * 1000))
            if simple
            else designate(observed, round(bound_ms * 1000), round(least_ms * 1000), or_equal, relaxed=True)
        )
    except Problem as e:
        raise Problem(f"{matrix}: {e}") from None
    made: dict[str, Any] = {"rule": "heuristic" if simple else "optimum", "least_us": round(least_ms * 1000)}
    if not simple:
        made["bound_us"] = round(bound_ms * 1000)
    _put(to_toml(designated(classes, chosen, {**observed.made, **made})), output, as_json)
    if as_json:
        write_json(WasDesignateDocument(designation=designation_json(chosen)), None)
    elif output:
        out = console()
        out.print(classes_table(observed, chosen))
        _say(designation_lines(chosen), [])


@command.command("fit")
@click.argument("workload", shell_complete=complete.workload, nargs=-1)
@output_option("WAS.toml")
@_with(_TRIAL, _CHOICES, _WAITS)
@json_option
@load_options
def _fit(workload: tuple[str, ...], output: Path | None, plot: Path | None, as_json: bool, **given: Any) -> None:
    """Calibrate, observe and designate for WORKLOADs (traces or job files; default: the bundled example).

    Several classifications and bounds are tried; the best one is written.
    """
    _files(workload, output=output, plot=plot)
    work = _work(workload, given)
    done, observation = _fitted(work, given)
    if plot:
        draw(done.best.config, observation, given["bucket_us"], plot)
    _put(to_toml(done.best.config), output, as_json)
    if as_json:
        write_json(fit_json(done, observation.name, work.notes), None)
    elif output:
        out = console()
        out.print(verdicts_table([v] if (v := done.best.verdict) else []))
        _say(fit_lines(done), work.notes)


@command.command("evaluate")
@click.argument("workload", shell_complete=complete.workload, nargs=-1, required=True)
@_with(_TRIAL, _CHOICES[:-1], _WAITS)
@click.option(
    "--config",
    "-c",
    "given_config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="WAS.toml",
    help="Judge this configuration by the whole of each workload, and fit nothing.",
)
@click.option("--online", is_flag=True, help="Judge was-online, which needs no fit.")
@click.option("--whole", is_flag=True, help="With --online: judge by the whole of each workload.")
@output_options
@load_options
def _evaluate(
    workload: tuple[str, ...],
    given_config: Path | None,
    online: bool,
    whole: bool,
    as_json: bool,
    output: Path | None,
    **given: Any,
) -> None:
    """Fit to the first half of each trace, and judge by the second half: `was` beside `as`.

    With --config or --whole, WORKLOADs may be job files or generated, too.
    """
    if online and given_config:
        raise Problem("--online and --config are mutually exclusive: was-online has no configuration")
    if whole and not online:
        raise Problem("--whole needs --online: was is judged by what it was not fitted to")
    _files(workload, output=output, config=given_config)
    drive, how = open_drive(given["drive"] or DEFAULT_DRIVE), reading(given)
    options = _options(given, drive)
    config = load(given_config) if given_config else None
    verdicts, notes = [], list[str]()
    for path in map(find_workload, workload):
        one = plugs.joined(read_workload(path, drive, how)) if given_config or whole else None
        if one is None:
            first, one = map(plugs.joined, read_halves(path, drive, how))
            if not online:
                config = _fitted_or_as(_Work(drive, options, [first]), given, notes)
        notes += [f"{one.name}: {note}" for note in one.notes]
        verdicts.append(verdict(one.name, drive, one.load, config, options, given["runs"]))
        config = config if given_config else None
    if as_json:
        document = WasEvaluateDocument(
            policy=ONLINE if online else POLICY, drive=drive.name, verdicts=[verdict_json(v) for v in verdicts], notes=notes
        )
        write_json(document, output)
        return
    with page(output) as out:
        out.print(verdicts_table(verdicts, ONLINE if online else POLICY))
        print_notes(out, notes)


def _fitted_or_as(work: _Work, given: dict[str, Any], notes: list[str]) -> Config:
    """The best configuration, or that of `as` where none can be found."""
    try:
        return _fitted(work, given)[0].best.config
    except Problem as e:
        notes.append(f"{e}; judged with one interval of {DEFAULT_US / 1000:g} ms for all classes")
        return alike(DEFAULT_US, {})


@command.command("load")
@click.argument("config", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("device", shell_complete=device)
@click.option(
    "--sysfs", type=click.Path(path_type=Path), default=SYSFS, show_default=True, metavar="FOLDER", help="Mount point of sysfs."
)
def _load(config: Path, device: str, sysfs: Path) -> None:
    """Put a CONFIG in force in the scheduler of DEVICE (such as sda), read it back and compare."""
    file = install(load(config), device, sysfs)
    click.echo(f"{config} is in force: {file} reads back the same")


@command.command("schedule")
@click.argument("device", shell_complete=device)
@click.argument("entries", nargs=-1, metavar="HH:MM=CONFIG...")
@click.option(
    "--persist", is_flag=True, help="Do so at each boot and at each of these times, too: a service and a timer of systemd."
)
@click.option("--forget", is_flag=True, help="Take the service and the timer away; what is in force stays.")
@click.option("--units", type=click.Path(path_type=Path), default=UNITS, show_default=True, help="Folder of systemd's units.")
@click.option(
    "--sysfs", type=click.Path(path_type=Path), default=SYSFS, show_default=True, metavar="FOLDER", help="Mount point of sysfs."
)
def _schedule(device: str, entries: tuple[str, ...], persist: bool, forget: bool, units: Path, sysfs: Path) -> None:
    """Put the CONFIG in force in the scheduler of DEVICE that is for this time of day.

    A CONFIG is in force from its time to that of the next one: `07:30=day.toml 19:00=night.toml`.
    """
    if forget:
        if entries or persist:
            raise Problem("was schedule --forget takes nothing but a DEVICE")
        found = Units.of(str(lasting(device) or device), units)
        _by_hand(found.drop())
        click.echo(f"{device}: nothing is changed by the clock any more")
        return
    table = timetable(entries)
    if not table:
        raise Problem("was schedule: give at least one HH:MM=CONFIG")
    configs = {one: load(one.config) for one in table}
    clock = datetime.now().astimezone()
    now, then = at(table, 60 * clock.hour + clock.minute)
    file = install(configs[now], device, sysfs)
    until = f" until {then.time}, when {then.config} follows" if len(table) > 1 else ""
    click.echo(f"{now.config} is in force{until}: {file} reads back the same")
    if persist:
        _persist(device, table, units)


def _persist(device: str, table: list[PartOfDay], units: Path) -> None:
    """Keep a timetable beyond a reboot."""
    program = shutil.which("headwaiter") or sys.argv[0]
    name = lasting(device)
    if name is None:
        click.echo(f"headwaiter: {device} has no name in {BY_ID}: after a reboot another disk may have this one", err=True)
    found = Units.of(str(name or device), units)
    there = [PartOfDay(one.minute, one.config.resolve()) for one in table]
    _by_hand(found.keep(str(Path(program).absolute()), str(name or device), there))
    click.echo(f"At each boot and at {', '.join(one.time for one in table)}, too: {found.folder / found.timer}")


def _by_hand(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"To be run: {line}")
