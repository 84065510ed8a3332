# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How files are written: whole or not at all, and never in the place of something that is no plain file.

Once it is known where a name leads (places.py), all is done by descriptors: root writes into folders that others may change.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from errno import EACCES
from pathlib import Path, PosixPath

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem
from headwaiter.base.places import MOST_LINKS, REPLACED, Place, by_descriptor, held, same


class BlockDevice(PosixPath):
    """A block device whose content the user has asked to be overwritten."""


class Temporary(PosixPath):
    """A file that is written until it takes its place.

    The path is of the open file, so that whoever changes names changes nothing.
    """

    place: Place
    called: str
    handle: int


@contextmanager
def writing(target: Path, mode: int | None = None) -> Iterator[Temporary]:
    """A temporary file. `target` gets its content when the block ends well, and else stays as it was.

    A regular file is replaced in one step, where symbolic links lead, and keeps its mode and owner; a new one gets `mode`, or by
    default that of any new file. Into anything else (FIFO, terminal, other device) the content is written at the end; a block
    device must be given as BlockDevice. Errors are Problems that name `target`.
    """
    with ExitStack() as stack:
        with _told_of(target):
            place = _place(target, stack)
            # In the same folder, because only so can it be renamed.
            beside = place or Place(stack.enter_context(_folder(Path(tempfile.gettempdir()))), "")
            name, handle = beside.temporary()
        stack.callback(os.close, handle)
        stack.enter_context(tidied(lambda: beside.remove(name)))
        temporary = Temporary(by_descriptor(handle))
        temporary.place, temporary.called, temporary.handle = beside, name, handle
        with _told_of(target, temporary):
            yield temporary
        with _told_of(target):
            os.fsync(handle)  # a file system may say only now that it is full
            if place:
                _take_over(temporary, mode)
                _rename(temporary)
            else:
                _pour(handle, target)


@contextmanager
def anew(temporary: Temporary) -> Iterator[Path]:
    """Another temporary file. It takes the place of the first one when the block ends well."""
    place = temporary.place
    name, handle = place.temporary()
    with tidied(lambda: place.remove(name)):
        try:
            yield by_descriptor(handle)
            os.rename(name, temporary.called, src_dir_fd=place.folder, dst_dir_fd=place.folder)
            os.dup2(handle, temporary.handle, inheritable=False)
        finally:
            os.close(handle)


def check(path: Path) -> None:
    """Problem if `path` cannot be written, as far as can be told before there is anything to write."""
    with _told_of(path), ExitStack() as stack:
        if place := _place(path, stack):
            name, handle = place.temporary()
            os.close(handle)
            place.remove(name)


@contextmanager
def opened(path: Path, flags: int, mode: int) -> Iterator[int]:
    """A descriptor of a file, there or new, that is written bit by bit, where symbolic links lead. Problem if it is not to be."""
    with _told_of(path), held(path) as place:
        handle = place.open(flags | os.O_CREAT, mode)
    try:
        yield handle
    finally:
        os.close(handle)


def distinct(read: dict[str, Path | None], written: dict[str, Path | None]) -> None:
    """Problem if two of these, by what the user calls them, are one file, and so one's content would be lost."""
    known = {os.path.realpath(path): name for name, path in read.items() if path}
    for name, path in written.items():
        if path is None:
            continue
        with _told_of(path), ExitStack() as stack:
            replaced = _place(path, stack) is not None
        if replaced and (other := known.setdefault(os.path.realpath(path), name)) != name:
            raise Problem(f"{path}: {other} and {name} name the same file")


def _place(target: Path, stack: ExitStack) -> Place | None:
    """The regular file, there or not, that stands for `target`, held by the stack; None if that is something to write into.

    OSError or Problem if neither.
    """
    if _descriptor(target) is not None:
        return None
    place = stack.enter_context(held(target))
    mode = place.there.st_mode if place.there else stat.S_IFREG | stat.S_IWUSR
    if stat.S_ISBLK(mode) and not isinstance(target, BlockDevice):
        raise Problem("is a block device: use --block-device to overwrite it")
    if place.there:
        place.admit(place.there)
    if not stat.S_ISREG(mode):
        return None
    # root could write what nobody may write, but does not: the mode says that it is to stay.
    if not mode & 0o222 or (place.there and not os.access(place.name, os.W_OK, dir_fd=place.folder)):
        raise PermissionError(EACCES, os.strerror(EACCES))
    return place


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _descriptor(target: Path) -> int | None:
    """The open file of this process that a name such as /dev/stdout or /dev/fd/3 stands for."""
    path = os.fspath(target)
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(path))
        name = os.path.basename(path)
        if folder == f"/proc/{os.getpid()}/fd" and name.isdigit():
            return int(name)
        path = os.path.join(folder, name)
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


def _take_over(temporary: Temporary, mode: int | None) -> None:
    """Give the new file mode and owner of the one that it replaces, or those of any new file."""
    place, handle = temporary.place, temporary.handle
    old = place.replaceable()
    if old is None:
        if mode is None:
            umask = os.umask(0)
            os.umask(umask)
            mode = 0o666 & ~umask
        os.fchmod(handle, mode)
        return
    place.admit(old)
    with suppress(PermissionError):  # a file of somebody else that one may write becomes one's own
        os.fchown(handle, old.st_uid, old.st_gid)
    kept = stat.S_IMODE(old.st_mode)
    # Where others may have put that file, its mode does not decide who reads what is for few.
    os.fchmod(handle, kept if mode is None or not place.shared else kept & mode)


def _rename(temporary: Temporary) -> None:
    place = temporary.place
    os.rename(temporary.called, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    if not same(place.look(), os.fstat(temporary.handle)):
        raise Problem(REPLACED)


def _pour(handle: int, target: Path) -> None:
    """Write into something that stays what it is. O_EXCL: not into a block device that is in use."""
    with ExitStack() as stack:
        own = _descriptor(target)
        if own is None:
            place = stack.enter_context(held(target))
            found = place.there
            if found is None or stat.S_ISREG(found.st_mode):
                raise Problem(REPLACED)
            out = place.open(os.O_WRONLY | (os.O_EXCL if stat.S_ISBLK(found.st_mode) else 0))
        else:
            out = os.dup(own)
        with open(os.dup(handle), "rb") as source, open(out, "wb") as stream:
            source.seek(0)
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
        if temporary is None:
            raise Problem(f"{target}: {e}") from None
        if str(temporary) not in str(e):
            raise
        raise Problem(str(e).replace(str(temporary), str(target))) from None
