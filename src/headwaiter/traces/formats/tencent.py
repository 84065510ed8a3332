# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tencent's block traces: `seconds,sector,sectors,op,volume`, op 0 a read and 1 a write, sectors of 512 bytes, times of 1970.

Times are whole seconds, so little is known of who waits for whom. Source: Zhang and others, "OSCA: an online-model based cache
allocation scheme in cloud block storage systems", ATC 2020, and the README of the traces at SNIA."""

from __future__ import annotations

from headwaiter.traces.anycsv import preset

FORMAT = preset("tencent", "Tencent's block traces (CSV: seconds,sector,sectors,op,volume)", rb"1\d{9},\d+,\d+,[01],\d+")
