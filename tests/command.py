# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line, called within the test's own process: a process for each call would take most of a test's time."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from headwaiter.cli import main


def run(capfd: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    """Status, stdout and stderr of the command."""
    argv, stdout, sys.argv = sys.argv, sys.stdout, ["headwaiter", *map(str, args)]
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv, sys.stdout = argv, stdout
    out, err = capfd.readouterr()
    return int(end.value.code or 0), out, err


def good(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    """What it prints, without a complaint."""
    status, out, err = run(capfd, *args)
    assert (status, err) == (0, ""), err
    return out


def names_of(text: str) -> list[list[str]]:
    """What `compare` printed: the names in each row of its table, with their marks."""
    body = text.partition("──\n")[2].partition("\n\n(")[0]
    cells = re.findall(r"^([a-z][a-z0-9*, -]*?)(?:  .*)?$", body, re.M)
    rows: list[list[str]] = []
    for i, cell in enumerate(cells):
        more = [name.strip() for name in cell.split(",") if name.strip()]
        rows[-1:] = [rows[-1] + more] if i and cells[i - 1].endswith(",") else [*rows[-1:], more]
    return rows


def told(capfd: pytest.CaptureFixture[str], *args: object) -> dict[str, Any]:
    """The document of a command with --json."""
    document: dict[str, Any] = json.loads(good(capfd, *args, "--json"))
    return document


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
