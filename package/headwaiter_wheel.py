# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The build backend: meson-python, whose wheel is packed again, so that the same sources give the same bytes.

meson-python writes the times of files and of the build, their modes as umask left them, and folders in the order in which the
file system lists them. Here every entry has one date, SOURCE_DATE_EPOCH if the caller gives it, and entries are sorted.
"""

from __future__ import annotations

import csv
import io
import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import mesonpy
from mesonpy import build_editable, build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel

try:
    from mesonpy import get_requires_for_build_editable
except ImportError:  # it needs nothing more
    get_requires_for_build_editable = get_requires_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

_DATE = 1735689600
"""2025-01-01: a zip archive has to have some date, and this one says nothing."""
_EARLIEST = 315532800
"""1980-01-01: a zip archive has none before."""


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    """See PEP 517."""
    name = str(mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory))
    _pack_again(Path(wheel_directory, name))
    return name


def _pack_again(path: Path) -> None:
    """Replace a wheel by one of the same files that depends on nothing else."""
    with zipfile.ZipFile(path) as wheel:
        files = {one.filename: (wheel.read(one), one.external_attr >> 16 & 0o100) for one in wheel.infolist()}
    files = {name: file for name, file in files.items() if "__pycache__" not in name.split("/")}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    files[record] = (_sorted(files[record][0].decode(), files).encode(), 0)
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", _DATE)), _EARLIEST))[:6]
    temporary = path.with_suffix(".new")
    with zipfile.ZipFile(temporary, "w") as wheel:
        for name in _in_order(files):
            data, executable = files[name]
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    temporary.replace(path)


def _in_order(names: Mapping[str, object]) -> list[str]:
    """Metadata behind all else, as the specification recommends, and the record of all last."""
    return sorted(names, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name))


def _sorted(record: str, names: Mapping[str, object]) -> str:
    """The lines of a record in the order of the entries, of those that there are."""
    rows = {row[0]: row for row in csv.reader(io.StringIO(record))}
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows[name] for name in _in_order(names))
    return out.getvalue()
