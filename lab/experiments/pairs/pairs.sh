# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Pairs of real programs on ext4: start, fsync, tar, cp -r and lookups, each beside streams or writers, under each scheduler
# lab: kernels 6.12 6.1
# lab: programs mkfs.ext4
# lab: modules bfq
# lab: tools scatter beside
# lab: memory 1536
# lab: shift 0
# lab: set DRIVE=barracuda-80g DEPTH=1 MIB=64 LOOKUP_MIB=256 SMALL=120 COMMITS=10 SECONDS_EACH=10 WRITTEN=1024
# lab: set SCHEDULERS="none mq-deadline kyber bfq hw-as hw-cas hw-cfq-slice hw-maitre"
#
# What ends by itself (a start, COMMITS commits of three programs each, tar and find with grep over SMALL files each, cp -r of SMALL
# files) has what is beside it for as long as it lives; the others run for SECONDS_EACH. Streams read a file of MIB each again and again.
disk=sda
drive_disk $disk "$DRIVE" "$DEPTH"
rm /lab/positions/$disk
elevator $disk mq-deadline
say "making the file system"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable,noatime /dev/$disk /mnt
for i in 1 2 3 4; do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" conv=fsync status=none
done
must dd if=/dev/zero of=/mnt/table bs=1M count="$LOOKUP_MIB" conv=fsync status=none
libraries=
mkdir /mnt/lib
for i in $(seq 16); do
	must dd if=/dev/zero of="/mnt/lib/$i" bs=1k count=1536 conv=fsync status=none
	libraries="$libraries /mnt/lib/$i"
done

# Makes SMALL files of 4 to 64 KiB in folders of 20 below $1.
small_files() {
	local i=0
	while [ $i -lt "$SMALL" ]; do
		[ $((i % 20)) -ne 0 ] || mkdir -p "$1/$((i / 20))"
		must dd if=/dev/zero of="$1/$((i / 20))/$i" bs=4k count=$((1 + i * 7 % 16)) status=none
		i=$((i + 1))
	done
}
small_files /mnt/archived
small_files /mnt/sought
sync

# Nothing is in the page cache or in the drive's own, and those who were there before are long gone.
forget() {
	rm -rf /mnt/copy /mnt/written.* /mnt/log.*
	drop_caches
	must scatter /dev/$disk 8192 64
	sleep 3
	pids=
}

# Starts $1 times `beside $2 $3...`, with {} in its arguments for a number.
many() {
	local i count=$1 kind=$2
	shift 2
	for i in $(seq "$count"); do
		# shellcheck disable=SC2046 # words
		beside "$kind" $(echo "$@" | sed "s/{}/$i/g") >"/lab/$kind.$i" &
		pids="$pids $!"
	done
}
streams() { many "$1" stream "/mnt/dir{}/file"; }
writers() { many "$1" "${2:-writer}" "/mnt/written.{}" "$WRITTEN"; }

# They end.
end() {
	kill $pids
	wait $pids
}

# MB/s of all of kind $1 together, as key $2; with a third word, their longest call too, as key $3.
rates() {
	cat "/lab/$1".* | awk -v rate="$2" -v longest="${3:-}" '{ sum += $1 * 1e3 / $2; if ($3 > most) most = $3 }
		END { printf ",\"%s\":%.3f", rate, sum; if (longest) printf ",\"%s\":%.1f", longest, most / 1e6 }'
	rm "/lab/$1".*
}

now() { cut -d' ' -f1 /proc/uptime; }
since() { awk "BEGIN { printf \"%.2f\", $(now) - $1 }"; }

# A row for the load named $1, with more keys and values $2, which begin with a comma.
row() { result "{\"scheduler\":\"$scheduler\",\"load\":\"$1\"$2}"; }

while sleep 2; do say "$(now) s"; done &	# a sign of life
alive=$!
for scheduler in $SCHEDULERS; do
	variant $disk "$scheduler"

	say "$scheduler: a start beside a writer with O_DSYNC"
	forget
	writers 1 dsync
	sleep 3
	# shellcheck disable=SC2086 # words
	must beside start 24 $libraries >/lab/start
	end
	row "start beside an O_DSYNC writer" ",\"start_s\":$(awk '{ printf "%.2f", $1 / 1e9 }' /lab/start)$(rates dsync written_MBps)"

	say "$scheduler: three that call fsync beside a stream"
	forget
	streams 1
	sleep 2
	begin=$(now)
	logs=
	for i in 1 2 3; do
		beside commits 0 "$COMMITS" "/mnt/log.$i" >"/lab/commits.$i" &
		logs="$logs $!"
	done
	wait $logs
	elapsed=$(since "$begin")
	end
	row "three fsync beside a stream" ",\"elapsed_s\":$elapsed,$(cat /lab/commits.* | awk '{ sum += $2; if ($3 > most) most = $3 }
		END { printf "\"mean_ms\":%.1f,\"max_lat_ms\":%.1f", sum / NR / 1e6, most / 1e6 }')$(rates stream throughput_MBps)"

	say "$scheduler: tar beside find -exec grep"
	forget
	begin=$(now)
	(
		find /mnt/sought -type f -exec grep -q nothing '{}' ';'
		since "$begin" >/lab/grep
	) &
	grep=$!
	tar cf - -C /mnt archived | cat >/lab/archive || fail "tar failed"
	elapsed=$(since "$begin")
	wait $grep
	rm /lab/archive
	row "tar beside find -exec grep" ",\"tar_s\":$elapsed,\"find_s\":$(cat /lab/grep)"

	say "$scheduler: cp -r beside a stream"
	forget
	streams 1
	sleep 2
	begin=$(now)
	must cp -r /mnt/archived /mnt/copy
	elapsed=$(since "$begin")
	end
	row "cp -r beside a stream" ",\"elapsed_s\":$elapsed$(rates stream throughput_MBps)"

	say "$scheduler: lookups beside a stream"
	forget
	streams 1
	many 1 lookups /mnt/table
	sleep "$SECONDS_EACH"
	end
	row "lookups beside a stream" "$(rates lookups lookups_MBps max_lat_ms)$(rates stream throughput_MBps)"

	for n in 1 4; do
		say "$scheduler: $n streams beside a writer"
		forget
		writers 1
		streams $n
		sleep "$SECONDS_EACH"
		end
		row "$n streams beside a writer" "$(rates stream throughput_MBps)$(rates writer written_MBps max_write_ms)"
	done

	say "$scheduler: lookups beside four writers"
	forget
	writers 4
	many 1 lookups /mnt/table
	sleep "$SECONDS_EACH"
	end
	row "lookups beside four writers" "$(rates lookups lookups_MBps max_lat_ms)$(rates writer written_MBps max_write_ms)"
done
kill $alive
