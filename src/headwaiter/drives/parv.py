# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The notation of DiskSim's parameter files: `type name { key = value, … }`, lists, comments, and inclusion.

Keys may contain blanks. `source FILE` includes a file, at the top level or as a value; file names are relative to the
including file. What the instances are wired to (`topology`) is read over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from headwaiter.base.errors import Problem
from headwaiter.base.parsing import real
from headwaiter.base.reading import TEXT_BYTES, exists, read_bytes

_TOKEN = re.compile(r"#[^\n]*|[{}\[\]=,]|[^\s{}\[\]=,#]+|\n")
_MARKS = frozenset("{}[]=,")
_DEEPEST = 16  # files that include each other
_MOST_FILES = 1000
_NESTED = 32  # blocks and lists within each other
_LARGEST = 1e15
_HIDDEN = " (what an included file says is not shown)"


@dataclass
class Block:
    """`kind name { … }`: values by key, each a string, a list, or a block; and where it begins."""

    kind: str
    name: str
    path: Path
    line: int
    included: bool = False
    """From another file than the one that was named: no word of it is printed because it is wrong (see fio.parser.Where)."""
    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def fail(self, key: str, what: str, plainly: str = "is not as it must be") -> NoReturn:
        """Problem that names the file, the key's line and the key."""
        line = self.lines.get(key, self.line)
        raise Problem(f"{self.path}: line {line}: {key}: {plainly + _HIDDEN if self.included else what}")

    def text(self, key: str, default: str | None = None) -> str:
        """A value as it stands."""
        value = self.values.get(key, default)
        if value is None:
            self.fail(key, f"is missing in {self.kind} {self.name}".rstrip(), "is missing")
        if not isinstance(value, str):
            self.fail(key, what := "must be a plain value", what)
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A value as a number."""
        value = self.text(key, None if default is None else repr(default))
        try:
            return real(value, -_LARGEST, _LARGEST)
        except ValueError as e:
            self.fail(key, str(e))

    def integer(self, key: str, default: int | None = None) -> int:
        """A value as a whole number; fractions are cut, as DiskSim does."""
        return int(self.number(key, default))

    def block(self, key: str) -> Block:
        """A value that is itself a block."""
        value = self.values.get(key)
        if not isinstance(value, Block):
            self.fail(key, what := "is missing" if value is None else "must be a block", what)
        return value

    def items(self, key: str) -> list[Value]:
        """A list; empty if there is none."""
        value = self.values.get(key, [])
        if not isinstance(value, list):
            self.fail(key, what := "must be a list", what)
        return value

    def numbers(self, key: str) -> list[float]:
        """A list of numbers."""
        out = []
        for item in self.items(key):
            try:
                out.append(real(item if isinstance(item, str) else "", -_LARGEST, _LARGEST))
            except ValueError as e:
                self.fail(key, f"must be a list of numbers: {e}")
        return out


Value = str | list["Value"] | Block


@dataclass
class Parameters:
    """A whole parameter file: blocks in order, and which block each instance is of."""

    path: Path
    blocks: list[Block] = field(default_factory=list)
    instances: set[str] = field(default_factory=set)

    def instantiated(self, kind: str) -> list[Block]:
        """The blocks of a kind that something is instantiated as; all of them if nothing is."""
        found = [b for b in self.blocks if b.kind == kind]
        return [b for b in found if b.name in self.instances] or found


class _Budget:
    """The most that all files together may hold: a few lines of inclusion can stand for more than any machine has."""

    def __init__(self) -> None:
        self.left = TEXT_BYTES
        self.files = _MOST_FILES

    def read(self, path: Path) -> str:
        source = read_bytes(path, TEXT_BYTES).decode("latin-1")
        self.left -= len(source)
        self.files -= 1
        if self.left < 0 or self.files < 0:
            raise Problem(f"{path}: with it the parameters exceed {TEXT_BYTES >> 20} MiB or {_MOST_FILES} files")
        return source


class _Reader:
    """A file as tokens with line numbers."""

    def __init__(self, path: Path, depth: int, budget: _Budget) -> None:
        self.path, self.depth, self.budget = path, depth, budget
        self.nesting = 0
        if depth > _DEEPEST:
            raise Problem(f"{path}: files include each other too deeply")
        source = budget.read(path)
        self.tokens: list[tuple[str, int]] = []
        line = 1
        for m in _TOKEN.finditer(source):
            if m[0] == "\n":
                line += 1
            elif not m[0].startswith("#"):
                self.tokens.append((m[0], line))
        self.at = 0
        self.last_line = line

    def fail(self, what: str, plainly: str = "not the notation of a parameter file") -> NoReturn:
        what = plainly + _HIDDEN if self.depth else what
        line = self.tokens[self.at][1] if self.at < len(self.tokens) else self.last_line
        raise Problem(f"{self.path}: line {line}: {what}")

    @property
    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    @property
    def line(self) -> int:
        return self.tokens[min(self.at, len(self.tokens) - 1)][1] if self.tokens else 1

    def take(self, expected: str = "") -> str:
        token = self.peek
        if not token:
            self.fail(f"ends where '{expected}' should be" if expected else "ends too early")
        if expected and token != expected:
            self.fail(f"'{token}' where '{expected}' should be")
        self.at += 1
        return token

    def words(self) -> list[str]:
        out = []
        while self.peek and self.peek not in _MARKS:
            out.append(self.take())
        return out

    def include(self) -> _Reader:
        target = self.path.parent / self.take()
        if self.depth:
            self._check_there(target)
        return _Reader(target, self.depth + 1, self.budget)

    def _check_there(self, target: Path) -> None:
        """The name of what is not there stays in the file."""
        with suppress(Problem):
            if exists(target):
                return
        self.at -= 1
        self.fail("", "includes what is not there")

    def value(self) -> Value:
        self.nesting += 1
        if self.nesting > _NESTED:
            self.fail(deep := f"nested more than {_NESTED} deep", deep)
        value = self._value()
        self.nesting -= 1
        return value

    def _value(self) -> Value:
        if self.peek == "[":
            return self.items()
        line = self.line
        if self.peek == "source":
            self.take()
            inner = self.include()
            value = inner.value()
            if inner.peek:
                inner.fail(f"'{inner.peek}' after the end of what is included")
            return value
        words = self.words()
        if self.peek == "{":
            return self.block(words, line)
        return " ".join(words)

    def items(self) -> list[Value]:
        self.take("[")
        out: list[Value] = []
        while self.peek != "]":
            out.append(self.value())
            if self.peek == ",":
                self.take()
            elif self.peek != "]":
                self.fail(f"'{self.peek}' where ',' or ']' should be" if self.peek else "ends within a list")
        self.take("]")
        return out

    def block(self, words: list[str], line: int) -> Block:
        if not words:
            self.fail("a block without a type")
        out = Block(words[0], " ".join(words[1:]), self.path, line, self.depth > 0)
        self.take("{")
        while self.peek != "}":
            line = self.line
            key = " ".join(self.words())
            if not key:
                self.fail(f"'{self.peek}' where a key should be" if self.peek else "ends within a block")
            self.take("=")
            out.values[key] = self.value()
            out.lines[key] = line
            if self.peek == ",":
                self.take()
            elif self.peek != "}":
                self.fail(f"'{self.peek}' where ',' or '}}' should be" if self.peek else "ends within a block")
        self.take("}")
        return out


def _top(reader: _Reader, into: Parameters) -> None:
    while reader.peek:
        line = reader.line
        if reader.peek == "source":
            reader.take()
            _top(reader.include(), into)
        elif reader.peek == "instantiate":
            reader.take()
            reader.items()
            reader.take("as")
            into.instances.add(reader.take())
        elif reader.peek == "topology":
            _skip_topology(reader)
        else:
            into.blocks.append(reader.block(reader.words(), line))


def _skip_topology(reader: _Reader) -> None:
    depth = 0
    while True:
        token = reader.take()
        depth += (token == "[") - (token == "]")
        if token == "]" and depth == 0:
            return


def read_parameters(path: Path) -> Parameters:
    """A .parv, .diskspecs or .model file with all that it includes; Problem with file and line if it is malformed."""
    out = Parameters(path)
    _top(_Reader(path, 0, _Budget()), out)
    return out


def read_curve(path: Path) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """A .seek file: (distance in cylinders, ms) of reads, and of writes if it has them in a fourth column.

    The first line may be a heading. A point at distance 0 is left out: it takes no time to stay.
    """
    lines = read_bytes(path, TEXT_BYTES).decode("latin-1").splitlines()
    reads: list[tuple[int, float]] = []
    writes: list[tuple[int, float]] = []
    for number, fields in _rows(lines):
        try:
            values = [real(f, -_LARGEST, _LARGEST) for f in fields]
        except ValueError:
            raise Problem(f"{path}: line {number}: not 'distance, ms'{_HIDDEN}") from None
        if len(values) < 2 or values[0] != int(values[0]):
            raise Problem(f"{path}: line {number}: not 'distance, ms'")
        if values[0] == 0:
            continue
        if reads and values[0] <= reads[-1][0]:
            raise Problem(f"{path}: line {number}: distances must increase")
        reads.append((int(values[0]), values[1]))
        if len(values) >= 4:
            writes.append((int(values[0]), values[3]))
    if not reads:
        raise Problem(f"{path}: contains no points of a seek curve")
    return reads, writes


def _rows(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        fields = re.split(r"[,\s]+", line.partition("#")[0].strip())
        if fields != [""] and not (number == 1 and "measured" in line):
            yield number, fields
