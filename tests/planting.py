# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults that mutmut plants in the Python package: which there are on some lines, and which survivors are accepted.

A survivor is accepted in tests/mutants/survivors.toml by the text of its lines, not by their numbers, so that it stays known
when the file around it changes:

    [[survivor]]
    file = "src/headwaiter/x.py"
    line = "limit = 2 * size"
    mutated = "limit = 3 * size"
    why = "a larger limit costs memory, nothing else"
"""

from __future__ import annotations

import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_arg_removal, operator_string

ROOT = Path(__file__).resolve().parent.parent
SURVIVORS = ROOT / "tests" / "mutants" / "survivors.toml"
PACKAGE = "src/headwaiter"
Lines = Mapping[str, Collection[int]]
"""The numbers of some lines, by file, relative to the root."""


@dataclass(frozen=True)
class Fault:
    """One file that differs in one place."""

    file: str
    number: int
    """The number of the first line that differs."""
    before: str
    after: str
    text: str
    """The whole file, with the fault."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What a survivor is known by."""
        return self.file, _words(self.before), _words(self.after)

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: - {_words(self.before)}  + {_words(self.after)}"


@dataclass(frozen=True)
class Survivor:
    """An entry of survivors.toml."""

    file: str
    line: str
    mutated: str
    why: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, _words(self.line), _words(self.mutated)


def _words(text: str) -> str:
    return " ".join(text.split())


class _Finder(cst.CSTVisitor):
    """Every change of one node that begins on one of the lines."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, lines: Collection[int]) -> None:
        super().__init__()
        self.lines = lines
        self.changes: list[tuple[CodeRange, cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        # Types are mypy's; a decorator that is called otherwise fails when the module is imported.
        if isinstance(node, (cst.Annotation, cst.Decorator)) or _typing(node) or _indifferent(node):
            return False
        place = self.get_metadata(PositionProvider, node, None)
        if isinstance(place, CodeRange) and place.start.line in self.lines:
            for kind, operator in mutation_operators:
                if isinstance(node, kind):
                    self.changes += ((place, node, new) for new in _kept(operator, node))
        return True


def _typing(node: cst.CSTNode) -> bool:
    """Does it only say something to a type checker?"""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return node.func.value in {"cast", "TypeVar"}
    return isinstance(node, cst.If) and isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"


def _indifferent(node: cst.CSTNode) -> bool:
    """Does it say what Python does here anyway, where text is UTF-8, and a program's status is looked at?"""
    return isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value in {"encoding", "check"}


def _kept(operator: Callable[[Any], Iterable[cst.CSTNode]], node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    """What an operator makes of a node, but what no test would ask for."""
    if operator == operator_string:
        # What is said to people may be said otherwise: no test asks for its words. And one change of a string is enough.
        if not isinstance(node, cst.SimpleString) or " " in str(node.evaluated_value):
            return ()
        return islice(operator_string(node), 1)
    if operator == operator_arg_removal and isinstance(node, cst.Call):
        told = {id(arg) for arg in node.args if _indifferent(arg)}
        return (new for new in operator(node) if isinstance(new, cst.Call) and told <= {id(arg) for arg in new.args})
    return operator(node)


def faults(file: str, lines: Collection[int], source: str | None = None) -> list[Fault]:
    """All that the tool can do to some lines of a file."""
    source = (ROOT / file).read_text(encoding="utf-8") if source is None else source
    finder = _Finder(lines)
    tree = MetadataWrapper(cst.parse_module(source))
    tree.visit(finder)
    starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    found: dict[tuple[int, str], Fault] = {}
    for place, old, new in finder.changes:
        begin, end = (starts[at.line - 1] + at.column for at in (place.start, place.end))
        if source[begin:end] == tree.module.code_for_node(old):
            text = source[:begin] + tree.module.code_for_node(new) + source[end:]
        else:
            text = _replaced(tree.module, old, new)
        if text != source:
            fault = _fault(file, source, text)
            found.setdefault((fault.number, fault.after), fault)
    return list(found.values())


def _replaced(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> str:
    """The slow way, for a node whose text spreads over lines."""
    changed = module.deep_replace(old, new)
    assert isinstance(changed, cst.Module)
    return changed.code


def _compiles(text: str) -> bool:
    try:
        compile(text, PACKAGE, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _fault(file: str, source: str, text: str) -> Fault:
    """The lines from the first that differs to the last."""
    old, new = source.splitlines(), text.splitlines()
    first = _alike(old, new)
    last = min(_alike(old[::-1], new[::-1]), min(len(old), len(new)) - first)
    return Fault(file, first + 1, "\n".join(old[first : len(old) - last]), "\n".join(new[first : len(new) - last]), text)


def _alike(one: list[str], other: list[str]) -> int:
    """So many lines are the same at the beginning."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def sample(lines: Lines, most: int, seed: str, accepted: Collection[tuple[str, str, str]] = ()) -> tuple[list[Fault], int]:
    """(some faults, how many there are) but those accepted. Two are on the same line only if no other line is left."""
    by_line: defaultdict[tuple[str, int], list[Fault]] = defaultdict(list)
    for file, numbers in sorted(lines.items()):
        for fault in faults(file, numbers):
            if fault.key not in accepted:
                by_line[file, fault.number].append(fault)
    dice = random.Random(seed)
    places = list(by_line.values())
    dice.shuffle(places)
    for place in places:
        dice.shuffle(place)
    rounds = (place[i] for i in range(max(map(len, places), default=0)) for place in places if i < len(place))
    valid = (fault for fault in rounds if _compiles(fault.text))
    return list(islice(valid, most)), sum(map(len, places))


def touched(diff: str) -> dict[str, set[int]]:
    """The lines of the package that a diff without context adds."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    file = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line[4:].removeprefix("b/").rstrip("\t")
        elif m := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(m[1]), int(m[2] or 1)
            if file.startswith(f"{PACKAGE}/") and file.endswith(".py"):
                found[file] |= set(range(first, first + count))
    return {file: lines for file, lines in found.items() if lines}


def every_line(file: str) -> range:
    """All of a file."""
    return range(1, (ROOT / file).read_text(encoding="utf-8").count("\n") + 2)


def survivors() -> list[Survivor]:
    """Those that are accepted."""
    return [Survivor(**entry) for entry in tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])]


def stale(accepted: Collection[Survivor]) -> list[str]:
    """Entries that accept no fault which the tool plants in today's sources."""
    known: set[tuple[str, str, str]] = set()
    for file in {s.file for s in accepted if (ROOT / s.file).is_file()}:
        source = (ROOT / file).read_text(encoding="utf-8")
        wanted = {_words(s.line) for s in accepted if s.file == file}
        rows = source.splitlines()
        # A fault is known by its lines from the first that differs to the last; the first may stand in a statement's middle.
        starts = {i for i, row in enumerate(rows, 1) if row.strip() and any(w.startswith(_words(row)) for w in wanted)}
        near = {n for start in starts for n in range(max(1, start - STATEMENT), start + 1)}
        known |= {fault.key for fault in faults(file, near)}
    lines = [
        f"{SURVIVORS.relative_to(ROOT)}: {s.file}: no fault makes '{s.line}' '{s.mutated}'"
        for s in accepted
        if s.key not in known
    ]
    return sorted(lines)


STATEMENT = 12
"""So many lines above its first difference a change of one node may begin."""
