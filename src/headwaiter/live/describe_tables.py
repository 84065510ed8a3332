# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `headwaiter describe` tells people: a list of facts, and tables of phases and of threads of control."""

from __future__ import annotations

from collections.abc import Callable

from rich.table import Table

from headwaiter.live.described import Character, DescribeDocument, Quantiles

MOST_ROWS = 16


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
            f"{place.touched_mib} MiB touched within {place.span_gib:.3g} GiB; 90% of requests in {place.hot_mib} MiB;"
            f" {place.again_percent:.1f}% to a place seen before",
        ),
        ("think time", _times(whole.think_ms)),
        ("latency", _times(whole.latency_ms)),
    ]
    if whole.depth:
        told.append(
            ("depth", f"mean {whole.depth.mean:.3g}, 95% of the time at most {whole.depth.p95:.3g}, most {whole.depth.max}")
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
                f"mean {device.depth.mean:.3g}, 95% of the time at most {device.depth.p95:.3g}, most {device.depth.max}",
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
        both = f"{told.waited_s:.3g} s if the scheduler waits for them, {told.waited_never_s:.3g} s if it never does{cost}"
        facts.append((f"on {told.drive}", f"programs wait {both}"))
    return facts


def _away(whole: Character) -> str:
    return f"; the others away {_three(whole.distance_mib, 'MiB')}" if whole.distance_mib else ""


def _three(spread: Quantiles | None, unit: str) -> str:
    """Median, 95th percentile and maximum."""
    return _quantiles(spread, lambda value: f"{_number(value)} {unit}")


def _times(spread_ms: Quantiles | None) -> str:
    """Of milliseconds the same, each in the unit that suits it."""
    return _quantiles(spread_ms, _time)


def _quantiles(spread: Quantiles | None, shown: Callable[[float], str]) -> str:
    if spread is None:
        return "not known"
    return f"{shown(spread.median)} (median), {shown(spread.p95)} (95%), {shown(spread.max)} (max)"


def _time(value_ms: float) -> str:
    if 0 < value_ms < 0.1:
        return f"{_number(1000 * value_ms)} µs"
    return f"{_number(value_ms)} ms" if value_ms < 10_000 else f"{_number(value_ms / 1000)} s"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def phases(found: DescribeDocument) -> Table:
    """A row for each phase."""
    table = Table(title="Phases", title_justify="left", box=None, pad_edge=False)
    for head in ("from s", "to s", "requests/s", "MB/s", "read %", "sequential %", "threads"):
        table.add_column(head, justify="right")
    for phase in found.phases:
        cells = (phase.from_s, phase.to_s, phase.requests_per_s, phase.mbps, phase.read_percent, phase.sequential_percent)
        table.add_row(*(_number(cell) for cell in cells), str(phase.tasks))
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
        return _number(spread.median) if spread else ""

    return [
        f"{row.read_percent:.0f}",
        f"{row.sync_percent:.0f}",
        _number(row.size_kib.median),
        f"{row.sequential_percent:.0f}",
        median(row.distance_mib),
        median(row.think_ms),
        _number(row.think_ms.p95) if row.think_ms else "",
        median(row.latency_ms),
        _number(row.depth.mean) if row.depth else "",
    ]
