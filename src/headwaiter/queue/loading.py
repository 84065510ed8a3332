# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Modules that have schedulers: which of them a kernel could load, why one is not there, and how one gets in."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path

from headwaiter.base.errors import Problem, shown

OURS = "hw-"
"""Prefix of the names of our schedulers in a kernel."""
PACKAGE = "headwaiter-dkms"
_ALIAS = re.compile(r"alias (\S+)-iosched \S+")
_MODULE = re.compile(r"(?:.*/)?([\w-]+?)(?:[-_]iosched)?\.ko(?:\.\w+)?:")
_UNSIGNED = "Key was rejected by service"


def patterns(root: Path = Path("/"), release: str | None = None) -> frozenset[str]:
    """Names of schedulers for which a kernel has modules, as patterns: one module may have many."""
    folder = root / "lib" / "modules" / (release or platform.release())
    aliases = {m[1] for line in _lines(folder / "modules.alias") if (m := _ALIAS.match(line))}
    files = {m[1].replace("_", "-") for line in _lines(folder / "modules.dep") if (m := _MODULE.match(line))}
    return frozenset(aliases | files)


def fits(name: str, found: Collection[str]) -> bool:
    """Return whether a scheduler is one of those of patterns()."""
    return any(fnmatchcase(name, one) for one in found)


def absence(name: str, root: Path = Path("/"), release: str | None = None) -> str:
    """Why the running kernel has no such scheduler, in a line that says what to install."""
    release = release or platform.release()
    told = f"kernel {release} has no scheduler {shown(name)}"
    if not name.startswith(OURS):
        return told
    if not any((root / "usr" / "src").glob("headwaiter-*/dkms.conf")):
        return f"{told}: apt install {PACKAGE} linux-headers-{release}"
    if not (root / "lib" / "modules" / release / "build").exists():
        return f"{told}: {PACKAGE} needs its headers to build it: apt install linux-headers-{release}"
    return f"{told}: {PACKAGE} could not build it: /var/lib/dkms/headwaiter has the log, dkms autoinstall tries again"


def program(name: str) -> str | None:
    """Return the path of one of the administrator's programs, whose folders PATH may lack; None if it is not installed."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def load(name: str, sysfs: Path = Path("/sys")) -> None:
    """Have the kernel load the module of a scheduler. Problem, in modprobe's words, if that fails.

    The kernel does so by itself when a scheduler is chosen, but says no more than "invalid argument" if it cannot.
    """
    modprobe = program("modprobe")
    if modprobe is None or not (sysfs / "module").is_dir():
        return
    done = subprocess.run([modprobe, f"{name}-iosched"], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.removeprefix("modprobe: ").strip() for line in done.stderr.splitlines() if line.strip()]
        why = lines[-1] if lines else f"modprobe fails with status {done.returncode}"
        key = ": with Secure Boot, enrol DKMS's key first: mokutil --import /var/lib/dkms/mok.pub" if _UNSIGNED in why else ""
        raise Problem(f"{name}: {why}{key}")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
