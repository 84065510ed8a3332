# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests need besides Python, gcc and make: the one list, for the guard in conftest.py and for .ci/run.

`@pytest.mark.needs("lab")` on a test names a line of NEEDS. `python3 tests/needs.py` prints all packages.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

_STOCK_KERNEL = ("apt", "gcc", "make", "lz4", "zstd", "xz-utils")
NEEDS: dict[str, tuple[str, ...]] = {
    "stock-kernel": _STOCK_KERNEL,
    "lab": (
        *_STOCK_KERNEL,
        "qemu-system-x86",
        "bash",
        "busybox-static",
        "fio",
        "e2fsprogs",
        "blktrace",
        "util-linux",
        "bonnie++",
        "binutils",
        "sqlite3",
    ),
    "blktrace": ("blktrace",),
    "tracers": (
        *_STOCK_KERNEL,
        "qemu-system-x86",
        "busybox-static",
        "e2fsprogs",
        "blktrace",
        "trace-cmd",
        "linux-perf",
        "binutils",
    ),
    "dkms": (*_STOCK_KERNEL, "dkms", "kmod", "cpio"),
    "fio": ("fio",),
    "e2fs": ("e2fsprogs",),
    "fio-examples": ("fio-examples",),
    "busybox": ("busybox-static",),
    "chromium": ("chromium", "fonts-dejavu-core"),
    "binutils": ("gcc", "binutils"),
    "locales": ("locales",),
    "c++": ("g++",),
    "gdb": ("gdb",),
    "systemd": ("systemd",),
}
# Of each package a program, or a file, that is there when it is installed.
_SIGNS = {
    "apt": "apt-get", "bash": "bash", "binutils": "nm", "blktrace": "blktrace", "bonnie++": "bonnie++",
    "busybox-static": "busybox", "chromium": "chromium", "cpio": "cpio", "dkms": "dkms",
    "e2fsprogs": "mkfs.ext4", "fio": "fio",
    "fio-examples": "/usr/share/doc/fio/examples/basic-verify.fio",
    "fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "g++": "g++",
    "gcc": "gcc", "gdb": "gdb", "kmod": "depmod", "linux-perf": "perf", "trace-cmd": "trace-cmd",
    "locales": "/usr/share/i18n/charmaps/EUC-JP.gz",
    "lz4": "lz4", "make": "make", "qemu-system-x86": "qemu-system-x86_64", "util-linux": "blkdiscard", "xz-utils": "xz",
    "sqlite3": "sqlite3", "systemd": "systemd-analyze", "zstd": "zstd",
}  # fmt: skip


def absent(lines: Iterable[str]) -> tuple[str, ...]:
    """The packages of these lines of NEEDS that this machine lacks."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    packages = {package for line in lines for package in NEEDS[line]}
    return tuple(sorted(p for p in packages if not (Path(_SIGNS[p]).is_file() or shutil.which(_SIGNS[p], path=path))))


if __name__ == "__main__":
    print(*sorted({package for packages in NEEDS.values() for package in packages}))
