# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the formats are made of: words of the text formats, records and fields of the binary ones."""

from __future__ import annotations

from headwaiter.engine.schedulers import catalogue

from .mutate import Records

_WORDS = {
    "blkparse": """FN Total ( Input file x added
        R W D WS RA FWFS RM WFS N DE ZR Q G I D C X A m M F U UT P S 8,0 8,1 + / <- [dd] fork exit CPU0
        Total""",
    "ftrace": """a-1 [000] d..1. 100.000001: block_bio_queue: block_split: block_bio_remap: block_rq_insert: block_rq_issue:
        block_rq_complete: sched_process_fork: sched_process_exit: block:block_bio_queue: 8,0 259,1048575 R W WS RA FWFS FF D
        N 4096 () + / <- (8,1) none,0,0 be,0,4 [dd] [0] # CPU:1 [LOST 5 EVENTS] CPU:1 [LOST EVENTS] CPU:1 [5 EVENTS DROPPED]
        PERF_RECORD_LOST lost cpus=2 ( 12) 18446744073709551615 pid=
        comm= child_pid=""",
    "biosnoop": """TIME(s) TIME(ns) TIME(us) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms) LAT(ns) QUE(ns) sda R W WS D FF
        N Attaching""",
    "columns": """time= offset= size= op= task= complete= latency= sync= device= unit=bytes unit=sectors unit=kib time-unit=s
        time-unit=ms time-unit=us time-unit=ns ts off len rw pid lat , ; " # R W read WRITE trim 0.5 sector= sectors=
        :ms :us :filetime
        :sectors :bytes :4096 :0=r/1=w 1 2 3 4 0,5 2025-01-01 10:00:00.5 10:00:00 T Z
        +01:00 31.12.2025 133800000000000000 FF WS spc""",
    "spc": "0 1 R W r w 8192 0.551706",
    "alibaba": "419 R W 8792731648 16384 1577808144360767",
    "tencent": "1538323200 12910952 128 0 1 1063",
    "cloudphysics": "version time op size lbn 1 33898 2a 28 88 8a 42 35 512 42932745",
    "recording": """%%%% headwaiter.json end.json cpu0/000000 cpu1/000001 events/x/block_rq_issue {"headwaiter": "recording-1",
        "recorder": "tracefs" "blktrace" "bpftrace" "disks": [{"name": "sda", "number": "8,0", "facts": {}, "settings": {} }]
        "gaps": [{"cpu": 1, "events": 7, "from_ns": 1, "to_ns": 2}] "lost": "reason": "time" "ended_ns": name: ID: 2097 field:
        offset:0; size:2; signed:1; rwbs[8] comm[16] nr_sector new_sector old_sector common_pid parent_pid child_pid dev""",
    "native": """time_s task op sync sector sectors complete_s group ioprio meta name R W D O rt/0 be/7 idle none #
        0.000000001""",
    "msr": "Read Write read write hm usr 0 1 128166385295514663",
    "systor": "Timestamp Response IOType LUN Offset Size R W 1456095145.133076001",
    "iolog": "fio version 2 3 iolog read write trim wait sync datasync add open close unlink /dev/x",
    "disksim": "0.000001 80000001 ffffffff 1 0",
    "mqsim": "0 1 2 11413000",
    "load": "start ; sector; length ; op ; R W RA 0.0",
    "fio": """[global] [a] [b] include global.inc rw=randread rw=read rw=randwrite rw=rw rw=randrw rw=write:4k rw=randread:8 bs=4k
        bs=512,64k bsrange=4k-64k ba=4k size=1g size=50% io_size=10% filesize=1m offset=10% offset_increment=1m numjobs=4
        nrfiles=3 filename=/dev/sda filename=x:y:z directory=/d ioengine=libaio ioengine=sync iodepth=32 direct=1 direct=0
        buffered=1 sync=1 fsync=4 end_fsync=1 thinktime=5ms thinktime_blocks=4 rate=1m rate_iops=100,200 startdelay=1-5
        runtime=10 time_based norandommap percentage_random=50 randseed=7 stonewall wait_for=a exitall new_group prio=3
        prioclass=1 nice=-5 kb_base=1000 loops=3 number_ios=100 file_service_type=random:4 file_service_type=roundrobin:8
        rw_sequencer=identical group_reporting name=c rwmixread=70 exit_what=all fadvise_hint=none offset_align=4k
        bssplit=4k/60:64k/40 bssplit=512/:1k/,8k/100 random_distribution=zoned:50/5:30/15:20/ verify=md5 do_verify=0 ramp_time=1
        random_distribution=zoned_abs:60/1m:40/2m zonemode=strided zonesize=64k zoneskip=128k cmdprio_percentage=20
        filename_format=$jobname.$jobnum""",
    "toml": """model = "disk" "ssd" "array" "constant" true false [geometry] [[zones]] [mechanics] [cache] [queue] seek [1,2]
        [[1,2.5]] {} 1979-05-27 "one.toml" "input.toml" "barracuda-80g" drives""",
    "generated": "generator = 1.5 5 -1 nan inf true kva andrew file_mib processes late_ms # 1979-05-27 0x10 1_000",
    "parv": """source disksim_disk disksim_bus dm_disk dm_layout_g1 dm_mech_g1 { } [ ] = , # topology instantiate as Zones
        input.parv a.seek extracted linear curve constant hpl hplplus10 revolutions""",
    "validation": "R W Hit Miss 0 1 1000.5",
    "conformance": """insert back front join dispatch issue complete requeue exit attach timer allow # = none mq-deadline
        kyber bfq scheduler kernel depth nr_requests tick_ns set.fifo_batch set.low_latency 6.1 6.12""",
    "was": """format = "headwaiter-was/1" history [spatial] [temporal] [intervals] [made] steps classes wait_us [0,0] [] [[]] {}
        [[0,70],[41,30]] made.from 1979-05-27 true""",
    "table": "history classes spatial temporal interval 0 1 5 100 6000 #",
    "measured": """{ } [ ] : , "schema" "headwaiter/1" "results" "throughput_MBps" "request_bytes" "scheduler" "operation"
        "file_bytes" "record_bytes" "read" "random write" 1e999 NaN null true kB KB reclen "Writer report" 4 64""",
    "matrix": """{ } [ ] : , "format" "headwaiter-was-matrix/1" "classifier" "classes" "bucket_us" "buckets" "made" "rows" null
        true [rows] [made] 1 = [0,0] 1e5 NaN""",
}


def words(target: str) -> tuple[bytes, ...]:
    """The words of a target's format; none where nobody listed them."""
    if target == "set":
        found = [*catalogue(), *(f"{s.name}.{t}" for s in catalogue().values() for t in s.tunables)]
        choices = sorted({c for s in catalogue().values() for t in s.tunables.values() for c in t.choices})
        return tuple(w.encode() for w in ("set", "share", "drive", *found, *choices))
    return tuple(w.encode() for w in _WORDS.get(target, "").split())


def _cut_blktrace(data: bytes) -> list[bytes]:
    """Records by their lengths, whatever else is wrong with them."""
    out, at = [], 0
    while at < len(data):
        version = data[at : at + 1]
        size, where = (64, 50) if version == b"\x08" else (48, 46)
        length = int.from_bytes(data[at + where : at + where + 2], "little")
        end = at + size + (length if length < 256 else 0)
        out.append(data[at:end])
        at = end
    return out


def _cut_srt(data: bytes) -> list[bytes]:
    """The header, then records."""
    head, feed, body = data.partition(b"\f")
    out, at = [head + feed], 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        size = size if 8 <= size <= 64 else 56
        out.append(body[at : at + size])
        at += size
    return out


RECORDS = {
    # Version 7 and the first half of version 8; those that matter most are there twice. The last two lie in payloads.
    "blktrace": Records(_cut_blktrace, (
        (0, "<I"), (8, "<Q"), (8, "<Q"), (16, "<Q"), (16, "<Q"), (24, "<I"), (28, "<I"), (28, "<I"), (28, "<I"), (30, "<H"),
        (32, "<I"), (36, "<I"), (40, "<I"), (44, "<H"), (46, "<H"), (46, "<H"), (50, "<H"), (48, "<Q"), (56, ">Q"),
    )),
    "srt": Records(_cut_srt, (*((4 * k, ">I") for k in range(14)), (6, ">H"), (4, ">H"), (30, ">B"), (44, ">H"))),
}  # fmt: skip
