# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Axboe, December 2004: fsck of an ext2 file system with few large files, some of them in pieces.
FORMAT="-t ext2 -E lazy_itable_init=0,nodiscard -i 8192 -I 128"
prepare() {
	local i j
	for i in $(seq "$FILES"); do # two at a time, so that they lie in pieces
		for j in a b; do dd if=/dev/zero of=$folder/$i$j bs=1M count="$FILE_MIB" conv=fsync status=none & done
		wait
	done
	must umount /mnt
}

# Requests completed so far, ms in which the disk had some, and ms that all of them together have been there.
served() { awk '{ print $1 + $5, $10, $11 }' /sys/block/$disk/stat; }

perform() {
	local before
	before=$(served)
	fsck.ext4 -fy /dev/$disk >/tmp/fsck
	[ $? -le 1 ] || { cat /tmp/fsck; return 1; }
	echo "$before $(served)" | awk '{ print $4 - $1, ($6 - $3) / ($5 - $2) }' >/tmp/served
	figure requests "$(cut -d' ' -f1 /tmp/served)"
	figure at_a_time "$(cut -d' ' -f2 /tmp/served)"
}
