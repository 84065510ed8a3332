# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Read the offsets of kernel structures. The reader is kmod/btf.py, which must work where this package is not."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.lab.host import source_folder
from headwaiter.lab.kernels import Kernel


def reader() -> Any:
    """The module kmod/btf.py."""
    name = "headwaiter_kmod_btf"
    if name not in sys.modules:
        path = source_folder() / "kmod" / "btf.py"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise Problem(f"lab: {path}: cannot be loaded")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def types(on: Kernel, module: str) -> Any:
    """The types of a kernel and of one of its modules (a `Btf` of kmod/btf.py); Problem if they are not to be had."""
    btf = reader()
    data = btf.section(on.modules([module])[module], ".BTF")
    if data is None:
        raise Problem(f"lab: {on.release}: module {module} has no BTF")
    try:
        return btf.Btf(data, btf.load(on.image))
    except btf.BtfError as error:
        raise Problem(f"lab: {on.release}: {error}") from None
