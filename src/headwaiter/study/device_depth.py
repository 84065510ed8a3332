# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How many requests the recorded device takes at once, as far as a recording tells.

A scheduler depends on that as much as on times: bfq holds a disk of one command for whoever reads, and one that takes many
for nobody. No model of the drive says it: a loop device takes 128 whatever is behind it, a bridge to USB one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headwaiter.drives.enlarge import taking
from headwaiter.drives.profile import Profile
from headwaiter.engine.constants import Op
from headwaiter.traces import Trace

_GIVES_ALL = {"none", "mq-deadline"}
"""They hold nothing back while the device takes requests."""
_FULL_SHARE = 0.05
"""If so many requests were the last that the device took, and so many reads waited for it, that was all that it takes."""
_WAITED_NS = 1_000_000
_FEWER = 0.5
"""A device takes fewer than it has tags, or than it had once, if it typically was full with at most this share of them."""
_LEAST = 3
"""A device with fewer requests is not full: it waits for a busy processor."""


@dataclass(frozen=True)
class DeviceDepth:
    """At least so many; whole: and no more.

    fewer: than it has tags. A virtio disk without indirect descriptors has a ring of them, of which a request takes one for each
    of its pages: it has 128 tags, and takes a dozen reads of 256 KiB.
    """

    least: int
    whole: bool
    fewer: bool = False

    def of(self, depth: int) -> int:
        """Return the depth to simulate in place of a profile's."""
        return self.least if self.whole else max(self.least, depth)


def device_depth(trace: Trace, given: Trace | None) -> DeviceDepth | None:
    """Return what a recording tells of it; None if it does not tell when the device was given requests.

    given: what the device was given, when (at_drive()). What was seen counts, too, for nr_requests may have been changed.
    """
    if given is None or trace.issue_ns is None:
        return DeviceDepth(trace.device_depth, True) if trace.device_depth else None
    done = np.sort(given.complete_ns)
    taken = 1 + np.arange(len(given)) - np.searchsorted(done, given.time_ns, side="right")
    most = int(taken.max())
    # Writes may have waited before they met the scheduler, for the kernel throttles them.
    reads = (trace.issue_ns >= 0) & (trace.op == Op.READ)
    waited = trace.issue_ns[reads] - trace.time_ns[reads] > _WAITED_NS
    share = float(np.mean(waited)) if trace.scheduler in _GIVES_ALL and len(waited) else 0.0
    tags = max(most, trace.device_depth) if trace.device_depth else most
    if share >= _FULL_SHARE:
        at = np.searchsorted(given.time_ns, trace.issue_ns[reads][waited], side="right") - 1
        full = int(np.median(taken[at]))
        if _LEAST <= full <= _FEWER * tags:
            return DeviceDepth(full, True, fewer=True)
    if trace.device_depth:
        return DeviceDepth(tags, True)
    return DeviceDepth(most, min(share, float(np.mean(taken == most))) >= _FULL_SHARE)


def as_recorded(profile: Profile, found: DeviceDepth | None) -> Profile:
    """The profile with the depth of the recorded device, if it is a disk's, or one that requests were seen to wait for.

    Others are as quick whatever they take at once.
    """
    return taking(profile, found.of(profile.facts[1])) if found and (found.fewer or profile.kind == "disk") else profile
