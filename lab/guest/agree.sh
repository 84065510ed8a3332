# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs every job of /lab/jobs under a scheduler on a disk with a drive profile, and sends what fio says of it.
#
# fio's processes get the processor in the order in which they ask for it (real-time class), so that they start in the
# order in which fio releases them; their I/O is of the usual class all the same. Nothing that a job will read is in the
# drive's cache. When each process issued its first I/O goes with the results: which readers come before a tick of the clock and
# which after decides much.

# The kernel's workers that run queues come before fio, as if they had another processor.
prefer_workers() {
	local worker
	for worker in /proc/[0-9]*; do
		case $(cat "$worker/comm") in
		kworker/0:*H*) must chrt -f -p 2 "${worker#/proc/}" ;;
		esac
	done
}

tracing=/sys/kernel/tracing
first_ios=$tracing/events/block/block_bio_queue/enable
echo mono >$tracing/trace_clock
echo 0 >$tracing/options/overwrite
echo 64 >$tracing/buffer_size_kb

# Lines "PID SECONDS", and one "tick NANOSECONDS", when there was one; on the same clock.
starts() {
	awk '$1 ~ /^fio-/ && $5 == "block_bio_queue:" && !seen[$1]++ { sub(":", "", $4); print substr($1, 5), $4 }' $tracing/trace
	awk '$1 == ".last_tick" { print "tick", $3 }' /proc/timer_list
}

drive_disk sda "$DRIVE"
prefer_workers
for job in /lab/jobs/*.fio; do
	name=${job##*/}
	name=${name%.fio}
	say "$SCHEDULER: $name"
	elevator sda none
	must scatter /dev/sda $SCATTER
	elevator sda "$SCHEDULER"
	echo >$tracing/trace
	echo 1 >$first_ios
	must chrt -f 1 ionice -c 2 -n 4 \
		fio --eta=never --clocksource=clock_gettime --output-format=json+ --output=/lab/out "$job"
	echo 0 >$first_ios
	send /lab/out "$name"
	starts >/lab/starts
	send /lab/starts "$name.starts"
done
