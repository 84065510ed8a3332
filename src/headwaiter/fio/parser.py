# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fio job files: lines into sections with checked options, [global] and includes resolved.

As fio reads them: `[name]` opens a job, `[global]` (any name that begins so) adds to what all later jobs start from;
`;` and `#` begin a comment anywhere in a line; an option is `name` or `name=value`; `include FILE` stands for the lines
of that file; `${NAME}` is an environment variable, `$pagesize` is 4096. Every error is one line that begins FILE:LINE.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwaiter.base.errors import Problem, plain, shown
from headwaiter.base.reading import exists, read_bytes
from headwaiter.fio.options import BY_NAME, DEPRECATED, IGNORED_NAMES, REASONS, known, refuses

_SECTION = re.compile(rb"^\s*\[[^\]\n]+\]", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_DEEPEST_INCLUDE = 16
_MOST_FILES = 1000
_MOST_BYTES = 4 << 20
_LONGEST_VALUE = 1 << 16


@dataclass(frozen=True)
class Where:
    """A line of a file; hidden: of one that the job file includes.

    Whoever wrote the job file may not be allowed to read what it includes; the user who runs it, as root perhaps, is. No word of
    such a file is printed because it is wrong.
    """

    path: str
    line: int
    hidden: bool = False

    def told(self, what: str, plainly: str = "this is not accepted") -> str:
        """Return a problem at that place; `plainly` keeps the text of the line out of it."""
        return f"{self.path}:{self.line}: {f'{plainly} (what an included file says is not shown)' if self.hidden else what}"

    def problem(self, what: str, plainly: str = "this is not accepted") -> Problem:
        """The error that something is wrong there."""
        return Problem(self.told(what, plainly))


@dataclass(frozen=True)
class OptionSetting:
    """An option's meaning, and where it was written."""

    value: Any
    where: Where
    written: str
    """The name under which it was written."""


@dataclass
class JobSection:
    """A job, with all that it inherits."""

    name: str
    where: Where
    settings: dict[str, OptionSetting] = field(default_factory=dict)

    def get(self, option: str, default: Any = None) -> Any:
        """An option's value."""
        return self.settings[option].value if option in self.settings else default

    def written(self, option: str) -> str:
        """The name under which an option was written; its own if it was not."""
        return self.settings[option].written if option in self.settings else option

    def block_sizes(self) -> list[tuple[int, int]]:
        """Smallest and largest of reads, of writes: of bssplit or bsrange, whatever bs says before or behind, as in fio 3.33."""
        return [
            ranged or fixed or (4096, 4096)
            for ranged, fixed in zip(self.get("bsrange", (None, None)), self.get("bs", (None, None)), strict=True)
        ]

    def shows(self, *options: str) -> bool:
        """Whether its name, and what is made of these options, may stand in an error: nothing of it is from an included file."""
        return not any(w.hidden for w in (self.where, *(self.settings[o].where for o in options if o in self.settings)))

    def at(self, *options: str) -> Where:
        """Return where the first of these options that is set was set, else the section's head."""
        return next((self.settings[o].where for o in options if o in self.settings), self.where)


def looks_like_job_file(head: bytes) -> bool:
    """Is this the beginning of a job file: text with a `[section]` line?"""
    return b"\0" not in head and _SECTION.search(head) is not None


def parse(path: Path, data: bytes | None = None) -> list[JobSection]:
    """The jobs of a file, in order. data: its bytes, where they have been read already (a pipe gives them once)."""
    sections: list[JobSection] = []
    defaults: dict[str, OptionSetting] = {}
    current: JobSection | None = None
    pending: list[tuple[str, str | None, Where]] = []

    def finish() -> None:
        if current is None:
            return
        _apply(current.settings, pending)
        pending.clear()
        if not current.name.startswith("global"):
            sections.append(current)

    for text, where in _Lines().of(path, None, data):
        if text.startswith("["):
            finish()
            name = text[1:].rpartition("]")[0].strip()
            if not text.endswith("]") or not name:
                raise where.problem(f"'{shown(text)}' is not a section ([NAME])", "not a section ([NAME])")
            name = plain(name)
            is_global = name.startswith("global")
            current = JobSection(name, where, defaults if is_global else dict(defaults))
            continue
        option, equals, value = (part.strip() for part in text.partition("="))
        if current is None:
            raise where.problem(
                f"option '{shown(option)}' is before the first section ([NAME])", "something is before the first section ([NAME])"
            )
        pending.append((option, value if equals else None, where))
    finish()
    if not sections:
        raise Problem(f"{path}: no jobs (no section but [global])")
    return sections


class _Lines:
    """The lines of a job file, includes in their place: so many files and so much text in all, and no more."""

    def __init__(self) -> None:
        self.files = 0
        self.length = 0

    def of(self, path: Path, included_at: Where | None, data: bytes | None = None, depth: int = 0) -> Iterator[tuple[str, Where]]:
        """Lines that say something, without comments. data: the file's bytes if it has been read already."""
        for number, raw in enumerate(self._text(path, included_at, data).splitlines(), 1):
            line = re.split("[;#]", raw)[0].strip()
            where = Where(str(path), number, included_at is not None)
            if not line:
                continue
            words = line.split(maxsplit=1)
            if words[0] != "include":
                yield line, where
                continue
            if len(words) == 1:
                raise where.problem(missing := "include: the name of a file is missing", missing)
            if depth == _DEEPEST_INCLUDE:
                raise where.problem(deep := f"include: more than {_DEEPEST_INCLUDE} files deep", deep)
            target = Path(words[1])
            try:
                found = exists(target)
            except Problem as e:
                raise where.problem(f"include: {e}", "include: no such file, or none that can be read") from None
            yield from self.of(target if found else path.parent / words[1], where, None, depth + 1)

    def _text(self, path: Path, included_at: Where | None, data: bytes | None) -> str:
        try:
            text = (read_bytes(path, _MOST_BYTES) if data is None else data).decode("utf-8")
        except UnicodeDecodeError:
            if included_at:
                raise included_at.problem(f"include: {path}: not text", "include: not text") from None
            raise Problem(f"{path}: not a job file (not text)") from None
        except Problem as e:
            if included_at:
                raise included_at.problem(f"include: {e}", "include: no such file, or none that can be read") from None
            raise
        self.files += 1
        self.length += len(text)
        if self.files > _MOST_FILES or self.length > _MOST_BYTES:
            what = f"{_MOST_FILES} files" if self.files > _MOST_FILES else f"{_MOST_BYTES >> 20} MiB of text"
            more = f"more than {what} with all that is included"
            raise (included_at or Where(str(path), 1)).problem(more, more)
        return text


def _substituted(value: str, option: str, where: Where) -> str:
    def variable(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in os.environ:
            raise where.problem(
                f"option '{option}': environment variable {name} is not set", "an environment variable is not set"
            )
        return os.environ[name]

    value = _VARIABLE.sub(variable, value).replace("$pagesize", "4096")
    if len(value) > _LONGEST_VALUE:
        raise where.problem(f"option '{shown(option)}': a value of {len(value)} characters", "a value is too long")
    for word in ("$mb_memory", "$ncpus"):
        if word in value:
            raise where.problem(f"option '{option}': {word} depends on the machine and is not supported")
    return value


def _apply(settings: dict[str, OptionSetting], pending: list[tuple[str, str | None, Where]]) -> None:
    """Check and interpret a section's options.

    The engine first: others have options of their own, and need not be set up here. Then kb_base, which changes what sizes mean.
    """
    for option, raw, where in sorted(pending, key=lambda p: ["ioengine", "kb_base", p[0]].index(p[0])):
        value = None if raw is None else _substituted(raw, option, where)
        kb_base = settings["kb_base"].value if "kb_base" in settings else 1024
        if option in IGNORED_NAMES:
            continue
        if option in DEPRECATED:
            settings[option] = OptionSetting(value, where, option)
            continue
        if refuses(option, value):
            written = f"{option}={shown(value)}" if value is not None else option
            why = f": {REASONS[option]}" if option in REASONS else ""
            raise where.problem(
                f"option '{option}' would change the result and is not supported ({written}){why}", "an option is not supported"
            )
        used = BY_NAME.get(option)
        if used is None:
            if option in known():
                continue
            close = difflib.get_close_matches(option[:100], list(known()), 1)
            raise where.problem(
                f"unknown option '{shown(option)}'" + (f" (did you mean '{close[0]}'?)" if close else ""), "unknown option"
            )
        if not value and not (used.alone and value is None):
            raise where.problem(f"option '{option}': a value is missing", "a value is missing")
        try:
            meaning = used.parse(value, kb_base)
        except ValueError as e:
            raise where.problem(f"option '{option}': {e}", "the value of an option is not accepted") from None
        _set(settings, used.name, OptionSetting(meaning, where, option))


def _set(settings: dict[str, OptionSetting], name: str, setting: OptionSetting) -> None:
    """Enter a setting; those that are two ways of saying one thing replace each other."""
    value, where = setting.value, setting.where
    if name == "rwmixwrite":
        name, value = "rwmixread", 100 - value
    elif name == "buffered":
        name, value = "direct", not value
    elif name == "bssplit":
        # Sizes are in the range that these span.
        span = tuple(part and (min(s for s, _ in part), max(s for s, _ in part)) for part in value)
        _set(settings, "bsrange", OptionSetting(span, where, setting.written))
    elif name == "allrandrepeat":
        name = "randrepeat"
    elif name == "fdatasync":
        name = "fsync"
    elif name == "fsync_on_close":
        name = "end_fsync"
    if name == "bs":
        # Sizes are ranges from here on.
        value = tuple((v, v) if isinstance(v, int) else v for v in value)
    # What is said of one direction leaves the other as it was.
    if name in ("bs", "bsrange", "bssplit", "ba", "rate", "rate_iops", "percentage_random") and name in settings:
        value = tuple(new if new is not None else old for new, old in zip(value, settings[name].value, strict=True))
    settings[name] = OptionSetting(value, where, setting.written)
