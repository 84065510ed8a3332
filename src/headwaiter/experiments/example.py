# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `example`: it gives the guest a source tree, and packs the trace that comes back."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import replace

from headwaiter.lab.guest import GuestOutcome, boot
from headwaiter.lab.host import Unavailable
from headwaiter.lab.kernels import Kernel, Progress, fetch, newest
from headwaiter.lab.script import Script, guest


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> GuestOutcome:
    """Record; the file is example.blktrace.xz, what blktrace wrote, compressed."""
    whole = guest(script, on, given, say)
    trace = boot(replace(whole, files=whole.files | sources(on, say)), say).files["trace.blktrace.0"]
    packed = lzma.compress(trace, preset=9 | lzma.PRESET_EXTREME)
    row = {"trace_bytes": len(trace), "compressed_bytes": len(packed)}
    return GuestOutcome({"example.blktrace.xz": packed, "results": json.dumps(row).encode()}, [])


def sources(on: Kernel, say: Progress) -> dict[str, bytes]:
    """A source tree for a guest: headers of its kernel, in /tree."""
    headers = newest(rf"linux-headers-{on.series}[\w.+-]*-common")
    if headers is None:
        raise Unavailable(f"lab: apt knows no kernel headers of series {on.series} (apt-get update?)")
    (tree,) = fetch(headers, say).glob("usr/src/*/include/linux")
    return {f"/tree/{path.name}": path.read_bytes() for path in tree.glob("*.h")}
