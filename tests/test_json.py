# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `--json` prints is what docs/headwaiter-1.schema.json says, of every command that has the option."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

import click
import pytest
from blkrecords import event
from command import good, run, told, write
from conftest import ROOT
from fakesys import FakeSystem, machine
from handmade import direction, printed, result
from inprocess import without_workers
from jsonschema import Draft202012Validator, ValidationError
from recordings import readers, record
from test_agreement import row as comparison
from test_cli import TWO
from test_conformance import small

from headwaiter.base.records import Record, Says, field_at, fields, json_text, like, value_at
from headwaiter.cli import lab, program
from headwaiter.cli._documents import ALL
from headwaiter.cli._help import words_of
from headwaiter.conformance import decisions
from headwaiter.engine.constants import Op, OpName
from headwaiter.engine.sim import Options
from headwaiter.lab.schema import KernelRow, KernelsDocument
from headwaiter.lab.script import Script
from headwaiter.measure.calibrate import CalibratedHost, Rate, fitted
from headwaiter.papers.was.config import config, save
from headwaiter.queue.apply import apply
from headwaiter.queue.devices import find
from headwaiter.queue.settings import Settings
from headwaiter.queue.state import State
from headwaiter.study.results import processor_time
from headwaiter.study.schema import Result, RunDocument
from headwaiter.sweeps.sweep import sweep

__all__ = ["machine"]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "headwaiter-1.schema.json").read_text(encoding="utf-8"))
HEAD = "[global]\nfilename=/dev/sda\ndirect=1\nsize=64k\nbs=4k\nthinktime=100\n"
JOB = f"{HEAD}[a]\nrw=read\n[b]\nrw=write\n[c]\nrw=read\noffset=20g\n"
CELL = ["--operation", "read", "--size", "1m", "--record", "8k"]
FAKE = ["-d", "barracuda-80g", "--root", "ROOT"]
# A request that the device was given, which lay with another in the scheduler.
ISSUED = [event(1000 * k, letter, "R", 800 + 8 * k, 8, pid=5) for k, letter in ((0, "Q"), (1, "Q"))] + [
    event(5000, "D", "R", 800, 16, pid=5),
    event(9000, "C", "R", 800, 16, pid=0),
]
CHOICES = ["--history", "3", "--classes", "4", "--spatial-steps", "60,30,0", "--temporal-steps", "40,0"]
# Two tasks of one name, the second of which follows the first: a thread of control.
CHAIN = """time_s,task,op,sync,sector,sectors,complete_s,name
0,1,R,1,0,8,0.005,cat
0.006,2,R,1,8,8,0.01,cat
0.007,3,D,0,99,8,0.02,rm
"""


def check(document: object, kind: str) -> None:
    """It is a document of that kind."""
    Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}).validate(document)


def valid(document: object) -> bool:
    return bool(Draft202012Validator(SCHEMA).is_valid(document))


# --- commands ---


def commands(group: click.Group = program, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command with --json, by its words; those of `research` without that one."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        if any(param.name == "as_json" for param in command.params):
            yield words_of(" ".join(("headwaiter", *names, name)))
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))


# Of each command what is printed, and what follows the command's words; JOB and the others are files.
EXAMPLES: dict[str, tuple[str, list[list[str]]]] = {
    "run": (
        "RunDocument",
        [
            ["JOB", "-s", "bfq"],
            ["JOB", "-s", "as", "--seeds", "0", "-d", "sata-ssd"],
            ["TWO", "-s", "as", "-d", "constant:5"],
            ["LOG", "-s", "mq-deadline"],
            ["CHAIN", "-s", "kyber", "--replay", "open", "-d", "barracuda-80g"],
        ],
    ),
    "compare": ("CompareDocument", [["JOB"], ["CHAIN", "-s", "as,cfq", "--by", "fairness"]]),
    "regret": (
        "RegretDocument",
        [["JOB", "--contested", "MB/s; longest read of b", "-d", "constant:5", "-s", "noop,as", "--seeds", "1"]],
    ),
    "schedulers": ("SchedulersDocument", [[], ["bfq"]]),
    "drives": ("DrivesDocument", [[]]),
    "drives show": ("DriveDocument", [["barracuda-80g"], ["raid0-4x-barracuda-80g"], ["nvme-ssd"]]),
    "validate": ("ValidateDocument", [["barracuda-80g", "MEASURED"]]),
    "conform check": ("ConformDocument", [["RECORDING"]]),
    "was calibrate": ("WasCalibrateDocument", [["example", *CHOICES]]),
    "was designate": (
        "WasDesignateDocument",
        [["-c", "CONFIG", "-a", "MATRIX"], ["-c", "CONFIG", "-a", "MATRIX", "--heuristic"]],
    ),
    "was fit": ("WasFitDocument", [["example", *CHOICES], ["TWO", "-d", "constant:5"]]),
    "was evaluate": ("WasEvaluateDocument", [["example", "TWO", *CHOICES]]),
    "describe": (
        "DescribeDocument",
        [["FOUR"], ["FOUR", "-d", "barracuda-80g"], ["CHAIN"], ["ISSUED"]],
    ),
    "advise": (
        "AdviseDocument",
        [["FOUR", *FAKE, "--queue-depth", "1"], ["TWO", "-d", "constant:5", "--root", "ROOT"]],
    ),
    "top": (
        "TopDocument",
        [["ISSUED", "--once"], ["FOUR", "--once", "-i", "0.5"], ["sda", "--root", "ROOT", "--counters", "--once", "-i", "0.1"]],
    ),
    "tune": (
        "TuneDocument",
        [["JOB", "-s", "deadline", "-d", "constant:5", "--trials", "4"], ["FOUR", "-s", "bfq", "--trials", "2", "--seeds", "0"]],
    ),
    "rank": ("RankDocument", [["barracuda-80g", "-s", "none,as", "--sizes", "4k,1m", "-t", "0.2", "--runs", "2"]]),
    "table": ("TableDocument", [["barracuda-80g", "-s", "none,as", "--files", "64k", "--records", "4k", "--runs", "1"]]),
    "select": ("SelectDocument", [[*CELL], [*CELL, "--apply", "sda", "--root", "ROOT"]]),
    "calibrate": ("CalibrateDocument", [["--host-file", "HOST"]]),
    "apply": ("ApplyDocument", [["sda", "bfq:low_latency=0", "--root", "ROOT"]]),
    "revert": ("RevertDocument", [["sda", "--root", "ROOT"]]),
    "status": ("StatusDocument", [["--root", "ROOT"]]),
    "lab run": ("LabDocument", [["smoke"]]),
    "lab kernels": ("KernelsDocument", [["--try", "smoke"]]),
    "lab agree": ("AgreeDocument", [[], ["--random", "2"]]),
    "sweep run": ("SweepDocument", [["SWEEP", "-o", "NEW"]]),
    "sweep report": ("SweepReportDocument", [["RESULTS"], ["RESULTS", "--by", "read_p99_ms"]]),
    "fleet": ("FleetDocument", [["FOUR", "-d", "barracuda-80g"]]),
    "reproduce": ("ReproduceDocument", [["iyer-readers", "axboe-reader-writer", "--scale", "0.1"]]),
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: FakeSystem) -> dict[str, Path]:
    """The files of EXAMPLES; and a lab that takes no time."""
    made = tmp_path / "was.toml"
    save(config(3, [[0, 60], [257, 30], [100_000, 0]], [[0, 40], [3000, 0]], [10_000] * 4), made)
    rows = [{"kernel": "6.12", "what": "x", "count": 3}, {"kernel": "6.12", "other": [1.5]}]
    rates = [Rate(name, n, 1e5, us) for name, us in (("none", 3.0), ("mq-deadline", 4.0), ("bfq", 5.0)) for n in (1, 2)]
    found = CalibratedHost(fitted(rates, 2, "test"), tuple(rates), "null_blk", ("kyber was not measured",))
    monkeypatch.setattr("headwaiter.cli.calibrate.calibrate", lambda *args: found)
    monkeypatch.setattr(lab, "execute", lambda *args: (Script("smoke", ""), rows, {}))
    monkeypatch.setattr(lab, "compare", lambda *args: [comparison("mixed-1", off=50.0), comparison("mixed-1", "bfq", agree=True)])
    kernels = [
        KernelRow(series="6.1", release="6.1.0-9-cloud-amd64", headers=True, built="passed", scripts={"smoke": "passed"}),
        KernelRow(series="6.9", release="6.9.1-cloud-amd64", headers=False),
    ]
    monkeypatch.setattr(lab, "survey", lambda *args: KernelsDocument(system="Debian 12", results=kernels))
    without_workers(monkeypatch)
    two = str(write(tmp_path / "two.csv", TWO))
    cells = {
        "workloads": two,
        "drives": "constant:5",
        "schedulers": ["noop", "bfq"],
        "tunables": {"bfq": {"low_latency": [0, 1]}},
    }
    sweep(cells, tmp_path / "results")
    return {
        "SWEEP": write(tmp_path / "s.toml", f"workloads = '{two}'\ndrives = 'constant:1'\nschedulers = ['noop', 'none']\n"),
        "NEW": tmp_path / "new",
        "RESULTS": tmp_path / "results",
        "JOB": write(tmp_path / "job.fio", JOB),
        "TWO": write(tmp_path / "two.csv", TWO),
        "LOG": write(tmp_path / "log.fio", "[log]\nrw=write\nsize=64k\nfsync=2\n"),
        "CHAIN": write(tmp_path / "chain.csv", CHAIN),
        "MEASURED": write(tmp_path / "m.trace", "R Hit 1 8 4000 1\nW Hit 2 8 8000 1\n"),
        "CONFIG": made,
        "MATRIX": tmp_path / "matrix.json",
        "RECORDING": write(tmp_path / "r.xz", decisions.encode(small())),
        "ISSUED": write(tmp_path / "issued.blktrace.0", b"".join(ISSUED)),
        "FOUR": record(tmp_path / "four.csv", readers(4, 1300, think_ms=4)),
        "ROOT": changed(machine),
        "HOST": tmp_path / "host.toml",
    }


def changed(machine: FakeSystem) -> Path:
    """The root of a machine with a disk whose scheduler was changed."""
    machine.add("sda")
    disk = find("sda", machine.sysfs, machine.root / "dev", machine.root / "run/udev/data")
    apply([disk], Settings("bfq"), State(machine.root / "var/lib/headwaiter"), "test")
    write(machine.sysfs / "block/sda/stat", "5 0 40 1 2 0 16 1 0 1 1 0 0 0 0\n")
    write(machine.root / "etc/udev/rules.d/60-io.rules", 'ATTR{queue/scheduler}="none"\n')
    return machine.root


def test_operations_are_those_of_the_interface() -> None:
    assert [op.word for op in Op if op != Op.FLUSH] == list(get_args(OpName)) == ["read", "write", "discard", "other"]


def test_every_command_with_json_has_an_example() -> None:
    assert set(commands()) == set(EXAMPLES)
    # by options of `validate` and `reproduce`, tried in test_published.py and test_reproduce_archive.py
    others = {"PublishedDocument", "SecondRunDocument", "MachineDocument"}
    assert others | {kind for kind, _ in EXAMPLES.values()} == {kind.__name__ for kind in ALL}


@pytest.mark.parametrize("command", EXAMPLES)
def test_what_a_command_prints(command: str, files: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    kind, calls = EXAMPLES[command]
    if command == "was designate":
        good(capfd, "was", "observe", "example", "-c", files["CONFIG"], "-o", files["MATRIX"])
    for words in calls:
        status, out, err = run(capfd, *command.split(), *(files.get(word, word) for word in words), "--json")
        assert status == 0 or command == "lab agree", err
        document = json.loads(out)
        check(document, kind)
        assert valid(document)
        assert out == json.dumps(document, indent=1) + "\n"


def test_what_the_lab_has_measured() -> None:
    for path in (ROOT / "lab").rglob("*.json"):
        kind = {"agree": "AgreeDocument", "kernels": "KernelsDocument"}.get(path.parent.name, "LabDocument")
        check(json.loads(path.read_text(encoding="utf-8")), kind)


def test_what_runs_have_at_all(files: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    """The examples have every figure but one."""
    seen: set[str] = set()

    def look(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                seen.add(f"{path}{key}")
                look(inner, f"{path}{key}.")
        for inner in value if isinstance(value, list) else ():
            look(inner, path)

    for words in EXAMPLES["run"][1]:
        look(told(capfd, "run", *(files.get(word, word) for word in words))["results"], "")
    missing = {field.key for field in fields(Result)} - seen
    assert missing == {"lat_relative_error", "tables", "fairness_phases", "variant"}, "long runs, --set, phases, and of compare"
    for path in ("disk.seek_s", "disk.mean_seek_cylinders", "write.lat_ms.p99_9", "groups.end_s", "range.lat_max_ms.high"):
        assert path in seen


# --- the schema ---


def document() -> RunDocument:
    entry = result("noop", write=direction(), lat_relative_error=0.5, stats={"x": 1}, tunables={"a": 1, "b": "two"})
    return RunDocument(
        workload="w",
        workload_sha256="0" * 64,
        drive="d",
        seed=3,
        processor=processor_time(Options()),
        notes=["n"],
        results=[entry],
    )


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


Change = Callable[[dict[str, Any]], object]
WRONG: dict[str, Change] = {
    "another schema": lambda d: d.update(schema="headwaiter/2"),
    "an unknown field": lambda d: d.update(colour="red"),
    "an unknown field within": lambda d: d["results"][0]["disk"].update(colour="red"),
    "a field is missing": lambda d: d.pop("drive"),
    "a field is missing within": lambda d: d["results"][0]["read"]["lat_ms"].pop("p95"),
    "a number as text": lambda d: d["results"][0].update(elapsed_s="1.0"),
    "a whole number that is none": lambda d: d["results"][0].update(merges=1.5),
    "an object for a list": lambda d: d.update(results={}),
    "null for what is absent": lambda d: d["results"][0].update(groups=None),
    "a word that is not among those there are": lambda d: d.update(replay="backwards"),
    "a tunable that is neither number nor word": lambda d: d["results"][0]["tunables"].update(a=[1]),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_refused(what: str) -> None:
    sound = printed(document())
    check(sound, "RunDocument")
    damaged = copy.deepcopy(sound)
    WRONG[what](damaged)
    with pytest.raises(ValidationError):
        check(damaged, "RunDocument")
    assert valid(sound) and not valid(damaged)


def test_units_are_those_of_the_names() -> None:
    """A field whose name ends in a unit has that unit."""
    # The longest end of a name that is a unit counts.
    units = {"_per_s": "requests/s", "_s": "s", "_ms": "ms", "_MBps": "MB/s", "_percent": "%", "_us": "us", "_bytes": "B"}
    units["_cylinders"] = "cylinders"
    for definition in SCHEMA["$defs"].values():
        for name, said in definition["properties"].items():
            end = next((end for end in units if name.endswith(end)), None)
            if end and "items" not in said and said.get("$ref") not in ("#/$defs/Latency", "#/$defs/MeanMax"):
                assert said.get("unit", "").split(" a ")[0] == units[end], name


# --- records ---


@dataclass(frozen=True)
class Inner(Record):
    one: Annotated[int, Says("one", "ms", key="ONE")]


@dataclass(frozen=True, kw_only=True)
class Outer(Record):
    first: Annotated[str, Says("first", head="the first")]
    inner: Annotated[Inner | None, Says("inner")] = None
    either: Annotated[int | str | None, Says("either")] = None
    unknown: Annotated[int | None, Says("unknown", null=True)] = None


def test_fields_say_what_they_are() -> None:
    first, inner, either, unknown = fields(Outer)
    assert (first.key, first.head, first.optional) == ("first", "the first", False)
    assert (inner.type, inner.head, inner.optional) == (Inner, "inner", True)
    assert (either.type, either.optional, either.null) == (int | str, True, False)
    assert (unknown.type, unknown.optional, unknown.null) == (int, False, True)
    assert field_at(Outer, "inner.ONE").unit == "ms"
    for path in ("inner.one", "second", "inner.ONE.two"):
        with pytest.raises((KeyError, AssertionError)):
            field_at(Outer, path)


def test_what_is_none_is_absent_or_null() -> None:
    assert json_text(Outer(first="ä")) == '{\n "first": "\\u00e4",\n "unknown": null\n}\n'
    whole = Outer(either=0, inner=Inner(5), first="x", unknown=7)
    assert json_text(whole) == '{\n "first": "x",\n "inner": {\n  "ONE": 5\n },\n "either": 0,\n "unknown": 7\n}\n'
    assert (value_at(whole, "inner.ONE"), value_at(whole, "either"), value_at(Outer(first="x"), "inner.ONE")) == (5, 0, None)
    with pytest.raises(KeyError):
        value_at(whole, "inner.one")


def test_records_like_others() -> None:
    assert like(Outer, Outer(first="a", either=3), first="b") == Outer(first="b", either=3)
