# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Feed a recording to our policy and compare each decision with the kernel's.

Our policy is asked exactly when the kernel's was. A decision is a question that at least one of the two answered with a
request; questions that both refused are counted apart. After a difference both go on with what they decided: a request
that ours gave too early is waiting for the kernel's, and the other way round, so that one exchange costs two decisions
and not all that follow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from headwaiter.base.errors import Problem
from headwaiter.conformance.decisions import NONE, DecisionRecording, Event
from headwaiter.engine.policy import NEVER, Policy, Request
from headwaiter.engine.schedulers import find

MAX_SHOWN = 20
# A timer runs up to so much late, while the kernel is busy with interrupts.
LATE_NS = 1_000_000


@dataclass(frozen=True)
class Difference:
    """A decision that differs: requests by number, None for a refusal."""

    time_ns: int
    kernel: int | None
    ours: int | None

    @property
    def kind(self) -> str:
        """The class of the difference."""
        if self.kernel is None:
            return "ours gives, the kernel refuses"
        if self.ours is None:
            return "the kernel gives, ours refuses"
        return "another request"


@dataclass
class Conformity:
    """The outcome of a recording."""

    scheduler: str
    workload: str
    kernel: str
    requests: int = 0
    decisions: int = 0
    refusals: int = 0  # by both
    kinds: Counter[str] = field(default_factory=Counter)
    first: list[Difference] = field(default_factory=list)

    @property
    def equal(self) -> int:
        """Decisions that are the kernel's."""
        return self.decisions - sum(self.kinds.values())

    @property
    def share(self) -> float:
        """Part of the decisions that are the kernel's, 0..1."""
        return self.equal / self.decisions if self.decisions else 1.0


def tunables(recording: DecisionRecording) -> dict[str, int]:
    """Our policy's tunables for a recording: what the kernel showed, and its version and tick where ours has them."""
    scheduler = find(recording.fact("scheduler"))
    out = {}
    for name, text in recording.settings.items():
        if name in scheduler.tunables:
            out[name] = scheduler.tunables[name].parse(f"recording: {name}", text)
    version = ".".join(recording.fact("kernel").split(".")[:2])
    if "kernel" in scheduler.tunables:
        out["kernel"] = scheduler.tunables["kernel"].parse("recording: kernel", version)
    if "tick_us" in scheduler.tunables:
        out["tick_us"] = recording.number("tick_ns") // 1000
    return out


class _Check:
    """The state of a comparison."""

    def __init__(self, recording: DecisionRecording) -> None:
        scheduler = recording.fact("scheduler")
        self.verdict = Conformity(scheduler, recording.fact("workload"), recording.fact("kernel"))
        start = recording.events[0].time_ns if recording.events else 0
        self.policy = Policy(
            scheduler,
            tunables(recording),
            depth=recording.number("depth"),
            nr_requests=recording.number("nr_requests"),
            now=start,
        )
        self.ids: dict[int, int] = {}  # ours by the recording's, of requests that exist
        self.names: dict[int, int] = {}  # and back
        self.early: set[int] = set()  # given by ours, not yet by the kernel
        self.late: set[int] = set()  # given by the kernel, not yet by ours
        self.done: set[int] = set()  # late and completed meanwhile
        self.tasks: set[int] = set()
        self.timed = any(e.event == "timer" for e in recording.events)
        self.wake = NEVER  # when our policy's timer is due
        self.now = start

    def take(self, e: Event) -> None:
        """One event of the recording."""
        # As long as the kernel's timer has not run, ours has not either.
        late = self.timed and e.event != "timer" and self.wake <= e.time_ns < self.wake + LATE_NS
        self.now = max(self.now, self.wake - 1 if late else e.time_ns)
        getattr(self, f"_{e.event}")(e)

    def _attach(self, e: Event) -> None:
        pass  # ours was attached at the time of the first event

    def _timer(self, e: Event) -> None:
        self.wake = NEVER

    def _start(self, e: Event) -> None:
        if e.task not in self.tasks:
            self.tasks.add(e.task)
            self.policy.start_task(e.task, self.now, e.ioprio)

    def _allow(self, e: Event) -> None:
        if e.request not in self.early:
            self._start(e)
            self.policy.allow_merge(
                self.ids[e.request], Request(e.sector, e.sectors, e.op, e.task, e.flags, e.ioprio, e.cpu), self.now
            )

    def _insert(self, e: Event) -> None:
        if e.request in self.ids:
            raise Problem(f"recording: at {e.time_ns} ns request {e.request} is inserted again")
        self._start(e)
        number = self.policy.insert(Request(e.sector, e.sectors, e.op, e.task, e.flags, e.ioprio, e.cpu), self.now)
        self.ids[e.request] = number
        self.names[number] = e.request
        self.verdict.requests += 1

    def _grow(self, e: Event) -> None:
        if e.request not in self.early:  # else ours has it in the device already
            self.policy.grow(self.ids[e.request], e.event == "front", e.sectors, self.now)

    _back = _front = _grow

    def _join(self, e: Event) -> None:
        if e.request in self.early or e.other in self.early:
            raise Problem("recording: requests were merged after ours had dispatched one: cannot continue")
        self.policy.join(self.ids[e.request], self.ids[e.other])
        del self.ids[e.other]

    def _dispatch(self, e: Event) -> None:
        theirs = None if e.request == NONE else e.request
        answer = self.policy.dispatch(self.now)
        self.wake = self.policy.wake_ns if answer is None else NEVER
        ours = None if answer is None else self.names[answer]
        if theirs is None and ours is None:
            self.verdict.refusals += 1
            return
        self.verdict.decisions += 1
        if ours == theirs:
            return
        difference = Difference(e.time_ns, theirs, ours)
        self.verdict.kinds[difference.kind] += 1
        if len(self.verdict.first) < MAX_SHOWN:
            self.verdict.first.append(difference)
        if ours is not None:
            if ours in self.late:
                self.late.remove(ours)
                if ours in self.done:
                    self._finish(ours, self.now)
            else:
                self.early.add(ours)
        if theirs is not None:
            if theirs in self.early:
                self.early.remove(theirs)
            else:
                self.late.add(theirs)

    def _issue(self, e: Event) -> None:
        if e.request not in self.late:
            self.policy.issue(self.ids[e.request], self.now)

    def _finish(self, request: int, now: int) -> None:
        self.policy.complete(self.ids.pop(request), now)
        self.done.discard(request)

    def _complete(self, e: Event) -> None:
        if e.request in self.late:
            self.done.add(e.request)
        else:
            self._finish(e.request, self.now)

    def _requeue(self, e: Event) -> None:
        if e.request in self.late:
            self.late.remove(e.request)  # ours still has it
        else:
            self.policy.requeue(self.ids[e.request], self.now)

    def _exit(self, e: Event) -> None:
        self.tasks.discard(e.task)
        self.policy.exit_task(e.task, self.now)


def check(recording: DecisionRecording) -> Conformity:
    """Our policy's decisions against the recorded kernel's; Problem when the recording contradicts itself."""
    c = _Check(recording)
    for e in recording.events:
        try:
            c.take(e)
        except KeyError as missing:
            raise Problem(f"recording: at {e.time_ns} ns {e.event} refers to a request that does not exist: {missing}") from None
    return c.verdict
