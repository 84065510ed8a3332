# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces in the form of the Storage Performance Council, as the UMass Trace Repository has them: `asu,lba,bytes,op,seconds`.

lba counts sectors of 512 bytes within an application storage unit, which is taken for a device; further fields do not count.
Source: "SPC Trace File Format Specification", revision 1.0.1."""

from __future__ import annotations

from headwaiter.traces.anycsv import preset

FORMAT = preset(
    "spc",
    "SPC traces, as UMass has them (CSV: asu,lba,bytes,op,seconds)",
    rb"\d+\s*,\s*\d+\s*,\s*\d+\s*,\s*[rw]\s*,\s*\d+(\.\d*)?(\s*,.*)?",
)
