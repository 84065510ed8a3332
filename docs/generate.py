# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Put generated tables into the documents: what stands between `<!-- KIND: NAME -->` and `<!-- end -->`.

    python docs/generate.py            rewrites the documents
    python docs/generate.py --check    fails if one would change

Kinds: `tunables: SCHEDULER`, `stats: SCHEDULER`, `schedulers: FOLDER`, `formats: all`, `drives: all`, `parameters: MODEL`, and
`output: headwaiter …`, which is what a command prints.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from headwaiter.cli.schedulers import bounds
from headwaiter.drives import bundled, load
from headwaiter.drives.params import models
from headwaiter.fio.options import IGNORED, REFUSED, USED
from headwaiter.schedulers import catalogue, find
from headwaiter.traces import formats as trace_formats

ROOT = Path(__file__).resolve().parent.parent
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
    return rows(("tunable", "default", "unit", "values", "meaning"),
                ((f"`{t.name}`", t.show(t.default), t.unit, bounds(t), t.help) for t in s.tunables.values()))


def stats(name: str) -> str:
    """Every figure that a scheduler lets be read."""
    s = find(name)
    return rows(("figure", "unit", "meaning"), ((f"`{t.name}`", t.unit, t.help) for t in s.stats.values()))


def schedulers(folder: str) -> str:
    """All schedulers, a line each, with links to their pages in `folder`."""
    return rows(("scheduler", "what", "source"),
                ((f"[`{s.name}`]({folder}/{s.name}.md)", s.summary, s.source) for s in catalogue().values()))


def formats(_: str) -> str:
    """All trace formats that can be read, a line each."""
    return rows(("format", "what"), ((f"`{f.name}`", f.title) for f in trace_formats().values()))


def drives(_: str) -> str:
    """All bundled drives, a line each."""
    return rows(("drive", "capacity", "queue", "what"),
                ((f"`{p.name}`", f"{p.facts[0] * 512 / 1e9:.0f} GB", p.facts[1], p.description)
                 for p in map(load, bundled().values())))


def parameters(name: str) -> str:
    """Every parameter of a drive model."""
    return rows(("parameter", "default", "unit", "values", "meaning"),
                ((f"`{key}`", p.default_text, p.unit, p.bounds, p.help) for p, key in models()[name].rows()))


def output(command: str) -> str:
    """What a headwaiter command prints, run from the top folder."""
    program, *words = shlex.split(command)
    assert program == "headwaiter", command
    done = subprocess.run([sys.executable, "-P", "-m", program, *words], check=True, capture_output=True, text=True, cwd=ROOT)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return f"```text\n$ {command}\n" + "\n".join(lines) + "\n```\n"


def fio_options(_: str) -> str:
    """Every option of fio, by what becomes of it."""
    used = rows(("option", "meaning"), ((", ".join(f"`{n}`" for n in o.names), o.help) for o in USED))
    ignored = rows(("ignored: it is about", "options"),
                   ((why, ", ".join(f"`{n}`" for n in names.split())) for why, names in IGNORED.items()))
    refused = ", ".join(f"`{name}`" + (f" ({' or '.join(f'`{v}`' for v in harmless)} is accepted)" if harmless else "")
                        for name, harmless in REFUSED.items())
    return f"{used}\n{ignored}\nRefused: {refused}.\n"


KINDS: dict[str, Callable[[str], str]] = {
    "tunables": tunables, "stats": stats, "schedulers": schedulers, "formats": formats, "drives": drives,
    "parameters": parameters, "output": output,
    "options": fio_options,
}


def generate(text: str) -> str:
    """The document with every generated block made anew."""
    def block(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind not in KINDS:
            return match.group(0)
        return f"<!-- {kind}: {name} -->\n{KINDS[kind](name)}<!-- end -->\n"

    return BLOCK.sub(block, text)


def main() -> int:
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = path.read_text()
        new = generate(old)
        if new != old:
            stale.append(path)
            if "--check" not in sys.argv:
                path.write_text(new)
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'stale: run make docs' if '--check' in sys.argv else 'rewritten'}")
    return int(bool(stale) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
