# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=busybox
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

# Lines "PID NANOSECONDS", and one "tick NANOSECONDS", when there was one; on the same clock. And of a scheduler that waits, how
# many waits were met ("A_S N") and failed ("A_F N").
starts() {
	local statistics=/sys/block/sda/queue/iosched/statistics
	[ ! -e $statistics ] || awk '/^A_[SF] /' $statistics
	cat /lab/first_ios
	awk '$1 == ".last_tick" { print "tick", $3 }' /proc/timer_list
}

# A further run of a job, NAME.2 or NAME.3, takes a little more processor time for each request than the one before: the kernel
# traces it. Without that it would repeat the first, also where a microsecond decides; with it, it is another sample.
traced() {
	local event times=${1##*.} tracing=/sys/kernel/tracing
	case $times in
	[2-9]) ;;
	*) times=1 ;;
	esac
	[ -d $tracing/events ] || must mount -t tracefs nodev $tracing
	for event in rq_issue rq_complete bio_queue getrq rq_insert; do
		times=$((times - 1))
		echo $((times > 0)) >$tracing/events/block/block_$event/enable
	done
}

drive_disk sda "$DRIVE"
prefer_workers
for job in /lab/jobs/*.fio; do
	name=${job##*/}
	name=${name%.fio}
	say "$SCHEDULER: $name"
	elevator sda none
	# shellcheck disable=SC2086 # two words
	must scatter /dev/sda $SCATTER
	elevator sda "$SCHEDULER"
	for setting in /lab/set/*; do
		[ -e "$setting" ] || continue
		cat "$setting" >"/sys/block/sda/queue/iosched/${setting##*/}" || fail "$SCHEDULER refuses $setting: $(dmesg | tail -1)"
	done
	rm -f /lab/first_ios
	traced "$name"
	FIRST_IO=/lab/first_ios LD_PRELOAD=/lab/firstio.so must chrt -f 1 ionice -c 2 -n 4 \
		fio --eta=never --clocksource=clock_gettime --output-format=json+ --output=/lab/out "$job"
	send /lab/out "$name"
	starts >/lab/starts
	send /lab/starts "$name.starts"
done
