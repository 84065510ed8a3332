# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command, and python -m headwaiter: signals are heeded before the rest is loaded, which takes a while on a busy machine."""

from __future__ import annotations

import os

from headwaiter.ending import Ended, end_tidily_on_signals, tell


def main() -> None:
    """Run the command line."""
    try:
        end_tidily_on_signals()
        from headwaiter.cli import main as command  # noqa: PLC0415 (see above)

        command()
    except Ended as e:
        tell(e)
        # Python's own end frees what a long run has left, object by object.
        os._exit(int(e.code or 0))


if __name__ == "__main__":
    main()
