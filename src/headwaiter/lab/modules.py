# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Build the project's kernel modules for a lab kernel, once per state of their sources."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from headwaiter.errors import Problem
from headwaiter.lab.host import cache_folder, need, run, source_folder
from headwaiter.lab.kernels import Kernel, Progress, headers
from headwaiter.outputs import opened

MODULES = ("headwaiter_iosched", "headwaiter_disk")


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
    """The module of lab/guest/`name`.c."""
    source = source_folder() / "lab" / "guest" / f"{name}.c"
    if not source.is_file():
        raise Problem(f"lab: no module {name} in lab/guest")
    tree = headers(kernel, say)
    with tempfile.TemporaryDirectory(prefix="headwaiter-module-") as aside:
        folder = Path(aside)
        (folder / source.name).write_bytes(source.read_bytes())
        (folder / "Kbuild").write_text(f"obj-m := {name}.o\n", encoding="utf-8")
        run(["make", "-s", "-C", str(tree), f"M={folder}", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"])
        return (folder / f"{name}.ko").read_bytes()


def btf_of(kernel: Kernel, folder: Path) -> Path:
    """Where the kernel's types are: in the headers' vmlinux (Debian 6.12), else in the boot image."""
    vmlinux = folder / "vmlinux"
    return vmlinux if vmlinux.is_file() else kernel.image
