# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that real programs of the lab's experiments work on, made on the host. The same numbers give the same bytes."""

from __future__ import annotations

import random

from headwaiter.lab.host import need, run, temporary_folder


def object_files(count: int, median_bytes: int) -> dict[str, bytes]:
    """/objects/N.o: relocatable files that link to one program, each calling the next one; sizes are lognormal."""
    assembler, dice = need("as"), random.Random(0)
    out = {}
    with temporary_folder() as work:
        source, made = work / "source.s", work / "made.o"
        for k in range(count):
            fill = round(median_bytes * dice.lognormvariate(0, 0.7))
            source.write_text(
                f".text\n.globl f{k}\nf{k}: call f{(k + 1) % count}\n ret\n.fill {fill}, 1, 0x90\n", encoding="ascii"
            )
            run([assembler, "-o", str(made), str(source)])
            out[f"/objects/{k}.o"] = made.read_bytes()
    return out


def texts(root: str, count: int, median_bytes: int, folder_files: int, seed: int = 0) -> dict[str, bytes]:
    """Files of words below `root`, so many a folder; sizes are lognormal."""
    dice = random.Random(seed)
    line = b"some words of a text, one line\n"
    return {
        f"{root}/{k // folder_files}/{k}": line * max(1, round(median_bytes * dice.lognormvariate(0, 1) / len(line)))
        for k in range(count)
    }
