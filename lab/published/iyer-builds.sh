# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Iyer & Druschel, SOSP 2001: linkers that read object files, and archivers that read the same files, two of each at once.
#
# /objects has the object files. Each instance has its own folder, in a group of blocks of its own, as ext4 puts folders of the root;
# it reads files in the order in which they were made, which is that of a folder of FFS and of ext4 without dir_index.
FEATURES=^has_journal,^dir_index
prepare() {
	for i in 1 2; do
		mkdir /mnt/tree$i
		must cp -r /objects /mnt/tree$i
	done
}

# Runs a command for both trees at once; the figure is the time until both have ended.
both() {
	local name=$1 before one two
	shift
	drop_caches
	must scatter /dev/$disk 8192 64
	before=$(clock)
	"$@" 1 &
	one=$!
	"$@" 2 &
	two=$!
	wait $one || return 1
	wait $two || return 1
	figure "$name" "$(echo "$before $(clock)" | awk '{ print $2 - $1 }')"
}

link_tree() {
	find /mnt/tree$1/objects -name '*.o' >/tmp/list$1 || return 1
	ld -e f0 -o /tmp/linked$1 @/tmp/list$1
}
archive_tree() { tar -c -f - /mnt/tree$1 2>/tmp/archiver$1 | cat >/dev/null; }

perform() { both build link_tree && both backup archive_tree; }
