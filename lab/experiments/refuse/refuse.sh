# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rejected input: modules of another kernel, values out of range, invalid profiles
# lab: host refuse
disks=/sys/kernel/config/headwaiter_disk

# The kernel's log, from what was marked last, has a line with $1.
mark() { echo "mark $1" >/dev/kmsg; }
logged() { dmesg | sed -n "/mark $1\$/,\$p" | grep -qF "$2"; }
last_words() { dmesg | tail -1; }

# Write $2 to file $1: it must fail with the error $3.
refused() {
	local error
	error=$({ echo "$2" >"$1"; } 2>&1)
	case $error in
	*"$3"*) ;;
	"") fail "$1 takes '$2'" ;;
	*) fail "$1: '$2' gives '$error', not '$3'" ;;
	esac
}
RANGE="Numerical result out of range"
INVALID="Invalid argument"

# What a tunable is set to, also where it shows its choices.
value_of() { sed 's/.*\[\(.*\)\].*/\1/' "$1"; }

# Set file $1 to $2, which it must show as $3.
takes() {
	echo "$2" >"$1" || fail "$1 refuses $2: $(last_words)"
	[ "$(value_of "$1")" = "$3" ] || fail "$1 is $(value_of "$1") after $2"
}

# How number $1 is shown, of a choice whose names follow.
shown() {
	local value=$1
	shift
	[ $# -eq 0 ] || { shift "$value"; value=$1; }
	echo "$value"
}

# A tunable $1: its limits $2 and $3, names of choices from $5 on, and back to its default $4; then what it must refuse.
check_tunable() {
	local file=$queue/iosched/$1 low=$2 high=$3 standard=$4 name
	shift 4
	[ -e "$file" ] || fail "$file is missing"
	takes "$file" "$low" "$(shown "$low" "$@")"
	takes "$file" "$high" "$(shown "$high" "$@")"
	for name in "$@"; do takes "$file" "$name" "$name"; done
	takes "$file" "$standard" "$(shown "$standard" "$@")"
	refused "$file" $((low - 1)) "$RANGE"
	refused "$file" $((high + 1)) "$RANGE"
	refused "$file" 99999999999999999999 "$RANGE"
	refused "$file" none-such "$INVALID"
	refused "$file" "" "$INVALID"
	refused "$file" "${high}x" "$INVALID"
	[ "$(value_of "$file")" = "$(shown "$standard" "$@")" ] || fail "$file has changed to $(value_of "$file")"
}

null_disk nvme0 64 1000
queue=/sys/block/nvme0/queue
for name in deadline as as-95 as-seek as-share cas was was-online cfq cfq-slice maitre; do
	echo "hw-$name" >$queue/scheduler || fail "hw-$name is not offered"
done
for scheduler in $(ours nvme0); do
	say "$scheduler: every tunable"
	elevator nvme0 "$scheduler"
	table=/lab/tunables/$scheduler
	mark "$scheduler"
	n=0
	while read -r line; do
		check_tunable $line
		n=$((n + 1))
	done <"$table"
	dmesg | sed -n "/mark $scheduler\$/,\$p" >/lab/log
	while read -r tunable low high rest; do
		for line in "$tunable=$((low - 1)) is outside $low..$high" "$tunable=$((high + 1)) is outside $low..$high" \
			"$tunable: invalid value: none-such"; do
			grep -qF "$scheduler: $line" /lab/log || fail "the log lacks '$scheduler: $line'"
		done
	done <"$table"
	files=$(find $queue/iosched -type f ! -name device_depth ! -name positions ! -name config ! -name "observed*" ! -name statistics | wc -l)
	[ "$files" -eq $n ] || fail "$scheduler: $files files, $n tunables"
	result "{\"what\":\"tunables of $scheduler\",\"count\":$n}"
done
refused $queue/iosched/device_depth 0 "$RANGE"
refused $queue/iosched/device_depth x "$INVALID"
for text in "1" "1 x" "1 2 3"; do
	refused $queue/iosched/positions "$text" "$INVALID"
done
for text in "-1 2" "1 -2" "0 4294967296"; do
	refused $queue/iosched/positions "$text" "$RANGE"
done
refused $queue/iosched/positions "36028797018963968 1" "$RANGE"
refused $queue/iosched/positions "$(printf '5 1\n5 2')" "$INVALID"
refused $queue/iosched/positions "$(seq 33 | sed 's/$/ 1/')" "$INVALID"

say "a config that is wrong leaves the old one in force"
elevator nvme0 hw-was
config=$queue/iosched/config
good="history 0 5
classes 0 3
spatial 0 70
41 0
temporal 0 30
interval 1 1000
2000
3000"
echo "$good" >$config || fail "a config is refused: $(dmesg | tail -1)"
before=$(cat $config)
for text in "1" "history 0 5" "$(echo "$good" | sed 's/41 0/41 71/')" "$(echo "$good" | sed 's/classes 0 3/classes 0 2/')" \
	"$(echo "$good" | sed 's/41 0/0 0/')" "none 0 5"; do
	refused $config "$text" "$INVALID"
done
refused $config "$(echo "$good" | sed 's/2000/-1/')" "$RANGE"
refused $config "$(echo "$good" | sed 's/2000/100001/')" "$RANGE"
[ "$(cat $config)" = "$before" ] || fail "a refused config changed it"
[ "$(awk '/^classes /{print $2}' $queue/iosched/statistics)" = 3 ] || fail "3 classes are not in force"
{
	printf 'history 0 17\nclasses 0 512\nspatial 0 70\ntemporal 0 30\ninterval 1 10000\n'
	seq 10001 10511
} >/lab/long
cat /lab/long >$config || fail "512 classes are refused: $(dmesg | tail -1)"
[ "$(cat $config)" = "$(cat /lab/long)" ] || fail "512 classes are not read back"
echo >$config || fail "no config is refused"
[ -z "$(cat $config)" ] || fail "a config remains"
result "{\"what\":\"configs refused\",\"count\":8}"

say "schedulers of the same names a second time"
echo none >$queue/scheduler
before=$(cat $queue/scheduler)
mark twin
insmod /lab/twin.ko 2>/dev/null && fail "two modules register the same names"
logged twin "io scheduler hw-twin registered" || fail "the twin did not come half-way"
logged twin "cannot register hw-deadline (-16)" || fail "the log does not say what failed: $(last_words)"
[ "$(cat $queue/scheduler)" = "$before" ] || fail "half of the twin stays: $(cat $queue/scheduler)"
for scheduler in $(ours nvme0); do elevator nvme0 "$scheduler"; done
echo none >$queue/scheduler
result "{\"what\":\"twins refused\",\"count\":1}"

# Nothing of ours is in the kernel.
nothing_left() {
	[ -z "$(ours nvme0)" ] || fail "$1: schedulers remain: $(ours nvme0)"
	[ ! -e /sys/module/headwaiter_iosched ] && [ ! -e /sys/module/headwaiter_disk ] || fail "$1: a module remains"
	[ ! -e $disks ] || fail "$1: $disks remains"
}

say "modules that do not fit"
must rmmod headwaiter_iosched
must rmmod headwaiter_disk
nothing_left "rmmod"
n=0
for module in /lab/refused/*.ko; do
	mark "${module##*/}"
	insmod "$module" 2>/dev/null && fail "$module is taken"
	logged "${module##*/}" "$(cat "${module%.ko}.says")" || fail "$module: the log lacks '$(cat "${module%.ko}.says")': $(last_words)"
	nothing_left "$module"
	n=$((n + 1))
done
result "{\"what\":\"modules refused\",\"count\":$n}"
insert headwaiter_iosched
insert headwaiter_disk
for scheduler in $(ours nvme0); do elevator nvme0 "$scheduler"; done

say "invalid profiles"
must mkdir $disks/sda
refused $disks/sda/power 1 "No data available"
refused $disks/sda/power x "$INVALID"
refused $disks/sda/depth 10241 "$RANGE"
refused $disks/sda/depth -1 "$INVALID"
refused $disks/sda/depth x "$INVALID"
[ "$(cat $disks/sda/depth)" = 0 ] || fail "depth is $(cat $disks/sda/depth)"
unreclaimable() { awk '$1 == "SUnreclaim:" { print $2 }' /proc/meminfo; }
n=0
for round in 1 2 3 4 5 6 7 8 9 10; do
	for profile in /lab/profiles/*.bad; do
		mark "${profile##*/}"
		cat "$profile" >$disks/sda/profile || fail "$profile cannot be written"
		refused $disks/sda/power 1 "$INVALID"
		logged "${profile##*/}" "sda: profile: $(cat "${profile%.bad}.says")" || fail "$profile: $(last_words)"
		[ "$(cat $disks/sda/power)" = 0 ] && [ ! -e /sys/block/sda ] && [ ! -b /dev/sda ] || fail "$profile: a disk appears"
		n=$((n + 1))
	done
	[ "$round" -ne 1 ] || before=$(unreclaimable)
done
leaked=$(($(unreclaimable) - before))
[ $leaked -lt 256 ] || fail "$leaked KiB are lost after $n profiles"
dd if=/dev/zero of=/lab/big bs=4096 count=257 2>/dev/null
cat /lab/big 2>/dev/null >$disks/sda/profile && fail "a profile of more than 1 MiB is taken"
cat /lab/profiles/good >$disks/sda/profile
echo 1 >$disks/sda/power || fail "a good profile is refused after bad ones: $(last_words)"
must dd if=/dev/sda of=/dev/null bs=64k count=16 2>/dev/null
refused $disks/sda/depth 2 "Device or resource busy"
echo 0 >$disks/sda/power
for depth in 1 10240; do
	echo $depth >$disks/sda/depth || fail "depth $depth is refused"
	echo 1 >$disks/sda/power || fail "the disk does not start with depth $depth: $(last_words)"
	must dd if=/dev/sda of=/dev/null bs=64k count=16 2>/dev/null
	echo 0 >$disks/sda/power
done
must rmdir $disks/sda
must rmmod headwaiter_disk
result "{\"what\":\"profiles refused\",\"count\":$n}"
