# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Real programs on ext4 under each scheduler: readers, find beside a stream, small reads beside four streams
# lab: kernels 6.12 6.1
# lab: programs mkfs.ext4
# lab: tools readers scatter beside
# lab: memory 1536
# lab: shift 0
# lab: set DRIVE=barracuda-80g DEPTH=1 READERS="1 2 4 8" MIB=48 SMALL=300 SIPS=20 POSITIONS=0
# lab: set SCHEDULERS="none mq-deadline kyber bfq hw-as hw-cas hw-cfq-slice hw-maitre"
#
# Readers begin together, each with a file of its own; find runs cat for each of SMALL files; SIPS times, two small files are read
# every half second. With POSITIONS=1 our schedulers are told the drive's positioning times; else they do without.
disk=sda
files=8
drive_disk $disk "$DRIVE" "$DEPTH"
[ "$POSITIONS" = 1 ] || rm /lab/positions/$disk
elevator $disk mq-deadline
say "making the file system"	# file by file: written back together, they would lie interleaved
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard -O ^has_journal "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable,noatime /dev/$disk /mnt
big=
for i in $(seq $files); do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" conv=fsync status=none
	big="$big /mnt/dir$i/file"
done

# Makes $2 files of 4 to 16 KiB in folders of 20 below $1.
small_files() {
	local i=0
	while [ $i -lt "$2" ]; do
		[ $((i % 20)) -ne 0 ] || mkdir -p "$1/$((i / 20))"
		must dd if=/dev/zero of="$1/$((i / 20))/$i" bs=4k count=$((1 + i * 7 % 4)) status=none
		i=$((i + 1))
	done
}
small_files /mnt/tree "$SMALL"
small_files /mnt/notes $((2 * SIPS))
sync

# Nothing is in the page cache or in the drive's own, and those who read before are long gone.
forget() {
	drop_caches
	must scatter /dev/$disk 8192 64
	sleep 3
}

# Lets the first $1 of the big files be read in a loop by a process each.
streams() {
	local i=0 file
	pids=
	for file in $big; do
		[ $i -lt "$1" ] || break
		beside stream "$file" >"/lab/stream.$i" &
		pids="$pids $!"
		i=$((i + 1))
	done
}

# Ends them; MB/s of all together in $rate.
end_streams() {
	kill $pids
	wait $pids
	rate=$(cat /lab/stream.* | awk '{ rate += $1 * 1e3 / $2 } END { printf "%.1f", rate }')
	rm /lab/stream.*
}

# A row for scheduler $1 under load $2, with more keys and values $3.
row() { result "{\"scheduler\":\"$1\",\"load\":\"$2\",$3}"; }

while sleep 2; do say "$(cut -d' ' -f1 /proc/uptime) s"; done &	# a sign of life: under some, find takes long
alive=$!
for scheduler in $SCHEDULERS; do
	elevator $disk "$scheduler"
	one=
	for n in $READERS; do
		say "$scheduler: $n readers"
		forget
		# shellcheck disable=SC2046 # words
		must readers 65536 $(echo $big | cut -d' ' -f-"$n") >/lab/readers
		[ "$n" != 1 ] || one=$(awk '{ print $1 / $2 }' /lab/readers)
		row "$scheduler" "$n readers" "$(awk -v one="$one" '{
			if (one)
				printf "\"of_one_reader\":%.3f,", $1 / $2 / one
			printf "\"throughput_MBps\":%.2f,\"max_lat_ms\":%.1f", $1 * 1e3 / $2, $3 / 1e6
		}' /lab/readers)"
	done

	say "$scheduler: find beside a stream"
	forget
	streams 1
	sleep 2
	begin=$(cut -d' ' -f1 /proc/uptime)
	find /mnt/tree -type f -exec cat '{}' ';' >/lab/copy || fail "find failed"
	end=$(cut -d' ' -f1 /proc/uptime)
	end_streams
	row "$scheduler" "find beside a stream" \
		"\"elapsed_s\":$(awk "BEGIN { printf \"%.2f\", $end - $begin }"),\"throughput_MBps\":$rate"

	say "$scheduler: small reads beside four streams"
	forget
	streams 4
	sleep 2
	# shellcheck disable=SC2046 # words
	must beside sips 500 2 $(find /mnt/notes -type f) >/lab/sips
	end_streams
	row "$scheduler" "small reads beside four streams" \
		"$(awk '{ printf "\"mean_ms\":%.1f,\"max_lat_ms\":%.1f", $2 / 1e6, $3 / 1e6 }' /lab/sips),\"throughput_MBps\":$rate"
done
kill $alive
