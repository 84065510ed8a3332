# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=busybox
# The tests for blktests under a stock kernel with the module of maitre-iosched.c
# lab: programs bash fio
# lab: stock configfs mq-deadline
# lab: packed null_blk
# lab: set TESTS=
# lab: set TIMEOUT=2

# patches.py puts the tests in front of this. Here is what they use of blktests: it needs more programs than a guest has.
mkdir -p /blktests/common
cat >/blktests/common/null_blk <<'END'
_have_null_blk() { [ -e /lab/modules/null_blk.ko ]; }
_init_null_blk() { insmod /lab/modules/null_blk.ko "$@" && [ -b /dev/nullb0 ]; }
_exit_null_blk() { rmmod null_blk; }
END
cat >/blktests/tests/block/rc <<'END'
_have_fio() { command -v fio >/dev/null; }
_have_module() { [ -e "/lab/modules/$1.ko" ]; }
_run_fio_rand_io() { fio --bs=4k --rw=randread --numjobs=2 --name=reads --direct=1 "$@" --output=/lab/fio; }
END
cat >/blktests/one <<'END'
cd /blktests || exit 1
declare -A TEST_RUN
FULL=/lab/full TEST_NAME=block/$1
. "tests/block/$1"
requires && test
for name in "${!TEST_RUN[@]}"; do
	echo "$name: ${TEST_RUN[$name]}" >&2
done
END
export TIMEOUT # as blktests does
mkdir -p /dev/shm # fio's
mount -t tmpfs shm /dev/shm
for name in $TESTS; do
	while say "block/$name"; do sleep 0.1; done & # signs of life
	bash /blktests/one "$name" >/lab/out 2>/lab/told
	kill $!
	diff /blktests/tests/block/"$name.out" /lab/out >/lab/diff || { cat /lab/diff /lab/told; fail "block/$name: other output"; }
	result "{\"test\":\"block/$name\",\"passed\":true,\"figures\":\"$(tr '\n' ' ' </lab/told)\"}"
done
