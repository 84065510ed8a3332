# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Jobs of published experiments on the disk itself, under several schedulers (headwaiter reproduce --level lab)
# lab: kernels 6.12
# lab: programs fio
# lab: tools scatter
# lab: set DRIVE=deskstar-75gxp VARIANTS="hw-deadline hw-as hw-cfq-slice"
#
# `headwaiter reproduce` puts the jobs into /lab/jobs. What fio says of each is sent as NUMBER.JOB, by the variant's
# number from 0.
disk=sda
drive_disk $disk "$DRIVE"

i=0
for variant in $VARIANTS; do
	for job in /lab/jobs/*.fio; do
		[ -e "$job" ] || fail "there are no jobs: this is for headwaiter reproduce"
		name=${job##*/}
		elevator $disk none
		must scatter /dev/$disk 8192 64
		variant $disk "$variant"
		say "$variant: ${name%.fio}"
		must fio --eta=never --clocksource=clock_gettime --output-format=json --output=/lab/out "$job"
		send /lab/out "$i.${name%.fio}"
	done
	i=$((i + 1))
done
