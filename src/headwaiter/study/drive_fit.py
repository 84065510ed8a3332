# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is this the right drive? A recording's own completions against those of a drive model that serves the same requests.

Where it was recorded when the drive was given each request, the model is given them in that order, each as long after the one
before it was done as recorded: no scheduler has a part in that. Else the model serves the recorded requests under the scheduler
that was in force, if it is known, and each program goes on when the model has served it: a scheduler that waits, or sorts well,
may make latencies ten times shorter, and at recorded times it would not see the requests that it has held back. If it is not
known they are served first come, first served, at their recorded times, and, where programs are known, once more as they go on;
the better one counts, for a scheduler that sorts keeps up with more than that order does. Two figures are compared: for how
long the drive was busy, which hardly depends on the scheduler that was in use, and the latencies. A model that is too slow
piles requests up, and its latencies show that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.base.figures import digits
from headwaiter.drives import bundled, load
from headwaiter.drives.choose import DEFAULT_DRIVE, of_device, open_drive
from headwaiter.drives.enlarge import enlarged, size_text
from headwaiter.drives.profile import Profile
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import Drive, Options, Rows, simulate
from headwaiter.study.changes import latency_text
from headwaiter.study.device_depth import DeviceDepth, as_recorded, device_depth
from headwaiter.study.inkernel import depth_of, kernel_options, recorded_options, untold
from headwaiter.study.schema import Fit
from headwaiter.study.variants import Variant
from headwaiter.study.workload import NR_REQUESTS, Reading, Workload, open_forest, read_recording, read_workload, replay
from headwaiter.traces import Source, Trace, TraceTask, part, with_flushes
from headwaiter.traces.busy import busy_ns

F64 = NDArray[np.float64]
AUTO = "auto"
UNKNOWN = "noop"
"""What a drive is fitted under where the scheduler that was in force is not known."""
DIRECT = "direct"
"""No scheduler: the drive's own requests, as it was given them."""
TOLD_SHARE = 0.9
"""If a smaller share of requests tells when the drive was given them, that is taken for not recorded."""
SAMPLE = 20_000
"""So many requests of a recording are looked at."""
FEWEST = 30
"""With fewer completions nothing can be said."""
CLOSE = 1.3
"""A model that is off by a smaller factor needs no word."""
REFUSED = 2.0
"""One that is off by a greater factor must not rank anything."""
VOLUME_FACTOR = 1.5
"""A cloud volume's table of latencies and its limits explain much, so it has to explain a recording by so much better."""
LARGE = "wd-re-4tb"
"""Enlarged, it stands in for a disk that is larger than any bundled one."""
SCHEDULING = 4.0
"""Mean latency may differ by such a factor between schedulers of one drive."""


def fit(trace: Trace, drive: Drive, scheduler: str = UNKNOWN) -> Fit | None:
    """Return how well a drive model explains a recording; None if that has too few completions, or lies beyond the drive's end.

    scheduler: the one in force at the recording, if it is known.
    """
    sample = _sample(trace)
    if (given := at_drive(sample)) is not None:
        sample, scheduler = given, DIRECT
    sample = with_flushes(sample)
    known = sample.complete_ns >= 0
    if known.sum() < FEWEST or (sample.sector + sample.sectors > drive.sectors).any():
        return None
    ways = [_served(sample, drive, scheduler)]
    if scheduler == UNKNOWN and sample.tasks_known and known.all():
        ways.append(_going_on(sample, drive))
    return min((_fit(sample, rows, known, drive.name) for rows in ways), key=score)


def _fit(sample: Trace, rows: Rows, known: NDArray[np.bool_], name: str) -> Fit:
    """Compare the recorded times with a model's."""
    issue, recorded = sample.time_ns[known], sample.complete_ns[known]
    model_issue, modelled = np.asarray(rows.issue_ns)[known], np.asarray(rows.complete_ns)[known]
    size = int(sample.sectors[known].sum(dtype=np.uint64)) * SECTOR_BYTES
    busy, model_busy = (max(1, busy_ns(*each)) / 1e9 for each in ((issue, recorded), (model_issue, modelled)))
    lat, model_lat = (recorded - issue) / 1e6, (modelled - model_issue) / 1e6
    return Fit(
        drive=name,
        recorded_mbps=size / 1e6 / busy,
        model_mbps=size / 1e6 / model_busy,
        recorded_mean_ms=float(lat.mean()),
        model_mean_ms=float(model_lat.mean()),
        off=max(_factor(busy, model_busy), _factor(float(lat.mean()), float(model_lat.mean())) / SCHEDULING),
        distance=_distance(lat, model_lat),
    )


def _sample(trace: Trace) -> Trace:
    """The requests that are looked at."""
    return part(trace, 0, min(len(trace), SAMPLE))


def _depth(trace: Trace) -> DeviceDepth | None:
    sample = _sample(trace)
    return device_depth(sample, at_drive(sample))


def at_drive(trace: Trace) -> Trace | None:
    """Return what the drive was given, when, as requests of one thread; None where that was not recorded of nearly all.

    What was merged is one request again.
    """
    if trace.issue_ns is None:
        return None
    trace = with_flushes(trace)
    assert trace.issue_ns is not None
    rows = np.flatnonzero((trace.issue_ns >= 0) & (trace.complete_ns > trace.issue_ns))
    if len(rows) < TOLD_SHARE * len(trace) or len(rows) < FEWEST:
        return None
    rows = rows[np.lexsort((trace.sector[rows], trace.op[rows], trace.issue_ns[rows]))]
    issue, op, sector, sectors = trace.issue_ns[rows], trace.op[rows], trace.sector[rows], trace.sectors[rows]
    first = np.ones(len(rows), bool)
    first[1:] = (issue[1:] != issue[:-1]) | (op[1:] != op[:-1]) | (sector[1:] != sector[:-1] + sectors[:-1])
    begin = np.flatnonzero(first)
    one = np.zeros(len(begin), np.uint32)
    return replace(
        trace,
        time_ns=issue[begin],
        complete_ns=np.maximum.reduceat(trace.complete_ns[rows], begin),
        task=one,
        group=one,
        op=op[begin],
        flags=trace.flags[rows][begin],
        sector=sector[begin],
        sectors=np.add.reduceat(sectors, begin, dtype=np.uint32),
        ioprio=trace.ioprio[rows][begin],
        tasks=(TraceTask(0),),
        tasks_known=True,
        issue_ns=None,
        insert_ns=None,
    )


def _served(sample: Trace, drive: Drive, scheduler: str) -> Rows:
    """The model's times of these requests."""
    if scheduler == DIRECT:
        return _going_on(sample, drive)
    if scheduler == UNKNOWN:
        return simulate(scheduler, drive, open_forest(sample), options=Options(record=True)).rows
    options = recorded_options(Options(record=True, join_arriving=True, nr_requests=NR_REQUESTS), sample)
    options = kernel_options(options, scheduler, depth_of(drive, options))
    load = replay(Path(), sample, drive, Reading()).load
    return simulate(scheduler, drive, load, untold(Variant(scheduler, scheduler)).settings, options).rows


def _going_on(sample: Trace, drive: Drive) -> Rows:
    """The model's times where each program goes on when it is served, first come, first served."""
    return simulate(UNKNOWN, drive, replay(Path(), sample, drive, Reading()).load, options=Options(record=True)).rows


def _factor(a: float, b: float) -> float:
    """Return how many times the one is the other, whichever is greater."""
    low, high = sorted((max(a, 1e-9), max(b, 1e-9)))
    return high / low


def _distance(recorded: F64, modelled: F64) -> float:
    """The factor between two distributions of latency: the mean over quantiles, of its logarithm."""
    at = np.arange(0.05, 1.0, 0.05)
    logs = np.log(np.maximum(np.quantile(recorded, at), 1e-6)) - np.log(np.maximum(np.quantile(modelled, at), 1e-6))
    return float(np.exp(np.abs(logs).mean()))


def score(found: Fit) -> float:
    """Less is better: busy time and latencies count alike."""
    return math.log(found.off if found.off > 1 else 1.0) + math.log(found.distance)


def best_fit(
    trace: Trace,
    drives: Iterable[Drive] | None = None,
    scheduler: str = UNKNOWN,
    progress: Callable[[str, int], None] | None = None,
) -> tuple[Drive, Fit] | None:
    """The drive that explains a recording best; None if it tells nothing, or fits on none.

    drives None: the bundled ones, those that are too small enlarged, disks with the depth of the recorded device. Which class a
    drive is of is a matter of times.
    progress(drive, 0) comes before a drive is tried, and progress(drive, 1) after.
    """
    if drives is None:
        depth = _depth(trace)
        grown = (enlarged(load(path), _reach(trace)) for path in bundled().values())
        drives = [as_recorded(drive, depth) for drive in grown if drive is not None]
    found = []
    for drive in drives:
        if progress:
            progress(drive.name, 0)
        if how := fit(trace, drive, scheduler):
            found.append((drive, how))
        if progress:
            progress(drive.name, 1)
    return min(found, key=lambda pair: score(pair[1]) + _prior(pair[0]), default=None)


def _prior(drive: Drive) -> float:
    """Return what a drive's score is to be worse by."""
    return math.log(VOLUME_FACTOR) if isinstance(drive, Profile) and drive.kind == "volume" else 0.0


def _reach(trace: Trace) -> int:
    """Behind which sector nothing was asked for."""
    return int((trace.sector + trace.sectors).max())


def choose_drive(
    trace: Trace | None, name: str, scheduler: str = UNKNOWN, progress: Callable[[str, int], None] | None = None
) -> tuple[Drive, str]:
    """The bundled drive for the recording in a workload of that name, and a note that says why.

    The profile of the recorded device, if there is one and the recorded times do not speak against it; else the one that explains
    the recording best, if it is too small, enlarged. progress: see best_fit(). Problem if it is no recording, tells nothing, or
    reaches beyond all.
    """
    needs = f"{name}: --drive auto needs a recording with completions"
    if trace is None:
        raise Problem(f"{needs}, and this is no recording")
    own, why = _of_its_device(trace, scheduler)
    if own is not None:
        return own, why
    drive, note = _of_its_times(trace, name, needs, scheduler, progress)
    return drive, f"{note}; {why}" if why else note


def _of_its_device(trace: Trace, scheduler: str) -> tuple[Drive | None, str]:
    """The profile of the device that was recorded, or None; and what is to be said."""
    own = of_device(trace.device_model)
    drive = own and enlarged(own, _reach(trace))
    if drive is None:
        return None, ""
    drive = as_recorded(drive, _depth(trace))
    how = fit(trace, drive, scheduler)
    if how and how.off > REFUSED:
        return None, f"{drive.name}, the profile of the recorded '{trace.device_model}', does not: {told(how)}"
    times = f": {told(how)}" if how else ""
    return drive, f"--drive auto: {drive.name} is the profile of the recorded '{trace.device_model}'{times}"


def _of_its_times(
    trace: Trace, name: str, needs: str, scheduler: str, progress: Callable[[str, int], None] | None
) -> tuple[Drive, str]:
    """The one that explains the recording best, and how well."""
    known = completions(trace)
    if known < FEWEST:
        raise Problem(f"{needs}, and {f'this has only {known} (of {FEWEST} that are needed)' if known else 'this has none'}")
    found = best_fit(trace, scheduler=scheduler, progress=progress)
    if found is None:
        raise Problem(
            f"{name}: the recording reaches to {size_text(_reach(trace))}, and no bundled drive can be enlarged so far: make a"
            " profile with `headwaiter drives new`"
        )
    drive, how = found
    if how.off > REFUSED:
        return drive, (
            f"--drive auto: no bundled drive explains the recording; the nearest is {drive.name}: {told(how)}."
            " `headwaiter drives new` makes a profile of your own"
        )
    return drive, f"--drive auto: {drive.name} explains the recording best: {told(how)}"


def drive_for(
    drive: str | Drive | None,
    trace: Trace | None,
    name: str,
    scheduler: str = UNKNOWN,
    progress: Callable[[str, int], None] | None = None,
) -> tuple[Drive, tuple[str, ...]]:
    """The drive to simulate, and what is to be said of the choice.

    None: as AUTO; where a recording tells nothing, the default one, or the smallest that is large enough. AUTO, or a name: that;
    see choose_drive(), also for progress, and open_drive().
    """
    scheduler = trace.scheduler or scheduler if trace and scheduler == UNKNOWN else scheduler
    if drive == AUTO or (drive is None and trace is not None and _tells_a_drive(trace)):
        device, note = choose_drive(trace, name, scheduler, progress)
        return device, (note,)
    if drive is not None:
        return (open_drive(drive) if isinstance(drive, str) else drive), ()
    device = open_drive(DEFAULT_DRIVE)
    if trace is None or _reach(trace) <= device.sectors:
        return device, ()
    known = (load(path) for path in bundled().values())
    large = [one for one in known if one.rotational and one.sectors >= _reach(trace)]  # as the default one, they rotate
    found = min(large, key=lambda one: one.sectors) if large else enlarged(load(bundled()[LARGE]), _reach(trace))
    if found is None:
        return device, ()
    return found, (
        f"the recording reaches to {size_text(_reach(trace))}, beyond the end of {device.name}:"
        f" {found.name} stands in for its disk",
    )


def _tells_a_drive(trace: Trace) -> bool:
    return completions(trace) >= FEWEST or of_device(trace.device_model) is not None


def completions(trace: Trace) -> int:
    """Return how many of the requests that are looked at tell when they were done."""
    return int((trace.complete_ns[:SAMPLE] >= 0).sum())


def read_on_drive(
    given: Path | Trace,
    drive: str | Drive | None,
    how: Reading,
    scheduler: str = UNKNOWN,
    progress: Callable[[str, int], None] | None = None,
) -> tuple[Workload, Drive]:
    """A workload, from a file or a trace that has been read, and the drive that it is fitted to; see drive_for().

    scheduler: the one in force at the recording, if it is known. progress: see choose_drive().
    """
    if isinstance(given, Trace):
        path, read = Path(given.source), given

        def fitted(device: Drive) -> Workload:
            return replay(path, given, device, how)
    else:
        path, source = given, Source(given)
        found = read_recording(path, how, source) if drive in (AUTO, None) else None

        def fitted(device: Drive) -> Workload:
            return read_workload(path, device, how, source)

        if found is None:
            device, _ = drive_for(drive, None, path.name)
            return fitted(device), device
        read = found
    device, notes = drive_for(drive, read, path.name, scheduler, progress)
    work = fitted(device)
    return replace(work, notes=(*work.notes, *notes)), device


def told(found: Fit) -> str:
    """Both sides, in a few words."""
    return (
        f"recorded {digits(found.recorded_mbps)} MB/s while busy, mean latency {latency_text(found.recorded_mean_ms)};"
        f" this profile {digits(found.model_mbps)} MB/s, {latency_text(found.model_mean_ms)}"
    )


def doubts(work: Workload, drive: Drive) -> tuple[str, ...]:
    """The line of doubt(), if there is one."""
    recording = work.recording
    under = (recording.scheduler if recording else "") or UNKNOWN
    line, _ = doubt(fit(recording, drive, under) if recording else None, recording, drive, under)
    return (line,) if line else ()


def doubt(found: Fit | None, trace: Trace | None, drive: Drive, scheduler: str = UNKNOWN) -> tuple[str, bool]:
    """(a line if the drive is not the recorded one, else ''; whether it is so far off that nothing may be ranked)."""
    if found is None or trace is None or (found.off <= CLOSE):
        return "", False
    line = f"this may be the wrong drive: {told(found)}"
    other = best_fit(trace, scheduler=scheduler)
    if other and other[0].name != drive.name and other[1].off < found.off:
        option = AUTO if other[0].name not in bundled() else other[0].name
        line += f": choose another (--drive {option} fits{'' if other[1].off <= CLOSE else ' better'})"
    return line, found.off > REFUSED
