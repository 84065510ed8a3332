# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""When `watch` changes a scheduler: an advantage over several windows, confirmed, no sooner than a while after the last change,
worth more than the switch costs, and undone if what is measured has become worse.

The last window hardly predicts the next one: following it loses on steady loads. So a change needs evidence, and few are made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Literal

from headwaiter.base.figures import brief
from headwaiter.study.schema import Answer, Lever

DecisionOutcome = Literal["kept", "changed", "declined", "undone"]
SWITCH_S = 0.025
"""Time of a switch when nothing is queued."""
FEWEST = 50
"""Fewer requests in a window tell nothing."""
REGRET_PERCENT: Mapping[str, float] = json.loads((Path(__file__).parent / "regret.json").read_text(encoding="utf-8"))
"""What schedulers lose against the best compromise, by their names in the kernel, in the mean over many
loads and drives (docs/regret.md): `make regret-docs` measures it."""
_DAY_S = 86400.0
_ALIKE_SIZE, _ALIKE_READS = 2.0, 0.3
"""Loads are alike whose mean request sizes differ by a smaller factor, and shares of reads by less."""


@dataclass(frozen=True)
class Caution:
    """The evidence that a change needs.

    margin: the least advantage, a share; windows: over so many, or a greater one over fewer; confirm: so many times in a row;
    dwell: windows after a change without another; changes: most in a day; cost: a switch may take so large a share of what it
    gains in the dwell.
    """

    margin: float = 0.10
    windows: int = 3
    confirm: int = 2
    dwell: int = 6
    changes: int = 12
    cost: float = 0.01


@dataclass(frozen=True)
class Window:
    """Figures of a disk over a while.

    advantage: of schedulers by their names in the kernel, the logarithm of how much better they would be than the one in force;
    empty if that cannot be told, and `trouble` says why. waited_s: for how long programs waited.
    """

    seconds: float
    requests: int
    mbps: float
    latency_ms: float
    request_bytes: float
    read_share: float
    contention: float | None = None
    outstanding: float = 0.0
    lost: int = 0
    waited_s: float = 0.0
    advantage: Mapping[str, float] = field(default_factory=dict)
    trouble: str = ""
    load: str = ""
    """Description of the window, where the other fields do not tell it."""
    answer: Answer | None = None
    """The judge's answer about the schedulers, if it was asked."""
    levers: Sequence[Lever] = ()
    """Levers that help beside a scheduler, if they were asked for."""


@dataclass(frozen=True)
class Decision:
    """A decision, and why; `to` is the scheduler that is to be in force. gain: the predicted one, a share of the waiting."""

    outcome: DecisionOutcome
    to: str
    reason: str
    gain: float = 0.0


@dataclass(frozen=True)
class Blocked:
    """A scheduler that made things worse: it is not tried before a time, and for twice as long if it does so again."""

    until: float
    for_s: float

    def at(self, now_s: float) -> Blocked:
        """No longer than it may be from a time on: a clock that was wrong may have told when it began."""
        for_s = min(self.for_s, _DAY_S)
        return Blocked(min(self.until, now_s + for_s), for_s)


@dataclass(frozen=True)
class Memory:
    """The state that outlives a restart. changes: their times; times are of the clock that decide() is given."""

    changes: Sequence[float] = ()
    blocked: Mapping[str, Blocked] = field(default_factory=dict)

    def shifted(self, by_s: float) -> Memory:
        """Return the same by another clock."""
        blocked = {name: replace(one, until=one.until + by_s) for name, one in self.blocked.items()}
        return Memory(tuple(time + by_s for time in self.changes), blocked)

    def trusted(self, now_s: float) -> Memory:
        """Without what a clock that was wrong has left: changes that are still to come, and blocks without an end."""
        changes = tuple(time for time in self.changes if time <= now_s)
        return Memory(changes, {name: one.at(now_s) for name, one in self.blocked.items()})


@dataclass
class Decider:
    """Decide for one disk; `current` is the scheduler in force."""

    current: str
    caution: Caution = field(default_factory=Caution)
    memory: Memory = field(default_factory=Memory)
    _windows: list[Window] = field(default_factory=list)
    _since: int | None = None
    """Windows since the last change."""
    _best: str = ""
    _confirmed: int = 0
    _before: list[Window] = field(default_factory=list)
    _former: str = ""
    """The scheduler before a change that is on trial."""
    _after: list[Window] = field(default_factory=list)
    """Measurements since the change."""

    def reset(self, current: str) -> None:
        """Somebody else has chosen another scheduler: what was seen under the former one says nothing now."""
        self.current, self._windows, self._since, self._best, self._confirmed = current, [], None, "", 0
        self._former, self._before, self._after = "", [], []

    def decide(self, window: Window, now_s: float) -> Decision:
        """After a window. The caller makes the change, or calls failed(). now_s: of a clock that nobody sets."""
        # A change is judged by what is measured, whether or not a replay can explain that.
        if self._former and window.requests >= FEWEST and not (window.trouble and window.lost):
            self._after.append(window)
            if undone := self._trial(now_s):
                return undone
        if window.trouble:
            return Decision("declined", self.current, window.trouble)
        if self._since is not None:
            self._since += 1
        self._windows = [*self._windows, window][-self.caution.windows :]
        return self._choose(window, now_s)

    def _trial(self, now_s: float) -> Decision | None:
        """Return whether a change has made things worse: as measured, at a load that is alike."""
        former, enough = self._former, min(len(self._after), self.caution.windows)
        now = next((w for n in range(1, enough + 1) if self._is_worse(w := self._after[-n:])), None)
        if now is None:
            alike = all(_alike(window, self._before[-1]) for window in self._after[-self.caution.windows :])
            if len(self._after) >= (self.caution.windows if alike else self.caution.dwell):
                self._former = ""  # it is no worse, or the load is another one by now
            return None
        after_ms, before_ms = (median(w.latency_ms for w in windows) for windows in (now, self._before))
        self._former = ""
        known = self.memory.blocked.get(self.current)
        for_s = 2 * known.for_s if known else 2 * self.caution.dwell * now[-1].seconds
        for_s = min(for_s, _DAY_S)
        blocked = {**self.memory.blocked, self.current: Blocked(now_s + for_s, for_s)}
        self.memory = replace(self.memory, blocked=blocked)
        what = f"latency rose from {brief(before_ms)} to {brief(after_ms)} ms under {self.current}, at like load"
        self._change(former, now_s, trial=False)
        return Decision("undone", former, f"{what}: not tried for {for_s:.0f} s")

    def _is_worse(self, now: Sequence[Window]) -> bool:
        """Return whether the load is alike and latency higher, by so much that so many windows tell it, and throughput is not."""
        after_ms, before_ms = (median(w.latency_ms for w in windows) for windows in (now, self._before))
        rate, former_rate = (fmean(w.mbps for w in windows) for windows in (now, self._before))
        edge = math.exp(self._bar(len(now)))
        slower = after_ms > before_ms * edge and rate <= former_rate * (1 + self.caution.margin)
        return slower and all(_alike(window, self._before[-1]) for window in now)

    def _choose(self, window: Window, now_s: float) -> Decision:
        caution = self.caution
        best, lead, number = _all_round(self._ahead(), caution.margin)
        gain = 1 - math.exp(-lead)
        if not best:
            self._best, self._confirmed = "", 0
            return Decision("kept", self.current, "nothing else is far enough ahead, for long enough")
        ahead = f"{best} would be ahead by {100 * math.expm1(lead):.0f}% over {number} window{'s' if number > 1 else ''}"
        # One that is so many times as great as a single window must show needs no others to confirm it.
        sure = max(1, int(lead / self._bar(1)))
        self._confirmed = sure + (self._confirmed if best == self._best else 0)
        self._best = best
        if hindrance := self._hindrance(best, gain, now_s):
            return Decision("kept" if hindrance[0] else "declined", self.current, f"{ahead}; {hindrance[1]}", gain)
        former = self.current
        self._change(best, now_s, trial=True)
        return Decision("changed", best, f"{ahead}, against {former}", gain)

    def _ahead(self) -> dict[str, tuple[float, int]]:
        """Return the schedulers that are far enough ahead: the mean advantage, and over how many windows."""
        found: dict[str, tuple[float, int]] = {}
        for name in self._windows[-1].advantage:
            for last in range(1, len(self._windows) + 1):
                leads = [w.advantage.get(name, -math.inf) for w in self._windows[-last:]]
                bar = self._bar(last) + _handicap(self.current, name)
                if name != self.current and min(leads) > 0 and fmean(leads) > max(found.get(name, (0.0, 0))[0], bar):
                    found[name] = (fmean(leads), last)
        return found

    def _bar(self, windows: int) -> float:
        """The least mean advantage over the last so many windows: the fewer, the more, for their mean scatters more."""
        return math.log1p(self.caution.margin) * (self.caution.windows / windows) ** 2

    def _hindrance(self, best: str, gain: float, now_s: float) -> tuple[bool, str] | None:
        """(whether more of the same will do, why not yet) of a change."""
        caution, last = self.caution, self._windows[-1]
        if self._confirmed < caution.confirm:
            return True, f"to be confirmed ({self._confirmed} of {caution.confirm})"
        if self._since is not None and self._since < caution.dwell:
            return True, f"the last change was {self._since} windows ago, and {caution.dwell} are to pass"
        blocked = self.memory.blocked.get(best)
        if blocked and now_s < blocked.until:
            return False, f"it made things worse, and is not tried for {blocked.until - now_s:.0f} s more"
        recent = [time for time in self.memory.changes if time > now_s - _DAY_S]
        if len(recent) >= caution.changes:
            return False, f"{len(recent)} changes in a day are enough"
        cost_s = last.outstanding * last.seconds / max(1, last.requests) + SWITCH_S
        gained_s = gain * fmean(w.waited_s for w in self._windows) * caution.dwell
        if cost_s > caution.cost * gained_s:
            return (
                False,
                f"a switch costs {brief(cost_s, 2)} s, more than {100 * caution.cost:g}%"
                f" of the {brief(gained_s, 2)} s that it gains",
            )
        return None

    def _change(self, to: str, now_s: float, trial: bool) -> None:
        self._former, self._before = (self.current, self._windows) if trial else ("", [])
        self._after = []
        self.current, self._windows, self._since, self._best, self._confirmed = to, [], 0, "", 0
        self.memory = replace(self.memory, changes=(*(t for t in self.memory.changes if t > now_s - _DAY_S), now_s))

    def failed(self, current: str) -> None:
        """The change could not be made: `current` is in force."""
        self.reset(current)


def _handicap(current: str, other: str) -> float:
    """Return what another scheduler must be ahead by beside the margin: what it loses more than the current one on other loads.

    The load will change, and a scheduler is seldom changed in time.
    """
    if current not in REGRET_PERCENT or other not in REGRET_PERCENT:
        return 0.0
    return max(0.0, math.log((100 - REGRET_PERCENT[current]) / (100 - REGRET_PERCENT[other])))


def _all_round(ahead: Mapping[str, tuple[float, int]], margin: float) -> tuple[str, float, int]:
    """The scheduler to take, with its lead and windows; ("", 0, 0) if there is none.

    Where several spare nearly as much of the present waiting as the best does, a short window cannot tell them apart, and the
    load will not stay as it is: the one with the least regret elsewhere is taken.
    """
    most = max((lead for lead, _ in ahead.values()), default=0.0)
    near = [name for name, (lead, _) in ahead.items() if math.exp(-lead) - math.exp(-most) < margin]
    if not near:
        return "", 0.0, 0
    best = min(near, key=lambda name: (REGRET_PERCENT.get(name, 100.0), -ahead[name][0]))
    return best, *ahead[best]


def _alike(a: Window, b: Window) -> bool:
    sizes = sorted((max(1.0, a.request_bytes), max(1.0, b.request_bytes)))
    return sizes[1] <= sizes[0] * _ALIKE_SIZE and abs(a.read_share - b.read_share) <= _ALIKE_READS
