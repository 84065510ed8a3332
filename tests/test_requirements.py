# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What CI installs (.ci/requirements.txt) is what pyproject.toml asks for, each in one version with its hashes."""

from __future__ import annotations

import re
import tomllib

from conftest import ROOT


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_ci_installs_what_is_asked_for_with_hashes() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = [one for extra in asked["project"]["optional-dependencies"].values() for one in extra]
    wanted = {_name(one) for one in (*asked["build-system"]["requires"], *asked["project"]["dependencies"], *extras)}
    entries = re.split(r"\n(?=\S)", (ROOT / ".ci" / "requirements.txt").read_text(encoding="utf-8").strip())
    assert wanted - {"headwaiter"} <= {_name(entry) for entry in entries}, "make requirements"
    for entry in entries:
        assert re.match(r"[\w.-]+==\S+", entry) and "--hash=sha256:" in entry, entry
