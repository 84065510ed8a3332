# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""On a loop device of our own, as root: record during a load, advise, apply and revert leave in its queue what they say."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from command import good, run
from test_live_killed import loop

__all__ = ["loop"]


def scheduler(name: str) -> str:
    text = (Path("/sys/block") / name / "queue/scheduler").read_text()
    return text[text.index("[") + 1 : text.index("]")]


@pytest.mark.thorough
@pytest.mark.needs("fio")
def test_record_advise_apply_revert(loop: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Readers of 16 KiB at random beside a reader in order: what is advised is in force, and revert restores."""
    fio = shutil.which("fio")
    assert fio
    common = [f"--filename=/dev/{loop}", "--readonly", "--direct=1", "--time_based", "--runtime=30", "--output=fio.out"]
    jobs = ["--name=random", "--rw=randread", "--bs=16k", "--numjobs=4", "--name=order", "--rw=read", "--bs=64k", "--numjobs=1"]
    archive, state = tmp_path / "a.hwr", tmp_path / "state"
    with subprocess.Popen([fio, *common, *jobs], cwd=tmp_path) as load:
        status, _, err = run(capfd, "record", loop, "-t", "3", "-o", archive)
        assert status == 0 and "no event was lost" in err
        words = ("advise", archive, "--on", loop, "-d", "constant:0.2", "--state", state)
        assert "60 s are the least" in good(capfd, *words, "--apply") and scheduler(loop) == "none"
        status, out, _ = run(capfd, *words, "--anyway", "--apply")  # it may say that it takes long
        assert status == 0
        applied = scheduler(loop)
        if applied == "none":
            assert "Nothing was changed." in out
        else:
            assert f"scheduler none -> {applied}" in out and applied in good(capfd, "status", "--state", state)
            assert f"{loop}: {applied} -> none" in good(capfd, "revert", loop, "--state", state)
        assert scheduler(loop) == "none" and "No disk is changed." in good(capfd, "status", "--state", state)
        load.terminate()
