# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two runs of the published experiments beside each other, such as those of two machines: which claims they decide alike."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from headwaiter.base.errors import Problem, counted, plain, shown
from headwaiter.base.figures import digits
from headwaiter.papers.reproduce.archive import verified
from headwaiter.papers.reproduce.claims import outcome
from headwaiter.papers.reproduce.schema import ClaimBeside, ExperimentBeside, SecondRunDocument
from headwaiter.report.columns import ABSENT

ALIKE = 1e-9
"""Figures that differ by less are the same: processors differ in the last digits."""
_CLAIM = {
    "id": str, "experiment": str, "level": str, "essential": bool, "holds": bool, "too_short": bool, "claim": str, "value": str,
    "values": list,
}  # fmt: skip
_EXPERIMENT = {"name": str, "level": str, "tables": list}
_TABLE = {"columns": list, "rows": list}


def read(path: Path) -> Mapping[str, Any]:
    """Read what `headwaiter reproduce` wrote: its JSON, or the folder of --archive. Problem if it is neither, or was changed."""
    source = verified(path) if path.is_dir() else path
    try:
        found = json.loads(source.read_text(encoding="utf-8"))
    except OSError as e:
        raise Problem(f"{source}: {e.strerror}") from None
    except ValueError as e:
        raise Problem(f"{source}: not JSON ({shown(str(e), 80)})") from None
    if not isinstance(found, dict) or not isinstance(found.get("scale"), int | float):
        raise Problem(f"{source}: not the JSON of headwaiter reproduce")
    _check(source, found, "claims", _CLAIM)
    _check(source, found, "experiments", _EXPERIMENT)
    for one in found["experiments"]:
        _check(source, one, "tables", _TABLE)
    return found


def _check(source: Path, found: Mapping[str, Any], key: str, wanted: Mapping[str, type]) -> None:
    rows = found.get(key)
    if not isinstance(rows, list):
        raise Problem(f"{source}: not the JSON of headwaiter reproduce (it has no {key})")
    for i, row in enumerate(rows):
        for name, kind in wanted.items():
            if not isinstance(row, dict) or not isinstance(row.get(name), kind):
                raise Problem(f"{source}: {key}[{i}].{name}: missing, or not of its type")


def compared(first: Path, second: Path) -> SecondRunDocument:
    """Compare two runs, claim by claim and table by table. Problem as read(), and if they cannot be compared."""
    one, other = read(first), read(second)
    for key in ("scale", "settings"):
        if one.get(key) != other.get(key):
            told = ", ".join(_setting(run.get(key)) for run in (one, other))
            raise Problem(f"{first} and {second}: cannot be compared, because they differ in {key} ({told})")
    mine, theirs = (_by(run["claims"], "id", "level") for run in (one, other))
    both = [key for key in mine if key in theirs]
    if not both:
        raise Problem(f"{first} and {second}: no claim is in both")
    tables, their_tables = (_by(run["experiments"], "name", "level") for run in (one, other))
    return SecondRunDocument(
        scale=float(one["scale"]),
        claims=[_claim(mine[key], theirs[key]) for key in both],
        experiments=[_experiment(tables[key], their_tables[key]) for key in tables if key in their_tables],
        only_first=[f"{name} ({level})" for name, level in mine if (name, level) not in theirs],
        only_second=[f"{name} ({level})" for name, level in theirs if (name, level) not in mine],
    )


def _setting(value: object) -> str:
    return plain(" ".join(map(str, value)) if isinstance(value, list) else "none" if value is None else str(value))


def _by(rows: Iterable[Mapping[str, Any]], *keys: str) -> dict[tuple[str, ...], Mapping[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in rows}


def _claim(one: Mapping[str, Any], other: Mapping[str, Any]) -> ClaimBeside:
    pairs = list(_pairs(one["values"], other["values"]))
    alike = len(one["values"]) == len(other["values"])
    verdicts = [outcome(holds=row["holds"], too_short=row["too_short"]) for row in (one, other)]
    return ClaimBeside(
        id=one["id"],
        experiment=one["experiment"],
        level=one["level"],
        essential=one["essential"],
        claim=one["claim"],
        first=one["value"],
        second=other["value"],
        differ_percent=max((_apart_percent(*pair) for pair in pairs), default=0.0) if alike else None,
        first_verdict=verdicts[0],
        second_verdict=verdicts[1],
        decided_alike=verdicts[0] == verdicts[1],
    )


def _experiment(one: Mapping[str, Any], other: Mapping[str, Any]) -> ExperimentBeside:
    mine, theirs = (list(_figures(row["tables"])) for row in (one, other))
    found = [_apart_percent(a, b) for a, b in _pairs(mine, theirs)] if len(mine) == len(theirs) else []
    return ExperimentBeside(
        name=one["name"],
        level=one["level"],
        figures=len(mine),
        alike=sum(not apart for apart in found),
        differ_percent=max(found, default=0.0) if len(mine) == len(theirs) else None,
    )


def _figures(tables: Sequence[Any]) -> Iterator[object]:
    """The cells that are figures of ours: those in a column that begins with "paper" are the document's."""
    for table in tables:
        ours = [not str(name).startswith("paper") for name in table["columns"]]
        for row in table["rows"]:
            cells = zip(row if isinstance(row, list) else (), ours, strict=False)
            yield from (cell for cell, own in cells if own and not isinstance(cell, str))


def _pairs(one: Sequence[object], other: Sequence[object]) -> Iterator[tuple[float | None, float | None]]:
    yield from zip(map(_number, one), map(_number, other), strict=False)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _apart_percent(one: float | None, other: float | None) -> float:
    """By how much of the greater they differ; 0 if by no more than ALIKE of it, 100 where only one can be told."""
    if one is None or other is None:
        return 0.0 if one is other else 100.0
    greatest = max(abs(one), abs(other))
    return 0.0 if math.isclose(one, other, rel_tol=ALIKE, abs_tol=ALIKE) else 100 * abs(one - other) / greatest


def differing(found: SecondRunDocument) -> list[ClaimBeside]:
    """The claims whose figures differ, or that are decided otherwise: those first, then by how much they differ."""
    rows = [one for one in found.claims if one.differ_percent != 0 or not one.decided_alike]
    return sorted(rows, key=lambda one: (one.decided_alike, -(math.inf if one.differ_percent is None else one.differ_percent)))


def claims_beside(rows: Sequence[ClaimBeside]) -> Table:
    """A row for each claim."""
    out = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("claim", "level", "first", "second", "differ by", "decided"):
        out.add_column(column, no_wrap=column in ("claim", "level"), justify="right" if column == "differ by" else "left")
    for one in rows:
        told = one.first_verdict if one.decided_alike else f"{one.first_verdict} / {one.second_verdict}"
        apart = ABSENT if one.differ_percent is None else f"{digits(one.differ_percent)}%"
        name = f"{one.id}{' (essential)' if one.essential else ''}"
        style = "" if one.decided_alike else "bold red" if one.essential else "yellow"
        out.add_row(name, one.level, one.first.replace(", ", "\n"), one.second.replace(", ", "\n"), apart, told, style=style)
    return out


def sentences(found: SecondRunDocument) -> list[str]:
    """Return the outcome in sentences."""
    same = sum(one.differ_percent == 0 for one in found.claims)
    other = [one for one in found.claims if not one.decided_alike]
    figures, alike = (sum(getattr(one, name) for one in found.experiments) for name in ("figures", "alike"))
    out = [
        f"{counted(len(found.claims), 'claim')} compared, {same} of them with the same figures.",
        f"Of {counted(figures, 'figure')} in the tables, {alike} are the same.",
        f"Decided differently: {', '.join(f'{one.id} ({one.level})' for one in other)}."
        if other
        else "Every claim is decided alike.",
    ]
    for name, only in (("first", found.only_first), ("second", found.only_second)):
        if only:
            out.append(f"Only in the {name}: {', '.join(map(plain, only))}.")
    return out
