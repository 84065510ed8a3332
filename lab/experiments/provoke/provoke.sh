# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Planted errors: the debug kernel must report each, and the lab must notice
# lab: kernels debug
# lab: own provoke
# lab: memory 320
# lab: set LOCK=lock-order
echo "@@ complaints are expected"

# Lockdep reports once, and not at all after the memory checks have: it comes before them. LOCK chooses which of its two
# complaints; those before it leave it working.
for what in unguarded processor sleep warn hang "$LOCK" shift array double-delete free-armed-timer out-of-bounds \
	use-after-free vmalloc-bounds leak; do
	say "$what"
	dmesg -c >/dev/null
	case $what in
	sleep) sleep 2 ;;	# this check speaks once a second
	hang) echo 2 >/proc/sys/kernel/hung_task_timeout_secs ;;
	esac
	insmod /lab/modules/provoke.ko what="$what" 2>/dev/null && fail "$what: inserted"
	case $what in
	hang) echo 120 >/proc/sys/kernel/hung_task_timeout_secs ;;
	leak) leaks | head -1 >/dev/kmsg ;;
	esac
	found=$(complaints | head -1 | sed 's/^\[ *[0-9.]*\] //; s/["\\]//g')
	[ -n "$found" ] || { dmesg; fail "$what: no complaint"; }
	result "{\"what\":\"$what\",\"complaint\":\"$found\"}"
done
dmesg -c >/dev/null
[ ! -e /sys/kernel/debug/kmemleak ] || echo clear >/sys/kernel/debug/kmemleak
echo "@@ complaints are failures"
