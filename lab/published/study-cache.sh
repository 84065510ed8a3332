# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The scheduler study, 2023: operations on files that fit the page cache, one after another. /lab/jobs.fio is a job for each, with
# files in /mnt/files; the figure of each is the mean time of a record in us.
FEATURES=has_journal
prepare() { :; }
renew() { rm -f $folder/*; }
perform() {
	fio --minimal --terse-version=3 --clocksource=clock_gettime /lab/jobs.fio >/tmp/told || return 1
	# A job's name, and the means of its reads and of its writes, of which one is 0.
	awk -F';' '{ print $3, $40 + $81 }' /tmp/told >/tmp/means
	while read -r name us; do figure "$name" "$us"; done </tmp/means
}
