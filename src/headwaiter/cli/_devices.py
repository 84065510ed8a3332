# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a shell completes for an argument that must be a disk of this machine. Little is imported: `revert` uses it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from headwaiter.queue.devices import SYSFS


def begin(names: Iterable[str], incomplete: str, before: str = "") -> list[CompletionItem]:
    """Return the names that begin as what was typed."""
    return [CompletionItem(before + name) for name in names if name.startswith(incomplete)]


def disks() -> list[str]:
    """Return the names of the disks of this machine that hold something."""
    try:
        folders = sorted((SYSFS / "block").iterdir())
    except OSError:
        return []
    found = []
    for folder in folders:
        with suppress(OSError):
            if (folder / "size").read_text(encoding="utf-8").strip() != "0":
                found.append(folder.name.replace("!", "/"))
    return found


def device(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a disk of this machine, each only once."""
    given = ctx.params.get(parameter.name or "") or ()
    return begin([name for name in disks() if name not in given], incomplete)


def devices_or_all(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a disk of this machine, or `all`."""
    return [*device(ctx, parameter, incomplete), *begin(["all"], incomplete)]


def offered(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a scheduler that the kernel has for the disk named before."""
    name = str(ctx.params.get("device") or "").rpartition("/")[2]
    try:
        text = (SYSFS / "block" / name / "queue" / "scheduler").read_text(encoding="utf-8")
    except OSError:
        return []
    return begin([word.strip("[]") for word in text.split()], incomplete)
