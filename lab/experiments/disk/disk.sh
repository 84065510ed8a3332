# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The emulated disk: flushes and FUA reach the medium, discards and zeros free memory
# lab: programs blkdiscard dd
# lab: drives barracuda-80g cheetah-15k
# lab: memory 512
drive_disk sda barracuda-80g	# it writes back
drive_disk sdb cheetah-15k	# it writes through

is() {
	local found
	found=$(cat "$1")
	[ "$found" = "$2" ] || fail "$1 is $found, not $2"
}
is /sys/block/sda/queue/write_cache "write back"
is /sys/block/sda/queue/fua 1
is /sys/block/sda/queue/discard_granularity 4096
is /sys/block/sda/queue/discard_max_bytes 268435456
is /sys/block/sda/queue/write_zeroes_max_bytes 1310720
is /sys/block/sda/queue/rotational 1
is /sys/block/sdb/queue/write_cache "write through"

# A figure of sda's statistics.
figure() { awk -v "name=$1" '$1 == name { print $2 }' /sys/kernel/config/headwaiter_disk/sda/statistics; }

# $1 writes of 4 KiB, far apart, each with dd's $2.
write_apart() {
	local i=0
	while [ $i -lt "$1" ]; do
		must /bin/dd if=/lab/random of=/dev/sda bs=4k count=1 seek=$((i * 300000 + 7)) oflag="$2" conv=notrunc 2>/dev/null
		i=$((i + 1))
	done
}

must dd if=/dev/urandom of=/lab/random bs=1M count=16 2>/dev/null
for scheduler in none mq-deadline hw-deadline hw-cfq-slice; do
	say "$scheduler: flush and FUA"
	elevator sda $scheduler
	must dd if=/dev/null of=/dev/sda conv=fsync,notrunc 2>/dev/null
	before=$(figure media_writes)
	write_apart 8 direct
	reported=$(($(figure media_writes) - before))
	[ $reported -lt 8 ] || fail "$scheduler: the cache holds no write"
	must dd if=/dev/null of=/dev/sda conv=fsync,notrunc 2>/dev/null
	flushed=$(($(figure media_writes) - before))
	[ $flushed -eq 8 ] || fail "$scheduler: $flushed of 8 writes are on the medium after a flush"
	before=$(figure media_writes)
	write_apart 8 direct,dsync
	forced=$(($(figure media_writes) - before))
	[ $forced -eq 8 ] || fail "$scheduler: $forced of 8 writes with FUA are on the medium"
	result "{\"scheduler\":\"$scheduler\",\"in_cache\":$((8 - reported)),\"flushed\":$flushed,\"forced\":$forced}"
done

for how in discard zeros; do
	say "$how: memory"
	before=$(figure memory_bytes)
	must dd if=/lab/random of=/dev/sda bs=1M oflag=direct seek=1024 2>/dev/null
	[ $(($(figure memory_bytes) - before)) -eq 16777216 ] || fail "16 MiB cost $(($(figure memory_bytes) - before)) bytes"
	must dd if=/dev/zero of=/dev/sda bs=1M count=16 oflag=direct seek=1040 2>/dev/null
	[ $(($(figure memory_bytes) - before)) -eq 16777216 ] || fail "zeros cost memory"
	case $how in
	discard) must /bin/blkdiscard -o 1073741824 -l 16777216 /dev/sda ;;
	zeros) must /bin/blkdiscard -z -o 1073741824 -l 16777216 /dev/sda ;;
	esac
	[ "$(figure memory_bytes)" -eq "$before" ] || fail "$how: $(($(figure memory_bytes) - before)) bytes remain"
	dd if=/dev/sda bs=1M count=16 skip=1024 iflag=direct 2>/dev/null | cmp -n 16777216 - /dev/zero || fail "$how: not zeros"
	result "{\"what\":\"$how\",\"returned_MiB\":16}"
done

say "zeros within pages"
must dd if=/lab/random of=/lab/data bs=512 count=64 2>/dev/null
for range in "0 64" "1 1" "1 7" "3 13" "8 8" "7 9" "5 59"; do
	set -- $range
	must dd if=/lab/data of=/dev/sda bs=512 oflag=direct 2>/dev/null
	must /bin/blkdiscard -z -o $(($1 * 512)) -l $(($2 * 512)) /dev/sda
	cp /lab/data /lab/expected
	must dd if=/dev/zero of=/lab/expected bs=512 seek="$1" count="$2" conv=notrunc 2>/dev/null
	must dd if=/dev/sda of=/lab/found bs=512 count=64 iflag=direct 2>/dev/null
	cmp /lab/expected /lab/found || fail "zeros at $range: data differ"
done
