# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter research: many runs, the published selectors, and what shows that models are right."""

from __future__ import annotations

from headwaiter.cli._commands import Loading

SECTIONS = {
    "Many runs": ("sweep", "tune", "fleet"),
    "Selectors of the literature": ("rank", "table", "select"),
    "Models": ("validate", "conform", "calibrate"),
}


command = Loading(
    "research",
    sections=SECTIONS,
    help="Make many runs at once, and compare models with measurements, and schedulers by published methods. `headwaiter rank`"
    " is short for `headwaiter research rank`, and so on.",
)
