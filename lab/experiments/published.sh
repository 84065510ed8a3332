# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Jobs of published experiments on the disk itself, under several schedulers (headwaiter reproduce --level lab)
# lab: kernels 6.12
# lab: programs fio
# lab: tools scatter
# lab: set DRIVE=deskstar-75gxp SCHEDULERS="hw-deadline hw-as hw-cfq-slice" SETTINGS=""
#
# `headwaiter reproduce` puts the jobs into /lab/jobs. What fio says of each is sent as SCHEDULER.JOB. SETTINGS are SCHEDULER:NAME=VALUE.
disk=sda
drive_disk $disk "$DRIVE" 1

for scheduler in $SCHEDULERS; do
	for job in /lab/jobs/*.fio; do
		[ -e "$job" ] || fail "there are no jobs: this is for headwaiter reproduce"
		name=${job##*/}
		elevator $disk none
		must scatter /dev/$disk 8192 64
		elevator $disk "$scheduler"
		for setting in $SETTINGS; do
			[ "${setting%%:*}" = "$scheduler" ] || continue
			setting=${setting#*:}
			echo "${setting#*=}" >"/sys/block/$disk/queue/iosched/${setting%%=*}" || fail "$scheduler refuses $setting"
		done
		say "$scheduler: ${name%.fio}"
		must fio --eta=never --clocksource=clock_gettime --output-format=json --output=/lab/out "$job"
		send /lab/out "$scheduler.${name%.fio}"
	done
done
