# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The commands of a tutorial, one after another in one folder, as its reader types them.

In the folder is the bundled recording `nas` under the name that the tutorial for administrators gives to its own, and every file
that the tutorial shows: a block of code behind a line that ends in "`NAME`:".
"""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from headwaiter.base.paths import WORKLOADS

RECORDING = "sdb.hwr"
SHOWN = re.compile(r"`([\w.-]+)`:\n+ *```\w+\n(.*?)^ *```", re.M | re.S)


class Session:
    """A folder, and a shell in it that finds `headwaiter`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.kept = tempfile.TemporaryDirectory(prefix="headwaiter-tutorial-")
        self.folder = Path(self.kept.name)

    def __enter__(self) -> Session:
        if "<!-- shell: " in self.text:
            (self.folder / RECORDING).write_bytes(lzma.decompress((WORKLOADS / "nas.blktrace.xz").read_bytes()))
            for name, content in SHOWN.findall(self.text):
                indent = min(len(line) - len(line.lstrip()) for line in content.splitlines() if line.strip())
                (self.folder / name).write_text("".join(line[indent:] for line in content.splitlines(True)), encoding="utf-8")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kept.cleanup()

    def block(self, command: str) -> str:
        """The command, and all that it prints; an error where it fails."""
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "100"}
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=environment, check=False, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}")
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        return f"```text\n$ {command}\n" + "".join(f"{line}\n" for line in lines) + "```\n"
