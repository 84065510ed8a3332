# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tutorials, word for word: every command of them runs, and prints what they show.

Commands with their outputs are made by docs/generate.py, so the documents' own test holds them to what is printed today. Here are
the claims of the text, and the commands that need more than headwaiter.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import scenario

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("admin", "engineer", "researcher")


def tutorial(name: str) -> str:
    return (ROOT / "docs" / f"tutorial-{name}.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.M | re.S)
    return ["".join(line[len(indent) :] for line in body.splitlines(True)) for indent, body in found]


def printed(text: str, command: str) -> list[str]:
    """What a tutorial shows below a command that begins so."""
    [block] = [b for b in blocks(text, "text") if b.startswith(f"$ {command}")]
    return block.splitlines()[1:]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_its_output_or_a_test(name: str) -> None:
    """What is shown without an output is one of these."""
    plain = [line.split("#")[0].strip() for block in blocks(tutorial(name), "sh") for line in block.splitlines()]
    assert (
        set(plain)
        == {
            "admin": {
                "blktrace -d /dev/sdb -w 300 -o sdb",
                "echo bfq > /sys/block/sdb/queue/scheduler",
                "echo 0 > /sys/block/sdb/queue/iosched/low_latency",
            },
            "engineer": {
                "meson setup build/debug --buildtype=debug && meson compile -C build/debug",
                "HEADWAITER_LIBRARY=build/debug/sim/libheadwaiter.so gdb --args .venv/bin/python -P -m headwaiter run load.csv"
                " --sched as --drive constant:5",
                "(gdb) break as_dispatch",
                "build/c/tests/c/fuzz_policies as 42 100000",
            },
            "researcher": set(),
        }[name]
    )


def test_the_scenario_holds(tmp_path: Path) -> None:
    """The engineer's second step: by the notation of tests/golden."""
    [block] = blocks(tutorial("engineer"), "toml")
    [case] = tomllib.loads(block)["scenario"]
    ran = scenario.run(case, tmp_path)
    assert ran.dispatches == scenario.expand(case["expect"])
    assert ran.waits == [tuple(scenario.ns(end) for end in wait.split("-")) for wait in case["waits"].split()]


def test_the_log_shows_the_wait() -> None:
    """The same load as CSV: A's three blocks, each awaited for a millisecond, then B."""
    rows = [line.split(",") for line in printed(tutorial("engineer"), "grep")]
    assert [(row[1], row[5]) for row in rows if row[1] == "dispatch"] == [
        ("dispatch", "0"), ("dispatch", "8"), ("dispatch", "16"), ("dispatch", "1000000"),
    ]  # fmt: skip
    begun, ended = ([int(row[0]) for row in rows if row[1] == f"wait_{what}"] for what in ("begin", "end"))
    assert [end - begin for begin, end in zip(begun, ended, strict=True)] == [1_000_000, 1_000_000]


def test_shares_are_those_of_the_paper() -> None:
    text = tutorial("researcher")
    for command, ratio in (("--share 1=2 --positions | grep", 2.0), ("--set anticipate=0", 1.0)):
        [block] = [b for b in blocks(text, "text") if command in b.splitlines()[0]]
        rates = [float(line.split()[4]) for line in block.splitlines()[1:]]
        assert rates[1] / rates[0] == pytest.approx(ratio, rel=0.05)


def test_the_chain_starves_under_as_and_not_under_cas() -> None:
    """The researcher's third step, by the figures that it shows."""
    shown = printed(tutorial("researcher"), "for s in deadline as cas")
    figures = {shown[i].rstrip(":"): shown[i + 1].split() for i in range(0, len(shown), 2)}
    elapsed = {name: float(row[6]) for name, row in figures.items()}
    latency = {name: float(row[7]) for name, row in figures.items()}
    assert set(elapsed) == {"deadline", "as", "cas"}
    for what in (elapsed, latency):
        assert what["as"] > 3 * what["deadline"] and what["cas"] < what["deadline"]


def test_a_recording_ends_in_the_file_that_is_read() -> None:
    """The administrator's blktrace leaves what the next step reads: -o NAME, and .blktrace.CPU behind it."""
    text = tutorial("admin")
    [name] = re.findall(r"^ +blktrace .* -o (\w+)", text, re.M)
    assert f"import {name}.blktrace.0 " in text


@pytest.mark.thorough
def test_the_winner_is_applied(tmp_path: Path) -> None:
    """The administrator's last step, in a copy of what sysfs has."""
    [block] = [b for b in blocks(tutorial("admin"), "sh") if "/sys/" in b]
    queue = tmp_path / "sys/block/sdb/queue/iosched"
    queue.mkdir(parents=True)
    subprocess.run(["bash", "-ec", block.replace("/sys/", f"{tmp_path}/sys/")], check=True)
    assert (queue.parent / "scheduler").read_text() == "bfq\n" and (queue / "low_latency").read_text() == "0\n"


@pytest.mark.thorough
@pytest.mark.needs("gdb")
def test_the_debugger_stops_in_the_policy(tmp_path: Path) -> None:
    """The engineer's third step, with a build folder outside of the tree."""
    text = tutorial("engineer")
    lines = next(b for b in blocks(text, "sh") if "gdb" in b).splitlines()
    build = tmp_path / "debug"
    [load] = blocks(text, "csv")
    (tmp_path / "load.csv").write_text(load)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    made = lines[0].replace("build/debug", str(build))
    subprocess.run(["bash", "-ec", made], check=True, cwd=ROOT, env=environment, capture_output=True)
    debug = lines[1].replace("build/debug", str(build)).replace(".venv/bin/python", sys.executable)
    stop = lines[2].removeprefix("(gdb) ")
    batch = f"gdb -batch -ex 'set breakpoint pending on' -ex '{stop}' -ex run -ex bt --args"
    done = subprocess.run(
        ["bash", "-ec", debug.replace("gdb --args", batch)],
        check=True,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert re.search(r"^#0 +as_dispatch \(.*core/policy/as/", done.stdout, re.M), done.stdout


@pytest.mark.thorough
def test_the_fuzzer_finds_nothing() -> None:
    """The engineer's fourth step."""
    [line] = [line for b in blocks(tutorial("engineer"), "sh") for line in b.splitlines() if "fuzz_policies" in line]
    if not (ROOT / line.split()[0]).exists():
        pytest.skip("make c-test builds it")
    subprocess.run(line.split(), check=True, cwd=ROOT, capture_output=True)
