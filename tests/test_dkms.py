# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DKMS builds and installs the modules for a stock kernel from what `make dkms-tree` lays out."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import ROOT

from headwaiter.lab.kernels import Kernel, headers, kernel

pytestmark = [pytest.mark.thorough, pytest.mark.needs("dkms")]
NAME = f"headwaiter/{version('headwaiter')}"


@dataclass
class Machine:
    """DKMS's folders on a machine that there is not."""

    top: Path
    of: Kernel
    headers: Path

    def dkms(self, action: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run dkms there."""
        trees = {"dkmstree": "var", "sourcetree": "usr/src", "installtree": "lib/modules"}
        command = ["dkms", action, NAME, *options]
        for option, folder in trees.items():
            command += [f"--{option}", str(self.top / folder)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def build(self) -> subprocess.CompletedProcess[str]:
        """Build for the kernel."""
        return self.dkms("build", "-k", self.of.release, "--kernelsourcedir", str(self.headers))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With the sources, the headers of 6.12, and the modules added to DKMS."""
    of = kernel("6.12", lambda text: None)
    found = headers(of, lambda text: None)
    subprocess.run(["make", "-s", "dkms-tree", f"DESTDIR={tmp_path}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    out = Machine(tmp_path, of, found)
    (tmp_path / "var").mkdir()
    (tmp_path / "lib/modules" / of.release).mkdir(parents=True)
    done = out.dkms("add")
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_dkms_builds_and_installs(machine: Machine) -> None:
    done = machine.build()
    assert done.returncode == 0, done.stdout + done.stderr
    done = machine.dkms("install", "-k", machine.of.release, "--no-depmod")  # which looks at this machine
    assert done.returncode == 0, done.stdout + done.stderr
    installed = machine.top / "lib/modules" / machine.of.release / "updates/dkms"
    for name in ("headwaiter_iosched", "headwaiter_disk"):
        (file,) = installed.glob(f"{name}.ko*")
        assert file.stat().st_size > 10000
    built = machine.top / "var" / NAME / machine.of.release / "x86_64/module/headwaiter_disk.ko"
    assert f"vermagic={machine.of.release} ".encode() in built.read_bytes()


def test_dkms_leaves_out_a_kernel_without_types_and_tells_why_it_cannot_build(machine: Machine) -> None:
    """First there are none beside the headers or in /boot, then what is there is something else."""
    bare = machine.top / "bare"
    bare.mkdir()
    for path in machine.headers.iterdir():
        if path.name != "vmlinux":
            (bare / path.name).symlink_to(path)
    machine.headers = bare
    done = machine.build()
    assert done.returncode == 77 and "BUILD_EXCLUSIVE" in done.stderr, done.stdout + done.stderr
    (bare / "vmlinux").write_text("not a kernel")
    done = machine.build()
    assert done.returncode not in (0, 77)
    log = (machine.top / "var" / NAME / "build/make.log").read_text()
    assert "build: cannot unpack the kernel image" in log
