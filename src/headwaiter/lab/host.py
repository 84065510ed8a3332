# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the lab needs of the machine that it runs on: programs, the packages that have them, folders, an end without remains."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem

# Programs that a script may have packed into its guest, and the Debian packages that have them.
GUEST_PROGRAMS = {
    "bash": "bash",
    "chrt": "util-linux",
    "fio": "fio",
    "blktrace": "blktrace",
    "blkparse": "blktrace",
    "trace-cmd": "trace-cmd",
    "perf": "linux-perf",
    "mkfs.ext4": "e2fsprogs",
    "fsck.ext4": "e2fsprogs",
    "find": "findutils",
    "cp": "coreutils",
    "dd": "coreutils",
    "make": "make",
    "bonnie++": "bonnie++",
    "blkdiscard": "util-linux",
    "ld": "binutils",
    "sqlite3": "sqlite3",
}
# The same of all else that the lab uses: programs, and files by their path.
PACKAGES = {
    **GUEST_PROGRAMS,
    "busybox": "busybox-static",
    "qemu-system-x86_64": "qemu-system-x86",
    "apt-cache": "apt",
    "apt-get": "apt",
    "dpkg": "dpkg",
    "gcc": "gcc",
    "as": "binutils",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "xz": "xz-utils",
    "tar": "tar",
    "pahole": "dwarves",
    "/usr/include/libelf.h": "libelf-dev",
}


class Unavailable(Problem):
    """Something that this machine lacks: a program, a package in apt's lists, the network."""


def need(tool: str) -> str:
    """Path of a program, or file, of PACKAGES; Unavailable, naming the Debian package, where it is missing."""
    if tool.startswith("/"):
        path = tool if Path(tool).exists() else None
    else:
        path = shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Unavailable(f"lab: {Path(tool).name} is not installed (apt-get install {PACKAGES[tool]})")
    return path


def cache_folder() -> Path:
    """The project's folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headwaiter"


def source_folder() -> Path:
    """The project's source tree, where kmod/ and lab/ are; Problem when the package runs far from one."""
    candidates = [Path(__file__).resolve().parents[3], Path.cwd(), *Path.cwd().parents]
    if named := os.environ.get("HEADWAITER_SOURCE"):
        candidates.insert(0, Path(named))
    for folder in candidates:
        if (folder / "lab" / "guest" / "init").is_file():
            return folder
    raise Problem("lab: needs the project's source tree: run in a clone of it, or set HEADWAITER_SOURCE")


def guest_source(folder: Path, name: str) -> Path | None:
    """The C source of a program or module of the guest, in a source tree: in lab/guest, or beside the one script that uses it."""
    found = (path for place in ("guest", "agree", "experiments/*") for path in sorted((folder / "lab").glob(f"{place}/{name}.c")))
    return next(found, None)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is gone when the block is left, or when the process ends before."""
    with (
        tempfile.TemporaryDirectory(prefix="headwaiter-lab-", ignore_cleanup_errors=True) as name,
        tidied(partial(shutil.rmtree, name, ignore_errors=True)),
    ):
        yield Path(name)


def run(command: list[str], cwd: Path | None = None) -> str:
    """Run a host program and return its stdout; Problem with its last line (of stderr, if stdout is empty) when it fails."""
    with running(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = (data.decode(errors="replace") for data in process.communicate())
    if process.returncode:
        lines = [line for line in (err + out).splitlines() if line.strip()]
        raise Problem(f"lab: {' '.join(command[:3])}: {lines[-1] if lines else 'failed'}")
    return out


@contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A host program, started; when the block is left, however it is left, it and all that it has started are gone."""
    with contextlib.ExitStack() as stack:
        with _signals_later():  # else one could come when the program runs, and nobody knows yet
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
            stack.enter_context(process)
            stack.enter_context(tidied(lambda: _end(process)))
        yield process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _signals_later() -> Iterator[None]:
    """Signals that end this process do so when the block is left."""
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread only
        yield
        return
    came: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    usual = {number: signal.signal(number, lambda received, _: came.append(received)) for number in ends}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
