# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Seelam et al., OLS 2005, experiment 1: dd writes 2 GiB again and again; cat reads a file of READ_MIB, and its time counts.
FEATURES=has_journal
prepare() { must dd if=/dev/zero of=$folder/read bs=1M count="$READ_MIB" conv=fsync status=none; }
renew() { rm -f $folder/written; }
perform() {
	setsid sh -c "while :; do dd if=/dev/zero of=$folder/written bs=1M count=2048 conv=notrunc status=none; done" &
	cat $folder/read >/dev/null || return 1
	kill -- -$!
}
