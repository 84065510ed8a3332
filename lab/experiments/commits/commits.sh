# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Commits beside a buffered writer and streams, on ext4 with its journal: fdatasync of small appends, sqlite3's inserts
# lab: kernels 6.12 6.1
# lab: programs mkfs.ext4 sqlite3
# lab: tools scatter beside
# lab: memory 1536
# lab: shift 0
# lab: set DRIVE=barracuda-80g DEPTH=1 STREAMS="1 2 4" MIB=64 COMMITS=20 INTERVAL_MS=0 INSERTS=10 WRITTEN=2048
# lab: set SCHEDULERS="none mq-deadline kyber bfq hw-cfq-slice hw-cas hw-maitre"
#
# A writer fills a new file of WRITTEN MiB, and then over and over; STREAMS readers read a file of MIB each. Beside them 4 KiB are
# appended to a file COMMITS times, with fdatasync after each, INTERVAL_MS apart or as fast as it goes; beside one stream sqlite3 makes
# INSERTS transactions, too.
disk=sda
drive_disk $disk "$DRIVE" "$DEPTH"
rm /lab/positions/$disk
elevator $disk mq-deadline
say "making the file system"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable,noatime /dev/$disk /mnt
most=$(echo "$STREAMS" | tr ' ' '\n' | sort -n | tail -1)
for i in $(seq "$most"); do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" conv=fsync status=none
done

# The writer and $1 streams begin.
begin() {
	local i
	rm -f /mnt/written
	drop_caches
	must scatter /dev/$disk 8192 64
	sleep 3
	beside writer /mnt/written "$WRITTEN" >/lab/writer &
	pids=$!
	for i in $(seq "$1"); do
		beside stream "/mnt/dir$i/file" >"/lab/stream.$i" &
		pids="$pids $!"
	done
	sleep 3
}

# They end; MB/s of all streams in $rate, of the writer in $write_rate.
end() {
	kill $pids
	wait $pids
	rate=$(cat /lab/stream.* | awk '{ rate += $1 * 1e3 / $2 } END { printf "%.1f", rate }')
	write_rate=$(awk '{ printf "%.1f", $1 * 1e3 / $2 }' /lab/writer)
	rm /lab/stream.* /lab/writer
}

# A row for scheduler $1 beside $2 streams, with more keys and values $3.
row() {
	result "{\"scheduler\":\"$1\",\"streams\":$2,$3,\"throughput_MBps\":$rate,\"written_MBps\":$write_rate}"
}

while sleep 2; do say "$(cut -d' ' -f1 /proc/uptime) s"; done &	# a sign of life: commits take long under some
alive=$!
for scheduler in $SCHEDULERS; do
	variant $disk "$scheduler"
	for n in $STREAMS; do
		say "$scheduler: commits beside $n streams"
		begin "$n"
		must beside commits "$INTERVAL_MS" "$COMMITS" /mnt/log >/lab/commits
		end
		row "$scheduler" "$n" "$(awk '{ printf "\"load\":\"commits\",\"mean_ms\":%.1f,\"max_lat_ms\":%.1f", $2 / 1e6, $3 / 1e6 }' /lab/commits)"
		rm /mnt/log
	done
	say "$scheduler: sqlite3"
	rm -f /mnt/db
	must sqlite3 /mnt/db 'CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);'
	for i in $(seq "$INSERTS"); do echo "INSERT INTO t (word) VALUES ('word $i');"; done >/lab/inserts
	begin 1
	from=$(cut -d' ' -f1 /proc/uptime)
	must sqlite3 /mnt/db </lab/inserts
	to=$(cut -d' ' -f1 /proc/uptime)
	end
	row "$scheduler" 1 "\"load\":\"sqlite3\",\"elapsed_s\":$(awk "BEGIN { printf \"%.2f\", $to - $from }")"
done
kill $alive
