# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `headwaiter describe` tells people: a list of facts, and tables of phases and of threads of control."""

from __future__ import annotations

from collections.abc import Callable

from rich.table import Table

from headwaiter.base.figures import brief
from headwaiter.description.programs import DEAF, MOST_PIDS, work_of
from headwaiter.description.schema import Character, DescribeDocument, InBackground, Quantiles, Sufferer, WaitsFor
from headwaiter.study.blame import EVERYTHING, plural

MOST_ROWS = 16
_MOST_SUFFERERS = 8
_MOST_CAUSES = 4
_LEAST_PERCENT = 1.0


def facts(found: DescribeDocument) -> list[tuple[str, str]]:
    """Name and value of each."""
    whole, place = found.whole, found.locality
    told = [
        ("mix", f"{whole.read_percent:.1f}% read, {whole.write_percent:.1f}% write; {whole.sync_percent:.1f}% synchronous"),
        ("threads of control", f"{found.threads}, of {found.tasks} tasks"),
        ("size", _three(whole.size_kib, "KiB")),
        ("place", f"{whole.sequential_percent:.1f}% sequential" + _away(whole)),
        (
            "locality",
            f"{place.touched_mib} MiB touched within {brief(place.span_gib)} GiB; 90% of requests in {place.hot_mib} MiB;"
            f" {place.again_percent:.1f}% to a place seen before",
        ),
        ("think time", _times(whole.think_ms)),
        ("latency", _times(whole.latency_ms)),
    ]
    if whole.depth:
        told.append(
            ("depth", f"mean {brief(whole.depth.mean)}, 95% of the time at most {brief(whole.depth.p95)}, most {whole.depth.max}")
        )
    if found.flushes:
        told.append(("flushes", f"{found.flushes} of the drive's cache; {_times(found.flush_ms)}"))
    if device := found.device:
        told += [
            (
                "device",
                f"{device.requests} requests after merging, {_three(device.size_kib, 'KiB')}; busy {device.busy_percent:.1f}%",
            ),
            ("its service time", f"{_times(device.service_ms)}; in the scheduler before {_times(device.queued_ms)}"),
            (
                "its depth",
                f"mean {brief(device.depth.mean)}, 95% of the time at most {brief(device.depth.p95)}, most {device.depth.max}",
            ),
        ]
    elif whole.latency_ms:
        told.append(("device", "not known: record with --issues"))
    return told + _deceptive(found)


def _deceptive(found: DescribeDocument) -> list[tuple[str, str]]:
    told = found.deceptive
    if told is None:
        return []
    facts = [
        (
            "deceptive idleness",
            f"{told.near_percent:.1f}% of reads come soon after and near the one before; before {told.exposed_percent:.1f}% of"
            f" these others wait, and {told.lost_percent:.1f}% of those come too late",
        )
    ]
    if told.waited_s is not None and told.waited_never_s is not None:
        cost = "" if told.cost_percent is None else f" ({told.cost_percent:+.0f}%)"
        both = f"{brief(told.waited_s)} s if the scheduler waits for them, {brief(told.waited_never_s)} s if it never does{cost}"
        facts.append((f"on {told.drive}", f"programs wait {both}"))
    return facts


def _away(whole: Character) -> str:
    return f"; the others away {_three(whole.distance_mib, 'MiB')}" if whole.distance_mib else ""


def _three(spread: Quantiles | None, unit: str) -> str:
    """Median, 95th percentile and maximum."""
    return _quantiles(spread, lambda value: f"{brief(value)} {unit}")


def _times(spread_ms: Quantiles | None) -> str:
    """Return milliseconds as such a text, each in the unit that suits it."""
    return _quantiles(spread_ms, _time)


def _quantiles(spread: Quantiles | None, shown: Callable[[float], str]) -> str:
    if spread is None:
        return "not known"
    return f"{shown(spread.median)} (median), {shown(spread.p95)} (95%), {shown(spread.max)} (max)"


def _time(value_ms: float) -> str:
    if 0 < value_ms < 0.1:
        return f"{brief(1000 * value_ms)} µs"
    return f"{brief(value_ms)} ms" if value_ms < 10_000 else f"{brief(value_ms / 1000)} s"


def phases(found: DescribeDocument) -> Table:
    """A row for each phase."""
    table = Table(title="Phases", title_justify="left", box=None, pad_edge=False)
    for head in ("from s", "to s", "requests/s", "MB/s", "read %", "sequential %", "threads"):
        table.add_column(head, justify="right")
    for phase in found.phases:
        cells = (phase.from_s, phase.to_s, phase.requests_per_s, phase.mbps, phase.read_percent, phase.sequential_percent)
        table.add_row(*(brief(cell) for cell in cells), str(phase.tasks))
    return table


def threads(found: DescribeDocument) -> Table:
    """A row for each of the MOST_ROWS threads of control with most requests."""
    table = Table(title="Threads of control", title_justify="left", box=None, pad_edge=False)
    table.add_column("name", overflow="fold")
    for head in ("tasks", "requests", "MB", "read %", "sync %", "KiB", "seq %", "MiB away", "think ms", "95%", "lat ms", "depth"):
        table.add_column(head, justify="right")
    for row in found.rows[:MOST_ROWS]:
        table.add_row(row.name, str(row.tasks), str(row.requests), f"{row.bytes / 1e6:.1f}", *_cells(row))
    return table


def _cells(row: Character) -> list[str]:
    def median(spread: Quantiles | None) -> str:
        return brief(spread.median) if spread else ""

    return [
        f"{row.read_percent:.0f}",
        f"{row.sync_percent:.0f}",
        brief(row.size_kib.median),
        f"{row.sequential_percent:.0f}",
        median(row.distance_mib),
        median(row.think_ms),
        brief(row.think_ms.p95) if row.think_ms else "",
        median(row.latency_ms),
        brief(row.depth.mean) if row.depth else "",
    ]


def programs(found: DescribeDocument) -> Table:
    """A row for each program and operation, of those that waited longest."""
    rows = found.programs[:MOST_ROWS]
    fast = all(row.lat_ms.p50 < 1 for row in rows if row.lat_ms)
    by = 1000 if fast else 1
    table = Table(
        title=f"Latency in {'µs' if fast else 'ms'}, by program and operation", title_justify="left", box=None, pad_edge=False
    )
    table.add_column("program", overflow="fold")
    table.add_column("operation", no_wrap=True)
    heads = ["requests", "p50", "p99", "p99.9", "longest"]
    issues = any(row.above_ms for row in rows)
    for head in (*heads, "above", "in it") if issues else heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        latency = row.lat_ms
        cells = [brief(by * ms) for ms in (latency.p50, latency.p99, latency.p99_9, latency.max)] if latency else [""] * 4
        parts = [brief(by * one.mean) if one else "" for one in (row.above_ms, row.device_ms)] if issues else []
        table.add_row(row.program, row.op, str(row.requests), *cells, *parts)
    return table


def programs_legend(found: DescribeDocument) -> str:
    """Return what its last columns are."""
    if any(row.above_ms for row in found.programs):
        return "above: mean wait in the scheduler, before the device has it; in it: mean time in the device"
    return ""


def suffering(found: DescribeDocument) -> list[str]:
    """Return a sentence for each program that waits for others; none where each waits for itself."""
    if not any(one.others_percent >= _LEAST_PERCENT for one in found.sufferers):
        return []
    return [waits(one) for one in found.sufferers[:_MOST_SUFFERERS]]


def waits(one: Sufferer) -> str:
    """For whom a program waits."""
    told = [f"{causes.percent:.0f}% for {_whose(causes, one.program)}" for causes in one.waits_for[:_MOST_CAUSES]]
    return f"{one.program} waits {brief(one.waited_s)} s: {', '.join(told)}"


def _whose(causes: WaitsFor, program: str) -> str:
    if causes.program is None or causes.op is None:
        return "nobody (the device had nothing to do)"
    if causes.program == program:
        return f"its own {plural(causes.op)}"
    return work_of(causes.program, causes.op)


def lowering(one: InBackground, scheduler: str | None = None) -> str:
    """Return what a program in the background causes, and what lowers it; `scheduler`: the one in force, where that is known."""
    nobody = "nobody waits for what it asks for"
    stream = "it goes through much data as fast as the disk lets it"
    text = (
        f"In the background: {one.program} causes {one.percent:.0f}% of what programs wait for others, and"
        f" {nobody if one.why == 'asynchronous' else stream}."
    )
    if one.idle:
        return f"{text} It has the idle I/O priority already, which {_works(scheduler)}"
    if not one.command:
        return f"{text} This is work of the kernel, which ionice does not reach; queue/wbt_lat_usec and vm.dirty_bytes do"
    many = f" (it has {len(one.pids)} processes)" if len(one.pids) > MOST_PIDS else ""
    return f"{text} `{one.command}`{many} lowers it, which {_works(scheduler)}"


def _works(scheduler: str | None) -> str:
    """Return where I/O priorities do."""
    if scheduler in DEAF:
        return f"does nothing under {scheduler}, but works under bfq, and under mq-deadline since Linux 5.16"
    return "works under bfq, and under mq-deadline since Linux 5.16, but not under none and kyber"


def known_programs(found: DescribeDocument) -> bool:
    """Return whether the table of programs tells more than the list of facts."""
    return any(row.lat_ms for row in found.programs) and (len(found.programs) > 1 or found.programs[0].program != EVERYTHING)
