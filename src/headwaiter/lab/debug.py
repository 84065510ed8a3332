# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The debug kernel: Debian's kernel source with the checks of lab/debug.config, built in the cache once per configuration."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.lab.host import cache_folder, need, run, running, source_folder
from headwaiter.lab.kernels import Kernel, Progress, fetch

NAME = "debug"
SOURCE = "linux-source-6.12"
JOBS = 2
CPUS = 2
MEMORY_TIMES = 2  # what the checks keep beside the memory that they watch
HANG_S, LIMIT_S = 600, 3600
# Of the kernel: warnings go to the console at once, so that those before a hang are not lost. Emulated processors under
# many checks are slow, and the host may not run them for a while: the watchdogs wait longer than by default.
PARAMETERS = (
    "loglevel=5 log_buf_len=4M kasan_multi_shot rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60 "
    "workqueue.watchdog_thresh=120"
)
# What building it takes.
TOOLS = ("make", "gcc", "flex", "bison", "bc", "xz", "tar", "pahole", "/usr/include/libelf.h")


def debug_kernel(say: Progress) -> Kernel:
    """The debug kernel, built unless it is there."""
    config = source_folder() / "lab" / "debug.config"
    digest = hashlib.sha256(config.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "debug-kernel" / f"{SOURCE}-{digest}"
    if not (folder / "root").is_dir():
        for tool in TOOLS:
            need(tool)
        (archive,) = fetch(SOURCE, say).glob("usr/src/*.tar.xz")
        _build(archive, config, folder, say)
    (modules,) = (folder / "root" / "lib" / "modules").iterdir()
    return Kernel(modules.name, folder / "root", debug=True, tree=folder / "tree")


def _build(archive: Path, config: Path, folder: Path, say: Progress) -> None:
    """Unpack, configure, compile; what a guest needs goes to `folder`/root, which appears last and is always whole."""
    tree = folder / "tree"
    if not (tree / "Makefile").is_file():
        say(f"{NAME} kernel: unpacking {archive.name}")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as aside:
            run(["tar", "xf", str(archive), "-C", aside])
            (unpacked,) = Path(aside).iterdir()
            unpacked.rename(tree)
    make = ["make", "-s", "-C", str(tree), "ARCH=x86_64"]
    run([*make, f"KCONFIG_ALLCONFIG={config}", "allnoconfig"])
    _check(config, tree / ".config")
    say(f"{NAME} kernel: compiling (once; the longest step)")
    stamp = ["KBUILD_BUILD_TIMESTAMP=2026-01-01", "KBUILD_BUILD_USER=headwaiter", "KBUILD_BUILD_HOST=lab"]
    _compile(["nice", *make, f"-j{JOBS}", *stamp, "bzImage", "modules"])
    release = (tree / "include" / "config" / "kernel.release").read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".install-") as aside:
        root = Path(aside) / "root"
        run([*make, f"INSTALL_MOD_PATH={root}", "DEPMOD=true", "modules_install"])
        (root / "boot").mkdir()
        shutil.copyfile(tree / "arch" / "x86" / "boot" / "bzImage", root / "boot" / f"vmlinuz-{release}")
        root.rename(folder / "root")


def _check(config: Path, made: Path) -> None:
    """Problem when the kernel does not know, or cannot have, an option that is asked for."""
    has = set(made.read_text(encoding="utf-8").splitlines())
    for number, line in enumerate(config.read_text(encoding="utf-8").splitlines(), 1):
        if re.match("CONFIG_", line) and line not in has:
            raise Problem(f"{config}:{number}: {line}: {SOURCE} does not accept it")


def _compile(command: list[str]) -> None:
    """Run make; Problem with the first error."""
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        output, _ = process.communicate()
    if process.returncode:
        lines = output.decode(errors="replace").splitlines()
        errors = [line for line in lines if re.search(r"error:|Error \d|fatal", line)] or lines[-1:]
        raise Problem(f"lab: {NAME} kernel: {errors[0].strip() if errors else 'make failed'}")
