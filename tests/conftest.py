# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests share: where the recorded data is, and the guard of those that need more than a bare machine has.

Such a test is marked `needs` (see needs.py). Where a package is missing it is skipped, and the summary says what to install for
how many more tests. HEADWAITER_REQUIRE_ALL=1 (CI) makes it fail, and `but packages` all that lacks something else.

Tests run on all processors (pytest-xdist): its workers run them, and the process that the user began only hears of them.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import needs
import pytest

from headwaiter.base.errors import counted
from headwaiter.lab.host import Unavailable

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = "HEADWAITER_REQUIRE_ALL"
SECONDS_A_TEST = {True: 0.065, False: 0.45}
"""Time on one processor, without thorough tests and with them, where this tree was not tested before (docs/testing.md)."""
MANY, MOST = 100, 1000
"""For no more tests than these nobody has to be told, nor the mean remembered."""
_LACKS, _ABSENT = "needs packages: ", "is not there: "


def missing(what: str) -> NoReturn:
    """Skip, or fail where it may not be missing."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"required here: {what}", pytrace=False)
    pytest.skip(what)


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts a job in the background with some signals ignored, and so does nohup: programs under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # What `headwaiter calibrate` has found out about this machine would change results on flash.
    os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CONFIG_DIRS"] = str(ROOT / "build" / "no-configuration")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Announcement(config))
    config.addinivalue_line("markers", "recorded: reads data recorded by others; of every test with the fixture `shared`")
    config.addinivalue_line("markers", "thorough: left out of `make test`; `make test-all` and CI run it")
    config.addinivalue_line("markers", "long: minutes in the lab; `make test-long`, and not in CI")
    config.addinivalue_line("markers", f"needs(line): packages of tests/needs.py: {', '.join(needs.NEEDS)}")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("recorded")


def _lines(item: pytest.Item) -> list[str]:
    return [line for mark in item.iter_markers("needs") for line in mark.args]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    if absent := needs.absent(_lines(item)):
        what = f"{_LACKS}{' '.join(absent)}"
        pytest.skip(what) if os.environ.get(REQUIRED) == "but packages" else missing(what)
    yield from _guarded(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield from _guarded(item)


def _guarded(item: pytest.Item) -> Generator[None, None, None]:
    """Programs are not all: kernels come from apt, whose lists may be empty, and from the network."""
    try:
        yield
    except Unavailable as e:
        if not _lines(item):
            raise
        missing(f"{_ABSENT}{e}")


class _Announcement:
    """How many tests there are, and about how long they take: nobody likes to wait without a word.

    Of a run in several processes, each collects all tests; the first that has done so tells of them.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.cache, self.processors, self.began_s = getattr(config, "cache", None), 0, 0.0
        self.plugins = config.pluginmanager
        self.usual = SECONDS_A_TEST["not thorough" in config.option.markexpr]
        # What a test takes is another time for every choice of tests.
        self.kept = f"headwaiter/a-test-of/{re.sub('[^a-z]+', '-', config.option.markexpr)}"

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._say(len(session.items), 1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._say(len(ids), int(node.workerinput["workercount"]))

    def _say(self, tests: int, processors: int) -> None:
        if self.processors or tests <= MANY:
            return
        self.processors, self.began_s = processors, time.monotonic()
        mean = float(self.cache.get(self.kept, self.usual)) if self.cache else self.usual
        minutes = max(1, round(tests * mean / processors / 60))
        where = "one processor" if processors == 1 else f"{processors} processors"
        if reporter := self.plugins.get_plugin("terminalreporter"):
            reporter.write_line(f"{counted(tests, 'test')} on {where}, about {counted(minutes, 'minute')}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Remember what a test took here, for the next time."""
        if self.processors and self.cache and not session.shouldfail and session.testscollected > MOST:
            self.cache.set(self.kept, (time.monotonic() - self.began_s) * self.processors / session.testscollected)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lacking: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        if reason.startswith(_LACKS):
            lacking[f"apt-get install {reason.removeprefix(_LACKS)}"] += 1
        elif reason.startswith(_ABSENT):
            lacking[f"what is missing here: {reason.removeprefix(_ABSENT)}"] += 1
        elif "recorded data is not there" in reason:
            lacking["recorded data (HEADWAITER_SHARED)"] += 1
    for what, count in sorted(lacking.items(), key=lambda found: -found[1]):
        terminalreporter.write_line(f"{counted(count, 'more test')} with {what}")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded data: ../shared, which not every clone has, or $HEADWAITER_SHARED.

    Where it is absent its tests are skipped and counted, also where all is required, because no package has it. But who
    requires all and names a folder gets a failure.
    """
    named = os.environ.get("HEADWAITER_SHARED")
    path = Path(named or ROOT.parent / "shared")
    if not (path / "data").is_dir():
        what = f"recorded data is not there: {path}/data (set HEADWAITER_SHARED)"
        missing(what) if named else pytest.skip(what)
    return path
