# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small search over a scheduler's tunables: chosen on the first half of a recording, reported on the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Drive, Options
from headwaiter.live.gate import halves
from headwaiter.live.schema import Tuned
from headwaiter.study.answer import answer
from headwaiter.study.compare import RANKINGS
from headwaiter.study.inkernel import untold
from headwaiter.study.ongoing import going_on
from headwaiter.study.schema import Criterion
from headwaiter.study.trial import measure_all
from headwaiter.study.variants import Variant
from headwaiter.study.workload import OPEN, Reading, Workload, replay
from headwaiter.traces import part

GRID: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "mq-deadline": (
        {"fifo_batch": 1},
        {"fifo_batch": 64},
        {"read_expire": 100},
        {"read_expire": 2000},
        {"writes_starved": 8},
        {"read_expire": 100, "fifo_batch": 1},
    ),
    "bfq": ({"low_latency": 0}, {"slice_idle": 0}, {"slice_idle": 2}, {"low_latency": 0, "slice_idle": 0}),
    "kyber": ({"read_lat_nsec": 500_000}, {"read_lat_nsec": 20_000_000}, {"write_lat_nsec": 50_000_000}),
    "as": ({"antic_expire": 3}, {"antic_expire": 12}),
}
"""What is tried. Few settings, because the more are tried, the better the best of them looks by chance."""
FEWEST = 200
"""Of fewer requests in a half nothing is chosen."""


def tune(
    scheduler: str,
    base: Mapping[str, int],
    work: Workload,
    drive: Drive,
    options: Options,
    criterion: Criterion,
    margin: float,
    progress: Callable[[str, int], None] | None = None,
) -> Tuned | None:
    """The best of GRID for a scheduler, against its settings `base`; None if there is nothing to try, or nothing is better.

    Nothing is better: on the first half none of the settings is ahead by the margin.
    """
    grid = GRID.get(scheduler, ())
    trace = work.trace
    if not grid or trace is None:
        return None
    middle = halves(trace)
    if min(middle, len(trace) - middle) < FEWEST:
        return None
    loads = [
        going_on(replay(Path(work.name), part(trace, *rows), drive, Reading(work.replay)), drive).load
        for rows in ((0, middle), (middle, len(trace)))
    ]
    variants = [_variant(scheduler, base), *(_variant(scheduler, {**base, **one}) for one in grid)]

    trials = measure_all([(untold(variant), options) for variant in variants], drive, loads[0], 0, progress, tasks=False)
    figure, sign = RANKINGS[criterion][1:]
    best = min(trials, key=lambda trial: sign * figure.of(trial.result))
    ahead, behind = figure.of(best.result), figure.of(trials[0].result)
    if best is trials[0] or abs(ahead - behind) <= margin * max(abs(ahead), abs(behind)):
        return None
    again = measure_all([(untold(trial.variant), options) for trial in (trials[0], best)], drive, loads[1], tasks=False)
    first, second = (
        answer(pair, criterion, is_open=work.replay == OPEN, current=trials[0].variant.name, margin=margin).margins
        for pair in ([trials[0], best], again)
    )
    if not first or not second:  # overloaded
        return None
    settings = {name: value for name, value in best.variant.settings.items() if isinstance(value, int)}
    changed = {name: value for name, value in settings.items() if base.get(name) != value}
    policy = find(scheduler)
    return Tuned(
        scheduler=policy.kernel_name,
        tunables={name: policy.tunables[name].show(value) for name, value in changed.items()},
        tried=len(grid),
        first=first[1],
        second=second[1],
        taken=second[1].judgement == "better",
    )


def _variant(scheduler: str, settings: Mapping[str, int]) -> Variant:
    return Variant(scheduler, ":".join([scheduler, *(f"{k}={v}" for k, v in settings.items())]), dict(settings))
