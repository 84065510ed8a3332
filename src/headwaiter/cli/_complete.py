# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a shell completes: names of schedulers, drives, disks, bundled workloads, and files (README tells how to switch it on)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from headwaiter.drives.profile import bundled
from headwaiter.engine.schedulers import names
from headwaiter.live.devices import SYSFS
from headwaiter.paths import WORKLOADS

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _begin(names: Iterable[str], incomplete: str, before: str = "") -> list[CompletionItem]:
    return [CompletionItem(before + name) for name in names if name.startswith(incomplete)]


def _or_file(items: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """Files first: a shell that is told of files forgets the words before."""
    return [CompletionItem(incomplete, type="file"), *items]


def scheduler(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """One scheduler."""
    return _begin(names(), incomplete)


def schedulers(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Several, with commas: the last one is completed, and none is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return _begin([name for name in (*names(), *([] if comma else ["all"])) if name not in given], last, before + comma)


def drive(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A bundled drive, or the file of one."""
    return _or_file(_begin((*bundled(), "constant:"), incomplete), incomplete)


def workload(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A bundled workload, or a file."""
    return _or_file(_begin(sorted(p.name.split(".")[0] for p in WORKLOADS.iterdir() if p.is_file()), incomplete), incomplete)


def disk(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A disk of this machine, or a file."""
    try:
        names = sorted(path.name for path in (SYSFS / "block").iterdir())
    except OSError:
        names = []
    return _or_file(_begin(names, incomplete), incomplete)
