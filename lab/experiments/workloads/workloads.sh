# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The eight workloads of the paper on workload-dependent anticipation: elapsed time, throughput and waits
# lab: host workloads
# lab: kernels 6.12
# lab: programs mkfs.ext4 make bonnie++ blktrace
# lab: tools player scatter
# lab: memory 1024
# lab: set DRIVE=barracuda-80g SCHEDULERS="mq-deadline hw-as" PART=1 COMPILE_US=50000 READAHEAD_KIB=128 SEED=0 RECORD=""
# lab: set WORKLOADS="kva cold-boot andrew kernel-compile bonnie multi-user db scientific"
#
# WORKLOADS is one name here: each has a guest of its own, which headwaiter/experiments/workloads.py prepares. It says how much smaller
# they are, too, and draws sizes and places by SEED. With RECORD=1 the disk is recorded: WORKLOAD.K.blktrace.0 under the Kth scheduler,
# from 0. SCHEDULERS may have settings: NAME:TUNABLE=VALUE. Those of the as family work by the rules of Linux 2.6.12 to
# 2.6.32, which WAS builds on.
disk=sda
workload=$WORKLOADS
folder=/mnt/$workload
ahead=
drive_disk $disk "$DRIVE" 1
elevator $disk mq-deadline
# Files lie at the same places in every guest, so that a recording is of those places.
must mkfs.ext4 -q -U 11111111-2222-3333-4444-555555555555 -O ^has_journal \
	-E lazy_itable_init=1,nodiscard,hash_seed=66666666-7777-8888-9999-000000000000 "/dev/$disk" 8G
# Without read-ahead ext4 reads no inodes ahead, either.
[ "$READAHEAD_KIB" -gt 0 ] || ahead=,inode_readahead_blks=0
must mount -t ext4 -o "noinit_itable,relatime$ahead" /dev/$disk /mnt
must mkdir -p "$folder"
echo "$READAHEAD_KIB" >/sys/block/$disk/queue/read_ahead_kb

# Does the workload only read? Then every scheduler finds the same files.
reads_only() { [ -e /lab/list ] && ! grep -q '^[xM] ' /lab/list; }

# Makes what the workload finds on the disk.
prepare() {
	rm -rf "$folder"
	mkdir "$folder"
	case $workload in
	andrew | kernel-compile) must cp -r /tree "$folder" ;;
	bonnie) ;;
	*) must player make /lab/list ;;
	esac
}

# One client's benchmarks, one after another: make folders, copy, look at all, search all, compile some.
andrew_client() {
	local run=0 source
	while [ $run -lt "$RUNS" ]; do
		source=$folder/tree/$1/$run
		target=$folder/copy-$1-$run
		mkdir -p "$target"
		/lab/bin/cp -r "$source" "$target" || return 1
		find "$target" -type f -exec stat '{}' + >/tmp/andrew-$1 || return 1
		grep -r "no such words" "$target" >>/tmp/andrew-$1
		for source in $(find "$target" -name '*.c' | head -n "$COMPILES"); do
			player compile "$source" "$source.o" "$COMPILE_US" || return 1
		done
		run=$((run + 1))
		say "client $1: $run of $RUNS"
	done
}

perform() {
	local i=0 clients=
	case $workload in
	andrew)
		while [ $i -lt "$PROCESSES" ]; do
			andrew_client $i &
			clients="$clients $!"
			i=$((i + 1))
		done
		for i in $clients; do wait "$i" || return 1; done
		;;
	kernel-compile) make -s -C "$folder/tree" -j "$JOBS" "COMPILE_US=$COMPILE_US" ;;
	bonnie) (confine $((FILE_MIB / 2 + 8)) && bonnie++ -q -f -d "$folder" -s "$FILE_MIB:8k:$((FILE_MIB * 8)):3" -r $((FILE_MIB / 2)) -n 0 -u 0:0 >/tmp/bonnie 2>&1) || { cat /tmp/bonnie; return 1; } ;;
	*) player play /lab/list ;;
	esac
}

# The figure $1 of the scheduler's statistics; nothing if it has none.
figure() { sed -n "s/^$1 //p" /sys/block/$disk/queue/iosched/statistics 2>/dev/null; }

names="A A_S A_F A_other T_ns T_S_ns T_F_ns T_other_ns"
figures() { for name in $names; do figure $name; done | tr '\n' ' '; }

# Sectors read and written so far, and hundredths of a second.
sectors() { awk '{ print $3 + $7 }' /sys/block/$disk/stat; }
clock() { cut -d' ' -f1 /proc/uptime; }

start_blktrace() {
	must mkdir -p /out
	blktrace -d /dev/$disk -D /out -o run -b 4096 -n 8 >/out/log 2>&1 &
	tracer=$!
	sleep 1
}

# End it, and send what it has recorded as $1.
stop_blktrace() {
	kill -INT $tracer
	wait $tracer
	grep -q '(dropped 0)' /out/log || fail "blktrace lost events: $(grep Total /out/log)"
	send /out/run.blktrace.0 "$1.blktrace.0"
	rm /out/run.blktrace.0
}

number=0
for scheduler in $SCHEDULERS; do
	elevator $disk mq-deadline
	if [ "$number" = 0 ] || ! reads_only; then
		say "$scheduler: making its files"
		prepare
	fi
	drop_caches
	# The users know their workspaces: inodes and folders are in memory.
	[ "$workload" != multi-user ] || find "$folder" -exec stat '{}' + >/dev/null
	must scatter /dev/$disk 8192 64
	variant $disk "$scheduler"
	[ ! -e /sys/block/$disk/queue/iosched/cooperation ] || echo 1 >/sys/block/$disk/queue/iosched/cooperation
	say "$scheduler: $workload"
	[ -z "$RECORD" ] || start_blktrace
	before="$(clock) $(sectors) $(figures)"
	perform || fail "$workload failed"
	sync
	grown="$before $(clock) $(sectors) $(figures)"
	[ -z "$RECORD" ] || stop_blktrace "$workload.$number"
	number=$((number + 1))
	echo "$grown" | awk -v scheduler="$scheduler" -v workload="$workload" -v names="$names" '{
		n = NF / 2
		elapsed = $(n + 1) - $1
		printf "{\"workload\":\"%s\",\"scheduler\":\"%s\",\"elapsed_s\":%.2f,", workload, scheduler, elapsed
		printf "\"throughput_MBps\":%.3f", ($(n + 2) - $2) * 512 / 1e6 / elapsed
		count = split(names, name, " ")
		for (i = 1; i <= count; i++) grown[name[i]] = $(n + 2 + i) - $(2 + i)
		if (n > 2) {
			for (i = 1; i <= count; i++) {
				figure = name[i]
				if (sub("_ns$", "_ms", figure)) printf ",\"%s\":%.3f", figure, grown[name[i]] / 1e6
				else printf ",\"%s\":%d", figure, grown[name[i]]
			}
			if (grown["A_S"]) printf ",\"T_F_per_A_S_ms\":%.3f", grown["T_F_ns"] / 1e6 / grown["A_S"]
		}
		print "}"
	}' >>/lab/results
done
