# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Cost of a scheduler: I/O per second on a disk that takes no time, at 2 ns per instruction
# lab: kernels 6.12
# lab: programs fio
# lab: set IOS=40000 SCHEDULERS="" RW="randread read"
dir=/sys/kernel/config/nullb/nvme0
must mkdir $dir
echo 0 >$dir/irqmode
echo 1 >$dir/submit_queues
echo 64 >$dir/hw_queue_depth
echo 512 >$dir/blocksize
echo 1 >$dir/power || fail "null_blk does not start"
sleep 2	# the kernel has work of its own left from boot
[ -n "$SCHEDULERS" ] || SCHEDULERS="none mq-deadline kyber bfq $(ours nvme0)"

for scheduler in $SCHEDULERS; do
	echo "$scheduler" >/sys/block/nvme0/queue/scheduler || fail "cannot select $scheduler"
	for rw in $RW; do
		say "$scheduler: $rw"
		must fio --name=cost --filename=/dev/nvme0 --rw=$rw --bs=4k --direct=1 --numjobs=2 --iodepth=32 --ioengine=libaio \
			--number_ios="$IOS" --group_reporting --clocksource=clock_gettime --eta=never --output-format=terse --terse-version=3 >/lab/fio
		result "{\"scheduler\":\"$scheduler\",\"rw\":\"$rw\",\"iops\":$(cut -d';' -f8 /lab/fio)}"
	done
done
