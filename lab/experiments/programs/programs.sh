# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Real programs of published experiments on a file system, under several schedulers (headwaiter reproduce --level lab)
# lab: kernels 6.12
# lab: programs mkfs.ext4 fsck.ext4 find dd ld sqlite3 fio
# lab: tools player scatter server
# lab: memory 512
# lab: set DRIVE=maxtor-20g VARIANTS="hw-deadline hw-as"
#
# `headwaiter reproduce` packs a file of lab/published as /lab/workload.sh, with the variables that it wants. It has prepare(),
# which makes files; perform(), which is measured; renew(), if each variant wants its files anew; ready(), for what must be in
# memory; FEATURES or FORMAT, what mkfs.ext4 is told. DEPTH: commands that the drive takes at once, 0 for its own number. RUNS: so
# many of each variant, and `run` is the number of the one under way. A workload says figures of its own with
# `figure NAME NUMBER`.
disk=sda
folder=/mnt/files
FEATURES=${FEATURES:-^has_journal}
renew() { :; }
ready() { :; }
figure() { printf ',"%s":%s' "$1" "$2" >>/tmp/figures; }

# Hundredths of a second since the guest began, and bytes that the disk has transferred.
clock() { cut -d' ' -f1 /proc/uptime; }
transferred() { awk '{ printf "%.0f", ($3 + $7) * 512 }' /sys/block/$disk/stat; }

[ -e /lab/workload.sh ] || fail "there is no workload: this is for headwaiter reproduce"
# shellcheck disable=SC1091 # in the guest
. /lab/workload.sh
drive_disk $disk "$DRIVE" "${DEPTH:-1}"
elevator $disk mq-deadline
say "making the file system"
must mkfs.ext4 -q ${FORMAT:--E lazy_itable_init=1,lazy_journal_init=1,nodiscard -O $FEATURES} /dev/$disk 8G
must mount -t ext4 -o noinit_itable,relatime /dev/$disk /mnt
must mkdir $folder
say "making files"
prepare

i=0
for variant in $VARIANTS; do
	for run in $(seq "$RUNS"); do
		elevator $disk mq-deadline
		renew
		drop_caches
		must scatter /dev/$disk 8192 64
		variant $disk "$variant"
		say "$variant"
		: >/tmp/figures
		ready
		before=$(clock)
		bytes=$(transferred)
		perform || fail "$variant: the workload failed"
		echo "$before $(clock) $bytes $(transferred)" | awk -v i=$i -v run="$run" -v figures="$(cat /tmp/figures)" '{
			printf "{\"variant\":%d,\"run\":%d,\"elapsed_s\":%.2f,\"throughput_mbps\":%.3f%s}\n",
				i, run, $2 - $1, ($4 - $3) / 1e6 / ($2 - $1), figures
		}' >>/lab/results
	done
	i=$((i + 1))
done
