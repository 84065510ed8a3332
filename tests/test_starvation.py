# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who starves under which scheduler, as the pages of docs/schedulers/ say under "Longest wait".

tests/c/starvation.c searches for the worst load; here are the shapes that it found, cut down to what matters.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import ConstantDrive, Drive, Forest, Options, Outcome, Task, simulate

MS = 1_000_000


@dataclass
class Load:
    """Rows of a closed load, built chain by chain; on `barracuda-80g` where no other drive is named."""

    rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    tasks: int = 0

    def chain(
        self,
        sectors: list[int],
        *,
        size: int = 8,
        think_us: int | list[int] = 0,
        start_ms: int = 0,
        asynchronous: bool = False,
        lives: int = 0,
        same_task: bool = False,
    ) -> int:
        """I/Os at `sectors`, each after the one before, by one task, or `lives` each by one; returns the (last) task.

        `same_task`: one more chain of the task of the chain before.
        """
        for k, sector in enumerate(sectors):
            if not (same_task or (k % lives if lives else k)):
                self.tasks += 1
            think = think_us if isinstance(think_us, int) else think_us[k]
            self.rows.append(
                (
                    start_ms * MS,
                    len(self.rows) - 1 if k else -1,
                    think * 1000,
                    self.tasks - 1,
                    Op.WRITE if asynchronous else Op.READ,
                    0 if asynchronous else SYNC,
                    sector,
                )
            )
            self.sizes.append(size)
        return self.tasks - 1

    drive: Drive | None = None

    def run(self, scheduler: str, depth: int = 1, **tunables: int) -> Outcome:
        """The outcome, with tasks that exit after their last I/O. Nothing merges."""
        time, parent, delay, task, op, flags, sector = (np.array(c, np.int64) for c in zip(*self.rows, strict=True))
        forest = Forest(
            tasks=[Task(k, f"t{k}", k) for k in range(self.tasks)],
            time_ns=time,
            parent=parent,
            delay_ns=delay,
            task=task.astype(np.uint32),
            op=op.astype(np.uint8),
            flags=flags.astype(np.uint8),
            sector=sector.astype(np.uint64),
            sectors=np.array(self.sizes, np.uint32),
            ioprio=np.zeros(len(task), np.uint16),
        )
        drive = self.drive or find_drive("barracuda-80g")
        return simulate(scheduler, drive, forest, tunables, Options(record=True, queue_depth=depth, merging=False))


def longest_s(out: Outcome, task: int) -> float:
    """The longest wait of a task's I/Os."""
    mine = out.rows.task == task
    return float((out.rows.complete_ns[mine] - out.rows.issue_ns[mine]).max()) / 1e9


def elapsed_s(out: Outcome) -> float:
    """When the last I/O was done."""
    return float(out.rows.complete_ns.max()) / 1e9


@pytest.mark.parametrize("scheduler", ["as", "as-95", "cas", "was", "was-online"])
def test_as_forgets_the_oldest_write_of_a_deep_queue(scheduler: str) -> None:
    """Looking for an overdue write uses up the one look in an interval; then the batch awaits the reads in the drive."""
    longest = {}
    for depth in (1, 2):
        load = Load(drive=ConstantDrive(5 * MS))
        rng = np.random.default_rng(1)
        for reader in range(30):
            load.chain(
                (rng.integers(0, 1 << 20, 300) * 8 + reader * (1 << 22)).tolist(),
                think_us=rng.integers(100, 40_000, 300).tolist(),
            )
        for k in range(32):
            load.chain((100_000_000 + rng.integers(0, 60_000, 60) * 8).tolist(), asynchronous=True, same_task=k > 0)
        victim = load.chain([60_000_000], start_ms=2000, asynchronous=True)
        out = load.run(scheduler, depth)
        longest[depth] = longest_s(out, victim), elapsed_s(out)
    assert longest[1][0] < 5, longest
    assert longest[2][0] > 15, longest


def test_as_share_prefers_those_who_are_always_new() -> None:
    """Each begins at the slowest clock, that of the one who waits, and reads nearer to the head."""
    load = Load()
    for chain in range(2):
        load.chain([chain * 2_000_000 + 256 * k for k in range(1500)], size=256, think_us=1000, lives=1)
    victim = load.chain([120_000_000], start_ms=200)
    starved = load.run("as-share")
    assert longest_s(starved, victim) > 10
    assert longest_s(load.run("as-seek"), victim) < 1
    # The same work by processes that stay: their clocks advance.
    load = Load()
    for chain in range(2):
        load.chain([chain * 2_000_000 + 256 * k for k in range(1500)], size=256, think_us=1000)
    victim = load.chain([120_000_000], start_ms=200)
    assert longest_s(load.run("as-share"), victim) < 1


def test_cfq_slice_has_no_time_for_writes_beside_reads_in_the_drive() -> None:
    """An asynchronous request goes out only while the drive has no synchronous one, and gives way to any that comes."""
    load = Load()
    rng = np.random.default_rng(1)
    for region in (0, 60_000_000):
        load.chain((region + rng.integers(0, 1 << 19, 1500) * 8).tolist(), think_us=rng.integers(100, 20_000, 1500).tolist())
    load.chain([100_000_000 + 8 * k for k in range(15_000)], think_us=500, lives=5)
    for k in range(16):
        writer = load.chain((80_000_000 + rng.integers(0, 1 << 19, 20) * 8).tolist(), asynchronous=True, same_task=k > 0)
    assert longest_s(load.run("cfq-slice", 32), writer) > 10
    assert longest_s(load.run("cfq-slice", 1), writer) < 5
    assert longest_s(load.run("mq-deadline", 32), writer) < 5


def beside_a_stream(start_ms: int) -> tuple[Load, int]:
    """A stream of 128 KiB, four at a time, and a small reader."""
    load = Load()
    rng = np.random.default_rng(1)
    for k in range(4):
        load.chain([10_000_000 + 256 * (4 * i + k) for i in range(1500)], size=256, think_us=50, same_task=k > 0)
    return load, load.chain((40_000_000 + rng.integers(0, 1 << 20, 300) * 8).tolist(), think_us=100, start_ms=start_ms)


def test_bfq_starves_who_starts_together_with_a_stream() -> None:
    """Queues that appear together are merged later; in one queue the nearest goes first."""
    load, other = beside_a_stream(0)
    assert longest_s(load.run("bfq"), other) > 10
    assert longest_s(load.run("bfq", low_latency=0), other) < 1
    load, other = beside_a_stream(300)
    assert longest_s(load.run("bfq"), other) < 1


def test_bfq_starves_a_reader_beside_two_in_step() -> None:
    """The two read the same places, 50 ms apart, and there is always a request of theirs."""
    load = Load()
    rng = np.random.default_rng(1)
    for k in range(2):
        load.chain([8 * i for i in range(3000)], think_us=100, start_ms=50 * k)
    other = load.chain((40_000_000 + rng.integers(0, 1 << 20, 3000) * 8).tolist(), think_us=100)
    assert longest_s(load.run("bfq", low_latency=0), other) > 10
    assert longest_s(load.run("mq-deadline"), other) < 1


def test_maitre_lets_write_back_owe_little() -> None:
    """A drive with a cache takes writes sooner than is believed; what is charged for that is owed up to a second only."""
    load = Load(drive=ConstantDrive(5 * MS))
    rng = np.random.default_rng(1)
    load.chain((rng.integers(0, 1 << 20, 40) * 8).tolist())  # from these the drive seems to be slow
    victim = load.chain([100_000_000 + 1024 * k for k in range(12_000)], size=1024, start_ms=1000, asynchronous=True)
    for region in (20_000_000, 40_000_000):
        load.chain((region + rng.integers(0, 1 << 20, 12_000) * 8).tolist(), start_ms=55_000)
    out = load.run("maitre")
    assert elapsed_s(out) > 170
    assert longest_s(out, victim) < 20


def test_maitre_leaves_write_back_a_fortieth_beside_many_readers() -> None:
    """Those that wait are as many as there are readers, so that the share of one flow would serve them once in 20 s."""
    load = Load(drive=ConstantDrive(5 * MS))
    rng = np.random.default_rng(1)
    for reader in range(24):
        load.chain((5_000_000 * reader + rng.integers(0, 1 << 19, 400) * 8).tolist())
    for k in range(24):
        writer = load.chain((150_000_000 + rng.integers(0, 1 << 19, 8) * 8).tolist(), asynchronous=True, same_task=k > 0)
    out = load.run("maitre")
    assert elapsed_s(out) > 45
    assert longest_s(out, writer) < 10


def test_maitre_serves_overdue_write_back_by_age() -> None:
    """Two that write upwards are always next, beside 400 writes below, of which one goes every 100 ms until they are overdue."""
    load = Load(drive=ConstantDrive(5 * MS))
    for chain in range(2):
        load.chain([100_000_000 + 8 * (2 * k + chain) for k in range(5_000)], asynchronous=True)
    victims = [load.chain([8_000 * (400 - k)], start_ms=10, asynchronous=True) for k in range(400)]
    out = load.run("maitre")
    assert elapsed_s(out) > 50
    longest = max(longest_s(out, victim) for victim in victims)
    assert 20 < longest < 25
