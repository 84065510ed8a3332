# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that apply and revert, or watch, until they are killed: `killed.py ROOT STATE DEVICE SOCKET|- apply|watch`, one for
each line of stdin.

Without a SOCKET (-) they write to the real sysfs. With one, writes go to the process at the other end, which plays the kernel:
it completes what it was asked, whatever becomes of the asker.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from headwaiter.queue.apply import apply, revert
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.queue.settings import Queue, Settings
from headwaiter.watch.decide import Caution, Window
from headwaiter.watch.service import Rules, Service

WANTED = (
    Settings("bfq", 100, {"slice_idle": "0", "low_latency": "0"}),
    Settings("kyber", 50, {"read_lat_nsec": "1000000"}),
    Settings("none"),
    Settings("mq-deadline", 80, {"fifo_batch": "3", "read_expire": "100"}),
)

NO_TIME_S = 1e-200
"""So long are windows: what has made things worse is left alone for some of them, which is no time."""


class Restless:
    """A method by which another scheduler is always better, and what was chosen always worse."""

    turn = 0

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        """See sample.Method."""
        self.turn += 1
        best = ("bfq", "kyber", "mq-deadline")[self.turn // 2 % 3]
        return Window(NO_TIME_S, 999, 1.0, float(self.turn), 4096.0, 1.0, waited_s=1e6, advantage={best: 1.0})


def work(root: str, state: str, name: str, path: str, what: str) -> None:
    """Runs until it is killed."""
    if path != "-":
        kernel = socket.socket(socket.AF_UNIX)
        kernel.connect(path)

        def asked(queue: Queue, file: str, value: str) -> None:
            kernel.sendall(json.dumps([queue.device.name, file, value]).encode() + b"\n")
            if kernel.recv(1) != b"+":
                raise OSError(22, "Invalid argument")

        Queue._set = asked  # type: ignore[method-assign,assignment]
    machine = Machine(Path(root), Path(state))
    if what == "watch":
        rules = Rules(put=True, caution=Caution(windows=1, confirm=1, dwell=1, changes=10**9))
        Service(machine, [name], Restless(), rules, lambda line: None, lambda s: False).run()
    for turn in itertools.count():
        device = machine.find(name)
        if turn % 3 == 2:
            revert(device, machine.state)
        else:
            apply([device], WANTED[turn % len(WANTED)], machine.state, "killed.py")


def main() -> None:
    """A process for each line; its number is printed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            work(*sys.argv[1:])
        print(child, flush=True)


if __name__ == "__main__":
    main()
