# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the experiment `refuse` offers to a kernel that must not take it: modules, values of tunables, profiles.

All of it is made from what there is: the modules just built, the schedulers' own tables, a good profile.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping

from headwaiter.base.errors import Problem
from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.kernels import SERIES, Kernel, Progress, kernel
from headwaiter.lab.modules import build
from headwaiter.lab.script import Script, guest

ELEVATORS, DISK = "headwaiter_iosched", "headwaiter_disk"


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Boot with the material as files: /lab/refused, /lab/profiles and /lab/tunables."""
    whole = guest(script, on, given, say)
    other = kernel(next(series for series in SERIES if series != on.series), say)
    files = damaged_modules(whole.own_modules, build(other, say), on.release, other.release)
    files |= damaged_profiles() | tunables()
    return boot(dataclasses.replace(whole, files=whole.files | files), say)


def _replaced(module: bytes, old: bytes, new: bytes) -> bytes:
    """A module with a string in it replaced by one of the same length."""
    if old not in module or len(old) != len(new):
        raise Problem(f"refuse: the module has no string {old!r}")
    return module.replace(old, new)


def damaged_modules(good: Mapping[str, bytes], foreign: Mapping[str, bytes], release: str, other: str) -> dict[str, bytes]:
    """Modules with what the kernel's log must say of them (one of the lines), as NAME.ko and NAME.says."""
    wrong = release[:-1] + "?"
    made: dict[str, tuple[bytes, str]] = {}
    for name, symbol in ((ELEVATORS, "elv_register"), (DISK, "configfs_register_subsystem")):
        missing = f"{symbol[:-1]}?"
        strings = f"\0{symbol}\0".encode(), f"\0{missing}\0".encode()
        made[f"{name}-symbol"] = _replaced(good[name], *strings), f"Unknown symbol {missing}"
        # Kernels differ in what they look at first.
        says = f"version magic '{other} \nsection size must match the kernel\ndisagrees about version of symbol"
        made[f"{name}-foreign"] = foreign[name], says
        # As if forced, or built for a kernel whose symbols have the same versions: only our own check is left.
        strings = f"\0{release}\0".encode(), f"\0{wrong}\0".encode()
        made[f"{name}-forced"] = _replaced(good[name], *strings), f"built for kernel {wrong}, this is {release}"
    files = {}
    for name, (module, says) in made.items():
        files[f"/lab/refused/{name}.ko"] = module
        files[f"/lab/refused/{name}.says"] = says.encode()
    # The same schedulers a second time, in a module of another name: the first has another name too, the second is taken.
    twin = _replaced(good[ELEVATORS], ELEVATORS.encode(), ELEVATORS[:-1].encode() + b"2")
    files["/lab/twin.ko"] = _replaced(twin, b"\0noop\0", b"\0twin\0")
    return files


def damaged_profiles() -> dict[str, bytes]:
    """Profiles that are none, with what must be said of them, and a good one."""
    from headwaiter.drives import find_drive  # noqa: PLC0415 (needs the compiled library; booting does not)

    good = find_drive("barracuda-80g").blob
    array = find_drive("raid0-4x-barracuda-80g").blob

    def field(index: int, value: int) -> bytes:
        """The good profile with 64-bit word `index` changed; the first two are its header."""
        return good[: 8 * index] + struct.pack("=q", value) + good[8 * index + 8 :]

    def header(index: int, value: int) -> bytes:
        """The good profile with 32-bit word `index` of its header changed."""
        return good[: 4 * index] + struct.pack("=I", value) + good[4 * index + 4 :]

    keys = list(find_drive("barracuda-80g").model.params)
    rpm, zones = 2 + keys.index("mechanics.rpm"), 2 + keys.index("zones")
    made = {
        "header": (good[:12], "not a drive profile"),
        "half": (good[: len(good) // 16 * 8], "truncated, or made for another version"),
        "garbage": (bytes(i * 197 % 251 for i in range(4096)), "not a drive profile"),
        "zeros": (bytes(4096), "not a drive profile"),
        "magic": (header(0, 0x32445748), "not a drive profile"),
        "model": (header(1, 99), "unknown drive model"),
        "version": (header(3, len(keys) + 1), "truncated, or made for another version"),
        "low": (field(rpm, 0), "mechanics.rpm: must be at least"),
        "high": (field(rpm, 1 << 62), "mechanics.rpm: must be at most"),
        "list": (field(zones, 1 << 40), "zones: lies outside the profile"),
        "member": (array[: len(array) - 8], "truncated, or made for another version"),
    }
    files = {"/lab/profiles/good": good}
    for name, (data, says) in made.items():
        files[f"/lab/profiles/{name}.bad"] = data
        files[f"/lab/profiles/{name}.says"] = says.encode()
    return files


def tunables() -> dict[str, bytes]:
    """A file for each scheduler, a line for each tunable: NAME MIN MAX DEFAULT, and names instead of numbers for choices."""
    from headwaiter.engine.schedulers import catalogue  # noqa: PLC0415 (needs the compiled library; booting does not)

    files = {}
    for scheduler in catalogue().values():
        rows = ((t.name, t.minimum, t.maximum, t.default, *t.choices) for t in scheduler.tunables.values())
        files[f"/lab/tunables/hw-{scheduler.name}"] = "".join(f"{' '.join(map(str, row))}\n" for row in rows).encode()
    return files
