# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The device of the recorded vectors: null_blk with a fixed service time, fed by blk-mq.

blk-mq takes one request more from the scheduler than the device takes, because it learns only then that there is no
driver tag left; while it holds that one, it asks for no other. A scheduler that has requests and gives none is asked
again when it says so (wake_ns).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headwaiter.engine.policy import NEVER, Policy, Request


@dataclass
class Device:
    """Serves `depth` requests at once, each in service_ns. Tasks start with their first request."""

    policy: Policy
    service_ns: int
    depth: int = 1
    order: list[int] = field(default_factory=list)  # ids, as they went to the device
    served: list[tuple[int, int]] = field(default_factory=list)  # (time, id) of completions
    now: int = 0
    _busy: list[tuple[int, int]] = field(default_factory=list)  # (time of completion, id), in order
    _held: int | None = None
    _wake: int = NEVER
    _tasks: set[int] = field(default_factory=set)

    def _issue(self, request: int) -> None:
        self._busy.append((self.now + self.service_ns, request))
        self.order.append(request)

    def _feed(self) -> None:
        """Take from the policy until it gives nothing or there is one request too many."""
        self._wake = NEVER
        if self._held is not None and len(self._busy) < self.depth:
            self._issue(self._held)
            self._held = None
        while self._held is None:
            request = self.policy.dispatch(self.now)
            if request is None:
                self._wake = self.policy.wake_ns
                return
            if len(self._busy) < self.depth:
                self._issue(request)
            else:
                self._held = request

    def insert(self, request: Request, at: int) -> int:
        """A request arrives at time `at`, after everything that happens before."""
        self.run(until=at)
        self.now = max(self.now, at)
        if request.task not in self._tasks:
            self._tasks.add(request.task)
            self.policy.start_task(request.task, self.now, request.ioprio)
        number = self.policy.insert(request, self.now)
        self._feed()
        return number

    def run(self, until: int = NEVER) -> list[int]:
        """Let time pass, to the end by default. The order so far."""
        while True:
            done = self._busy[0][0] if self._busy else NEVER
            wake = self._wake if self._held is None else NEVER
            when = min(done, wake)
            if when == NEVER or when > until:
                return self.order
            self.now = when
            while self._busy and self._busy[0][0] == when:
                _, request = self._busy.pop(0)
                self.policy.complete(request, when)
                self.served.append((when, request))
            self._feed()
