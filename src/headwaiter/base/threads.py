# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's own threads, by the names that it gives them."""

from __future__ import annotations

import re

_KERNEL = re.compile(
    r"(kworker|jbd2|flush-\d|kswapd\d|kcopyd|kcompactd|loop\d|dm[-_]|dmcrypt|bcache|xfs|btrfs|f2fs|txg_sync|z_[wr]|mmcqd|jfs)"
    r".*[-/_0-9]|md\d+_\w|ext4lazyinit|bdi-default|dio|writeback"
)


def is_kernel_thread(name: str) -> bool:
    """Return whether nobody waits for a task of this name, or those who do wait for their own I/O as well."""
    return bool(_KERNEL.match(name))
