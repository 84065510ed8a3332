# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which kernel the lab takes: by series, release or folder, from what apt knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from loading import load_command

from headwaiter.base.errors import Problem
from headwaiter.lab import survey
from headwaiter.lab.kernels import Kernel, Progress, headers, kernel

KNOWN = [
    "linux-image-6.1.0-9-cloud-amd64", "linux-headers-6.1.0-9-cloud-amd64",
    "linux-image-6.1.0-10-cloud-amd64", "linux-headers-6.1.0-10-cloud-amd64",
    "linux-image-6.12.5+deb13-cloud-amd64", "linux-headers-6.12.5+deb13-cloud-amd64",
    "linux-image-6.12.9+deb13-cloud-amd64",  # of which there are no headers
    "linux-image-6.12.5+deb13-cloud-amd64-dbg", "linux-image-6.12.7+deb13-amd64", "linux-headers-6.12.7+deb13-amd64",
    "linux-image-6.18.2+deb13-cloud-amd64",
    "linux-image-7.3.4+deb13-cloud-amd64", "linux-headers-7.3.4+deb13-cloud-amd64",
]  # fmt: skip
APT = """#!/bin/sh
case "$1 $2" in
"pkgnames linux-") cat "$(dirname "$0")/known" ;;
"depends linux-image-7"*) printf '%s\\n' "$2" "  PreDepends: linux-base" "  Depends: kmod" ' |Depends: dracut' \\
	"  Depends: linux-binary-7.3.4+deb13-cloud-amd64" "  Depends: linux-modules-7.3.4+deb13-cloud-amd64" ;;
"depends linux-headers"*) printf '%s\\n' "$2" "  Depends: gcc-14" "  Depends: linux-headers-7.3.4+deb13-common" \\
	"  Depends: linux-kbuild-7.3.4+deb13" ;;
"depends "*) printf '%s\\n' "$2" "  Depends: kmod" "  Depends: linux-base" ;;
esac
"""
GET = """#!/bin/sh
while [ "$1" != download ]; do shift; done
shift
for package; do : >"$package.deb"; done
"""
DPKG = """#!/bin/sh
mkdir -p "$3"
: >"$3/$(basename "$2")"
"""


@pytest.fixture(autouse=True)
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apt that knows only those, and "unpacks" each as an empty file of its name."""
    for name, text in {"apt-cache": APT, "apt-get": GET, "dpkg": DPKG, "known": "\n".join(KNOWN)}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _kernel(wanted: str) -> tuple[str, list[str]]:
    """The release that is taken, and the packages that it is made of."""
    found = kernel(wanted, lambda text: None)
    return found.release, sorted(path.stem for path in found.folder.iterdir())


def test_a_series_is_its_newest_kernel_with_headers() -> None:
    assert _kernel("6.1") == ("6.1.0-10-cloud-amd64", ["linux-image-6.1.0-10-cloud-amd64"])
    assert _kernel("6.12")[0] == "6.12.5+deb13-cloud-amd64"


def test_a_release_is_taken_with_and_without_what_debian_adds() -> None:
    assert _kernel("6.1.0-9")[0] == "6.1.0-9-cloud-amd64"
    assert _kernel("6.12.5")[0] == _kernel("6.12.5+deb13-cloud-amd64")[0] == "6.12.5+deb13-cloud-amd64"


def test_later_kernels_are_several_packages() -> None:
    release = "7.3.4+deb13-cloud-amd64"
    assert _kernel("7.3") == (release, [f"linux-{part}-{release}" for part in ("binary", "image", "modules")])
    folder = headers(kernel("7.3", lambda text: None), lambda text: None)
    assert folder.name == f"linux-headers-{release}"
    parts = {path.stem for path in folder.parents[2].iterdir()}
    assert parts == {f"linux-headers-{release}", "linux-headers-7.3.4+deb13-common", "linux-kbuild-7.3.4+deb13"}


@pytest.mark.parametrize(("wanted", "why"), [
    ("6.18", "no headers for a cloud kernel of 6.18 .the newest without is 6.18.2"),
    ("6.12.9", "no headers for a cloud kernel of 6.12.9"),
    ("9.9", "no cloud kernel of 9.9"),
    (".", "no cloud kernel of"),
])  # fmt: skip
def test_what_cannot_be_had_is_told(wanted: str, why: str) -> None:
    with pytest.raises(Problem, match=why):
        kernel(wanted, lambda text: None)


def test_a_folder_of_unpacked_packages_is_a_kernel_with_its_own_headers(tmp_path: Path) -> None:
    release = "7.3.4+deb13-cloud-amd64"
    folder = tmp_path / "unpacked"
    modules = folder / "usr/lib/modules" / release
    modules.mkdir(parents=True)
    with pytest.raises(Problem, match="found none"):
        kernel(str(folder), lambda text: None)
    (modules / "modules.builtin").write_text("kernel/block/mq-deadline.ko\n")
    with pytest.raises(Problem, match="is a package missing"):
        kernel(str(folder), lambda text: None)
    (modules / "vmlinuz").write_bytes(b"")
    (modules / "extra.ko").write_bytes(b"module")
    own = folder / "usr/src" / f"linux-headers-{release}"
    own.mkdir(parents=True)
    found = kernel(str(folder), lambda text: None)
    assert (found.release, found.series, found.image) == (release, "7.3", modules / "vmlinuz")
    assert headers(found, lambda text: None) == own
    assert found.modules(["mq-deadline", "extra"]) == {"extra": b"module"}


def test_each_series_that_apt_has_is_listed_with_its_newest_kernel_for_which_modules_can_be_built() -> None:
    assert [(row.series, row.release, row.headers) for row in survey.served()] == [
        ("6.1", "6.1.0-10-cloud-amd64", True),
        ("6.12", "6.12.5+deb13-cloud-amd64", True),
        ("6.18", "6.18.2+deb13-cloud-amd64", False),
        ("7.3", "7.3.4+deb13-cloud-amd64", True),
    ]


def test_a_parameter_goes_to_the_scripts_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    monkeypatch.setattr(survey, "build", lambda on, say: None)
    monkeypatch.setattr(survey, "execute", lambda script, series, given, say: tried.append((script, given)))
    survey.survey(("7.3",), ("smoke", "abuse"), lambda text: None, {"DURATION": "10"})
    assert tried == [("smoke", {}), ("abuse", {"DURATION": "10"})]


def test_what_is_tried_and_what_fails_is_told_by_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot be built for is not tried; a script that fails does not end the rest."""

    def build(on: Kernel, _: Progress) -> None:
        if on.series == "6.1":
            raise Problem("no such member")

    def execute(script: str, series: list[str], *_: object) -> None:
        if (script, series) == ("abuse", ["6.12.5+deb13-cloud-amd64"]):
            raise Problem("it hangs")

    monkeypatch.setattr(survey, "build", build)
    monkeypatch.setattr(survey, "execute", execute)
    found = survey.survey((), ("smoke", "abuse"), lambda text: None).results
    assert [(row.built, dict(row.scripts)) for row in found] == [
        ("no such member", {}),
        ("passed", {"smoke": "passed", "abuse": "it hangs"}),
        ("", {}),
        ("passed", {"smoke": "passed", "abuse": "passed"}),
    ]
    [one] = survey.survey(("7.3",), (), lambda text: None).results
    assert (one.series, one.built) == ("7.3", "")
    with pytest.raises(Problem, match="no script that is tried has a parameter SPEED"):
        survey.survey((), ("smoke",), lambda text: None, {"SPEED": "1"})
    with pytest.raises(Problem, match=r"apt knows no cloud kernel of 5.10 \(it has 6.1, 6.12, 6.18, 7.3\)"):
        survey.survey(("5.10",), (), lambda text: None)


def test_ci_holds_the_newest_kernel_against_the_table() -> None:
    """Worse than the table says is a failure; a kernel that it does not have yet is told."""
    newest = load_command(ROOT / ".ci" / "newest", "ci_newest")

    def row(release: str, built: str = "passed", headers: bool = True, **scripts: str) -> dict[str, Any]:
        return {"release": release, "series": release[:3], "headers": headers, "built": built, "scripts": scripts}

    table = [row("6.12.5", smoke="passed"), row("7.2.1", smoke="it hangs", abuse="passed"), row("7.3.4", "", False)]
    assert newest.newest(table)["release"] == "7.2.1" and newest.newest(table[2:]) is None
    told = {
        row["release"] + row["built"] + row["scripts"].get("smoke", ""): newest.verdict(row, table)
        for row in (
            row("6.12.5", smoke="passed"),
            row("6.12.5", smoke="no member"),
            row("6.12.5", "no header"),
            row("7.2.1", smoke="it hangs"),
            row("7.4.0", smoke="it hangs"),
        )
    }
    assert [holds for _, holds in told.values()] == [True, False, False, True, True]
    assert told["6.12.5passedpassed"][0] == "6.12.5: build passed; smoke passed"
    assert "says that it passes: smoke" in told["6.12.5passedno member"][0]
    assert "says that it passes: build" in told["6.12.5no header"][0]
    assert "does not have this kernel yet" in told["7.4.0passedit hangs"][0]
