# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs of schedulers as a kernel has them: what it holds and takes ahead, and that it knows nothing of the drive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.policy_tables import Cells
from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Drive, Forest, Options, Task, simulate
from headwaiter.study.variants import Variant
from headwaiter.traces import Trace

POSITIONS = "positions"
"""The table of positioning times, which every scheduler has."""
_UNTOLD: Cells = np.empty((0, 2), np.int64)


def untold(variant: Variant) -> Variant:
    """Without the drive's positioning times, which the simulator tells: a kernel's scheduler has only those that were written."""
    return replace(variant, settings={POSITIONS: _UNTOLD, **variant.settings})


WBT_PER_COMMAND = 2
"""wbt takes its measure by so many requests for each command of the device."""


def kernel_options(options: Options, scheduler: str, depth: int, recorded: str | None = None) -> Options:
    """blk-mq without a scheduler has no more requests than the device takes; with one of its own it takes one request ahead.

    recorded: the scheduler that a recording was made under, if it is known. What was recorded where write-back is throttled comes
    throttled: each write follows the completion that made room for it. Only what comes from elsewhere is throttled here.
    """
    if scheduler == "none":
        options = replace(options, nr_requests=depth)
    if recorded and find(recorded).is_unthrottled:
        options = replace(options, wbt_depth=WBT_PER_COMMAND * depth)
    return replace(options, pull_ahead=find(scheduler).is_model)


def recorded_options(options: Options, trace: Trace) -> Options:
    """With what the recording machine had, as far as it matters: a single processor is there for one task at a time.

    And with what its kernel took the disk for.
    """
    told = {None: 0, True: 1, False: 2}[trace.rotational]
    return replace(options, one_processor=options.one_processor or trace.processors == 1, told_rotational=told)


def depth_of(drive: Drive, options: Options) -> int:
    """Return how many requests a drive takes at once."""
    one = np.zeros(1, np.int64)
    load = Forest(
        tasks=[Task(0, "", 0)],
        time_ns=one,
        parent=one - 1,
        delay_ns=one,
        task=one.astype(np.uint32),
        op=np.full(1, Op.READ, np.uint8),
        flags=np.full(1, SYNC, np.uint8),
        sector=one.astype(np.uint64),
        sectors=np.ones(1, np.uint32),
        ioprio=one.astype(np.uint16),
    )
    return int(simulate("noop", drive, load, options=options).totals["queue_depth"])
