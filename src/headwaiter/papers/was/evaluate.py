# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a configuration is worth on a load: `was` with it beside `as`, in the figures of the paper and in throughput."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.sim import Drive, Load, Options, Outcome, simulate
from headwaiter.papers.was.config import POLICY, TABLE, Config
from headwaiter.papers.was.observe import RULES, SCHEDULER
from headwaiter.study.perturb import perturbed
from headwaiter.study.trial import SoFar

ONLINE = "was-online"
LOST = 0.02
"""Share of throughput that may be lost."""


@dataclass(frozen=True)
class WaitSums:
    """Sums over runs: waits met and in vain, the time of those in vain in ms, bytes and seconds."""

    met: int
    vain: int
    vain_ms: float
    bytes: int
    seconds: float

    @property
    def cost_ms(self) -> float | None:
        """T_F/A_S; None where no wait was met."""
        return self.vain_ms / self.met if self.met else None

    @property
    def rate_mbps(self) -> float:
        """MB/s over all runs."""
        return self.bytes / 1e6 / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Evaluated:
    """One load under both."""

    name: str
    before: WaitSums
    after: WaitSums

    @property
    def throughput(self) -> float:
        """Return the throughput of `was` as a multiple of that of `as`."""
        return self.after.rate_mbps / self.before.rate_mbps if self.before.rate_mbps else 1.0

    @property
    def keeps_up(self) -> bool:
        """No more throughput is lost than may be."""
        return self.throughput >= 1 - LOST

    @property
    def better(self) -> bool | None:
        """T_F/A_S is lower; None where it cannot be told: `as` had nothing to lose, or neither met a wait."""
        before, after = self.before.cost_ms, self.after.cost_ms
        if before is None or after is None:
            # Where no wait is met there is no ratio: less time in vain is better then.
            return None if self.before.vain_ms == self.after.vain_ms else self.after.vain_ms < self.before.vain_ms
        return None if before == after else after < before


def _figures(outcomes: list[Outcome]) -> WaitSums:
    return WaitSums(
        sum(o.totals["a_success"] for o in outcomes),
        sum(o.totals["a_fail"] for o in outcomes),
        sum(o.totals["t_fail_ns"] for o in outcomes) / 1e6,
        sum(int(o.tallies.sectors.sum()) * SECTOR_BYTES for o in outcomes),
        sum(
            (int(o.tallies.last_done_ns.max()) - int(o.tallies.first_issue_ns.min())) / 1e9
            for o in outcomes
            if len(o.tallies.ios)
        ),
    )


def _run(
    scheduler: str,
    drive: Drive,
    loads: Sequence[Load],
    settings: Mapping[str, Setting],
    options: Options,
    runs: int,
    so_far: SoFar | None = None,
) -> WaitSums:
    """Each load as it is and `runs` times a little changed."""
    outcomes = []
    for load, number in itertools.product(loads, range(runs + 1)):
        changed, changed_options = perturbed(load, options, number)
        outcomes.append(simulate(scheduler, drive, changed, settings, changed_options, progress=so_far.tick if so_far else None))
        if so_far:
            so_far.over(outcomes[-1].totals["completed"])
    return _figures(outcomes)


def run_as(drive: Drive, loads: Sequence[Load], options: Options, runs: int) -> WaitSums:
    """Return what `as` makes of loads, with the rules that WAS builds on."""
    return _run(SCHEDULER, drive, loads, RULES, options, runs)


def run_was(
    config: Config, drive: Drive, loads: Sequence[Load], options: Options, runs: int, so_far: SoFar | None = None
) -> WaitSums:
    """Return what `was` makes of them with a configuration. so_far: is told how many I/Os are done."""
    return _run(POLICY, drive, loads, {**RULES, TABLE: config.rows()}, options, runs, so_far)


def run_online(drive: Drive, loads: Sequence[Load], options: Options, runs: int) -> WaitSums:
    """Return what `was-online` makes of them, which needs no configuration."""
    return _run(ONLINE, drive, loads, RULES, options, runs)


def verdict(name: str, drive: Drive, load: Load, config: Config | None, options: Options, runs: int) -> Evaluated:
    """`as` on a load, and `was` with a configuration, or `was-online` without one."""
    loads = [load]
    after = run_was(config, drive, loads, options, runs) if config else run_online(drive, loads, options, runs)
    return Evaluated(name, run_as(drive, loads, options, runs), after)
