# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The number that fio 3.33 makes of a file's name, from which it seeds skewed places.

It is Bob Jenkins's lookup3 ("A hash function for hash table lookup", 2006), but for one thing: of twelve bytes in the
middle of a name fio takes three, the first of every four.
"""

from __future__ import annotations

_START = 0x61C88647
_MASK = (1 << 32) - 1


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (32 - by)) & _MASK


def name_hash(name: str) -> int:
    """32 bits from the bytes of a name."""
    rest = name.encode("utf-8", "surrogateescape")
    a = b = c = (_START + len(rest)) & _MASK
    while len(rest) > 12:
        a, b, c = _mixed((a + rest[0]) & _MASK, (b + rest[4]) & _MASK, (c + rest[8]) & _MASK)
        rest = rest[12:]
    if not rest:
        return c
    last = rest.ljust(12, b"\0")
    a, b, c = ((word + int.from_bytes(last[at : at + 4], "little")) & _MASK for word, at in ((a, 0), (b, 4), (c, 8)))
    for by in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - _rotated(b, by)) & _MASK
        a, b, c = b, c, a
    return b


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Three words, stirred: they change roles at each step, and after six each has its own again."""
    for by in (4, 6, 8, 16, 19, 4):
        a = ((a - c) & _MASK) ^ _rotated(c, by)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    return a, b, c
