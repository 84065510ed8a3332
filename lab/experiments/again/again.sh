# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What each program of a load gets done in the same time under each scheduler, beside replays of a recording of it
# lab: host again
# lab: kernels 6.12
# lab: programs blktrace cp dd find mkfs.ext4
# lab: tools scatter
# lab: memory 4096
# lab: set LOAD=example DRIVE=barracuda-80g DEPTH=1 SERVICE_NS=0 FIRST=mq-deadline SPAN=19 APART_MS="0 1000"
# lab: set SCHEDULERS="none mq-deadline kyber bfq hw-cfq-slice hw-maitre"
# lab: set TREES=4 STREAMED_MIB=1536 DUMP_BLOCKS=32 WRITER_MIB=64
#
# The programs begin on a cold page cache, APART_MS after each other (several numbers: a run for each), and go on for SPAN seconds:
# streams do not come to the end of their files (of STREAMED_MIB together), and find, which runs cat for every file, has TREES trees
# to search. What a program has read and written is what the kernel says of it and of its children (/proc/PID/io). LOAD is one of the
# functions load_* here. All of it is recorded; what was recorded in the first run under FIRST is replayed under each scheduler. With
# SERVICE_NS the disk takes so long for each request, wherever it lies.
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
# shellcheck disable=SC2153 # a parameter
for i in $(seq "$TREES"); do
	must /bin/cp -r /tree "/mnt/src.$i"
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

# Programs of loads. Each runs processes of names that no other has.
for name in stream one two dumper writer; do ln -s /bin/dd /tmp/$name; done
search() { for tree in "$@"; do /bin/find "$tree" -type f -exec cat '{}' ';' >/lab/copied; done; }
copy() { for tree in "$@"; do /bin/cp -r "$tree" "/mnt/copy${tree#/mnt/src}"; done; }
dump() {
	local i=0
	while :; do
		/tmp/dumper if=/dev/zero of="/mnt/dump.$i" bs=64k count="$DUMP_BLOCKS" conv=fsync status=none
		i=$((i + 1))
		sleep 1
	done
}
write_on() {
	local i=0
	while :; do
		/tmp/writer if=/dev/zero of="/mnt/written.$((i % 4))" bs=64k count=$((WRITER_MIB * 16)) status=none
		i=$((i + 1))
	done
}
read_file() { "/tmp/$1" if="$2" of=/dev/null bs=64k status=none; }

# Each program of a load by its name, the names of its processes, and what it does.
# shellcheck disable=SC2086 # several trees
load_example() {
	begin stream stream read_file stream /mnt/big.1
	begin find "find cat" search $trees
}
load_dumps() {
	load_example
	begin dump dumper dump
}
load_writer() {
	begin one one read_file one /mnt/big.1
	begin two two read_file two /mnt/big.2
	begin writer writer write_on
}
load_copy() {	# with --set TREES=10, so that neither comes to its end
	# shellcheck disable=SC2086 # several
	set -- $trees
	begin find "find cat" search "$1" "$2"
	shift 2
	begin cp cp copy "$@"
}

# Start program $1 with processes called $2, which is the rest of the words. It is in a cgroup, without any controller.
begin() {
	local name=$1 group=/cgroup/$1
	[ -z "$programs" ] || sleep "$(awk "BEGIN { print $apart / 1000 }")"
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
	uptime_s >"/tmp/begun.$name"
}

uptime_s() { cut -d' ' -f1 /proc/uptime; }

# A row of what program $1 has done; its processes stand still.
work() {
	local pid end
	end=$(cat "/tmp/ended.$1" 2>/dev/null || uptime_s)
	while read -r pid; do cat "/proc/$pid/io"; done <"/cgroup/$1/cgroup.procs" >/tmp/io
	result "$(awk -v scheduler="$scheduler" -v apart="$apart" -v program="$1" -v names="$(cat "/tmp/names.$1")" -v since="$(cat "/tmp/begun.$1")" -v end="$end" \
		-v ended="$([ -e "/tmp/ended.$1" ] && echo true || echo false)" '
		$1 == "read_bytes:" { read += $2 }
		$1 == "write_bytes:" { written += $2 }
		END {
			printf "{\"what\":\"run\",\"scheduler\":\"%s\",\"apart_ms\":%d,\"program\":\"%s\",\"read_bytes\":%.0f,", \
				scheduler, apart, program, read
			printf "\"written_bytes\":%.0f,", written
			printf "\"elapsed_s\":%.2f,\"ended\":%s,\"names\":\"%s\"}", end - since, ended, names
		}' /tmp/io)"
}

# All programs under $scheduler, $apart ms after each other.
run_load() {
	local program
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
	sleep 5	# ext4 has work of its own after mounting

	say "$scheduler: $LOAD"
	blktrace -d /dev/$disk -D /out -o run >/out/log 2>&1 &
	tracer=$!
	sleep 1
	programs=
	since=$(uptime_s)
	"load_$LOAD"
	sleep "$(awk "BEGIN { print $SPAN - $(uptime_s) + $since }")"
	for program in $programs; do echo 1 >"/cgroup/$program/cgroup.freeze"; done
	for program in $programs; do work "$program"; done
	kill -INT $tracer
	wait $tracer
	grep -q '(dropped 0)' /out/log || fail "blktrace lost events: $(grep Total /out/log)"
	for program in $programs; do
		echo 1 >"/cgroup/$program/cgroup.kill"
		while grep -q 'populated 1' "/cgroup/$program/cgroup.events"; do sleep 0.1; done
		must rmdir "/cgroup/$program"
	done
	send /out/run.blktrace.0 "$scheduler.$apart.blktrace.0"
	rm /out/run.blktrace.0
	must umount /mnt
}

must mkdir /cgroup /out
must mount -t cgroup2 cgroup /cgroup
for scheduler in $SCHEDULERS; do
	for apart in $APART_MS; do run_load; done
done
