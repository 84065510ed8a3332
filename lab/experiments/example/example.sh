# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Records the bundled trace: a stream and a search that run together
# lab: host example
# lab: kernels 6.12
# lab: stock configfs null_blk mq-deadline
# lab: programs blktrace dd find mkfs.ext4
# lab: memory 2048
# lab: set SERVICE_NS=4000000 BIG_MIB=384
#
# Somebody streams a big file while somebody else greps a source tree, file by file and each in its own process: the load on which
# schedulers differ most, on a slow disk, with a cold page cache.
disk=sda
null_disk $disk 2048 "$SERVICE_NS"
elevator $disk mq-deadline
say "making the file system"
make_ext4 /dev/$disk
must mount -t ext4 /dev/$disk /mnt
say "filling it"
must cp -r /tree /mnt/src
must dd if=/dev/zero of=/mnt/big bs=1M count="$BIG_MIB" status=none
must umount /mnt
must mount -t ext4 /dev/$disk /mnt
drop_caches

say "recording"
mkdir /out
blktrace -d /dev/$disk -D /out -o trace >/out/log 2>&1 &
tracer=$!
sleep 1

/bin/dd if=/mnt/big of=/dev/null bs=64k status=none &
reader=$!
/bin/find /mnt/src -type f -exec cat '{}' ';' >/lab/copy || fail "find failed"
wait $reader || fail "the reader failed"
kill -INT $tracer
wait $tracer
grep -q '(dropped 0)' /out/log || fail "blktrace lost events: $(grep Total /out/log)"
send /out/trace.blktrace.0
