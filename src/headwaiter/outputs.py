# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How files are written: whole or not at all, and never in the place of something that is no plain file."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EISDIR
from pathlib import Path, PosixPath

from headwaiter.ending import tidied
from headwaiter.errors import Problem


class BlockDevice(PosixPath):
    """A block device whose content the user has asked to be overwritten."""


@contextmanager
def writing(target: Path) -> Iterator[Path]:
    """A temporary file. `target` gets its content when the block ends well, and else stays as it was.

    A regular file is replaced in one step, where symbolic links lead, and keeps its mode and owner. Into anything else
    (FIFO, terminal, other device) the content is written at the end; a block device must be given as BlockDevice.
    Errors are Problems that name `target`.
    """
    with _told_of(target):
        place = _place(target)
        # In the same folder, because only so can it be renamed.
        handle, name = tempfile.mkstemp(prefix=".headwaiter-", dir=place and place.parent)
    temporary = Path(name)
    with tidied(lambda: temporary.unlink(missing_ok=True)):
        os.close(handle)
        with _told_of(target, temporary):
            yield temporary
        with _told_of(target):
            if _place(target) != place:
                raise Problem(f"{target}: was replaced by something else meanwhile")
            _flush(temporary)
            if place:
                _take_over(temporary, place)
                temporary.replace(place)
            else:
                _pour(temporary, target)


def check(path: Path) -> None:
    """Problem if `path` cannot be written, as far as can be told before there is anything to write."""
    with _told_of(path):
        if place := _place(path):
            with tempfile.TemporaryFile(dir=place.parent):
                pass


def distinct(read: dict[str, Path | None], written: dict[str, Path | None]) -> None:
    """Problem if two of these, by what the user calls them, are one file, and so one's content would be lost."""
    known = {os.path.realpath(path): name for name, path in read.items() if path}
    for name, path in written.items():
        if path is None:
            continue
        with _told_of(path):
            place = _place(path)
        if place and (other := known.setdefault(str(place), name)) != name:
            raise Problem(f"{path}: {other} and {name} name the same file")


def _place(target: Path) -> Path | None:
    """The regular file, there or not, that stands for `target`; None if that is something to write into. OSError if neither."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG | stat.S_IWUSR
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if stat.S_ISBLK(mode) and not isinstance(target, BlockDevice):
        raise Problem(f"{target}: is a block device: use --block-device to overwrite it")
    if not stat.S_ISREG(mode) or _descriptor(target) is not None:
        return None
    # root could write what nobody may write, but does not: the mode says that it is to stay.
    if not mode & 0o222 or (target.exists() and not os.access(target, os.W_OK)):
        raise PermissionError(EACCES, os.strerror(EACCES))
    return Path(os.path.realpath(target))


def _descriptor(target: Path) -> int | None:
    """The open file of this process that a name such as /dev/stdout or /dev/fd/3 stands for."""
    path = os.fspath(target)
    for _ in range(40):  # as many links as Linux follows
        folder = os.path.realpath(os.path.dirname(path))
        name = os.path.basename(path)
        if folder == f"/proc/{os.getpid()}/fd" and name.isdigit():
            return int(name)
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


def _flush(temporary: Path) -> None:
    """A file system may say only now that it is full."""
    with temporary.open("rb") as file:
        os.fsync(file.fileno())


def _take_over(temporary: Path, place: Path) -> None:
    """Give the new file mode and owner of the one that it replaces, or those of any new file."""
    try:
        old = place.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        return
    with suppress(PermissionError):  # a file of somebody else that one may write becomes one's own
        os.chown(temporary, old.st_uid, old.st_gid)
    temporary.chmod(stat.S_IMODE(old.st_mode))


def _pour(temporary: Path, target: Path) -> None:
    """Write into something that stays what it is. O_EXCL: not into a block device that is in use."""
    own = _descriptor(target)
    exclusive = os.O_EXCL if target.is_block_device() else 0
    out = os.dup(own) if own is not None else os.open(target, os.O_WRONLY | os.O_NOCTTY | exclusive)
    with temporary.open("rb") as source, open(out, "wb") as stream:
        shutil.copyfileobj(source, stream)


@contextmanager
def _told_of(target: Path, temporary: Path | None = None) -> Iterator[None]:
    """Errors of the block as Problems of `target`, unless they are of another file; those of `temporary` are its, too."""
    try:
        yield
    except OSError as e:
        if temporary and e.filename is not None and str(e.filename) != str(temporary):
            raise
        raise Problem(f"{target}: {e.strerror}") from None
    except Problem as e:
        if temporary is None or str(temporary) not in str(e):
            raise
        raise Problem(str(e).replace(str(temporary), str(target))) from None
