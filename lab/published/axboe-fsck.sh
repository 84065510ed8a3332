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
perform() {
	fsck.ext4 -fy /dev/$disk >/tmp/fsck
	[ $? -le 1 ] || { cat /tmp/fsck; return 1; }
}
