# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a file may include or import: its own room, and rooms below it (docs/architecture.md)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("core", "sim", "kmod")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
GENERATED = {"kmod/api/private.h"}


def sources() -> list[Path]:
    """C sources and headers of core and its hosts, relative to the root."""
    return sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.[ch]"))


def includes() -> Iterator[tuple[Path, Path]]:
    """(file, header), both relative to the root. A kernel module is built with kmod/ and core/ side by side."""
    for path in sources():
        for name in INCLUDE.findall((ROOT / path).read_text()):
            header = Path(name) if name.startswith("core/") or path.parts[0] != "kmod" else Path("kmod") / name
            yield path, header


def below(path: Path, header: Path) -> bool:
    """Does a header belong to the same room of core, sim or kmod, to one that contains it, or to a room below?"""
    if header.parts[0] == path.parts[0]:
        return True
    return header.parts[0] == "core"


def test_includes_name_the_whole_path() -> None:
    for path, header in includes():
        assert (ROOT / header).is_file() or header.as_posix() in GENERATED, f"{path}: {header}"


def test_core_knows_no_host_and_hosts_do_not_know_each_other() -> None:
    for path, header in includes():
        assert below(path, header), f"{path} includes {header}"


def test_what_parts_of_a_room_share_is_internal() -> None:
    """internal.h is seen inside its room alone."""
    for path, header in includes():
        if header.name == "internal.h":
            assert path.is_relative_to(header.parent) or path.parts[0] == header.parts[0] == "sim", f"{path} includes {header}"


def test_x_h_is_the_interface_of_x_c() -> None:
    """Other headers than internal.h belong to one source; these stand for a room or declare what has no source of its own."""
    for path in sources():
        if path.suffix == ".h" and path.name != "internal.h" and path.parts[:2] not in (("core", "port"), ("kmod", "api")):
            assert (ROOT / path.with_suffix(".c")).is_file() or path.as_posix() in INLINE, path


INLINE = {
    "core/port.h", "core/drive.h", "core/policy/policies.h", "sim/headwaiter.h",
    "core/lib/choose.h", "core/lib/decay.h", "core/lib/heal.h", "core/lib/ticks.h",
}  # fmt: skip


# --- Python ---

# From the lowest up: a room may import from those in front of it. Files beside the rooms are helpers that know no room.
PACKAGE = "headwaiter"
LAYERS = (
    {"ending", "errors", "outputs", "parsing", "paths", "reading"},
    {"engine"},
    {"drives", "fio", "traces"},
    {"study"},
    {"lab", "report"},
    {"conformance"},
    {"cli"},
    {"__main__"},
)  # fmt: skip


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    paths = sorted((ROOT / PACKAGE).rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports() -> dict[str, set[str]]:
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
    """The folder of a module, or the module itself where it lies beside the folders."""
    return module.split(".")[1] if "." in module else ""


def test_rooms_import_from_rooms_below() -> None:
    level = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    assert {room(module) for module in modules()} - {""} == set(level), "a room that has no place in LAYERS"
    for module, wanted in imports().items():
        for other in wanted:
            mine, theirs = room(module), room(other)
            if mine and mine != theirs:
                assert level[theirs] < level[mine] or (level[theirs] == level[mine] == 0), f"{module} imports {other}"


def test_no_circle_of_imports() -> None:
    """Not even one that a function's own import hides."""
    TopologicalSorter({module: wanted - {module} for module, wanted in imports().items()}).prepare()
