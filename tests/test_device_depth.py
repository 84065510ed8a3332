# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How many requests the recorded device takes at once, by what sysfs said and what was seen; and the drive that is simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headwaiter.drives.enlarge import taking
from headwaiter.drives.profile import find_drive
from headwaiter.engine.constants import SYNC, Op
from headwaiter.engine.sim import simulate
from headwaiter.judge.conditions import RunConditions
from headwaiter.judge.levers import _numbers
from headwaiter.study.device_depth import DeviceDepth, as_recorded, device_depth
from headwaiter.study.drive_fit import at_drive, best_fit
from headwaiter.study.variants import parse_variant
from headwaiter.study.workload import open_forest
from headwaiter.traces import Trace
from headwaiter.traces.making import make_trace
from headwaiter.traces.recording import RecordedDisk, Recording

MS = 1_000_000


def _depth(trace: Trace) -> DeviceDepth | None:
    return device_depth(trace, at_drive(trace))


def _recorded(at_once: int, in_device: int, scheduler: str, op: Op = Op.READ, requests: int = 400) -> Trace:
    """A program that has so many requests at once, of which the device is given only so many: 8 ms each, one after another."""
    done = np.arange(1, requests + 1) * 8 * MS
    arrive = np.concatenate([np.zeros(at_once, np.int64), done[: requests - at_once]])
    issue = np.concatenate([np.zeros(in_device, np.int64), done[: requests - in_device]])
    made = make_trace(
        source="t", format="recording", time_ns=arrive, issue_ns=np.maximum(arrive, issue), complete_ns=done,
        task_id=np.ones(requests, np.int64), sector=np.arange(requests) * 999_983 % 100_000_000,
        sectors=np.full(requests, 8),        op=np.full(requests, op), flags=np.full(requests, SYNC),
    )  # fmt: skip
    return replace(made, scheduler=scheduler)


@pytest.mark.parametrize("scheduler", ["mq-deadline", "none"])
def test_a_device_that_reads_wait_for_is_full(scheduler: str) -> None:
    assert _depth(_recorded(16, 4, scheduler)) == DeviceDepth(4, whole=True)


def test_a_scheduler_may_hold_requests_back() -> None:
    assert _depth(_recorded(16, 4, "bfq")) == DeviceDepth(4, whole=False)


def test_writes_may_wait_before_they_meet_a_scheduler() -> None:
    assert _depth(_recorded(16, 4, "mq-deadline", Op.WRITE)) == DeviceDepth(4, whole=False)


@pytest.mark.parametrize("drive", ["wd-re-4tb", "samsung-980-pro"])
def test_a_device_may_take_fewer_than_it_has_tags(drive: str) -> None:
    """For a request takes several places of its ring, and reads were seen to wait while only so many were in it."""
    full = _depth(replace(_recorded(16, 4, "mq-deadline"), device_depth=128))
    assert full == DeviceDepth(4, whole=True, fewer=True)
    assert as_recorded(find_drive(drive), full).facts[1] == 4
    assert _depth(replace(_recorded(16, 4, "bfq"), device_depth=128)) == DeviceDepth(128, whole=True), "bfq may hold them back"
    assert _depth(replace(_recorded(3, 4, "mq-deadline"), device_depth=128)) == DeviceDepth(128, whole=True), "nothing waits"
    assert _depth(replace(_recorded(16, 2, "mq-deadline"), device_depth=128)) == DeviceDepth(128, whole=True), "a busy processor"
    assert _depth(replace(_recorded(16, 7, "mq-deadline"), device_depth=10)) == DeviceDepth(10, whole=True), "nearly all"


def test_what_sysfs_said_counts_but_for_what_was_seen() -> None:
    seen = _recorded(16, 4, "bfq")
    assert _depth(replace(seen, device_depth=32)) == DeviceDepth(32, whole=True)
    assert _depth(replace(seen, device_depth=2)) == DeviceDepth(4, whole=True)
    unseen = replace(seen, issue_ns=None)
    assert _depth(unseen) is None
    assert _depth(replace(unseen, device_depth=32)) == DeviceDepth(32, whole=True)


def _of(kind: str, in_force: str, number: str, queue_depth: str = "") -> int | None:
    facts = {"kind": kind} | ({"queue_depth": queue_depth} if queue_depth else {})
    settings = {"scheduler": in_force, "nr_requests": number}
    return Recording("tracefs", "6.12", (RecordedDisk("sda", "8,0", facts, settings),), 0, 1, "", 0, ()).depth()


def test_sysfs_tells_it_of_scsi_and_of_what_has_tags_alone() -> None:
    assert _of("scsi", "[none] bfq", "256", "31") == 31
    assert _of("scsi", "none [bfq]", "64") is None, "of an archive that lacks the file"
    assert _of("loop", "[none] bfq", "128") == 128
    assert _of("vd", "none [bfq]", "256") == 128 and _of("vd", "none [bfq]", "64") == 32
    assert _of("loop", "none [bfq]", "1024") == 128, "more than twice the tags"
    assert _of("loop", "none", "") is None


@pytest.mark.parametrize(("text", "known", "told"), [("1", True, 1), ("0", False, 2), ("", None, 0)])
def test_schedulers_are_told_what_the_recorded_kernel_took_the_disk_for(text: str, known: bool | None, told: int) -> None:
    """Each virtio disk is one that rotates: cfq-slice idles there as it does on platters, whatever is behind it."""
    disk = RecordedDisk("vda", "254,0", {"kind": "vd"}, {"rotational": text} if text else {})
    assert Recording("tracefs", "6.12", (disk,), 0, 1, "", 0, ()).rotational() is known
    trace = replace(_recorded(16, 16, "bfq"), rotational=known)
    flash = find_drive("samsung-980-pro")
    ((variant, options),) = RunConditions().runs([parse_variant("cfq-slice")], flash, trace)
    assert options.told_rotational == told
    both = replace(trace, task=np.arange(len(trace), dtype=trace.task.dtype) % 2, tasks=(trace.tasks[0],) * 2)
    ran = simulate(variant.scheduler, flash, open_forest(both), variant.settings, options)
    assert any(ran.totals[one] for one in ("a_success", "a_fail", "a_other")) is (told == 1)


def test_the_drive_takes_as_many_as_the_device_did() -> None:
    one, queued, ssd = (find_drive(name) for name in ("barracuda-80g", "wd-re-4tb", "sata-ssd"))
    many = taking(one, 128)
    assert many.facts == (one.sectors, 128, True) and many.data["queue"]["policy"] == "fifo", "nothing sorts before such a disk"
    assert taking(queued, 64).facts[1] == 64 and taking(queued, 64).data["queue"].get("policy") != "fifo"
    assert taking(one, 1) is one and taking(one, 100_000) is one
    assert as_recorded(one, None) is one and as_recorded(ssd, DeviceDepth(4, whole=True)) is ssd
    assert as_recorded(queued, DeviceDepth(4, whole=False)) is queued
    assert as_recorded(queued, DeviceDepth(4, whole=True)).facts[1] == 4


def test_the_drive_that_explains_a_recording_has_its_depth() -> None:
    found = best_fit(replace(_recorded(16, 16, "none"), device_depth=128))
    assert found is not None and found[0].name.endswith(", taking 128 requests")


def test_fewer_requests_are_tried_where_a_disk_takes_many() -> None:
    assert _numbers(256, 1, under_none=False, rotational=True) == [64, 1024]
    assert _numbers(256, 128, under_none=False, rotational=True) == [8, 32, 64, 1024]
    assert _numbers(128, 128, under_none=True, rotational=True) == [4, 16]
    assert _numbers(1023, 1023, under_none=True, rotational=False) == []
