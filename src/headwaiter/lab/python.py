# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python for a guest: this one, but of its modules only those that a few lines of it import, each where it is here."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.base.paths import DRIVES, HEADER, PACKAGE, library
from headwaiter.lab.guest import Guest
from headwaiter.lab.host import run
from headwaiter.lab.initramfs import LIBRARY

_LIST = """
import encodings.ascii, encodings.unicode_escape  # which are imported when they are used
import sys
print("\\n".join(sorted({getattr(m, "__file__", None) or "" for m in list(sys.modules.values())})))
"""


def pack(machine: Guest, lines: str, *, simulates: bool = False) -> None:
    """Put Python into a guest with all that `lines` import when they run here, the libraries of that, and our data beside it.

    `simulates`: also the simulator and the drive models. A script calls it as `$PYTHON -S`, after `export PYTHONHOME PYTHONPATH`.
    """
    program = Path(sys.executable).resolve()
    listed = run([sys.executable, "-P", "-c", lines + _LIST]).split()
    modules = [Path(name) for name in listed if name]
    if not modules:
        raise Problem("lab: this Python has no modules in files")
    modules += [path for folder in {m.parent for m in modules if m.is_relative_to(PACKAGE)} for path in folder.glob("*.json")]
    if simulates:
        machine.processor = "Nehalem"  # of x86-64-v2, for which NumPy is compiled
        modules += [HEADER, library(), *DRIVES.glob("*.toml")]
        machine.environment["HEADWAITER_LIBRARY"] = str(library())
    libraries = {
        name
        for path in (program, *(path for path in modules if path.suffix == ".so"))
        for name in LIBRARY.findall(run(["ldd", str(path)]))
    }
    for path in modules:
        machine.files[str(path)] = path.read_bytes()
    for name in {str(program), *libraries}:
        machine.executables[name] = Path(name).read_bytes()
    # What tells Python where its modules are must be there, whether or not any of it is imported.
    machine.environment |= {
        "PYTHON": str(program),
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": f"{PACKAGE.parent}:{sysconfig.get_path('purelib')}",
    }
