# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Switching schedulers in a loop under I/O, in control groups that come and go; flushes, discards, requeues, dying tasks; no request may get lost
# lab: programs fio mkfs.ext4 fsck.ext4
# lab: tools ioload
# lab: modules sd_mod crc_t10dif
# lab: packed scsi_debug
# lab: memory 1536
# lab: set DURATION=60

# Every I/O that a disk was given has come back, and each was counted once.
settled() {
	local inflight
	sync
	inflight=$(awk '{ print $1 + $2 }' "/sys/block/$1/inflight")
	[ "$inflight" = 0 ] || fail "$1: $inflight requests are lost"
}

# Switch disk $1 among all schedulers while process $2 lives; the number of switches in $switches.
switch_while() {
	switches=0
	while kill -0 "$2" 2>/dev/null; do
		for scheduler in $(ours "$1") none mq-deadline $(ours "$1") bfq kyber; do
			echo "$scheduler" >"/sys/block/$1/queue/scheduler" || fail "cannot select $scheduler"
			[ "$scheduler" = none ] || echo $((4 + switches % 60)) >"/sys/block/$1/queue/nr_requests"
			switches=$((switches + 1))
			[ $((switches % 20)) -ne 0 ] || say "$switches switches"
			usleep 20000
		done
	done
}

mount_groups
say "switching for $DURATION s under load"
dir=/sys/kernel/config/nullb/nvme0
must mkdir $dir
for pair in size=256 blocksize=512 memory_backed=1 irqmode=2 completion_nsec=200000 hw_queue_depth=4 cache_size=4 discard=1; do
	echo "${pair#*=}" >"$dir/${pair%=*}" || fail "null_blk has no ${pair%=*}"
done
echo 1 >$dir/power || fail "null_blk does not start"
must mkfs.ext4 -q /dev/nvme0
must mount -t ext4 -o discard /dev/nvme0 /mnt
fio --name=abuse --directory=/mnt --size=8m --numjobs=3 --rw=randrw --bsrange=4k-64k --ioengine=libaio --iodepth=16 --direct=1 \
	--fsync=32 --verify=crc32c --verify_fatal=1 --time_based --runtime="$DURATION" --clocksource=clock_gettime --eta=never >/lab/fio 2>&1 &
load=$!
churn_groups fio &
churning=$!
switch_while nvme0 $load
wait $load || { cat /lab/fio; fail "fio: verification failed"; }
end_groups $churning
settled nvme0
result "{\"what\":\"switches under verified load\",\"count\":$switches}"
result "{\"what\":\"groups that came and went meanwhile\",\"count\":$(cat /lab/grouped)}"

# 64 processes that issue an I/O or two and exit, some with read-ahead under way.
jobs=
n=0
while [ $n -lt 64 ]; do
	case $((n % 4)) in
	0) jobs="$jobs read,buffered,n=2,start=$((n * 24)),span=24" ;;
	1) jobs="$jobs read,rand,n=1,span=1600,seed=$n" ;;
	2) jobs="$jobs write,rand,n=2,qd=2,span=1600,seed=$n,prio=$((1 + n % 3)).$((n % 8))" ;;
	3) jobs="$jobs read,n=1,start=$((n * 24)),span=24,rthink=2000,seed=$n" ;;
	esac
	n=$((n + 1))
done
for scheduler in $(ours nvme0); do
	say "$scheduler: tasks by the thousand, discards"
	elevator nvme0 "$scheduler"
	dd if=/dev/zero of=/mnt/many bs=4k count=200 2>/dev/null
	churn_groups ioload &
	churning=$!
	n=0
	while [ $n -lt 16 ]; do
		drop_caches
		# shellcheck disable=SC2086
		must ioload /mnt/many $jobs
		n=$((n + 1))
	done
	end_groups $churning
	rm /mnt/many
	must fstrim /mnt
	settled nvme0
	result "{\"what\":\"$scheduler: tasks that issued and died\",\"count\":$((64 * n))}"
done
say "hw-was: one config after the other under load"
elevator nvme0 hw-was
config=/sys/block/nvme0/queue/iosched/config
steps="history 0 5
classes 0 2
spatial 0 70
999 0
temporal 0 30
interval 1"
dd if=/dev/zero of=/mnt/many bs=4k count=200 2>/dev/null
drop_caches
echo 1 >/sys/block/nvme0/queue/iosched/observe
(
	for _ in 1 2 3 4; do
		ioload /mnt/many $jobs || exit 1
	done
) &
load=$!
n=0
while kill -0 $load 2>/dev/null || [ $n -lt 30 ]; do
	printf '%s %s\n6000\n' "$steps" $((n % 7 * 500)) >$config || fail "a config is refused: $(dmesg | tail -1)"
	cat $config /sys/block/nvme0/queue/iosched/observed >/lab/config
	[ $((n % 5)) -ne 0 ] || echo >$config || fail "no config is refused"
	n=$((n + 1))
done
wait $load || fail "the load failed"
rm /mnt/many
settled nvme0
result "{\"what\":\"configs of hw-was under load\",\"count\":$n}"
umount /mnt
must fsck.ext4 -f -n /dev/nvme0 >/lab/fsck
echo 0 >$dir/power

say "a device that refuses and returns"
insert scsi_debug dev_size_mb=64 every_nth=20 opts=128 ndelay=200000 max_queue=8
n=0
while [ ! -b /dev/sda ]; do
	[ $n -lt 50 ] || fail "scsi_debug shows no disk"
	n=$((n + 1))
	usleep 100000
done
# Every 20th command is answered by nothing: a shorter wait for each says as much.
echo 3 >/sys/block/sda/device/timeout || fail "scsi_debug's disk has no timeout"
for scheduler in $(ours sda); do
	say "$scheduler: a device that refuses and returns"
	echo "$scheduler" >/sys/block/sda/queue/scheduler || fail "cannot select $scheduler"
	dd if=/dev/urandom of=/lab/data bs=64k count=64 2>/dev/null
	dd if=/lab/data of=/dev/sda bs=4k oflag=direct 2>/dev/null || fail "$scheduler: write failed"
	for i in 0 1 2 3; do
		dd if=/dev/sda of=/lab/back.$i bs=64k skip=$((i * 16)) count=16 iflag=direct 2>/dev/null &
	done
	wait
	cat /lab/back.0 /lab/back.1 /lab/back.2 /lab/back.3 | cmp - /lab/data || fail "$scheduler: data differ"
	settled sda
	result "{\"what\":\"$scheduler: MiB through a refusing device\",\"count\":8}"
done
