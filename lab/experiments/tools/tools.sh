# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One load on one disk as other tools record and print it: blktrace and blkparse, trace-cmd, perf, and tracefs itself
# lab: programs blktrace blkparse trace-cmd perf mkfs.ext4
# lab: memory 2048
# lab: set READS=20 DRIVE=barracuda-80g
drive_disk sda "$DRIVE" 1
elevator sda mq-deadline
make_ext4 /dev/sda
must mount /dev/sda /mnt
dd if=/dev/zero of=/mnt/a bs=1M count=4 2>/tmp/none
for i in $(seq "$READS"); do echo "$i" >"/mnt/f$i"; done
sleep 30	# ext4 has work of its own after mounting
drop_caches
cd /tmp || fail "no /tmp"

say "recorders begin"
instance=/sys/kernel/tracing/instances/mine
must mkdir $instance
echo 4096 >$instance/buffer_size_kb
for event in block_bio_queue block_split block_bio_remap block_rq_insert block_rq_issue block_rq_complete; do
	must sh -c "echo 1 >$instance/events/block/$event/enable"
done
blktrace -d /dev/sda -o disk >/tmp/blktrace.log 2>&1 &
blktrace=$!
trace-cmd record -e block -o /tmp/trace.dat >/tmp/trace-cmd.log 2>&1 &
tracecmd=$!
perf record -a -e 'block:*' -o /tmp/perf.data >/tmp/perf.log 2>&1 &
perf=$!
sleep 5

say "the load"
dd if=/mnt/a of=/tmp/none1 bs=64k 2>/tmp/none2
for i in $(seq "$READS"); do cat "/mnt/f$i" >/tmp/none3; done
dd if=/dev/zero of=/mnt/c bs=64k count=16 conv=fsync 2>/tmp/none4
sync
sleep 1

say "recorders end"
kill -INT $blktrace $tracecmd $perf
wait $blktrace || fail "blktrace: $(cat /tmp/blktrace.log)"
wait $tracecmd
[ -s /tmp/trace.dat ] || fail "trace-cmd: $(cat /tmp/trace-cmd.log)"
wait $perf
[ -s /tmp/perf.data ] || fail "perf: $(cat /tmp/perf.log)"
must cp $instance/trace /tmp/tracefs.txt
must sh -c "blkparse -i disk >/tmp/blkparse.txt"
must sh -c "trace-cmd report -i /tmp/trace.dat >/tmp/trace-cmd.txt"
must sh -c "perf script --ns -i /tmp/perf.data >/tmp/perf.txt"
for name in blkparse.txt trace-cmd.txt perf.txt tracefs.txt disk.blktrace.0 trace.dat perf.data; do
	send "/tmp/$name"
done
result "{\"lines\":$(wc -l </tmp/tracefs.txt)}"
