# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests share: where the recorded data is, and the guard of those that need more than a bare machine has.

Such a test is marked `needs` (see needs.py). Where a package is missing it is skipped, and the summary says what to install for
how many more tests. HEADWAITER_REQUIRE_ALL=1 (CI) makes it fail, and `but packages` all that lacks something else.

Tests run on all processors (pytest-xdist): its workers run them, and the process that the user began only hears of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import needs
import pytest

from headwaiter.lab.host import Unavailable

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = "HEADWAITER_REQUIRE_ALL"
SECONDS_A_TEST = 0.09
"""Of one processor, where this tree has not been tested yet: the mean of `make test` on the authors' machines."""
_MEAN = "headwaiter/seconds_a_test"
_announced = pytest.StashKey[float]()
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
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Spread(config) if config.getoption("numprocesses", None) else _Alone(config))
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
    """How many tests there are, and about how long they take: nobody likes to wait without a word."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.began = config, time.monotonic()

    def say(self, tests: int, processors: int) -> None:
        """Once, before the first test."""
        if _announced in self.config.stash:
            return
        self.config.stash[_announced] = time.monotonic()
        cache = getattr(self.config, "cache", None)
        mean = float(cache.get(_MEAN, SECONDS_A_TEST)) if cache else SECONDS_A_TEST
        minutes = max(1, round(tests * mean / processors / 60))
        where = "one processor" if processors == 1 else f"{processors} processors"
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter and tests > 100:
            reporter.write_line(f"{_plural(tests, 'test')} on {where}, about {_plural(minutes, 'minute')}")

    def remember(self, tests: int, processors: int) -> None:
        """What a test took here, for the next time."""
        if tests > 1000 and (cache := getattr(self.config, "cache", None)):
            cache.set(_MEAN, (time.monotonic() - self.config.stash[_announced]) * processors / tests)


class _Alone(_Announcement):
    """Of a run in one process."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.say(len(session.items), 1)


class _Spread(_Announcement):
    """Of a run in several: each of them collects all tests."""

    processors = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self.processors = int(node.workerinput["workercount"])
        self.say(len(ids), self.processors)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.processors and not session.shouldfail and _announced in self.config.stash:
            self.remember(session.testscollected or 0, self.processors)


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
        terminalreporter.write_line(f"{_plural(count, 'more test')} with {what}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


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
