# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""core needs no library and no floating point: it could be linked into a kernel as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE = sorted((ROOT / "core").rglob("*.c"))
FLAGS = [
    "-std=gnu11",
    "-O2",
    "-ffreestanding",
    "-fno-builtin",
    "-mgeneral-regs-only",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
]


@pytest.mark.thorough
@pytest.mark.needs("binutils")
def test_core_is_freestanding(tmp_path: Path) -> None:
    objects = []
    for i, source in enumerate(CORE):
        out = tmp_path / f"{i}.o"
        subprocess.run(["cc", *FLAGS, f"-I{ROOT}", "-c", source, "-o", out], check=True)
        objects.append(out)
    whole = tmp_path / "core.o"
    subprocess.run(["ld", "-r", *objects, "-o", whole], check=True)
    undefined = subprocess.run(["nm", "-u", whole], check=True, capture_output=True, text=True).stdout.split()[1::2]
    assert set(undefined) <= {"memcpy", "memset", "memmove", "memcmp"}


def test_one_conditional_in_core() -> None:
    """port.h is the only file of core that asks where it is compiled."""
    for path in sorted((ROOT / "core").rglob("*.[ch]")):
        conditionals = [line for line in path.read_text().splitlines() if line.startswith(("#if", "# if"))]
        allowed = 2 if path.name == "port.h" else 1 if path.suffix == ".h" else 0
        # A header's own guard, and the guards of the hosted port's compiler attributes.
        assert len(conditionals) <= allowed + (path.parent.name == "port"), (path, conditionals)
