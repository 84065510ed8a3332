# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter: disk I/O schedulers that can be simulated, proved and deployed.

`headwaiter.compare("trace")` does from Python what the command of that name does; docs/api.md describes all functions. They are
loaded when they are first used, because `import headwaiter` stands in front of every module of the package.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes long to load: a signal may come before the program can heed it
if TYPE_CHECKING:
    from typing import Any

    from headwaiter.api import (
        Comparison,
        Conditions,
        Problem,
        Run,
        Trace,
        Tuning,
        compare,
        read_trace,
        run,
        schedulers,
        sweep,
        tune,
    )
    from headwaiter.drives import drives

    __version__: str

__all__ = [
    "Comparison",
    "Conditions",
    "Problem",
    "Run",
    "Trace",
    "Tuning",
    "compare",
    "drives",
    "read_trace",
    "run",
    "schedulers",
    "sweep",
    "tune",
]


def __getattr__(name: str) -> Any:
    import importlib  # noqa: PLC0415 (as above)

    if name == "__version__":
        # Once: it is read from a file, and every cell of a sweep asks.
        version: str = importlib.import_module("importlib.metadata").version(__name__)
        globals()[name] = version
        return version
    if name == "drives":
        return importlib.import_module(f"{__name__}.drives")
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
