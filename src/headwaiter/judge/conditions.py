# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Under which conditions schedulers are run: those of a Linux machine, unless somebody says otherwise.

A field of Conditions says what it is, which option of the command line and which keyword of the Python interface it is (its
name), and what its default means. Options are made from it (cli/_options.py), and so is what the simulator is told (options()).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from headwaiter.base.errors import Problem
from headwaiter.drives.profile import Profile
from headwaiter.engine.hosts import AUTO, MOST_CORES, XEON_10, Host, find_host, here
from headwaiter.engine.processor import MEASURED, Processor, parse_time
from headwaiter.engine.sim import Drive, Options
from headwaiter.study.handover import handover
from headwaiter.study.inkernel import WBT_PER_COMMAND, depth_of, kernel_options, recorded_options, untold
from headwaiter.study.ongoing import Ongoing, going_on
from headwaiter.study.plugs import joined
from headwaiter.study.variants import Variant
from headwaiter.study.windows import WHOLE_IOS, sampled
from headwaiter.study.workload import Workload
from headwaiter.traces import Trace

_LAB_TIMES = ("turnaround", "dispatch_time", "copy_time", "one_processor", "cpus")
"""Conditions that select the lab's model of processors if they are given."""
LEAST_TAGS = 32
MOST_TAGS = 128
"""A host adapter takes so many requests at least, whatever its disk takes; blk-mq counts with so many at most."""


def says(default: Any, help: str, metavar: str = "", low: int = 0, high: int = 0) -> Any:
    """A field with what people must know of it; for a whole number its range."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "low": low, "high": high})


@dataclass(frozen=True)
class RunConditions:
    """All of them. None is what a kernel does of its own."""

    queue_depth: int = says(0, "Queue depth of the device [default: the drive's own].", "N", 0, 1024)
    merging: bool = says(True, "Merge adjacent requests.")
    max_sectors: int = says(2560, "Largest request, in sectors of 512 bytes.", "N", 1, 1 << 20)
    nr_requests: int | None = says(
        None,
        "Most requests at once; further I/O waits in front of the scheduler. 0: no limit [default: as recorded, else as the"
        f" kernel sets it, twice the commands that the host takes, {LEAST_TAGS} to {MOST_TAGS}; under none as many as the device"
        " takes, and never more].",
        "N",
        0,
        1 << 20,
    )
    wbt_depth: int | None = says(
        None,
        "Throttle write-back as Linux does for a device of so many requests, except under bfq."
        " 0: no throttling [default: twice the device's queue depth; none of a recording, whose writes come throttled].",
        "N",
        0,
        1 << 16,
    )
    dirty_bytes: int = says(
        0,
        "Jobs that write through the page cache wait while so much is dirty, as vm.dirty_bytes has it"
        " [default: 200 MiB, as on a machine with 1 GB].",
        "BYTES",
        0,
        1 << 46,
    )
    dirty_background_bytes: int = says(
        0,
        "What is dirty is written back beyond so much, as vm.dirty_background_bytes has it; at most half of the former"
        " [default: 100 MiB].",
        "BYTES",
        0,
        1 << 46,
    )
    pull_ahead: bool = says(
        True, "As blk-mq does under its own schedulers: take one request ahead of a full device, and assign requests as tags."
    )
    settled: bool = says(
        True,
        "The scheduler has been in force for long: bfq knows whether the device takes several requests at once, maitre how long"
        " its longer ways take.",
    )
    positions: bool = says(
        False, "Tell schedulers the drive's positioning times, which a kernel's know only if somebody wrote them."
    )
    host: str = says(
        AUTO,
        "Processors of the machine, and what I/O costs them. lab: a processor for each process, and the times below whatever the"
        " scheduler. auto: on flash this machine's, if it was calibrated, else xeon-10; lab on other drives, and where one of the"
        " times below is given.",
        "auto|lab|xeon-10|FILE",
    )
    cores: int = says(
        0, "Processors of the host [default: of the machine that recorded, if known; else the host's].", "N", 0, MOST_CORES
    )
    turnaround: str = says(
        str(MEASURED.turnaround),
        "Lab host, direct I/O of jobs: processor time of a process before each of its I/Os.",
        "US+US_PER_PAGE",
    )
    dispatch_time: str | None = says(
        None,
        f"Lab host: processor time from a scheduler's decision to the device [default: as recorded, else {MEASURED.dispatch}].",
        "US+US_PER_PAGE",
    )
    copy_time: str = says(
        str(MEASURED.copy),
        "Lab host, jobs: processor time of an I/O through the page cache.",
        "US+US_PER_PAGE",
    )
    one_processor: bool = says(False, "All processes share one processor [default: where the recording machine had one].")
    cpus: int = says(1, "Lab host: number of software queues, for none and kyber.", "N", 1, 1024)
    goes_on: bool = says(
        True,
        "Closed replays: programs that were at work until about the end of the recording go on until its time is over, as real"
        " ones do; --no-goes-on ends with the recorded work.",
    )
    whole: bool = says(
        False,
        f"Recordings of more than {WHOLE_IOS:,} requests: replay all of it, and not a sample of its windows.",
    )
    seed: int = says(0, "Seed of random load.", "N", 0, 2**63 - 1)

    def options(self, drive: Drive, trace: Trace | None = None) -> Options:
        """Return what the simulator is told, whatever the scheduler. Problem if a time is none."""
        names = {one.name for one in fields(Options)} & {one.name for one in fields(self)} - {"nr_requests", "wbt_depth", "cores"}
        same = {name: getattr(self, name) for name in names}
        depth = depth_of(drive, Options(**same))
        recorded = trace.nr_requests if trace else None
        tags = recorded or 2 * min(max(depth, LEAST_TAGS), MOST_TAGS)
        # What was recorded comes throttled (inkernel.py).
        wbt_depth = 0 if trace else WBT_PER_COMMAND * depth
        options = Options(
            join_arriving=self.merging,
            nr_requests=tags if self.nr_requests is None else self.nr_requests,
            wbt_depth=wbt_depth if self.wbt_depth is None else self.wbt_depth,
            **same,
        )
        dispatch_time = str(MEASURED.dispatch) if self.dispatch_time is None else self.dispatch_time
        times = (("turnaround", self.turnaround), ("dispatch_time", dispatch_time), ("copy_time", self.copy_time))
        options = Processor(*(parse_time(name, text) for name, text in times)).apply(options)
        options = recorded_options(options, trace) if trace else options
        host = self.host_of(drive)
        if not host:
            told = handover(trace) if trace and self.dispatch_time is None else None
            return told.apply(options) if told else options
        cores = 1 if self.one_processor else self.cores or (trace.processors if trace else None) or host.cores
        return host.under(host.base(options, cores, spread=trace is not None and not trace.tasks_known), "none")

    def host_of(self, drive: Drive) -> Host | None:
        """The host of runs on a drive; None: the lab."""
        if self.host != AUTO:
            return find_host(self.host)
        times = any(getattr(self, one.name) != one.default for one in fields(self) if one.name in _LAB_TIMES)
        flash = isinstance(drive, Profile) and not drive.rotational
        return self._machine() if flash and not times else None

    def _machine(self) -> Host | None:
        """The host that is named; of `auto` this machine's, or a typical one."""
        return (here() or XEON_10) if self.host == AUTO else find_host(self.host)

    def of(self, options: Options, scheduler: str, depth: int, recorded: str | None = None) -> Options:
        """Return the options under a scheduler, as a kernel runs it on a device that takes so many requests at once.

        recorded: the scheduler in force at the recording, if it is known.
        """
        found = kernel_options(options, scheduler, depth, recorded)
        if options.cores:
            host = self._machine()
            assert host
            found = host.under(found, scheduler)
        if self.nr_requests is not None:
            # Without a scheduler requests are the device's own tags: blk-mq refuses more than it has.
            own = min(options.nr_requests, depth) if options.nr_requests else 0
            found = replace(found, nr_requests=own if scheduler == "none" and self.pull_ahead else options.nr_requests)
        if self.wbt_depth is not None:
            found = replace(found, wbt_depth=options.wbt_depth)
        return replace(found, pull_ahead=self.pull_ahead and found.pull_ahead)

    def runs(
        self, variants: Sequence[Variant], drive: Drive, trace: Trace | None = None, recorded: str | None = None
    ) -> list[tuple[Variant, Options]]:
        """Each variant as a kernel has it, with its options. recorded: see of(); None: what the trace tells."""
        options = self.options(drive, trace)
        recorded = recorded or (trace.scheduler if trace else "") or None
        depth = depth_of(drive, options)
        return [(v if self.positions else untold(v), self.of(options, v.scheduler, depth, recorded)) for v in variants]

    def load(self, work: Workload, drive: Drive) -> Workload:
        """The workload as it is run; what is so already stays as it is."""
        if self.whole and work.trace is not None and work.trace.excerpt:
            raise Problem(f"{work.name}: memory does not hold all of it (headwaiter run --stream replays it from disk)")
        free, work = work.free, joined(work) if self.merging else work
        work = work if self.whole else sampled(work, self.seed)
        work = going_on(work, drive) if self.goes_on else work
        if free is None or work.windows or not isinstance(work.load, Ongoing):
            return work
        other = self.load(free, drive).load
        if not isinstance(other, Ongoing):
            return work
        # Both are told in the same slices of time.
        return replace(work, load=replace(work.load, free=replace(other, sliced=work.load.sliced)), free=None)


def checked(given: dict[str, Any]) -> RunConditions:
    """Return the conditions of a mapping that has other keys beside."""
    return RunConditions(**{one.name: given[one.name] for one in fields(RunConditions) if one.name in given})
