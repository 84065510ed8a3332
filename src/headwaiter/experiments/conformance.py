# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `conformance`: what stock kernels' schedulers decide, recorded.

A null_blk with a fixed service time, tracefs, raw ring buffers, which become recordings here.

The same load recorded twice gives the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwaiter.base import ringbuffer
from headwaiter.base.errors import Problem
from headwaiter.conformance import decisions
from headwaiter.conformance.follow import follow
from headwaiter.lab import btf
from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.script import Script, guest
from headwaiter.traces import ring

# Those for which any workload will do.
SCHEDULERS = ("mq-deadline", "kyber", "bfq")
# Kernels that do not start a second CPU while QEMU counts instructions.
ONE_CPU = ("6.1",)
MS = 1_000_000


@dataclass(frozen=True)
class ProcessLoad:
    """Processes (see lab/guest/ioload.c) on a device that takes `depth` requests and serves each in service_ns.

    nr_requests is the number of scheduler tags; settings are tunables that differ from the default, by scheduler.
    Devices are those of conformance.sh. Without a scheduler requests queue only if the device refuses some.
    """

    jobs: tuple[str, ...]
    depth: int = 1
    service_ns: int = 4 * MS
    nr_requests: int = 64
    settings: tuple[tuple[str, str], ...] = ()
    schedulers: tuple[str, ...] = SCHEDULERS
    device: str = "null"
    cpus: int = 1

    def tunables(self, scheduler: str) -> str:
        """Return the tunables as the guest's script wants them."""
        return next((text for name, text in self.settings if name == scheduler), "-")


def _job(kind: str, slot: int, **options: object) -> str:
    """A job in a region of its own, so that no two processes touch one place."""
    words = [kind, f"start={slot << 22}", f"seed={slot + 1}"]
    return ",".join(words + [f"{key}={value}" if value is not True else key for key, value in options.items()])


# Their places are drawn so that no request is under way twice at one place, where a trace could not tell them apart.
WRITERS = (*range(20, 27), 28)
WORKLOADS: dict[str, ProcessLoad] = {
    "sequential": ProcessLoad(tuple(_job("read", i, n=400, qd=4, bs=16, rthink=3000) for i in range(4))),
    "random": ProcessLoad(tuple(_job("read", i, rand=True, n=200, qd=6, rthink=9000) for i in range(6))),
    "mixed": ProcessLoad(
        (
            _job("read", 0, n=300, qd=2, bs=64, think=1000),
            _job("read", 1, n=150, rand=True, rthink=20000),
            _job("read", 2, n=300, rand=True, qd=4),
            _job("write", 3, n=250, qd=4, bs=32),
            _job("write", 4, n=250, rand=True, qd=8),
            _job("write", 5, n=1500, buffered=True, bs=8, think=500),
        ),
        settings=(("mq-deadline", "read_expire=100,write_expire=400,fifo_batch=4"),),
    ),
    "priorities": ProcessLoad(
        (
            _job("read", 0, n=150, prio="1.4", rthink=30000),
            _job("read", 1, n=250, rand=True, qd=2, rthink=4000, prio="2.0"),
            _job("read", 2, n=250, rand=True, qd=3),
            _job("read", 3, n=200, qd=2, prio="3.0"),
            _job("write", 4, n=200, rand=True, qd=4, prio="2.7"),
            _job("write", 5, n=100, rand=True, qd=2, prio="1.0", rthink=50000),
        ),
        settings=(("mq-deadline", "prio_aging_expire=300,writes_starved=1"),),
    ),
    "processes": ProcessLoad(
        tuple(
            _job(
                "read" if i % 4 else "write",
                i,
                n=80,
                qd=1 + i % 3,
                rthink=1000 * (1 + i),
                delay=40 * i,
                **({"rand": True} if i % 2 else {}),
            )
            for i in range(16)
        ),
        depth=4,
        service_ns=9 * MS,
    ),
    "congested": ProcessLoad(
        (
            _job("read", 0, n=700, rand=True, qd=100),
            _job("write", 1, n=600, rand=True, qd=100),
            _job("read", 2, n=200, rthink=3000),
        ),
        depth=64,
        service_ns=3 * MS,
        nr_requests=256,
    ),
    # Reads over target while writes are far below theirs: the writes lose their tokens one step a second.
    "steered": ProcessLoad(
        (
            _job("read", 0, n=300, rand=True),
            _job("write", 1, n=2200, rand=True, qd=16),
            _job("write", 2, n=200, buffered=True, delay=3000),
        ),
        depth=64,
        service_ns=20 * MS,
        settings=(("kyber", "write_lat_nsec=100000000"),),
        schedulers=("kyber",),
    ),
    "cpus": ProcessLoad(
        tuple(
            _job("read" if i % 3 else "write", i, n=150, qd=6, rthink=4000, cpu=i % 4, **({"rand": True} if i % 2 else {}))
            for i in range(8)
        ),
        depth=4,
        schedulers=("kyber",),
        device="scsi",
        cpus=4,
    ),
    "refused": ProcessLoad(
        tuple(_job("read" if i % 3 else "write", i, rand=True, n=150, qd=8, rthink=4000, cpu=i % 4) for i in range(8)),
        depth=64,
        service_ns=MS,
        schedulers=("none",),
        device="throttled",
        cpus=4,
    ),
    # A device that takes all that there is: what a scheduler holds back, it holds back by its own rules.
    "deep": ProcessLoad(
        (_job("read", 0, rand=True, n=40), *(_job("write", i, rand=True, n=260, qd=16, bs=128, span=1 << 22) for i in WRITERS)),
        depth=256,
        service_ns=8 * MS,
        nr_requests=256,
    ),
    # The same with a hardware queue for each CPU, each of which takes so many.
    "queues": ProcessLoad(
        (
            _job("read", 0, rand=True, n=40, cpu=0),
            *(_job("write", i, rand=True, n=260, qd=16, bs=128, span=1 << 22, cpu=i % 4) for i in WRITERS),
        ),
        depth=256,
        service_ns=8 * MS,
        nr_requests=256,
        device="queues",
        cpus=4,
    ),
    "streams": ProcessLoad(
        tuple(_job("read" if i % 3 else "write", i, n=400, qd=8, rthink=9000, cpu=i % 4) for i in range(8)),
        depth=64,
        service_ns=MS,
        schedulers=("none",),
        device="throttled",
        cpus=4,
    ),
}


def _offsets(system: Kernel) -> dict[str, str]:
    """Return the offsets of the kernel's members, as the guest's script wants them."""
    types = btf.types(system, "bfq")
    request, bio = types.offsets("request"), types.offsets("bio")
    # Since 6.12.y a request's priority is its first bio's.
    ioprio = f"+{request['ioprio']}($retval)" if "ioprio" in request else f"+{bio['bi_ioprio']}(+{request['bio']}($retval))"
    data = (
        f"+{types.offsets('elevator_queue')['elevator_data']}(+{types.offsets('request_queue')['elevator']}"
        f"(+{request['q']}(REQUEST)))"
    )
    return {
        "SECTOR": str(request["__sector"]),
        "BYTES": str(request["__data_len"]),
        "FLAGS": str(request["cmd_flags"]),
        "IOPRIO": ioprio,
        "START": str(request["start_time_ns"]),
        "DISPATCHED": f"+{types.offsets('bfq_data')['last_dispatch']}({data})",
        "BIO": (
            f"bio_sector=+{bio['bi_iter']}($arg3):u64 bio_bytes=+{bio['bi_iter'] + 8}($arg3):u32 "
            f"bio_flags=+{bio['bi_opf']}($arg3):u32 bio_ioprio=+{bio['bi_ioprio']}($arg3):u16"
        ),
        "COMPLETED": f"+{types.offsets('bfq_data')['last_completion']}({data})",
    }


def _tick_ns(system: Kernel) -> int:
    """The kernel's tick, from its configuration."""
    config = system.folder / "boot" / f"config-{system.release}"
    found = re.search(r"^CONFIG_HZ=(\d+)$", config.read_text(encoding="utf-8"), re.M)
    if not found:
        raise Problem(f"{config}: no CONFIG_HZ")
    return 1_000_000_000 // int(found[1])


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Record, one boot for each number of CPUs; the recordings as SCHEDULER-WORKLOAD.xz, and a row of results for each."""
    whole = guest(script, on, given, say)
    names = whole.environment.pop("WORKLOADS").split() or list(WORKLOADS)
    schedulers = whole.environment.pop("SCHEDULERS").split() or ["none", *SCHEDULERS]
    for name, known in [(n, list(WORKLOADS)) for n in names] + [(s, ["none", *SCHEDULERS]) for s in schedulers]:
        if name not in known:
            raise Problem(f"{script.name}: unknown {name} (known: {', '.join(known)})")
    loads = {n: replace(WORKLOADS[n], cpus=1) if on.series in ONE_CPU else WORKLOADS[n] for n in names}
    wanted = [(s, n, loads[n]) for n in names for s in schedulers if s in loads[n].schedulers]
    whole.environment.update(_offsets(on))
    files: dict[str, bytes] = {}
    rows = []
    for cpus in sorted({w.cpus for _, _, w in wanted}):
        runs = [(s, n, w) for s, n, w in wanted if w.cpus == cpus]
        lines = (
            f"{s}-{n} {s} {w.device} {w.depth} {w.service_ns} {w.nr_requests} {w.tunables(s)} {' '.join(w.jobs)}\n"
            for s, n, w in runs
        )
        sent = boot(replace(whole, cpus=cpus, files=whole.files | {"lab/runs": "".join(lines).encode()}), say).files
        for s, n, w in runs:
            made = _recording(on, s, n, w, sent)
            files[f"{s}-{n}.xz"] = decisions.encode(made)
            rows.append({"scheduler": s, "workload": n, "events": len(made.events)})
    files["results"] = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    return GuestOutcome(files, [])


def _recording(
    on: Kernel, scheduler: str, name: str, load: ProcessLoad, sent: Mapping[str, bytes]
) -> decisions.DecisionRecording:
    """The recording of one run, from what the guest sent."""
    formats = [ringbuffer.EventFormat.parse(data.decode()) for file, data in sent.items() if file.startswith("format-")]
    by_number = {f.number: f for f in formats}
    raw = [e for cpu in range(load.cpus) for e in ring.events(sent[f"{scheduler}-{name}.{cpu}"], cpu, by_number)]
    facts = {
        "kernel": on.release,
        "scheduler": scheduler,
        "workload": name,
        "depth": str(load.depth),
        "service_ns": str(load.service_ns),
        "nr_requests": str(load.nr_requests),
        "cpus": str(load.cpus),
    }
    settings = (line.partition("=") for line in sent[f"{scheduler}-{name}.settings"].decode().splitlines())
    facts |= {f"set.{key}": value for key, _, value in settings}
    return follow(raw, scheduler, facts, _tick_ns(on))
