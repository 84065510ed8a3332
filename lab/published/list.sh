# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Plays /lab/list by processes with no more than MEMORY_MIB of memory between them, page cache included. RENEW=1: each
# variant gets its files anew. SYNC=1: the time ends when all is on the disk. READAHEAD_KIB: of the kernel.
prepare() { [ "$RENEW" = 1 ] || must player make /lab/list; }
renew() {
	[ "$RENEW" = 1 ] || return 0
	rm -rf /mnt/[0-9]*
	must player make /lab/list
}
perform() {
	echo "$READAHEAD_KIB" >/sys/block/$disk/queue/read_ahead_kb || return 1
	(confine "$MEMORY_MIB" && player play /lab/list) && { [ "$SYNC" = 0 ] || sync; }
}
