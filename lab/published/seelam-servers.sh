# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Seelam et al., OLS 2005, experiments 4 to 7: a server of FILES files in 100 folders, after the profile of FFSB, by 4 threads that
# do OPERATIONS each, of the kinds that WEIGHTS says, with MEMORY_MIB of memory, page cache included. On ext3, as theirs.
# CACHED=1: all files have been read before.
FORMAT="-t ext3 -E lazy_itable_init=1,lazy_journal_init=1,nodiscard"

make_files() {
	rm -rf $folder
	must mkdir $folder
	must server make $folder "$FILES" 100
	must umount /mnt
	must mount -t ext3 -o noinit_itable,relatime /dev/$disk /mnt
}

# Whether the server leaves other files than it found.
changes() { case $WEIGHTS in *create*) ;; *) return 1 ;; esac; }

prepare() { changes || make_files; }
renew() { ! changes || make_files; }
ready() { [ "$CACHED" = 0 ] || find $folder -type f -exec cat {} + >/dev/null; }
# shellcheck disable=SC2086 # words
perform() { (confine "$MEMORY_MIB" && server serve $folder "$FILES" 100 "$run" 4 "$OPERATIONS" $WEIGHTS) && sync; }
