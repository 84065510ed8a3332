# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which kernels apt's sources have, and what becomes of the modules under each: built, and each script that is tried."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence

from headwaiter.base.errors import Problem
from headwaiter.lab.host import need, run
from headwaiter.lab.kernels import Progress, kernel, version_key
from headwaiter.lab.modules import build
from headwaiter.lab.schema import KernelRow, KernelsDocument
from headwaiter.lab.script import execute, read

OLDEST = "6.1"
PASSED = "passed"
_IMAGE = re.compile(r"linux-image-((\d+\.\d+)[.+-][\w.+~-]*-cloud-amd64)")


def served() -> list[KernelRow]:
    """The newest cloud kernel of each series that apt knows, the oldest series first: one with headers, if there is any."""
    names = set(run([need("apt-cache"), "pkgnames", "linux-"]).split())
    images: dict[str, list[str]] = {}
    for name in names:
        if (match := _IMAGE.fullmatch(name)) and version_key(match[2]) >= version_key(OLDEST):
            images.setdefault(match[2], []).append(match[1])
    found = []
    for series in sorted(images, key=version_key):
        whole = [release for release in images[series] if f"linux-headers-{release}" in names]
        found.append(KernelRow(series=series, release=max(whole or images[series], key=version_key), headers=bool(whole)))
    return found


def survey(
    series: Sequence[str], scripts: Sequence[str], say: Progress, given: Mapping[str, str] | None = None
) -> KernelsDocument:
    """All of them, or those of some series; each that has headers is tried with each script. Problem if apt lacks a series.

    given: parameters, for those scripts that have them. Problem if none has one.
    """
    each = {script: _parameters(script, given or {}) for script in scripts}
    if unused := set(given or {}) - {name for one in each.values() for name in one}:
        raise Problem(f"lab: no script that is tried has a parameter {', '.join(sorted(unused))}")
    rows = served()
    if unknown := set(series) - {row.series for row in rows}:
        known = ", ".join(row.series for row in rows) or "none"
        raise Problem(f"lab: apt knows no cloud kernel of {', '.join(sorted(unknown))} (it has {known})")
    if series:
        rows = [row for row in rows if row.series in series]
    if scripts:
        rows = [_tried(row, each, say) if row.headers else row for row in rows]
    return KernelsDocument(system=_system(), results=rows)


def _parameters(script: str, given: Mapping[str, str]) -> dict[str, str]:
    """Those that a script has."""
    has = read(script).environment({})
    return {name: value for name, value in given.items() if name in has}


def _tried(row: KernelRow, scripts: Mapping[str, Mapping[str, str]], say: Progress) -> KernelRow:
    try:
        build(kernel(row.release, say), say)
    except Problem as e:
        return KernelRow(series=row.series, release=row.release, headers=True, built=str(e))
    results = {}
    for script, given in scripts.items():
        try:
            execute(script, [row.release], given, say)
            results[script] = PASSED
        except Problem as e:
            results[script] = str(e)
    return KernelRow(series=row.series, release=row.release, headers=True, built=PASSED, scripts=results)


def _system() -> str:
    try:
        said = platform.freedesktop_os_release()
    except OSError:
        return ""
    # Debian's unstable has no number.
    return " ".join((said.get("NAME", "").removesuffix(" GNU/Linux"), said.get("VERSION_ID") or said.get("VERSION_CODENAME", "")))
