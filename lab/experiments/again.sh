# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What each program of a load gets done in the same time under each scheduler, beside replays of a recording of it
# lab: host again
# lab: kernels 6.12
# lab: programs blktrace dd find mkfs.ext4
# lab: tools scatter
# lab: memory 4096
# lab: set LOAD=example DRIVE=barracuda-80g DEPTH=1 SERVICE_NS=0 FIRST=mq-deadline SPAN=19
# lab: set SCHEDULERS="none mq-deadline kyber bfq hw-cfq-slice hw-maitre"
# lab: set TREES=4 STREAMED_MIB=1536 DUMP_BLOCKS=32 WRITER_MIB=64
#
# The programs begin together on a cold page cache and go on for SPAN seconds: streams do not come to the end of their files (of
# STREAMED_MIB together), and find, which runs cat for every file, has TREES trees to search. What a program has read and written is what the kernel says of it
# and of its children (/proc/PID/io). LOAD is one of the functions load_* here. All of it is recorded; what was recorded under FIRST
# is replayed under each of the others. With SERVICE_NS the disk takes so long for each request, wherever it lies.
disk=sda
if [ "$SERVICE_NS" = 0 ]; then
	drive_disk $disk "$DRIVE" "$DEPTH"
	rm /lab/positions/$disk
else
	null_disk $disk 2048 "$SERVICE_NS"
fi
elevator $disk mq-deadline

say "making the file system"
must mkfs.ext4 -q -U 11111111-2222-3333-4444-555555555555 \
	-E lazy_itable_init=0,lazy_journal_init=0,nodiscard,hash_seed=66666666-7777-8888-9999-000000000000 /dev/$disk 2048M
must mount -t ext4 /dev/$disk /mnt
trees=
for i in $(seq "$TREES"); do
	must cp -r /tree "/mnt/src.$i"
	trees="$trees /mnt/src.$i"
done
case $LOAD in
writer) files="1 2" ;;
*) files=1 ;;
esac
for i in $files; do
	must dd if=/dev/zero of="/mnt/big.$i" bs=1M count=$((STREAMED_MIB / ${files##* })) status=none
done
must umount /mnt

# Programs of loads.
stream() { /bin/dd if="$1" of=/dev/null bs=64k status=none; }
search() { for tree in $trees; do /bin/find "$tree" -type f -exec cat '{}' ';' >/lab/copied; done; }
dump() {
	local i=0
	while :; do
		/bin/dd if=/dev/zero of="/mnt/dump.$i" bs=64k count="$DUMP_BLOCKS" conv=fsync status=none
		i=$((i + 1))
		sleep 1
	done
}
writer() {
	local i=0
	while :; do
		/bin/dd if=/dev/zero of="/mnt/written.$((i % 4))" bs=64k count=$((WRITER_MIB * 16)) status=none
		i=$((i + 1))
	done
}
copy() { for tree in $trees; do cp -r "$tree" "/mnt/copy${tree#/mnt/src}"; done; }

# Each program of a load by its name, the names of its processes, and what it does.
load_example() {
	begin stream dd stream /mnt/big.1
	begin find "find cat" search
}
load_dumps() {
	load_example
	begin dump dd dump
}
load_writer() {
	begin one dd stream /mnt/big.1
	begin two dd stream /mnt/big.2
	begin writer dd writer
}
load_copy() {
	begin find "find cat" search
	begin cp cp copy
}

# Start program $1 with processes called $2, which is the rest of the words. It is in a cgroup, without any controller.
begin() {
	local name=$1 group=/cgroup/$1
	must mkdir "$group"
	echo "$2" >"/tmp/names.$name"
	rm -f "/tmp/ended.$name"
	shift 2
	(
		sh -c "echo \$PPID >$group/cgroup.procs"
		"$@" >"/tmp/said.$name"
		uptime_s >"/tmp/ended.$name"
		sleep 1000
	) &
	programs="$programs $name"
}

uptime_s() { cut -d' ' -f1 /proc/uptime; }

# A row of what program $1 has done since $2 seconds; its processes stand still.
work() {
	local pid end
	end=$(cat "/tmp/ended.$1" 2>/dev/null || uptime_s)
	for pid in $(cat "/cgroup/$1/cgroup.procs"); do
		echo "pid $pid"
		cat "/proc/$pid/io"
	done >/tmp/io
	result "$(awk -v scheduler="$scheduler" -v program="$1" -v names="$(cat "/tmp/names.$1")" -v since="$2" -v end="$end" \
		-v ended="$([ -e "/tmp/ended.$1" ] && echo true || echo false)" '
		$1 == "pid" { pids = pids (pids ? "," : "") $2 }
		$1 == "read_bytes:" { read += $2 }
		$1 == "write_bytes:" { written += $2 }
		END {
			printf "{\"what\":\"run\",\"scheduler\":\"%s\",\"program\":\"%s\",\"read_bytes\":%.0f,\"written_bytes\":%.0f,", \
				scheduler, program, read, written
			printf "\"elapsed_s\":%.2f,\"ended\":%s,\"pids\":[%s],\"names\":\"%s\"}", end - since, ended, pids, names
		}' /tmp/io)"
}

must mkdir /cgroup /out
must mount -t cgroup2 cgroup /cgroup
for scheduler in $SCHEDULERS; do
	say "$scheduler: as if nobody had read anything"
	elevator $disk none
	must mount -t ext4 /dev/$disk /mnt
	find /mnt/src.* -type f -exec touch '{}' +	# so that reading a file writes when that was, as it does once
	rm -rf /mnt/dump.* /mnt/written.* /mnt/copy*
	must umount /mnt
	must mount -t ext4 /dev/$disk /mnt
	drop_caches
	[ "$SERVICE_NS" != 0 ] || must scatter /dev/$disk 8192 64
	elevator $disk "$scheduler"
	sleep 3

	say "$scheduler: $LOAD"
	blktrace -d /dev/$disk -D /out -o "$scheduler" >/out/log 2>&1 &
	tracer=$!
	sleep 1
	programs=
	since=$(uptime_s)
	"load_$LOAD"
	sleep "$SPAN"
	for program in $programs; do echo 1 >"/cgroup/$program/cgroup.freeze"; done
	for program in $programs; do work "$program" "$since"; done
	kill -INT $tracer
	wait $tracer
	grep -q '(dropped 0)' /out/log || fail "blktrace lost events: $(grep Total /out/log)"
	for program in $programs; do
		echo 1 >"/cgroup/$program/cgroup.kill"
		while grep -q 'populated 1' "/cgroup/$program/cgroup.events"; do sleep 0.1; done
		must rmdir "/cgroup/$program"
	done
	send "/out/$scheduler.blktrace.0"
	rm "/out/$scheduler.blktrace.0"
	must umount /mnt
done
