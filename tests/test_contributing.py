# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CONTRIBUTING.md, followed once: a policy, a trace format and a drive are added to a copy of the tree, as its lists say.

A step is known by its name (in bold); files and commands are those that it quotes. `mine` is what is added.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import planting
import pytest
from conftest import ROOT

import headwaiter

pytestmark = pytest.mark.thorough
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MEASURED = re.compile("<!-- (?:output|remedies|shell|waits): ")
"""Parts of documents that `make docs` takes long to make anew: a copy's are left as they are."""
PARTS = ("bench", "core", "docs", "drives", "examples", "package", "src", "kmod", "lab", "sim", "tests", "workloads")


def steps(title: str, *names: str) -> list[list[str]]:
    """What the steps of a list quote; there are these steps and no others."""
    section = re.search(rf"^## {title}\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    assert section, title
    parts = re.split(r"^\d+\. \*\*([^*]+)\.\*\* ", section[1], flags=re.MULTILINE)[1:]
    assert tuple(parts[::2]) == names, f"{title}: a step that is not followed here, or is gone"
    return [re.findall(r"`([^`]+)`", text) for text in parts[1::2]]


class Tree:
    """A copy of the project, and its commands as somebody in it would give them; what is compiled is the installed one's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        ignored = shutil.ignore_patterns("__pycache__", "data", "build")
        for part in PARTS:
            shutil.copytree(ROOT / part, root / part, ignore=None if part == "tests" else ignored)
        for name in ("Makefile", "README.md", "CONTRIBUTING.md", "meson.build", "meson.options", "pyproject.toml"):
            shutil.copy(ROOT / name, root)
        installed = Path(headwaiter.__file__).parent
        for path in (*installed.glob("*.so"), *installed.glob("*.h")):
            shutil.copy(path, root / "src" / "headwaiter")
        for name in ("drives", "workloads"):
            (root / "src/headwaiter/data" / name).parent.mkdir(exist_ok=True)
            (root / "src/headwaiter/data" / name).symlink_to(root / name)
        for path in (root / "README.md", *(root / "docs").rglob("*.md")):
            path.write_text(MEASURED.sub("<!-- left: ", path.read_text(encoding="utf-8")), encoding="utf-8")
        (root / ".venv").symlink_to(sys.prefix)
        self.env = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(root / "src"),
            "HEADWAITER_SOURCE": str(root),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, *words: object) -> str:
        """What a command prints. Nothing is compiled anew, and headwaiter is the tree's."""
        program, *rest = " ".join(map(str, words)).split()
        start = {"make": ["make", "-o", "build"], "headwaiter": [sys.executable, "-P", "-m", "headwaiter"]}.get(
            program, [program]
        )
        done = subprocess.run([*start, *rest], cwd=self.root, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def pytest(self, *args: str) -> str:
        return self.run(sys.executable, "-m pytest -p no:cacheprovider", *args)

    def write(self, path: str, text: str) -> Path:
        """A new file."""
        assert not (self.root / path).exists()
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")
        return self.root / path

    def replace(self, path: str, old: str, new: str) -> None:
        """A change of a file."""
        text = self.read(path)
        assert text.count(old) == 1, old
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


READER = '''# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Made for a test: `mine 1`, then a line `ns sector sectors op` for each request, op r or w."""

from __future__ import annotations

from headwaiter.engine.constants import Op
from headwaiter.traces.fields import split
from headwaiter.traces.one_device import refuse_device
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.registry import Format, ReadOptions as Options
from headwaiter.traces.source import Source

_HEADER = b"mine 1\\n"
_OPS = {"r": int(Op.READ), "w": int(Op.WRITE)}


def sniff(head: bytes) -> bool:
    """Whether the header is there."""
    return head.startswith(_HEADER)


def read(source: Source, options: Options) -> Trace:
    """Read a trace. Raises Problem at the first line that breaks the format."""
    refuse_device(source, options.device)
    table = split(source, 4, skip_lines=1)
    return make_trace(
        source=str(source.path),
        format=FORMAT.name,
        time_ns=table.integers(0, "time", high=MAX_TIME_NS),
        sector=table.integers(1, "sector", high=MAX_SECTOR),
        sectors=table.integers(2, "number of sectors", high=2**32 - 1),
        op=table.words(3, "op", _OPS),
    )


FORMAT = Format("mine", "made for a test (ns sector sectors op)", sniff, read)
'''
SAMPLE = "mine 1\n5 800 8 r\n9 16 24 w\n"
SAMPLES = f"""from pathlib import Path

from headwaiter.traces import load


def test_mine(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text({SAMPLE!r})
    t = load(path)
    assert t.format == "mine"
    found = list(zip(t.time_ns.tolist(), t.sector.tolist(), t.sectors.tolist(), t.op.tolist(), strict=True))
    assert found == [(5, 800, 8, 0), (9, 16, 24, 1)]
"""


def add_policy(tree: Tree) -> str:
    """It stays as it is made: first come, first served. Its page."""
    create, write, scenarios, faults, page, kernel = steps(
        "Add a policy", "Create", "Write", "Scenarios", "Faults", "Page", "Kernel"
    )
    make, source, compare = create
    assert make == "make new-policy NAME=mine" and kernel == ["make kmod", "hw-mine", "headwaiter lab run smoke"]
    tree.run(sys.executable, "core/new-policy mine")
    tree.replace(source, '\t.summary = "', '\t.summary = "mine: ')
    tree.run("meson setup build/c -Doptimization=0 -Ddebug=false")
    tree.run("meson compile -C build/c headwaiter")
    tree.env["HEADWAITER_LIBRARY"] = str(tree.root / "build" / "c" / "sim" / "libheadwaiter.so")
    assert "mine" in tree.run(compare, "--seeds 0 -d constant:1")
    assert (tree.root / write[0]).is_file() and "hw_mine" in tree.read("core/policy/all.c")
    assert "Worked out by hand" in tree.read(scenarios[0]) and " passed" in tree.pytest("tests/test_golden.py -k mine-")
    (fault,) = tomllib.loads(tree.read(faults[0]))["mutant"]
    assert (
        fault["file"] == source
        and tree.read(source).count(fault["find"]) == 1
        and faults[1] == "make mutants ONLY=core/policy/mine"
    )
    assert page[1] == "make docs" and "static const" in tree.read(page[2])
    return page[0]


def add_format(tree: Tree) -> str:
    """Its page."""
    reader, samples, fuzzing, faults, page = steps("Add a trace format", "Reader", "Samples", "Fuzzing", "Faults", "Page")
    assert reader[1:] == ["read", "make_trace(...)", "sniff", "FORMAT"]
    tree.write(reader[0], READER)
    trace = tree.write("sample", SAMPLE)
    assert tree.run("headwaiter import", trace).splitlines()[1].startswith("0.000000005,0,R,1,800,8")
    tree.write(samples[0], SAMPLES)
    assert "1 passed" in tree.pytest(samples[0])
    corpus, words, make = fuzzing
    tree.write(f"{corpus}/two", SAMPLE)
    tree.replace(words, '    "mqsim": "', '    "mine": "mine 1 r w 0 8",\n    "mqsim": "')
    assert make == "make fuzz FUZZ=mine"
    tree.env["FUZZ"] = "mine --executions 300 --seed 1"
    assert "mine" in tree.run("make fuzz")
    assert faults[0] == "make mutants ONLY=formats/mine" and ROOT / faults[1] == planting.SURVIVORS
    assert planting.faults(reader[0], range(1, 99), READER), "the tool has something to plant there"
    assert page[0] == "make docs"
    return page[1]


def add_drive(tree: Tree) -> str:
    """Its page."""
    profile, sources, check, page = steps("Add a drive", "Profile", "Sources", "Check", "Page")
    assert profile[1] == "headwaiter drives import"  # test_convert's
    tree.run(profile[0], "--rpm 7200 --capacity 80GB --seek-average 8.5 --name Mine -o", sources[0])
    assert re.search(r"^surfaces = .*# ", tree.read(sources[0]), re.M), "what was guessed says so"
    trace = tree.write("measured", "R Hit 1 8 4000 1\nW Hit 900000 8 8000 1\n")
    assert "demerit figure" in tree.run(check[0].replace("TRACE", str(trace)))
    assert page[0] == "make docs"
    return page[1]


def test_a_policy_a_trace_format_and_a_drive(tree: Tree) -> None:
    policies, formats, drives = add_policy(tree), add_format(tree), add_drive(tree)
    tree.run("make docs")
    assert "<!-- tunables: mine -->\n" in tree.read(policies)
    assert "mine: first come, first served" in tree.read("docs/architecture.md")
    assert "| `mine` | made for a test (ns sector sectors op) |" in tree.read(formats)
    assert "| `mine` | 80 GB | 1 | Mine |" in tree.read(drives)


SCRIPT = """# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# How long a read takes on a disk of a fixed service time
# lab: stock configfs null_blk
# lab: programs dd
# lab: set SERVICE_NS=3000000
null_disk sda 16 "$SERVICE_NS"
before=$(cut -d' ' -f1 /proc/uptime | tr -d .)
must dd if=/dev/sda of=/lab/read bs=4k count=50 iflag=direct status=none
after=$(cut -d' ' -f1 /proc/uptime | tr -d .)
result "{\\"reads\\": 50, \\"elapsed_ms\\": $(((after - before) * 10))}"
"""
LAB_TEST = """import pytest
from test_lab import _run


@pytest.mark.needs("lab")
def test_mine() -> None:
    (row,) = _run("mine", "6.12", {"SERVICE_NS": "1000000"})
    assert row["reads"] == 50 and 50 <= row["elapsed_ms"] < 150
"""


@pytest.mark.needs("lab")
def test_an_experiment(tree: Tree) -> None:
    script, results, test = steps("Add an experiment", "Script", "Results", "Test")
    assert script[1] == "# lab: …" and "\nnull_disk() {" in tree.read(script[2])
    tree.write(script[0], SCRIPT)
    tree.run("shellcheck -s busybox -e SC2016,SC2086", script[0])
    (line,) = (line for line in tree.run(script[3]).splitlines() if line.startswith("mine "))
    assert "How long a read takes" in line and "SERVICE_NS=3000000" in line
    assert f"\n{results[0]} " in SCRIPT and '"elapsed_ms": ' in tree.run(results[1], "-k 6.12 --json")
    assert f"@pytest.mark.{test[1]}" in LAB_TEST
    tree.write(test[0], LAB_TEST)
    assert "1 passed" in tree.pytest(test[0])


def test_every_list_is_followed() -> None:
    titles = re.findall(r"^## (Add .+)$", TEXT, re.MULTILINE)
    assert titles == ["Add a policy", "Add a trace format", "Add a drive", "Add an experiment"]
