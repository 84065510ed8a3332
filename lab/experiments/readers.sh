# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Buffered sequential readers of separate files, started together on a cold page cache
# lab: kernels 6.12
# lab: programs mkfs.ext4
# lab: tools readers
# lab: memory 1536
# lab: set DRIVE=barracuda-80g READERS="1 2 4 8" MIB=64
# lab: set SCHEDULERS="none mq-deadline kyber bfq bfq-throughput hw-deadline hw-as hw-cas hw-cfq hw-cfq-slice"
disk=sda
drive_disk $disk "$DRIVE"
elevator $disk mq-deadline
say "making the file system"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard -O ^has_journal "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable /dev/$disk /mnt
files=
for i in 1 2 3 4 5 6 7 8; do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" status=none
	files="$files /mnt/dir$i/file"
done

for scheduler in $SCHEDULERS; do
	case $scheduler in
	bfq-throughput)
		elevator $disk bfq
		echo 0 >/sys/block/$disk/queue/iosched/low_latency
		;;
	*) elevator $disk "$scheduler" ;;
	esac
	for n in $READERS; do
		say "$scheduler: $n readers"
		drop_caches
		set -- $(echo $files | cut -d' ' -f"1-$n")
		result "{\"scheduler\":\"$scheduler\",\"readers\":$n,$(must readers 65536 "$@")}"
	done
done
