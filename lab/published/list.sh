# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Plays /lab/list by processes with no more than MEMORY_MIB of memory between them, page cache included.
# READAHEAD_KIB: of the kernel.
prepare() { must player make /lab/list; }
perform() {
	echo "$READAHEAD_KIB" >/sys/block/$disk/queue/read_ahead_kb || return 1
	(confine "$MEMORY_MIB" && player play /lab/list)
}
