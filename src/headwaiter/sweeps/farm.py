# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Workers, by Dask: those of this machine, of a Dask scheduler that runs, of Slurm or of Kubernetes; and work in batches.

Batches are as long as their overhead is small, and no more of them are under way than keep workers busy. A batch whose worker
has gone is run again by another; one that takes worker after worker with it is divided until the item is found that does.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import headwaiter
from headwaiter.base.errors import Problem, plain, shown

Item = TypeVar("Item")
Done = TypeVar("Done")
SLURM, KUBERNETES = "slurm", "kubernetes"
_ADDRESSES = ("tcp://", "tls://", "ws://", "wss://", "ucx://")
_BATCH_S = 2.0
"""A batch is to take about so long."""
_FIRST, _MOST = 4, 512
"""Items of a batch where nothing is known yet, and at most."""
_AHEAD = 2
"""So many batches for each worker are under way, so that none waits for its next."""
_DEATHS = 2
"""So many workers may go with a batch before it is taken for the cause; Dask counts them."""
_TRIALS = 2
"""So often a single item is tried that had taken _DEATHS workers with it."""
_CONNECT_S = 30
_LOOK_S = 1.0
_MISSING_S = 15.0
"""A worker that has not come again after so long will not."""
_NO_WORKER_S = 300.0
_UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
}
"""What Dask measures for its dashboard, which is off: 50 times a second in each process, on processors that workers have busy."""


class Farm:
    """Workers that are at hand. `local`: the cluster of this machine, whose lost workers are replaced; None elsewhere."""

    def __init__(self, client: Any, local: _Local | None = None) -> None:
        self.client, self._local = client, local

    def slots(self) -> int:
        """Return how many batches can be at work at once, now."""
        return sum(self.client.nthreads().values())

    def workers(self) -> int:
        """Return how many workers there are, now."""
        return len(self.client.nthreads())

    def mend(self) -> None:
        """Replace workers that have gone for good."""
        if self._local:
            self._local.mend()


@contextmanager
def workers_of(cluster: str | None, workers: int | None) -> Iterator[Farm]:
    """Workers: of this machine (None), `slurm`, `kubernetes`, or the address of a Dask scheduler.

    workers: how many (None: a process for each processor of this machine; elsewhere those that are there). Problem if it cannot
    be had.
    """
    import dask  # noqa: PLC0415 (an optional dependency)
    import distributed  # noqa: PLC0415

    retried = {
        "distributed.scheduler.allowed-failures": _DEATHS,
        "distributed.comm.timeouts.connect": f"{_CONNECT_S}s",
        # What waits at a worker would be taken for a cause of its death, too.
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with ExitStack() as stack:
        stack.enter_context(_silence())
        stack.enter_context(dask.config.set({**_UNWATCHED, **retried}))
        local = None
        if cluster is None:
            stack.enter_context(_unscripted())
            local = stack.enter_context(_local(workers or len(os.sched_getaffinity(0))))
            made: Any = local.cluster
        elif cluster.startswith(_ADDRESSES):
            if workers is not None:
                raise Problem("--workers: a scheduler that runs has its own workers")
            made = cluster
        else:
            made = stack.enter_context(_made(cluster, workers))
        make: Any = distributed.Client
        try:
            client = stack.enter_context(make(made, timeout=_CONNECT_S, set_as_default=False))
        except (OSError, ValueError, TimeoutError) as e:
            cause = plain((str(e) or type(e).__name__).splitlines()[0])
            raise Problem(f"--cluster {shown(str(cluster), 100)}: no Dask scheduler answers there ({cause[:200]})") from None
        stack.enter_context(client.as_current())
        if local is None:
            _check_versions(client)
        yield Farm(client, local)


def _check_versions(client: Any) -> None:
    """Problem if a worker that is there has no headwaiter, or another version: what it is sent it could not even read."""
    # As text, so that it is sent by value.
    ask = eval(
        "lambda: __import__('importlib').import_module('importlib.metadata').version('headwaiter')", {"__name__": "__main__"}
    )
    for where, version in client.run(ask, on_error="return").items():
        if isinstance(version, Exception):
            raise Problem(f"the worker {plain(where)} has no headwaiter ({type(version).__name__})")
        if version != headwaiter.__version__:
            raise Problem(f"the worker {plain(where)} has headwaiter {plain(str(version))}, and this is {headwaiter.__version__}")


@contextmanager
def _silence() -> Iterator[None]:
    """Have Dask not tell of workers that come and go: what matters of that is told otherwise."""
    logs = [logging.getLogger(name) for name in ("distributed", "tornado.application", "asyncio")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, before, strict=True):
            log.setLevel(level)


@contextmanager
def _made(cluster: str, workers: int | None) -> Iterator[Any]:
    if cluster == SLURM:
        # Queue, account and wall time are those of Dask's own configuration (docs/sweep.md).
        kind = _imported("dask_jobqueue", "SLURMCluster", "dask-jobqueue", cluster)
        with _started(cluster, lambda: kind(cores=1, processes=1), workers) as made:
            yield made
    elif cluster == KUBERNETES:
        kind = _imported("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes", cluster)
        with _started(cluster, kind, workers) as made:
            yield made
    else:
        known = f"{SLURM}, {KUBERNETES}, or an address such as tcp://host:8786"
        raise Problem(f"--cluster {shown(cluster, 100)}: expected {known}")


class _Local:
    """The workers of this machine.

    Dask starts a worker anew that is killed at work, but not one that is killed while it starts.
    """

    def __init__(self, cluster: Any, wanted: int) -> None:
        self.cluster, self.wanted = cluster, wanted
        self._missing: dict[object, float] = {}
        self._began: float | None = time.monotonic()

    def mend(self) -> None:
        """Take out workers that have been missing for long, and start others. Problem if none has ever come."""
        now = time.monotonic()
        there = {one.name for one in list(self.cluster.scheduler.workers.values())}
        if there:
            self._began = None
        elif self._began is not None and now - self._began > _NO_WORKER_S:
            raise Problem(f"no worker has started in {_NO_WORKER_S:.0f} s")
        if len(there) >= self.wanted:
            self._missing.clear()
            return
        for name, nanny in list(self.cluster.workers.items()):
            if name in there:
                self._missing.pop(name, None)
            elif now - self._missing.setdefault(name, now) > _MISSING_S or nanny.status.name in ("failed", "closed"):
                del self._missing[name]
                self.cluster.workers.pop(name, None)
                self.cluster.loop.add_callback(nanny.close, timeout=0)
        self.cluster.scale(self.wanted)


@contextmanager
def _local(workers: int) -> Iterator[_Local]:
    """A process for each worker. They end with this one, whatever ends it."""
    import distributed  # noqa: PLC0415

    make: Any = distributed.LocalCluster
    made = make(
        n_workers=0,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        worker_dashboard_address=None,
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.CRITICAL,
        host="127.0.0.1",
        memory_limit=_memory_bytes(workers),
    )
    try:
        made.scale(workers)
        yield _Local(made, workers)
    finally:
        _end(made)


def _end(cluster: Any) -> None:
    """Close a cluster of this machine, whatever its workers are doing.

    Dask cannot close a worker whose process it is about to start anew (an assertion fails in distributed's nanny.py), and then
    leaves the others open. All results are there, and the worker it could not close ends with this process at the latest.
    """
    from distributed.core import Status  # noqa: PLC0415

    for _ in range(len(cluster.workers) + 1):
        try:
            cluster.close()
        except AssertionError:
            cluster.status = Status.running  # else it would wait for the end of the first attempt
        else:
            return


def _memory_bytes(workers: int) -> int:
    """A worker that takes more than its part of the memory is killed, and the others go on."""
    from distributed.system import MEMORY_LIMIT  # noqa: PLC0415

    return int(MEMORY_LIMIT // workers)


@contextmanager
def _unscripted() -> Iterator[None]:
    """Have new processes not run the user's script anew, which would sweep in turn where nothing in it forbids that."""
    main = vars(sys.modules["__main__"])
    path = main.pop("__file__", None) if main.get("__spec__") is None else None
    try:
        yield
    finally:
        if path is not None:
            main["__file__"] = path


def _imported(module: str, name: str, package: str, cluster: str) -> Any:
    import importlib  # noqa: PLC0415

    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        raise Problem(f"--cluster {cluster} needs {package}: pip install {package}") from None


@contextmanager
def _started(cluster: str, make: Callable[[], Any], workers: int | None) -> Iterator[Any]:
    """A cluster of one of Dask's packages, with so many workers."""
    if workers is None:
        raise Problem(f"--cluster {cluster} needs --workers N")
    try:
        made = make()
    except Exception as e:  # of the package, or of what it talks to
        raise Problem(f"--cluster {cluster}: {plain((str(e) or type(e).__name__).splitlines()[0])[:300]}") from None
    with made:
        made.scale(workers)
        yield made


@dataclass
class _Batch(Generic[Item]):
    items: list[Item]
    group: Hashable
    trials: int = 0


@dataclass
class Spreading(Generic[Item, Done]):
    """Work for workers: items that are run in batches of one group, group after group.

    run: what a worker does with a batch; it takes what `pack` makes of its items.
    """

    farm: Farm
    run: Callable[[Any], Done]
    pack: Callable[[Sequence[Item]], Any]
    group: Callable[[Item], Hashable]
    lost: int = 0
    """Batches whose workers went so often that Dask gave them back."""
    _seconds: dict[Hashable, float] = field(default_factory=dict)
    """How long an item of each group takes."""
    _last: float | None = None

    def results(self, items: Sequence[Item]) -> Iterator[tuple[list[Item], Done | str]]:
        """What came of each batch, in the order in which that comes; of an item that takes its workers with it, why it has none.

        Problem if the cluster is lost, or a worker cannot do the work at all.
        """
        import distributed  # noqa: PLC0415

        wait: Any = distributed.wait
        again: list[_Batch[Item]] = []
        futures: dict[Any, _Batch[Item]] = {}
        at, number = 0, 0
        while at < len(items) or again or futures:
            self.farm.mend()
            slots = max(1, self.farm.slots())
            while len(futures) < _AHEAD * slots and (again or at < len(items)):
                if again:
                    batch = again.pop()
                else:
                    batch = self._next(items, at, slots)
                    at += len(batch.items)
                number += 1
                future = self.farm.client.submit(
                    _timed,
                    self.run,
                    self.pack(batch.items),
                    pure=False,
                    priority=-number,
                    key=f"headwaiter-{os.urandom(8).hex()}",
                )
                futures[future] = batch
            with suppress(TimeoutError):
                wait(list(futures), timeout=_LOOK_S, return_when="FIRST_COMPLETED")
            for future in [one for one in futures if one.done()]:
                batch = futures.pop(future)
                outcome = self._outcome(future, batch, again)
                if outcome is not None:
                    yield batch.items, outcome
            if self.farm.client.status not in ("running", "newly-created"):
                raise Problem("the Dask scheduler has gone; what was done is kept, and the same command goes on")

    def _next(self, items: Sequence[Item], at: int, slots: int) -> _Batch[Item]:
        """Return the next items of one group that take about _BATCH_S; fewer towards the end, so that all end together."""
        group = self.group(items[at])
        each = self._seconds.get(group, self._last)
        many = _FIRST if each is None else int(_BATCH_S / max(each, 1e-6))
        many = min(max(1, many), _MOST, max(1, (len(items) - at) // (_AHEAD * slots)))
        end = at
        while end < len(items) and end < at + many and self.group(items[end]) == group:
            end += 1
        return _Batch(list(items[at:end]), group)

    def _outcome(self, future: Any, batch: _Batch[Item], again: list[_Batch[Item]]) -> Done | str | None:
        """Return what came of a batch; None if it is to be run again."""
        from distributed.scheduler import KilledWorker  # noqa: PLC0415

        if future.status == "cancelled":
            self.lost += 1
            again.append(batch)
            return None
        try:
            # What a worker has done is lost if that is killed before it is asked; it is done again then.
            done, seconds = future.result()
        except Exception as e:  # whatever was raised where the batch ran
            error = e
        else:
            self._last = self._seconds[batch.group] = seconds / len(batch.items)
            return done  # type: ignore[no-any-return]
        if isinstance(error, KilledWorker):
            self.lost += 1
            if len(batch.items) > 1:
                middle = len(batch.items) // 2
                again += [_Batch(batch.items[middle:], batch.group), _Batch(batch.items[:middle], batch.group)]
                return None
            if batch.trials + 1 < _TRIALS:
                again.append(_Batch(batch.items, batch.group, batch.trials + 1))
                return None
            return f"every worker that ran it was killed (memory?), {_TRIALS * (_DEATHS + 1)} in all"
        if isinstance(error, Problem):
            raise error
        cause = plain((str(error) or type(error).__name__).splitlines()[0])
        raise Problem(f"a worker cannot do the work: {type(error).__name__}: {cause[:300]}") from None


def _timed(run: Callable[[Any], Done], packed: Any) -> tuple[Done, float]:
    """Return what a worker does, and how long it took (s)."""
    began = time.monotonic()
    done = run(packed)
    return done, time.monotonic() - began
