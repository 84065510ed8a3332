# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Several hardware queues and processors: switching, freezing, unplugging, unloading, control groups and reading statistics, all at once
# lab: kernels debug
# lab: programs fio
# lab: drives barracuda-80g
# lab: memory 768
# lab: set DURATION=15 ROUNDS=8
# lab: set KINDS="irqmode=0 irqmode=1 irqmode=2 irqmode=2,blocking=1 irqmode=0,blocking=1 irqmode=2,shared_tag_bitmap=1"

# A null_blk disk $1 with pairs ATTRIBUTE=VALUE.
queues() {
	local dir=/sys/kernel/config/nullb/$1 pair
	must mkdir "$dir"
	shift
	for pair in size=64 blocksize=512 memory_backed=1 hw_queue_depth=4 submit_queues=2 completion_nsec=50000 "$@"; do
		echo "${pair#*=}" >"$dir/${pair%=*}" || fail "null_blk has no $pair"
	done
	echo 1 >"$dir/power" || fail "null_blk does not start"
}

# fio in the background, writing and verifying parts of disk $1 of their own, for $2 s; its process in $load.
load() {
	fio --name=races --filename="/dev/$1" --size=8m --offset_increment=16m --numjobs=3 --rw=randrw --bsrange=4k-32k \
		--ioengine=libaio --iodepth=8 --direct=1 --verify=crc32c --verify_fatal=1 --time_based --runtime="$2" \
		--clocksource=clock_gettime --eta=never >/lab/fio 2>&1 &
	load=$!
}

# Read all that can be read about disk $1's scheduler, again and again, while /lab/watch exists.
watch() {
	while [ -e /lab/watch ]; do
		cat "/sys/block/$1"/queue/iosched/* "/sys/block/$1"/queue/scheduler >/dev/null
		find "/sys/kernel/debug/block/$1" -type f -perm -400 -exec cat {} + >/dev/null
	done 2>/dev/null
}

# Take the second processor away and back, again and again, while /lab/watch exists.
unplug() {
	local file=/sys/devices/system/cpu/cpu1/online
	while [ -e /lab/watch ] && [ -e $file ]; do
		echo 0 >$file
		usleep 300000
		echo 1 >$file
		usleep 300000
	done
}

# Switch and resize disk $1 while process $2 lives; counted in $switches.
switch() {
	local scheduler
	switches=0
	while kill -0 "$2" 2>/dev/null; do
		for scheduler in $(ours "$1") none $(ours "$1") bfq; do
			echo "$scheduler" >"/sys/block/$1/queue/scheduler" || fail "cannot select $scheduler"
			[ "$scheduler" = none ] || echo $((4 + switches % 60)) >"/sys/block/$1/queue/nr_requests"
			switches=$((switches + 1))
			[ $((switches % 20)) -ne 0 ] || say "$kind: $switches switches"
			usleep 20000
			kill -0 "$2" 2>/dev/null || break
		done
	done
}

mount_groups
# How completions come, whether submission may sleep, whether queues share their tags.
disk=0
for kind in $KINDS; do
	disk=$((disk + 1))
	say "$kind"
	# shellcheck disable=SC2046 # words
	queues "many$disk" $(echo "$kind" | tr , ' ')
	touch /lab/watch
	watch "many$disk" &
	unplug &
	load "many$disk" "$DURATION"
	churn_groups fio &
	churning=$!
	switch "many$disk" $load
	wait $load || { cat /lab/fio; fail "$kind: fio: verification failed"; }
	rm /lab/watch
	end_groups $churning
	wait
	result "{\"what\":\"$kind: switches under verified load\",\"count\":$switches}"
	result "{\"what\":\"$kind: groups that came and went meanwhile\",\"count\":$(cat /lab/grouped)}"
	must rmdir "/sys/kernel/config/nullb/many$disk"
done

n=0
churn_groups dd &
churning=$!
while [ $n -lt "$ROUNDS" ]; do
	for scheduler in hw-as hw-cfq-slice hw-deadline hw-maitre; do
		say "disks that go away: $scheduler, $n"
		drive_disk gone barracuda-80g
		elevator gone $scheduler
		# Two readers apart: the disk is held idle for one of them most of the time.
		dd if=/dev/gone of=/dev/null bs=16k iflag=direct 2>/dev/null &
		readers=$!
		dd if=/dev/gone of=/dev/null bs=16k iflag=direct skip=1000000 2>/dev/null &
		readers="$readers $!"
		dd if=/dev/zero of=/dev/gone bs=64k seek=30000 count=200 2>/dev/null &
		readers="$readers $!"
		usleep $((100000 + n * 37000))
		echo 16 >/sys/block/gone/queue/nr_requests
		echo 0 >/sys/kernel/config/headwaiter_disk/gone/power || fail "the disk does not go away"
		wait $readers
		must rmdir /sys/kernel/config/headwaiter_disk/gone
	done
	n=$((n + 1))
done
end_groups $churning
result "{\"what\":\"disks taken away under load\",\"count\":$((4 * n))}"
result "{\"what\":\"groups that came and went meanwhile\",\"count\":$(cat /lab/grouped)}"

queues many irqmode=2
touch /lab/watch
watch many &
churn_groups dd &
churning=$!
n=0
while [ $n -lt "$ROUNDS" ]; do
	say "modules that go away: $n"
	case $((n % 2)) in
	0) elevator many hw-as ;;
	1) elevator many hw-maitre ;;
	esac
	dd if=/dev/many of=/dev/null bs=4k count=500 iflag=direct 2>/dev/null &
	usleep 50000
	rmmod headwaiter_iosched 2>/dev/null && fail "the module goes away in use"
	echo none >/sys/block/many/queue/scheduler
	tries=0
	until rmmod headwaiter_iosched 2>/dev/null; do	# a reader of its files may hold it for a moment
		tries=$((tries + 1))
		[ $tries -lt 1000 ] || fail "the module does not go away"
	done
	insert headwaiter_iosched
	n=$((n + 1))
done
rm /lab/watch
end_groups $churning
wait
must rmdir /sys/kernel/config/nullb/many
must rmmod headwaiter_iosched
must rmmod headwaiter_disk
result "{\"what\":\"modules taken away\",\"count\":$n}"
