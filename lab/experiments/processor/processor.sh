# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Processor time of an I/O: before it is in the queue, from there to the device, and from its completion to the next one
# lab: programs fio chrt
# lab: drives barracuda-80g
# lab: shift 0
# lab: set SCHEDULERS="none mq-deadline hw-as" SIZES="4 16 64 256" JOBS="read write"
#
# One process of direct I/O in sequence, whose writes are zeros: the emulated disk stores none of them, and its processor time is
# the same for all; times are medians over its I/Os, between the kernel's block tracepoints. What the
# tracepoints themselves take is measured, too: `traced_us` is by how much longer an I/O took with them, in all.

tracing=/sys/kernel/tracing
events="block_bio_queue block_rq_insert block_rq_issue block_rq_complete"
IOS=200

trace() { for event in $events; do echo "$1" >$tracing/events/block/$event/enable; done; }

# Mean ns of an I/O from begin to end, as fio saw it: job SIZE_KIB OPERATION OFFSET.
job() {
	must chrt -f 1 ionice -c 2 -n 4 fio --name=job --filename=/dev/sda --ioengine=psync --direct=1 --rw="$2" --bs="$1k" \
		--number_ios=$IOS --zero_buffers=1 --offset="$3" --size=1g --eta=never --clocksource=clock_gettime --output-format=json --output=/lab/out
	awk -v ios=$IOS '$1 == "\"job_runtime\"" { gsub(",", ""); print $3 * 1e6 / ios; exit }' /lab/out
}

echo mono >$tracing/trace_clock
echo 4096 >$tracing/buffer_size_kb
drive_disk sda barracuda-80g
for worker in /proc/[0-9]*; do
	case $(cat "$worker/comm") in
	kworker/0:*H*) must chrt -f -p 2 "${worker#/proc/}" ;;
	esac
done
for scheduler in $SCHEDULERS; do
	elevator sda "$scheduler"
	for operation in $JOBS; do
		for size in $SIZES; do
			say "$scheduler: $operation of $size KiB"
			plain=$(job "$size" "$operation" 0)
			echo >$tracing/trace
			trace 1
			traced=$(job "$size" "$operation" 1g)
			trace 0
			# Lines "next|insert|issue MICROSECONDS", one for each I/O and interval.
			awk '
			{
				event = ""
				for (i = 4; i <= 7 && event == ""; i++)
					if ($i ~ /^block_.*:$/) { event = $i; now = substr($(i - 1), 1, length($(i - 1)) - 1) * 1e6 }
			}
			event == "block_bio_queue:" { if (done) print "next", now - done; last = now }
			event == "block_rq_insert:" { if (last) print "insert", now - last; last = now }
			event == "block_rq_issue:" { if (last) print "issue", now - last }
			event == "block_rq_complete:" { done = now }' $tracing/trace | sort -k 1,1 -k 2n >/lab/intervals
			result "$(awk -v scheduler="$scheduler" -v operation="$operation" -v size="$size" -v plain="$plain" -v traced="$traced" '
			{ value[$1, ++count[$1]] = $2 }
			function median(name) { return count[name] ? value[name, int((count[name] + 1) / 2)] : 0 }
			END {
				printf "{\"scheduler\": \"%s\", \"operation\": \"%s\", \"KiB\": %d, ", scheduler, operation, size
				printf "\"next_us\": %.2f, \"insert_us\": %.2f, ", median("next"), median("insert")
				printf "\"issue_us\": %.2f, \"io_us\": %.2f, ", median("issue"), plain / 1000
				printf "\"traced_us\": %.2f}", (traced - plain) / 1000
			}' /lab/intervals)"
		done
	done
done
