# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Control groups with weights, of programs on ext4: two readers, random readers, nested groups, one that moves
# lab: kernels 6.12 6.1
# lab: programs mkfs.ext4 fio
# lab: modules bfq
# lab: tools scatter beside
# lab: memory 1536
# lab: shift 0
# lab: set DRIVE=barracuda-80g DEPTH=1 SECONDS_EACH=20 MIB=64 WEIGHT=400
# lab: set SCHEDULERS="bfq hw-maitre"
#
# Each program is in a control group of its own: `light` of weight 100, `heavy` of WEIGHT. Then heavy has groups within it. Weights are
# written to io.bfq.weight or io.maitre.weight, as the scheduler has it; in `io.weight`, to that, as systemd does.
disk=sda
drive_disk $disk "$DRIVE" "$DEPTH"
rm /lab/positions/$disk
elevator $disk mq-deadline
say "making the file system"
must mkfs.ext4 -q -E lazy_itable_init=1,nodiscard -O ^has_journal "/dev/$disk" 8G
must mount -t ext4 -o noinit_itable,noatime /dev/$disk /mnt
for i in 1 2 3; do
	mkdir "/mnt/dir$i"
	must dd if=/dev/zero of="/mnt/dir$i/file" bs=1M count="$MIB" conv=fsync status=none
done
mkdir -p /cgroup
must mount -t cgroup2 cgroup /cgroup
echo +io >/cgroup/cgroup.subtree_control || fail "no controller of I/O"
mkdir /cgroup/light /cgroup/heavy

# This shell, in the background, becomes $2... in group $1.
within() {
	local group=$1
	shift
	exec sh -c "echo \$\$ >/cgroup/$group/cgroup.procs && exec \"\$@\"" sh "$@"
}

# Gives group $1 the weight $2, in file $3.
weigh() { echo "$2" >"/cgroup/$1/$3" || fail "$3 refuses $2"; }

# Runs a program in each of the groups named, program $1: stream or random. A row of what each got, for load $2.
beside_each_other() {
	local program=$1 load=$2 group i=0 values=
	shift 2
	drop_caches
	must scatter /dev/$disk 8192 64
	sleep 3
	pids=
	for group; do
		i=$((i + 1))
		case $program in
		stream) within "$group" beside stream "/mnt/dir$i/file" >"/lab/got.$i" & ;;
		random)
			within "$group" fio --name=r --filename="/mnt/dir$i/file" --rw=randread --bs=4k --direct=1 --time_based \
				--runtime="$SECONDS_EACH" --minimal --randrepeat=1 >"/lab/fio.$i" &
			;;
		esac
		pids="$pids $!"
	done
	if [ "$program" = stream ]; then
		sleep "$SECONDS_EACH"
		kill $pids
	fi
	wait $pids
	i=0
	for group; do
		i=$((i + 1))
		[ "$program" = stream ] || awk -F';' '{ print $6 * 1024, $9 * 1e6 }' "/lab/fio.$i" >"/lab/got.$i"
		values="$values,\"$group\":$(awk '{ printf "%.3f", $1 * 1e3 / $2 }' "/lab/got.$i")"
	done
	result "{\"scheduler\":\"$scheduler\",\"load\":\"$load\"$values}"
}

while sleep 2; do say "$(cut -d' ' -f1 /proc/uptime) s"; done &	# a sign of life
alive=$!
for scheduler in $SCHEDULERS; do
	elevator $disk "$scheduler"
	case $scheduler in
	bfq) file=io.bfq.weight ;;
	*) file=io.maitre.weight ;;
	esac
	if [ $file = io.maitre.weight ]; then
		weigh heavy "$WEIGHT" io.weight
		sleep 2
		beside_each_other stream "io.weight" light heavy
		for bad in 0 10001 none "8:0 100"; do
			! echo "$bad" 2>/dev/null >/cgroup/heavy/$file || fail "$file takes $bad"
		done
	fi
	weigh light "default 100" $file
	weigh heavy "default $WEIGHT" $file
	say "$scheduler: two streams"
	beside_each_other stream streams light heavy
	say "$scheduler: two random readers"
	beside_each_other random "random readers" light heavy
	say "$scheduler: nested groups"
	echo +io >/cgroup/heavy/cgroup.subtree_control
	mkdir /cgroup/heavy/less /cgroup/heavy/more
	weigh heavy/less 100 $file
	weigh heavy/more 300 $file
	beside_each_other stream nested light heavy/less heavy/more
	echo -io >/cgroup/heavy/cgroup.subtree_control
	rmdir /cgroup/heavy/less /cgroup/heavy/more
done
kill $alive
