# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter run: one scheduler in detail."""

from __future__ import annotations

import io
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ..device import open_drive
from ..paths import replacing
from ..processor import processor_json, processor_of
from ..ranges import RUNS, SHORT_IOS, is_range, others, with_range
from ..report import console, table, tasks_table
from ..results import document, summarise
from ..schedulers import find, settings
from ..sim import simulate
from ..workload import find_workload, read_workload
from ._options import progress_bar, reading, run_options, simulation_options
from ._output import output_options, write_json, write_text


@click.command("run")
@click.argument("workload")
@click.option("--sched", "-s", required=True, metavar="NAME", help="The scheduler (see 'headwaiter schedulers').")
@click.option("--set", "pairs", multiple=True, metavar="TUNABLE=VALUE", help="Override a tunable's default.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write the event log (CSV).")
@simulation_options
@output_options
def command(workload: str, sched: str, pairs: tuple[str, ...], log: Path | None, as_json: bool, output: Path | None,
            **given: Any) -> None:
    """Run WORKLOAD (a trace or a fio job file) under one scheduler."""
    policy = find(sched)
    tunables = settings(policy, pairs)
    drive = open_drive(given["drive"])
    work = read_workload(find_workload(workload), drive, reading(given))
    options = run_options(given)
    with ExitStack() as stack:
        log_file = stack.enter_context(replacing(log)) if log else None
        update = stack.enter_context(progress_bar(f"{work.name} under {policy.name}", None))
        outcome = simulate(policy.name, drive, work.load, tunables, options, log_file,
                           lambda done: update(policy.name, done))
        runs = given["seeds"] if given["seeds"] is not None else RUNS if outcome.totals["issued"] <= SHORT_IOS else 0
        result = summarise(outcome)
        spread = with_range(result, others(policy.name, drive, work.load, tunables, options, runs))
        if "range" in spread:
            result["range"] = spread["range"]
    notes = list(work.notes)
    if is_range(result):
        low, high = (result["range"]["throughput_MBps"][end] for end in ("low", "high"))
        notes.append(f"small changes of processor time, starts and think times make {low:.4g} to {high:.4g} MB/s of it")
    if as_json:
        more: dict[str, Any] = {"replay": work.replay} if work.replay else {}
        more |= {"processor": processor_json(options), "notes": notes}
        write_json(document(work.name, drive.name, given["seed"], [result], **more), output)
        return
    buffer = io.StringIO()
    out = console(buffer) if output else console()
    replay = f", replayed {work.replay}" if work.replay else ""
    out.print(table([result], f"{work.name} on {drive.name}{replay}"))
    out.print(tasks_table(result))
    changed = [f"{k}={policy.tunables[k].show(v)}" for k, v in tunables.items()]
    if changed:
        out.print("Set: " + " ".join(changed))
    for name, value in result.get("stats", {}).items():
        stat = policy.stats[name]
        out.print(f"{name} = {value}{' ' + stat.unit if stat.unit else ''}  ({stat.help})", soft_wrap=True)
    out.print(f"({processor_of(options).describe()})", soft_wrap=True)
    for note in notes:
        out.print(f"Note: {note}.", soft_wrap=True)
    if output:
        write_text(buffer.getvalue(), output)
