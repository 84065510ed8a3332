# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is compared: schedulers, each with settings of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from headwaiter.base.errors import Problem, shown
from headwaiter.base.nearest import did_you_mean
from headwaiter.base.parsing import assignment
from headwaiter.engine.policy_tables import Readers, Setting
from headwaiter.engine.schedulers import Scheduler, catalogue, find, find_preset, settings

ALL = "all"


@dataclass(frozen=True)
class Variant:
    """A scheduler under a name: its own, or with the settings that tell it from another variant (`bfq:low_latency=0`), or a
    preset's (`cfq-slice-2004`).
    """

    scheduler: str
    name: str
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_stock(self) -> bool:
        """Return whether an unchanged kernel of today has it."""
        return find(self.scheduler).is_model


def default_set() -> list[str]:
    """All schedulers: those of today's kernel first, then ours."""
    return sorted(catalogue(), key=lambda name: not find(name).is_model)


STOCK_VARIANTS = ("bfq:low_latency=0", "bfq:slice_idle=0", "mq-deadline:fifo_batch=1")
"""Settings that every kernel's schedulers have, and that matter on some loads: `headwaiter regret` with many shows that others
change little, or are never better (`-s bfq,bfq:low_latency=0,bfq:strict_guarantees=1,mq-deadline:writes_starved=8,…`)."""


def candidates(offered: Sequence[str]) -> list[str]:
    """Schedulers, each with the settings of STOCK_VARIANTS behind it."""
    return [one for name in offered for one in (name, *(v for v in STOCK_VARIANTS if v.split(":")[0] == name))]


def parse_variant(text: str, readers: Readers | None = None) -> Variant:
    """`NAME[:TUNABLE=VALUE…]`, the name of a scheduler or a preset; Problem if there is no such scheduler or tunable."""
    name, *pairs = text.strip().split(":")
    policy, own = find_preset(name)
    return Variant(policy.name, ":".join([name, *pairs]), settings(policy, [*own, *pairs], readers, "--sched"))


def parse_variants(text: str, pairs: Sequence[str] = (), readers: Readers | None = None) -> list[Variant]:
    """Return what `--sched` and `--set` say: variants in the order given, each once.

    `pairs` are [SCHEDULER.]NAME=VALUE, as of --set: for one scheduler, or for all that have NAME; a variant's own settings come
    first. Problem if a name or a value is wrong.
    """
    names = candidates(default_set()) if text == ALL else text.split(",")
    chosen = list({v.name: v for v in (parse_variant(name, readers) for name in names)}.values())
    common = settings_of(pairs, [v.scheduler for v in chosen], readers)
    return [replace(v, settings={**common[v.scheduler], **v.settings}) for v in chosen]


def settings_of(pairs: Sequence[str], chosen: Sequence[str], readers: Readers | None = None) -> dict[str, dict[str, Setting]]:
    """Return the settings of `--set` by scheduler. SCHED.k=v is for one scheduler, k=v for all of them that have k."""
    out: dict[str, dict[str, Setting]] = {name: {} for name in chosen}
    for pair in pairs:
        key, value = assignment("--set", pair, "[SCHEDULER.]TUNABLE=VALUE or [SCHEDULER.]TABLE=FILE")
        scheduler, dot, name = key.rpartition(".")
        if dot and find(scheduler).name not in out:
            raise Problem(f"--set {shown(pair, 200)}: {scheduler} is not among the schedulers compared")
        whose = [find(s) for s in ([scheduler] if dot else out)]
        having = [s for s in whose if s.has(name)]
        if not having:
            whom = f"{shown(scheduler)} has no" if scheduler else "none of the schedulers has a"
            raise Problem(f"--set {shown(pair, 200)}: {whom} tunable or table '{shown(name)}'{_meant(name, whose)}")
        rows: Setting | None = None  # a file is read once: it may be a FIFO
        for s in having:
            is_table = name in s.tables
            out[s.name][name] = s.parse(f"--set {pair}", name, value, readers) if rows is None else rows
            rows = out[s.name][name] if is_table else None
    return out


def _meant(name: str, schedulers: Sequence[Scheduler]) -> str:
    return did_you_mean(name, [known for s in schedulers for known in (*s.tunables, *s.tables)])
