# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a load that hurts a reader to advice, applied and reverted: the reader's 99th percentile each time.

    python bench/endtoend.py                 on a loop device; needs libfuse2 and `pip install fusepy`
    python bench/endtoend.py DISK FOLDER     on a disk of this machine; FOLDER is on it, and gets two files of 1 GiB for the time

Either takes about three minutes, root and fio. A program reads 4 KiB at random. Beside it, on the loop device, a backup writes
with 32 requests under way, and on a disk two programs read 256 KiB at random with 64 each. Behind the loop device is a file that
is as slow as a disk with one head: 6 ms and more a movement, 60 MB/s. The times are this machine's; the disk's dominate.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

SIZE = 8 << 30
RATE = 60e6
"""Bytes a second."""
TRACK_S, HALF_TURN_S, STROKE_S = 0.002, 0.004, 0.006
SECONDS = 62
LOAD = ["--direct=1", "--time_based", "--size=1g", "--ioengine=libaio"]
READER = ["--name=reader", "--rw=randread", "--bs=4k"]
BACKUP = ["--name=backup", "--rw=write", "--bs=256k", "--iodepth=32"]
SCAN = ["--name=scan", "--rw=randread", "--bs=256k", "--iodepth=64", "--numjobs=2"]


def serve(backing: str, folder: str) -> None:
    """Be the file system of that file."""
    fuse = importlib.import_module("fuse")

    class OneHead(fuse.Operations):  # type: ignore[misc,name-defined,unused-ignore]
        """One request at a time, by its place."""

        def __init__(self) -> None:
            self.file = os.open(backing, os.O_RDWR | os.O_CREAT)
            os.ftruncate(self.file, SIZE)
            self.lock, self.head = threading.Lock(), 0

        def getattr(self, path: str, _: Any = None) -> dict[str, int]:
            if path == "/":
                return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
            if path == "/disk":
                return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": SIZE}
            raise fuse.FuseOSError(errno.ENOENT)

        def _move(self, place: int, size: int) -> None:
            with self.lock:
                way = abs(place - self.head)
                time.sleep(size / RATE + (TRACK_S + HALF_TURN_S + STROKE_S * (way / SIZE) ** 0.5 if way else 0))
                self.head = place + size

        def read(self, _: str, size: int, place: int, __: int) -> bytes:
            self._move(place, size)
            return os.pread(self.file, size, place)

        def write(self, _: str, data: bytes, place: int, __: int) -> int:
            self._move(place, len(data))
            return os.pwrite(self.file, data, place)

    fuse.FUSE(OneHead(), folder, foreground=True, direct_io=True, max_read=1 << 20, big_writes=True)


def reader(places: tuple[str, str], other: list[str], seconds: int) -> str:
    """What the reader has beside the other, in words; places: where each of them works, as options of fio."""
    mine, its = places
    load = [*LOAD, *READER, *mine.split(), *other, *its.split()]
    command = ["fio", f"--runtime={seconds}", "--output-format=json", "--eta=never", *load]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told = json.loads(done.stdout)["jobs"][0]["read"]
    return f"{told['clat_ns']['percentile']['99.000000'] / 1e6:.3g} ms, {told['iops']:.1f} reads a second"


def tried(disk: str, places: tuple[str, str], other: list[str], state: Path) -> None:
    """The reader before the advice, with it and after it; nothing more where the advice is to change nothing."""
    headwaiter, kept = Path(sys.executable).with_name("headwaiter"), ["--state", str(state)]
    advise = subprocess.Popen([headwaiter, "advise", disk, "-t", str(SECONDS - 1), "--apply", *kept])
    print("before:", reader(places, other, SECONDS + 4))
    advise.wait()
    if not state.exists():
        return
    print("after:", reader(places, other, 20))
    subprocess.run([headwaiter, "revert", disk, *kept], check=True)
    print("reverted:", reader(places, other, 20))


def on_loop(made: Path) -> None:
    """With the slow file behind a loop device."""
    backing, folder = made / "data", made / "slow"
    folder.mkdir()
    server = subprocess.Popen([sys.executable, __file__, "serve", str(backing), str(folder)], stderr=subprocess.DEVNULL)
    disk = ""
    try:
        while not (folder / "disk").exists():
            if server.poll() is not None:
                sys.exit("endtoend.py: the file is not served: are libfuse2 and fusepy installed?")
            time.sleep(0.1)
        loop = ["losetup", "-f", "--show", "--direct-io=on", str(folder / "disk")]
        disk = subprocess.run(loop, check=True, capture_output=True, text=True).stdout.strip()
        tried(disk, (f"--filename={disk}", f"--filename={disk} --offset=4g"), BACKUP, made / "state")
    finally:
        if disk:
            subprocess.run(["losetup", "-d", disk], check=False)
        subprocess.run(["fusermount", "-u", folder], check=False)
        server.wait()


def main() -> None:
    disk, folder = sys.argv[1:] or ("", None)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        if disk:
            tried(disk, (f"--filename={made}/read", f"--filename={made}/other"), SCAN, Path(made) / "state")
        else:
            on_loop(Path(made))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    else:
        main()
