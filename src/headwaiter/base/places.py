# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Hold the place that a path leads to by a descriptor, so that nobody can make the name lead elsewhere before a write.

Problems have the cause only: outputs.py adds the name.

Symbolic links are followed here, once, folder by folder; the last name is then used beneath the descriptor of its folder, and
never followed. root takes no orders from others meanwhile: in a folder that somebody else may write, a link of somebody else
leads only to that one's own folder, and a file of somebody else is written only if the folder is that one's, too (as Linux has
it for /tmp: fs.protected_symlinks, fs.protected_regular).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from errno import EISDIR, ELOOP
from pathlib import Path

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem

MOST_LINKS = 40
"""As many as Linux follows."""
REPLACED = "was replaced by something else meanwhile"


@dataclass(frozen=True)
class Place:
    """A name in a folder that is held open. there: what was there when it was looked at, None if nothing.

    magic: a link of /proc to something that has no name, such as a pipe.
    """

    folder: int
    name: str
    there: os.stat_result | None = None
    magic: bool = False

    @property
    def shared(self) -> bool:
        """Return whether others than root can put something else there, and we are root."""
        return _shared(os.fstat(self.folder))

    def look(self) -> os.stat_result | None:
        """Return what is there now; a link is what it is."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def replaceable(self) -> os.stat_result | None:
        """The file that a new one may replace, None if there is none. Problem if it is something else, or another's, by now."""
        now = self.look()
        if now is not None and not stat.S_ISREG(now.st_mode):
            raise Problem(REPLACED)
        # root may have written here meanwhile, too; of others' files only the one that was there at first is.
        if self.shared and not same(now, self.there) and (now is None or now.st_uid != 0):
            raise Problem(REPLACED)
        return now

    def open(self, flags: int, mode: int = 0o600) -> int:
        """A descriptor of what is there, or of a new file if flags say so. Problem if it was replaced, or as of admit()."""
        follow = 0 if self.magic else os.O_NOFOLLOW
        handle = os.open(self.name, flags | follow | os.O_NOCTTY | os.O_CLOEXEC, mode, dir_fd=self.folder)
        try:
            found = os.fstat(handle)
            if self.there is not None and not same(found, self.there):
                raise Problem(REPLACED)
            self.admit(found)
            if self.shared and found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                raise Problem("has other names, too, and lies in a folder that others may write")
        except BaseException:
            os.close(handle)
            raise
        return handle

    def admit(self, found: os.stat_result) -> None:
        """Problem if this is somebody else's, in a folder in which root does not write to such."""
        folder = os.fstat(self.folder)
        if _shared(folder) and found.st_uid not in (0, folder.st_uid):
            raise Problem("belongs to somebody else, and lies in a folder that others may write")

    def temporary(self) -> tuple[str, int]:
        """A new file of ours beside it, for nobody else: its name, and a descriptor."""
        name = _new_name()
        return name, os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.folder)

    def remove(self, name: str) -> None:
        """A file beside it, if it is still there."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.folder)

    @contextmanager
    def workshop(self) -> Iterator[Path]:
        """A folder of ours beside it, for nobody else, that goes with all that is in it."""
        name = _new_name()
        os.mkdir(name, 0o700, dir_fd=self.folder)
        try:
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
            try:
                found = os.fstat(handle)
                if found.st_uid != os.getresuid()[1] or found.st_mode & 0o077 or os.listdir(handle):
                    raise Problem(REPLACED)
                with tidied(lambda: _empty(handle)):
                    yield by_descriptor(handle)
            finally:
                os.close(handle)
        finally:
            with suppress(OSError):
                os.rmdir(name, dir_fd=self.folder)


def by_descriptor(handle: int) -> Path:
    """The name of an open file or folder that leads to it whatever becomes of its own names; for this process only."""
    return Path(f"/proc/self/fd/{handle}")


def same(one: os.stat_result | None, other: os.stat_result | None) -> bool:
    """Return whether these are of the same file, or both of none."""
    if one is None or other is None:
        return one is other
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


@contextmanager
def held(path: Path) -> Iterator[Place]:
    """The place to which a path leads. OSError if it leads nowhere, Problem if a link of somebody else's leads root there."""
    with ExitStack() as stack:

        def hold(name: str, folder: int | None = None) -> int:
            handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            stack.callback(os.close, handle)
            return handle

        yield _follow(path, hold)


def _follow(path: Path, hold: Callable[[str, int | None], int]) -> Place:
    todo = list(reversed(path.parts))
    folder = hold(todo.pop() if path.is_absolute() else ".", None)
    links = 0
    strangers: set[int] = set()
    while todo:
        name = todo.pop()
        try:
            handle = hold(name, folder)
        except FileNotFoundError:
            if todo:
                raise
            return _admitted(Place(folder, name), strangers)
        found = os.fstat(handle)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(ELOOP, os.strerror(ELOOP))
            leads = Path(os.readlink("", dir_fd=handle))
            if not todo and ":[" in leads.name and found.st_dev == os.stat("/proc").st_dev:
                return Place(folder, name, os.stat(name, dir_fd=folder), magic=True)
            if _shared(os.fstat(folder)) and found.st_uid != 0:
                strangers.add(found.st_uid)
            todo.extend(reversed(leads.parts))
            if leads.is_absolute():
                folder = hold(todo.pop(), None)
        elif todo or stat.S_ISDIR(found.st_mode):
            folder = handle
        else:
            return _admitted(Place(folder, name, found), strangers)
    raise IsADirectoryError(EISDIR, os.strerror(EISDIR))


def _admitted(place: Place, strangers: set[int]) -> Place:
    """The place, if those whose links lead to it could write there themselves."""
    if strangers - {os.fstat(place.folder).st_uid}:
        raise Problem("a link of somebody else's leads there, from a folder that others may write")
    return place


def _shared(folder: os.stat_result) -> bool:
    return os.geteuid() == 0 and (folder.st_uid != 0 or bool(folder.st_mode & 0o022))


def _new_name() -> str:
    return f".headwaiter-{secrets.token_hex(8)}"


def _empty(folder: int) -> None:
    for name in os.listdir(folder):
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
