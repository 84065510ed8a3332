# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `headwaiter watch --apply` on a disk whose load changes its kind, beside each scheduler alone
# lab: kernels 6.12
# lab: host watch
# lab: programs fio
# lab: memory 2048
# lab: set DRIVE=barracuda-80g SCHEDULERS="none mq-deadline kyber bfq hw-cfq-slice hw-maitre" FIRST=mq-deadline
# lab: set PHASES="readers mixed chains" PHASE=240 ALONE=40 SAMPLE=10 EVERY=15 OPTIONS="--windows 2" STOCK=0
#
# A scheduler alone has each kind of load for ALONE s; watch has each for PHASE s, one after the other, and begins with FIRST.
# Others that watch chooses follow alone, too. What counts is what was read. The schedulers are as `watch` sets them: with their
# defaults, and told nothing of the drive. With STOCK=1 the kernel has only its own, and SCHEDULERS are to name no others.
export PYTHONHOME PYTHONPATH
disk=sda
drive_disk $disk "$DRIVE" 1
rm /lab/positions/$disk
[ "$STOCK" = 0 ] || must rmmod headwaiter_iosched

# Begin the load of kind $1, for $2 s; wait_load waits for its end.
begin_load() {
	set -- "$1" "$2" --filename=/dev/$disk --direct=1 --time_based --runtime="$2" --clocksource=clock_gettime --eta=never
	local kind=$1 seconds=$2 chain
	shift 2
	load=
	case $kind in
	readers)	# eight sequential ones, each of its own place
		fio "$@" --name=readers --rw=read --bs=64k --numjobs=8 --size=1g --offset_increment=8g >/tmp/fio & ;;
	mixed)	# random small reads, against a writer
		fio "$@" --name=random --rw=randread --bs=4k --numjobs=4 --size=16g --thinktime=1000 --thinktime_blocks=1 \
			--name=writer --rw=write --bs=256k --size=256m --offset=40g --ioengine=libaio --iodepth=16 >/tmp/fio & ;;
	chains)	# processes that read a few blocks each, one after the other
		for chain in 1 2 3 4; do
			run_chain "$chain" "$seconds" &
			load="$load $!"
		done
		sleep "$seconds" & ;;
	*)
		fail "no such kind of load: $kind" ;;
	esac
	load="$load $!"
}

# Processes that each read a small file's worth, each beside the one before, until $2 s are over.
run_chain() {
	local at=$(($1 * 2000000)) end=$(($(uptime_s) + $2))
	while [ "$(uptime_s)" -lt $end ]; do
		/lab/bin/dd if=/dev/$disk of=/tmp/chain"$1" bs=4k skip=$at count=4 iflag=direct 2>/tmp/chain"$1".err
		at=$((at + 6))
	done
}

uptime_s() { cut -d. -f1 /proc/uptime; }

# shellcheck disable=SC2086 # several
wait_load() { wait $load; }

# What has been read and written so far, in sectors.
moved() { awk '{ print $3, $7 }' /sys/block/$disk/stat; }

# Let the load of kind $1 go on for $2 s, and say as $4 what was read and written under $3.
phase() {
	local before
	before=$(moved)
	begin_load "$1" "$2"
	wait_load
	result "{\"what\":\"$4\",\"load\":\"$1\",\"scheduler\":\"$3\",\"seconds\":$2,$(echo "$before" "$(moved)" |
		awk -v s="$2" '{ printf "\"read_mbps\":%.3f,\"write_mbps\":%.3f", ($3 - $1) * 512e-6 / s, ($4 - $2) * 512e-6 / s }')}"
}

# Each kind of load under scheduler $1.
alone() {
	local kind
	elevator $disk "$1"
	for kind in $PHASES; do
		say "$1: $kind"
		phase "$kind" "$ALONE" "$1" alone
	done
}

for scheduler in $SCHEDULERS; do
	alone "$scheduler"
done

elevator $disk "$FIRST"
cat >/lab/watch.py <<-END
	from headwaiter.__main__ import main
	main()
END
# shellcheck disable=SC2086 # several
$PYTHON -S /lab/watch.py watch $disk --apply --sample "$SAMPLE" --every "$EVERY" $OPTIONS >>/tmp/watch.log 2>&1 &
watch=$!
renice -n 19 -p $watch	# as its unit of systemd: what it reckons must not take the processor from the programs
sleep 10
for kind in $PHASES; do
	say "watch: $kind"
	echo "phase $kind" >>/tmp/watch.log
	phase "$kind" "$PHASE" "" watch
	echo "end $(sed 's/.*\[\(.*\)\].*/\1/' /sys/block/$disk/queue/scheduler)" >>/tmp/watch.log
done
kill -TERM $watch
wait $watch || fail "watch ended with status $?: $(tail -3 /tmp/watch.log)"
chosen=$(sed -n 's/^end //p' /tmp/watch.log | sort -u)
for scheduler in $chosen; do
	case " $SCHEDULERS " in
	*" $scheduler "*) ;;
	*) alone "$scheduler" ;;
	esac
done
send /tmp/watch.log
