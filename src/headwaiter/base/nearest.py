# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What somebody may have meant who wrote a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean NAME?" with the known name that is most like the word, or '' if none is.

    Case, and `_` for `-`, do not count.
    """
    by_plain = {_plain(name): name for name in known}
    close = difflib.get_close_matches(_plain(word), by_plain, n=1)
    return f"; did you mean {by_plain[close[0]]}?" if close else ""
