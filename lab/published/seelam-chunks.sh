# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Seelam et al., OLS 2005, experiments 2 and 3: find with a new cat for each file of /tree, by one and by two instances on trees of
# their own. STREAMED=1: meanwhile a process reads what lies behind the file system, which is more than memory holds.
FEATURES=has_journal
prepare() {
	for i in 1 2; do
		mkdir /mnt/tree$i
		must cp -r /tree /mnt/tree$i
	done
}

# Has $1 instances search their trees; the figure $2 is the time until all have ended, $3 MB/s of the disk meanwhile.
search() {
	local count=$1 before bytes i searchers=
	drop_caches
	must scatter /dev/$disk 8192 64
	before=$(clock)
	bytes=$(transferred)
	for i in $(seq "$count"); do
		find /mnt/tree$i -type f -exec cat '{}' ';' >/dev/null &
		searchers="$searchers $!"
	done
	for i in $searchers; do wait $i || return 1; done
	echo "$before $(clock) $bytes $(transferred)" | awk '{ print $2 - $1, ($4 - $3) / 1e6 / ($2 - $1) }' >/tmp/searched
	figure "$2" "$(cut -d' ' -f1 /tmp/searched)"
	figure "$3" "$(cut -d' ' -f2 /tmp/searched)"
}

perform() {
	local pid
	if [ "$STREAMED" = 1 ]; then
		dd if=/dev/$disk of=/dev/null bs=64k skip=131072 status=none &
		pid=$!
		search 1 one_s one_mbps
		kill $pid
		return
	fi
	search 1 one_s one_mbps && search 2 two_s two_mbps
}
