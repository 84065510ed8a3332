# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Memory runs out: at every single allocation of attaching, resizing, weighing groups, starting a disk, at some of loading; at random under I/O
# lab: kernels debug
# lab: drives barracuda-80g
# lab: set STEPS=400 SCHEDULERS="hw-deadline hw-as hw-cfq-slice hw-maitre"

for fault in failslab fail_page_alloc; do
	echo N >/sys/kernel/debug/$fault/ignore-gfp-wait
	echo 0 >/sys/kernel/debug/$fault/verbose
done
echo 0 >/sys/kernel/debug/fail_page_alloc/min-order

# Run shell command $2 with its first allocation failing, then with its second (or $4-th from it), and so on up to the end of
# it or $STEPS; $3 brings the state back after each. How many of them made it fail is the result.
fail_each() {
	local n=1 failed=0 tried=0 left
	say "$1"
	while [ $n -le "$STEPS" ]; do
		sh -c "echo $n >/proc/self/fail-nth; $2; r=\$?; read left </proc/self/fail-nth; echo 0 >/proc/self/fail-nth
			echo \$left >/lab/left; exit \$r" 2>/dev/null || failed=$((failed + 1))
		left=$(cat /lab/left)
		eval "$3"
		[ "$left" = 0 ] || break	# the command has not come to allocation $n
		n=$((n + ${4:-1}))
		tried=$((tried + 1))
	done
	result "{\"what\":\"$1\",\"allocations\":$tried,\"failed\":$failed}"
}

drive_disk sda barracuda-80g
queue=/sys/block/sda/queue
all=$(ours sda)
mount_groups
for group in light heavy; do	# each has data of its own for this disk, once something has been read in it
	must mkdir /cgroup/$group
	sh -c "echo \$\$ >/cgroup/$group/cgroup.procs; exec dd if=/dev/sda of=/dev/null bs=4k count=8 iflag=direct" 2>/dev/null
done
for scheduler in $SCHEDULERS; do
	fail_each "attach $scheduler" "echo $scheduler >$queue/scheduler" "echo none >$queue/scheduler"
done
echo hw-as >$queue/scheduler
fail_each "nr_requests" "echo 500 >$queue/nr_requests" "echo 4 >$queue/nr_requests; dd if=/dev/sda of=/dev/null bs=4k count=8 iflag=direct 2>/dev/null"
echo hw-maitre >$queue/scheduler
fail_each "weight" "echo 300 >/cgroup/heavy/io.maitre.weight" ":"
[ "$(cat /cgroup/heavy/io.maitre.weight)" = "default 300" ] || fail "a weight is lost"
# The replaced shells do not tell where they ended, so some of their allocations are not the group's.
fail_each "a group" "exec mkdir /cgroup/more" "rmdir /cgroup/more 2>/dev/null; left=0" 5
fail_each "the first request of a group" \
	"mkdir -p /cgroup/more; echo \$\$ >/cgroup/more/cgroup.procs; exec dd if=/dev/sda of=/dev/null bs=4k count=2 iflag=direct" \
	"rmdir /cgroup/more 2>/dev/null; left=0" 5
echo none >$queue/scheduler

dir=/sys/kernel/config/headwaiter_disk/other
must mkdir $dir
cat /lab/drives/barracuda-80g >$dir/profile
fail_each "power" "echo 1 >$dir/power" "echo 0 >$dir/power"
rmdir $dir

# Most of what loading allocates is not the module's business, and the replaced shell cannot tell where it ended. What insmod is
# refused it tries again in another way: so it loads in the end, after a failure.
rmmod headwaiter_iosched
fail_each "insmod" "exec insmod /lab/modules/headwaiter_iosched.ko" "rmmod headwaiter_iosched 2>/dev/null; left=0" 7
insert headwaiter_iosched

say "random failures under I/O"
for fault in failslab fail_page_alloc; do
	echo Y >/sys/kernel/debug/$fault/task-filter
	echo 20 >/sys/kernel/debug/$fault/probability
	echo -1 >/sys/kernel/debug/$fault/times
done
for scheduler in $all; do
	elevator sda "$scheduler"
	for n in 1 2 3 4 5 6 7 8 9 10; do
		# Without the memory for a task's own data its requests count as nobody's in particular.
		sh -c "echo \$\$ >/cgroup/light/cgroup.procs; echo 1 >/proc/self/make-it-fail
			exec dd if=/dev/sda of=/dev/null bs=64k count=20 skip=$n iflag=direct" 2>/dev/null &
		sh -c "echo \$\$ >/cgroup/heavy/cgroup.procs; echo 1 >/proc/self/make-it-fail; exec dd if=/dev/zero of=/dev/sda bs=64k count=20 seek=$((n * 100))" 2>/dev/null &
		wait
	done
	result "{\"what\":\"$scheduler: short of memory under I/O\",\"allocations\":20}"
done
echo none >$queue/scheduler
for fault in failslab fail_page_alloc; do
	echo 0 >/sys/kernel/debug/$fault/probability
done
must rmmod headwaiter_iosched
rmdir /sys/kernel/config/headwaiter_disk/sda
must rmmod headwaiter_disk
