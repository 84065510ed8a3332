# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a file may include, call or import: its own room, and rooms below it (docs/architecture.md)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from callgraph import Graph, calls, circles, read, way

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs"))
from rooms import LAYERS, above, imports, modules, picture, room

ROOT = Path(__file__).resolve().parent.parent
HOSTS = ("sim", "kmod")
ROOMS = ("core", *HOSTS)
APART = {"bench", "examples", "lab", "tests"}
"""Folders of C that are no host of core: programs by themselves."""
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


def test_every_folder_of_c_has_its_place() -> None:
    """A host that is added is held to the same rules."""
    folders = (path for path in ROOT.iterdir() if path.is_dir() and path.name != "build" and not path.name.startswith("."))
    assert {path.name for path in folders if any(path.rglob("*.c"))} == {*ROOMS, *APART}


def test_includes_name_the_whole_path() -> None:
    for path, header in includes():
        assert (ROOT / header).is_file() or header.as_posix() in GENERATED, f"{path}: {header}"


def test_core_knows_no_host_and_hosts_do_not_know_each_other() -> None:
    for path, header in includes():
        assert below(path, header), f"{path} includes {header}"


def test_hosts_leave_the_operations_of_a_policy_to_the_contract() -> None:
    """What counts requests, and says what a missing operation means, stands in one place (core/elevator.h)."""
    operations = re.search(r"\tint \(\*init\).*?\n};", (ROOT / "core/elevator.h").read_text(), re.S)
    assert operations
    names = re.findall(r"\(\*(\w+)\)\(", operations[0])
    assert {"init", "insert", "dispatch", "limit_depth", "group_exit"} <= set(names)
    direct = re.compile(rf"policy->({'|'.join(names)})\(")
    found = [p for p in sources() if direct.search(p.read_text()) and p.stem != "elevator"]
    assert not found


def test_what_parts_of_a_room_share_is_internal() -> None:
    """internal.h is seen inside its room alone."""
    for path, header in includes():
        if header.name == "internal.h":
            assert path.is_relative_to(header.parent), f"{path} includes {header}"


def test_x_h_is_the_interface_of_x_c() -> None:
    """Other headers than internal.h belong to one source; these stand for a room or declare what has no source of its own."""
    for path in sources():
        if path.suffix == ".h" and path.name != "internal.h" and path.parts[:2] not in (("core", "port"), ("kmod", "api")):
            assert (ROOT / path.with_suffix(".c")).is_file() or path.as_posix() in INLINE, path


INLINE = {
    "core/port.h", "core/drive.h", "core/drive/done.h", "core/policy/policies.h", "sim/headwaiter.h",
    "core/lib/choose.h", "core/lib/decay.h", "core/lib/direction.h", "core/lib/heal.h", "core/lib/mix.h",
    "core/lib/names.h", "core/lib/tags.h", "core/lib/ticks.h", "core/reason.h",
}  # fmt: skip


@pytest.mark.thorough
def test_no_circle_of_includes() -> None:
    TopologicalSorter({path: {h for p, h in includes() if p == path} for path in sources()}).prepare()


# --- calls between C files ---

BUILDS = tuple(("core", host) for host in HOSTS)
"""What is linked together: a host with core."""

GCC = ("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-w", "-O0", "-I.", "-c")


def graph(*rooms: str) -> Graph:
    return calls(ROOT, [path for path in sources() if path.parts[0] in rooms])


def allowed() -> set[frozenset[Path]]:
    """The circles that docs/architecture.md lists with their reasons, the only such list: those still to be opened."""
    section = (ROOT / "docs" / "architecture.md").read_text().split("\n## Calls between files\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {frozenset(Path(name) for name in re.findall(r"`([^`]+)`", row)) for row in rows}


def test_no_circle_of_calls_in_the_simulator() -> None:
    """It calls back up through the table of a source, and by nothing else."""
    found = graph("core", "sim")
    for circle in circles(found):
        assert not any(path.parts[0] == "sim" for path in circle), way(found, circle)


def test_circles_of_calls_are_those_that_the_documents_list() -> None:
    """In core and kmod, too: who opens one takes its row out of docs/architecture.md, and none is added."""
    found = {circle: way(g, circle) for g in (graph(*rooms) for rooms in BUILDS) for circle in circles(g)}
    new = [way for circle, way in found.items() if circle not in allowed()]
    assert not new, f"circles of calls: {'; '.join(new)}"
    opened = [", ".join(map(str, sorted(circle))) for circle in allowed() - found.keys()]
    assert not opened, f"no circle any more: take these rows out of docs/architecture.md: {'; '.join(opened)}"


def test_a_circle_is_seen(tmp_path: Path) -> None:
    """Through a third file, through a table, and through an inline function of a header."""
    (tmp_path / "up.h").write_text("static inline int up(void)\n{\n\treturn a(1);\n}\n")
    files = {
        "a.c": "int a(int x)\n{\n\treturn b(x);\n}\n",
        "b.c": "static int (*const table[])(void) = { c };\n\nint b(int x)\n{\n\treturn table[x]();\n}\n",
        "c.c": "/* a(1) */\nint c(void)\n{\n\treturn up();\n}\n",
        "d.c": 'static int a(void)\n{\n\treturn 1;\n}\n\nint d(void)\n{\n\treturn a() + x->b + sizeof("c()");\n}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = calls(tmp_path, [Path(name) for name in ("up.h", *files)])
    a, b, c, d = map(Path, files)
    assert found == {a: {b}, b: {c}, c: {a}, d: frozenset()}
    assert circles(found) == {frozenset((a, b, c))}
    assert way(found, frozenset((a, b, c))) == "a.c calls b.c, b.c calls c.c, c.c calls a.c"


@pytest.mark.thorough
@pytest.mark.needs("binutils")
def test_calls_are_those_that_a_compiler_sees(tmp_path: Path) -> None:
    """What is read off the sources of core and the simulator is what their objects want of each other."""
    owner: dict[str, Path] = {}
    wanted: dict[Path, set[str]] = {}
    for path in (path for path in sources() if path.suffix == ".c" and path.parts[0] != "kmod"):
        compiled = tmp_path / "one.o"
        subprocess.run([*GCC, path, "-o", compiled], cwd=ROOT, check=True)
        symbols = subprocess.run(["nm", compiled], check=True, capture_output=True, text=True).stdout
        wanted[path] = set(re.findall(r"^ +U (\w+)$", symbols, re.M))
        public = re.findall(r"^[0-9a-f]+ T (\w+)$", symbols, re.M)
        assert set(public) == read((ROOT / path).read_text()).public, path
        owner |= dict.fromkeys(public, path)
    exact = {path: frozenset(owner[name] for name in names if name in owner) for path, names in wanted.items()}
    assert graph("core", "sim") == exact


# --- Python ---


def test_python_has_every_number_of_the_interface() -> None:
    """Those that the public header names, each read from there."""
    enums = re.findall(r"^enum \w+ \{(.*?)\};", (ROOT / "sim/headwaiter.h").read_text(), re.M | re.S)
    names = set(re.findall(r"\bHWS_\w+", " ".join(enums)))
    assert names == set(re.findall(r"\blib\.(HWS_\w+)", (ROOT / "src/headwaiter/engine/constants.py").read_text()))


NAMED_AFTER = {"cli", "experiments", "traces.formats"}
"""Folders whose files have the name of what a person calls: a command, an experiment, a format."""
OF_A_KIND = {"__init__", "schema"}
"""Files that several rooms have: `schema` has the fields of `--json`."""
BARE = {"base", "queue", "recorder"}
"""Rooms that work where the library and NumPy do not: what undoes a change, and what records, needs no other."""


def test_rooms_import_from_rooms_below() -> None:
    level = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    assert {room(module) for module in modules()} - {""} == set(level), "a room that has no place in LAYERS (docs/rooms.py)"
    for module, wanted in imports().items():
        for other in wanted:
            mine, theirs = room(module), room(other)
            if mine and mine != theirs:
                assert level[theirs] < level[mine], f"{module} imports {other}"


def test_what_undoes_and_what_records_needs_no_other_room() -> None:
    for module, wanted in imports().items():
        if room(module) in BARE:
            assert {room(other) for other in wanted} - {""} <= BARE, f"{module} imports {wanted}"


def test_no_circle_of_imports() -> None:
    """Not even one that a function's own import hides."""
    TopologicalSorter({module: wanted - {module} for module, wanted in imports().items()}).prepare()


def test_files_of_one_name_are_of_one_kind() -> None:
    """A command may share its name with the one file that does its work."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        folder, _, name = module.removeprefix("headwaiter.").rpartition(".")
        if name not in OF_A_KIND and folder not in NAMED_AFTER and modules()[module].name != "__init__.py":
            found[name].append(module)
    assert not {name: those for name, those in found.items() if len(those) > 1}


@pytest.mark.thorough
def test_a_class_has_a_name_of_its_own() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for module, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    assert not {name: those for name, those in found.items() if len(those) > 1}


def test_a_room_says_what_it_is() -> None:
    """In one line, which docs/architecture.md shows."""
    for name in (name for layer in LAYERS for name in layer):
        doc = ast.get_docstring(ast.parse(modules()[f"headwaiter.{name}"].read_text())) or ""
        assert doc.split("\n")[0].endswith("."), name


def test_the_picture_has_the_arrows_that_others_follow_from() -> None:
    assert above({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert (
        "  queue[queue] --> base[base]\n" in picture()
        and "  papers_reproduce[papers/reproduce] --> papers[papers]\n" in picture()
    )


def test_places_to_look_are_there() -> None:
    """Files and functions that docs/architecture.md sends a stranger to."""
    section = (ROOT / "docs/architecture.md").read_text().split("\n## Where to look\n")[1].split("\n<!-- ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith(("| to", "| ---"))]
    assert len(rows) > 10
    for row in rows:
        paths = [word for word in re.findall(r"`([^`\s]+)`", row) if "/" in word and not word.isupper()]
        names = re.findall(r"`(\w+)\(\)`", row)
        files = [path for word in paths if "NAME" not in word for path in ROOT.glob(word)]
        assert files or any("NAME" in word for word in paths) or not paths, row
        for word in paths:
            assert list(ROOT.glob(word.replace("NAME", "*"))), f"{word} is not there: {row}"
        text = "".join(path.read_text() for path in files if path.is_file())
        for name in names:
            assert re.search(rf"\b(def |class )?{name}\(", text), f"{name}() is not there: {row}"
