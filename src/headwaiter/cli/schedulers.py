# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter schedulers: what there is, and what can be tuned."""

from __future__ import annotations

from pathlib import Path

import click
from rich import box
from rich.table import Table
from rich.text import Text

from headwaiter.base.records import like
from headwaiter.cli import _complete as complete
from headwaiter.cli._commands import Command
from headwaiter.cli._output import output_options, write_json
from headwaiter.engine.policy_tables import LEFT_OUT, PolicyColumn
from headwaiter.engine.policy_tables import PolicyTable as Given
from headwaiter.engine.schedulers import Scheduler, Tunable, catalogue, find_preset
from headwaiter.report.terminal import console
from headwaiter.study.schema import (
    ColumnRow,
    CountersRow,
    PresetRow,
    SchedulerRow,
    SchedulersDocument,
    StatRow,
    TableRow,
    TunableRow,
)


def bounds(t: Tunable) -> str:
    """The values that a tunable takes, as people write them."""
    if t.choices:
        return ", ".join(t.choices)
    limits = {-(2**31): "INT_MIN", 2**31 - 1: "INT_MAX", 2**63 - 1: "INT64_MAX", -(2**63): "INT64_MIN"}
    return "0, 1" if t.is_flag else f"{limits.get(t.minimum, t.minimum)}..{limits.get(t.maximum, t.maximum)}"


def limits(c: PolicyColumn) -> str:
    """The cells that a column takes, as people write them."""
    cells = ", ".join(c.choices) if c.choices else f"{c.minimum}..{c.maximum}{f' {c.unit}' if c.unit else ''}"
    ascending = ", each row more than the one before" if c.ascending else ""
    return f"{cells}{ascending}{f'; if left out: {c.left_out}' if c.left_out != LEFT_OUT[0] else ''}"


def rows(t: Given) -> str:
    """Return how long a table is, and what a row of it holds."""
    return f"{t.min_rows} to {t.max_rows} rows of {', '.join(c.name for c in t.columns)}."


def _row(s: Scheduler) -> SchedulerRow:
    return like(
        SchedulerRow,
        s,
        tunables={name: like(TunableRow, tunable) for name, tunable in s.tunables.items()},
        tables={
            name: like(TableRow, table, columns=[like(ColumnRow, column) for column in table.columns])
            for name, table in s.tables.items()
        },
        stats={name: like(StatRow, stat) for name, stat in s.stats.items()},
        presets={name: like(PresetRow, preset) for name, preset in s.presets.items()},
        counters=like(CountersRow, s.counters) if s.counters else None,
    )


def _describe(s: Scheduler) -> None:
    out = console()
    out.print(Text.assemble((s.name, "bold"), f": {s.summary}"), soft_wrap=True)
    out.print(f"Source: {s.source}", soft_wrap=True)
    out.print()
    if s.tunables:
        t = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for head in ("tunable", "default", "unit", "values", "meaning"):
            t.add_column(head, justify="right" if head == "default" else "left", no_wrap=head == "tunable")
        for k in s.tunables.values():
            t.add_row(k.name, str(k.show(k.default)), k.unit, bounds(k), k.help)
        out.print(t)
    for preset in s.presets.values():
        out.print(f"Preset {preset.name}: {' '.join(preset.settings)} ({preset.help})", soft_wrap=True)
    for one in s.tables.values():
        out.print(f"Takes a table {one.name}: {one.help}. {rows(one)}", soft_wrap=True)
        for c in one.columns:
            out.print(f"  {c.name}: {c.help} ({limits(c)})", soft_wrap=True)
    if s.counters:
        out.print(f"Counts {s.counters.name}, {s.counters.rows} rows of {s.counters.columns}: {s.counters.help}", soft_wrap=True)
    for stat in s.stats.values():
        out.print(f"Statistic {stat.name}{f' ({stat.unit})' if stat.unit else ''}: {stat.help}", soft_wrap=True)


@click.command("schedulers", cls=Command)
@click.argument("name", required=False, shell_complete=complete.scheduler)
@output_options
def command(name: str | None, as_json: bool, output: Path | None) -> None:
    """List the schedulers, or describe one with its source and tunables."""
    chosen = [find_preset(name)[0]] if name else list(catalogue().values())
    if as_json or output:
        write_json(SchedulersDocument(schedulers=[_row(s) for s in chosen]), output)
    elif name:
        _describe(chosen[0])
    else:
        width = max(len(s.name) for s in chosen)
        out = console()
        for s in chosen:
            out.print(f"{s.name:{width}}  {s.summary}", soft_wrap=True)
