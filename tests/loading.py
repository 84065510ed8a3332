# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands of the tree as modules: kmod/build and .ci/newest have no suffix, because people call them."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType


def load_command(path: Path, name: str) -> ModuleType:
    """A command's functions and constants; its main() does not run."""
    loader = SourceFileLoader(name, str(path))
    spec = spec_from_loader(name, loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
