# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The recorder: its cost on a disk that takes no time, and its requests beside those of blktrace
# lab: host record
# lab: programs fio blktrace mkfs.ext4
# lab: memory 2048
# lab: set IOS=20000 READS=60 DRIVE=barracuda-80g
export PYTHONHOME PYTHONPATH

if [ "$IOS" -gt 0 ]; then
	dir=/sys/kernel/config/nullb/nvme0
	must mkdir $dir
	echo 0 >$dir/irqmode
	echo 1 >$dir/submit_queues
	echo 64 >$dir/hw_queue_depth
	echo 512 >$dir/blocksize
	echo 1 >$dir/power || fail "null_blk does not start"
	elevator nvme0 mq-deadline
	sleep 2	# the kernel has work of its own left from boot
	for how in off tracefs "tracefs issues" blktrace; do
		say "cost: $how"
		name=${how% *}
		# shellcheck disable=SC2086 # two words
		[ "$how" = off ] || start_recorder nvme0 $name cost ${how#"$name"}
		must fio --name=cost --filename=/dev/nvme0 --rw=randread --bs=4k --direct=1 --numjobs=2 --iodepth=32 --ioengine=libaio \
			--number_ios="$IOS" --group_reporting --clocksource=clock_gettime --eta=never --output-format=terse \
			--terse-version=3 >/lab/fio
		[ "$how" = off ] || stop_recorder
		iops=$(cut -d';' -f8 /lab/fio)
		[ "$how" != off ] || off=$iops
		result "{\"what\":\"cost\",\"recorder\":\"$how\",\"iops\":$iops,\"cost_percent\":$(awk "BEGIN { printf \"%.1f\", 100 * (1 - $iops / $off) }")}"
		rm -f /tmp/cost
	done
fi

# Two readers, many short-lived ones, and a writer, under both recorders at once.
say "two recorders"
drive_disk sda "$DRIVE" 1
elevator sda mq-deadline
make_ext4 /dev/sda
must mount /dev/sda /mnt
dd if=/dev/zero of=/mnt/a bs=1M count=8 2>/tmp/none
dd if=/dev/zero of=/mnt/b bs=1M count=8 2>/tmp/none
for i in $(seq "$READS"); do echo "$i" >"/mnt/f$i"; done
sleep 30	# ext4 has work of its own after mounting
drop_caches
start_recorder sda tracefs same.tracefs issues
first=$!
start_recorder sda blktrace same.blktrace issues
second=$!
dd if=/mnt/a of=/tmp/none bs=64k 2>/tmp/none2 &
readers=$!
dd if=/mnt/b of=/tmp/none3 bs=64k 2>/tmp/none4 &
readers="$readers $!"
for i in $(seq "$READS"); do cat "/mnt/f$i" >/tmp/none5; done
dd if=/dev/zero of=/mnt/c bs=64k count=32 conv=fsync 2>/tmp/none6
# shellcheck disable=SC2086 # two
wait $readers
sync
sleep 1
stop_recorder "$second"
stop_recorder "$first"
send /tmp/same.tracefs
send /tmp/same.blktrace
