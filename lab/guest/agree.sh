# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs every job of /lab/jobs under every scheduler on a disk with a drive profile, and sends what fio says of it.
drive_disk sda "$DRIVE"
for scheduler in $SCHEDULERS; do
	for job in /lab/jobs/*.fio; do
		name=${job##*/}
		say "$scheduler: ${name%.fio}"
		elevator sda none
		elevator sda "$scheduler"
		must fio --eta=never --clocksource=clock_gettime --output-format=json --output=/lab/out "$job"
		send /lab/out "$scheduler/${name%.fio}"
	done
done
