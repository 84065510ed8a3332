# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every scenario of tests/golden/*.toml, by event log."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("scenario", HERE / "scenario.py")
assert _spec and _spec.loader
scenario = importlib.util.module_from_spec(_spec)
sys.modules["scenario"] = scenario
_spec.loader.exec_module(scenario)


def cases() -> list[Any]:
    out = []
    for path in sorted((HERE / "golden").glob("*.toml")):
        for case in tomllib.loads(path.read_text())["scenario"]:
            out.append(pytest.param(case, id=f"{path.stem}-{case['name']}"))
    return out


@pytest.mark.parametrize("case", cases())
def test_golden(case: dict[str, Any], tmp_path: Path) -> None:
    ran = scenario.run(case, tmp_path)
    want = scenario.expand(case["expect"])
    got = ran.dispatches[: len(want)] if case.get("prefix") else ran.dispatches
    assert scenario.show(got) == scenario.show(want)
    if "waits" in case:
        expected = [tuple(scenario.ns(x) for x in w.split("-")) for w in case["waits"].split()]
        waits = ran.waits[: len(expected)] if case.get("prefix") else ran.waits
        assert waits == expected
    if "reasons" in case:
        wanted = scenario.repeated(case["reasons"])
        assert ran.reasons[: len(wanted)] == wanted
        assert case.get("prefix") or len(ran.reasons) == len(wanted)
    for name, value in case.get("stats", {}).items():
        assert ran.stats[name] == value, name
