# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the package's own files are."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
DRIVES = PACKAGE / "data" / "drives"
WORKLOADS = PACKAGE / "data" / "workloads"
