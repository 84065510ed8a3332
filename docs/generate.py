# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Put generated tables into the documents: what stands between `<!-- KIND: NAME -->` and `<!-- end -->`.

    python docs/generate.py            rewrites the documents
    python docs/generate.py --check    fails if one would change

Kinds: `tunables: SCHEDULER`, `table: SCHEDULER.TABLE`, `presets: SCHEDULER`, `stats: SCHEDULER`, `schedulers: FOLDER`,
`formats: all`, `drives: all`, `parameters: MODEL`, `conditions: all`, and
`output: headwaiter …`, which is the output of a command; `shell: …` is a command and its output in
the folder of a tutorial (session.py); `figure: head` is a picture's caption, and
the picture is drawn anew when the simulator's result changes; `waits: generated`, `waits: without-readahead` and
`waits: fitted` are measured.
`api: all` is the Python interface, from its docstrings.
`rooms: table` and `rooms: picture` are the rooms of the Python package (rooms.py).
`parquet: RECORD` are the columns of a Parquet table.
`json: all` is every record of `--json`, and docs/headwaiter-1.schema.json the same for programs.
Results of the lab take longer: `readers: NAME`, `programs: NAME`, `beside: KERNEL`, `advice: NAME`, `places: all|kernel
NAMES`, `watched: NAME` and `agreement: NAME` are tables of lab/**/NAME.json, which `make lab-docs` measures anew;
`kernels: all` is of lab/kernels/*.json (`make test-kernels`), `regret: NAME` of docs/regret.json (`make regret-docs`),
`validated: NAME` of docs/published.json (`make published-docs`).
Those of `headwaiter reproduce` are in docs/reproduction.json (reproduction.py, `make reproduction`).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import ablation
import documents
import figure
import interface
import lab_tables
import publications
import regrets
import remedies
import reproduction
import rooms
import session
import was_workloads
from markdown_tables import rows

from headwaiter.base import records
from headwaiter.base.errors import Problem
from headwaiter.cli._options import flag, told
from headwaiter.cli.schedulers import bounds, limits
from headwaiter.cli.schedulers import rows as length
from headwaiter.drives import bundled, load
from headwaiter.drives.params import models
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.engine.schedulers import reasons as all_reasons
from headwaiter.fio import load_jobs
from headwaiter.fio.options import IGNORED, REFUSED, USED
from headwaiter.fleet.schema import TABLES as FLEET_TABLES
from headwaiter.judge.conditions import RunConditions
from headwaiter.report.columns import every_column
from headwaiter.sweeps.schema import TABLES as SWEEP_TABLES
from headwaiter.traces import formats as trace_formats

ROOT = Path(__file__).resolve().parent.parent
FIO_EXAMPLES = Path("/usr/share/doc/fio/examples")
EXAMPLES_FOUND = ROOT / "docs" / "fio-examples.json"
BLOCK = re.compile(r"<!-- (\w+): ([^\n]+?) -->\n(?:(?:(?!<!-- ).)*?<!-- end -->\n)?", re.S)


def tunables(name: str) -> str:
    """Every tunable of a scheduler."""
    s = find(name)
    if not s.tunables:
        return "No tunables.\n"
    return rows(
        ("tunable", "default", "unit", "values", "meaning"),
        ((f"`{t.name}`", t.show(t.default), t.unit, bounds(t), t.help) for t in s.tunables.values()),
    )


def table(name: str) -> str:
    """The columns of a scheduler's table, SCHEDULER.TABLE."""
    scheduler, _, of = name.partition(".")
    t = find(scheduler).tables[of]
    columns = rows(("column", "unit", "values", "meaning"), ((f"`{c.name}`", c.unit, limits(c), c.help) for c in t.columns))
    return f"{length(t)}\n\n{columns}"


def presets(name: str) -> str:
    """Settings of a scheduler that have names of their own."""
    s = find(name)
    return rows(
        ("preset", "settings", "origin"),
        ((f"`{p.name}`", " ".join(f"`{one}`" for one in p.settings), p.help) for p in s.presets.values()),
    )


def stats(name: str) -> str:
    """Every figure that a scheduler lets be read."""
    s = find(name)
    return rows(("figure", "unit", "meaning"), ((f"`{t.name}`", t.unit, t.help) for t in s.stats.values()))


def reasons(_: str) -> str:
    """Why schedulers dispatch a request, as the event log has it."""
    return rows(("reason", "meaning"), ((f"`{name}`" if name else "(empty)", meaning) for name, meaning in all_reasons().items()))


def schedulers(folder: str) -> str:
    """All schedulers, a line each, with links to their pages in `folder`."""
    return rows(
        ("scheduler", "description", "source"),
        ((f"[`{s.name}`]({folder}/{s.name}.md)", s.summary, s.source) for s in catalogue().values()),
    )


def rooms_of(form: str) -> str:
    """The rooms of the Python package, from the highest down, or how they import from each other."""
    if form == "picture":
        return f"```mermaid\n{rooms.picture()}```\n"
    return rows(("room", "contents", "imports from"), (map(rooms.linked, row) for row in rooms.table()))


def formats(_: str) -> str:
    """All trace formats that can be read, a line each."""
    return rows(("format", "description"), ((f"`{f.name}`", f.title) for f in trace_formats().values()))


def drives(_: str) -> str:
    """All bundled drives, a line each."""
    return rows(
        ("drive", "capacity", "queue", "description"),
        ((f"`{p.name}`", f"{p.facts[0] * 512 / 1e9:.0f} GB", p.facts[1], p.description) for p in map(load, bundled().values())),
    )


def parameters(name: str) -> str:
    """Every parameter of a drive model."""
    return rows(
        ("parameter", "default", "unit", "values", "meaning"),
        ((f"`{key}`", p.default_text, p.unit, p.bounds, p.help) for p, key in models()[name].rows()),
    )


def output(command: str) -> str:
    """What a headwaiter command prints, run from the top folder."""
    program, *words = shlex.split(command)
    assert program == "headwaiter", command
    done = subprocess.run(
        [sys.executable, "-P", "-m", program, *words],
        check=True,
        capture_output=True,
        cwd=ROOT,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "80"},
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return f"```text\n$ {command}\n" + "\n".join(lines) + "\n```\n"


def fio_options(_: str) -> str:
    """Every option of fio, by what becomes of it."""
    used = rows(("option", "meaning"), ((", ".join(f"`{n}`" for n in o.names), o.help) for o in USED))
    ignored = rows(
        ("ignored options about", "options"),
        ((why, ", ".join(f"`{n}`" for n in names.split())) for why, names in IGNORED.items()),
    )
    refused = ", ".join(
        f"`{name}`" + (f" ({' or '.join(f'`{v}`' for v in harmless)} is accepted)" if harmless else "")
        for name, harmless in REFUSED.items()
    )
    return f"{used}\n{ignored}\nRefused: {refused}.\n"


def table_columns(_: str) -> str:
    """Every column of the table of schedulers."""
    return rows(("column", "meaning"), ((column.name.strip(), column.help) for column in every_column()))


def fio_examples(_: str) -> str:
    """The job files that fio ships: which run, and why the others do not. Looked at where they are installed."""
    if FIO_EXAMPLES.is_dir():
        EXAMPLES_FOUND.write_text(json.dumps(_examples(), indent=1) + "\n", encoding="utf-8")
    found: dict[str, str] = json.loads(EXAMPLES_FOUND.read_text(encoding="utf-8"))
    running = ", ".join(f"`{name}`" for name, why in found.items() if not why)
    refused = rows(("file", "refused because"), ((f"`{name}`", why) for name, why in found.items() if why))
    return f"{len(found)} files, of which {sum(not why for why in found.values())} run: {running}.\n\n{refused}"


def _examples() -> dict[str, str]:
    """By file, why it is refused on a drive of 8 TiB, or nothing."""
    found = {}
    for path in sorted(p for p in FIO_EXAMPLES.rglob("*") if ".fio" in p.suffixes):
        data = path.read_bytes()
        try:
            load_jobs(path, (8 << 40) // 512, gzip.decompress(data) if path.suffix == ".gz" else data)
            why = ""
        except Problem as e:
            why = str(e).partition(": ")[2]
        found[path.name.removesuffix(".gz")] = why
    return found


def json_records(_: str) -> str:
    """Everything that `--json` prints, field by field."""
    heads = ("field", "type", "unit", "meaning")
    return "\n".join(f"### {name}\n\n{what}\n\n{rows(heads, body)}" for name, what, body in documents.sections())


def api(_: str) -> str:
    """Everything that `import headwaiter` offers."""
    return interface.page()


def picture(_: str) -> str:
    """The caption of docs/head.png."""
    return figure.caption()


def waits(which: str) -> str:
    """What `as` makes of the generated workloads, beside the paper's figures."""
    if which == "without-readahead":
        without = ("workload", "paper: A", "times A with it", "ours: A", "times A with it")
        return rows(without, was_workloads.without_readahead())
    if which == "fitted":
        ratios = ("A_F, `was` (cold-boot)", "MB/s, `was` (cold-boot)", "`was` (andrew)", "`was-online`")
        fitted = ("T_F/A_S, ms", "", "`as`", "`was` (cold-boot)", "`was` (andrew)", "`was-online`", *ratios)
        return rows(fitted, was_workloads.fitted())
    heads = ("workload", "", "A", "A_S", "A_F", "A_F/A", "T_S/A_S, ms", "T_F/A_S, ms", "requests", "elapsed, s", "MB/s")
    return rows(heads, was_workloads.table())


def remedies_table(drive: str) -> str:
    """What each remedy against deceptive idleness is worth on a drive."""
    return rows(*remedies.table(drive))


def regret(name: str) -> str:
    """Return the table of docs/regret.json or docs/ablation.json, which `make regret-docs` measures."""
    return rows(*(ablation.table() if name == "ablation" else regrets.table(name)))


def conditions_table(_: str) -> str:
    """Every condition of a run: keyword, option and what it means."""
    return rows(
        ("keyword", "option", "meaning"), ((f"`{one.name}`", f"`{flag(one)}`", told(one)) for one in fields(RunConditions))
    )


def parquet(name: str) -> str:
    """The columns of a Parquet table: those of a record."""
    kind = {one.__name__: one for one in (*SWEEP_TABLES, *FLEET_TABLES)}[name]
    names = {str: "string", int: "int64", float: "float64", bool: "bool"}
    return rows(
        ("column", "type", "unit", "meaning"),
        (
            (f"`{one.key}`" + (" (may be null)" if one.optional or one.null else ""), names[one.type], one.unit, one.meaning)
            for one in records.fields(kind)
        ),
    )


KINDS: dict[str, Callable[[str], str]] = {
    "parquet": parquet,
    "tunables": tunables,
    "table": table,
    "presets": presets,
    "stats": stats,
    "schedulers": schedulers,
    "reasons": reasons,
    "formats": formats,
    "drives": drives,
    "parameters": parameters,
    "output": output,
    "figure": picture,
    "waits": waits,
    "options": fio_options,
    "examples": fio_examples,
    "json": json_records,
    "api": api,
    "columns": table_columns,
    "conditions": conditions_table,
    "regret": regret,
    "remedies": remedies_table,
    "rooms": rooms_of,
    "validated": lambda name: rows(*publications.table(name)),
    **lab_tables.KINDS,
    **reproduction.KINDS,
}


def generate(text: str) -> str:
    """The document with every generated block made anew."""
    with session.Session(text) as shell:

        def block(match: re.Match[str]) -> str:
            kind, name = match.groups()
            made = {**KINDS, "shell": shell.block}.get(kind)
            return f"<!-- {kind}: {name} -->\n{made(name)}<!-- end -->\n" if made else match.group(0)

        return BLOCK.sub(block, text)


def texts() -> Iterator[tuple[Path, str, str]]:
    """Every file that is made here, wholly or in part: as it is, and as it would be."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = path.read_text(encoding="utf-8")
        yield path, old, generate(old)
    yield documents.SCHEMA, documents.SCHEMA.read_text(encoding="utf-8"), documents.schema_text()


def main() -> int:
    stale = []
    for path, old, new in texts():
        if new != old:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(new, encoding="utf-8")
    if not figure.is_current():
        stale.append(figure.PICTURE)
        if "--check" not in sys.argv:
            figure.draw()
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'stale: run make docs' if '--check' in sys.argv else 'rewritten'}")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
