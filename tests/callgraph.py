# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which C file calls functions of which other, read off the sources.

Read, not compiled: kernel modules count too, for which no object is there. A function is what stands at the beginning of
a line and has a body; a file calls whatever other file's function it names, be it for a table. What an inline function or a
macro of a header names counts for the files that name it. test_structure.py compares all this with what a compiler says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Graph = Mapping[Path, frozenset[Path]]

_NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
_DEFINITION = re.compile(
    r"^(?P<kind>[A-Za-z_][\w \t*]*?)\b(?P<name>\w+)\((?P<arguments>[^;{}]*)\)\s*\n?\{(?P<body>.*?)^\}", re.M | re.S
)
_MACRO = re.compile(r"^#define[ \t]+(?P<name>\w+)(?P<body>(?:[^\\\n]|\\\n)*)", re.M)
# Neither members nor tags of structs: they may be called as a function is.
_WORD = re.compile(r"(?<![\w.>])(?<!struct )(?<!enum )[A-Za-z_]\w*")


@dataclass(frozen=True)
class Source:
    """What a file defines for others and for itself alone, what it names, and what each of its functions and macros names."""

    public: frozenset[str]
    private: frozenset[str]
    words: frozenset[str]
    inline: Mapping[str, frozenset[str]]


def _words(code: str) -> frozenset[str]:
    return frozenset(_WORD.findall(code))


def read(text: str) -> Source:
    """A C file or header."""
    code = _NOT_CODE.sub(" ", text)
    public: set[str] = set()
    private: set[str] = set()
    inline: dict[str, frozenset[str]] = {}
    for found in _MACRO.finditer(code):
        inline[found["name"]] = _words(found["body"])
    for found in _DEFINITION.finditer(code):
        name = found["name"]
        (private if re.search(r"\bstatic\b", found["kind"]) else public).add(name)
        inline[name] = _words(found["body"])
    return Source(frozenset(public), frozenset(private), _words(code), inline)


def calls(root: Path, paths: Iterable[Path]) -> Graph:
    """For every .c file of these, relative to the root, those of them whose functions it names."""
    known = {path: read((root / path).read_text()) for path in paths}
    sources = {path: s for path, s in known.items() if path.suffix == ".c"}
    inline = {name: words for path, s in known.items() if path.suffix == ".h" for name, words in s.inline.items()}
    owners: dict[str, list[Path]] = {}
    for path, s in sources.items():
        for name in s.public:
            owners.setdefault(name, []).append(path)

    def named(s: Source) -> set[str]:
        """With what the inline functions name that it names."""
        found: set[str] = set()
        more = set(s.words)
        while more:
            found |= more
            more = {word for name in more & inline.keys() for word in inline[name]} - found
        return found - s.private - s.public

    return {path: frozenset(owner for name in named(s) for owner in owners.get(name, ())) - {path} for path, s in sources.items()}


def circles(graph: Graph) -> set[frozenset[Path]]:
    """The largest sets of files in which every one calls every other, directly or through others."""
    reach = {path: set(callees) for path, callees in graph.items()}
    for through in graph:
        for path in graph:
            if through in reach[path]:
                reach[path] |= reach[through]
    return {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}


def way(graph: Graph, circle: frozenset[Path]) -> str:
    """One round through a circle, for people."""
    path = [min(circle)]
    while len(path) < 2 or path[-1] not in path[:-1]:
        path.append(min(graph[path[-1]] & circle))
    return ", ".join(f"{a} calls {b}" for a, b in pairwise(path[path.index(path[-1]) :]))
