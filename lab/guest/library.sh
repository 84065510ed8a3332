# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=busybox
# What every script in a guest may use.

# Tell the host what is going on.
say() { echo "@@ say $*"; }

# End the guest, with the reason.
fail() {
	echo "@@ fail $*"
	poweroff -f
	exit 1
}

# Run a command; its failure ends the guest.
must() { "$@" || fail "failed ($?): $*"; }

# Insert a packed module: insert NAME [PARAMETER=VALUE...].
insert() {
	local name=$1
	shift
	insmod "/lab/modules/$name.ko" "$@" || fail "cannot insert module $name: $(dmesg | tail -1)"
}

# What the kernel complains of in its log: all that the host takes for a complaint, too.
complaints() { dmesg | grep -E -f /lab/complaints; }

# End the guest if the kernel has complained.
check_kernel_log() {
	[ -z "$(complaints)" ] || { dmesg | grep -E -A 60 -m 1 -f /lab/complaints; fail "its log is not clean"; }
}

# What has been allocated and cannot be reached any more, where the kernel keeps track. What is younger than five seconds
# does not count yet, and the first look may err.
leaks() {
	local file=/sys/kernel/debug/kmemleak
	[ -e $file ] || return 0
	sleep 6
	echo scan >$file
	echo scan >$file
	head -60 $file
}

# End the guest if memory has leaked.
check_leaks() {
	leaks >/lab/leaks
	[ ! -s /lab/leaks ] || { cat /lab/leaks; fail "memory has leaked"; }
}

# Send a file to the host.
send() {
	printf 'file %s %s\n' "${2:-${1##*/}}" "$(stat -c %s "$1")" >/dev/ttyS1
	cat "$1" >/dev/ttyS1
}

# A null_blk disk named $1 that holds $2 MiB in memory and completes one request every $3 ns.
null_disk() {
	local dir=/sys/kernel/config/nullb/$1
	must mkdir "$dir"
	echo "$2" >"$dir/size"
	echo 512 >"$dir/blocksize"
	echo 1 >"$dir/submit_queues"
	echo 1 >"$dir/hw_queue_depth"
	echo 1 >"$dir/memory_backed"
	echo 2560 >"$dir/max_sectors"	# as disks do; the default of 255 would split every read-ahead window
	echo 2 >"$dir/irqmode"
	echo "$3" >"$dir/completion_nsec"
	echo 1 >"$dir/power" || fail "null_blk does not start"
	echo 1 >"/sys/block/$1/queue/rotational"
}

# Choose scheduler $2 for disk $1, with room for 64 requests (a disk of depth 1 gets two by default). By way of 63, because
# the kernel's own schedulers work out their limits of depth from the number before the latest change. A scheduler of ours
# is told the positioning times of a drive_disk, as the simulator tells it.
elevator() {
	echo "$2" >"/sys/block/$1/queue/scheduler" || fail "cannot select $2"
	[ "$2" = none ] || for nr_requests in 63 64; do
		echo $nr_requests >"/sys/block/$1/queue/nr_requests" || fail "cannot set nr_requests"
	done
	local positions=/sys/block/$1/queue/iosched/positions
	if [ -e "/lab/positions/$1" ] && [ -e "$positions" ]; then
		cat "/lab/positions/$1" >"$positions" || fail "$2 refuses the drive's positions: $(dmesg | tail -1)"
	fi
}

# Choose for disk $1 a scheduler with settings: NAME[:TUNABLE=VALUE...]. Of a table the VALUE is a file that has its rows. By way of
# none: a scheduler that stays in force keeps what it knows. bfq, told low_latency=0 after it had raised weights, idles no more.
variant() {
	local disk=$1 setting value tunable
	echo none >"/sys/block/$disk/queue/scheduler" || fail "cannot select none"
	elevator "$disk" "${2%%:*}"
	for setting in $(echo "$2" | tr ':' '\n' | tail -n +2); do
		value=${setting#*=}
		tunable=/sys/block/$disk/queue/iosched/${setting%%=*}
		case $value in
		/*) cat "$value" >"$tunable" ;;
		*) echo "$value" >"$tunable" ;;
		esac || fail "$2: ${2%%:*} refuses $setting"
	done
}

# Make an ext4 whose bytes depend on nothing but its contents.
make_ext4() {
	must mkfs.ext4 -q -U 11111111-2222-3333-4444-555555555555 \
		-E lazy_itable_init=0,lazy_journal_init=0,hash_seed=66666666-7777-8888-9999-000000000000 "$1"
}

# Forget everything that was read.
drop_caches() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# Lets this shell and what it starts have no more memory than $1 MiB, page cache included.
confine() {
	local group=/cgroup/small
	mkdir -p /cgroup
	[ -d $group ] || {
		must mount -t cgroup2 cgroup /cgroup
		echo +memory >/cgroup/cgroup.subtree_control || fail "the kernel cannot confine memory"
		mkdir $group
	}
	echo $(($1 << 20)) >$group/memory.max || fail "memory.max refused"
	sh -c 'echo $PPID' >$group/cgroup.procs || fail "cgroup.procs refused"
}

# Control groups with the controller of I/O, below /cgroup.
mount_groups() {
	mkdir -p /cgroup
	[ -e /cgroup/cgroup.procs ] || must mount -t cgroup2 cgroup /cgroup
	echo +io >/cgroup/cgroup.subtree_control || fail "the kernel has no controller of I/O"
}

# Give group $1 the weight $2, in each file that it has for one: that of our schedulers, bfq's, io.cost's.
weigh_group() {
	local file
	for file in "$1"/io.*weight; do
		[ ! -e "$file" ] || echo "default $2" >"$file" || echo "$2" >"$file" || fail "$file refuses $2"
	done
}

# Move all processes of the names $2... into group $1.
move_to_group() {
	local pid group=$1
	shift
	for pid in $(pidof "$@"); do
		echo "$pid" >"$group/cgroup.procs"	# which may have ended
	done 2>/dev/null
}

# In the background, while /lab/groups exists: groups with groups in them are made, weighed, given the processes of the
# names given, weighed again and removed, with what is under way in them. How many were is in /lab/grouped.
churn_groups() {
	local n=0 group old
	touch /lab/groups
	while [ -e /lab/groups ]; do
		group=/cgroup/churn$((n % 3))
		old=/cgroup/churn$(((n + 1) % 3))
		must mkdir -p "$group/inner"
		echo +io >"$group/cgroup.subtree_control" || fail "$group: no controller of I/O"
		weigh_group "$group" $((1 + n * 37 % 1000))
		weigh_group "$group/inner" $((1 + n * 101 % 1000))
		move_to_group "$group/inner" "$@"
		usleep 20000
		weigh_group "$group" $((1 + n * 211 % 1000))
		[ $((n % 4)) -ne 3 ] || move_to_group /cgroup "$@"
		if [ -d $old ]; then
			while read -r pid; do echo "$pid" >/cgroup/cgroup.procs; done <$old/inner/cgroup.procs 2>/dev/null
			rmdir $old/inner $old 2>/dev/null	# a process that ends may be in it for a while
		fi
		n=$((n + 1))
		echo $n >/lab/grouped
	done
}

# End that, which is process $1.
end_groups() {
	local group pid
	rm /lab/groups
	wait "$1"
	for group in /cgroup/churn*; do
		while read -r pid; do echo "$pid" >/cgroup/cgroup.procs; done <"$group/inner/cgroup.procs" 2>/dev/null
		until rmdir "$group/inner" "$group" 2>/dev/null || [ ! -d "$group" ]; do usleep 10000; done
	done
}

# Print a result: a JSON object on one line.
result() { echo "$*" >>/lab/results; }

# A disk named $1 with the drive profile $2 (packed by "# lab: drives"), taking $3 commands at once (0: the profile's own).
drive_disk() {
	local dir=/sys/kernel/config/headwaiter_disk/$1
	must mkdir "$dir"
	cat "/lab/drives/$2" >"$dir/profile"
	echo "${3:-0}" >"$dir/depth" || fail "depth $3 refused"
	echo 1 >"$dir/power" || fail "drive $2 does not start: $(dmesg | tail -1)"
	mkdir -p /lab/positions
	cp "/lab/drives/$2.positions" "/lab/positions/$1"
}

# Our schedulers, as disk $1 offers them.
ours() { tr -d '[]' <"/sys/block/$1/queue/scheduler" | tr ' ' '\n' | grep '^hw-' | tr '\n' ' '; }

# Record disk $1 by $2 (tracefs, blktrace) into /tmp/$3 until stop_recorder; $4 is "issues" or nothing. $! is its process.
# Of scripts whose host has packed Python with headwaiter.recorder.record (headwaiter/lab/python.py).
start_recorder() {
	cat >/lab/recorder.py <<-END
		from pathlib import Path
		from headwaiter.base.ending import end_tidily_on_signals
		from headwaiter.queue import devices
		from headwaiter.recorder import record
		end_tidily_on_signals()
		done = record.record([devices.find("$1")], 3600, Path("/tmp/$3"), issues="${4:-}" == "issues", recorder="$2")
		assert not done.trouble and not done.sofar.lost, done
	END
	$PYTHON -S /lab/recorder.py &
	recorder=$!
	local tries=0
	until recording "$2"; do
		sleep 0.1
		tries=$((tries + 1))
		[ $tries -lt 300 ] || fail "the recorder does not begin"
	done
	sleep 1
}

# Is recorder $1 at work? A new instance of tracing is on until its events have been chosen.
recording() {
	local instance
	case $1 in
	tracefs)
		instance=$(ls -d /sys/kernel/tracing/instances/headwaiter-"$recorder"-* 2>/tmp/none) || return 1
		grep -q 1 "$instance/events/sched/sched_process_exit/enable" && grep -q 1 "$instance/tracing_on" ;;
	blktrace) pidof blktrace >/tmp/none ;;
	esac
}

# End recorder $1, by default the last one.
stop_recorder() {
	set -- "${1:-$recorder}"
	kill -TERM "$1"	# a shell starts what is in the background without SIGINT
	wait "$1" || fail "the recorder ended with status $?"
}
