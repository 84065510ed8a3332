# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""revert and status undo and tell what was done also where the rest of headwaiter is broken: no library, no NumPy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakesys import FakeSystem, machine

import headwaiter
from headwaiter.queue.apply import apply
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Settings

__all__ = ["machine"]
LACKING = ("numpy", "cffi", "_cffi_backend", "zstandard", "pandas", "bokeh", "matplotlib", "scipy")
ROOMS = {"base", "cli", "queue", "report"}
"""Those of which a part is needed."""
COMMAND = """
import json, pathlib, sys

root, folder, tests, lacking, *words = sys.argv[1:]


class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in lacking.split(","):
            raise ModuleNotFoundError(f"No module named '{name}'")


sys.meta_path.insert(0, Lacking())
sys.path[:0] = [folder, tests]
from fakesys import FakeSystem
from headwaiter.queue.settings import Queue

Queue._set = lambda queue, file, value: FakeSystem(pathlib.Path(root)).set(queue.device.name, file, value)
from headwaiter.cli import main

sys.argv = ["headwaiter", *words]
try:
    main()
finally:
    print(json.dumps([name for name in sys.modules if name.startswith("headwaiter.")]), file=sys.stderr)
"""


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all of the package but its library."""
    folder = tmp_path_factory.mktemp("bare")
    shutil.copytree(Path(headwaiter.__file__).parent, folder / "headwaiter", ignore=shutil.ignore_patterns("*.so"))
    return folder


def called(bare: Path, system: FakeSystem, *words: str) -> tuple[str, list[str]]:
    """What a command prints that succeeds, and the modules of headwaiter that it has loaded."""
    given = [system.root, bare, Path(__file__).parent, ",".join(LACKING), *words, "--root", system.root]
    done = subprocess.run([sys.executable, "-P", "-c", COMMAND, *map(str, given)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules: list[str] = json.loads(done.stderr)
    return done.stdout, modules


@pytest.mark.parametrize("json_option", [(), ("--json",)])
def test_status_and_revert_need_little(machine: FakeSystem, bare: Path, json_option: tuple[str, ...]) -> None:
    machine.add("sda", wwn="naa.5000")
    before = machine.everything("sda")
    there = Machine(machine.root)
    apply([there.find("sda")], Settings("bfq", 100), there.state, "headwaiter advise --apply")
    assert machine.everything("sda") != before
    out, loaded = called(bare, machine, "status", *json_option)
    assert "wwn:naa.5000" in out and "bfq" in out
    more, again = called(bare, machine, "revert", "sda", *json_option)
    assert "echo mq-deadline" in more and machine.everything("sda") == before and there.state.all() == []
    for modules in (loaded, again):
        rooms = {name.split(".")[1] for name in modules if (bare / "headwaiter" / name.split(".")[1]).is_dir()}
        assert rooms == ROOMS and len(modules) < 30, modules


def test_what_needs_the_library_says_so_in_a_line(bare: Path) -> None:
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from headwaiter.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, bare, "schedulers"], capture_output=True, text=True, check=False, cwd=bare
    )
    assert done.returncode == 2 and "libheadwaiter.so" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("room", "needed"), [("queue", set()), ("recorder", {"zstandard"})])
def test_rooms_that_undo_and_record_need_neither_the_library_nor_numpy(bare: Path, room: str, needed: set[str]) -> None:
    """Every file of them can be imported where both are missing; an archive is packed with zstandard."""
    files = sorted((bare / "headwaiter" / room).glob("*.py"))
    names = [f"headwaiter.{room}.{path.stem}" for path in files if path.stem != "__init__"]
    lacking = COMMAND[COMMAND.index("class Lacking") : COMMAND.index("sys.path[:0]")]
    code = f"import importlib, sys\nfolder, lacking, *names = sys.argv[1:]\n{lacking}\nsys.path.insert(0, folder)\n"
    code += "for name in names:\n    importlib.import_module(name)\n"
    code += "print(*sorted({name.split('.')[1] for name in sys.modules if name.startswith('headwaiter.')}))"
    given = [sys.executable, "-P", "-c", code, str(bare), ",".join({*LACKING} - needed), *names]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(names) > 3 and set(done.stdout.split()) <= {"base", "queue", "recorder"}
