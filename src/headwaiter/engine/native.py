# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libheadwaiter, through the declarations of its public header.

The header is the only description of the C side: cffi reads it as it is, less its preprocessor lines and what is for C++.
HEADWAITER_LIBRARY names another build of the library, for instance one with planted faults or sanitizers.
"""

from __future__ import annotations

import os
import re
from typing import Any

import cffi
import numpy as np

from headwaiter.base.paths import HEADER, library

_FOR_CPP = re.compile(r"^#ifdef __cplusplus$.*?^#endif$", re.MULTILINE | re.DOTALL)


def _load() -> tuple[Any, Any]:
    ffi = cffi.FFI()
    lines = _FOR_CPP.sub("", HEADER.read_text(encoding="utf-8")).splitlines()
    ffi.cdef("\n".join(line for line in lines if not line.startswith("#")))
    return ffi, ffi.dlopen(os.environ.get("HEADWAITER_LIBRARY", str(library())))


ffi, lib = _load()


def text(pointer: Any) -> str:
    """A C string, '' for NULL."""
    return "" if pointer == ffi.NULL else ffi.string(pointer).decode()


def borrow(ctype: str, array: np.ndarray[Any, Any]) -> Any:
    """A pointer to the array's own memory: no copy. The caller keeps the array alive."""
    return ffi.from_buffer(ctype, array)


def view(pointer: Any, n: int, dtype: Any) -> np.ndarray[Any, Any]:
    """n elements at a C pointer as a read-only array over the same memory, valid as long as that is."""
    if n == 0:
        return np.empty(0, dtype)
    out = np.frombuffer(ffi.buffer(pointer, n * np.dtype(dtype).itemsize), dtype)
    out.flags.writeable = False
    return out
