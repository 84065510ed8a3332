# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sweeps: what a file may say, that every cell is there once whatever is killed, and that figures are those of `compare`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from command import good, run, told
from inprocess import without_workers
from pandas.testing import assert_frame_equal
from recordings import readers, record

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.study.variants import parse_variant
from headwaiter.sweeps import farm, worker
from headwaiter.sweeps.design import cells_of
from headwaiter.sweeps.parts import ParquetParts
from headwaiter.sweeps.schema import SweepRow
from headwaiter.sweeps.standings import report_on
from headwaiter.sweeps.sweep import FOLDERS, results_of, sweep
from headwaiter.sweeps.sweepfile import read_sweep
from headwaiter.sweeps.worker import CellBatch, run_cells

SMALL: dict[str, Any] = {
    "drives": ["barracuda-80g", "constant:2"],
    "schedulers": ["mq-deadline", "bfq", "as"],
    "seeds": 2,
    "tunables": {"bfq": {"low_latency": [0, 1]}, "as": {"antic_expire": [0, 6]}},
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("traces") / "two.csv", readers(2, each=60))


@pytest.fixture(scope="module")
def undisturbed(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, Path]:
    """A sweep of some cells, and its folder."""
    folder = tmp_path_factory.mktemp("sweep") / "results"
    return headwaiter.sweep({**SMALL, "workloads": str(trace)}, folder, workers=2), folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have cells run in this process."""
    without_workers(monkeypatch)


def toml(folder: Path, text: str, trace: Path | None = None) -> Path:
    path = folder / "sweep.toml"
    path.write_text(text.replace("TRACE", str(trace)))
    return path


# --- what a cell is ---


@pytest.mark.thorough
def test_figures_are_those_of_compare(undisturbed: tuple[pd.DataFrame, Path], trace: Path) -> None:
    frame, _ = undisturbed
    alone = headwaiter.compare(trace, "barracuda-80g", ["mq-deadline", "bfq:low_latency=0", "as:antic_expire=6"], runs=0)
    rows = frame[(frame["drive"] == "barracuda-80g") & (frame["seed"] == 0)].set_index("variant")
    for result in alone.results:
        row = rows.loc[result.variant or result.scheduler]
        assert row["throughput_MBps"] == result.throughput_mbps
        assert row["progress_MBps"] == result.progress_mbps
        assert row["read_p99_ms"] == result.read.lat_ms.p99  # type: ignore[union-attr]
        assert row["seeks"] == result.disk.seeks
    assert len(frame) == 2 * 5 * 2
    assert frame["key"].is_unique
    assert frame["error"].isna().all()


def test_seeds_change_a_recording_a_little(undisturbed: tuple[pd.DataFrame, Path]) -> None:
    frame, _ = undisturbed
    by_seed = frame[(frame["drive"] == "barracuda-80g") & (frame["variant"] == "mq-deadline")].set_index("seed")["elapsed_s"]
    assert by_seed[0] != by_seed[1]
    assert abs(by_seed[0] / by_seed[1] - 1) < 0.2


def test_what_is_done_is_not_done_again(
    undisturbed: tuple[pd.DataFrame, Path], trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, folder = undisturbed
    monkeypatch.setattr("headwaiter.sweeps.sweep.workers_of", lambda *_: pytest.fail("no worker is needed"))
    again = headwaiter.sweep({**SMALL, "workloads": str(trace)}, folder)
    assert_frame_equal(frame, again)


def test_the_folder_is_one_table(undisturbed: tuple[pd.DataFrame, Path]) -> None:
    """For whatever reads Parquet."""
    frame, folder = undisturbed
    read = pd.read_parquet(folder)
    assert sorted(read["key"]) == sorted(frame["key"])
    assert set(read["workload"]) == {"two.csv"}
    assert set(read["drive"]) == {"barracuda-80g", "constant:2"}


@pytest.mark.usefixtures("here")
def test_a_key_is_of_content(tmp_path: Path, trace: Path) -> None:
    """A copy is the same workload; a change of anything that matters is another cell."""
    copy = tmp_path / "copy.csv"
    copy.write_bytes(trace.read_bytes())
    base = {"workloads": str(trace), "drives": "constant:2", "schedulers": ["noop"]}

    def key(**more: Any) -> str:
        return cells_of(read_sweep({**base, **more}))[0].key

    assert key() == key(workloads=str(copy)) == key(seeds=[0])
    more: list[dict[str, Any]] = [
        {"drives": "constant:3"}, {"schedulers": "none"}, {"seeds": [1]}, {"runs": 1}, {"conditions": {"speed": 2}},
    ]  # fmt: skip
    assert len({key(), *(key(**one) for one in more)}) == 6
    copy.write_text(copy.read_text() + "9.0,1,R,1,0,8,9.001\n")
    assert key(workloads=str(copy)) != key()


@pytest.mark.usefixtures("here")
def test_jobs_generated_loads_conditions_and_runs(tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[a]\nrw=randread\nsize=2m\nbs=64k\n[b]\nrw=write\nsize=2m\n")
    asked = {
        "workloads": [str(job)], "drives": "barracuda-80g", "schedulers": "mq-deadline", "runs": 2,
        "conditions": {"queue_depth": [1, 4], "wbt_depth": 0},
    }  # fmt: skip
    found = headwaiter.sweep(asked, tmp_path / "results")
    assert [json.loads(one) for one in found["conditions"]] == [{"queue_depth": n, "wbt_depth": 0} for n in (1, 4)]
    assert (found["throughput_low_MBps"] <= found["throughput_MBps"]).all()
    assert (found["read_requests"] == 32).all()


# --- what a file may say ---


def points(text: str, folder: Path, trace: Path) -> list[tuple[str, str, str, int]]:
    cells = cells_of(read_sweep(toml(folder, text, trace)))
    return [(one.group.file.label, one.group.drive.label, one.variant.name, one.seed) for one in cells]


HEAD = 'workloads = "TRACE"\ndrives = ["constant:1", "constant:2"]\nschedulers = ["noop", "bfq", "bfq:slice_idle=3"]\n'


def test_a_grid_has_all(tmp_path: Path, trace: Path) -> None:
    text = HEAD + "seeds = [3, 5]\n[tunables.bfq]\nslice_idle = { from = 0, to = 8, step = 4 }\nlow_latency = [false, true]\n"
    found = points(text, tmp_path, trace)
    names = {name for _, _, name, _ in found}
    assert names == {
        "noop", "bfq:slice_idle=3:low_latency=0", "bfq:slice_idle=3:low_latency=1",
        *(f"bfq:slice_idle={n}:low_latency={m}" for n in (0, 4, 8) for m in (0, 1)),
    }  # fmt: skip
    assert len(found) == len(set(found)) == 2 * 2 * 9


@pytest.mark.parametrize("method", ["sobol", "random"])
def test_a_sample_has_as_many_as_its_budget(method: str, tmp_path: Path, trace: Path) -> None:
    more = f'seeds = 4\n[tunables.bfq]\nslice_idle = {{ from = 0, to = 1000 }}\n[sample]\nmethod = "{method}"\nbudget = 100\n'
    found = points(HEAD + more, tmp_path, trace)
    assert len(set(found)) == len(found) == 100
    assert found == points(HEAD + more, tmp_path, trace)
    assert found != points(HEAD + more + "seed = 1\n", tmp_path, trace)
    idle = [int(name.split("=")[1]) for _, _, name, _ in found if name.startswith("bfq:slice_idle=") and name[-1] != "="]
    assert max(idle) > 800
    assert {seed for *_, seed in found} == set(range(4))


def test_a_paired_sample_has_every_setting_everywhere(tmp_path: Path, trace: Path) -> None:
    more = "seeds = 2\n[tunables.bfq]\nslice_idle = { from = 1, to = 1000, scale = 'log' }\n"
    found = points(HEAD + more + "[sample]\nmethod = 'sobol'\nbudget = 43\npaired = true\n", tmp_path, trace)
    assert len(found) == 40
    names = {name for _, _, name, _ in found}
    assert len(names) == 10
    assert all(sum(name == one for _, _, name, _ in found) == 4 for one in names)


def test_a_small_space_is_run_whole(tmp_path: Path, trace: Path) -> None:
    more = "[sample]\nmethod = 'random'\nbudget = 1000\n"
    assert len(points(HEAD + more, tmp_path, trace)) == 6


def test_patterns_and_names_that_collide(tmp_path: Path, trace: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_bytes(trace.read_bytes() + name.encode()[:0])
    found = read_sweep(toml(tmp_path, 'workloads = ["*/x.csv", "example"]\ndrives = "auto"\nschedulers = "all"\n'))
    assert [one.label for one in found.workloads] == ["a/x.csv", "b/x.csv", "example.blktrace.xz"]
    assert len(found.schedulers) > 15


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = 3\n", ":4: seed: no such key; did you mean seeds?"),
        ("[tunables.bfq]\nslice_idel = 3\n", ":5: tunables.bfq.slice_idel: bfq has no such tunable; did you mean slice_idle?"),
        ("[tunables]\nbfq.slice_idle = 'x'\n", ":5: tunables.bfq.slice_idle: "),
        ("[tunables.kyber]\nread_lat_nsec = 3\n", ":4: tunables.kyber: kyber is not among the schedulers of the sweep"),
        ("[tunables.cqf]\nx = 3\n", ":4: tunables.cqf: "),
        ("[tunables.bfq]\nslice_idle = []\n", ":5: tunables.bfq.slice_idle: the list is empty, and so is the sweep"),
        ("[tunables.bfq]\nslice_idle = { from = 1, to = 3 }\n", ":5: tunables.bfq.slice_idle: in a grid a range needs steps"),
        ("[tunables.bfq]\nslice_idle = { from = 4, to = 3, step = 1 }\n", ":5: tunables.bfq.slice_idle: a range goes from"),
        ("[tunables.bfq]\nslice_idle = { form = 4, to = 3 }\n", ":5: tunables.bfq.slice_idle.form: no such key"),
        ("[conditions]\nspeed = 0\n", ":5: conditions.speed: expected a number from 1e-06"),
        ("[conditions]\nqueue_depht = 1\n", ":5: conditions.queue_depht: no such condition; did you mean queue_depth?"),
        ("[conditions]\nreplay = 'shut'\n", ":5: conditions.replay: 'shut' is none of closed, open"),
        ("[conditions]\nseed = 1\n", ":5: conditions.seed: seeds have a key of their own"),
        ("[conditions]\nhost = 'nowhere'\n", ":5: conditions.host: "),
        ("seeds = 0\n", ":4: seeds: expected a number of seeds"),
        ("seeds = [1, 1]\n", ":4: seeds: expected how many"),
        ("runs = -1\n", ":4: runs: expected a whole number from 0"),
        ("[sample]\nmethod = 'soboll'\n", ":5: sample.method: 'soboll' is none of grid, sobol, random"),
        ("[sample]\nmethod = 'sobol'\n", ":5: sample.method: sobol needs a budget"),
        ("[sample]\nbudget = 3\n", ":5: sample.budget: a grid has all cells"),
        ("[sample]\nmethod = 'sobol'\nbudget = 1\npaired = true\n", ": sample.budget: 1 cells are too few"),
        ("x = [\n", ": not TOML: "),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    text: str, said: str, tmp_path: Path, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = toml(tmp_path, HEAD + text, trace)
    status, out, err = run(capfd, "sweep", path, "-o", tmp_path / "results")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"headwaiter: {path}{said}"), err
    assert not list(tmp_path.glob("results/**/*.parquet"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workloads = ['gone.csv']\ndrives = 'constant:1'\nschedulers = 'noop'\n", ":1: workloads: gone.csv: no such file"),
        ("workloads = [\n 'example',\n '*.gone']\ndrives = 'constant:1'\n", ":3: workloads: '*.gone' matches no file"),
        ("workloads = 'example'\ndrives = 'hdd'\nschedulers = 'noop'\n", ":2: drives: "),
        ("workloads = 'example'\ndrives = 'constant:1'\nschedulers = ['noop', 'cfk']\n", ":3: schedulers: "),
        ("workloads = 'example'\ndrives = 'constant:1'\nschedulers = []\n", ":3: schedulers: the list is empty"),
        ("workloads = 'example'\ndrives = 'constant:1'\n", ": schedulers are missing"),
        ("workloads = 'example'\ndrives = 3\nschedulers = 'noop'\n", ":2: drives: expected names"),
    ],
)
def test_what_is_not_there_is_told_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    path = toml(tmp_path, text)
    with pytest.raises(Problem) as problem:
        read_sweep(path)
    assert str(problem.value).startswith(f"{path}{said}"), problem.value


def test_wrong_folders_and_clusters(
    undisturbed: tuple[pd.DataFrame, Path], tmp_path: Path, trace: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, folder = undisturbed
    other = {"workloads": str(trace), "drives": "constant:1", "schedulers": "noop"}
    with pytest.raises(Problem, match=r"holds results of another sweep: give another folder, or --extend"):
        headwaiter.sweep(other, folder)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    with pytest.raises(Problem, match=r"not empty, and no results of headwaiter \(letter.txt\)"):
        headwaiter.sweep(other, tmp_path / "full")
    with pytest.raises(Problem, match="expected slurm, kubernetes, or an address"):
        headwaiter.sweep(other, tmp_path / "a", cluster="pbs")
    for cluster, package in (("slurm", "dask-jobqueue"), ("kubernetes", "dask-kubernetes")):
        with pytest.raises(Problem, match=f"needs {package}: pip install {package}"):
            headwaiter.sweep(other, tmp_path / "a", cluster=cluster, workers=1)
    with pytest.raises(Problem, match="a scheduler that runs has its own workers"):
        headwaiter.sweep(other, tmp_path / "a", cluster="tcp://127.0.0.1:9", workers=1)
    for words in (["report", tmp_path / "full"], ["report", folder, "--plot", folder / "x.png"], ["report", folder, "--by", "x"]):
        status, _, err = run(capfd, "sweep", *words)
        assert (status, err.count("\n")) == (2, 1), err


def test_without_the_extra_one_line_says_what_to_install(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, _, err = run(capfd, "sweep", toml(tmp_path, HEAD, trace), "-o", tmp_path / "results")
    assert status == 2
    assert err == "headwaiter: this needs Dask and pyarrow, and distributed is missing: pip install 'headwaiter[sweep]'\n"


# --- what goes wrong on the way ---


@pytest.mark.usefixtures("here")
def test_a_cell_that_fails_has_a_row_and_ends_nothing(tmp_path: Path, trace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("time_s,task,op,sync,sector,sectors\n0,1,R,1,zero,8\n")
    path = toml(tmp_path, f'workloads = ["{bad}", "TRACE"]\ndrives = "constant:1"\nschedulers = ["noop", "none"]\n', trace)
    status, out, err = run(capfd, "sweep", path, "-o", tmp_path / "results", "--json")
    document = json.loads(out)
    assert (status, err) == (1, "")
    assert (document["cells"], document["done"], document["failed"]) == (4, 4, 2)
    assert "bad.csv" in document["failures"][0]["error"]
    frame = results_of(tmp_path / "results").frame().set_index("workload")
    assert frame.loc["bad.csv", "throughput_MBps"].isna().all()
    assert frame.loc["two.csv", "error"].isna().all()
    # As it is kept, it is done; with --retry it is run again, and there once.
    status, out, _ = run(capfd, "sweep", path, "-o", tmp_path / "results")
    assert status == 1
    assert "0 run, 4 kept, 2 failed" in out
    status, out, _ = run(capfd, "sweep", path, "-o", tmp_path / "results", "--retry")
    assert "2 run, 2 kept, 2 failed" in out
    assert len(results_of(tmp_path / "results").frame()) == 4
    assert "cells failed because" in good(capfd, "sweep", "report", tmp_path / "results")


@pytest.mark.usefixtures("here")
def test_a_workload_that_changes_meanwhile_fails(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copy.csv"
    copy.write_bytes(trace.read_bytes())
    cell = cells_of(read_sweep({"workloads": str(copy), "drives": "constant:1", "schedulers": "noop"}))[0]
    copy.write_text(copy.read_text() + "9.0,1,R,1,0,8,9.001\n")
    monkeypatch.setattr(worker, "KEPT", worker.Kept())
    (row,) = run_cells(CellBatch([cell])).rows
    assert row.error == f"{copy}: it has changed since the sweep began"
    with pytest.raises(Problem, match=r"a worker has headwaiter .*, and the sweep is of 0\.1"):
        run_cells(CellBatch([cell], "0.1"))


@pytest.mark.usefixtures("here")
def test_extended_it_has_both(tmp_path: Path, trace: Path) -> None:
    base = {"workloads": str(trace), "drives": "constant:1", "schedulers": ["noop"]}
    headwaiter.sweep(base, tmp_path / "r")
    more = headwaiter.sweep({**base, "schedulers": ["noop", "none"]}, tmp_path / "r", extend=True)
    assert len(more) == 2
    assert len(results_of(tmp_path / "r").frame()) == 2
    assert len(headwaiter.sweep({**base, "schedulers": ["none"]}, tmp_path / "r", extend=True)) == 1


@pytest.mark.usefixtures("here")
def test_a_key_that_is_there_twice_is_healed(tmp_path: Path, trace: Path) -> None:
    """As where the command was killed between two steps."""
    base = {"workloads": str(trace), "drives": "constant:1", "schedulers": ["noop", "none"]}
    frame = headwaiter.sweep(base, tmp_path / "r")
    parts = ParquetParts(tmp_path / "r", SweepRow, FOLDERS)
    first = parts.files()[0]
    (first.parent / "part-0.parquet").write_bytes(first.read_bytes())
    (first.parent / ".part-1").write_text("cut")
    assert len(parts.frame()) == 3
    assert_frame_equal(headwaiter.sweep(base, tmp_path / "r"), frame)
    assert len(parts.frame()) == 2
    assert not (first.parent / ".part-1").exists()


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    parts = ParquetParts(tmp_path / "r", SweepRow, FOLDERS)
    with parts.held({}, "sweep"), pytest.raises(Problem, match="another process is at work in it"), parts.held({}, "sweep"):
        pass


def test_a_worker_reads_a_workload_once(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = worker.Kept()
    monkeypatch.setattr(worker, "KEPT", kept)
    other = record(tmp_path / "one.csv", readers(1, each=40))
    asked = {**SMALL, "workloads": [str(trace), str(other)], "conditions": {"speed": [1, 2]}, "seeds": 1}
    cells = cells_of(read_sweep(asked))
    assert not any(row.error for row in run_cells(CellBatch(cells)).rows)
    assert kept.reads == 2


# --- the report ---


def test_the_report_tells_the_best(
    undisturbed: tuple[pd.DataFrame, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    frame, folder = undisturbed
    out = told(capfd, "sweep", "report", folder, "--by", "throughput_MBps")
    for best in out["best"]:
        mine = frame[frame["drive"] == best["drive"]]
        means = mine.groupby("variant")["throughput_MBps"].mean()
        assert means[best["variant"]] == pytest.approx(means.max(), rel=0.01)
    of = {row["variant"]: row for row in out["standings"]}
    assert of[out["standings"][0]["variant"]]["of_best"] == max(row["of_best"] for row in of.values())
    assert {(one["name"], one["value"]) for one in out["effects"]} == {
        ("as.antic_expire", "0"), ("as.antic_expire", "6"), ("bfq.low_latency", "0"), ("bfq.low_latency", "1"),
    }  # fmt: skip
    good(capfd, "sweep", "report", folder, "--page", tmp_path / "p.html", "--plot", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert "settings by workload" in (tmp_path / "p.html").read_text()


@pytest.mark.usefixtures("here")
def test_lower_is_better_where_it_is(tmp_path: Path, trace: Path) -> None:
    asked = {**SMALL, "workloads": str(trace), "drives": "barracuda-80g", "conditions": {"speed": [1, 4]}}
    frame = headwaiter.sweep(asked, tmp_path / "r")
    found = report_on(tmp_path / "r", "read_max_ms").document
    assert {one.name for one in found.effects} >= {"speed"}
    worst = min(found.standings, key=lambda one: one.of_best).variant
    best = found.standings[0].variant
    means = frame.groupby("variant")["read_max_ms"].mean()
    assert means[best] < means[worst]


# --- killed ---


def workers_of_process(pid: int) -> list[psutil.Process]:
    """Those that are alive."""
    found = []
    for one in psutil.Process(pid).children(recursive=True):
        try:
            # Where it can, Dask gives a worker that has started a title of its own.
            title = " ".join(one.cmdline()).lower()
            if "spawn_main" in title or "dask worker" in title:
                found.append(one)
        except psutil.Error:  # it has gone meanwhile
            continue
    return found


class Killer(threading.Thread):
    """It kills so many workers of a process, each when more rows are there than before."""

    def __init__(self, pid: int, folder: Path, at: list[int], seed: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.folder, self.at, self.dice = pid, folder, at, random.Random(seed)
        self.killed: list[int] = []
        self.memory: list[int] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            alive = workers_of_process(self.pid)
            for one in alive:
                try:
                    self.memory.append(one.memory_info().rss)
                except psutil.Error:
                    continue
            parts = sum(name.startswith("part-") for _, _, names in os.walk(self.folder) for name in names)
            if len(self.killed) < len(self.at) and parts >= self.at[len(self.killed)] and alive:
                victim = self.dice.choice(alive).pid
                os.kill(victim, signal.SIGKILL)
                self.killed.append(victim)


def killed_sweep(asked: dict[str, Any], folder: Path, at: list[int]) -> tuple[pd.DataFrame, Killer]:
    killer = Killer(os.getpid(), folder, at, 1)
    killer.start()
    try:
        return headwaiter.sweep(asked, folder, workers=2), killer
    finally:
        killer.over.set()
        killer.join()


@pytest.mark.thorough
def test_a_killed_worker_loses_nothing(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that is killed while it starts."""
    asked = {**SMALL, "workloads": str(trace), "seeds": 6}
    found, killer = killed_sweep(asked, tmp_path / "r", [0])
    assert len(killer.killed) == 1
    assert sorted(pd.read_parquet(tmp_path / "r")["key"]) == sorted(found["key"])
    monkeypatch.setattr(worker, "KEPT", worker.Kept())
    alone = [row.throughput_mbps for row in run_cells(CellBatch(cells_of(read_sweep(asked)))).rows]
    assert list(found["throughput_MBps"]) == alone


@pytest.mark.thorough
def test_a_killed_command_goes_on(undisturbed: tuple[pd.DataFrame, Path], trace: Path, tmp_path: Path) -> None:
    """It leaves no process behind, and the same command has the rest done."""
    frame, _ = undisturbed
    listed = "\n".join(f"{key} = {json.dumps(SMALL[key])}" for key in ("drives", "schedulers", "seeds"))
    tables = "[tunables]\nbfq.low_latency = [0, 1]\nas.antic_expire = [0, 6]\n"
    path = toml(tmp_path, f'workloads = "TRACE"\n{listed}\n{tables}', trace)
    words = [sys.executable, "-m", "headwaiter", "sweep", str(path), "-o", str(tmp_path / "r"), "--workers", "2"]
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while first.poll() is None and not list((tmp_path / "r").rglob("part-*.parquet")):
        time.sleep(0.02)
    left = workers_of_process(first.pid)
    first.kill()
    first.wait()
    psutil.wait_procs(left, timeout=60)
    assert not [one for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    assert sorted(pd.read_parquet(tmp_path / "r")["key"]) == sorted(frame["key"])
    assert_frame_equal(results_of(tmp_path / "r").frame().set_index("key").loc[frame["key"]].reset_index()[frame.columns], frame)


@pytest.mark.thorough
def test_a_script_without_a_guard_can_sweep(trace: Path, tmp_path: Path) -> None:
    """Workers do not run the user's script again."""
    script = tmp_path / "script.py"
    asked = {"workloads": str(trace), "drives": "constant:1", "schedulers": ["noop", "none"]}
    call = f"headwaiter.sweep({asked!r}, {str(tmp_path / 'r')!r}, workers=1)"
    script.write_text(f"import headwaiter\nprint('ran')\nprint(len({call}))\n")
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    assert done.stdout == "ran\n2\n"


@pytest.mark.thorough
def test_one_that_takes_every_worker_with_it_is_found() -> None:
    """It has no result, and all others have."""
    # Workers cannot import this module: the function is sent by value.
    text = "lambda items: __import__('os').kill(__import__('os').getpid(), 9) if 5 in items else items"
    deadly = eval(text, {"__name__": "__main__"})
    with farm.workers_of(None, 2) as workers:
        work: farm.Spreading[int, list[int]] = farm.Spreading(workers, deadly, list, lambda item: item // 2)
        found = {item: done for items, done in work.results(list(range(6))) for item in items}
    assert len(found) == 6
    assert isinstance(found[5], str)
    assert "every worker that ran it was killed" in found[5]
    assert [item for item, done in found.items() if isinstance(done, str)] == [5]
    assert work.lost > 0


@pytest.mark.thorough
def test_a_worker_that_is_about_to_start_does_not_fail_a_sweep_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask cannot close it: the others are closed all the same."""
    from distributed import Nanny  # noqa: PLC0415

    kill = Nanny.kill
    failed: list[Any] = []

    async def late(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not failed:
            failed.append(self)
            raise AssertionError("can only join a started process")
        return await kill(self, *args, **kwargs)

    before = set(workers_of_process(os.getpid()))
    with farm.workers_of(None, 2) as workers:
        while workers.workers() < 2:
            time.sleep(0.02)
        started = [one for one in workers_of_process(os.getpid()) if one not in before]
        nannies = list(workers._local.cluster.workers.values())  # type: ignore[union-attr]
        monkeypatch.setattr(Nanny, "kill", late)
    assert failed
    assert failed[0] in nannies
    assert all(one.status.name == "closed" for one in nannies)
    for one in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.mark.thorough
def test_workers_measure_nothing_for_a_dashboard_that_is_off() -> None:
    text = "lambda items: [__import__('dask').config.get('distributed.worker.profile.enabled') for _ in items]"
    ask = eval(text, {"__name__": "__main__"})
    with farm.workers_of(None, 1) as workers:
        work: farm.Spreading[int, list[bool]] = farm.Spreading(workers, ask, list, lambda _: None)
        assert list(work.results([0])) == [([0], [False])]


@pytest.mark.thorough
def test_a_scheduler_that_runs_is_used(trace: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster  # noqa: PLC0415

    asked = {"workloads": str(trace), "drives": "constant:1", "schedulers": ["noop", "none"]}
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None) as cluster:  # type: ignore[no-untyped-call]
        done = sweep(asked, tmp_path / "r", cluster=cluster.scheduler_address)
    assert (done.done, done.failed, done.workers) == (2, 0, 1)


@pytest.mark.thorough
def test_two_thousand_cells_and_three_kills(tmp_path: Path) -> None:
    """All there, each once, equal to the same sweep undisturbed; a worker's memory does not grow."""
    for count in range(1, 5):
        record(tmp_path / f"{count}.csv", readers(count, each=40))
    asked = {
        "workloads": str(tmp_path / "*.csv"), "drives": ["barracuda-80g", "constant:2"], "seeds": 25,
        "schedulers": ["mq-deadline", "bfq", "as", "none"],
        "tunables": {"bfq": {"low_latency": [0, 1], "slice_idle": [0, 8]}, "as": {"antic_expire": [0, 2, 6, 10]}},
    }  # fmt: skip
    whole = headwaiter.sweep(asked, tmp_path / "whole", workers=2)
    found, killer = killed_sweep(asked, tmp_path / "r", [3, 12, 20])
    assert len(whole) == 2000
    assert len(killer.killed) == 3
    assert_frame_equal(found, whole)
    assert sorted(pd.read_parquet(tmp_path / "r")["key"]) == sorted(whole["key"])
    assert whole["error"].isna().all()
    grown = [size for size in killer.memory if size > 60e6]
    first, last = grown[: len(grown) // 2], grown[len(grown) // 2 :]
    assert max(last) < 1.3 * max(first)


def test_a_variant_travels(trace: Path) -> None:
    """To a worker, with its settings."""
    import pickle  # noqa: PLC0415

    cells = cells_of(read_sweep({"workloads": str(trace), "drives": ["auto", "wd-re-4tb"], "schedulers": "bfq:low_latency=0"}))
    assert pickle.loads(pickle.dumps(cells[0].variant)) == parse_variant("bfq:low_latency=0")
    assert pickle.loads(pickle.dumps(cells)) == cells
