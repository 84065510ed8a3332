# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files in folders that others may write: whoever changes names there gets nothing written, changed or handed over."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command import write
from conftest import missing

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import check, opened, writing
from headwaiter.base.places import held

OLD, NEW, SECRET = "precious\n", "new\n", "root's\n"
RACER_UID, VICTIM_UID = 61_234, 61_235
RACER = """
import os, sys
uid, victim = int(sys.argv[1]), sys.argv[2]
os.setgroups([]), os.setgid(uid), os.setuid(uid)

def attempt(what, *names):
    try:
        what(*names)
    except OSError:
        pass

os.symlink(victim, "link")
print("ready", flush=True)
while True:
    for name in ("out", *(n for n in os.listdir() if n.startswith(".headwaiter"))):
        attempt(os.rename, "link", name)
        attempt(os.symlink, victim, "link")
        attempt(os.unlink, name)
        attempt(lambda: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o666)))
"""


def needs_root() -> None:
    if os.geteuid():
        missing("files of several users need root")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file beside the folder."""
    file = write(tmp_path / "victim", OLD)
    file.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(file, VICTIM_UID, VICTIM_UID)
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder of ours, in which everybody may write."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    return tmp_path / "shared"


def untouched(victim: Path) -> bool:
    found = victim.lstat()
    owner = VICTIM_UID if os.geteuid() == 0 else os.geteuid()
    return victim.read_text() == OLD and stat.S_IMODE(found.st_mode) == 0o600 and found.st_uid == owner and found.st_nlink == 1


@contextmanager
def racing(folder: Path, victim: Path) -> Iterator[None]:
    """A user who changes names there, as fast as possible."""
    code = [sys.executable, "-I", "-c", RACER, str(RACER_UID), str(victim)]
    with subprocess.Popen(code, cwd=folder, stdout=subprocess.PIPE, text=True) as racer:
        assert racer.stdout and racer.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            racer.kill()


@pytest.mark.parametrize("owner", [0, RACER_UID], ids=["root's folder", "the racer's folder"])
def test_a_racer_gets_nothing(folder: Path, victim: Path, owner: int) -> None:
    needs_root()
    os.chown(folder, owner, owner)
    with racing(folder, victim):
        for _ in range(300):
            with suppress(Problem, OSError):
                check(folder / "out")
            with suppress(Problem), writing(folder / "out", 0o600) as temporary:
                temporary.write_text(SECRET)
                handle = os.dup(temporary.handle)
                try:
                    assert os.pread(handle, 99, 0) == SECRET.encode()
                finally:
                    os.close(handle)
            assert untouched(victim)
            with suppress(OSError), open(folder / "out", encoding="utf-8", opener=_no_link) as found:
                what = os.fstat(found.fileno())
                assert found.read() != SECRET or stat.S_IMODE(what.st_mode) == 0o600
                assert found.read() != SECRET or what.st_uid in (0, owner)
            with suppress(Problem), opened(folder / "out", os.O_WRONLY | os.O_APPEND, 0o600) as handle:
                os.write(handle, b"more\n")
            assert untouched(victim)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def test_the_temporary_file_is_written_by_no_name(folder: Path, victim: Path) -> None:
    with (
        pytest.raises(Problem, match=rf"^{folder}/out: was replaced by something else meanwhile$"),
        writing(folder / "out") as temporary,
    ):
        (folder / temporary.called).unlink()
        (folder / temporary.called).symlink_to(victim)
        temporary.write_text(NEW)
    assert untouched(victim)


def test_a_file_that_becomes_a_link_gives_its_mode_to_nothing(folder: Path, victim: Path) -> None:
    out = write(folder / "out", OLD)
    with pytest.raises(Problem, match=rf"^{out}: was replaced by something else meanwhile$"), writing(out) as temporary:
        temporary.write_text(NEW)
        out.unlink()
        out.symlink_to(victim)
    assert untouched(victim) and out.is_symlink() and [one.name for one in folder.iterdir()] == ["out"]


def test_a_folder_that_is_swapped_is_still_the_one_that_was_meant(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with writing(tmp_path / "a" / "out") as temporary:
        (tmp_path / "a").rename(tmp_path / "c")
        (tmp_path / "a").symlink_to("b")
        temporary.write_text(NEW)
    assert (tmp_path / "c" / "out").read_text() == NEW and list((tmp_path / "b").iterdir()) == []


def test_a_fifo_that_becomes_a_link_is_not_written(folder: Path, victim: Path) -> None:
    out = folder / "out"
    os.mkfifo(out)
    with pytest.raises(Problem, match=rf"^{out}: "), writing(out) as temporary:
        temporary.write_text(NEW)
        out.unlink()
        out.symlink_to(victim)
    assert untouched(victim)


def test_links_of_others_lead_only_to_what_is_theirs(folder: Path, victim: Path, tmp_path: Path) -> None:
    """As root. Those of root lead anywhere, and so do those in a folder that only root may write."""
    needs_root()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, RACER_UID, RACER_UID)
    for where, to, fine in (
        (folder, victim, False),
        (folder, tmp_path / "new", False),
        (folder, theirs / "new", True),
        (theirs, folder / "new", False),
        (theirs, theirs / "other", True),
        (tmp_path, tmp_path / "one", True),
    ):
        link = where / "link"
        link.symlink_to(to)
        os.lchown(link, RACER_UID, RACER_UID)
        if fine:
            with writing(link) as temporary:
                temporary.write_text(NEW)
            assert to.read_text() == NEW and link.is_symlink()
        else:
            with pytest.raises(Problem, match=rf"^{link}: a link of somebody else's leads there"), writing(link):
                pass
        os.lchown(link, 0, 0)
        if to != victim:
            with writing(link) as temporary:
                temporary.write_text(NEW)
            assert to.read_text() == NEW
        link.unlink()
    assert untouched(victim)


@pytest.mark.parametrize("kind", ["file", "fifo"])
def test_what_others_have_put_there_does_not_get_what_root_writes(folder: Path, kind: str) -> None:
    needs_root()
    out = folder / "out"
    os.mkfifo(out) if kind == "fifo" else write(out, OLD)
    os.chown(out, RACER_UID, RACER_UID)
    for way in (check, lambda path: writing(path).__enter__(), lambda path: opened(path, os.O_RDWR, 0o600).__enter__()):
        with pytest.raises(Problem, match=rf"^{out}: belongs to somebody else, and lies in a folder that others may write$"):
            way(out)
    os.chown(folder, RACER_UID, RACER_UID)  # a user's file in that one's own folder stays that one's
    if kind == "file":
        with writing(out) as temporary:
            temporary.write_text(NEW)
        assert out.read_text() == NEW and out.stat().st_uid == RACER_UID


def test_a_file_of_the_owner_of_the_folder_that_comes_meanwhile_gets_nothing(folder: Path) -> None:
    needs_root()
    os.chown(folder, RACER_UID, RACER_UID)
    out = write(folder / "out", OLD)
    with pytest.raises(Problem, match=rf"^{out}: was replaced by something else meanwhile$"), writing(out) as temporary:
        temporary.write_text(NEW)
        out.unlink()
        write(out, "another's\n")
        os.chown(out, RACER_UID, RACER_UID)
    assert out.read_text() == "another's\n"


def test_the_last_name_is_not_followed(folder: Path, victim: Path) -> None:
    with held(folder / "out") as place:
        (folder / "out").symlink_to(victim)
        with pytest.raises(OSError, match="symbolic links"):
            place.open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def test_a_second_name_of_a_file_is_not_added_to(folder: Path, tmp_path: Path) -> None:
    """Others may have given it."""
    needs_root()
    write(tmp_path / "root's", OLD)
    (folder / "out").hardlink_to(tmp_path / "root's")
    with pytest.raises(Problem, match="has other names, too"), opened(folder / "out", os.O_WRONLY | os.O_APPEND, 0o600):
        pass


def test_a_mode_that_others_chose_does_not_open_what_is_private(folder: Path) -> None:
    out = write(folder / "out", OLD)
    out.chmod(0o644)
    with writing(out, 0o600) as temporary:
        temporary.write_text(NEW)
    assert stat.S_IMODE(out.stat().st_mode) == (0o600 if os.geteuid() == 0 else 0o644)


def test_descriptors_are_closed(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    (tmp_path / "link").symlink_to("out")
    for _ in range(3):
        check(tmp_path / "link")
        with writing(tmp_path / "link") as temporary:
            temporary.write_text(NEW)
        with pytest.raises(KeyError), writing(tmp_path / "link"):
            raise KeyError
    assert os.listdir("/proc/self/fd") == before
