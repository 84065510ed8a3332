# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Alibaba's block traces: `device,op,offset_bytes,bytes,microseconds`, op R or W, times of 1970.

Source: Li and others, "An in-depth analysis of cloud block storage workloads in large-scale production", IISWC 2020, and the
README of the traces."""

from __future__ import annotations

from headwaiter.traces.anycsv import preset

FORMAT = preset("alibaba", "Alibaba's block traces (CSV: device,op,offset,bytes,us)", rb"\d+,[rw],\d+,\d+,\d{13,17}")
