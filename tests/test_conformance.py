# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Our schedulers decide as the recorded kernels did; and the way from a kernel's trace to that verdict."""

from __future__ import annotations

import json
import lzma
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from command import run as run_command

from headwaiter.base import ringbuffer
from headwaiter.base.archives import PAGE
from headwaiter.base.errors import Problem
from headwaiter.cli.conform import LEAST, command
from headwaiter.conformance import decisions as recording
from headwaiter.conformance.check import check
from headwaiter.conformance.decisions import DecisionRecording, Event
from headwaiter.conformance.follow import _op, follow
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import catalogue
from headwaiter.experiments import conformance as record
from headwaiter.lab.btf import reader
from headwaiter.lab.kernels import Kernel
from headwaiter.traces import ring

DATA = Path(__file__).parent / "data" / "conformance"
# Two of each scheduler and kernel in `make test`, the others in `make test-all`.
QUICK = ("mixed", "priorities", "steered", "refused", "streams")
RECORDED = [
    pytest.param(p, id=f"{p.parent.name}-{p.stem}", marks=() if p.stem.endswith(QUICK) else pytest.mark.thorough)
    for s in catalogue()
    if catalogue()[s].is_model
    for p in sorted(DATA.glob(f"*/{s}-*.xz"))
]
TICK = 4_000_000


@pytest.mark.parametrize("path", RECORDED)
def test_decisions_are_the_kernels(path: Path) -> None:
    verdict = check(recording.read(path))
    assert verdict.decisions >= 200
    assert verdict.share >= LEAST[verdict.scheduler], verdict.first


def test_recordings_are_there() -> None:
    for series in ("6.1", "6.12"):
        for scheduler in LEAST:
            assert list(DATA.glob(f"{series}/{scheduler}-*.xz")), f"no recording of {scheduler} on {series}"


@pytest.mark.parametrize("wrong", [{"set.fifo_batch": "7"}, {"kernel": "6.1.0"}, {"set.read_expire": "1"}])
def test_another_scheduler_would_be_noticed(wrong: dict[str, str]) -> None:
    made = recording.read(DATA / "6.12" / "mq-deadline-mixed.xz")
    made.facts.update(wrong)
    assert check(made).share < 0.9


def test_an_exchange_costs_two_decisions() -> None:
    made = recording.read(DATA / "6.12" / "mq-deadline-random.xz")
    clean = check(made)
    rows = [e for e in made.events if e.event == "dispatch"]
    first, second = rows[500], rows[501]
    a, b = first.request, second.request
    between = made.events[made.events.index(first) : made.events.index(second)]
    assert b not in {e.request for e in between if e.event == "insert"}
    for e in made.events:
        if e.event in ("dispatch", "issue", "complete"):
            e.request = {a: b, b: a}.get(e.request, e.request)
    verdict = check(made)
    assert verdict.decisions == clean.decisions
    assert verdict.kinds == {"another request": 2}
    assert [(d.kernel, d.ours) for d in verdict.first] == [(b, a), (a, b)]


def small() -> DecisionRecording:
    """Two reads under mq-deadline, the second below the first."""
    facts = {
        "kernel": "6.12.1",
        "scheduler": "mq-deadline",
        "workload": "small",
        "depth": "1",
        "nr_requests": "64",
        "tick_ns": str(TICK),
        "set.fifo_batch": "16",
    }
    return DecisionRecording(facts, [
        Event(10, "insert", 0, sector=900, sectors=8, op=0, flags=1, ioprio=0, task=0, cpu=0),
        Event(11, "insert", 1, sector=100, sectors=8, op=0, flags=1, ioprio=0, task=0, cpu=0),
        Event(12, "dispatch", 1), Event(13, "issue", 1), Event(14, "dispatch", 0), Event(20, "complete", 1),
        Event(21, "issue", 0), Event(30, "complete", 0), Event(31, "dispatch"), Event(32, "exit", task=0),
    ])  # fmt: skip


def test_a_request_that_grows_up_to_another_takes_it_in() -> None:
    """0+8 grows to 0+16, where 16+8 begins: one request is left, the first, and it goes to the device."""
    made = small()
    first = {"op": 0, "flags": 1, "ioprio": 0, "task": 0, "cpu": 0}
    made.events = [
        Event(10, "insert", 0, sector=0, sectors=8, **first), Event(11, "insert", 1, sector=16, sectors=8, **first),
        Event(12, "back", 0, sectors=8), Event(13, "join", 0, 1), Event(14, "dispatch", 0), Event(15, "issue", 0),
        Event(16, "dispatch"), Event(20, "complete", 0),
    ]  # fmt: skip
    verdict = check(made)
    assert (verdict.requests, verdict.decisions, verdict.equal, verdict.refusals, verdict.share) == (2, 1, 1, 1, 1.0)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "r.xz"
    path.write_bytes(recording.encode(small()))
    assert recording.read(path) == small()
    verdict = check(recording.read(path))
    assert (verdict.requests, verdict.decisions, verdict.equal, verdict.refusals) == (2, 2, 2, 1)


def test_refusals_differ() -> None:
    made = small()
    made.events[2].request = recording.NONE  # the kernel refused, and gave the request at the next question
    made.events.insert(3, Event(12, "dispatch", 1))
    verdict = check(made)
    # Ours gives 1, then 0 where the kernel gives 1, then nothing where the kernel gives 0.
    assert verdict.kinds == {"ours gives, the kernel refuses": 1, "another request": 1, "the kernel gives, ours refuses": 1}
    assert verdict.share == 0


DAMAGE = [
    (lambda t: t.replace("# headwaiter-conformance-1", "# other", 1), ":1: not a recording"),
    (lambda t: t.replace("time_ns,event", "time,event", 1), ":9: expected the line of column names"),
    (lambda t: t.replace("13,issue,1", "13,issue", 1), ":13: 10 columns, not 11"),
    (lambda t: t.replace("13,issue", "13,sleep", 1), ":13: 'sleep' is not an event"),
    (lambda t: t.replace("13,issue,1", "13,issue,x", 1), ":13: request: 'x' is not a whole number"),
    (lambda t: t.replace("13,issue,1", "13,issue,-7", 1), ":13: request: -7 is outside"),
    (lambda t: t.replace("13,issue", "3,issue", 1), ":13: time goes backwards, from 12 to 3 ns"),
    (lambda t: t.replace("# depth=1\n", "", 1), "'depth=' is missing"),
    (lambda t: t.replace("# depth=1", "# depth=one", 1), "depth: 'one' is not a whole number"),
    (lambda t: t.replace("fifo_batch=16", "fifo_batch=-16", 1), "-16 is outside"),
    (lambda t: t.replace("20,complete,1", "20,complete,5", 1), "refers to a request that does not exist: 5"),
    (lambda t: t.replace("scheduler=mq-deadline", "scheduler=elsewhere", 1), "no scheduler 'elsewhere'"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE, ids=[d[1] for d in DAMAGE])
def test_damaged_recordings(tmp_path: Path, damage: object, said: str) -> None:
    path = tmp_path / "r.xz"
    path.write_bytes(recording.encode(small()))
    assert callable(damage)
    path.write_bytes(lzma.compress(damage(lzma.decompress(path.read_bytes()).decode()).encode()))
    done = CliRunner().invoke(command, ["check", str(path)])
    assert isinstance(done.exception, Problem)
    assert str(done.exception).startswith(str(path)) and said in str(done.exception)
    assert "\n" not in str(done.exception)


def test_not_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "r.xz"
    path.write_bytes(b"plain")
    with pytest.raises(Problem, match="not a complete xz file"):
        recording.read(path)
    path.write_bytes(recording.encode(small()))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Problem, match="the xz stream is truncated"):
        recording.read(path)


def test_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.xz"
    path.write_bytes(recording.encode(small()))
    done = CliRunner().invoke(command, ["check", "--json", str(tmp_path)], standalone_mode=False)
    assert done.return_value == 0
    (row,) = json.loads(done.output)["conformance"]
    assert row["decisions"] == row["equal"] == 2
    bad = small()
    bad.events[2].request, bad.events[4].request = 0, 1
    bad.events[3].request, bad.events[5].request = 0, 0
    bad.events[6].request, bad.events[7].request = 1, 1
    path.write_bytes(recording.encode(bad))
    done = CliRunner().invoke(command, ["check", "--differences", "1", str(path)], standalone_mode=False)
    assert done.return_value == 1
    assert "at 12 ns the kernel chose 0, ours 1" in done.output
    # Of both decisions neither is the kernel's.
    assert re.search(r"^ *6\.12\S* +mq-deadline +\S+ +2 +0\.00% +2 *$", done.output, re.M)
    assert run_command(capfd, "conform", "check", path)[0] == 1, "the status of the process, too"
    (tmp_path / "good.xz").write_bytes(recording.encode(small()))
    assert run_command(capfd, "conform", "check", tmp_path)[0] == 1, "one that differs among others"
    status, out, _ = run_command(capfd, "conform", "check", tmp_path, "--sched", "none", "--json")
    assert (status, json.loads(out)["conformance"]) == (0, [])
    out = run_command(capfd, "conform", "check", tmp_path, "--sched", "mq-deadline", "--sched", "none", "--json")[1]
    assert len(json.loads(out)["conformance"]) == 2


# --- from the trace ---


def test_a_recording_tells_how_it_was_made(tmp_path: Path) -> None:
    """The workload "streams" has 64 requests for the device at once, as many for the scheduler, and four processors."""
    (tmp_path / "boot").mkdir()
    (tmp_path / "boot" / "config-6.12.1").write_text("CONFIG_HZ_250=y\nCONFIG_HZ=250\n")
    load = replace(record.WORKLOADS["streams"], nr_requests=100, settings=())
    sent = {"none-streams.settings": b"x=1\ny=2=3\n", **{f"none-streams.{cpu}": b"" for cpu in range(4)}}
    made = record._recording(Kernel("6.12.1", tmp_path), "none", "streams", load, sent)
    assert made.facts == {
        "kernel": "6.12.1", "scheduler": "none", "workload": "streams", "depth": "64", "service_ns": "1000000",
        "nr_requests": "100", "cpus": "4", "set.x": "1", "set.y": "2=3", "tick_ns": "4000000",
        "unqueued": "0",
    }  # fmt: skip


INSERT = ringbuffer.EventFormat.parse("""name: block_rq_insert
ID: 77
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:sector_t sector;\toffset:8;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:16;\tsize:4;\tsigned:0;
\tfield:char rwbs[8];\toffset:20;\tsize:8;\tsigned:1;

print fmt: "%d", REC->sector
""")


def record_bytes(sector: int, pid: int = 5, number: int = 77) -> bytes:
    return struct.pack("<HBBiQI8s", number, 0, 0, pid, sector, 8, b"RS")


def page(time_ns: int, body: bytes, flags: int = 0) -> bytes:
    return (struct.pack("<QQ", time_ns, len(body) | flags) + body).ljust(PAGE, b"\0")


def entry(delta: int, data: bytes) -> bytes:
    return struct.pack("<I", len(data) // 4 | delta << 5) + data


def test_ring_buffer() -> None:
    long = record_bytes(3) + bytes(200)
    body = (
        entry(100, record_bytes(1))
        + struct.pack("<II", ringbuffer.TIME_EXTEND | 7 << 5, 2)  # 2 << 27 | 7 ns later
        + entry(1, record_bytes(2))
        + struct.pack("<II", ringbuffer.PADDING | 9 << 5, 8)
        + bytes(4)  # discarded: its time counts
        + struct.pack("<II", 0 | 1 << 5, len(long) + 4)
        + long
        + entry(1, record_bytes(4, number=78))
        + struct.pack("<I", ringbuffer.PADDING)
    )
    data = page(1000, body) + page(10**12, entry(5, record_bytes(6)))
    found = list(ring.events(data, 3, {77: INSERT}))
    high = 1100 + (2 << 27) + 7
    want = [(1100, 1), (high + 1, 2), (high + 11, 3), (10**12 + 5, 6)]
    assert [(e.time_ns, e.values["sector"]) for e in found] == want
    assert found[0].cpu == 3 and found[0].values["rwbs"] == b"RS" + bytes(6) and found[0].values["common_pid"] == 5


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (page(0, entry(0, record_bytes(1)))[:-1], "not a whole page"),
        (page(0, entry(0, record_bytes(1)), flags=1 << 31), "events were lost"),
        (struct.pack("<QQ", 0, 5000).ljust(PAGE, b"\0"), "longer than a page"),
        (page(0, struct.pack("<I", 28) + bytes(4)), "is cut off"),
    ],
)
def test_damaged_ring_buffer(data: bytes, said: str) -> None:
    with pytest.raises(Problem, match=said):
        list(ring.events(data, 0, {77: INSERT}))


def trace(time: int, name: str, sector: int, sectors: int = 8, rwbs: bytes = b"R", **more: int) -> ring.RingEvent:
    values: dict[str, int | bytes] = {"common_pid": 7, "sector": sector, "nr_sector": sectors, "rwbs": rwbs, **more}
    return ring.RingEvent(time, 0, name, values)


def decided(time: int, sector: int, sectors: int, jiffies: int, flags: int = 0) -> ring.RingEvent:
    return trace(time, "dispatch_dd", sector, rq=1, bytes=sectors * 512, flags=flags, ioprio=0x4003, jiffies=jiffies)


@pytest.mark.parametrize(("rwbs", "op"), [(b"R", 0), (b"WS", 1), (b"FWFS", 1), (b"DS", 2), (b"N", 3), (b"FF", 3)])
def test_operations_by_their_letters(rwbs: bytes, op: int) -> None:
    """F before the operation is a flush; what is neither read, written nor discarded is something else."""
    assert _op({"rwbs": rwbs + b"\0" * 3}) == op


def test_following_requests() -> None:
    """Merges at both ends, a join, one in a plug; flags and priority from the dispatch; ticks at multiples."""
    base = 50 * TICK + 1_000_000  # ticks begin 1 ms after multiples
    made = follow([
        trace(base + 100, "block_rq_insert", 1000),
        trace(base + 200, "block_bio_backmerge", 1008),
        trace(base + 300, "block_bio_frontmerge", 992),
        trace(base + 350, "block_bio_backmerge", 5000),  # into a plugged request
        trace(base + 400, "block_rq_insert", 1016, 16),
        trace(base + 500, "block_rq_merge", 1016, 16),
        trace(base + 600, "block_rq_insert", 992, rwbs=b"WS"),  # same place, other direction
        decided(base + TICK, 992, 40, 51, 1 << 12),
        trace(base + TICK + 5, "block_rq_issue", 992, 40),
        decided(base + TICK + 6, 992, 8, 51, 1 | 1 << 11),
        trace(base + TICK + 10, "dispatch_dd", 0, rq=0, bytes=0, flags=0, ioprio=0, jiffies=51),
        trace(base + 2 * TICK, "block_rq_complete", 992, 40),
        ring.RingEvent(base + 2 * TICK + 1, 0, "sched_process_exit", {"pid": 7}),
        ring.RingEvent(base + 2 * TICK + 2, 0, "sched_process_exit", {"pid": 8}),
    ], "mq-deadline", {"kernel": "6.12.1"}, TICK)  # fmt: skip
    rows = [(e.event, e.request) for e in made.events]
    assert rows == [
        ("insert", 0),
        ("back", 0),
        ("front", 0),
        ("insert", 1),
        ("join", 0),
        ("insert", 2),
        ("dispatch", 0),
        ("issue", 0),
        ("dispatch", 2),
        ("dispatch", -1),
        ("complete", 0),
        ("exit", -1),
    ]
    assert made.events[4].other == 1
    joined = made.events[3]
    assert (joined.flags, joined.ioprio) == (3, 0x4003), "as the one that it has joined"
    first, write = made.events[0], made.events[5]
    assert (first.sector, first.sectors, first.op, first.flags, first.ioprio) == (1000, 8, 0, 3, 0x4003)
    assert (write.op, write.flags) == (1, 1)
    assert [e.time_ns for e in made.events if e.event == "dispatch"] == [TICK, TICK + 6, TICK + 10]


def test_bfq_goes_by_its_own_times() -> None:
    """Rows are at the times that bfq saw, and where its decisions were taken; it says when, and a pid may come again."""

    def probe(time: int, name: str, pid: int = 7, **values: int) -> ring.RingEvent:
        return ring.RingEvent(time, 0, f"{name}_bfq", {"common_pid": pid, **values})

    def gave(time: int, sector: int, now: int, start: int, pid: int = 7) -> ring.RingEvent:
        return probe(
            time, "dispatch", pid, rq=1, sector=sector, bytes=4096, flags=0, ioprio=0x4004, jiffies=0, now=now, start=start
        )

    base = TICK
    made = follow([
        probe(base, "attach"),
        trace(base + 1000, "block_rq_insert", 8),
        probe(base + 1050, "ask"),
        gave(base + 1100, 8, base + 900, base + 900),
        trace(base + 1110, "block_rq_issue", 8),
        trace(base + 2000, "block_rq_insert", 800),
        probe(base + 2050, "ask", 9),
        trace(base + 2100, "block_rq_complete", 8),  # an interrupt before the function returns
        probe(base + 2110, "finish", last=0),
        gave(base + 2150, 800, base + 2055, base + 1990, 9),
        trace(base + 2200, "block_rq_insert", 1600),
        trace(base + 2300, "block_rq_issue", 800),
        probe(base + 2400, "allow", 8, sector=1600, flags=0, bio_sector=2400, bio_bytes=512, bio_flags=1 | 1 << 11,
              bio_ioprio=0),
        trace(base + 3000, "block_rq_complete", 800),
        probe(base + 3010, "finish", last=base + 2113),
        probe(base + 3050, "timer"),
        ring.RingEvent(base + 3100, 0, "sched_process_exit", {"pid": 7}),
        probe(base + 3200, "gone"),
        trace(base + 3300, "block_rq_insert", 2400),
    ], "bfq", {"kernel": "6.12.1"}, TICK)  # fmt: skip
    zero = made.events[0].time_ns
    assert [(e.event, e.request, e.time_ns - zero) for e in made.events] == [
        ("attach", -1, 0),
        ("insert", 0, 900),
        ("dispatch", 0, 900),
        ("issue", 0, 900),
        ("insert", 1, 1990),
        ("dispatch", 1, 2055),
        ("complete", 0, 2113),
        ("insert", 2, 2200),
        ("issue", 1, 2300),
        ("allow", 2, 2400),
        ("complete", 1, 3010),
        ("timer", -1, 3050),
        ("exit", -1, 3200),
        ("insert", 3, 3300),
    ]
    bio = made.events[9]
    assert (bio.sector, bio.sectors, bio.op, bio.flags) == (2400, 1, 1, 1)
    assert [e.task for e in made.events if e.event in ("insert", "allow", "exit")] == [0, 0, 0, 1, 0, 2]


def test_what_has_joined_has_the_flags_and_priority_of_whom_it_has_joined() -> None:
    """Also where that has joined another: only the last one is ever dispatched."""
    made = follow([
        *(trace(i, "block_rq_insert", sector) for i, sector in enumerate((1000, 1008, 1016))),
        trace(10, "block_rq_merge", 1016),
        trace(11, "block_rq_merge", 1008, 16),
        decided(20, 1000, 24, 0, 1 << 12),
    ], "mq-deadline", {}, TICK)  # fmt: skip
    assert [(e.request, e.other) for e in made.events if e.event == "join"] == [(1, 2), (0, 1)]
    assert [(e.flags, e.ioprio) for e in made.events[:3]] == [(3, 0x4003)] * 3


@pytest.mark.parametrize(
    ("kernel", "slept_ns", "rows"),
    [
        ("6.12.1", 900_000, [100_000, 100_000]),
        ("6.10", 900_000, [100_000, 100_000]),
        ("6.12.1", 1_100_000, [1_000_000, 1_000_010]),  # it slept meanwhile, and looked at the clock again
        ("6.9.3", 900_000, [1_000_000, 1_000_010]),  # reads the clock each time
    ],
)
def test_a_submission_is_of_the_time_at_which_it_began(kernel: str, slept_ns: int, rows: list[int]) -> None:
    base = 10 * TICK
    start = base + 1_000_000 - slept_ns
    made = follow([
        ring.RingEvent(base, 0, "attach_bfq", {"common_pid": 9}),
        trace(base + 1_000_000, "block_rq_insert", 8),
        trace(base + 1_000_010, "dispatch_bfq", 8, rq=1, bytes=4096, flags=0, ioprio=0x4004, jiffies=10, start=start),
    ], "bfq", {"kernel": kernel}, TICK)  # fmt: skip
    assert [e.time_ns - made.events[0].time_ns for e in made.events[1:]] == rows


def test_a_late_timer() -> None:
    """bfq waits for 8 ms, but the kernel's timer runs 30 us late: ours does not give the request before that."""

    def recorded(timer_ns: int) -> DecisionRecording:
        facts = {
            "kernel": "6.12.1",
            "scheduler": "bfq",
            "workload": "late",
            "depth": "1",
            "nr_requests": "64",
            "tick_ns": str(TICK),
            "set.low_latency": "0",
        }
        due = 9_000_000
        events = [Event(0, "attach")]
        for i, sector in enumerate((8, 80_000)):
            events += [Event(i, "insert", i, sector=sector, sectors=8, op=0, flags=1, ioprio=0, task=i, cpu=0)]
        events += [
            Event(2, "dispatch", 0),
            Event(3, "issue", 0),
            Event(1_000_000, "complete", 0),
            Event(1_000_001, "dispatch"),
            Event(due + 20_000, "dispatch"),
            Event(due + timer_ns, "timer"),
            Event(due + 31_000, "dispatch", 1),
            Event(due + 31_001, "issue", 1),
        ]
        return DecisionRecording(facts, sorted(events, key=lambda e: e.time_ns))

    assert check(recorded(30_000)).kinds == {}
    assert check(recorded(0)).kinds == {"ours gives, the kernel refuses": 1, "the kernel gives, ours refuses": 1}


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([decided(1, 8, 8, 0)], "that was never inserted"),
        ([trace(1, "block_rq_insert", 8), decided(2, 8, 16, 0)], "a request of 8 sectors was dispatched as one of 8192"),
        ([trace(1, "block_rq_insert", 8), trace(2, "block_rq_insert", 8), decided(3, 8, 8, 0)], "two requests fit"),
    ],
)
def test_traces_that_contradict_themselves(events: list[ring.RingEvent], said: str) -> None:
    with pytest.raises(Problem, match=said):
        follow(events, "mq-deadline", {}, TICK)


def test_ticks_counted_late() -> None:
    """A tick that the kernel had not counted yet at a decision begins after it, and after what led to it."""
    made = follow([
        trace(0, "block_rq_insert", 8),
        decided(10, 8, 8, 7),
        trace(TICK + 20, "block_rq_insert", 16),
        decided(TICK + 30, 16, 8, 7),
        trace(TICK + 40, "block_rq_insert", 24),
        decided(TICK + 50, 24, 8, 8),
    ], "mq-deadline", {}, TICK)  # fmt: skip
    assert [e.time_ns for e in made.events] == [TICK - 10, TICK, 2 * TICK - 1, 2 * TICK - 1, 2 * TICK + 30, 2 * TICK + 40]


@pytest.mark.parametrize(("cpus", "first"), [("1", "dispatch"), ("2", "complete")])
def test_a_decision_counts_where_the_function_began_or_with_several_cpus_where_it_returned(cpus: str, first: str) -> None:
    """An interrupt on the only CPU comes when the function has decided; another CPU's completion may be what it waits for."""
    made = follow([
        trace(1, "block_rq_insert", 8),
        decided(2, 8, 8, 7),
        trace(3, "block_rq_issue", 8),
        trace(4, "block_rq_insert", 16),
        ring.RingEvent(5, 0, "ask_bfq", {"common_pid": 1}),
        trace(6, "block_rq_complete", 8),
        decided(7, 16, 8, 7),
    ], "mq-deadline", {"cpus": cpus}, TICK)  # fmt: skip
    assert [e.event for e in made.events][3:] == (
        ["insert", "dispatch", "complete"] if first == "dispatch" else ["insert", "complete", "dispatch"]
    )


def test_without_scheduler() -> None:
    """none: the issue is the decision; a request that never queued is only counted; a refusal comes back."""
    made = follow([
        trace(1, "block_rq_issue", 800),
        trace(2, "block_rq_insert", 100),
        trace(3, "block_rq_insert", 300),
        trace(4, "block_rq_requeue", 100),
        trace(5, "block_rq_issue", 100),
        trace(6, "block_rq_complete", 800),
        trace(7, "block_rq_complete", 100),
    ], "none", {}, TICK)  # fmt: skip
    assert [(e.event, e.request) for e in made.events] == [
        ("insert", 0),
        ("insert", 1),
        ("dispatch", 0),
        ("requeue", 0),
        ("dispatch", 0),
        ("issue", 0),
        ("complete", 0),
    ]
    assert made.facts["unqueued"] == "1"


def test_type_information() -> None:
    """struct r { int a; union { long b; int c; }; bits d : 3 }"""
    names = b"\0int\0long\0r\0a\0b\0c\0d\0"
    at = {n: names.index(b"\0" + n.encode() + b"\0") + 1 for n in ("int", "long", "r", "a", "b", "c", "d")}
    int_ = struct.pack("<IIII", at["int"], 1 << 24, 4, 32)
    long_ = struct.pack("<IIII", at["long"], 1 << 24, 8, 64)
    union = struct.pack("<III", 0, 5 << 24 | 2, 8) + struct.pack("<6I", at["b"], 2, 0, at["c"], 1, 0)
    outer = struct.pack("<III", at["r"], 1 << 31 | 4 << 24 | 3, 24) + struct.pack(
        "<9I", at["a"], 1, 0, 0, 3, 64, at["d"], 1, 3 << 24 | 128
    )
    types = int_ + long_ + union + outer
    blob = struct.pack("<HBB5I", 0xEB9F, 1, 0, 24, 0, len(types), len(types), len(names)) + types + names
    btf = reader()
    assert btf.Btf(blob).offsets("r") == {"a": 0, "b": 8, "c": 8, "d": 16}
    text = b"\0m\0e\0"
    own = struct.pack("<III", len(names) + 1, 4 << 24 | 2, 32) + struct.pack("<6I", at["a"], 1, 64, len(names) + 3, 3, 128)
    part = struct.pack("<HBB5I", 0xEB9F, 1, 0, 24, 0, len(own), len(own), len(text)) + own + text
    assert btf.Btf(part, btf.Btf(blob)).offsets("m") == {"a": 8, "e": 16}
    with pytest.raises(btf.BtfError, match="no other"):
        btf.Btf(blob).offsets("other")
    with pytest.raises(btf.BtfError, match="not BTF"):
        btf.Btf(b"ELF")


def test_contract_is_kept() -> None:
    """A caller that breaks the contract is told so."""
    policy = Policy("kyber", nr_requests=64)
    with pytest.raises(Problem, match=r"insertion of .*error 2"):
        policy.insert(Request(0, 8, 0, task=1), 0)
    policy.start_task(1, 0)
    with pytest.raises(Problem, match="start of task 1: error 17"):
        policy.start_task(1, 0)
    number = policy.insert(Request(0, 8, 0, task=1), 0)
    for broken in (policy.complete, policy.issue, policy.requeue):
        with pytest.raises(Problem, match="error 2"):
            broken(number, 1)
    assert policy.find_merge(Request(8, 8, 0, task=1)) == (number, False)
    assert policy.limit_depth(Request(8, 8, 1, task=1)) == 48
    assert policy.has_work and policy.dispatch(1) == number and policy.dispatch(1) is None
    assert policy.stat("used_read") == 1
    policy.requeue(number, 2)
    assert policy.dispatch(2) == number
    policy.issue(number, 3)
    policy.complete(number, 4)
    policy.exit_task(1, 5)
    with pytest.raises(Problem, match="exit of task 1: error 2"):
        policy.exit_task(1, 6)
    with pytest.raises(Problem, match="read_lat_nsec=-1: error 34"):
        Policy("kyber", {"read_lat_nsec": -1})
