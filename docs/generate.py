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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import ablation
import beside
import documents
import figure
import interface
import publications
import regrets
import remedies
import reproduction
import rooms
import session
import was_workloads

from headwaiter.base import records
from headwaiter.base.errors import Problem
from headwaiter.base.figures import brief
from headwaiter.cli._options import flag, told
from headwaiter.cli.schedulers import bounds, limits
from headwaiter.cli.schedulers import rows as length
from headwaiter.drives import bundled, load
from headwaiter.drives.params import models
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.engine.schedulers import reasons as all_reasons
from headwaiter.experiments.advise import TOLD
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


def rows(head: Iterable[str], body: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head), *([str(c).replace("|", "\\|") for c in row] for row in body)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


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


def _of_lab(name: str) -> dict[str, Any]:
    """NAME.json, which lies beside the script that has measured it."""
    (path,) = (ROOT / "lab").rglob(f"{name}.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def lab_results(name: str) -> list[dict[str, Any]]:
    """Rows that `headwaiter lab … --json -o NAME.json` has measured."""
    results: list[dict[str, Any]] = _of_lab(name)["results"]
    return results


def readers(name: str) -> str:
    """Return a line for each scheduler of the experiment `readers`."""
    by: dict[str, dict[int, dict[str, Any]]] = {}
    for r in lab_results(name):
        by.setdefault(r["scheduler"], {})[r["readers"]] = r
    counts = sorted(next(iter(by.values())))
    several = [n for n in counts if n > 1]

    def ratio(found: dict[int, dict[str, Any]], key: str) -> str:
        return " / ".join(f"{found[n][key]:.2f}" for n in several)

    return rows(
        (
            "scheduler",
            *(f"MB/s, {n} reader{'s' if n > 1 else ''}" for n in counts),
            "of mq-deadline",
            "of bfq",
            "of bfq-throughput",
            "longest read, ms",
            "least Jain's index",
        ),
        (
            (
                f"`{scheduler}`",
                *(f"{found[n]['throughput_MBps']:.1f}" for n in counts),
                *(ratio(found, key) for key in ("of_mq_deadline", "of_bfq", "of_bfq_throughput")),
                " / ".join(f"{found[n]['max_lat_ms']:.0f}" for n in several),
                " / ".join(f"{found[n]['fairness_jain']:.3f}" for n in several),
            )
            for scheduler, found in by.items()
        ),
    )


def advice(names: str) -> str:
    """Return a line for each job of the experiment `advise`, in one file or several: how far ahead each scheduler is in both."""
    runs: dict[str, dict[str, dict[str, Any]]] = {}
    said: dict[str, dict[str, Any]] = {}
    for r in (r for name in names.split() for r in lab_results(name)):
        if r["what"] == "run":
            runs.setdefault(r["job"], {})[r["scheduler"]] = r
        elif r["among"] == "all":
            said[r["job"]] = r
    base = "mq-deadline"
    others = [s for s in next(iter(runs.values())) if s != base]

    def ahead(found: dict[str, dict[str, Any]], scheduler: str) -> str:
        lab = 100 * (found[scheduler]["progress"] / found[base]["progress"] - 1)
        return f"{lab:+.0f} / {found[scheduler]['ahead_percent']:+.0f}"

    return rows(
        ("job", "processes", *(f"`{s}`" for s in others), "advise's first", "best in the lab", "`of_best`"),
        (
            (
                job,
                f"{found[base]['processes']}",
                *(ahead(found, s) for s in others),
                f"`{said[job]['scheduler']}`",
                f"`{said[job]['best']}`",
                f"{said[job]['of_best']:.3f}",
            )
            for job, found in runs.items()
        ),
    )


def first_places(names: str) -> str:
    """Return how often the first place of `advise` with RUNS=2, in one file or several, is right, and the others.

    `AMONG NAMES`: among all that ran, or the kernel's own.
    """
    among, *files = names.split()
    said = [r for name in files for r in lab_results(name) if r["what"] == "advice" and r["among"] == among]
    missed = [r for r in said if r["of_best"] < 1 - TOLD]
    lines = rows(
        ("job", "advise says", "advise's first", "best in the lab", "`of_best`", "`again_of_best`"),
        (
            (r["job"], r["outcome"], f"`{r['scheduler']}`", f"`{r['best']}`", f"{r['of_best']:.3f}", f"{r['again_of_best']:.3f}")
            for r in missed
        ),
    )
    again = sum(r["again_of_best"] >= 1 - TOLD for r in said)
    right = f"It is right for {len(said) - len(missed)} of {len(said)} jobs; that of the second run for {again}."
    return f"{right} The others:\n\n{lines}" if missed else f"{right}\n"


def watched(name: str) -> str:
    """Return what each scheduler of NAME.json alone read (and wrote) under each load, and what watch did, beside the best."""
    found = lab_results(name)
    alone: dict[str, dict[str, dict[str, Any]]] = {}
    for r in found:
        if r["what"] == "alone":
            alone.setdefault(r["scheduler"], {})[r["load"]] = r
    phases = {r["load"]: r for r in found if r["what"] == "watch"}
    loads = list(phases)

    def rates(by: Mapping[str, Mapping[str, Any]]) -> list[str]:
        written = [by[load]["write_mbps"] for load in loads]
        return [f"{by[load]['read_mbps']:.3g}" + (f" ({w:.3g})" if w else "") for load, w in zip(loads, written, strict=True)]

    def of_all(by: Mapping[str, Mapping[str, Any]]) -> str:
        return f"{geometric_mean(by[load]['read_mbps'] for load in loads):.3g}"

    body = [[f"`{name}`", *rates(by), of_all(by)] for name, by in alone.items()]
    (whole,) = (r for r in found if r["what"] == "whole")
    body.append(["`watch`", *rates(phases), f"{whole['read_mbps']:.3g}"])
    body.append(["in force at the end", *(f"`{phases[load]['scheduler']}`" for load in loads), ""])
    body.append(["that one alone, of the best", *(f"{phases[load]['of_best']:.3f}" for load in loads), ""])
    best = f"{whole['of_best']:.3f} (`{whole['scheduler']}`)"
    body.append(["`watch`, of the best single one", *("" for _ in loads), best])
    body.append(["changes", *(str(phases[load]["switches"]) for load in loads), str(whole["switches"])])
    return rows(["MB/s", *(f"`{load}`" for load in loads), "geometric mean"], body)


def programs(name: str) -> str:
    """Return a line for each scheduler of the experiment `maitre`."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for r in lab_results(name):
        by.setdefault(r["scheduler"], {})[r["load"]] = r
    several = ("2 readers", "4 readers", "8 readers")
    return rows(
        (
            "scheduler",
            "2 / 4 / 8 readers, of one",
            "longest read, ms",
            "find, s",
            "MB/s beside it",
            "small reads, mean ms",
            "longest, ms",
            "MB/s beside them",
        ),
        (
            (
                f"`{scheduler}`",
                " / ".join(f"{found[load]['of_one_reader']:.2f}" for load in several),
                " / ".join(f"{found[load]['max_lat_ms']:.0f}" for load in several),
                f"{(find := found['find beside a stream'])['elapsed_s']:.1f}",
                f"{find['throughput_MBps']:.0f}",
                f"{(small := found['small reads beside four streams'])['mean_ms']:.0f}",
                f"{small['max_lat_ms']:.0f}",
                f"{small['throughput_MBps']:.0f}",
            )
            for scheduler, found in by.items()
        ),
    )


def commits(name: str) -> str:
    """Return a line for each scheduler of the experiment `commits`."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for r in lab_results(name):
        by.setdefault(r["scheduler"], {})["sqlite3" if r["load"] == "sqlite3" else str(r["streams"])] = r
    streams = sorted(next(iter(by.values())).keys() - {"sqlite3"}, key=int)
    return rows(
        (
            "scheduler",
            *(f"commit beside {n} stream{'s'[: n != '1']}, mean / longest ms" for n in streams),
            "streams, MB/s",
            "sqlite3, s",
        ),
        (
            (
                f"`{scheduler}`",
                *(f"{found[n]['mean_ms']:.0f} / {found[n]['max_lat_ms']:.0f}" for n in streams),
                " / ".join(f"{found[n]['throughput_MBps']:.0f}" for n in streams),
                f"{found['sqlite3']['elapsed_s']:.1f}",
            )
            for scheduler, found in by.items()
        ),
    )


def groups(name: str) -> str:
    """Return a line for each scheduler and load of the experiment `groups`."""
    return rows(
        ("scheduler", "load", "light, MB/s", "heavy, MB/s", "of it: less", "more", "heavy by light"),
        (
            (
                f"`{r['scheduler']}`",
                r["load"],
                f"{r['light']:.2f}",
                f"{heavy:.2f}",
                *(f"{r[key]:.2f}" if key in r else "" for key in ("heavy/less", "heavy/more")),
                f"{heavy / r['light']:.2f}",
            )
            for r in lab_results(name)
            for heavy in (r.get("heavy", r.get("heavy/less", 0) + r.get("heavy/more", 0)),)
        ),
    )


def starts(name: str) -> str:
    """Return a line for each scheduler of the experiment `starts`."""
    by: dict[str, dict[int, dict[str, Any]]] = {}
    for r in lab_results(name):
        by.setdefault(r["scheduler"], {})[r["streams"]] = r
    counts = sorted(next(iter(by.values())))
    return rows(
        ("scheduler", *(f"start beside {n} streams, s" for n in counts), *(f"{n} streams, MB/s" for n in counts)),
        (
            (
                f"`{scheduler}`",
                *(f"{found[n]['start_s']:.1f}" for n in counts),
                *(f"{found[n]['throughput_MBps']:.0f}" for n in counts),
            )
            for scheduler, found in by.items()
        ),
    )


_OF_PAIRS = {
    "start_s": "start, s",
    "elapsed_s": "elapsed, s",
    "tar_s": "tar, s",
    "find_s": "find, s",
    "lookups_MBps": "lookups, MB/s",
    "mean_ms": "mean, ms",
    "max_lat_ms": "longest, ms",
    "throughput_MBps": "streams, MB/s",
    "written_MBps": "written, MB/s",
    "max_write_ms": "longest write(2), ms",
}


def pairs(name: str) -> str:
    """Return a line for each load and figure of the experiment `pairs`."""
    found = lab_results(name)
    schedulers = list(dict.fromkeys(r["scheduler"] for r in found))
    of = {(r["load"], r["scheduler"]): r for r in found}
    lines = [
        (load, title, *(brief(of[load, s][key]) for s in schedulers))
        for load in dict.fromkeys(r["load"] for r in found)
        for key, title in _OF_PAIRS.items()
        if key in of[load, schedulers[0]]
    ]
    return rows(("load", "figure", *(f"`{s}`" for s in schedulers)), lines)


def beside_others(kernel: str) -> str:
    """Return a line for each figure of all experiments with real programs on a kernel, and in what others are ahead."""
    found = beside.measured(kernel, lab_results)
    lines = "".join(f"- {line}\n" for line in beside.behind(found))
    return rows(*beside.table(found)) + "\nOthers are ahead of maitre by more than 3% in these:\n\n" + (lines or "- none\n")


def kernels(_: str) -> str:
    """Return what each kernel passes of `headwaiter lab kernels --try …`, in roots of several releases of Debian."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "lab" / "kernels").glob("*.json"))]
    scripts = list(dict.fromkeys(name for one in found for row in one["results"] for name in row["scripts"]))
    body = [
        [one["system"], row["release"], row["built"] or "no headers", *(row["scripts"].get(name, "") for name in scripts)]
        for one in found
        for row in one["results"]
    ]
    return rows(("system", "kernel", "built", *(f"`{name}`" for name in scripts)), body)


def agreement(name: str) -> str:
    """Return how far off throughput is in `headwaiter lab agree --random`, by scheduler, and how often the winner is right."""
    found = _of_lab(name)["summary"]
    heads = ("scheduler", "comparisons", "median", "p75", "p90", "largest", "p90_beyond", "ranges", "untold")
    titles = [head.replace("_", " ") for head in heads]
    table = rows(
        titles,
        (
            [f"`{r['scheduler']}`" if r["scheduler"] != "all" else "all", *(str(r[key]) for key in heads[1:])]
            for r in found["deviation_percent"]
        ),
    )
    right, jobs = found["winners_right"], len(found["winners"])
    return f"{table}\nThe simulator's winner was the kernel's, or within 5% of it, on {right} of {jobs} jobs.\n"


def disagreements(name: str) -> str:
    """Return what did not agree there, by seed."""
    found = _of_lab(name)["failures"]
    return rows(
        ("kernel", "drive", "job", "scheduler", "lab, MB/s", "simulator, MB/s", "its range", "off by"),
        (
            (
                f["kernel"],
                f["drive"],
                f["job"],
                f"`{f['scheduler']}`",
                f"{f['lab_MBps']:.1f}",
                f"{f['sim_MBps']:.1f}",
                f"{f['sim_low_MBps']:.1f} to {f['sim_high_MBps']:.1f}",
                f"{f['throughput_off_percent']:+.0f}%",
            )
            for f in found
        ),
    )


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
    "readers": readers,
    "programs": programs,
    "beside": beside_others,
    "commits": commits,
    "groups": groups,
    "starts": starts,
    "pairs": pairs,
    "advice": advice,
    "places": first_places,
    "watched": watched,
    "agreement": agreement,
    "kernels": kernels,
    "disagreements": disagreements,
    "regret": regret,
    "remedies": remedies_table,
    "rooms": rooms_of,
    "validated": lambda name: rows(*publications.table(name)),
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
