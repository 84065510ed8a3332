# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the package's own files are, and how files are written."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import Problem

PACKAGE = Path(__file__).resolve().parent
DRIVES = PACKAGE / "data" / "drives"
WORKLOADS = PACKAGE / "data" / "workloads"


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place if the block ends well, and goes away if it does not."""
    target = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as e:
        raise Problem(f"{target}: {e.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except OSError as e:
        raise Problem(f"{target}: {e.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def end_tidily_on_signals() -> None:
    """End by an exception when the process is told to end: temporary files go away, programs that it started end, too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
