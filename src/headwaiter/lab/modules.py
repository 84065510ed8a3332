# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Build the project's kernel modules for a lab kernel, once per state of their sources."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import opened
from headwaiter.lab.host import cache_folder, guest_source, need, run, source_folder
from headwaiter.lab.kernels import Kernel, Progress, headers

MODULES = ("headwaiter_iosched", "headwaiter_disk")
_VERMAGIC = re.compile(rb"\0vermagic=(\S+) ")


def build(kernel: Kernel, say: Progress) -> dict[str, bytes]:
    """The modules by name. kmod/build copies only what has changed, so an unchanged tree costs a second.

    Two at once would build in the same folder: one waits for the other.
    """
    need("make")
    need("gcc")
    folder = headers(kernel, say)
    say(f"{kernel.release}: building the modules")
    output = cache_folder() / "kmod" / kernel.release
    command = [str(source_folder() / "kmod" / "build"), "--headers", str(folder), "--output", str(output)]
    output.parent.mkdir(parents=True, exist_ok=True)
    with opened(output.with_name(f"{output.name}.lock"), os.O_RDWR, 0o644) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run([sys.executable, *command, "--btf", str(btf_of(kernel, folder))])
        return {name: (output / f"{name}.ko").read_bytes() for name in MODULES}


def build_one(kernel: Kernel, name: str, say: Progress) -> bytes:
    """The module of the guest whose source is `name`.c."""
    source = guest_source(source_folder(), name)
    if source is None:
        raise Problem(f"lab: no module {name} in lab/guest")
    with tempfile.TemporaryDirectory(prefix="headwaiter-module-") as aside:
        folder = Path(aside)
        (folder / source.name).write_bytes(source.read_bytes())
        (folder / "Kbuild").write_text(f"obj-m := {name}.o\n", encoding="utf-8")
        return _made(kernel, folder, say)[name]


def foreign(kernel: Kernel, path: Path, say: Progress) -> dict[str, bytes]:
    """Somebody else's modules, by name: a file as it is; of a folder with a Kbuild or Makefile, what is built for the kernel.

    Nothing is written into the folder. Problem if there is none, or it is for another kernel.
    """
    if path.is_dir():
        if not any((path / name).is_file() for name in ("Kbuild", "Makefile")):
            raise Problem(f"{path}: has no Kbuild or Makefile")
        with tempfile.TemporaryDirectory(prefix="headwaiter-module-") as aside:
            folder = Path(aside) / "tree"
            shutil.copytree(path, folder, ignore=shutil.ignore_patterns(".git", "*.ko", "*.o", "*.cmd"))
            found = _made(kernel, folder, say)
        if not found:
            raise Problem(f"{path}: its Kbuild makes no module")
        return found
    try:
        data = path.read_bytes()
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    made_for = _VERMAGIC.search(data)
    if not data.startswith(b"\x7fELF") or not made_for:
        raise Problem(f"{path}: is no kernel module")
    release = made_for[1].decode("ascii", "replace")
    if release != kernel.release:
        raise Problem(f"{path}: is for kernel {release}, not {kernel.release}: give the folder with its source")
    return {path.name.removesuffix(".ko"): data}


def _made(kernel: Kernel, folder: Path, say: Progress) -> dict[str, bytes]:
    """The modules of a folder by name, as the kernel's build system makes them."""
    need("make")
    need("gcc")
    tree = headers(kernel, say)
    say(f"{kernel.release}: building a module")
    run([sys.executable, str(source_folder() / "kmod" / "build"), "--headers", str(tree), "--tree", str(folder)])
    return {module.stem: module.read_bytes() for module in sorted(folder.rglob("*.ko"))}


def btf_of(kernel: Kernel, folder: Path) -> Path:
    """Return the file with the kernel's types: the headers' vmlinux (Debian 6.12), else the boot image."""
    vmlinux = folder / "vmlinux"
    return vmlinux if vmlinux.is_file() else kernel.image
