# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The one writer of files, the reader of files, and the end of the process, each by itself (commands: test_outputs.py)."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import threading
from pathlib import Path

import pytest
from command import good, run, write

from headwaiter.base import ending, reading
from headwaiter.base.errors import Problem
from headwaiter.base.outputs import BlockDevice, check, distinct, writing

OLD, NEW = "precious\n", "new\n"


def put(target: Path, text: str = NEW) -> None:
    with writing(target) as temporary:
        temporary.write_text(text)
        assert not target.exists() or target.read_text() == OLD, "not before the end"


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        put(tmp_path / "f")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640
    assert (tmp_path / "f").read_text() == NEW and [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_file_that_is_replaced_keeps_its_mode_and_links_lead_to_it(tmp_path: Path) -> None:
    file, link = write(tmp_path / "f", OLD), tmp_path / "link"
    file.chmod(0o604)
    link.symlink_to("f")
    put(link)
    assert link.is_symlink() and not file.is_symlink() and file.read_text() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == 0o604


def test_what_goes_wrong_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name the file that was asked for, not the temporary one."""
    file = write(tmp_path / "f", OLD)
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(Problem, match=rf"^{file}: No space left on device$"), writing(file) as temporary:
        raise OSError(full.errno, full.strerror, str(temporary))
    with pytest.raises(Problem, match=rf"^{file}: broken$"), writing(file) as temporary:
        raise Problem(f"{temporary}: broken")
    with pytest.raises(OSError, match="other"), writing(file):
        raise OSError(errno.ENOENT, "No such file or directory", "/of/some/other")
    with pytest.raises(KeyboardInterrupt), writing(file):
        raise KeyboardInterrupt

    def fsync(handle: int) -> None:
        raise full

    monkeypatch.setattr(os, "fsync", fsync)  # some file systems say only there that they are full
    with pytest.raises(Problem, match=rf"^{file}: No space left on device$"):
        put(file)
    assert file.read_text() == OLD and [p.name for p in tmp_path.iterdir()] == ["f"]


def test_what_must_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "f", OLD)
    file.chmod(0o444)  # root could
    for target, why in ((file, "Permission denied"), (tmp_path, "Is a directory"), (tmp_path / "no" / "f", "No such file")):
        for way in (check, put):
            with pytest.raises(Problem, match=f"^{target}: {why}"):
                way(target)
    file.chmod(0o644)
    check(file)
    monkeypatch.setattr(stat, "S_ISBLK", stat.S_ISREG)
    with pytest.raises(Problem, match=f"^{file}: is a block device: use --block-device to overwrite it"):
        check(file)
    check(BlockDevice(file))
    assert file.read_text() == OLD


def test_a_fifo_gets_the_content_and_stays(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    came: list[bytes] = []
    reader = threading.Thread(target=lambda: came.append(fifo.read_bytes()))
    reader.start()
    with writing(fifo) as temporary:
        temporary.write_text(NEW)
    reader.join()
    assert came == [NEW.encode()] and stat.S_ISFIFO(fifo.stat().st_mode)


def test_files_that_are_one_file(tmp_path: Path) -> None:
    file, link = write(tmp_path / "f", OLD), tmp_path / "link"
    link.symlink_to("f")
    distinct({"FILE": file}, {"-o": tmp_path / "other", "--log": None})
    with pytest.raises(Problem, match=f"^{link}: FILE and -o name the same file$"):
        distinct({"FILE": file}, {"-o": link})
    with pytest.raises(Problem, match="-o and --log name the same file"):
        distinct({"FILE": None}, {"-o": file, "--log": link})


def test_output_of_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    plain = good(capfd, "schedulers", "as", "--json")
    assert good(capfd, "schedulers", "as", "--json", "-o", "-") == plain and list(tmp_path.iterdir()) == []
    assert good(capfd, "schedulers", "as", "-o", tmp_path / "x") == "" and (tmp_path / "x").read_text() == plain
    status, out, err = run(capfd, "compare", "nothing", "-o", tmp_path / "no" / "x")
    assert (status, out) == (2, "") and err == f"headwaiter: {tmp_path}/no/x: No such file or directory\n", "before the work"


# --- reading ---


def test_how_much_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the free memory, and 64 MiB in any case."""
    for free, most in ((10 << 30, 1 << 30), (1 << 20, 64 << 20)):
        monkeypatch.setattr(reading, "free_memory_bytes", lambda free=free: free)
        assert reading.most_bytes() == most


def test_what_is_packed_is_known_by_its_first_bytes() -> None:
    path, data = Path("x"), b"some text\n" * 9
    packed = gzip.compress(data)
    assert reading.unpack(path, packed) == data and reading.unpack(path, packed + packed) == data * 2
    assert reading.unpack(path, data + packed[:3]) == data + packed[:3]
    assert reading.unpack(path, packed, len(data)) == data
    with pytest.raises(Problem, match="unpacks to more than"):
        reading.unpack(path, packed, len(data) - 1)


# --- the end of the process ---


def test_the_status_is_that_of_shells(monkeypatch: pytest.MonkeyPatch) -> None:
    ending.check()
    monkeypatch.setattr(ending, "_received", [15])
    with pytest.raises(ending.Ended) as end:
        ending.check()
    assert end.value.code == 143 and ending.GRACE_S < 1, "a signal ends a command within a second"
