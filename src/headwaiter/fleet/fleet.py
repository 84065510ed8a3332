# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fleet: every recording of some folders is judged, by as many workers as there are; what is judged is kept."""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import headwaiter
from headwaiter.advice.schema import Goal
from headwaiter.base.errors import Problem, shown
from headwaiter.base.outputs import writing
from headwaiter.fleet.judging import FleetMachine, MachineBatch, judge_machines, unjudged
from headwaiter.fleet.schema import FleetRow
from headwaiter.sweeps.design import content_sha256
from headwaiter.sweeps.farm import Spreading, workers_of
from headwaiter.sweeps.parts import ParquetParts, check_dask, parquet_schema
from headwaiter.sweeps.sweepfile import labels_of

if TYPE_CHECKING:
    import pandas as pd

_ANOTHER = "fleet: move it away, or give another file"
PARTS = ".parts"
"""Suffix of the folder that stands beside a Parquet file until it is complete; the same command goes on from it."""


def recordings_of(places: Sequence[str]) -> list[Path]:
    """The files of folders, patterns and names, each once, in order. Problem for what is not there."""
    found: dict[Path, None] = {}
    for place in places:
        path = Path(place)
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.is_file() and not _hidden(one.relative_to(path)))
        elif path.exists():
            files = [path]
        else:
            files = sorted(one for name in glob.glob(place, recursive=True) if (one := Path(name)).is_file())
        if not files:
            raise Problem(f"{shown(place, 200)}: {'no file is in it' if path.is_dir() else 'no such file or folder'}")
        found |= dict.fromkeys(one.resolve() for one in files)
    return list(found)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def judge_fleet(
    places: Sequence[str],
    *,
    goal: Goal = "progress",
    drive: str = "auto",
    seed: int = 0,
    modules: bool = False,
    parquet: Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    began: Callable[[int, int], None] | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> pd.DataFrame:
    """A row for each recording, in the order of their names.

    modules: try schedulers that need a module, too, which takes three times as long. parquet: the file that the rows are to be
    in; what is judged is kept beside it until then. Others as of sweep(). Problem if something given is wrong; a recording that
    cannot be judged has a row that says why.
    """
    check_dask()
    paths = recordings_of(places)
    machines = [_machine(name, path, goal, drive, seed, modules) for name, path in zip(labels_of(paths), paths, strict=True)]
    by_key = {one.key: one for one in machines}
    about = {"machines": hashlib.sha256(json.dumps(sorted(by_key)).encode()).hexdigest()}
    with _folder(parquet) as folder:
        kept = ParquetParts(folder, FleetRow)
        with kept.held(about, _ANOTHER, extend=True):
            known = kept.keys()
            todo = [one for key, one in by_key.items() if key not in known]
            if began:
                began(len(by_key), len(todo))
            count = 0
            if todo:
                with workers_of(cluster, workers) as farm:
                    work: Spreading[FleetMachine, list[FleetRow]] = Spreading(farm, judge_machines, MachineBatch, lambda _: None)
                    for some, found in work.results(todo):
                        kept.add([unjudged(one, found) for one in some] if isinstance(found, str) else found)
                        count += len(some)
                        if progress:
                            progress("machines", count)
            frame = kept.frame().set_index("key", drop=False).loc[list(by_key)].reset_index(drop=True)
        if parquet:
            _write(frame, parquet)
    if parquet:
        shutil.rmtree(_parts_of(parquet), ignore_errors=True)
    return frame


def _machine(name: str, path: Path, goal: Goal, drive: str, seed: int, modules: bool) -> FleetMachine:
    digest = content_sha256(path)
    said = json.dumps([digest, name, goal, drive, seed, modules, headwaiter.__version__])
    return FleetMachine(hashlib.sha256(said.encode()).hexdigest()[:32], name, path, digest, goal, drive, seed, modules)


def _parts_of(parquet: Path) -> Path:
    return parquet.with_name(parquet.name + PARTS)


@contextmanager
def _folder(parquet: Path | None) -> Iterator[Path]:
    if parquet:
        yield _parts_of(parquet)
        return
    with TemporaryDirectory(prefix="headwaiter-") as folder:
        yield Path(folder) / "fleet"


def _write(frame: pd.DataFrame, parquet: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    table = pa.Table.from_pandas(frame, schema=parquet_schema(FleetRow), preserve_index=False)
    with writing(parquet) as temporary:
        pq.write_table(table, str(temporary))
