# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CONTRIBUTING.md, walked: its numbered lists are followed in a copy of the tree, with the smallest example that there is.

A step is known by its name (in bold) and by what it quotes: files, commands, names. A step that is added or renamed, or that
quotes something else, fails here until it is walked. `mine` is what is added.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import ROOT
from test_convert import params

import headwaiter

pytestmark = pytest.mark.thorough
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MEASURED = re.compile("<!-- (?:output|waits): ")
"""Parts of documents that `make docs` takes long to make anew: a copy's are left as they are."""
PARTS = ("bench", "core", "docs", "drives", "examples", "src", "kmod", "lab", "sim", "tests", "workloads")


@dataclass(frozen=True)
class Step:
    """Of a list: its name, and what it quotes, in order."""

    name: str
    quotes: tuple[str, ...]


def steps(title: str) -> list[Step]:
    """The numbered list below a heading."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    assert section, title
    parts = re.split(r"^(\d+)\. ", section[1], flags=re.MULTILINE)[1:]
    assert parts[::2] == [str(number) for number in range(1, len(parts) // 2 + 1)]
    found = []
    for text in parts[1::2]:
        name = re.match(r"\*\*([^*]+)\.\*\* ", text)
        assert name, f"{title}: a step without a name: {text}"
        found.append(Step(name[1], tuple(re.findall(r"`([^`]+)`", text))))
    return found


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
        self.env = os.environ | {"PYTHONPATH": str(root / "src"), "HEADWAITER_SOURCE": str(root), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, command: str, status: int = 0, **values: str) -> str:
        """What a command prints, with some of its words replaced. Nothing is compiled anew."""
        words = command.split()
        for word, value in values.items():
            words[words.index(word)] = value
        if words[0] == "make":
            words[1:1] = ["-o", "build"]
        elif words[0] == "headwaiter":
            words[0:1] = [sys.executable, "-P", "-m", "headwaiter"]
        done = subprocess.run(words, cwd=self.root, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def pytest(self, *args: str) -> str:
        return self.run(" ".join([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]))

    def write(self, path: str, text: str) -> Path:
        """A new file."""
        assert not (self.root / path).exists()
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")
        return self.root / path

    def append(self, path: str, text: str) -> None:
        """More of a file."""
        with (self.root / path).open("a", encoding="utf-8") as out:
            out.write(text)

    def replace(self, path: str, old: str, new: str) -> None:
        """A change of a file."""
        text = (self.root / path).read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        (self.root / path).write_text(text.replace(old, new), encoding="utf-8")

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


Walk = dict[str, Callable[..., None]]


def walk(tree: Tree, title: str, walked: Walk) -> None:
    """Every step of a list, in order, each with what it quotes."""
    listed = steps(title)
    assert [step.name for step in listed] == list(walked), "a step that is not walked, or is walked no more"
    for step in listed:
        walked[step.name](tree, *step.quotes)


def docs(tree: Tree, command: str, page: str) -> str:
    """A page after `make docs`."""
    tree.run(command)
    return tree.read(page)


# --- a policy ---


def make_policy(tree: Tree, make: str, source: str, compare: str) -> None:
    assert make == "make new-policy NAME=mine"
    tree.run(f"{sys.executable} core/new-policy mine")
    assert "first come, first served" in tree.read(source)
    tree.env["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    tree.run("meson setup build/c")
    tree.run("meson compile -C build/c headwaiter")
    tree.env["HEADWAITER_LIBRARY"] = str(tree.root / "build" / "c" / "sim" / "libheadwaiter.so")
    assert "mine" in tree.run(f"{compare} --seeds 0 -d constant:1")


def write_policy(tree: Tree, contract: str) -> None:
    """It is left as it is: first come, first served."""
    assert (tree.root / contract).is_file()


def policy_scenarios(tree: Tree, golden: str) -> None:
    assert "Worked out by hand" in tree.read(golden)
    assert " passed" in tree.pytest("tests/test_golden.py", "-k", "mine-")


def policy_faults(tree: Tree, faults: str, mutants: str) -> None:
    """The fault that is there is caught."""
    assert 'file = "core/policy/mine.c"' in tree.read(faults)
    assert "1 passed, 0 failed" in tree.run(mutants)


def policy_page(tree: Tree, page: str, make: str, bounds: str) -> None:
    """Nothing is promised for it: there is no bound."""
    tree.replace("core/policy/mine.c", '\t.summary = "', '\t.summary = "mine: ')
    tree.run("meson compile -C build/c headwaiter")
    assert "<!-- tunables: mine -->\n" in docs(tree, make, page)
    assert "mine: first come, first served" in tree.read("docs/architecture.md")
    assert "static const" in tree.read(bounds)


def policy_kernel(tree: Tree, make: str, name: str, smoke: str) -> None:
    """What a kernel module is made of has the policy; building and trying one is test_kmod_build's and test_lab's."""
    assert (make, name, smoke) == ("make kmod", "hw-mine", "headwaiter lab run smoke")
    assert "hw_mine" in tree.read("core/policy/all.c")


def test_a_policy(tree: Tree) -> None:
    walk(
        tree,
        "Add a policy",
        {
            "Create": make_policy,
            "Write": write_policy,
            "Scenarios": policy_scenarios,
            "Faults": policy_faults,
            "Page": policy_page,
            "Kernel": policy_kernel,
        },
    )


# --- a trace format ---

READER = '''# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Made for a test: `mine 1`, then a line `ns sector sectors op` for each request, op r or w."""

from __future__ import annotations

from headwaiter.engine.constants import Op
from headwaiter.traces.columns import split
from headwaiter.traces.devices import refuse_device
from headwaiter.traces.making import make_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS, Trace
from headwaiter.traces.registry import Format, Options
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
FAULT = """
[[mutant]]
file = "src/headwaiter/traces/formats/mine.py"
find = 'table.integers(1, "sector"'
replace = 'table.integers(2, "sector"'
why = "the length of a request as its place"
tests = ["test_traces_mine.py"]
"""


def format_reader(tree: Tree, reader: str, *names: str) -> None:
    assert names == ("read", "make_trace(...)", "sniff", "FORMAT")
    tree.write(reader, READER)
    trace = tree.write("sample", SAMPLE)
    assert tree.run(f"headwaiter import {trace}").splitlines()[1].startswith("0.000000005,0,R,1,800,8")


def format_samples(tree: Tree, tests: str) -> None:
    tree.write(tests, SAMPLES)
    assert "1 passed" in tree.pytest(tests)


def format_fuzzing(tree: Tree, corpus: str, words: str, make: str) -> None:
    """For a moment, and the same each time."""
    tree.write(f"{corpus}/two", SAMPLE)
    tree.replace(words, '    "mqsim": "', '    "mine": "mine 1 r w 0 8",\n    "mqsim": "')
    assert make == "make fuzz FUZZ=mine"
    done = subprocess.run(
        ["make", "-o", "build", "fuzz", "FUZZ=mine --executions 300 --seed 1"],
        cwd=tree.root, env=tree.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "mine" in done.stdout, done.stdout + done.stderr


def format_faults(tree: Tree, faults: str, mutants: str) -> None:
    tree.append(faults, FAULT)
    assert "1 passed, 0 failed" in tree.run(mutants)


def format_page(tree: Tree, make: str, page: str) -> None:
    assert "| `mine` | made for a test (ns sector sectors op) |" in docs(tree, make, page)


def test_a_trace_format(tree: Tree) -> None:
    walk(
        tree,
        "Add a trace format",
        {
            "Reader": format_reader,
            "Samples": format_samples,
            "Fuzzing": format_fuzzing,
            "Faults": format_faults,
            "Page": format_page,
        },
    )


# --- a drive ---


def drive_profile(tree: Tree, new: str, import_: str) -> None:
    sheet = "--rpm 7200 --capacity 80GB --seek-average 8.5 --name Mine"
    tree.run(f"{new} {sheet} -o {tree.root / 'new.toml'}")
    parameters = params(tree.root)
    tree.run(f"{import_} {parameters} -o {tree.root / 'imported.toml'}")
    assert tree.read("imported.toml").count("[geometry]") == 1


def drive_sources(tree: Tree, place: str) -> None:
    """What `drives new` guessed it says itself."""
    shutil.copy(tree.root / "new.toml", tree.root / place)
    lines = tree.read(place).splitlines()
    assert any(line.startswith("surfaces = ") and "# " in line for line in lines)
    assert "mine " in tree.run("headwaiter drives")


def drive_check(tree: Tree, validate: str) -> None:
    trace = tree.write("measured", "R Hit 1 8 4000 1\nW Hit 900000 8 8000 1\n")
    assert "demerit figure" in tree.run(validate, TRACE=str(trace))


def drive_page(tree: Tree, make: str, page: str) -> None:
    assert "| `mine` | 80 GB | 1 | Mine |" in docs(tree, make, page)


def test_a_drive(tree: Tree) -> None:
    walk(
        tree,
        "Add a drive",
        {"Profile": drive_profile, "Sources": drive_sources, "Check": drive_check, "Page": drive_page},
    )


# --- an experiment ---

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


def experiment_script(tree: Tree, script: str, key: str, library: str, listing: str) -> None:
    assert key == "# lab: …" and "\nnull_disk() {" in tree.read(library)
    tree.write(script, SCRIPT)
    tree.run(f"{Path(sys.executable).parent / 'shellcheck'} -s busybox -e SC2016,SC2086 {script}")
    (line,) = (line for line in tree.run(listing).splitlines() if line.startswith("mine "))
    assert "How long a read takes" in line and "SERVICE_NS=3000000" in line


def experiment_results(tree: Tree, result: str, run: str) -> None:
    assert f"\n{result} " in SCRIPT
    first, second = (tree.run(f"{run} -k 6.12 --json") for _ in range(2))
    assert first == second and '"elapsed_ms": ' in first


def experiment_test(tree: Tree, tests: str, mark: str) -> None:
    assert f"@pytest.mark.{mark}" in LAB_TEST
    tree.write(tests, LAB_TEST)
    assert "1 passed" in tree.pytest(tests)


@pytest.mark.needs("lab")
def test_an_experiment(tree: Tree) -> None:
    walk(
        tree,
        "Add an experiment",
        {"Script": experiment_script, "Results": experiment_results, "Test": experiment_test},
    )


def test_every_list_is_walked() -> None:
    titles = re.findall(r"^## (Add .+)$", TEXT, re.MULTILINE)
    assert titles == ["Add a policy", "Add a trace format", "Add a drive", "Add an experiment"]
