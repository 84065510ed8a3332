# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CloudPhysics' traces of virtual disks as CSV: `version,seconds,op,bytes,sector`, with or without that header.

op is a SCSI command in hexadecimal (28 READ(10), 2a WRITE(10), …). Source: Waldspurger and others, "Efficient MRC construction
with SHARDS", FAST 2015; the columns as libCacheSim reads them."""

from __future__ import annotations

from headwaiter.traces.anycsv import preset

FORMAT = preset(
    "cloudphysics",
    "CloudPhysics' traces (CSV: version,seconds,op,bytes,sector)",
    rb"\d,\d+(\.\d*)?,(0?8|28|a8|88|0?a|2a|aa|8a|42|35|91),\d+,\d+",
)
