# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recipes of packages: what can be told of them without building one, which `make test-deb` and `make test-guest` do."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGING = ROOT / "packaging"
VERSIONS = {
    "headwaiter.spec": r"^Version:\s+(\S+)",
    "PKGBUILD": r"^pkgver=(\S+)",
    "flake.nix": r'^\s+version = "([^"]+)"',
}
NEEDED = [
    re.split(r"[<>=~! ;\[]", one)[0] for one in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
]


@pytest.mark.parametrize("name", VERSIONS)
def test_the_version_is_the_projects(name: str) -> None:
    assert re.findall(VERSIONS[name], (PACKAGING / name).read_text(), re.M) == [version("headwaiter")]


@pytest.mark.parametrize("name", [*VERSIONS, "debian/control"])
def test_what_the_command_needs_is_named(name: str) -> None:
    text = (PACKAGING / name).read_text().replace("_", "-")
    if name == "debian/control":
        text = text.partition("\nPackage:")[0]  # it works out what the packages need from what the build needs
    for one in NEEDED:
        assert re.search(rf"\b(python3?-)?{one}\b", text), one


@pytest.mark.parametrize("name", [*VERSIONS, "debian/rules"])
def test_the_service_and_the_modules_sources_are_installed(name: str) -> None:
    text = (PACKAGING / name).read_text()
    assert "headwaiter-watch" in text
    assert "dkms-tree" in text or "kmod/build" in text


def test_the_pkgbuild_is_a_script() -> None:
    subprocess.run(["bash", "-n", PACKAGING / "PKGBUILD"], check=True)


def hook(folder: Path, rules: str, has_module: bool) -> Path:
    """Where the hook of initramfs-tools has put things, on a machine with these rules."""
    (folder / "rules").write_text(rules)
    functions = folder / "functions"
    functions.write_text(f'manual_add_modules() {{ echo "$1" >>{folder}/added; }}\n')
    (folder / "bin").mkdir()
    modprobe = folder / "bin" / "modprobe"
    modprobe.write_text(f"#!/bin/sh\nexit {0 if has_module else 1}\n")
    modprobe.chmod(0o755)
    text = (PACKAGING / "initramfs-hook").read_text()
    text = text.replace("/etc/udev/rules.d/99-headwaiter.rules", str(folder / "rules"))
    text = text.replace("/usr/share/initramfs-tools/hook-functions", str(functions))
    (folder / "hook").write_text(text)
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "DESTDIR": str(folder / "initramfs"), "version": "6.12"}
    (folder / "initramfs" / folder.relative_to("/")).mkdir(parents=True)
    subprocess.run(["sh", folder / "hook"], check=True, env=environment)
    return folder


OURS = 'ACTION=="add|change", ATTR{queue/scheduler}="hw-maitre", ATTR{queue/nr_requests}="64"\n'
STOCK = 'ACTION=="add|change", ATTR{queue/scheduler}="bfq"\n'


@pytest.mark.parametrize(("rules", "has_module", "packed"), [
    (f"# By headwaiter\n# sda\n{OURS}# sdb\n{STOCK}", True, OURS),
    (f"# sda\n{OURS}", False, None),
    (f"# sdb\n{STOCK}", True, None),
    ("", True, None),
])  # fmt: skip
def test_the_initramfs_gets_the_module_and_the_rules_that_need_it(
    rules: str, has_module: bool, packed: str | None, tmp_path: Path
) -> None:
    """And nothing for a kernel that has no module: the disk keeps the kernel's own scheduler without a complaint."""
    there = hook(tmp_path, rules, has_module)
    made = there / "initramfs" / there.relative_to("/") / "rules"
    assert (made.read_text() if made.exists() else None) == packed
    assert (there / "added").exists() == (packed is not None)


def purged(folder: Path, rules: str) -> str | None:
    """The rules after `apt purge headwaiter-dkms`; None if the file is gone."""
    path = folder / "99-headwaiter.rules"
    path.write_text(rules)
    text = (PACKAGING / "debian" / "headwaiter-dkms.postrm").read_text()
    subprocess.run(["sh", "-c", text.replace("/etc/udev/rules.d/99-headwaiter.rules", str(path)), "postrm", "purge"], check=True)
    return path.read_text() if path.exists() else None


@pytest.mark.skipif(not shutil.which("awk"), reason="needs awk")
def test_purge_takes_rules_away_that_no_kernel_can_follow_and_no_others(tmp_path: Path) -> None:
    head = "# By headwaiter: …\n"
    assert purged(tmp_path, f"{head}# sda\n{OURS}") is None
    assert purged(tmp_path, f"{head}# sda\n{OURS}# sdb\n{STOCK}") == f"{head}# sdb\n{STOCK}"
    assert purged(tmp_path, f"# mine\n{STOCK}") == f"# mine\n{STOCK}"
