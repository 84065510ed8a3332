# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Iyer & Druschel, SOSP 2001: two clients of one database, and of two: /lab/client1.sql and client2.sql. In both @ stands
# for the number of the database. Who reads the line that is in the pipe /tmp/lock@ has its lock until he writes one: sqlite3 by
# itself sleeps for longer and longer until it finds no lock.
prepare() {
	local i
	for i in 1 2; do
		mkdir /mnt/database$i
		must sqlite3 /mnt/database$i/db <<-END
			PRAGMA journal_mode=OFF;
			CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT);
			WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x < $ROWS)
			INSERT INTO t SELECT x, printf('%01000d', x) FROM c;
		END
	done
	# For sqlite3's own commands.
	[ -e /bin/sh ] || ln -s busybox /bin/sh
	mkfifo /tmp/lock1 /tmp/lock2
	# What is in a pipe is lost with the last that has it open.
	exec 3<>/tmp/lock1 4<>/tmp/lock2
	echo turn >&3
	echo turn >&4
}

# Client $1 has database $2.
client() { sed "s/@/$2/" /lab/client$1.sql | sqlite3 /mnt/database$2/db; }

# The clients use databases $2 and $3; the figure $1 is the time until both have ended.
clients() {
	local before one two
	drop_caches
	must scatter /dev/$disk 8192 64
	before=$(clock)
	client 1 $2 >/tmp/answers1 &
	one=$!
	client 2 $3 >/tmp/answers2 &
	two=$!
	wait $one || return 1
	wait $two || return 1
	figure "$1" "$(echo "$before $(clock)" | awk '{ print $2 - $1 }')"
}

perform() { clients one 1 1 && clients two 1 2; }
