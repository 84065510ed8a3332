# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Whether `headwaiter advise` names the scheduler under which random jobs get the most
# lab: kernels 6.12
# lab: host advise
# lab: programs fio
# lab: memory 2048
# lab: set DRIVE=barracuda-80g DEPTH=1 FIRST=mq-deadline
# lab: set SCHEDULERS="none mq-deadline kyber bfq bfq:low_latency=0 mq-deadline:fifo_batch=1 hw-as hw-cfq-slice hw-maitre"
# lab: set JOBS="1 2 3 4 5 6 7 8 9 10 11 12" RUNTIME=10 RUNS=1 STORED= MEASURED=
#
# Each job, a random one by the number of its seed (`headwaiter lab agree --show N`), runs RUNTIME seconds under each of the schedulers.
# First it is recorded for as long, under FIRST: its processes go on there when the recording ends, as those of a user do. So advice
# and what it is held against are of the same seconds. The schedulers have their defaults, unless a name says otherwise
# (bfq:low_latency=0), and are told nothing of the drive. With RUNS=2 all but the recording happens twice, half a turn of the drive
# and some of the kernel's timers apart: the second time shows how much of the first is chance. STORED=FOLDER boots nothing: it takes what
# a run has stored with --files, and ranks that anew. With MEASURED=FILE.json, what --json printed, it takes only the recordings from the
# folder, and from the file what each scheduler gave: so recordings of another run, which are made in a fraction of the time
# (SCHEDULERS=mq-deadline), are ranked beside it.
export PYTHONHOME PYTHONPATH
disk=sda
drive_disk $disk "$DRIVE" "$DEPTH"
rm /lab/positions/$disk

# A scheduler that is in force for long has seen the disk with many requests at once, and with one at a time, and one that was just chosen
# has not: bfq does not know then whether the disk takes several, nor maitre how long its ways are.
settle() {
	for at_once in 32 1; do
		must fio --eta=never --name=settle --filename=/dev/$disk --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=$at_once \
			--number_ios=192 --output=/tmp/settle
	done
}

# Make the disk as if the scheduler $1 had been in force for long, with nothing in the page cache.
prepare() {
	variant $disk "$1"
	settle
	drop_caches
}

# Run the job $1 in the background. $! is its process.
start_job() {
	fio --eta=never --clocksource=clock_gettime --output-format=json --output=/tmp/fio "/lab/jobs/$1.fio" &
}

for job in $JOBS; do
	say "job $job: recorded under $FIRST"
	prepare "$FIRST"
	start_recorder $disk tracefs "$job.recording" issues
	start_job "$job.recorded"
	fio=$!
	sleep "$RUNTIME"
	kill -0 $fio || fail "job $job has ended before its recording"
	stop_recorder	# which writes on for a while
	send "/tmp/$job.recording"
	rm "/tmp/$job.recording"
	wait $fio || fail "job $job: fio ended with status $?"
done

for run in $(seq "$RUNS"); do
	suffix=
	[ "$run" = 1 ] || suffix=.again
	for job in $JOBS; do
		for scheduler in $SCHEDULERS; do
			say "job $job: $scheduler"
			prepare "$scheduler"
			[ "$run" = 1 ] || sleep 0.704
			start_job "$job"
			wait $! || fail "job $job: fio ended with status $?"
			send /tmp/fio "$job.$scheduler$suffix.fio"
		done
	done
done
