# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Load, switch under load, set every tunable, verify what was written, unload
# lab: programs fio mkfs.ext4 fsck.ext4
# lab: drives barracuda-80g
# lab: set RUNTIME=20
disk=sda
queue=/sys/block/$disk/queue
drive_disk $disk barracuda-80g
all=$(ours $disk)
[ -n "$all" ] || fail "no scheduler of ours is offered"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard /dev/$disk 1G
must mount -t ext4 -o noinit_itable /dev/$disk /mnt

# Every tunable takes its own value, and refuses what is no value.
set_all() {
	local file n=0
	for file in "$queue"/iosched/*; do
		[ -w "$file" ] && [ "${file##*/}" != statistics ] || continue
		value=$(sed 's/.*\[\(.*\)\].*/\1/' "$file")
		echo "$value" >"$file" || fail "${file##*/} refuses its own value $value"
		echo 99999999999999999999 2>/dev/null >"$file" && fail "${file##*/} takes 99999999999999999999"
		n=$((n + 1))
	done
	echo $n
}

say "verifying under load, switching"
fio --name=verify --directory=/mnt --size=4m --numjobs=2 --rw=randrw --bsrange=4k-64k --ioengine=libaio --iodepth=8 --direct=1 \
	--verify=crc32c --verify_fatal=1 --time_based --runtime="$RUNTIME" --clocksource=clock_gettime --eta=never >/lab/fio 2>&1 &
load=$!
sleep 1
for scheduler in $all; do
	elevator $disk "$scheduler"
	n=$(set_all) || exit 1
	dd if=/dev/zero of=/mnt/file bs=64k count=16 conv=fsync 2>/dev/null
	elevator $disk mq-deadline
	elevator $disk "$scheduler"
	for depth in 4 2048 64; do
		echo $depth >$queue/nr_requests || fail "$scheduler: nr_requests $depth refused"
	done
	if [ -e $queue/async_depth ]; then # 7.0 on
		[ "$(cat $queue/async_depth)" = 64 ] || fail "$scheduler: async_depth is $(cat $queue/async_depth) of 64"
		echo 3 >$queue/async_depth || fail "$scheduler: async_depth 3 refused"
	fi
	drop_caches
	dd if=/mnt/file of=/dev/null bs=64k 2>/dev/null
	result "{\"scheduler\":\"$scheduler\",\"tunables\":$n,\"anticipations\":$(awk '/^A /{print $2}' $queue/iosched/statistics)}"
done
rmmod headwaiter_iosched 2>/dev/null && fail "the module goes away in use"
wait $load || { cat /lab/fio; fail "fio: verification failed"; }
umount /mnt
must fsck.ext4 -f -n /dev/$disk >/lab/fsck

say "unloading"
elevator $disk none
must rmmod headwaiter_iosched
insert headwaiter_iosched
elevator $disk hw-as
dd if=/dev/$disk of=/dev/null bs=64k 2>/dev/null &
sleep 1
echo 0 >/sys/kernel/config/headwaiter_disk/$disk/power || fail "the disk does not go away under load"
wait $!
rmdir /sys/kernel/config/headwaiter_disk/$disk
must rmmod headwaiter_iosched
must rmmod headwaiter_disk
