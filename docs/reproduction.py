# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parts of docs/reproduction.md, from docs/reproduction.json, which `headwaiter reproduce --json` writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from headwaiter.papers.reproduce.catalogue import EXPERIMENTS
from headwaiter.papers.reproduce.document import cell

MEASURED = Path(__file__).resolve().parent / "reproduction.json"
LEVELS = {"sim": "simulator", "lab": "lab"}


@cache
def measured() -> dict[str, Any]:
    """The document."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))
    return found


def table(head: Iterable[str], body: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), *([str(c).replace("|", "\\|") for c in row] for row in body)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _figures(figures: dict[str, Any]) -> str:
    return table(figures["columns"], ([cell(value) for value in row] for row in figures["rows"]))


def summary() -> str:
    """How many of those that could be told hold."""
    untold = [claim["id"] for claim in measured()["claims"] if claim["too_short"]]
    claims = [claim for claim in measured()["claims"] if not claim["too_short"]]
    essential = [claim for claim in claims if claim["essential"]]
    parts = []
    for level, name in LEVELS.items():
        of_level = [claim for claim in claims if claim["level"] == level]
        if of_level:
            parts.append(f"{sum(claim['holds'] for claim in of_level)} of {len(of_level)} in the {name}")
    held = sum(claim["holds"] for claim in essential)
    rest = f" Too little happened to tell {', '.join(untold)}." if untold else ""
    return f"**{' and '.join(parts)} hold; of the essential ones {held} of {len(essential)}.**{rest}\n"


def claims(document: str) -> str:
    """A row for each claim of a document, which is named by the beginning of its experiments' names."""
    rows = []
    for claim in measured()["claims"]:
        if claim["experiment"].split("-")[0] == document:
            name = f"**{claim['id']}**" if claim["essential"] else claim["id"]
            verdict = "too short to tell" if claim["too_short"] else "holds" if claim["holds"] else "**does not hold**"
            rows.append(
                (name, claim["claim"], LEVELS[claim["level"]], claim["paper"], claim["value"], claim["holds_if"], verdict)
            )
    return table(("claim", "", "level", "paper", "ours", "holds if", ""), rows)


def tables(document: str) -> str:
    """Our tables, beside the published ones where there are some, of a document's experiments."""
    out = ""
    for one in measured()["experiments"]:
        if one["name"].split("-")[0] == document:
            out += f"#### {one['name']}, {LEVELS[one['level']]}\n\n{_sentence(one['title'])} Drive: {one['drive']}."
            out += f" {_sentence(one['note'])}\n\n" if "note" in one else "\n\n"
            out += "".join(f"{figures['title']}:\n\n{_figures(figures)}\n" for figures in one["tables"])
    return out


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _investigated(holds: bool) -> Iterator[str]:
    for claim in measured()["claims"]:
        if claim["holds"] == holds and (why := claim.get("investigation")):
            head = f"**{claim['id']}** ({LEVELS[claim['level']]}: {claim['value']}; paper: {claim['paper']}). {why['text']}\n"
            yield head + (f"\n{_figures(why['table'])}" if "table" in why else "")


def investigations(which: str) -> str:
    """Tell what was found out about claims that do not hold (`failed`), or that do with a reservation (`held`)."""
    return "\n".join(_investigated(which == "held"))


def experiments() -> str:
    """What there is."""
    rows = (
        (f"`{one.name}`", one.title, ", ".join(LEVELS[level] for level in one.measure), one.drive, "yes" if one.printed else "")
        for one in EXPERIMENTS.values()
    )
    return table(("experiment", "content", "level", "drive", "figures printed"), rows)


KINDS: dict[str, Callable[[str], str]] = {
    "reproduced": lambda _: summary(),
    "claims": claims,
    "experiments": lambda _: experiments(),
    "investigations": investigations,
    "published": tables,
}
