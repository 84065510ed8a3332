# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long a machine takes from a request to its device: told from recordings, and used in replays of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import Op
from headwaiter.engine.processor import MEASURED, Time
from headwaiter.engine.sim import I64, ConstantDrive
from headwaiter.judge.conditions import RunConditions
from headwaiter.study.handover import FEWEST, LONGEST_NS, Handover, handover
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace

US, MS = 1000, 1_000_000
PAGES = (1, 4, 32, 64)
MANY = 40 * FEWEST


def machine(
    arrive_ns: I64,
    *,
    fixed_us: float = 20,
    page_us: float = 1.5,
    write_page_us: float = 0.0,
    restart_us: float = 0.0,
    idles_ns: int = 0,
    writes: float = 0.0,
    pages: tuple[int, ...] = PAGES,
) -> Trace:
    """A recording of a disk with one command that serves in order of arrival.

    It takes 4 ms for a request. idles_ns: its scheduler leaves it idle for so long after each twentieth.
    """
    dice = np.random.default_rng(5)
    n = len(arrive_ns)
    size, is_write = dice.choice(pages, n), dice.random(n) < writes
    issue, done = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    for i in range(n):
        way = fixed_us + (page_us + is_write[i] * write_page_us) * size[i]
        waits = i > 0 and done[i - 1] > arrive_ns[i]
        begin = done[i - 1] + restart_us * US + (idles_ns if i % 20 == 0 else 0) if waits else arrive_ns[i]
        issue[i] = begin + way * US + dice.integers(-200, 200)
        done[i] = issue[i] + 4 * MS
    return make_trace(
        source="t", format="t", time_ns=arrive_ns, sector=dice.permutation(n) * 1024, sectors=8 * size, issue_ns=issue,
        complete_ns=done, op=np.where(is_write, Op.WRITE, Op.READ), task_id=np.full(n, 7), names={7: "a"},
    )  # fmt: skip


def busy(n: int = MANY) -> I64:
    """Always another that waits."""
    return np.arange(n, dtype=np.int64) * 4 * MS - np.arange(n) // 2 * 10 * US + MS


def idle(n: int = MANY) -> I64:
    """Each comes long after the one before it is done."""
    return np.arange(n, dtype=np.int64) * 9 * MS


def mixed(n: int = MANY) -> I64:
    """Each second one waits for the one before it."""
    return np.arange(n, dtype=np.int64) // 2 * 20 * MS + np.arange(n) % 2 * MS


def told(trace: Trace) -> tuple[float, float, float, float]:
    """All times in us."""
    found = handover(trace)
    assert found
    return tuple(ns / US for ns in (found.dispatch.ns, found.dispatch.page_ns, found.write_page_ns, found.restart_ns))  # type: ignore[return-value]


@pytest.mark.parametrize("arrive_ns", [busy(), idle()], ids=["busy", "idle"])
def test_a_time_for_a_request_and_one_for_its_pages(arrive_ns: I64) -> None:
    assert told(machine(arrive_ns)) == pytest.approx((20, 1.5, 0, 0), abs=0.1)


def test_a_page_of_a_write_may_take_more() -> None:
    """As where it is copied for a device that cannot reach all of the memory."""
    assert told(machine(busy(), writes=0.4, write_page_us=4)) == pytest.approx((20, 1.5, 4, 0), abs=0.1)


def test_only_writes_tell_of_their_pages_what_reads_would() -> None:
    assert told(machine(busy(), writes=1.0, write_page_us=4)) == pytest.approx((20, 5.5, 0, 0), abs=0.1)


def test_after_a_completion_it_takes_longer() -> None:
    assert told(machine(mixed(), fixed_us=7, restart_us=15)) == pytest.approx((7, 1.5, 0, 15), abs=0.1)


def test_a_disk_that_is_left_idle_is_no_slow_machine() -> None:
    """An anticipating scheduler waits for a process while others wait for the disk."""
    assert told(machine(busy(), idles_ns=3 * LONGEST_NS)) == pytest.approx((20, 1.5, 0, 0), abs=0.2)


def test_requests_of_one_size_tell_one_time() -> None:
    """How much of it is for their pages is what it usually is."""
    found = handover(machine(busy(), pages=(8,)))
    assert found
    assert found.dispatch.page_ns == MEASURED.dispatch.page_ns
    assert found.dispatch.ns + 8 * found.dispatch.page_ns == pytest.approx(32 * US, abs=100)


def test_no_time_is_negative() -> None:
    found = handover(machine(idle(), fixed_us=0, page_us=3))
    assert found
    assert found.dispatch.ns < US
    assert found.dispatch.page_ns == pytest.approx(3 * US, rel=0.05)


def test_a_recording_that_tells_too_little_tells_nothing() -> None:
    whole = machine(busy())
    assert handover(machine(busy(FEWEST))) is None
    assert handover(dataclasses.replace(whole, issue_ns=None)) is None
    # A format that tells one time for both: where the device was never full, it tells nothing.
    same = machine(idle())
    assert handover(dataclasses.replace(same, time_ns=same.issue_ns)) is None  # type: ignore[arg-type]


def test_merged_requests_are_one() -> None:
    """Their pages count together, and the last of them arrives last."""
    one = machine(idle(), pages=(8, 16))
    n = len(one)
    parts = np.repeat(np.arange(n), 2)
    half = one.sectors[parts] // 2
    assert one.issue_ns is not None
    split = make_trace(
        source="t", format="t", time_ns=one.time_ns[parts] - np.tile([5 * US, 0], n) + 5 * US, sectors=half,
        sector=one.sector[parts] + np.tile([0, 1], n) * half, issue_ns=one.issue_ns[parts] + 5 * US,
        complete_ns=one.complete_ns[parts] + 5 * US, op=one.op[parts], task_id=np.full(2 * n, 7), names={7: "a"},
    )  # fmt: skip
    assert told(split) == pytest.approx(told(one), abs=0.2)


def test_replays_take_what_was_recorded() -> None:
    """Unless somebody says otherwise, or the processors are modelled anyway."""
    trace, disk = machine(mixed(), fixed_us=7, restart_us=15, writes=0.4, write_page_us=4), open_drive("barracuda-80g")
    found = RunConditions().options(disk, trace)
    assert (found.dispatch_ns / US, found.restart_ns / US) == pytest.approx((7, 15), abs=0.1)
    assert (found.dispatch_page_ns / US, found.dispatch_write_page_ns / US) == pytest.approx((1.5, 4), abs=0.1)
    given = RunConditions(dispatch_time="9+2").options(disk, trace)
    assert (given.dispatch_ns, given.dispatch_page_ns, given.restart_ns, given.dispatch_write_page_ns) == (9000, 2000, 0, 0)
    usual = RunConditions().options(disk)
    assert (Time(usual.dispatch_ns, usual.dispatch_page_ns), usual.restart_ns) == (MEASURED.dispatch, 0)
    flash = open_drive("nvme-ssd")
    assert RunConditions().options(flash, trace) == dataclasses.replace(
        RunConditions().options(flash, dataclasses.replace(trace, issue_ns=None))
    )


def test_a_time_that_is_none_is_told() -> None:
    """Also an empty one, which is no way to ask for the recorded one."""
    with pytest.raises(Problem, match="dispatch_time"):
        RunConditions(dispatch_time="").options(open_drive("barracuda-80g"), machine(busy()))


def test_it_is_worked_out_once_for_a_recording() -> None:
    """A comparison asks for each of its variants."""
    trace = machine(busy())
    assert handover(trace) is handover(trace)


def test_it_says_what_it_is_put_into() -> None:
    options = RunConditions().options(ConstantDrive(5 * MS))
    assert Handover(Time(1, 2), 3, 4).apply(options) == dataclasses.replace(
        options, dispatch_ns=1, dispatch_page_ns=2, dispatch_write_page_ns=3, restart_ns=4
    )


@pytest.mark.parametrize("name", ["example.blktrace.xz", "nas.blktrace.xz"])
def test_bundled_recordings_tell_it(name: str) -> None:
    """Both are of disks with one command, in virtual machines of another speed than the default's."""
    from headwaiter.base.paths import WORKLOADS  # noqa: PLC0415
    from headwaiter.traces import load  # noqa: PLC0415

    found = handover(load(Path(WORKLOADS / name)))
    assert found
    assert 10 * US < found.dispatch.ns < 30 * US
