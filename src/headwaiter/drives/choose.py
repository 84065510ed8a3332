# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What --drive takes: a profile's name, a TOML file, or constant:MS; and the profile of a device by what the kernel calls it."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase

from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import real
from headwaiter.drives.profile import Profile, bundled, find_drive, load
from headwaiter.engine.sim import ConstantDrive, Drive

DEFAULT_DRIVE = "barracuda-80g"


def open_drive(text: str) -> Drive:
    """The drive that is meant; Problem if there is none."""
    kind, colon, value = text.partition(":")
    if kind != "constant" or not colon:
        return find_drive(text)
    try:
        service_ns = round(real(value, -math.inf, math.inf) * 1e6)
    except (ValueError, OverflowError):
        raise Problem(f"--drive {shown(text)}: '{shown(value)}' is not a time in ms") from None
    if not 1 <= service_ns <= 3600 * 10**9:
        raise Problem(f"--drive {shown(text)}: the service time must be between 1 ns and one hour")
    return ConstantDrive(service_ns)


def of_device(model: str) -> Profile | None:
    """The bundled profile of a device that the kernel calls so; None if there is none.

    A profile lists such names as `devices`, of which each may have `*` for any text. For ATA the kernel puts that word before.
    """
    words = model.casefold().split()
    called = " ".join(words[1:] if words[:1] == ["ata"] else words)
    profiles = (load(path) for path in bundled().values()) if called else ()
    found = (one for one in profiles if any(fnmatchcase(called, name.casefold()) for name in one.data.get("devices", ())))
    return next(found, None)
