# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Records the decisions of the kernel's own schedulers, for 'headwaiter conform check'
# lab: host conformance
# lab: stock configfs null_blk mq-deadline kyber-iosched bfq scsi_debug sd_mod
# lab: tools ioload
# lab: set WORKLOADS="" SCHEDULERS=""
#
# /lab/runs has a line for each run:
#   NAME SCHEDULER DEVICE DEPTH SERVICE_NS NR_REQUESTS TUNABLE=VALUE,…|- JOB…
# DEVICE is "null" (null_blk), "throttled" (null_blk that refuses what comes too fast, 4 MB/s), "queues" (null_blk with a hardware
# queue for each CPU) or "scsi" (scsi_debug, which hands out budgets). Where the members of struct request are comes from the environment: kernels differ.
cd /sys/kernel/tracing || exit
echo mono >trace_clock
echo 32768 >buffer_size_kb
fields="rq=\$retval:u64 sector=+$SECTOR(\$retval):u64 bytes=+$BYTES(\$retval):u32 flags=+$FLAGS(\$retval):u32"
fields="$fields ioprio=$IOPRIO:u16 start=+$START(\$retval):u64 jiffies=@jiffies_64:u64"
for function in dd kyber; do
	echo "r:conform/dispatch_$function ${function}_dispatch_request $fields" >>kprobe_events ||
		fail "no probe on ${function}_dispatch_request"
done
# bfq judges by ns, and keeps the times of the latest dispatch and the latest completion. It hears of a completion a little later
# than the block layer says, and of a task's end. It merges queues when it is asked whether a bio may join a request, which is
# sometimes long before the bio becomes a request itself. 6.1 has one function for completions and requeues.
probe() {
	echo "$*" >>kprobe_events || fail "no probe $*"
}
probe "r:conform/dispatch_bfq bfq_dispatch_request $fields now=$(echo "$DISPATCHED" | sed 's/REQUEST/$retval/'):u64"
probe p:conform/ask_bfq bfq_dispatch_request
finish=bfq_finish_request
grep -qw $finish /proc/kallsyms || finish=bfq_finish_requeue_request
probe "p:conform/finish_bfq $finish last=$(echo "$COMPLETED" | sed 's/REQUEST/$arg1/'):u64"
probe "p:conform/allow_bfq bfq_allow_bio_merge sector=+$SECTOR(\$arg2):u64 flags=+$FLAGS(\$arg2):u32 $BIO"
probe p:conform/attach_bfq bfq_init_queue
probe p:conform/timer_bfq bfq_idle_slice_timer
probe p:conform/gone_bfq bfq_exit_icq
for event in block/block_rq_insert block/block_rq_issue block/block_rq_complete block/block_rq_requeue \
	block/block_rq_merge block/block_bio_backmerge block/block_bio_frontmerge sched/sched_process_exit \
	conform/dispatch_dd conform/dispatch_kyber conform/dispatch_bfq \
	conform/attach_bfq conform/finish_bfq conform/timer_bfq conform/gone_bfq \
	conform/allow_bfq conform/ask_bfq; do
	echo 1 >"events/$event/enable" || fail "no event $event"
	cat "events/$event/format" >/tmp/format	# has no size where it is
	send /tmp/format "format-${event#*/}"
done
echo 0 >tracing_on

# A null_blk disk "conform" of depth $1 and $2 ns a request, with $3 more settings.
start_null() {
	local dir=/sys/kernel/config/nullb/conform setting
	must mkdir $dir
	for setting in size=65536 blocksize=512 submit_queues=1 memory_backed=0 max_sectors=2560 irqmode=2 \
		"hw_queue_depth=$1" "completion_nsec=$2" $3; do
		echo "${setting#*=}" >"$dir/${setting%%=*}" || fail "null_blk: $setting"
	done
	echo 1 >$dir/power || fail "null_blk does not start"
	disk=conform
}

# A scsi_debug disk of 64 tags that takes $1 requests at once, $2 ns each.
start_scsi() {
	rmmod scsi_debug	# the one that came with the boot, or the last run's
	must insmod /lab/modules/scsi_debug.ko dev_size_mb=16 virtual_gb=64 max_queue=64 delay=0 "ndelay=$2"
	disk=
	while [ -z "$disk" ]; do
		sleep 0.1
		disk=$(cd /sys/block && echo sd*)
		[ -e "/sys/block/$disk" ] || disk=
	done
	sleep 1	# it is scanned
	echo "$1" >"/sys/block/$disk/device/queue_depth" || fail "queue_depth"
}

stop_disk() {
	[ "$disk" = conform ] || return 0
	echo 0 >/sys/kernel/config/nullb/conform/power
	must rmdir /sys/kernel/config/nullb/conform
}

while read -r name scheduler device depth service_ns nr_requests tunables jobs; do
	say "recording $name"
	: >/tmp/settings
	case $device in
	null) start_null "$depth" "$service_ns" ;;
	throttled) start_null "$depth" "$service_ns" mbps=4 ;;
	queues) start_null "$depth" "$service_ns" "submit_queues=$(grep -c ^processor /proc/cpuinfo)" ;;
	scsi)
		start_scsi "$depth" "$service_ns"
		[ "$scheduler" != none ] || echo budget=1 >/tmp/settings
		;;
	esac
	queue=/sys/block/$disk/queue
	echo 1 >$queue/rotational
	echo none >$queue/scheduler
	echo >trace
	echo 1 >tracing_on
	echo "$scheduler" >$queue/scheduler || fail "no scheduler $scheduler"
	if [ "$scheduler" != none ]; then
		# 6.12 computes the limits of asynchronous requests from the value before, and takes no value that it has.
		echo "$nr_requests" >$queue/nr_requests
		echo $((nr_requests + 1)) >$queue/nr_requests
		echo "$nr_requests" >$queue/nr_requests || fail "nr_requests"
	fi
	if [ "$tunables" != - ]; then
		for setting in $(echo "$tunables" | tr , ' '); do
			echo "${setting#*=}" >"$queue/iosched/${setting%%=*}" || fail "$scheduler: $setting"
		done
	fi
	for file in "$queue"/iosched/*; do
		[ ! -f "$file" ] || echo "${file##*/}=$(cat "$file")"
	done >>/tmp/settings
	# shellcheck disable=SC2086
	must ioload "/dev/$disk" $jobs
	echo 0 >tracing_on
	for cpu in per_cpu/cpu*; do
		[ "$(sed -n 's/^overrun: //p' "$cpu/stats")" = 0 ] || fail "$name: the trace buffer is too small"
		rm -f /tmp/raw
		must ioload --dump "$cpu/trace_pipe_raw" /tmp/raw
		send /tmp/raw "$name.${cpu##*cpu}"
	done
	send /tmp/settings "$name.settings"
	stop_disk
done </lab/runs
