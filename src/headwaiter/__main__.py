# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command, and python -m headwaiter: descriptors and signals are seen to before the rest is loaded, which takes a while."""

from __future__ import annotations

try:
    from headwaiter.base.early import end_at_once_on_signals, fill_closed

    fill_closed()
    end_at_once_on_signals()
except KeyboardInterrupt:
    from headwaiter.base.early import end

    end(2)


def main() -> None:
    """Run the command line."""
    import os  # noqa: PLC0415 (see above)

    from headwaiter.base.ending import Ended, end_tidily_on_signals, tell  # noqa: PLC0415

    try:
        end_tidily_on_signals()
        from headwaiter.cli import main as command  # noqa: PLC0415

        command()
    except Ended as e:
        tell(e)
        # Python's own end frees what a long run has left, object by object.
        os._exit(int(e.code or 0))


if __name__ == "__main__":
    main()
