# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rooms of the Python package: what is in each, and which imports from which.

    python docs/rooms.py              prints every room, from the highest down, with those that it imports from
    python docs/rooms.py ROOM         prints a room's files, a line each
    python docs/rooms.py --picture    prints the picture of docs/architecture.md, in Mermaid's notation

A room is a folder. `papers` contains two that stand for themselves. The order is LAYERS; tests/test_structure.py holds it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "src"
PACKAGE = "headwaiter"
LAYERS = (
    ("base",),
    ("engine", "queue"),
    ("drives", "fio", "generated", "recorder", "traces"),
    ("conformance", "study"),
    ("judge", "lab", "measure"),
    ("tuning",),
    ("advice", "description", "regret", "sweeps"),
    ("fleet",),
    ("report", "watch"),
    ("experiments", "top"),
    ("papers", "papers.was"),
    ("papers.reproduce",),
    ("api",),
    ("cli",),
    ("__main__",),
)
"""From the lowest up. A room imports from those in front of it, and from none of its own layer."""
_ROOMS = tuple(name for layer in LAYERS for name in layer)


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    paths = sorted((SOURCES / PACKAGE).rglob("*.py"))
    return {".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def imports() -> Mapping[str, Set[str]]:
    """What each module imports of the package, wherever in it the import stands."""
    known = modules()
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not node.level, f"{path}: a relative import"
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                found[name] |= {one if one in known else str(node.module) for one in whole if one.startswith(f"{PACKAGE}.")}
            elif isinstance(node, ast.Import):
                found[name] |= {alias.name for alias in node.names if alias.name.startswith(f"{PACKAGE}.")}
    return found


def room(module: str) -> str:
    """The room of a module: of several that contain it the innermost; "" for the package itself."""
    words = module.split(".")[1:]
    inner = [name for n in range(len(words), 0, -1) if (name := ".".join(words[:n])) in _ROOMS]
    return inner[0] if inner else ".".join(words[:1])


def arrows() -> dict[str, set[str]]:
    """From each room to those that it imports from."""
    found: dict[str, set[str]] = {name: set() for name in _ROOMS}
    for module, wanted in imports().items():
        if mine := room(module):
            found.setdefault(mine, set()).update({room(other) for other in wanted} - {mine, ""})
    return found


def above(found: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """The arrows that a picture needs: without those to a room that can be reached through another one."""

    def reached(name: str) -> set[str]:
        return set(found[name]).union(*(reached(other) for other in found[name]))

    return {name: set(wanted) - set().union(*(reached(other) for other in wanted)) for name, wanted in found.items()}


def summary(path: Path) -> str:
    """The first paragraph of a file's docstring."""
    return " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0].split())


def linked(text: str) -> str:
    """With links to documents, for a document of docs/."""
    return re.sub(r"\bdocs/([\w-]+\.md)\b", r"[\1](\1)", text)


def table() -> Iterator[tuple[str, str, str]]:
    """Yield each room, from the highest down: its name, what is in it, and the rooms that it imports from but for `base`."""
    found = arrows()
    known = modules()
    for name in reversed(_ROOMS):
        path = known[f"{PACKAGE}.{name}"]
        shown = f"`{name.replace('.', '/')}{'/' if path.name == '__init__.py' else '.py'}`"
        wanted = sorted(found[name] - {"base"}, key=_ROOMS.index, reverse=True)
        yield shown, summary(path), ", ".join(one.replace(".", "/") for one in wanted)


def picture() -> str:
    """Mermaid's notation: a line for each arrow that does not follow from others."""
    found = above(arrows())

    def node(name: str) -> str:
        return f"{name.replace('.', '_').strip('_')}[{name.replace('.', '/').strip('_')}]"

    lines = [
        f"  {node(mine)} --> {node(other)}"
        for mine in reversed(_ROOMS)
        for other in sorted(found[mine], key=_ROOMS.index, reverse=True)
    ]
    return "".join(f"{line}\n" for line in ["flowchart TD", *lines])


def main(words: list[str]) -> int:
    """See above."""
    if words == ["--picture"]:
        print(picture(), end="")
    elif not words:
        for name, contents, wanted in table():
            print(f"{name.strip('`'):20} {contents}")
            if wanted:
                print(f"{'':20} -> {wanted}")
    else:
        wanted_rooms = {word.strip("/").replace("/", ".") for word in words}
        if unknown := wanted_rooms - set(_ROOMS):
            print(f"no room {', '.join(sorted(unknown))} (there are {', '.join(_ROOMS)})", file=sys.stderr)
            return 2
        for module, path in modules().items():
            if room(module) in wanted_rooms:
                print(f"{path.relative_to(SOURCES.parent)}: {summary(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
