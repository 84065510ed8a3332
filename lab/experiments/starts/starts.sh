# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The start of a large program beside streams, on ext4: how long it takes, and what the streams get meanwhile
# lab: kernels 6.12 6.1
# lab: programs mkfs.ext4
# lab: modules bfq
# lab: tools scatter beside
# lab: memory 1536
# lab: shift 0
# lab: set DRIVE=barracuda-80g DEPTH=1 STREAMS="8 16" MIB=32 LIBRARIES=16 PAGES=24 LIBRARY_KIB=1536 BEFORE=6
# lab: set SCHEDULERS="none mq-deadline kyber bfq hw-as hw-cas hw-cfq-slice hw-maitre"
#
# STREAMS readers read a file of MIB each again and again. BEFORE seconds later a program maps LIBRARIES files and touches PAGES pages of
# each, here and there. The streams' rate is theirs until the start is over.
disk=sda
drive_disk $disk "$DRIVE" "$DEPTH"
rm /lab/positions/$disk
elevator $disk mq-deadline
say "making the file system"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard -O ^has_journal "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable,noatime /dev/$disk /mnt
most=$(echo "$STREAMS" | tr ' ' '\n' | sort -n | tail -1)
for i in $(seq "$most"); do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" conv=fsync status=none
done
mapped=
mkdir /mnt/lib
for i in $(seq "$LIBRARIES"); do
	must dd if=/dev/zero of="/mnt/lib/$i" bs=1k count="$LIBRARY_KIB" conv=fsync status=none
	mapped="$mapped /mnt/lib/$i"
done

while sleep 2; do say "$(cut -d' ' -f1 /proc/uptime) s"; done &	# a sign of life
alive=$!
for scheduler in $SCHEDULERS; do
	elevator $disk "$scheduler"
	for n in $STREAMS; do
		say "$scheduler: a start beside $n streams"
		drop_caches
		must scatter /dev/$disk 8192 64
		sleep 3
		pids=
		for i in $(seq "$n"); do
			beside stream "/mnt/dir$i/file" >"/lab/stream.$i" &
			pids="$pids $!"
		done
		sleep "$BEFORE"
		# shellcheck disable=SC2086 # words
		must beside start "$PAGES" $mapped >/lab/start
		kill $pids
		wait $pids
		rate=$(cat /lab/stream.* | awk '{ rate += $1 * 1e3 / $2 } END { printf "%.1f", rate }')
		rm /lab/stream.*
		result "{\"scheduler\":\"$scheduler\",\"streams\":$n,\"start_s\":$(awk '{ printf "%.2f", $1 / 1e9 }' /lab/start),\"throughput_MBps\":$rate}"
	done
done
kill $alive
