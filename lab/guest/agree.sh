# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs every job of /lab/jobs under every scheduler on a disk with a drive profile, and sends what fio says of it.
#
# fio's processes get the processor in the order in which they ask for it (real-time class), so that they start in the
# order in which fio releases them; their I/O is of the usual class all the same. Nothing that a job will read is in the
# drive's cache.

# The kernel's workers that run queues come before fio, as if they had another processor.
prefer_workers() {
	local worker
	for worker in /proc/[0-9]*; do
		case $(cat "$worker/comm") in
		kworker/0:*H*) must chrt -f -p 2 "${worker#/proc/}" ;;
		esac
	done
}

drive_disk sda "$DRIVE"
prefer_workers
MiB=$(($(cat /sys/block/sda/size) / 2048))
for scheduler in $SCHEDULERS; do
	for job in /lab/jobs/*.fio; do
		name=${job##*/}
		say "$scheduler: ${name%.fio}"
		elevator sda none
		must scatter /dev/sda $((MiB - 4200)) 64
		elevator sda "$scheduler"
		must chrt -f 1 ionice -c 2 -n 4 \
			fio --eta=never --clocksource=clock_gettime --output-format=json+ --output=/lab/out "$job"
		send /lab/out "$scheduler/${name%.fio}"
	done
done
