# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every I/O is accounted for: issued, completed and reported are the same number, or the run ends in an error."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_properties import forest

from headwaiter.base.errors import Problem
from headwaiter.cli.run import command as run_command
from headwaiter.drives.choose import open_drive
from headwaiter.engine.schedulers import catalogue
from headwaiter.engine.sim import ConstantDrive, Drive, Forest, Options, Task, simulate
from headwaiter.study.results import summarise

MS = 1_000_000
END = 2**63 - 1
DRIVES: list[Drive] = [ConstantDrive(5 * MS), ConstantDrive(1), open_drive("wd-re-4tb"), open_drive("sata-ssd")]


def row(**columns: list[int]) -> Forest:
    """A forest of reads of one task, from the columns that matter."""
    n = len(next(iter(columns.values())))
    full: dict[str, list[int]] = {
        "time_ns": [0] * n,
        "parent": [-1] * n,
        "delay_ns": [0] * n,
        "sector": [8 * i for i in range(n)],
        "sectors": [8] * n,
        **columns,
    }
    return Forest(
        tasks=[Task(1, "t", 0)],
        time_ns=np.array(full["time_ns"], np.int64),
        parent=np.array(full["parent"], np.int64),
        delay_ns=np.array(full["delay_ns"], np.int64),
        task=np.zeros(n, np.uint32),
        op=np.zeros(n, np.uint8),
        flags=np.zeros(n, np.uint8),
        sector=np.array(full["sector"], np.uint64),
        sectors=np.array(full["sectors"], np.uint32),
        ioprio=np.zeros(n, np.uint16),
    )


@st.composite
def tunables(draw: st.DrawFn, scheduler: str) -> dict[str, int]:
    """Any tunable at any value: a third of them, at their ends as often as between."""
    out = {}
    for name, t in catalogue()[scheduler].tunables.items():
        if draw(st.integers(0, 2)) == 0:
            out[name] = draw(st.sampled_from([t.minimum, t.maximum]) | st.integers(t.minimum, t.maximum))
    return out


@st.composite
def options(draw: st.DrawFn) -> Options:
    """Any way to make a run, with requests small enough that I/Os are split."""
    return Options(
        record=True,
        queue_depth=draw(st.sampled_from([0, 1, 2, 32])),
        max_sectors=draw(st.sampled_from([1, 3, 8, 64, 2560])),
        merging=draw(st.booleans()),
        nr_requests=draw(st.sampled_from([0, 1, 3, 64])),
        pull_ahead=draw(st.booleans()),
        dispatch_ns=draw(st.sampled_from([0, 1, 20_000])),
        turnaround_ns=draw(st.sampled_from([0, 10_000])),
        cpus=draw(st.sampled_from([1, 3, 64, 70])),
    )


@pytest.mark.parametrize("scheduler", catalogue())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_trace_any_tunable(scheduler: str, data: st.DataObject) -> None:
    """Every I/O of any trace is reported, with a completion after its issue."""
    n = data.draw(st.integers(1, 60))
    load = forest(data.draw(st.integers(0, 2**32)), n, data.draw(st.integers(1, 9)), data.draw(st.booleans()))
    drive = data.draw(st.sampled_from(DRIVES))
    outcome = simulate(scheduler, drive, load, data.draw(tunables(scheduler)), data.draw(options()))
    result = summarise(outcome)
    assert outcome.totals["issued"] == outcome.totals["completed"] == result.requests == n
    assert sum(t.requests for t in result.tasks or ()) == n
    assert (outcome.rows.complete_ns >= outcome.rows.issue_ns).all()
    assert result.bytes == int(load.sectors.sum()) * 512


@pytest.mark.thorough
@pytest.mark.parametrize("scheduler", catalogue())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_time(scheduler: str, data: st.DataObject) -> None:
    """At any time that a trace can name: all I/Os, or the one error that there is for it."""
    n = data.draw(st.integers(1, 12))
    load = forest(data.draw(st.integers(0, 2**32)), n, 3, data.draw(st.booleans()))
    ns = st.integers(0, END) | st.integers(END - 10**9, END) | st.integers(0, 10**9)
    times = np.array(data.draw(st.lists(ns, min_size=n, max_size=n)), np.int64)
    delays = np.array(data.draw(st.lists(ns, min_size=n, max_size=n)), np.int64)
    service = np.array(data.draw(st.lists(ns, min_size=n, max_size=n)), np.int64)
    load = dataclasses.replace(load, time_ns=times, delay_ns=delays, service_ns=service)
    try:
        outcome = simulate(
            scheduler, data.draw(st.sampled_from(DRIVES)), load, data.draw(tunables(scheduler)), data.draw(options())
        )
    except Problem as e:
        assert "time overflow" in str(e)
        return
    assert outcome.totals["issued"] == outcome.totals["completed"] == n == summarise(outcome).requests


@pytest.mark.parametrize("scheduler", catalogue())
def test_the_clocks_end(scheduler: str) -> None:
    """What completes at the end of the clock is reported; a ns later, the run fails, and says with what."""
    last = row(time_ns=[0, 5 * MS, END - 5 * MS])
    outcome = simulate(scheduler, ConstantDrive(5 * MS), last, options=Options(record=True))
    assert outcome.rows.complete_ns.tolist() == [5 * MS, 10 * MS, END]
    with pytest.raises(Problem, match="the clock ends after 292 years, when 2 of the 3 I/Os issued have completed"):
        simulate(scheduler, ConstantDrive(5 * MS), row(time_ns=[0, 5 * MS, END - 5 * MS + 1]))
    with pytest.raises(Problem, match="time overflow"):
        simulate(scheduler, ConstantDrive(5 * MS), row(parent=[-1, 0, 1], delay_ns=[0, END // 2 + 1, END // 2 + 1]))


def test_think_times_beyond_the_clock(tmp_path: Path) -> None:
    """fio's thinktime=20000d, three times: one line, and no result."""
    job = tmp_path / "j.fio"
    job.write_text("[global]\nfilename=/dev/sdx\ndirect=1\nrw=randread\nnumber_ios=10\nthinktime=20000d\n[a]\n")
    with pytest.raises(Problem, match=r"time overflow.*when (\d+) of the \1 I/Os issued have completed"):
        CliRunner().invoke(run_command, [str(job), "-s", "as"], catch_exceptions=False)


def test_rows_that_wait_for_each_other() -> None:
    """A circle of parents is never issued; that is no run in which nothing was to be done."""
    with pytest.raises(Problem, match="wait for each other"):
        simulate("noop", ConstantDrive(MS), row(parent=[-1, 2, 1]))


def test_an_io_of_2_tib() -> None:
    """An I/O of nearly 2 TiB is one I/O, whatever it is cut into."""
    load = row(sectors=[2**32 - 1], sector=[0])
    outcome = simulate("noop", ConstantDrive(MS), load, options=Options(max_sectors=2**32 - 2, merging=False))
    assert outcome.totals["requests"] == 2
    assert summarise(outcome).bytes == (2**32 - 1) * 512


def test_columns_of_different_lengths() -> None:
    """A short column would be read past its end."""
    load = row(time_ns=[0, 1, 2])
    with pytest.raises(Problem, match="columns differ in length: sector"):
        simulate("noop", ConstantDrive(MS), dataclasses.replace(load, sector=load.sector[:2]))


def test_out_of_memory(tmp_path: Path) -> None:
    """Where there is no memory left, the run fails, in one line; the program does not."""
    job = tmp_path / "j.fio"
    # Which of the 10^11 blocks of this drive were read is what grows.
    job.write_text("[global]\nfilename=/dev/sdx\ndirect=1\nrw=randread\nbs=4k\n[a]\n")
    script = (
        "import resource, sys; import headwaiter.cli.run; from headwaiter.cli import main;"
        f" sys.argv = ['headwaiter', 'run', {str(job)!r}, '-s', 'noop', '-d', 'constant:0.001', '--turnaround', '0'];"
        " used = int(open('/proc/self/statm').read().split()[0]) * 4096;"
        " resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2); main()"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and done.stdout == ""
    announced, *lines = [line for line in done.stderr.splitlines() if "arning" not in line]
    assert announced.startswith("about 140 billion I/Os, about 2.4 days")
    assert len(lines) == 1 and "out of memory" in lines[0]
