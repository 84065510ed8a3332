# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`headwaiter record`: on a kernel that a folder stands for, and as root on a loop device."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from command import run
from ringpages import DISK, entry, event, format_text, page
from zstandard import ZstdDecompressor

from headwaiter.base.archives import PAGE
from headwaiter.base.errors import Problem
from headwaiter.queue import devices
from headwaiter.recorder import record, tracefs
from headwaiter.recorder.anonymous import Anonymous
from headwaiter.recorder.packing import Archive, FullError
from headwaiter.traces import load, recording
from headwaiter.traces.source import Source

STATS = "entries: 0\noverrun: 0\ncommit overrun: 0\nbytes: 0\noldest event ts: 0.0\nnow ts: {}.{:06d}\ndropped events: {}\n"


def unpacked(path: Path) -> dict[str, bytes]:
    """The files of an archive."""
    data = path.read_bytes()
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        data = ZstdDecompressor().stream_reader(BytesIO(data)).read()
    with tarfile.open(fileobj=BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


class Kernel:
    """Tracing and disks as files: an instance that is made has what the real one has, and pages to read."""

    def __init__(self, root: Path) -> None:
        self.root, self.sysfs = root / "tracing", root / "sys"
        (self.root / "instances").mkdir(parents=True)
        self.pages: dict[int, list[bytes]] = {0: [], 1: []}
        self.dropped = 0
        self.made: list[Path] = []
        self.kept: dict[str, str] = {}

    def populate(self, folder: Path) -> None:
        self.made.append(folder)
        for name in ("tracing_on", "trace_clock", "buffer_size_kb", "options/overwrite"):
            self._file(folder / name, "")
        for name in (*tracefs.EVENTS, tracefs.ISSUES, tracefs.INSERTS):
            self._file(folder / f"events/{name}/filter", "none")
            self._file(folder / f"events/{name}/enable", "0")
            self._file(folder / f"events/{name}/format", format_text(name.split("/")[1]))
        for cpu, pages in self.pages.items():
            pipe = b"".join(one.ljust(PAGE, b"\xee") for one in pages)
            self._file(folder / f"per_cpu/cpu{cpu}/trace_pipe_raw", pipe)
            self._file(folder / f"per_cpu/cpu{cpu}/stats", STATS.format(7, 5, self.dropped * (not cpu)))

    def remove(self, folder: Path) -> None:
        """What rmdir does; what was set stays known."""
        files = (path for path in folder.rglob("*") if path.is_file() and path.name != "trace_pipe_raw")
        self.kept = {str(path.relative_to(folder)): path.read_text() for path in files}
        shutil.rmtree(folder)

    def disk(self, name: str, number: str = "8:0", size: int = 2048, diskseq: int = 3) -> Path:
        folder = self.sysfs / "block" / name
        files = {"dev": number, "size": str(size), "diskseq": str(diskseq), "stat": "5 0 40 1 2 0 16 1 0 1 1 0 0 0 0"}
        for key, value in files.items():
            self._file(folder / key, f"{value}\n")
        self._file(folder / "queue/scheduler", "[none] bfq \n")
        return folder

    def _file(self, path: Path, content: str | bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel(tmp_path / "kernel")
    mkdir, rmdir = Path.mkdir, Path.rmdir

    def makes(path: Path, *args: Any, **more: Any) -> None:
        mkdir(path, *args, **more)
        if path.parent == made.root / "instances" and path not in made.made:
            made.populate(path)

    def removes(path: Path) -> None:
        made.remove(path) if path in made.made else rmdir(path)

    monkeypatch.setattr(Path, "mkdir", makes)
    monkeypatch.setattr(Path, "rmdir", removes)
    monkeypatch.setattr(tracefs, "place", lambda: made.root)
    monkeypatch.setattr(record, "READ_EACH_S", 0.01)
    monkeypatch.setattr(record, "LOOK_EACH_S", 0.02)
    return made


def request(sector: int, pid: int = 6) -> tuple[bytes, bytes]:
    """Queue and completion."""
    return (
        entry(10, event("block_bio_queue", sector=sector, nr_sector=8, rwbs="R", pid=pid)),
        entry(10, event("block_rq_complete", sector=sector, nr_sector=8, rwbs="R", pid=0)),
    )


def test_a_recording_is_read_as_the_kernel_had_it(kernel: Kernel, tmp_path: Path) -> None:
    kernel.pages = {0: [page(100, *request(8), *request(16)), page(500, *request(32))], 1: [page(300, *request(24))]}
    disk = devices.read(kernel.disk("sda"))
    out = tmp_path / "t.hwr"
    done = record.record([disk], 0.05, out, issues=True)
    assert (done.recorder, done.reason, done.sofar.lost, done.trouble) == ("tracefs", "time", 0, "")
    t = load(out)
    assert t.sector.tolist() == [8, 16, 24, 32] and (t.complete_ns - t.time_ns).tolist() == [10] * 4
    files = unpacked(out)
    assert out.read_bytes().startswith(b"\x28\xb5\x2f\xfd"), "not packed"
    # Without the unused end of pages, which may hold anything.
    assert len(files["cpu1/000000"]) == len(kernel.pages[1][0])
    assert not kernel.made[0].exists()
    kept = kernel.kept
    assert kept["options/overwrite"] == "0" and kept["buffer_size_kb"] == "8192" and kept["trace_clock"] == "mono"
    assert kept["tracing_on"].startswith("0")  # it was written last, over a 1
    for name in ("block_bio_queue", "block_split", "block_bio_remap", "block_rq_complete", "block_rq_issue"):
        assert kept[f"events/block/{name}/filter"] == f"dev == {DISK}"
        assert kept[f"events/block/{name}/enable"] == "1"
    assert kept["events/block/block_rq_insert/filter"] == f'(dev == {DISK}) && rwbs ~ "*W*"'
    assert kept["events/block/block_rq_insert/enable"] == "1"
    assert kept["events/sched/sched_process_fork/enable"] == "1"
    assert kept["events/sched/sched_process_fork/filter"] == "none"
    begun = json.loads(files["headwaiter.json"])
    assert begun["disks"][0]["settings"] == {"scheduler": "[none] bfq"} and begun["disks"][0]["facts"]["diskseq"] == "3"
    found = recording.of(Source(out))
    assert found and found.seconds is not None and 0.05 <= found.seconds < 60


def test_issues_are_recorded_only_where_wanted(kernel: Kernel, tmp_path: Path) -> None:
    kernel.pages[0] = [page(100, *request(8))]
    record.record([devices.read(kernel.disk("sda"))], 0.05, tmp_path / "t.hwr")
    assert {kernel.kept[f"events/{name}/enable"] for name in (tracefs.ISSUES, tracefs.INSERTS)} == {"0"}


def test_losses_are_counted_and_located(kernel: Kernel, tmp_path: Path) -> None:
    kernel.pages = {0: [page(100, *request(8))], 1: []}
    kernel.dropped = 12
    done = record.record([devices.read(kernel.disk("sda"))], 0.05, tmp_path / "t.hwr")
    assert done.sofar.lost == 12
    assert done.gaps == ({"cpu": 0, "events": 12, "from_ns": 7_000_005_000, "to_ns": 7_000_005_000},)
    assert any("12 events were lost" in note and "on CPU 0" in note for note in load(tmp_path / "t.hwr").notes)


class Counts:
    """An instance that loses."""

    def __init__(self, *seen: int) -> None:
        self.cpus, self.seen, self.now = [0], list(seen), 0

    def stats(self, cpu: int) -> tracefs.Stats:
        self.now += 1
        return tracefs.Stats(self.seen.pop(0), self.now * 10)


def test_gaps_that_meet_are_one() -> None:
    tracing = record.Tracing(Counts(0, 3, 5, 5, 6), None)  # type: ignore[arg-type]
    assert [tracing.look() for _ in range(5)] == [0, 3, 5, 5, 6]
    assert tracing.gaps == [
        {"cpu": 0, "events": 5, "from_ns": 10, "to_ns": 30},
        {"cpu": 0, "events": 1, "from_ns": 40, "to_ns": 50},
    ]


def test_a_disk_that_vanishes(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    kernel.pages[0] = [page(100, *request(8))]
    folder = kernel.disk("sda")
    monkeypatch.setattr("headwaiter.cli.record.find", lambda name: devices.read(kernel.sysfs / "block" / name))
    threading.Timer(0.1, lambda: (folder / "diskseq").write_text("4\n")).start()
    status, out, err = run(capfd, "record", "sda", "-t", "20", "-o", tmp_path / "t.hwr")
    assert (status, out) == (2, "") and len(err.splitlines()) == 1
    assert "what was recorded is kept, but the recording ended early: sda has vanished (0 requests in" in err
    assert "the recording ended early: sda has vanished" in load(tmp_path / "t.hwr").notes


def test_a_full_disk(tmp_path: Path) -> None:
    """The last files make room for the end."""
    path = tmp_path / "a"
    archive = Archive(path)
    archive.begin({"headwaiter": "recording-1"})
    archive.add("a", os.urandom(5000))
    archive.add("b", os.urandom(5000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (archive.bytes + 10, before[1]))
    try:
        with pytest.raises(FullError):
            archive.add("c", os.urandom(5000))
        assert path.stat().st_size == archive.bytes
        archive.end({"lost": 0})
        # Random bytes do not become fewer: there is no room to pack them.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(OSError, match="too large"):
            archive.pack(tmp_path / "b")
        (tmp_path / "b").unlink()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    archive.close()
    assert [file.name for file in tmp_path.iterdir()] == ["a"]
    assert {name: len(data) for name, data in unpacked(path).items()} == {"headwaiter.json": 30, "a": 5000, "end.json": 12}


def test_the_begin_of_an_archive_makes_no_room(tmp_path: Path) -> None:
    """Without it nothing tells what the archive is."""
    archive = Archive(tmp_path / "a")
    archive.begin({"headwaiter": "recording-1"})
    begun = (tmp_path / "a").read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (archive.bytes + 10, before[1]))
    try:
        with pytest.raises(FullError):
            archive.end({"lost": 0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    archive.close()
    assert (tmp_path / "a").read_bytes() == begun


def test_files_that_fill_their_blocks(tmp_path: Path) -> None:
    """Blocks have 512 bytes; one of zeros behind a file would end the archive."""
    archive = Archive(tmp_path / "a")
    archive.begin({})
    for size in (512, 0, 513, 1024):
        archive.add(str(size), b"x" * size)
    archive.end({"lost": 0})
    archive.close()
    found = {name: len(data) for name, data in unpacked(tmp_path / "a").items()}
    assert list(found.items())[1:-1] == [("512", 512), ("0", 0), ("513", 513), ("1024", 1024)]
    assert (tmp_path / "a").stat().st_size == archive.bytes == 512 * (6 + 1 + 1 + 2 + 2 + 1 + 2)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
@pytest.mark.parametrize("there", [None, 0o644, 0o600, 0o660])
def test_a_recording_is_for_its_owner_only(kernel: Kernel, tmp_path: Path, umask: int, there: int | None) -> None:
    """It names programs and places. A file that is there keeps its mode: who wants others to read it makes it so."""
    out = tmp_path / "t.hwr"
    if there is not None:
        out.touch()
        out.chmod(there)
    disk = devices.read(kernel.disk("sda"))
    before = os.umask(umask)
    try:
        record.record([disk], 0.02, out)
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == (0o600 if there is None else there)
    assert "headwaiter.json" in unpacked(out)


def test_a_disk_too_full_for_anything(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(archive: Archive, *parts: bytes) -> None:
        raise FullError("No space left on device")

    monkeypatch.setattr(Archive, "_append", full)
    with pytest.raises(Problem, match=r"t\.hwr: No space left on device"):
        record.record([devices.read(kernel.disk("sda"))], 0.05, tmp_path / "t.hwr")
    assert [path.name for path in tmp_path.iterdir()] == ["kernel"]
    assert not kernel.made[0].exists()


def test_instances_of_killed_recorders_are_removed(tmp_path: Path) -> None:
    ours = tracefs.own_name()
    gone, reused = "headwaiter-4194999-77", f"headwaiter-{os.getpid()}-1"
    for name in (ours, gone, reused, "headwaiter-x", "someone"):
        (tmp_path / "instances" / name).mkdir(parents=True)
    assert sorted(tracefs.remove_stale(tmp_path)) == sorted([gone, reused])
    assert sorted(path.name for path in (tmp_path / "instances").iterdir()) == sorted([ours, "headwaiter-x", "someone"])


def test_where_tracing_is_mounted(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("proc /proc proc rw 0 0\nnone /my/tracing tracefs rw 0 0\n")
    assert tracefs.place(mounts) == Path("/my/tracing")
    mounts.write_text("")
    with pytest.raises(tracefs.DeniedError, match="this kernel has no tracefs"):
        tracefs.place(mounts, tmp_path / "absent")


def test_nothing_that_records(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way, and why it does not work, in one line."""

    def denied() -> Path:
        raise tracefs.DeniedError("this kernel has no tracefs")

    monkeypatch.setattr(tracefs, "place", denied)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem) as caught:
        record.record([devices.read(kernel.disk("sda"))], 1, tmp_path / "t.hwr")
    why = "this kernel has no tracefs; blktrace: not installed; bpftrace: not installed"
    assert str(caught.value) == f"sda: recording needs root; {why}"
    assert not (tmp_path / "t.hwr").exists()


PROGRAM = """#!/bin/sh
echo "$@" >said-by-me
echo "# recording" >$FILE
trap 'printf "%s" "$TEXT" >>$FILE; echo "  CPU  0: 15 events (dropped 3)"
      echo "  Total: 20 events (dropped 4), 1 KiB data"; exit 0' INT
while :; do sleep 0.02; done
"""
TEXT = "fio-6 [000] 5.000000010: block_bio_queue: 8,0 R 8 + 8 [fio]\nx-0 [000] 5.000000500: block_rq_complete: 8,0 R 8 + 8 [0]\n"


def test_names_are_taken_out(kernel: Kernel, tmp_path: Path) -> None:
    """Names of programs go wherever they stand, pieces of them behind texts too; the kernel's threads keep theirs."""
    named = [("secretd", 6), ("secretd", 7), ("other", 8), ("kworker/u8:2", 9)]
    entries = [
        entry(10, event("block_bio_queue", sector=8 * pid, nr_sector=8, rwbs="R", pid=pid, comm=comm)) for comm, pid in named
    ] + [entry(10, event("block_rq_complete", sector=8 * pid, nr_sector=8, rwbs="R", pid=0)) for _, pid in named]
    entries.append(entry(10, event("sched_process_exit", pid=6, comm="secretd")))
    kernel.pages = {0: [page(100, *entries)], 1: []}
    folder = kernel.disk("sda")
    (folder / "device").mkdir()
    for name, text in (("model", "MODEL-1"), ("serial", "SERIAL-1"), ("wwid", "naa.5000000000000001")):
        (folder / "device" / name).write_text(text)
    plain, out = tmp_path / "plain.hwr", tmp_path / "t.hwr"
    disk = devices.read(folder)
    record.record([disk], 0.05, plain)
    kernel.made.clear()
    kernel.pages = {0: [page(100, *entries)], 1: []}
    record.record([disk], 0.05, out, anonymous=True)
    whole = b"".join(unpacked(plain).values())
    left = b"".join(unpacked(out).values())
    for secret in (b"secretd", b"other", b"SERIAL-1", b"naa.5", b"began_unix_ns", b"WSW"):
        assert secret not in left and (secret in whole or secret in (b"SERIAL-1", b"naa.5")), secret
    assert b"MODEL-1" in left or b"MODEL-1" not in whole
    assert out.read_bytes().startswith(b"\x28\xb5\x2f\xfd") and stat.S_IMODE(out.stat().st_mode) == 0o600
    a, b = load(plain), load(out)
    for column in ("time_ns", "complete_ns", "sector", "sectors", "op", "task"):
        assert (getattr(a, column) == getattr(b, column)).all(), column
    assert [task.name for task in b.tasks] == ["program-1", "program-1", "program-2", "kworker/u8:2"]


def test_a_text_that_stands_elsewhere_in_its_record() -> None:
    """As newer kernels store names: the field says where, and how long."""
    fields = (("unsigned short common_type", 0, 2, 0), ("int common_pid", 4, 4, 1), ("__data_loc char[] child_comm", 8, 4, 0))
    lines = (f"\tfield:{name};\toffset:{at};\tsize:{size};\tsigned:{signed};\n" for name, at, size, signed in fields)
    told = f"name: x\nID: 7\nformat:\n{''.join(lines)}"
    record_ = struct.pack("<HHiI", 7, 0, 5, 8 << 16 | 12) + b"secretd\0" + b"left"
    files = Anonymous()
    assert files.file("events/sched/x", told.encode()) == told.encode()
    changed = files.file("cpu0/000000", page(100, entry(10, record_)))
    assert changed == page(100, entry(10, struct.pack("<HHiI", 7, 0, 5, 8 << 16 | 12) + b"program\0" + bytes(4)))
    unknown = files.file("cpu0/000001", page(100, entry(10, struct.pack("<HHi", 8, 0, 5) + b"secretd\0")))
    assert unknown == page(100, entry(10, struct.pack("<HHi", 8, 0, 0) + bytes(8)))


def test_names_that_cannot_be_taken_out(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept then, and what other recorders write is not begun."""
    kernel.pages = {0: [page(100, *request(8))], 1: []}
    disk = devices.read(kernel.disk("sda"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Archive, "pack_changed", full)
    with pytest.raises(Problem, match="names cannot be taken out, so nothing is kept"):
        record.record([disk], 0.05, tmp_path / "t.hwr", anonymous=True)
    with pytest.raises(Problem, match=r"--anonymous: .*not out of blktrace's files"):
        record.record([disk], 0.05, tmp_path / "t.hwr", anonymous=True, recorder="blktrace")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernel"]


@pytest.mark.parametrize(("name", "file"), [("bpftrace", "events.txt"), ("blktrace", "trace.blktrace.0")])
def test_other_recorders(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str) -> None:
    """Programs that write until SIGINT, in place of the real ones."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).write_text(PROGRAM)
    (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TEXT", TEXT if name == "blktrace" else f"Lost 3 events\n{TEXT}")
    monkeypatch.setenv("FILE", file)
    disk = devices.read(kernel.disk("sda"))
    done = record.record([disk], 0.1, tmp_path / "t.hwr", recorder=name)
    assert (done.recorder, done.reason, done.sofar.lost) == (name, "time", 4 if name == "blktrace" else 3)
    files = unpacked(tmp_path / "t.hwr")
    assert files[file].decode() == f"# recording\n{TEXT}" or name == "bpftrace"
    assert "said" not in files
    called = files["said-by-me"].decode()
    assert ("-d /dev/sda -o trace" in called) if name == "blktrace" else (f"args->dev == {DISK}" in called)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "kernel", "t.hwr"]
    if name == "bpftrace":
        t = load(tmp_path / "t.hwr")
        assert t.sector.tolist() == [8] and "3 events were lost while recording" in t.notes


def test_a_recorder_that_ends_by_itself(kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "blktrace"
    program.write_text("#!/bin/sh\necho cannot do it >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    disk = devices.read(kernel.disk("sda"))
    with pytest.raises(Problem, match=r"sda: .*blktrace: cannot do it"):
        record.record([disk], 5, tmp_path / "t.hwr", recorder="blktrace")
    program.write_text("#!/bin/sh\necho >trace.blktrace.0\nsleep 0.3\necho it broke\nexit 1\n")
    done = record.record([disk], 20, tmp_path / "t.hwr", recorder="blktrace")
    assert done.trouble == "blktrace has ended by itself: it broke"


# --- as root, on the kernel that is here ---


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A loop device over a file of random bytes."""
    if os.geteuid() or not shutil.which("losetup") or not tracefs.USUAL.is_dir():
        pytest.skip("only root, on a kernel with tracefs, can record a loop device")
    (tmp_path / "disk").write_bytes(os.urandom(1 << 20))
    made = subprocess.run(["losetup", "-f", "--show", tmp_path / "disk"], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "-d", made.stdout.strip()], check=False, capture_output=True)


def recorder(loop: str, out: Path, *more: str) -> subprocess.Popen[str]:
    """A recorder of the device that has begun."""
    program = [sys.executable, "-P", "-m", "headwaiter", "record", loop, "-o", str(out), *more]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    instances = tracefs.place() / "instances"
    while process.poll() is None:
        own = list(instances.glob(f"headwaiter-{process.pid}-*"))
        # A new instance is on until its events have been chosen, and has no files for a moment.
        files = [own[0] / name for name in (f"events/{tracefs.EVENTS[-1]}/enable", "tracing_on")] if own else []
        with contextlib.suppress(FileNotFoundError):
            if files and all(file.read_text().strip() == "1" for file in files):
                break
        time.sleep(0.02)
    return process


def read_all(loop: str, size: int = 4096) -> None:
    """The whole disk, past the page cache."""
    subprocess.run(["dd", f"if={loop}", f"of={os.devnull}", f"bs={size}", "iflag=direct"], check=True, capture_output=True)


def instances() -> list[str]:
    return [path.name for path in (tracefs.place() / "instances").glob("headwaiter-*")]


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_loop_device_until_a_signal(loop: str, tmp_path: Path, number: signal.Signals) -> None:
    before = Path(f"/sys/block/{loop[5:]}/stat").read_text().split()[4:7]
    process = recorder(loop, tmp_path / "t.hwr", "-t", "600")
    read_all(loop)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "no event was lost" in err, err
    t = load(tmp_path / "t.hwr")
    mine = [k for k, task in enumerate(t.tasks) if task.name == "dd"]
    requests = [row for row in range(len(t)) if t.task[row] in mine]
    assert t.sector[requests].tolist() == list(range(0, 2048, 8)) and (t.sectors[requests] == 8).all()
    assert (t.complete_ns[requests] > t.time_ns[requests]).all()
    assert not any(f"-{process.pid}-" in name for name in instances())
    assert Path(f"/sys/block/{loop[5:]}/stat").read_text().split()[4:7] == before, "written to"


@pytest.mark.thorough
def test_a_recorder_that_was_killed_is_cleaned_up_after(loop: str, tmp_path: Path) -> None:
    process = recorder(loop, tmp_path / "t.hwr", "-t", "600")
    process.kill()
    process.communicate()
    again = recorder(loop, tmp_path / "u.hwr", "-t", "600")
    assert not any(f"-{process.pid}-" in name for name in instances())
    again.send_signal(signal.SIGINT)
    again.communicate(timeout=60)
    assert again.returncode == 0


@pytest.mark.thorough
def test_a_loop_device_that_vanishes(loop: str, tmp_path: Path) -> None:
    process = recorder(loop, tmp_path / "t.hwr", "-t", "600")
    read_all(loop, 65536)
    subprocess.run(["losetup", "-d", loop], check=True)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and f"{loop[5:]} has vanished" in err and len(err.splitlines()) == 1, err
    assert len(load(tmp_path / "t.hwr")) >= 16
