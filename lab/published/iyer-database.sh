# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Iyer & Druschel, SOSP 2001: two clients of one database, and of two. /lab/one.sql has a statement of each client in turn,
# /lab/client1.sql and client2.sql have their own. A database has one server process: MySQL's threads were its own affair on FreeBSD
# 4.3, whose kernel saw a process that waits for one read at a time.
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
}

# The server of database $1 does what is in /lab/$2.sql.
server() { sqlite3 /mnt/database$1/db </lab/$2.sql >/tmp/answers$1; }

# The figure $1 is the time until the servers of databases 1 and up have ended; each one's list is $2, and $3.
served() {
	local before list pid pids="" i=0
	drop_caches
	must scatter /dev/$disk 8192 64
	before=$(clock)
	for list in $2 $3; do
		i=$((i + 1))
		server $i $list &
		pids="$pids $!"
	done
	for pid in $pids; do wait $pid || return 1; done
	figure "$1" "$(echo "$before $(clock)" | awk '{ print $2 - $1 }')"
}

perform() { served one one && served two client1 client2; }
