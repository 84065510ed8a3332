# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A plugin of pytest (`-p covering`): tells coverage.py which test runs, and how long each took that passed.

Coverage begins in sitecustomize (trying.py), in pytest's processes and in those that tests start. Tests that would begin after
DEADLINE (time.monotonic) are skipped: they are not known then, and cover nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path

import coverage
import pytest

DEADLINE = "HEADWAITER_COVERING_DEADLINE"
SECONDS = "HEADWAITER_COVERING_SECONDS"
"""Where the seconds of each test go, as JSON."""
_seconds: defaultdict[str, float] = defaultdict(float)
_not_passed: set[str] = set()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.monotonic() > float(os.environ[DEADLINE]):
        pytest.skip("no time left")
    if tracer := coverage.Coverage.current():
        tracer.switch_context(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration
    if not report.passed:
        _not_passed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput"):
        if tracer := coverage.Coverage.current():
            tracer.stop()
            tracer.save()
    else:
        passed = {test: seconds for test, seconds in _seconds.items() if test not in _not_passed}
        Path(os.environ[SECONDS]).write_text(json.dumps(passed), encoding="utf-8")
