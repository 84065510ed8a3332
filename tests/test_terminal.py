# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the command line offers beside results: its help, names that a shell completes, man pages, and progress."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from command import run
from fakesys import FakeSystem, machine
from rich.console import Console

from headwaiter.base.errors import Problem
from headwaiter.cli import SECTIONS, _devices, program
from headwaiter.cli import _complete as complete
from headwaiter.cli._complete import Complete, drive, schedulers
from headwaiter.cli._help import EXAMPLES, SHORT, statuses_of, words_of
from headwaiter.cli._progress import Parts, amount, progress_bar
from headwaiter.cli.research import SECTIONS as RESEARCH
from headwaiter.engine.schedulers import names as scheduler_names
from headwaiter.engine.sim import ConstantDrive, Options
from headwaiter.papers.reproduce.catalogue import EXPERIMENTS
from headwaiter.study.cost import plan
from headwaiter.study.trial import measure_all
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, read_workload

__all__ = ["machine"]
ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "headwaiter"
TRACE = "time_s,task,op,sync,sector,sectors,complete_s\n" + "".join(
    f"{0.01 * i:.6f},1,R,1,{8 * i},8,{0.01 * i + 0.005:.6f}\n" for i in range(50)
)


def leaves(group: click.Group = program, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that does something."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            if found.invoke_without_command:
                yield " ".join((*names, name))
            yield from leaves(found, (*names, name))
        else:
            yield " ".join((*names, name))


# --- help ---


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]], ids=["nothing", "--help", "-h"])
def test_help_is_grouped(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capfd, *words)
    assert (status, err) == (0, "") and out.startswith("Usage: headwaiter ")
    titles = re.findall(r"^(\S.*):$", out, re.M)
    assert titles == ["Options", *SECTIONS, "Examples", "Exit status"]
    assert [title.lower() for title in SECTIONS] == ["decide", "apply", "understand", "research"]
    for names in SECTIONS.values():
        for name in names:
            assert re.search(rf"^  {name}  +\S", out, re.M), name
    assert "..." not in out.partition("Options:")[2], "sentences are whole"


def test_help_has_every_command_once_and_no_more_than_eighteen() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    nested = [name for names in RESEARCH.values() for name in names]
    modules = {path.stem.rstrip("_") for path in (SOURCES / "cli").glob("*.py") if not path.stem.startswith("_")}
    assert len(listed) == len(set(listed)) <= 18 and not set(listed) & set(nested)
    assert {*listed, *nested} == modules and set(nested) == set(SHORT)


@pytest.mark.parametrize("name", SHORT)
def test_a_nested_command_works_without_its_parent(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    texts = []
    for words in ((name,), ("research", name)):
        status, out, _ = run(capfd, *words, "--help")
        assert status == 0 and out.startswith(f"Usage: headwaiter {' '.join(words)} ")
        texts.append(out.partition("\n")[2].replace("headwaiter research", "headwaiter"))
    assert texts[0].split() == texts[1].split()
    _, _, err = run(capfd, name[:-1])
    assert f"did you mean {name}?" in err


def every(group: click.Group = program, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command and every group, as the words that call it."""
    yield " ".join(names)
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from every(found, (*names, name))
        else:
            yield " ".join((*names, name))


def test_every_command_has_examples_and_nothing_else_has() -> None:
    assert {words_of(f"headwaiter {words}") for words in every()} == set(EXAMPLES)


@pytest.mark.parametrize("words", [*every()])
def test_help_ends_with_two_examples_and_the_statuses(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capfd, *words.split(), "--help")
    assert (status, err) == (0, "")
    end = out.partition("\nExamples:\n")[2]
    examples, _, statuses = end.partition("\nExit status:\n")
    assert len(re.findall(r"^  headwaiter ", examples, re.M)) == 2
    assert [int(code) for code in re.findall(r"^  (\d+) ", statuses, re.M)][::2] in ([0, 141], [0, 2])
    own = f"headwaiter {words_of(f'headwaiter {words}')}".strip()
    assert re.search(rf"^  headwaiter( research)? ?{own.removeprefix('headwaiter').strip()}", examples, re.M), "one is its own"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Parse a command line, and all that its options and arguments are checked for, without running the command."""
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    for name in ("recordings", "mine"):
        Path(name).mkdir()

    def parse(line: str) -> None:
        for command in line.split(" && "):
            name, *words = shlex.split(command.partition(" | ")[0])
            assert name == "headwaiter"
            program.main(words, prog_name=name, standalone_mode=False)

    return parse


@pytest.mark.parametrize("line", sorted({line for rows in EXAMPLES.values() for line, _ in rows}))
def test_examples_parse(line: str, parsed: Callable[[str], None]) -> None:
    parsed(line)


@pytest.mark.parametrize("line", ["compare --frobnicate", "nonesuch", "advise", "run example", "rank sda --sizes 3", "lab frob"])
def test_an_example_that_does_not_parse_is_found(line: str, parsed: Callable[[str], None]) -> None:
    with pytest.raises((click.UsageError, Problem)):
        parsed(f"headwaiter {line}")


EXAMPLE_RUNS = [
    line
    for rows in EXAMPLES.values()
    for line, _ in rows
    if line.split()[1] in ("schedulers", "drives", "describe", "research", "select", "reproduce", "run", "compare")
    and not re.search(r" sda|nas\.hwr|mine\.toml|\.json|\.parv|\.diskspecs|was\.toml|axboe", line)
]


@pytest.mark.thorough
@pytest.mark.parametrize("line", EXAMPLE_RUNS)
def test_examples_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Those that need no file and no disk."""
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capfd, *shlex.split(line)[1:])
    assert status == 0 and (out or " -o " in line)


def test_statuses_of_commands_that_can_fail() -> None:
    codes = {words: [code for code, _ in statuses_of(f"headwaiter {words}")] for words in every()}
    assert {words for words, found in codes.items() if "1" in found} == {
        *("lab agree", "lab kernels", "reproduce", "research conform check"),
        *("research fleet", "research sweep", "research sweep run"),
    }


# --- completion ---


def completed(words: str) -> list[str]:
    """What a shell offers for the last word; files stand for themselves."""
    environment = {
        **os.environ,
        "_HEADWAITER_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    done = subprocess.run([sys.executable, "-P", "-m", "headwaiter"], env=environment, check=True, capture_output=True, text=True)
    assert done.stderr == ""
    offers = [line.partition(",")[::2] for line in done.stdout.splitlines()]
    kinds = [kind for kind, _ in offers]
    assert kinds == sorted(kinds), "files first: bash forgets what came before them"
    return [value if kind == "plain" else f"({kind})" for kind, value in offers]


def test_what_is_offered() -> None:
    def offered(complete: Complete, incomplete: str) -> list[str]:
        context = click.Context(program)
        items = complete(context, click.Option(["--x"]), incomplete)
        return [item.value if item.type == "plain" else f"({item.type})" for item in items]

    assert offered(schedulers, "as,as-9") == ["as,as-95"] and "as,as" not in offered(schedulers, "as,")
    assert offered(schedulers, "cfq-slice-") == ["cfq-slice-2004"]
    assert offered(schedulers, "al") == ["all"] and "as,all" not in offered(schedulers, "as,")
    assert offered(drive, "wd") == ["(file)", "wd-re-4tb"]


def test_disks_are_offered(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that hold something, each once; and the schedulers of the one that is named."""
    machine.add("sda", scheduler="bfq")
    machine.add("sdb")
    machine.add("sdc", sectors=0)
    monkeypatch.setattr(_devices, "SYSFS", machine.sysfs)
    context = click.Context(program)

    def offered(function: Complete, name: str, incomplete: str = "") -> list[str]:
        return [item.value for item in function(context, click.Argument([name]), incomplete) if item.type == "plain"]

    assert offered(_devices.device, "device") == ["sda", "sdb"]
    context.params = {"devices": ("sda",), "device": "sda"}
    assert offered(_devices.device, "devices") == ["sdb"] and offered(_devices.devices_or_all, "devices", "a") == ["all"]
    assert offered(complete.workload_or_disk, "what", "sd") == offered(complete.drive_or_disk, "what", "sd") == ["sda", "sdb"]
    assert offered(_devices.offered, "scheduler", "b") == ["bfq"]
    monkeypatch.setattr(_devices, "SYSFS", machine.root / "nowhere")
    assert offered(_devices.device, "devices") == offered(_devices.offered, "scheduler") == []


def settled(disks: list[str]) -> list[str]:
    return [name for name in disks if not name.startswith("loop")]


@pytest.mark.thorough
def test_a_shell_completes_names() -> None:
    assert completed("headwaiter comp") == ["compare"]
    assert completed("headwaiter run x.csv --sched cfq") == ["cfq", "cfq-slice", "cfq-slice-2004"]
    assert completed("headwaiter compare --sched as,bf") == ["as,bfq"]
    assert completed("headwaiter compare --sched as,as-9") == ["as,as-95"]
    assert "as,as" not in completed("headwaiter compare --sched as,")
    assert completed("headwaiter compare --sched al") == ["all"]
    assert completed("headwaiter compare --drive wd") == ["(file)", "wd-re-4tb"]
    assert completed("headwaiter compare exam") == ["(file)", "example"]
    assert completed("headwaiter was fit multi") == ["(file)", "multi-user"]
    assert completed("headwaiter schedulers ky") == ["kyber"]
    assert completed("headwaiter drives wd") == ["(file)", "wd-re-4tb"]
    assert completed("headwaiter drives mod") == ["(file)", "models"]
    # Other tests attach loop devices meanwhile: which of those are offered is theirs.
    disks = [item.value for item in _devices.device(click.Context(program), click.Argument(["device"]), "")]
    assert settled(completed("headwaiter top ")) == ["(file)", *settled(disks)]
    assert settled(completed("headwaiter revert ")) == settled(disks) and completed("headwaiter record al") == ["all"]
    assert completed("headwaiter reproduce axboe-r") == ["(file)", *(name for name in EXPERIMENTS if name.startswith("axboe-r"))]
    assert completed("headwaiter lab run smo") == ["(file)", "smoke"]
    assert completed("headwaiter rese") == ["research"] and completed("headwaiter research ran") == ["rank"]
    assert completed("headwaiter validate barr") == ["(file)", "barracuda-80g"]
    assert set(completed("headwaiter schedulers ")) == set(scheduler_names())


@pytest.mark.thorough
def test_the_documented_line_works_in_bash() -> None:
    """With what README says, Tab completes."""
    [line] = re.findall(r'^eval "\$\(_HEADWAITER_COMPLETE=bash_source headwaiter\)"', (ROOT / "README.md").read_text(), re.M)
    script = f"""PATH={Path(sys.executable).parent}:$PATH; {line}
COMP_WORDS=(headwaiter schedulers ky); COMP_CWORD=2
_headwaiter_completion headwaiter; echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["kyber"]


# --- man pages ---


@pytest.mark.thorough
def test_every_command_and_option_has_its_place_in_a_man_page(tmp_path: Path) -> None:
    command: list[str | Path] = [sys.executable, ROOT / "docs" / "man.py", tmp_path / "man"]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    pages = {path.name: path.read_text() for path in (tmp_path / "man").iterdir()}
    assert {f"headwaiter-{name.replace(' ', '-')}.1" for name in leaves()} < set(pages)
    assert pages["headwaiter-rank.1"] == ".so man1/headwaiter-research-rank.1\n"
    for name in leaves():
        page = pages[f"headwaiter-{name.replace(' ', '-')}.1"]
        found = program.find(click.Context(program), name)
        assert f".B headwaiter {name}\n" in page
        assert page.count(".SH EXAMPLES\n") == page.count(".SH EXIT STATUS\n") == 1
        for line, _ in EXAMPLES[words_of(f"headwaiter {name}")]:
            assert line.replace("-", r"\-") in page
        for option in (p for p in found.params if isinstance(p, click.Option)):
            assert option.opts[-1].replace("-", r"\-") in page, f"{name} {option.opts}"
        assert not [
            line for line in page.splitlines() if line.startswith((".", "'")) and not re.match(r"\.(TH|SH|TP|PP|B)\b", line)
        ]


# --- progress ---


def test_amounts() -> None:
    assert [amount(n) for n in (0, 512, 4096, 1_250_000, 8.4e9)] == ["0", "512", "4.1k", "1.25M", "8.4G"]


def test_what_is_under_way_is_what_was_heard_of() -> None:
    now = [0.0]
    parts = Parts(lambda: now[0])
    assert parts.update("as", 100) == (100, "as")
    now[0] = 0.9
    assert parts.update("bfq", 10) == (110, "as, bfq")
    now[0] = 1.5
    assert parts.update("bfq", 30) == (130, "bfq")


def test_the_bar_says_it_all() -> None:
    """What runs, which share, how much of how much, how fast, and how long the rest takes."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None, legacy_windows=False)
    with progress_bar("load on disk", 1000, console) as update:
        update("as", 250)
        update("bfq", 250)
    shown = screen.getvalue()
    assert "load on disk: as, bfq" in shown and "50%" in shown and "500 of 1k I/Os" in shown
    screen.truncate(0)
    with progress_bar("load", 100, console) as update:
        update("as", 400)
    assert "400 of 400 I/Os" in screen.getvalue() and "400%" not in screen.getvalue()
    # One line, however many are under way.
    screen.truncate(0)
    with progress_bar("load", 4_000_000, console) as update:
        for k in range(20):
            update(f"nr_requests={k}", 50_000)
    assert "load: nr_requests=0, nr_requests=1" in screen.getvalue() and "… " in screen.getvalue()
    assert all(
        "I/Os" in line
        for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()))
        if "load" in line
    )


def test_nothing_is_drawn_into_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("load", 100) as update:
        update("as", 50)
    assert capfd.readouterr() == ("", "")


def test_progress_comes_to_the_total(tmp_path: Path) -> None:
    """All runs count, also those with small changes of the load."""
    path, drive = tmp_path / "trace.csv", ConstantDrive(5_000_000)
    path.write_text(TRACE)
    load = read_workload(path, drive, Reading()).load
    heard: dict[str, list[int]] = {}
    each = [(Variant(name, name), Options()) for name in ("noop", "as")]
    measure_all(each, drive, load, None, lambda name, done: heard.setdefault(name, []).append(done))
    assert set(heard) == {"noop", "as"}
    for counts in heard.values():
        assert counts == sorted(counts)
    assert sum(counts[-1] for counts in heard.values()) == plan(load, drive, Options(), 2, None, wide=True).total_ios
