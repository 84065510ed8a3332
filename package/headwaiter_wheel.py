# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The build backend: meson-python, whose wheel is packed again, so that the same sources give the same bytes.

meson-python writes the times of files and of the build, their modes as umask left them, and folders in the order in which the
file system lists them. Here every entry has one date, SOURCE_DATE_EPOCH if the caller gives it, and entries are sorted.

The library in the package uses nothing of Python, so that the wheel is for every Python 3 on its platform. The setting `platform`
says which that is (manylinux_2_17_x86_64), where the library was compiled for another one than this machine's.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
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
    settings = dict(config_settings or {})
    platform = settings.pop("platform", "")
    name = str(mesonpy.build_wheel(wheel_directory, settings, metadata_directory))
    return _pack_again(Path(wheel_directory, name), platform)


def _pack_again(path: Path, platform: str) -> str:
    """Replace a wheel by one of the same files that depends on nothing else, and return its name."""
    *named, _, _, where = path.stem.split("-")
    tag = f"py3-none-{platform or where}"
    with zipfile.ZipFile(path) as wheel:
        files = {one.filename: (wheel.read(one), one.external_attr >> 16 & 0o100) for one in wheel.infolist()}
    files = {name: file for name, file in files.items() if "__pycache__" not in name.split("/")}
    about = next(name for name in files if name.endswith(".dist-info/WHEEL"))
    files[about] = (re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), files[about][0]), 0)
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    rows = files[record][0].decode().replace(*_hashed(files[record][0].decode(), about, files[about][0]))
    files[record] = (_sorted(rows, files).encode(), 0)
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", _DATE)), _EARLIEST))[:6]
    temporary = path.with_suffix(".new")
    with zipfile.ZipFile(temporary, "w") as wheel:
        for name in _in_order(files):
            data, executable = files[name]
            entry = zipfile.ZipInfo(name, date)
            entry.create_system = 3
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    new = path.with_name("-".join([*named, tag]) + ".whl")
    path.unlink()
    temporary.replace(new)
    return new.name


def _hashed(record: str, name: str, data: bytes) -> tuple[str, str]:
    """The line of a file in the record of all, and the same for other contents."""
    line = next(line for line in record.splitlines() if line.startswith(f"{name},"))
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return line, f"{name},sha256={digest},{len(data)}"


def _in_order(names: Mapping[str, object]) -> list[str]:
    """Metadata behind all else, as the specification recommends, and the record of all last."""
    return sorted(names, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name))


def _sorted(record: str, names: Mapping[str, object]) -> str:
    """The lines of a record in the order of the entries, of those that there are."""
    rows = {row[0]: row for row in csv.reader(io.StringIO(record))}
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows[name] for name in _in_order(names))
    return out.getvalue()
