# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A policy by itself: the caller is the host, and says what happens and when (struct hwd of libheadwaiter)."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass

from headwaiter.base.errors import Problem, shown
from headwaiter.engine.native import borrow, ffi, lib
from headwaiter.engine.policy_tables import Setting
from headwaiter.engine.schedulers import find

NEVER = 2**64 - 1


@dataclass(frozen=True)
class Request:
    """A request as a policy is told of it: sectors of 512 bytes, op as constants.Op, flags as constants.SYNC ….

    ioprio as constants.ioprio(), 0 for none; cpu is the software queue; group 0 is none.
    """

    sector: int
    sectors: int
    op: int
    task: int = 0
    flags: int = 0
    ioprio: int = 0
    cpu: int = 0
    group: int = 0


class Policy:
    """One queue of one policy. Times are ns and never go back; requests are known by the id that insert() returns.

    Methods raise Problem when the caller breaks the contract, such as completing what was not dispatched, or memory is out.
    """

    def __init__(
        self,
        name: str,
        tunables: Mapping[str, Setting] | None = None,
        *,
        sectors: int = 1 << 40,
        rotational: bool = True,
        depth: int = 1,
        nr_requests: int = 0,
        now: int = 0,
    ) -> None:
        """Tunables are numbers, as Tunable.parse gives them, tables are arrays of rows; nr_requests 0 is no limit of tags."""
        self.scheduler = find(name)
        self._d = ffi.gc(lib.hwd_new(name.encode(), sectors, rotational, depth, nr_requests), lib.hwd_free)
        if self._d == ffi.NULL:
            raise Problem(f"{name}: out of memory")
        for key, value in (tunables or {}).items():
            if key in self.scheduler.tables:
                self.set_table(key, value)
            else:
                self._check(lib.hwd_set(self._d, key.encode(), value), f"tunable {key}={value}")
        self._check(lib.hwd_start(self._d, now), "start")

    def set_table(self, name: str, rows: Setting) -> None:
        """From now on these rows are in force. Problem if core refuses them: then the old ones stay."""
        if name not in self.scheduler.tables:
            raise Problem(f"{self.scheduler.name}: no table '{shown(name)}'")
        cells = self.scheduler.tables[name].check(self.scheduler.name, rows)
        self._check(lib.hwd_set_table(self._d, name.encode(), borrow("int64_t[]", cells), *cells.shape), f"table {name}")

    def _check(self, status: int, what: str) -> int:
        if status < 0:
            why = "out of memory" if status == -errno.ENOMEM else f"error {-status}"
            raise Problem(f"{self.scheduler.name}: {what}: {why}")
        return status

    @staticmethod
    def _request(r: Request) -> object:
        return ffi.new(
            "struct hwd_request *",
            {
                "sector": r.sector,
                "sectors": r.sectors,
                "task": r.task,
                "op": r.op,
                "flags": r.flags,
                "ioprio": r.ioprio,
                "cpu": r.cpu,
                "group": r.group,
            },
        )

    def start_task(self, task: int, now: int, ioprio: int = 0, share: int = 0) -> None:
        """A task must have started before it issues requests."""
        self._check(lib.hwd_task_start(self._d, task, ioprio, share, now), f"start of task {task}")

    def exit_task(self, task: int, now: int) -> None:
        """The task issues no more; its number is free again."""
        self._check(lib.hwd_task_exit(self._d, task, now), f"exit of task {task}")

    def start_group(self, group: int, weight: int = 100, parent: int = 0) -> None:
        """A group of tasks, numbered from 1 on, that shares by weight with its siblings."""
        self._check(lib.hwd_group_start(self._d, group, parent, weight), f"start of group {group}")

    def weigh_group(self, group: int, weight: int) -> None:
        """From now on it has this weight."""
        self._check(lib.hwd_group_weight(self._d, group, weight), f"weight of group {group}")

    def end_group(self, group: int) -> None:
        """Nobody is in it any more; its number is free again."""
        self._check(lib.hwd_group_end(self._d, group), f"end of group {group}")

    def insert(self, request: Request, now: int) -> int:
        """The new request's id: insertions counted from 0."""
        return self._check(lib.hwd_insert(self._d, self._request(request), now), f"insertion of {request}")

    def dispatch(self, now: int) -> int | None:
        """The id of the request that the policy decides for, if it does."""
        request = int(lib.hwd_dispatch(self._d, now))
        return None if request < 0 else request

    @property
    def wake_ns(self) -> int:
        """Return when to ask again after dispatch() gave nothing; NEVER if only an event can help."""
        return int(lib.hwd_wake_ns(self._d))

    @property
    def has_work(self) -> bool:
        """Would dispatch() perhaps return a request?"""
        return bool(lib.hwd_has_work(self._d))

    def issue(self, request: int, now: int) -> None:
        """A request that was pulled ahead goes to the device only now: its time there begins."""
        self._check(lib.hwd_issue(self._d, request, now), f"issue of request {request}")

    def complete(self, request: int, now: int) -> None:
        """The device has served the request."""
        self._check(lib.hwd_complete(self._d, request, now), f"completion of request {request}")

    def requeue(self, request: int, now: int) -> None:
        """The device has given the request back."""
        self._check(lib.hwd_requeue(self._d, request, now), f"requeue of request {request}")

    def grow(self, request: int, front: bool, sectors: int, now: int) -> None:
        """The host has merged so many sectors into a queued request, before or after it."""
        self._check(lib.hwd_grow(self._d, request, front, sectors, now), f"merge into request {request}")

    def join(self, keep: int, gone: int) -> None:
        """The host has joined two queued requests that touch; `gone` lies behind `keep` and is no more."""
        self._check(lib.hwd_join(self._d, keep, gone), f"merge of request {gone} into {keep}")

    def find_merge(self, request: Request) -> tuple[int, bool] | None:
        """The policy's own look-up: whom the range would join, and whether in front."""
        front = ffi.new("int *")
        found = int(lib.hwd_find_merge(self._d, self._request(request), front))
        return None if found < 0 else (found, bool(front[0]))

    def allow_merge(self, request: int, bio: Request, now: int) -> bool:
        """Would the policy let a bio join the queued request? It may merge queues when it is asked."""
        return bool(self._check(lib.hwd_allow_merge(self._d, request, self._request(bio), now), f"merge into request {request}"))

    def limit_depth(self, request: Request) -> int:
        """Return how many tags such a request may see in use when it is allocated."""
        return int(lib.hwd_limit_depth(self._d, self._request(request)))

    def stat(self, name: str) -> int:
        """A figure that the policy keeps."""
        value = ffi.new("int64_t *")
        self._check(lib.hwd_stat(self._d, name.encode(), value), f"statistic {name}")
        return int(value[0])
