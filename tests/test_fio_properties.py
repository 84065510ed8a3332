# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What must hold for any job: its I/O lies where it may, adds up to what was asked for, and is the same every time."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from fioload import SECTORS, load

from headwaiter.base.errors import Problem
from headwaiter.engine.sim import ConstantDrive, Options, Outcome, simulate
from headwaiter.fio import JobLoad
from headwaiter.fio.options import known

RELAXED = settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DRIVE = ConstantDrive(200_000, SECTORS)


@st.composite
def jobs(draw: st.DrawFn, direct: bool) -> str:
    """The options of a job that ends in reasonable time."""
    block = draw(st.sampled_from([512, 1024, 4096, 12288, 65536]))
    size = max(4096, block * draw(st.integers(2, 60))) + draw(st.sampled_from([0, 0, 512, block // 2]))
    lines = [
        f"direct={int(direct)}",
        f"rw={draw(st.sampled_from(['read', 'write', 'randread', 'randwrite', 'rw', 'randrw']))}",
        f"size={size}",
        f"numjobs={draw(st.integers(1, 3))}",
        f"offset={512 * draw(st.integers(0, 999))}",
    ]
    lines.append(f"bsrange={block}-{block * draw(st.integers(1, 5))}" if draw(st.booleans()) else f"bs={block}")
    options = [
        "norandommap",
        "loops=3",
        f"io_size={size * 2 + 1}",
        "number_ios=7",
        "thinktime=50us\nthinktime_blocks=3",
        "rwmixread=20",
        "nrfiles=2",
        "nrfiles=2\nfile_service_type=random",
        "rate_iops=2000",
        "percentage_random=50",
        "runtime=20ms",
        "time_based\nruntime=20ms",
        "rw_sequencer=identical",
        "startdelay=5ms",
        "stonewall",
        "randrepeat=0",
        "sync=1",
        "offset_increment=1m",
        "ba=2k",
        f"filesize={size + (4 << 20)}",
        "prioclass=2",
    ]
    options += ["ioengine=libaio\niodepth=7"] if direct else ["fsync=3", "end_fsync=1", "fadvise_hint=0"]
    lines += draw(st.lists(st.sampled_from(options), max_size=5, unique=True))
    return "\n".join(lines) + "\n"


def outcome(jobs: JobLoad, sched: str = "noop", **options: Any) -> Outcome:
    return simulate(sched, DRIVE, jobs, options=Options(record=True, merging=False, **options))


def regions(jobs: JobLoad, task: int) -> list[tuple[int, int]]:
    """Bytes that a task's process may touch."""
    return [(f["base"] + f["offset"], f["base"] + f["offset"] + f["span"]) for f in jobs.jobs[task].files]


def promised(job: Any) -> tuple[int, int]:
    """Bytes that a direct job issues at least and at most, as far as that can be said."""
    f = job.fields
    used = [i for i in (0, 1) if f["directions"] >> i & 1]
    largest, block = max(f["max_bytes"][i] for i in used), max(f["min_bytes"][i] for i in used)
    most = max(f["io_size"] or f["size"], f["size"]) * f["loops"] + largest
    # A pass may end early: at the end of one direction's file, or by time or number.
    early = f["runtime_ns"] or f["number_ios"] or f["io_size"] or (f["directions"] == 3 and not f["random"])
    early = early or f["random_percent"][0] < 100
    least = 0 if early else min(f["size"], sum(x["span"] // block * block for x in job.files))
    return least, most


@RELAXED
@given(text=st.lists(jobs(direct=True), min_size=1, max_size=3), seed=st.integers(0, 1 << 40))
def test_direct_jobs(tmp_path: Path, text: list[str], seed: int) -> None:
    work = load(tmp_path, "".join(f"[j{i}]\n{t}" for i, t in enumerate(text)))
    o = outcome(work, seed=seed)
    assert o.totals["issued"] == o.totals["completed"] == len(o.rows.op)
    begin, end = o.rows.sector.astype(np.int64) * 512, (o.rows.sector + o.rows.sectors).astype(np.int64) * 512
    for k, job in enumerate(work.jobs):
        f, own = job.fields, np.flatnonzero(o.rows.task == k)
        assert len(own) or f["runtime_ns"]
        inside = np.zeros(len(own), bool)
        for low, high in regions(work, k):
            inside |= (begin[own] >= low) & (end[own] <= high)
        assert inside.all()
        for d in (0, 1):
            sizes = (end - begin)[own][o.rows.op[own] == d]
            assert not len(sizes) or f["directions"] >> d & 1
            assert (sizes % f["min_bytes"][d] == 0).all()
            assert (sizes <= f["max_bytes"][d]).all()
        least, most = promised(job)
        moved = int((end - begin)[own].sum())
        assert least <= moved
        assert f["time_based"] or moved <= most
        if f["number_ios"] and not f["time_based"]:
            assert len(own) <= f["number_ios"] * f["loops"]
        # Never more in flight than the depth allows.
        times = sorted([(int(t), 1) for t in o.rows.issue_ns[own]] + [(int(t), -1) for t in o.rows.complete_ns[own]])
        flight = np.cumsum([step for _, step in times])
        assert not len(flight) or flight.max() <= f["depth"]
        assert (o.rows.issue_ns[own] >= f["start_min_ns"]).all()
        if f["runtime_ns"] and len(own):
            assert o.rows.issue_ns[own].max() - o.rows.issue_ns[own].min() <= f["runtime_ns"]
    again = outcome(work, seed=seed)
    assert np.array_equal(o.rows.sector, again.rows.sector)
    assert np.array_equal(o.rows.complete_ns, again.rows.complete_ns)


@RELAXED
@given(text=jobs(direct=False), seed=st.integers(0, 1 << 40))
def test_buffered_jobs(tmp_path: Path, text: str, seed: int) -> None:
    work = load(tmp_path, f"[j]\n{text}")
    o = outcome(work, seed=seed)
    assert o.totals["issued"] == o.totals["completed"] == len(o.rows.op)
    begin, end = o.rows.sector.astype(np.int64) * 512, (o.rows.sector + o.rows.sectors).astype(np.int64) * 512
    inside = np.zeros(len(o.rows.op), bool)
    for k in range(len(work.jobs)):
        for f in work.jobs[k].files:
            # Whole pages, and reads may run ahead to the end of the file.
            inside |= (begin >= (f["base"] + f["offset"]) // 4096 * 4096) & (end <= f["base"] + -(-f["size"] // 4096) * 4096)
    assert inside.all()
    assert (begin % 4096 == 0).all()
    again = outcome(work, seed=seed)
    assert np.array_equal(o.rows.sector, again.rows.sector)
    assert np.array_equal(o.rows.complete_ns, again.rows.complete_ns)


@pytest.mark.parametrize("sched", ["deadline", "as", "cas", "cfq-slice", "mq-deadline", "bfq"])
def test_a_random_pass_is_complete_under_any_scheduler(tmp_path: Path, sched: str) -> None:
    work = load(
        tmp_path,
        "[global]\nsize=4m\nrw=randrw\nbsrange=4k-32k\n[a]\ndirect=1\nioengine=io_uring\niodepth=16\n"
        "[b]\ndirect=1\nthinktime=300us\n[c]\nrw=randwrite\n",
    )
    o = outcome(work, sched, seed=3)
    for k in (0, 1):
        own = o.rows.task == k
        covered = sorted(zip(o.rows.sector[own].tolist(), (o.rows.sector + o.rows.sectors)[own].tolist(), strict=True))
        assert covered[-1][1] - covered[0][0] == (4 << 20) // 512
        assert all(a[1] == b[0] for a, b in itertools.pairwise(covered))
    assert int(o.rows.sectors[o.rows.task == 3].sum()) == (4 << 20) // 512


WORDS = st.one_of(
    st.text(alphabet="[]=;#${}:,%- \n\t0123456789kmgabcrw/\\", max_size=60),
    st.builds(
        lambda o, v: f"{o}={v}\n",
        st.sampled_from(sorted(known())),
        st.sampled_from(
            [
                "0",
                "1",
                "4k",
                "1m",
                "-1",
                "50%",
                "",
                "x",
                "1:2",
                "4k,8k",
                "99999999999999999999",
                "10s",
                "randrw",
                "libaio",
                "/dev/sda",
                "a:b",
                "none",
            ]
        ),
    ),
    st.sampled_from(["[global]\n", "[a]\n", "[b]\n", "size=1m\n", "direct=1\n"]),
)


@settings(RELAXED, max_examples=300)
@given(parts=st.lists(WORDS, max_size=12))
def test_any_text_is_a_load_or_a_problem(tmp_path: Path, parts: list[str]) -> None:
    try:
        work = load(tmp_path, "".join(parts))
    except Problem as e:
        assert "\n" not in str(e)
        assert "test.fio" in str(e)
    else:
        assert len(work.jobs) <= len(work.tasks)
