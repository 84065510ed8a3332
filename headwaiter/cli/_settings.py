# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--set: tables that come in files of their own format, besides rows of text."""

from __future__ import annotations

from headwaiter.engine.tables import Readers
from headwaiter.was.config import TABLE, load

READERS: Readers = {(TABLE, ".toml"): lambda path: load(path).rows()}
