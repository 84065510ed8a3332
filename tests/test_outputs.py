# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What commands write, and where: whole or not at all, over nothing but plain files, with one line for what goes wrong."""

from __future__ import annotations

import json
import os
import pty
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from conftest import missing
from test_cli import TWO

from headwaiter.papers.was.config import save
from headwaiter.papers.was.fit import alike
from headwaiter.papers.was.matrix import Matrix, to_text

pytestmark = pytest.mark.thorough  # hundreds of commands
OLD = "precious\n"
NULL, FULL = (1, 3), (1, 7)
NOBODYS = (60, 7)  # a block device of a number that Linux leaves to experiments: no driver has it
MEASURED = "R 0 1000 16 5000 0\n" * 40

FOUR_CLASSES = ("--history", "3", "--classes", "4", "--spatial-steps", "60,30,0", "--temporal-steps", "40,0")
# Every option that names a file to be written: OUT is that file, TRACE a trace, CLASSES a configuration of `was`.
WRITERS = {
    "import": ["import", "TRACE", "-o", "OUT"],
    "run": ["run", "TRACE", "-s", "as", "-d", "constant:5", "-o", "OUT"],
    "run --json": ["run", "TRACE", "-s", "as", "-d", "constant:5", "--json", "-o", "OUT"],
    "run --log": ["run", "TRACE", "-s", "as", "-d", "constant:5", "--log", "OUT"],
    "compare": ["compare", "TRACE", "-s", "as,noop", "-d", "constant:5", "-o", "OUT"],
    "compare --json": ["compare", "TRACE", "-s", "as,noop", "-d", "constant:5", "--json", "-o", "OUT"],
    "compare --csv": ["compare", "TRACE", "-s", "as,noop", "-d", "constant:5", "--csv", "-o", "OUT"],
    "schedulers": ["schedulers", "-o", "OUT"],
    "drives": ["drives", "-o", "OUT"],
    "drives show": ["drives", "show", "wd-re-4tb", "-o", "OUT"],
    "drives export": ["drives", "export", "wd-re-4tb", "-o", "OUT"],
    "drives export --positions": ["drives", "export", "wd-re-4tb", "--positions", "-o", "OUT"],
    "drives new": ["drives", "new", "--rpm", "7200", "--capacity", "80GB", "--seek-average", "9", "-o", "OUT"],
    "validate": ["validate", "wd-re-4tb", "MEASURED", "-o", "OUT"],
    "validate --plot": ["validate", "wd-re-4tb", "MEASURED", "--plot", "OUT"],
    "was calibrate": ["was", "calibrate", "readers-2", *FOUR_CLASSES, "-o", "OUT"],
    "was calibrate --plot": ["was", "calibrate", "readers-2", *FOUR_CLASSES, "--plot", "OUT"],
    "was observe": ["was", "observe", "readers-2", "-c", "CLASSES", "-o", "OUT"],
    "was designate": ["was", "designate", "-c", "CLASSES", "-a", "MATRIX", "-o", "OUT"],
}
SUFFIX = {"validate --plot": ".svg", "was calibrate --plot": ".svg"}
every_writer = pytest.mark.parametrize("what", WRITERS)
# One for each way to make the content: a stream of text, C, a string, bytes, a library.
WAYS = ["import", "run --log", "compare --csv", "drives export", "validate --plot", "was designate"]
writers = pytest.mark.parametrize("what", WAYS)


class Commands:
    """Runs commands in a folder with a trace and a measured trace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "trace.csv").write_text(TWO)
        (folder / "measured").write_text(MEASURED)
        classes = alike(2000, {})
        save(classes, folder / "classes.toml")
        (folder / "matrix.json").write_text(to_text(Matrix(np.array([[5, 0, 1]]), 1000, classes.classifier), toml=False))

    def command(self, what: str, out: Path) -> list[str]:
        files = {"TRACE": "trace.csv", "MEASURED": "measured", "CLASSES": "classes.toml", "MATRIX": "matrix.json"}
        words = {"OUT": str(out), **{word: str(self.folder / name) for word, name in files.items()}}
        return [sys.executable, "-P", "-m", "headwaiter", *(words.get(word, word) for word in WRITERS[what])]

    def run(self, what: str, out: Path, **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(what, out), capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload, no-any-return]

    def good(self, what: str, out: Path) -> bytes:
        """What a new plain file gets, as bytes."""
        done = self.run(what, out)
        assert done.returncode == 0, done.stderr
        return out.read_bytes()


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    (tmp_path / "given").mkdir()
    return Commands(tmp_path / "given")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A folder of its own for what is written."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("headwaiter: "), done.stderr
    return lines[0]


def plain(out: Path, what: str, name: str = "file") -> Path:
    return out / f"{name}{SUFFIX.get(what, '')}"


def device(path: Path, kind: int, numbers: tuple[int, int]) -> Path:
    """A device node of our own."""
    try:
        os.mknod(path, kind | 0o666, os.makedev(*numbers))
        if kind == stat.S_IFCHR:
            os.close(os.open(path, os.O_WRONLY))
    except PermissionError:
        missing(f"making device nodes in {path.parent} needs root")
    return path


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    """A file system of its own."""
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "test", path], check=False, capture_output=True, text=True)
    if done.returncode:
        missing(f"mounting a file system needs root: {done.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@writers
def test_a_new_file_has_the_usual_mode_and_nothing_stays_beside_it(commands: Commands, out: Path, what: str) -> None:
    file = plain(out, what)
    assert commands.good(what, file)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask
    assert list(out.iterdir()) == [file]


@writers
def test_into_a_fifo(commands: Commands, out: Path, what: str) -> None:
    expected = commands.good(what, plain(out, what, "plain"))
    fifo = plain(out, what)
    os.mkfifo(fifo)
    got: list[bytes] = []
    # A reader that does not wait for a writer, so that the test ends also if the FIFO is replaced.
    end = os.open(fifo, os.O_RDWR)
    process = subprocess.Popen(commands.command(what, fifo), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    reader = threading.Thread(target=lambda: got.append(_read(end, len(expected))), daemon=True)
    reader.start()
    assert process.wait() == 0, process.stderr
    assert stat.S_ISFIFO(fifo.lstat().st_mode)
    reader.join(timeout=60)
    assert got == [expected]
    os.close(end)


def _read(end: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += os.read(end, size - len(data))
    return data


@every_writer
def test_device_nodes_stay_what_they_are(commands: Commands, out: Path, what: str) -> None:
    null = device(plain(out, what, "null"), stat.S_IFCHR, NULL)
    assert commands.run(what, null).returncode == 0
    assert stat.S_ISCHR(null.lstat().st_mode) and null.stat().st_rdev == os.makedev(*NULL)
    full = device(plain(out, what, "full"), stat.S_IFCHR, FULL)
    assert complaint(commands.run(what, full)) == f"headwaiter: {full}: No space left on device"
    assert stat.S_ISCHR(full.lstat().st_mode) and full.stat().st_rdev == os.makedev(*FULL)
    assert sorted(out.iterdir()) == [full, null]


@writers
def test_a_block_device_must_be_asked_for(commands: Commands, out: Path, what: str) -> None:
    disk = device(plain(out, what, "disk"), stat.S_IFBLK, NOBODYS)
    assert "block device" in complaint(commands.run(what, disk))
    if "-o" in WRITERS[what]:
        asked = [*commands.command(what, disk), "--block-device"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        assert complaint(done) == f"headwaiter: {disk}: No such device or address"
    assert stat.S_ISBLK(disk.lstat().st_mode)
    assert list(out.iterdir()) == [disk]


@writers
def test_symbolic_links_are_followed(commands: Commands, out: Path, what: str) -> None:
    expected = commands.good(what, plain(out, what, "plain"))
    file, link, second = plain(out, what), plain(out, what, "link"), plain(out, what, "second")
    link.symlink_to(file.name)
    second.symlink_to(link)
    file.write_text(OLD)
    file.chmod(0o640)
    assert commands.run(what, second).returncode == 0
    assert link.is_symlink() and second.is_symlink()
    assert file.read_bytes() == expected and stat.S_IMODE(file.stat().st_mode) == 0o640
    file.unlink()  # so that the links lead to nothing
    assert commands.run(what, second).returncode == 0
    assert link.is_symlink() and second.is_symlink() and file.read_bytes() == expected
    link.unlink()
    link.symlink_to(second.name)
    assert "symbolic links" in complaint(commands.run(what, link))


@writers
def test_a_folder_is_refused(commands: Commands, out: Path, what: str) -> None:
    folder = plain(out, what)
    folder.mkdir()
    assert str(folder) in complaint(commands.run(what, folder))
    assert list(out.iterdir()) == [folder] and not list(folder.iterdir())


@writers
def test_a_file_that_nobody_may_write_stays(commands: Commands, out: Path, what: str) -> None:
    """Also if root asks."""
    file = plain(out, what)
    file.write_text(OLD)
    file.chmod(0o444)
    assert complaint(commands.run(what, file)) == f"headwaiter: {file}: Permission denied"
    assert file.read_text() == OLD and stat.S_IMODE(file.stat().st_mode) == 0o444
    assert list(out.iterdir()) == [file]


@writers
def test_what_cannot_be_written_whole_is_not_written(commands: Commands, out: Path, what: str) -> None:
    """As with a full disk: no file may grow beyond 64 bytes. What was there stays; the message has its name."""
    for old in (None, OLD):
        file = plain(out, what)
        if old:
            file.write_text(old)
        done = commands.run(what, file, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
        assert complaint(done).startswith(f"headwaiter: {file}: ") and "File too large" in done.stderr
        assert done.stdout == ""
        assert [p.read_text() for p in out.iterdir()] == ([old] if old else [])


def test_a_full_file_system(commands: Commands, out: Path) -> None:
    with mounted(out / "full", "size=16k") as folder:
        file, rest = folder / "file", folder / "rest"
        file.write_text(OLD)
        with pytest.raises(OSError, match="No space"), rest.open("wb", buffering=0) as full:
            while True:
                full.write(bytes(4096))
        for what in ("import", "run --log", "drives"):
            for path in (file, folder / "new"):
                assert complaint(commands.run(what, path)) == f"headwaiter: {path}: No space left on device"
            assert sorted(folder.iterdir()) == [file, rest] and file.read_text() == OLD


def test_a_read_only_file_system(commands: Commands, out: Path) -> None:
    with mounted(out / "ro", "ro") as folder:
        for what in WRITERS:
            file = plain(folder, what)
            assert complaint(commands.run(what, file)) == f"headwaiter: {file}: Read-only file system"


def test_an_absent_folder_is_told_before_the_work(commands: Commands, out: Path) -> None:
    """The trace is bad as well, but is not read."""
    (commands.folder / "trace.csv").write_text("not a trace")
    for what in ("import", "run", "run --log", "compare --csv"):
        file = out / "none" / "file"
        assert complaint(commands.run(what, file)) == f"headwaiter: {file}: No such file or directory"


@pytest.mark.parametrize("more", [["-o", "X"], ["-o", "./X"], ["-o", "link"]])
def test_one_file_is_not_two(commands: Commands, out: Path, more: list[str]) -> None:
    (out / "link").symlink_to("X")
    command = [*commands.command("run", Path("X"))[:-2], "--log", "X", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    assert "-o and --log name the same file" in complaint(done)
    assert list(out.iterdir()) == [out / "link"]


@pytest.mark.parametrize("what", ["import", "run", "run --log", "compare --json"])
def test_what_is_read_is_not_replaced(commands: Commands, what: str) -> None:
    trace = commands.folder / "trace.csv"
    assert "name the same file" in complaint(commands.run(what, trace))
    assert trace.read_text() == TWO


def test_no_log_without_results(commands: Commands, out: Path) -> None:
    full = device(out / "full", stat.S_IFCHR, FULL)
    command = [*commands.command("run --log", out / "log"), "-o", str(full)]
    assert str(full) in complaint(subprocess.run(command, capture_output=True, text=True, check=False))
    assert not (out / "log").exists()


def test_the_name_of_stdout_is_stdout(commands: Commands, out: Path) -> None:
    """`-o /dev/stdout >>FILE` adds to the file; here by way of a link like that one, not to risk the machine's."""
    (out / "stdout").symlink_to("/proc/self/fd/1")
    expected = commands.good("import", out / "plain")
    with (out / "file").open("w+") as file:
        file.write(OLD)
        file.flush()
        done = subprocess.run(commands.command("import", out / "stdout"), stdout=file, check=False)
    assert done.returncode == 0
    assert (out / "file").read_bytes() == OLD.encode() + expected and (out / "stdout").is_symlink()


PRINTERS = [["drives", "wd-re-4tb"], ["schedulers", "--json"], ["compare", "--help"], ["drives", "export", "wd-re-4tb"],
            ["compare", "TRACE", "-s", "as,noop", "-d", "constant:5"], ["import", "TRACE"], ["conform"]]  # fmt: skip
printers = pytest.mark.parametrize("words", PRINTERS, ids=" ".join)


def printing(commands: Commands, words: list[str]) -> list[str]:
    trace = str(commands.folder / "trace.csv")
    return [sys.executable, "-P", "-m", "headwaiter", *(trace if word == "TRACE" else word for word in words)]


@printers
def test_stdout_that_is_full_or_closed(commands: Commands, words: list[str]) -> None:
    command = printing(commands, words)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert complaint(done) == "headwaiter: standard output: No space left on device"
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, check=False)
    assert complaint(done) == "headwaiter: standard output: Bad file descriptor"


@printers
def test_a_pipe_without_reader_is_as_with_other_programs(commands: Commands, words: list[str]) -> None:
    """Silent, with the status that a shell shows for SIGPIPE."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as pipe:
        done = subprocess.run(printing(commands, words), stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "headwaiter" in line]) == (141, [])
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@writers
def test_files_get_no_escape_sequences(commands: Commands, out: Path, what: str) -> None:
    file = plain(out, what)
    expected = commands.good(what, file)
    colours = os.environ | {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}
    assert commands.run(what, file, env=colours).returncode == 0
    assert file.read_bytes() == expected and (b"\x1b" not in expected or "export" in what)


@every_writer
def test_no_encoding_is_left_to_the_locale(commands: Commands, out: Path, what: str) -> None:
    """Files are UTF-8 everywhere: Python is told to fail where a file is opened as text without an encoding."""
    if "--plot" in WRITERS[what]:
        pytest.skip("matplotlib itself leaves it to the locale for files of its own")
    strict = os.environ | {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error::EncodingWarning"}
    done = commands.run(what, plain(out, what), env=strict)
    assert done.returncode == 0, done.stderr


@printers
def test_terminals_get_a_substitute_for_what_they_do_not_have(commands: Commands, words: list[str]) -> None:
    """And pipes get UTF-8."""
    if "export" in words:
        return
    latin = os.environ | {"PYTHONIOENCODING": "latin-1", "TERM": "dumb", "COLUMNS": "200"}
    piped = subprocess.run(printing(commands, words), env=latin, capture_output=True, check=False)
    assert piped.returncode == 0
    piped.stdout.decode("utf-8")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(printing(commands, words), env=latin, stdout=theirs, stderr=subprocess.PIPE, text=True)
    os.close(theirs)
    shown = b""
    while data := _terminal(ours):
        shown += data
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert len(shown.decode("latin-1")) > 100 and "â" not in shown.decode("latin-1")  # the first byte of a box in UTF-8


def _terminal(ours: int) -> bytes:
    try:
        return os.read(ours, 65536)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.needs("locales")
@pytest.mark.parametrize(("language", "charset"), [("ja_JP", "EUC-JP"), ("de_DE", "ISO-8859-1")])
def test_in_a_locale_that_is_not_utf8(commands: Commands, out: Path, language: str, charset: str) -> None:
    name = f"{language}.{charset}"
    subprocess.run(["localedef", "-c", "-i", language, "-f", charset, out / name], check=False, capture_output=True)
    assert (out / name).is_dir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("LC_")} | {"LOCPATH": str(out), "LC_ALL": name}
    asked = subprocess.run([sys.executable, "-c", "import locale; print(locale.getencoding())"], env=env, capture_output=True,
                           text=True, check=True)  # fmt: skip
    assert asked.stdout.strip() == charset
    for what in [*WAYS, "compare"]:
        expected = commands.good(what, plain(out, what))
        done = commands.run(what, plain(out, what), env=env)
        assert done.returncode == 0, done.stderr
        assert plain(out, what).read_bytes() == expected
    for words in PRINTERS:
        printed = subprocess.run(printing(commands, words), env=env, capture_output=True, check=False)
        assert printed.returncode == 0, printed.stderr


def test_json_is_json_in_every_file(commands: Commands, out: Path) -> None:
    for what in ("run --json", "compare --json", "schedulers", "drives", "validate"):
        assert json.loads(commands.good(what, out / "file"))["schema"] == "headwaiter/1"
