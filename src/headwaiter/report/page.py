# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A comparison as one page: HTML with its charts, their library and all figures in it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.metadata import version
from typing import Any

from rich.table import Table

from headwaiter.base.errors import Problem, counted
from headwaiter.base.figures import digits
from headwaiter.base.paths import PACKAGE
from headwaiter.base.records import Record, json_text
from headwaiter.judge.detail import Shown
from headwaiter.judge.judge import Judged
from headwaiter.report.html import html_table
from headwaiter.report.tables import brief, heading, legend, table
from headwaiter.study.changes import change_words, latency_text
from headwaiter.study.ranges import label
from headwaiter.study.schema import CompareDocument, Result

_MOST_PROGRAMS = 15
_NOTABLE = 0.05
_LONG = 2.0
"""A longest wait that is so many times as long as before is told."""
_COLUMNS = 112
"""So many characters of a table fit beside one another on a common screen; all columns are in one that can be opened."""


def check_libraries() -> None:
    """Problem if what a page is made with is not installed."""
    try:
        import bokeh  # noqa: F401, PLC0415 (an optional dependency)
        import jinja2  # noqa: F401, PLC0415
    except ImportError:
        raise Problem("--report needs Bokeh and Jinja2 (pip install headwaiter[report])") from None


@dataclass(frozen=True)
class Section:
    """A part of a page, with charts or a table."""

    name: str
    title: str
    legend: str
    charts: Sequence[Any] = ()
    table: str = ""
    at_first: int = 6
    """So many charts are drawn at first; the others are in a part that the reader opens."""

    @property
    def roots(self) -> list[str]:
        """Names of the elements that charts go into."""
        return [f"{self.name}-{i}" for i in range(len(self.charts))]


def render(found: Judged, shown: Sequence[Shown]) -> str:
    """The page of a comparison whose results have rows of tasks; `shown` as pictured() makes them. Problem without the libraries.

    Programs are held against the comparison's baseline, scheduler by scheduler. The same input gives the same bytes.
    """
    check_libraries()
    document = found.document()
    shown_in_tables = found.results, found.answer.margins, found.criterion
    return assemble(
        Page(
            heading(found.work, found.drive),
            found.answer.text,
            table(*shown_in_tables, width=_COLUMNS),
            _brief(document),
            found.notes,
            found.uncertain,
            "Click a scheduler in a legend to show or hide it. Drag with a chosen tool to zoom; the arrow by the tools goes back."
            " All panels of the head show the same time. The page follows the browser's dark mode.",
            (table(*shown_in_tables), legend(*shown_in_tables)),
        ),
        _sections(found, shown),
    )


@dataclass(frozen=True)
class Page:
    """Text above the sections of a page, and below them."""

    title: str
    verdict: str
    table: Table
    document: Record
    """All figures, for programs."""
    notes: Sequence[str] = ()
    uncertain: str = ""
    hint: str = ""
    """How to use the charts."""
    more: Sequence[Table] = ()
    """Tables that can be opened: all columns, and what they mean."""


def assemble(page: Page, sections: Sequence[Section]) -> str:
    """The HTML. Problem without the libraries. The same input gives the same bytes."""
    check_libraries()
    from bokeh.document import Document  # noqa: PLC0415 (an optional dependency)
    from bokeh.resources import Resources  # noqa: PLC0415
    from jinja2 import Environment, FileSystemLoader  # noqa: PLC0415
    from markupsafe import Markup  # noqa: PLC0415 (comes with Jinja2)

    drawings = Document()
    for section in sections:
        for chart in section.charts:
            drawings.add_root(chart)
    elements = [root for section in sections for root in section.roots]
    roots = {chart.id: name for chart, name in zip(drawings.roots, elements, strict=True)}
    library = Resources(mode="inline", components=["bokeh"]).js_raw[0]
    environment = Environment(loader=FileSystemLoader(PACKAGE / "report"), autoescape=True, keep_trailing_newline=True)
    return environment.get_template("page.html").render(
        title=page.title,
        verdict=page.verdict,
        uncertain=page.uncertain,
        table=Markup(html_table(page.table)),
        more=[Markup(html_table(t)) for t in page.more],
        notes=page.notes,
        hint=page.hint,
        sections=[
            {
                "name": s.name,
                "title": s.title,
                "legend": s.legend,
                "roots": s.roots[: s.at_first],
                "more": s.roots[s.at_first :],
                "table": Markup(s.table),
            }
            for s in sections
        ],
        version=version("headwaiter"),
        results=_script(json.loads(json_text(page.document))),
        library=Markup(library.replace("</script", "<\\/script")),
        drawings=_script({"page": drawings.to_json(deferred=False)}),
        places=_script([{"docid": "page", "roots": roots, "root_ids": list(roots)}]),
    )


def _brief(document: CompareDocument) -> CompareDocument:
    """Without the rows of tasks, of which there may be millions."""
    return replace(document, results=[replace(r, tasks=None, groups=None) for r in document.results])


def _script(value: Any) -> Any:
    """JSON that can stand in a script."""
    from markupsafe import Markup  # noqa: PLC0415

    return Markup(json.dumps(value).replace("<", "\\u003c"))


def _sections(found: Judged, shown: Sequence[Shown]) -> list[Section]:
    from headwaiter.report import charts  # noqa: PLC0415 (needs Bokeh)

    first = drawn_first(found, charts.MOST_CURVES)
    shown = sorted(shown, key=lambda one: label(one.result) not in first)
    left = len(shown) - len(first)
    switch = f" {counted(left, 'more scheduler')} can be switched on in the legend." if left else ""
    sections = [*filter(None, [_programs(found)])]
    sections.append(
        Section(
            "latency",
            "Latency",
            "How long I/Os took from issue to completion: 99% of them no longer than the height of the line above 99%." + switch,
            [charts.latencies(shown, first)],
        )
    )
    if any(len(s.detail.time_s) for s in shown):
        sections.append(
            Section(
                "throughput",
                "Throughput over time",
                f"MB/s of completed I/Os, in equal parts of each run.{switch}",
                [charts.throughput(shown, first)],
            )
        )
    sections.append(
        Section(
            "disk",
            "Where the disk's time went",
            "Waiting: the scheduler held the disk idle for a task's next request. Idle: there was nothing to do.",
            [charts.disk_time(shown)],
        )
    )
    cut = (
        ""
        if all(s.head.whole for s in shown)
        else f" Each panel has the first {len(shown[0].head.dispatch_ms):,} dispatches at most."
    )
    sections.append(
        Section(
            "head",
            "Where the head goes",
            f"Each dot is a request on its way to the disk; shaded: the scheduler waits, with the disk idle.{cut}",
            charts.heads(shown),
        )
    )
    return sections


def drawn_first(found: Judged, most: int) -> list[str]:
    """Return the schedulers whose curves are drawn before the reader chooses others: the best, the baseline, and what matters."""
    ranked = [label(r) for r in found.results]
    wanted = [found.answer.best, found.answer.baseline, *(label(r) for r in brief(found.results, found.answer)), *ranked]
    chosen = [name for name in dict.fromkeys(wanted) if name in ranked][:most]
    return sorted(chosen, key=ranked.index)


def _waited(r: Result) -> dict[str, tuple[int, float]]:
    """Return of each program, by name, its I/Os, and the time (s) that they took together."""
    out: dict[str, tuple[int, float]] = {}
    for row in r.groups or r.tasks or ():
        ios, waited = out.get(row.name, (0, 0.0))
        out[row.name] = (ios + row.requests, waited + row.requests * row.lat_ms.mean / 1e3)
    return out


def _paces(r: Result) -> dict[str, tuple[float, float | None]]:
    """Return of each program, by name, its MB/s, and the longest of its waits in ms, where that is known."""
    out: dict[str, tuple[float, float | None]] = {}
    for row in r.programs or ():
        rate, longest = out.get(row.name, (0.0, None))
        out[row.name] = (rate + row.throughput_mbps, max(filter(None, (longest, row.max_ms)), default=None))
    return out


def _kind(ahead: float) -> str:
    """Return whether a program gains or pays, as the page's style has it."""
    return "" if abs(ahead) <= math.log1p(_NOTABLE) else "wins" if ahead > 0 else "loses"


def _cell(content: str, kind: str = "") -> str:
    return f'<td class="{kind}">{content}</td>' if kind else f'<td class="number">{content}</td>'


def _programs(found: Judged) -> Section | None:
    """Return who gains and who pays under the best, against the baseline (or where that is the best, against the next)."""
    by_name = {label(r): r for r in found.results}
    best = found.answer.best or label(found.results[0])
    other = next((name for name in (found.answer.baseline, *by_name) if name != best), None)
    if other is None:
        return None
    before, after = _waited(by_name[other]), _waited(by_name[best])
    paced, pacing = _paces(by_name[other]), _paces(by_name[best])
    common = sorted(before.keys() & after.keys(), key=lambda name: (-max(before[name][1], after[name][1]), name))
    rows = ""
    for name in common[:_MOST_PROGRAMS]:
        (ios, was), (_, now) = before[name], after[name]
        ahead = math.log(was / now) if was and now else 0.0
        (rate, longest), (rates, longer) = paced.get(name, (0.0, None)), pacing.get(name, (0.0, None))
        gain = math.log(rates / rate) if rate and rates else ahead
        told = {"": "the same", "wins": "gains", "loses": "pays"}[_kind(gain)]
        if _kind(gain):
            words = change_words("progress", gain) if rate and rates else change_words("waited", ahead)
            told += f": {words} {'done' if rate and rates else 'waiting'}"
        if longest and longer and longer > _LONG * longest:
            told += f"; waits up to {latency_text(longer)}"
        figures = [digits(rate) if rate else "–", digits(rates) if rates else "–", f"{was:.2f}", f"{now:.2f}"]
        figures += [digits(one) if one else "–" for one in (longest, longer)]
        cells = "".join(map(_cell, figures))
        rows += f'<tr><th scope="row">{escape(name)}</th>{_cell(told, _kind(gain) or "even")}{_cell(f"{ios:,}")}{cells}</tr>\n'
    titles = (
        "program",
        f"under {best}",
        "I/Os",
        *(f"{name}, {unit}" for unit in ("MB/s", "s", "max ms") for name in (other, best)),
    )
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in titles)
    left = len(common) - _MOST_PROGRAMS
    legend = (
        f"Each program under {other} and under {best}: its work by time (MB/s), the time that its I/Os took together (s), and"
        " the longest of its waits (max ms)."
    )
    if left > 0:
        legend += f" The {_MOST_PROGRAMS} that waited longest; {left} more waited less."
    return Section(
        "programs",
        "Who gains, and who pays",
        legend,
        table=f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n",
    )
