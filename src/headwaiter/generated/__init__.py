# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Workloads that are generated: programs played on a model of a machine, by the parameters in a TOML file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from headwaiter.base.errors import Problem, shown
from headwaiter.engine.sim import Forest
from headwaiter.generated import boot, chunks, large_file, servers, trees, users
from headwaiter.generated.files import FileSystem, Full
from headwaiter.generated.model_machine import ModelMachine, Process
from headwaiter.generated.parameters import document, looks_generated, parameters

GENERATORS: dict[str, tuple[type[Any], Callable[[Any, ModelMachine, FileSystem], None]]] = {
    "kva": (large_file.Kva, large_file.kva),
    "cold-boot": (boot.ColdBoot, boot.cold_boot),
    "andrew": (trees.Andrew, trees.andrew),
    "chunks": (chunks.Chunks, chunks.chunks),
    "build": (trees.Build, trees.build),
    "bonnie": (large_file.Bonnie, large_file.bonnie),
    "multi-user": (users.MultiUser, users.multi_user),
    "database": (users.Database, users.database),
    "scientific": (users.Scientific, users.scientific),
    "server": (servers.Server, servers.server),
}

__all__ = ["GENERATORS", "generate", "given_parameters", "looks_generated"]


def given_parameters(path: Path, data: bytes, changed: Mapping[str, float] = MappingProxyType({})) -> tuple[str, Any]:
    """The generator's name and its parameters, some of them changed. Problem if they are wrong."""
    name, values = document(path, data)
    if name not in GENERATORS:
        raise Problem(f"{path}: generator '{shown(name)}' is unknown (known: {', '.join(GENERATORS)})")
    return name, parameters(GENERATORS[name][0], path, data, {**values, **changed})


def generate(path: Path, data: bytes, sectors: int, seed: int, process: type[Process] = Process, **changed: float) -> Forest:
    """The load that a file of parameters (its bytes: data) stands for, on a disk of so many sectors. One seed, one load.

    `changed` replaces parameters; `process` is a class that sees what processes do. Problem if the parameters are wrong, or the
    disk is too small.
    """
    name, given = given_parameters(path, data, changed)
    rng = np.random.default_rng([seed, *name.encode()])
    machine = ModelMachine(rng, given.readahead_kib, given.dirty_mib, process)
    try:
        GENERATORS[name][1](given, machine, FileSystem(rng, sectors))
        return machine.play()
    except Full:
        raise Problem(f"{path}: its files do not fit on a drive of {sectors} sectors") from None
