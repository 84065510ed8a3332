# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab's own parts, and, where QEMU and apt are there, a kernel with our modules in it."""

from __future__ import annotations

import json
import lzma
import os
import re
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import pytest
from command import good, told, write
from conftest import ROOT

from headwaiter.base.errors import Problem
from headwaiter.base.paths import DRIVES, HEADER, library
from headwaiter.conformance import decisions as recording
from headwaiter.conformance.check import check
from headwaiter.drives import profile
from headwaiter.drives.choose import open_drive
from headwaiter.engine.schedulers import catalogue
from headwaiter.experiments import example, refuse
from headwaiter.lab import debug, guest, host, modules, python, script
from headwaiter.lab.initramfs import Initramfs
from headwaiter.lab.kernels import SERIES, Kernel, version_key
from headwaiter.study.workload import Reading, read_workload

OLDER_IS_LONG = [pytest.param(one, marks=[pytest.mark.long] * (one != SERIES[-1])) for one in SERIES]
"""CI has the newer kernel by this, and both by the smoke."""


def _entries(archive: bytes) -> dict[str, tuple[list[int], bytes]]:
    """Entries of a "newc" archive: the 13 numbers of its header, and data, by name."""
    out: dict[str, tuple[list[int], bytes]] = {}
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, name_size = fields[6], fields[11]
        name = archive[at + 110 : at + 109 + name_size].decode()
        at += (110 + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return out
        out[name] = fields, archive[at : at + size]
        at += (size + 3) // 4 * 4


def test_initramfs_holds_what_was_put_in_and_depends_on_nothing_else() -> None:
    first, second = Initramfs(), Initramfs()
    first.add("/a/b/c", b"12345", executable=True)
    first.add("z", b"")
    second.add("z", b"")
    second.add("a/b/c", b"12345", executable=True)
    assert first.pack() == second.pack()
    entries = {name: (fields[1], data) for name, (fields, data) in _entries(first.pack()).items()}
    assert entries["a/b/c"] == (stat.S_IFREG | 0o755, b"12345") and entries["z"] == (stat.S_IFREG | 0o644, b"")
    assert stat.S_ISDIR(entries["a"][0]) and stat.S_ISDIR(entries["a/b"][0])
    assert list(entries) == sorted(entries)


def test_entries_of_an_initramfs_are_what_a_kernel_takes_them_for() -> None:
    """Each an inode of its own, and the console device 5:1."""
    archive = Initramfs()
    archive.add("/a/b/c", b"")
    found = {name: fields for name, (fields, _) in _entries(archive.pack()).items()}
    assert len({fields[0] for fields in found.values()}) == len(found) == 5
    assert found["dev/console"][1] == stat.S_IFCHR | 0o600 and found["dev/console"][9:11] == [5, 1]


def test_tunables_that_a_kernel_must_refuse() -> None:
    """NAME MIN MAX DEFAULT, and the names of choices."""
    antic = catalogue()["as"].tunables["antic_expire"]
    rows = refuse.tunables()["/lab/tunables/hw-as"].decode().splitlines()
    assert f"antic_expire {antic.minimum} {antic.maximum} {antic.default}" in rows and antic.default < antic.maximum


def test_modules_are_built_by_one_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    building = Lock()
    output = tmp_path / "kmod" / "6.12.1"

    def run(command: list[str]) -> str:
        assert building.acquire(blocking=False), "two build in one folder"
        output.mkdir(exist_ok=True)
        for name in modules.MODULES:
            (output / f"{name}.ko").write_bytes(b"half")
            time.sleep(0.02)
            (output / f"{name}.ko").write_bytes(b"whole")
        building.release()
        return ""

    monkeypatch.setattr(modules, "run", run)
    monkeypatch.setattr(modules, "headers", lambda kernel, say: tmp_path)
    monkeypatch.setattr(modules, "cache_folder", lambda: tmp_path)
    kernel = Kernel("6.12.1", tmp_path / "vmlinuz", tmp_path)
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: modules.build(kernel, lambda text: None), range(4)))
    assert built == [dict.fromkeys(modules.MODULES, b"whole")] * 4


def test_newest_package_is_by_number_not_by_letter() -> None:
    names = ["linux-image-6.12.9-cloud-amd64", "linux-image-6.12.117+deb12-cloud-amd64"]
    assert max(names, key=version_key) == names[1]


def test_results_are_taken_apart_and_damage_is_told() -> None:
    assert guest._unpack(b"file a 3\nxyzfile b/c 0\n", []) == {"a": b"xyz", "b/c": b""}
    for damaged in (b"file a 4\nxyz", b"fil a 3\nxyz", b"file a three\nxyz"):
        with pytest.raises(Problem, match="damaged"):
            guest._unpack(damaged, [])


def test_scripts_say_what_they_need(tmp_path: Path) -> None:
    path = tmp_path / "mine.sh"
    path.write_text('# What it is\n# lab: programs fio\n# lab: memory 64\n# lab: set A=1 B="2 3" D=\n')
    read = script.read(str(path))
    assert read.summary == "What it is"
    assert read.number("memory", 1) == 64
    assert read.environment({"A": "5"}) == {"A": "5", "B": "2 3", "D": ""}
    path.write_text("# lab: programs fio\n# lab: programs blktrace dd\n")
    assert script.read(str(path)).needs == {"programs": ["fio", "blktrace", "dd"]}
    with pytest.raises(Problem, match="no parameter C"):
        read.environment({"C": "1"})
    with pytest.raises(Problem, match="only letters"):
        read.environment({"A": "'; reboot"})
    path.write_text("# lab: set A\n")
    with pytest.raises(Problem, match="mine: '# lab: set' A: expected NAME=VALUE"):
        script.read(str(path)).environment({})
    path.write_text("# lab: colour red\n")
    with pytest.raises(Problem, match="colour"):
        script.read(str(path))
    with pytest.raises(Problem, match="neither an experiment"):
        script.read(str(tmp_path / "none.sh"))


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules and tools as soon as they are wanted."""
    monkeypatch.setattr(script, "build", lambda on, say: {"ours": b"built"})
    monkeypatch.setattr(script, "build_one", lambda on, name, say: f"module {name}".encode())
    monkeypatch.setattr(script, "tool", lambda name: f"tool {name}".encode())


def test_a_guest_has_what_its_script_needs(tmp_path: Path, lab: None) -> None:
    path = tmp_path / "mine.sh"
    needs = ("programs fio", "memory 64", "shift 3", "modules loop", "packed ext4", "own probe", "tools ioload")
    path.write_text("".join(f"# lab: {one}\n" for one in (*needs, "drives maxtor-20g", "set DRIVE=sata-ssd A=1")))
    on = Kernel("6.12.1", tmp_path)
    made = script.guest(script.read(str(path)), on, {"A": "5"}, lambda text: None)
    assert (made.memory_mib, made.shift, made.programs, made.cpus) == (64, 3, ["fio"], 1)
    assert made.modules == [*script.BASE_MODULES, "loop"] and made.packed_modules == ["ext4"]
    assert made.own_modules == {"ours": b"built"} and made.tools == {"ioload": b"tool ioload"}
    assert made.environment == {"KERNEL": "6.12", "DRIVE": "sata-ssd", "A": "5"} and made.script == path.read_text()
    drives = {f"/lab/drives/{name}{end}" for name in ("maxtor-20g", "sata-ssd") for end in ("", ".positions")}
    assert {*made.files} == drives | {"/lab/modules/probe.ko"} and made.files["/lab/modules/probe.ko"] == b"module probe"
    assert made.files["/lab/drives/sata-ssd"] == profile.find_drive("sata-ssd").blob
    path.write_text("# lab: stock null_blk\n")
    stock = script.guest(script.read(str(path)), on, {}, lambda text: None)
    assert (stock.modules, stock.own_modules, stock.memory_mib, stock.shift) == (["null_blk"], {}, 1024, 1)
    checked = script.guest(script.read(str(path)), Kernel("6.12.1", tmp_path, debug=True), {}, lambda text: None)
    assert (checked.memory_mib, checked.cpus, checked.shift, checked.hang_s, checked.limit_s) == (2048, 2, None, 600, 3600)
    assert checked.environment["KERNEL"] == "debug" and "kasan_multi_shot" in checked.parameters


def test_a_script_runs_on_each_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files are known by the series that was asked for, those of a folder's kernel by its own."""
    path = tmp_path / "mine.sh"
    path.write_text("# lab: kernels 6.1 6.12\n")
    releases = {"6.1": "6.1.9", "6.12": "6.12.1", "7.2.11": "7.2.11", "./folder": "6.18.3"}
    monkeypatch.setattr(script, "named_kernel", lambda name, say: Kernel(releases[name], tmp_path))
    results = {"results": b'{"a": 1}\n', "log": b"x"}
    monkeypatch.setattr(script, "_run", lambda *_: guest.GuestOutcome(results, []))
    _, found, files = script.execute(str(path), (), {}, lambda text: None)
    assert [row["kernel"] for row in found] == ["6.1", "6.12"] and files == {"6.1/log": b"x", "6.12/log": b"x"}
    _, found, files = script.execute(str(path), ("7.2.11", "./folder"), {}, lambda text: None)
    assert [row["kernel"] for row in found] == ["7.2", "6.18"] and files == {"7.2.11/log": b"x", "6.18/log": b"x"}


def test_a_guest_gets_what_lines_of_python_import(tmp_path: Path) -> None:
    """The simulator and the drives only where it simulates."""
    simulator = {str(library()), str(HEADER), *map(str, DRIVES.glob("*.toml"))}
    for simulates, processor in ((False, "qemu64"), (True, "Nehalem")):
        made = guest.Guest(Kernel("6.12.1", tmp_path), "")
        python.pack(made, "import sys, json.tool\n", simulates=simulates)
        assert {"tool.py", "decoder.py"} <= {Path(path).name for path in made.files} and made.processor == processor
        assert {*made.files} & simulator == (simulator if simulates else set())
        assert made.environment["PYTHON"] in made.executables and any("libc.so" in name for name in made.executables)


def test_the_example_is_packed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    headers = tmp_path / "usr" / "src" / "linux-headers" / "include" / "linux"
    headers.mkdir(parents=True)
    (headers / "list.h").write_text("struct list_head;")
    seen: list[guest.Guest] = []

    def boot(made: guest.Guest, say: object) -> guest.GuestOutcome:
        seen.append(made)
        return guest.GuestOutcome({"trace.blktrace.0": b"x" * 1000}, [])

    made = guest.Guest(Kernel("6.12.1", tmp_path), "", files={"/a": b"b"})
    monkeypatch.setattr(example, "newest", lambda pattern: "linux-headers")
    monkeypatch.setattr(example, "fetch", lambda package, say: tmp_path)
    monkeypatch.setattr(example, "guest", lambda *_: made)
    monkeypatch.setattr(example, "boot", boot)
    found = example.run(script.Script("example", ""), made.kernel, {}, lambda text: None).files
    packed = found["example.blktrace.xz"]
    assert seen[0].files == {"/a": b"b", "/tree/list.h": b"struct list_head;"} and lzma.decompress(packed) == b"x" * 1000
    assert json.loads(found["results"]) == {"trace_bytes": 1000, "compressed_bytes": len(packed)}


def test_the_command_runs_what_it_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[object] = []

    def execute(target: str, series: object, given: object, say: object, modules: object) -> object:
        seen.append((target, series, given, modules))
        rows = [{"kernel": "6.1", "a": 1}, {"kernel": "6.12", "a": 2, "b": "x"}]
        return script.Script("mine", "# What it is\n"), rows, {"6.1/log": b"1", "6.12/log": b"2", "6.12/a/b": b"3"}

    monkeypatch.setattr("headwaiter.cli.lab.execute", execute)
    how = ("-k", "6.1", "-k", "6.12", "--set", "A=5", "--set", "B=x=y", "--files", tmp_path / "files", "--module", tmp_path)
    found = told(capfd, "lab", "run", "mine", *how)
    assert seen == [("mine", ("6.1", "6.12"), {"A": "5", "B": "x=y"}, (tmp_path,))]
    assert found["experiment"] == "mine" and [row["a"] for row in found["results"]] == [1, 2]
    files = {str(path.relative_to(tmp_path / "files")): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"6.1/log": b"1", "6.12/log": b"2", "6.12/a/b": b"3"}
    lines = good(capfd, "lab", "run", "mine").splitlines()
    assert seen[1] == ("mine", (), {}, ()) and lines[0].strip() == "What it is"
    assert [word for word in lines[2].split() if word.isalnum()] == ["kernel", "a", "b"]


def test_a_tool_is_compiled_when_its_source_has_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[list[str]] = []

    def run(command: list[str]) -> str:
        calls.append(command)
        Path(command[command.index("-o") + 1]).write_text(f"made {len(calls)}")
        return ""

    source = tmp_path / "lab" / "guest" / "load.c"
    source.parent.mkdir(parents=True)
    source.write_text("int main;")
    for name, value in (("run", run), ("need", str), ("source_folder", lambda: tmp_path), ("cache_folder", lambda: tmp_path)):
        monkeypatch.setattr(script, name, value)
    assert [script.tool("load"), script.tool("load")] == [b"made 1"] * 2 and "-static" in calls[0]
    later = time.time() + 60
    os.utime(source, (later, later))
    assert script.tool("load") == b"made 2"
    with pytest.raises(Problem, match="no tool none in lab/guest"):
        script.tool("none")


def test_profiles_that_a_kernel_must_refuse() -> None:
    """The check is the kernel module's own."""
    files = refuse.damaged_profiles()
    names = [path.removesuffix(".bad") for path in files if path.endswith(".bad")]
    assert len(names) == 11
    for name in names:
        with pytest.raises(Problem) as refused:
            profile._check("here", files[f"{name}.bad"])
        assert files[f"{name}.says"].decode() in str(refused.value), name
    profile._check("here", files["/lab/profiles/good"])


def test_results_are_rows_with_their_kernel(tmp_path: Path) -> None:
    on = Kernel("6.12.1", tmp_path / "vmlinuz", tmp_path)
    outcome = guest.GuestOutcome(files={"results": b'{"a": 1}\n{"b": [2]}\n'}, console=[])
    assert script.rows("x", on, outcome) == [{"kernel": on.name, "a": 1}, {"kernel": on.name, "b": [2]}]
    with pytest.raises(Problem, match="x: a result is not a JSON object"):
        script.rows("x", on, guest.GuestOutcome(files={"results": b"[1]"}, console=[]))


def test_build_refuses_what_is_no_kernel(tmp_path: Path) -> None:
    done = subprocess.run([str(ROOT / "kmod" / "build"), "--headers", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kmod/build: ") and done.stderr.count("\n") == 1


def test_debug_kernel_must_have_every_check_that_is_asked_for(tmp_path: Path) -> None:
    asked, made = tmp_path / "asked", tmp_path / "made"
    asked.write_text("# checks\nCONFIG_KASAN=y\nCONFIG_NR_CPUS=4\n")
    made.write_text("# CONFIG_UBSAN is not set\nCONFIG_KASAN=y\nCONFIG_NR_CPUS=4\n")
    debug._check(asked, made)
    made.write_text("CONFIG_KASAN=y\nCONFIG_NR_CPUS=64\n")
    with pytest.raises(Problem, match=r"asked:3: CONFIG_NR_CPUS=4: linux-source-\S+ does not accept it"):
        debug._check(asked, made)


def test_a_module_of_the_guest_must_be_there() -> None:
    with pytest.raises(Problem, match="no module nothing in lab/guest"):
        modules.build_one(Kernel("6.12.1", Path("/none")), "nothing", lambda text: None)


def test_debug_kernel_names_the_package_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debug, "TOOLS", ("no-such-tool",))
    monkeypatch.setitem(host.PACKAGES, "no-such-tool", "no-such-package")
    with pytest.raises(Problem, match=r"no-such-tool is not installed \(apt-get install no-such-package\)"):
        script.named_kernel("debug", lambda text: None)
    assert not list(tmp_path.iterdir())


def _run(
    experiment: str, series: str, given: dict[str, str] | None = None, files: dict[str, bytes] | None = None
) -> list[script.Row]:
    """Rows (and files) of an experiment on one kernel."""
    _, rows, sent = script.execute(experiment, [series], given or {}, lambda text: None)
    if files is not None:
        files.update(sent)
    return rows


MODULE = """#include <linux/module.h>
static int __init rival_init(void)
{
	return 0;
}
static void __exit rival_exit(void)
{
}
module_init(rival_init);
module_exit(rival_exit);
MODULE_DESCRIPTION("somebody else's");
MODULE_LICENSE("GPL");
"""


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_somebody_elses_module_is_built_and_inserted(tmp_path: Path) -> None:
    """From its folder, in which nothing is written, and then as a file; a file for another kernel is refused."""
    folder, mine = tmp_path / "rival", tmp_path / "mine.sh"
    folder.mkdir()
    write(folder / "rival.c", MODULE)
    write(folder / "Kbuild", "obj-m := rival.o\n")
    write(mine, """# What is inserted\nresult "{\\"there\\":\\"$(cut -d' ' -f1 /proc/modules | head -1)\\"}"\n""")
    _, rows, _ = script.execute(str(mine), ["6.12"], {}, lambda text: None, [folder])
    assert [row["there"] for row in rows] == ["rival"]
    assert sorted(one.name for one in folder.iterdir()) == ["Kbuild", "rival.c"]
    on = script.named_kernel("6.12", lambda text: None)
    file = tmp_path / "rival.ko"
    file.write_bytes(modules.foreign(on, folder, lambda text: None)["rival"])
    _, rows, _ = script.execute(str(mine), ["6.12"], {}, lambda text: None, [file])
    assert [row["there"] for row in rows] == ["rival"]
    with pytest.raises(Problem, match=rf"rival\.ko: is for kernel {re.escape(on.release)}, not 6\.1"):
        script.execute(str(mine), ["6.1"], {}, lambda text: None, [file])


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    on = Kernel("6.12.1", tmp_path)
    text = write(tmp_path / "a.ko", "no module")
    with pytest.raises(Problem, match=r"a\.ko: is no kernel module"):
        modules.foreign(on, Path(text), lambda _: None)
    with pytest.raises(Problem, match="has no Kbuild or Makefile"):
        modules.foreign(on, tmp_path, lambda _: None)
    with pytest.raises(Problem, match=r"absent\.ko: No such file"):
        modules.foreign(on, tmp_path / "absent.ko", lambda _: None)


@pytest.mark.thorough
@pytest.mark.needs("lab")
@pytest.mark.parametrize("series", SERIES)
def test_smoke_on_a_stock_kernel(series: str) -> None:
    """Load, switch under verified load, set every tunable, take the disk away, unload; the kernel's log stays clean."""
    rows = _run("smoke", series)
    found = {row["scheduler"]: row for row in rows if "tunables" in row}
    assert {
        "hw-noop",
        "hw-deadline",
        "hw-as",
        "hw-as-95",
        "hw-as-seek",
        "hw-as-share",
        "hw-cas",
        "hw-was",
        "hw-was-online",
        "hw-cfq",
        "hw-cfq-slice",
    } <= set(found)
    assert all(row["tunables"] >= 1 for row in found.values()), json.dumps(rows)
    assert {row["scheduler"] for row in rows if row.get("taken_away")} == set(found)
    assert [row["switches"] for row in rows if "switches" in row] == [2 * (len(found) + 4)]
    assert found["hw-as"]["anticipations"] > 0
    assert found["hw-deadline"]["anticipations"] == 0


@pytest.mark.thorough
@pytest.mark.needs("lab")
@pytest.mark.parametrize("series", OLDER_IS_LONG)
def test_emulated_disk_flushes_and_discards(series: str) -> None:
    """A flush waits for the medium, FUA too; discards and zeros give memory back, and only what they cover reads as zeros."""
    rows = [row for row in _run("disk", series) if "scheduler" in row]
    assert [row["scheduler"] for row in rows] == ["none", "mq-deadline", "hw-deadline", "hw-cfq-slice"]
    assert all((row["flushed"], row["forced"]) == (8, 8) and row["in_cache"] > 0 for row in rows), json.dumps(rows)


@pytest.mark.thorough
@pytest.mark.needs("lab")
@pytest.mark.parametrize("series", OLDER_IS_LONG)
def test_kernel_refuses_what_does_not_fit(series: str) -> None:
    """Tunables at their limits and beyond, modules of another kernel, names that are taken, invalid profiles."""
    found = {row["what"]: row["count"] for row in _run("refuse", series)}
    for scheduler in catalogue().values():
        if not scheduler.is_model:
            assert found[f"tunables of {scheduler.kernel_name}"] == len(scheduler.tunables)
    assert (found["twins refused"], found["modules refused"]) == (1, 6)
    assert found["profiles refused"] >= 100


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_decisions_are_recorded_anew(tmp_path: Path) -> None:
    """A fresh recording of a stock kernel is one that the checker takes, and ours decides as that kernel did."""
    files: dict[str, bytes] = {}
    rows = _run("conformance", "6.12", {"WORKLOADS": "sequential", "SCHEDULERS": "mq-deadline"}, files)
    assert [(row["scheduler"], row["workload"]) for row in rows] == [("mq-deadline", "sequential")]
    path = tmp_path / "recording.xz"
    path.write_bytes(files["6.12/mq-deadline-sequential.xz"])
    verdict = check(recording.read(path))
    assert verdict.decisions > 300 and verdict.share >= 0.99


@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_example_is_recorded_anew(tmp_path: Path) -> None:
    """A smaller one: what comes back is a trace in which all three programs read and write."""
    files: dict[str, bytes] = {}
    (row,) = _run("example", "6.12", {"BIG_MIB": "8"}, files)
    path = tmp_path / "example.blktrace.xz"
    path.write_bytes(files["6.12/example.blktrace.xz"])
    assert row["compressed_bytes"] == path.stat().st_size
    work = read_workload(path, open_drive("barracuda-80g"), Reading())
    names = {task.name for task in work.load.tasks}
    assert {"dd", "cat"} <= names and len(work.load.tasks) > 100


@pytest.mark.thorough
@pytest.mark.needs("lab")
@pytest.mark.parametrize("series", OLDER_IS_LONG)
def test_nothing_is_lost_under_abuse(series: str) -> None:
    """Switching under verified load, discards, a device that refuses, tasks that die by the thousand; shortened."""
    found = {row["what"]: row["count"] for row in _run("abuse", series, {"DURATION": "2"})}
    assert found["switches under verified load"] > 20
    assert found["configs of hw-was under load"] > 20
    for name in ("deadline", "as", "as-95", "as-seek", "as-share", "cas", "was", "was-online", "cfq", "cfq-slice"):
        assert found[f"hw-{name}: tasks that issued and died"] > 1000
        assert found[f"hw-{name}: MiB through a refusing device"] == 8
