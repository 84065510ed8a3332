# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Buffered sequential readers of separate files, started together on a cold page cache
# lab: kernels 6.12
# lab: programs mkfs.ext4
# lab: tools readers scatter
# lab: memory 1536
# lab: shift 0
# lab: set DRIVE=barracuda-80g DEPTH=0 READERS="1 2 4 8" MIB=64 ROUNDS=4
# lab: set SCHEDULERS="none mq-deadline kyber bfq bfq-throughput hw-deadline hw-as hw-cas hw-cfq hw-cfq-slice"
#
# Which reader comes first, and where the platter stands, decides much: so few readers read in several rounds, of other files
# each. All rounds of a scheduler are made in one go, as on a computer that has been up for a while.
#
# At 2 ns an instruction a reader would spend a fifth of its time in the processor, and bfq would not take it for one that
# is held up by the disk, and would not wait for it.
disk=sda
files=8
drive_disk $disk "$DRIVE" "$DEPTH"
elevator $disk mq-deadline
say "making the file system"	# file by file: written back together, they would lie interleaved
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard -O ^has_journal "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable /dev/$disk /mnt
for i in $(seq $files); do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" conv=fsync status=none
done

# Nothing of the files is in the page cache or in the drive's own, and the readers before are long gone.
forget() {
	drop_caches
	must scatter /dev/$disk 8192 64
	sleep 3
}

# Lets $1 at a time read files that have not been read yet, at most ROUNDS times.
rounds() {
	local i group='' round=0
	[ "$1" -le $files ] || fail "$1 readers: there are $files files"
	for i in $(seq $files); do
		group="$group /mnt/dir$i/file"
		[ $((i % $1)) = 0 ] && [ $round -lt "$ROUNDS" ] || continue
		forget
		must readers 65536 $group
		group=
		round=$((round + 1))
	done
}

for scheduler in $SCHEDULERS; do
	elevator $disk "${scheduler%-throughput}"
	[ "$scheduler" != bfq-throughput ] || echo 0 >/sys/block/$disk/queue/iosched/low_latency
	for n in $READERS; do
		say "$scheduler: $n readers"
		rounds "$n" | sed "s/^/$scheduler $n /" >>/tmp/rounds
	done
done

# Throughput over all rounds, besides as a multiple of what one reader, mq-deadline and bfq get; of the rounds the longest
# read and the least fairness (Jain's index).
awk '
{
	key = $1 " " $2
	if (!(key in bytes)) order[++keys] = key
	bytes[key] += $3
	ns[key] += $4
	if ($5 > longest[key]) longest[key] = $5
	sum = squares = 0
	for (i = 6; i <= NF; i++) {
		sum += 1 / $i
		squares += 1 / $i / $i
		elapsed[key] = elapsed[key] (elapsed[key] ? "," : "") sprintf("%.3f", $i / 1e9)
	}
	jain = sum * sum / (NF - 5) / squares
	if (!(key in fair) || jain < fair[key]) fair[key] = jain
}
function multiple(name, other) {
	return other in bytes ? sprintf("\"of_%s\":%.3f,", name, rate / (bytes[other] * 1e3 / ns[other])) : ""
}
END {
	for (k = 1; k <= keys; k++) {
		key = order[k]
		split(key, word, " ")
		rate = bytes[key] * 1e3 / ns[key]
		printf "{\"scheduler\":\"%s\",\"readers\":%d,\"throughput_MBps\":%.3f,", word[1], word[2], rate
		printf "%s", multiple("one_reader", word[1] " 1") multiple("mq_deadline", "mq-deadline " word[2]) \
			multiple("bfq", "bfq " word[2]) multiple("bfq_throughput", "bfq-throughput " word[2])
		printf "\"max_lat_ms\":%.3f,\"fairness_jain\":%.4f,\"reader_elapsed_s\":[%s]}\n", longest[key] / 1e6, fair[key], elapsed[key]
	}
}' /tmp/rounds >/lab/results
