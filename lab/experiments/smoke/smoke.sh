# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Load, switch under load, set every tunable, verify what was written, take disks away, unload
# lab: programs fio mkfs.ext4 fsck.ext4
# lab: drives barracuda-80g
disk=sda
queue=/sys/block/$disk/queue
drive_disk $disk barracuda-80g
all=$(ours $disk)
[ -n "$all" ] || fail "none of our schedulers is offered"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard /dev/$disk 1G
must mount -t ext4 -o noinit_itable /dev/$disk /mnt

# Every tunable accepts its own value, and refuses malformed ones.
set_all() {
	local file n=0
	for file in "$queue"/iosched/*; do
		case ${file##*/} in
		statistics | observed*) continue ;; # only read, and root may write to all
		esac
		value=$(sed 's/.*\[\(.*\)\].*/\1/' "$file")
		echo "$value" >"$file" || fail "${file##*/} refuses its own value $value"
		echo 99999999999999999999 2>/dev/null >"$file" && fail "${file##*/} takes 99999999999999999999"
		n=$((n + 1))
	done
	echo $n
}

say "verifying under load, switching"
fio --name=verify --directory=/mnt --size=4m --numjobs=2 --rw=randrw --bsrange=4k-64k --ioengine=libaio --iodepth=8 --direct=1 \
	--verify=crc32c --verify_fatal=1 --time_based --runtime=1000 --clocksource=clock_gettime --eta=never >/lab/fio 2>&1 &
load=$!
sleep 1
dd if=/dev/urandom of=/lab/data bs=64k count=16 2>/dev/null
for scheduler in $all; do
	say "$scheduler"
	elevator $disk "$scheduler"
	n=$(set_all) || exit 1
	dd if=/lab/data of=/mnt/file bs=64k conv=fsync 2>/dev/null || fail "$scheduler: write failed"
	for depth in 4 2048 64; do
		echo $depth >$queue/nr_requests || fail "$scheduler: nr_requests $depth refused"
	done
	if [ -e $queue/async_depth ]; then # 7.0 on
		[ "$(cat $queue/async_depth)" = 64 ] || fail "$scheduler: async_depth is $(cat $queue/async_depth) of 64"
		echo 3 >$queue/async_depth || fail "$scheduler: async_depth 3 refused"
	fi
	drop_caches
	cmp /lab/data /mnt/file || fail "$scheduler: data differ"
	result "{\"scheduler\":\"$scheduler\",\"tunables\":$n,\"anticipations\":$(awk '/^A /{print $2}' $queue/iosched/statistics)}"
done
# From each to the next, the kernel's own between ours, and back the same way.
there=
back=
for scheduler in none $all mq-deadline kyber bfq; do
	there="$there $scheduler"
	back="$scheduler $back"
done
switches=0
for scheduler in $there $back; do
	elevator $disk "$scheduler"
	switches=$((switches + 1))
	usleep 100000
done
result "{\"scheduler\":\"all, there and back\",\"switches\":$switches}"
elevator $disk hw-as
rmmod headwaiter_iosched 2>/dev/null && fail "the module goes away in use"
kill -TERM $load || { cat /lab/fio; fail "the load ended by itself"; }
wait $load
[ $? -eq 128 ] || { cat /lab/fio; fail "fio: verification failed"; }	# 128: told to end; more: and there were errors
umount /mnt
must fsck.ext4 -f -n /dev/$disk >/lab/fsck

say "unloading"
elevator $disk none
must rmmod headwaiter_iosched
insert headwaiter_iosched
power=/sys/kernel/config/headwaiter_disk/$disk/power
for scheduler in $all; do
	say "$scheduler: taking the disk away"
	elevator $disk "$scheduler"
	dd if=/dev/$disk of=/dev/null bs=64k iflag=direct 2>/dev/null &
	dd if=/dev/$disk of=/dev/null bs=4k skip=5000000 2>/dev/null &
	dd if=/dev/zero of=/dev/$disk bs=64k seek=50000 oflag=direct 2>/dev/null &
	usleep 300000
	echo 0 >$power || fail "$scheduler: the disk does not go away under load"
	wait
	[ ! -e /sys/block/$disk ] || fail "$scheduler: the disk is still there"
	echo 1 >$power || fail "$scheduler: the disk does not come back: $(dmesg | tail -1)"
	result "{\"scheduler\":\"$scheduler\",\"taken_away\":1}"
done
echo 0 >$power
rmdir /sys/kernel/config/headwaiter_disk/$disk
must rmmod headwaiter_iosched
must rmmod headwaiter_disk
