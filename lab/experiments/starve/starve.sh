# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One small reader that starts together with a stream, or 0.3 s later, under the kernel's own bfq: is it served?
# lab: kernels 6.12
# lab: programs fio
# lab: set DRIVE=barracuda-80g SCHEDULER=bfq RUNTIME=5
#
# bfq merges the queues of two processes that appear within 180 ms of each other, and in a queue the nearest request goes
# first. The stream keeps four requests going, so that one of its own is always nearer. Nothing merges, as where requests
# have the largest size already.
disk=sda
drive_disk $disk "$DRIVE" 1
echo 2 >/sys/block/$disk/queue/nomerges
elevator $disk none
cat >/tmp/job <<EOF
[global]
ioengine=libaio
direct=1
filename=/dev/$disk
size=8g
time_based
runtime=$RUNTIME
[stream]
rw=read
bs=128k
iodepth=4
[other]
rw=randread
bs=4k
offset=20g
EOF

# $1: what the case is called; then more options for the job of the other.
try() {
	local name=$1
	shift
	elevator $disk none
	elevator $disk "$SCHEDULER"
	case "$name" in *low_latency=0*) echo 0 >/sys/block/$disk/queue/iosched/low_latency || fail "no low_latency" ;; esac
	{
		cat /tmp/job
		[ $# = 0 ] || printf '%s\n' "$@"
	} >/tmp/job.fio
	say "$name"
	while sleep 2; do say "$name"; done &	# a sign of life: the machine may be slow
	must fio /tmp/job.fio --clocksource=clock_gettime --eta=never --output-format=terse --terse-version=3 >/lab/fio
	result "$(awk -F';' -v name="$name" -v scheduler="$SCHEDULER" '
		$3 == "stream" { stream = $6 / 128 }
		$3 == "other" { reads = $6 / 4; longest = $15 / 1e6 }
		END { printf "{\"scheduler\":\"%s\",\"case\":\"%s\",\"stream_reads\":%d,\"other_reads\":%d,\"longest_s\":%.1f}",
			scheduler, name, stream, reads, longest }' /lab/fio)"
	kill $!
	sleep 3
}

try together
try "other 0.3 s later" startdelay=300ms
try "together, low_latency=0"
