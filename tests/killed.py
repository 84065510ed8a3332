# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that apply and revert until they are killed: `killed.py ROOT STATE DEVICE [SOCKET]`, one for each line of stdin.

Without a SOCKET they write to the real sysfs. With one, writes go to the process at the other end, which plays the kernel: it
completes what it was asked, whatever becomes of the asker.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import sys
from pathlib import Path

from headwaiter.live.apply import apply, revert
from headwaiter.live.machine import Machine
from headwaiter.live.settings import Queue, Settings

WANTED = (
    Settings("bfq", 100, {"slice_idle": "0", "low_latency": "0"}),
    Settings("kyber", 50, {"read_lat_nsec": "1000000"}),
    Settings("none"),
    Settings("mq-deadline", 80, {"fifo_batch": "3", "read_expire": "100"}),
)


def work(root: str, state: str, name: str, path: str = "") -> None:
    """Runs until it is killed."""
    if path:
        kernel = socket.socket(socket.AF_UNIX)
        kernel.connect(path)

        def asked(queue: Queue, file: str, value: str) -> None:
            kernel.sendall(json.dumps([queue.device.name, file, value]).encode() + b"\n")
            if kernel.recv(1) != b"+":
                raise OSError(22, "Invalid argument")

        Queue._set = asked  # type: ignore[method-assign,assignment]
    machine = Machine(Path(root), Path(state))
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
