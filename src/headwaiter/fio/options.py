# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The options of fio 3.33, every one of them, and what becomes of each here.

One table: the parser checks against it, docs/fio.md is made from it, and a test compares it with `fio --cmdhelp=all`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwaiter.base.errors import shown
from headwaiter.engine.constants import Directions, Skew
from headwaiter.fio.values import (
    LARGEST,
    choice,
    count,
    duration,
    flag,
    fraction,
    integer,
    per_direction,
    shares,
    size,
    size_or_percent,
    span,
    zones,
)

SYNC_ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2")
QUEUE_ENGINES = ("libaio", "io_uring", "posixaio")
_PATTERNS = ("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw")
_TRIMS = ("trim", "randtrim", "trimwrite", "randtrimwrite")

# A value's meaning: takes its text (None: none was written) and kb_base.
Parse = Callable[[str | None, int], Any]


@dataclass(frozen=True)
class Pattern:
    """rw=: `random` and directions, and the number after the colon."""

    random: bool
    directions: Directions
    every: int = 1
    hole: int = 0


@dataclass(frozen=True)
class Distribution:
    """random_distribution=: all places alike, or skewed, or by zones: (percentage of accesses, length in percent or bytes)."""

    relative: bool = False
    zones: tuple[tuple[int, int], ...] = ()
    skew: Skew = Skew.EVEN
    by: float = 0.0  # zipf's theta, pareto's h, normal's deviation in percent
    center: float = -1.0  # 0 … 1; below 0: fio's choice


@dataclass(frozen=True)
class Used:
    """An option that is honoured."""

    name: str
    parse: Parse
    help: str
    aliases: tuple[str, ...] = ()
    alone: bool = False  # may stand without a value

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which it is written."""
        return (self.name, *self.aliases)


def _text(parse: Callable[[str], Any]) -> Parse:
    return lambda value, kb_base: parse(value or "")


def _sized(parse: Callable[[str, int], Any]) -> Parse:
    return lambda value, kb_base: parse(value or "", kb_base)


def _time(unit: str) -> Parse:
    return _text(lambda v: duration(v, unit))


def _sizes(value: str, kb_base: int) -> tuple[int | None, int | None]:
    return per_direction(value, lambda v: _positive(v, kb_base))


def _positive(value: str, kb_base: int) -> int:
    number = size(value, kb_base)
    if not 0 < number < 1 << 32:
        raise ValueError(f"{shown(value)} is outside 1..4294967295")
    return number


def _ranges(value: str, kb_base: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    return per_direction(value, lambda v: span(v, lambda p: _positive(p, kb_base)), ",/")


def _percents(value: str, kb_base: int) -> tuple[int | None, int | None]:
    return per_direction(value, lambda v: integer(v, 0, 100))


def _rates(value: str, kb_base: int) -> tuple[int | None, int | None]:
    return per_direction(value, lambda v: size(v, kb_base))


def _at_least_one(value: str, kb_base: int) -> int:
    """A number of things, of which fio takes 0 for 1."""
    return 1 if size(value, kb_base) == 0 else count(value, kb_base)


def _set(value: str | None, _: int) -> bool:
    """An option that may stand alone: any number but 0 sets it."""
    return value is None or integer(value) != 0


def _every(value: str, kb_base: int) -> int:
    number = size(value, kb_base)
    if number >= 1 << 32:
        raise ValueError(f"{shown(value)} is outside 0..4294967295")
    return number


def _pattern(value: str, kb_base: int) -> Pattern:
    word, _, after = value.partition(":")
    if word in _TRIMS:
        raise ValueError(f"'{word}': discards are not supported")
    choice(word, _PATTERNS)
    random = word.startswith("rand")
    what = word.removeprefix("rand")
    directions = {"read": Directions.READS, "write": Directions.WRITES}.get(what, Directions.BOTH)
    if not after:
        return Pattern(random, directions)
    if random:
        return Pattern(random, directions, every=count(after, kb_base))
    sign = -1 if after.startswith("-") else 1
    return Pattern(random, directions, hole=sign * size(after.removeprefix("-"), kb_base))


def _engine(value: str) -> str:
    name = value.partition(":")[0]
    for why, names in OTHER_ENGINES.items():
        if name in names.split():
            raise ValueError(f"engine '{name}' is not supported: it {why}")
    if value not in SYNC_ENGINES + QUEUE_ENGINES:
        raise ValueError(f"engine '{shown(value)}' is not supported (known: {', '.join(SYNC_ENGINES + QUEUE_ENGINES)})")
    return value


def _split(value: str, kb_base: int) -> tuple[tuple[tuple[int, int], ...] | None, ...]:
    parts = per_direction(value, lambda v: shares(v, lambda size_: _positive(size_, kb_base)))
    if any(part and not any(percent for _, percent in part) for part in parts):
        raise ValueError(f"'{shown(value)}': all sizes have 0%")
    return parts


def _zonemode(value: str) -> str:
    if value == "zbd":
        raise ValueError("'zbd': zoned block devices are not modelled (strided is supported)")
    return choice(value, ("none", "strided"))


def _verify(value: str) -> bool:
    return value not in ("0", "null")


def _priority_percents(value: str, kb_base: int) -> tuple[int | None, int | None]:
    return per_direction(value, lambda v: integer(v, 0, 100))


@dataclass(frozen=True)
class PriorityShare:
    """The percentage of the I/Os of a size that has a priority: one of its own, or the job's (level None)."""

    bytes: int
    percent: int
    kind: int = 0
    level: int | None = None


def _priority_split(value: str, kb_base: int) -> tuple[tuple[PriorityShare, ...] | None, ...]:
    return per_direction(value, lambda part: _priority_shares(part, kb_base))


def _priority_shares(value: str, kb_base: int) -> tuple[PriorityShare, ...]:
    """`bs/percent:…` or `bs/percent/class/level:…`, as fio 3.33; percentages of one size add up to 100 at most."""
    found = []
    for part in value.split(":"):
        words = [word.strip() for word in part.split("/")]
        if len(words) not in (2, 4):
            raise ValueError(f"'{shown(part)}': expected SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL")
        size_, percent = _positive(words[0], kb_base), integer(words[1], 0, 100)
        own = (integer(words[2], 0, 3), integer(words[3], 0, 7)) if len(words) == 4 else ()
        found.append(PriorityShare(size_, percent, *own))
    for share in found:
        if sum(other.percent for other in found if other.bytes == share.bytes) > 100:
            raise ValueError(f"'{shown(value)}': the percentages of {share.bytes} bytes add up to more than 100")
    return tuple(found)


def _filesize(value: str, kb_base: int) -> int:
    low, high = span(value, lambda v: size(v, kb_base))
    if low != high:
        raise ValueError(f"'{shown(value)}': files of random size are not supported")
    return low


def _delay(value: str) -> tuple[int, int]:
    return span(value, lambda v: duration(v, "s"))


# What fio takes for granted, what it accepts, and how that reads.
_SKEWS: Mapping[str, tuple[Skew, float, Callable[[float], bool], str]] = {
    "zipf": (Skew.ZIPF, 1.1, lambda theta: theta != 1, "must not be 1"),
    "pareto": (Skew.PARETO, 0.2, lambda h: 0 < h < 1, "must be between 0 and 1"),
    "normal": (Skew.NORMAL, 0.0, lambda deviation: 0 <= deviation < 100, "must be at least 0 and below 100"),
}


def _skewed(name: str, numbers: str, value: str) -> Distribution:
    skew, default, fits, must = _SKEWS[name]
    if "," in numbers:
        raise ValueError(f"'{shown(value)}': one distribution for reads and writes, as in fio 3.33")
    parts = numbers.split(":") if ":" in value else []
    if len(parts) > 2:
        raise ValueError(f"'{shown(value)}' has more than a number and a center")
    found = [fraction(part) for part in parts]
    by, center = found[0] if found else default, found[1] if len(found) > 1 else -1.0
    if not fits(by):
        raise ValueError(f"'{shown(value)}': the number of {name} {must}")
    if len(found) > 1 and not 0 <= center <= 1:
        raise ValueError(f"'{shown(value)}': the center must be between 0 and 1")
    return Distribution(skew=skew, by=by, center=center)


def _distribution(value: str, kb_base: int) -> Distribution:
    name, _, rest = value.partition(":")
    if name == "random":
        return Distribution()
    if name in _SKEWS:
        return _skewed(name, rest, value)
    if name not in ("zoned", "zoned_abs"):
        raise ValueError(f"distribution '{shown(name)}' is not known (random, zipf, pareto, normal, zoned and zoned_abs are)")
    relative = name == "zoned"
    parse = (lambda v: integer(v, 0, 100)) if relative else (lambda v: size(v, kb_base))
    if "," in rest:
        raise ValueError(f"'{shown(value)}': one list of zones for reads and writes, as in fio 3.33")
    return Distribution(relative, _filled(rest, zones(rest, parse), relative))


def _filled(value: str, found: tuple[tuple[int, int], ...], relative: bool) -> tuple[tuple[int, int], ...]:
    """Share what is left of the percentages evenly among the zones that name no length."""
    if not relative:
        if not all(length for _, length in found):
            raise ValueError(f"'{shown(value)}': each zone needs a length")
        return found
    left, open_ = 100 - sum(length for _, length in found), sum(not length for _, length in found)
    if left < 0 or (left and not open_):
        raise ValueError(f"'{shown(value)}': the lengths do not add up to 100%")
    return tuple((access, length or left // open_) for access, length in found)


def _service(value: str, kb_base: int) -> tuple[str, int]:
    name, _, every = value.partition(":")
    if name not in ("roundrobin", "sequential", "random"):
        raise ValueError(f"'{shown(name)}' is not supported (roundrobin, sequential and random are)")
    if every and name != "roundrobin":
        raise ValueError(f"'{shown(value)}': only roundrobin takes a number")
    return name, count(every, kb_base) if every else 1


USED: tuple[Used, ...] = (
    Used("name", _text(str), "name of the job; overrides the section's"),
    Used(
        "rw",
        _sized(_pattern),
        "read, write, randread, randwrite, rw, randrw; `:N` after a random pattern draws a "
        "new place every N I/Os, after a sequential one it skips N bytes between I/Os (back, if negative)",
        ("readwrite",),
    ),
    Used(
        "rw_sequencer", _text(lambda v: choice(v, ("sequential", "identical"))), "behaviour of rw=rand…:N between random places"
    ),
    Used("rwmixread", _text(lambda v: integer(v, 0, 100)), "percentage of reads in rw and randrw (default 50)"),
    Used("rwmixwrite", _text(lambda v: integer(v, 0, 100)), "percentage of writes; the later of the two applies"),
    Used("bs", _sized(_sizes), "block size: one, or reads,writes (default 4k)", ("blocksize",)),
    Used("bsrange", _sized(_ranges), "block sizes drawn from a range, multiples of its lower end", ("blocksize_range",)),
    Used("bssplit", _sized(_split), "block sizes with percentages, such as 4k/60:64k/40: one, or reads,writes"),
    Used("ba", _sized(_sizes), "alignment of random places (default: the block size); turns the random map off", ("blockalign",)),
    Used("size", _sized(size_or_percent), "bytes to transfer, and the size of the region"),
    Used("io_size", _sized(size_or_percent), "bytes to transfer, if different from the region", ("io_limit",)),
    Used("filesize", _sized(_filesize), "size of each file"),
    Used("offset", _sized(size_or_percent), "start of the region in the file (or on the device)", ("fileoffset",)),
    Used(
        "offset_increment",
        _sized(size_or_percent),
        "added to offset, times the clone's number: 0, N-1, ..., 1 in the order of their starts",
    ),
    Used("offset_align", _sized(size), "alignment of an offset given as a percentage (default: the block size)"),
    Used("number_ios", _text(lambda v: integer(v, 0, LARGEST)), "end after this number of I/Os"),
    Used("loops", _sized(_at_least_one), "number of passes"),
    Used("numjobs", _text(lambda v: integer(v, 1, 100_000)), "clones of the job, named NAME.0, NAME.1, …"),
    Used("filename", _text(str), "a device (/dev/…: the one drive), or files; several are separated by ':'"),
    Used("directory", _text(str), "part of the names of files"),
    Used("filename_format", _text(str), "names of a clone's files, of $jobname, $jobnum and $filenum, if filename is not given"),
    Used("zonemode", _text(_zonemode), "strided: see zonesize; zbd is not supported"),
    Used("zonesize", _sized(size), "zonemode=strided, sequential I/O: so many bytes, then a gap of zoneskip"),
    Used("zonerange", _sized(size), "zonemode=strided: must be zonesize"),
    Used("zoneskip", _sized(size), "zonemode=strided: see zonesize"),
    Used("nrfiles", _text(lambda v: integer(v, 1, 100_000)), "files of each clone, if filename is not given", ("nr_files",)),
    Used("file_service_type", _sized(_service), "choice of the next file: roundrobin[:N], sequential, random"),
    Used("ioengine", _text(_engine), f"{', '.join(SYNC_ENGINES)} (one I/O at a time); {', '.join(QUEUE_ENGINES)}"),
    Used("iodepth", _sized(count), "I/Os in flight, for engines that queue"),
    Used("direct", _text(flag), "1: bypass the page cache (default 0: use it)"),
    Used("buffered", _text(flag), "the opposite of direct"),
    Used(
        "sync",
        _text(lambda v: choice(v, ("none", "0", "sync", "1", "dsync")) not in ("none", "0")),
        "each write reaches the medium before the next begins",
    ),
    Used(
        "fsync",
        _sized(_every),
        "fsync after this number of writes, and after each read until the next write, as in fio 3.33",
    ),
    Used("fdatasync", _sized(_every), "the same as fsync here"),
    Used(
        "verify",
        _text(_verify),
        "any method: what a job has written is read again, in the same order, once all its processes are done; direct only",
    ),
    Used("do_verify", _text(flag), "0: nothing is read again"),
    Used(
        "invalidate",
        _text(flag),
        "0: what the page cache has of a file stays there when the file begins anew (default 1: clean pages are dropped)",
    ),
    Used("end_fsync", _text(flag), "fsync at the end of a pass"),
    Used("fsync_on_close", _text(flag), "the same as end_fsync here"),
    Used(
        "fadvise_hint",
        _text(lambda v: choice(v, ("0", "none", "1", "random", "sequential"))),
        "buffered reads: sequential doubles the read-ahead window, random turns it off; 1 (default) follows rw",
    ),
    Used("thinktime", _time("us"), "pause after each thinktime_blocks I/Os, once all in flight are done; us"),
    Used("thinktime_spin", _time("us"), "part of thinktime (or all, if longer); us"),
    Used("thinktime_blocks", _sized(_at_least_one), "see thinktime (default 1)"),
    Used(
        "thinktime_blocks_type",
        _text(lambda v: choice(v, ("complete", "issue"))),
        "count blocks at completion or at issue",
    ),
    Used("rate", _sized(_rates), "limit in bytes per second: one, or reads,writes; 0: none"),
    Used("rate_iops", _sized(_rates), "limit in I/Os per second; 0: none"),
    Used("startdelay", _text(_delay), "start this long after the beginning of the run; a range draws a random time; s"),
    Used("runtime", _time("s"), "end after this time; s", ("timeout",)),
    Used("ramp_time", _time("s"), "added to runtime; unlike in fio, its I/Os count in the results; s"),
    Used("time_based", _set, "repeat passes until runtime; without it this changes nothing", alone=True),
    Used("norandommap", _set, "random places may repeat before all have been used", alone=True),
    Used("percentage_random", _sized(_percents), "percentage of random I/O in a random pattern: one, or reads,writes"),
    Used(
        "random_distribution",
        _sized(_distribution),
        "random (uniform); zipf:THETA, pareto:H and normal:DEVIATION, each with `:CENTER` if wanted, where places may repeat "
        "(no random map); zoned:ACCESS/LENGTH:… (both in percent) and zoned_abs (lengths in bytes)",
    ),
    Used("randrepeat", _text(flag), "1 (default): each pass draws the same places, independent of randseed"),
    Used("allrandrepeat", _text(flag), "same as randrepeat"),
    Used(
        "randseed",
        _text(lambda v: integer(v, 0, LARGEST)),
        "seed of random choices, as in fio; not of the places with randrepeat=1",
    ),
    Used(
        "stonewall",
        _set,
        "start when all jobs started before have ended",
        ("wait_for_previous",),
        alone=True,
    ),
    Used("wait_for", _text(str), "start when the named job has ended"),
    Used("new_group", _set, "begin a new group, for exit_what", alone=True),
    Used("exitall", _set, "when one job ends, end the others of its group", alone=True),
    Used("exit_what", _text(lambda v: choice(v, ("group", "stonewall", "all"))), "the jobs that exitall ends"),
    Used(
        "prio",
        _text(lambda v: integer(v, 0, 7)),
        "I/O priority within the class (fio itself knows only the name prio)",
        ("ioprio",),
    ),
    Used("cmdprio_percentage", _sized(_priority_percents), "percentage of I/Os with the priority of cmdprio_class and cmdprio"),
    Used(
        "cmdprio_bssplit",
        _sized(_priority_split),
        "the same by block sizes: SIZE/PERCENT:…, or SIZE/PERCENT/CLASS/LEVEL:… with its own priority; one, or reads,writes",
    ),
    Used("cmdprio_class", _text(lambda v: integer(v, 0, 3)), "class of that priority (default 1)"),
    Used("cmdprio", _text(lambda v: integer(v, 0, 7)), "level of that priority (default 0)"),
    Used("prioclass", _text(lambda v: integer(v, 0, 3)), "I/O priority class: 1 real-time, 2 best-effort, 3 idle"),
    Used("nice", _text(lambda v: integer(v, -20, 19)), "sets a best-effort priority, if prio and prioclass do not"),
    Used("cgroup", _text(str), "control group that the job is in, with those around it: a/b (docs/fio.md)"),
    Used("cgroup_weight", _text(lambda v: integer(v, 100, 1000)), "weight of that group beside its siblings (default 100)"),
    Used("kb_base", _text(lambda v: int(choice(v, ("1024", "1000")))), "value of k in sizes (default 1024)"),
)

# What cannot change which I/Os reach a disk, or when.
IGNORED: Mapping[str, str] = {
    "fio's output and logs": """description group_reporting thread threads per_job_logs write_bw_log write_lat_log
        write_iops_log write_hist_log write_iolog log_entries log_avg_msec log_hist_msec log_hist_coarseness
        log_max_value log_offset log_prio log_compression log_compression_cpus log_store_compressed log_unix_epoch
        log_alternate_epoch log_alternate_epoch_clock_id bwavgtime iopsavgtime block_error_percentiles stats
        clat_percentiles lat_percentiles slat_percentiles percentile_list significant_figures disk_util gtod_reduce
        disable_lat disable_clat disable_slat disable_bw_measurement disable_bw gtod_cpu clocksource
        unified_rw_reporting unit_base error_dump rate_cycle ratecycle""",
    "contents of the buffers": """zero_buffers refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage
        buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_working_set_percentage dedupe_global mem iomem
        iomem_align mem_align hugepage-size lockmem""",
    "creation and removal of files": """fallocate create_serialize create_fsync create_on_open allow_file_create
        allow_mounted_write overwrite unlink unlink_each_loop unique_filename""",
    "user, processors and memory of the jobs": """cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy uid gid
        cgroup_nodelete""",
    "errors that do not occur here": "continue_on_error ignore_error exitall_on_error",
    "rates below which fio would end a job": "rate_min ratemin rate_iops_min",
    "how fio checks data, which are always right here": """verify_interval verify_offset verify_pattern verify_fatal verify_dump
        verify_async verify_async_cpus experimental_verify verify_state_save verifysort verifysort_nr""",
    "interface between engine and kernel": """userspace_reap hipri hipri_percentage fixedbufs registerfiles
        sqthread_poll sqthread_poll_cpu nonvectored force_async write_hint""",
    "the random number generator (there is only one here), and its map": "random_generator softrandommap",
}

# What would change the result and is not supported; the values at which it changes nothing are accepted.
REFUSED: Mapping[str, tuple[str, ...]] = {
    "bs_unaligned": ("0",),
    "blocksize_unaligned": ("0",),
    "bs_is_seq_rand": ("0",),
    "lockfile": ("none",),
    "opendir": (),
    "file_append": ("0",),
    "fill_device": ("0",),
    "fill_fs": ("0",),
    "iodepth_batch": ("1",),
    "iodepth_batch_submit": ("1",),
    "iodepth_batch_complete": ("1",),
    "iodepth_batch_complete_min": ("1",),
    "iodepth_batch_complete_max": (),
    "iodepth_low": (),
    "serialize_overlap": ("0",),
    "io_submit_mode": ("inline",),
    "write_barrier": ("0",),
    "sync_file_range": (),
    "atomic": ("0",),
    "verify_only": ("0",),
    "verify_backlog": ("0",),
    "verify_backlog_batch": (),
    "verify_state_load": ("0",),
    "trim_percentage": ("0",),
    "trim_verify_zero": ("0", "1"),
    "trim_backlog": ("0",),
    "trim_backlog_batch": (),
    "read_iolog": (),
    "read_iolog_chunked": ("0",),
    "replay_no_stall": ("0",),
    "replay_redirect": (),
    "replay_scale": ("1",),
    "replay_align": (),
    "replay_time_scale": ("100",),
    "replay_skip": (),
    "merge_blktrace_file": (),
    "merge_blktrace_scalars": (),
    "merge_blktrace_iters": (),
    "exec_prerun": (),
    "exec_postrun": (),
    "ioscheduler": (),
    "zonecapacity": ("0",),
    "read_beyond_wp": ("0",),
    "max_open_zones": ("0",),
    "job_max_open_zones": ("0",),
    "ignore_zone_limits": ("0",),
    "zone_reset_threshold": (),
    "zone_reset_frequency": (),
    "thinktime_iotime": ("0",),
    "rate_process": ("linear",),
    "rate_ignore_thinktime": ("0",),
    "latency_target": ("0",),
    "latency_window": ("0",),
    "max_latency": ("0",),
    "openfiles": (),
    "latency_percentile": ("100",),
    "latency_run": ("0",),
    "create_only": ("0",),
    "pre_read": ("0",),
    "profile": (),
    "flow_id": ("0",),
    "flow": ("0",),
    "flow_sleep": ("0",),
    "steadystate": (),
    "ss": (),
    "steadystate_duration": ("0",),
    "ss_dur": ("0",),
    "steadystate_ramp_time": ("0",),
    "ss_ramp": ("0",),
    "nowait": ("0",),
    "uncached": ("0",),
    "cmd_type": (),
}

BY_NAME: Mapping[str, Used] = {name: option for option in USED for name in option.names}
DEPRECATED: frozenset[str] = frozenset({"flow_watermark"})
"""Options that fio accepts, calls deprecated and ignores."""
IGNORED_NAMES: frozenset[str] = frozenset(name for names in IGNORED.values() for name in names.split())


# Why, where the name does not say it.
REASONS: Mapping[str, str] = {
    "flow_sleep": "jobs would wait for each other's progress",
    "iodepth_batch": "I/Os would be submitted several at a time",
    "flow": "jobs would wait for each other's progress",
    "latency_target": "fio would try queue depths until one meets it; run the depths that you think of",
    "io_submit_mode": "with offload, threads submit that are tasks of their own",
    "rate_process": "arrivals would not depend on completions; record a trace and replay it open",
    "verify_backlog": "reads would be mixed with the writes; verify without it reads after them",
    "steadystate": "fio would end the job early; give a runtime",
    "ss": "fio would end the job early; give a runtime",
    "fill_device": "fio would write until the file system is full; give a size",
    "read_iolog": "name the log itself as the workload: headwaiter replays it",
}
# Other engines, by what each does instead of I/O that a disk's scheduler sees.
OTHER_ENGINES: Mapping[str, str] = {
    "uses a processor, not a disk": "cpuio",
    "does no I/O": "null cpp_null",
    "runs another program": "exec",
    "is code of its own": "external",
    "goes over a network": "net netsplice rdma librpma_apm_client librpma_apm_server librpma_gpspm_client librpma_gpspm_server",
    "uses storage behind a network": "rados rbd gfapi gfapi_async libhdfs http nfs nbd libiscsi dfs ime",
    "sends commands to the device past its scheduler": "sg io_uring_cmd libzbc libblkio xnvme mtd",
    "uses memory that is addressed as such": "dev-dax libpmem pmemblk",
    "moves data to a graphics processor": "libcufile",
    "changes files and folders, not their contents": """e4defrag falloc ftruncate filecreate filedelete filestat
        dircreate dirdelete dirstat""",
    "reads and writes by faults of pages, which are not modelled": "mmap",
    "moves pages between files, which is not modelled": "splice",
}


def known() -> Iterable[str]:
    """Every name of every option."""
    return {*BY_NAME, *IGNORED_NAMES, *DEPRECATED, *REFUSED}


def refuses(name: str, value: str | None) -> bool:
    """Would this setting change the result in a way that is not supported?"""
    return name in REFUSED and (value if value is not None else "1") not in REFUSED[name]
