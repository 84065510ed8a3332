# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tests share: where the recorded data is, and the guard of those that need more than a bare machine has.

Such a test is marked `needs` (see needs.py). Where a package is missing it is skipped, and the summary says what to install for
how many more tests. HEADWAITER_REQUIRE_ALL=1 (CI) makes it fail, and `but packages` all that lacks something else.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import needs
import pytest

from headwaiter.lab.host import Unavailable

ROOT = Path(__file__).resolve().parent.parent
REQUIRED = "HEADWAITER_REQUIRE_ALL"
_lacking = pytest.StashKey[Counter[str]]()


def missing(what: str) -> NoReturn:
    """Skip, or fail where it may not be missing."""
    if os.environ.get(REQUIRED):
        pytest.fail(f"required here: {what}", pytrace=False)
    pytest.skip(what)


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts a job in the background with some signals ignored, and so does nohup: programs under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.stash[_lacking] = Counter()
    config.addinivalue_line("markers", "recorded: reads data recorded by others; of every test with the fixture `shared`")
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
        item.config.stash[_lacking][f"apt-get install {' '.join(absent)}"] += 1
        what = f"needs {', '.join(absent)}"
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
        item.config.stash[_lacking][f"what is missing here: {e}"] += 1
        missing(str(e))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for what, count in sorted(config.stash[_lacking].items(), key=lambda found: -found[1]):
        terminalreporter.write_line(f"{_tests(count)} with {what}")
    shared = [r for r in terminalreporter.stats.get("skipped", []) if "recorded data is not there" in str(r.longrepr)]
    if shared:
        terminalreporter.write_line(f"{_tests(len(shared))} with recorded data (HEADWAITER_SHARED)")


def _tests(count: int) -> str:
    return f"{count} more test{'s' if count > 1 else ''}"


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
