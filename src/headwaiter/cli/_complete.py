# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a shell completes: schedulers, drives, disks, bundled workloads, experiments and files (README: how to switch it on)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

from headwaiter.base.paths import WORKLOADS
from headwaiter.cli._devices import begin, disks
from headwaiter.drives.profile import bundled
from headwaiter.engine.schedulers import names

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _or_file(items: list[CompletionItem], incomplete: str) -> list[CompletionItem]:
    """Files first: a shell that is told of files forgets the words before."""
    return [CompletionItem(incomplete, type="file"), *items]


def scheduler(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """One scheduler."""
    return begin(names(), incomplete)


def schedulers(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Several schedulers, with commas."""
    return _listed([*names(), *([] if "," in incomplete else ["all"])], incomplete)


def _listed(choices: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The last one is completed, and none is offered twice."""
    before, comma, last = incomplete.rpartition(",")
    given = before.split(",")
    return begin([name for name in choices if name not in given], last, before + comma)


def drive(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A bundled drive, or the file of one."""
    return _or_file(begin((*bundled(), "constant:"), incomplete), incomplete)


def drives(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Several bundled drives, with commas."""
    return _listed(bundled(), incomplete)


def workload(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A bundled workload, or a file."""
    return _or_file(begin(sorted(p.name.split(".")[0] for p in WORKLOADS.iterdir() if p.is_file()), incomplete), incomplete)


def disk(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a disk of this machine, or a file."""
    return _or_file(begin(disks(), incomplete), incomplete)


def workload_or_disk(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a bundled workload, a file, or a disk of this machine."""
    return [*workload(ctx, parameter, incomplete), *begin(disks(), incomplete)]


def drive_or_disk(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a drive model, a file, or a disk of this machine."""
    return [*drive(ctx, parameter, incomplete), *begin(disks(), incomplete)]


def among(names: Callable[[], Iterable[str]]) -> Complete:
    """Complete one of some names, or a file."""

    def found(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _or_file(begin(names(), incomplete), incomplete)

    return found
