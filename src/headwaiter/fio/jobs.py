# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sections of a job file made into jobs of the simulator: defaults, regions, clones, priorities, groups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.base.errors import DoesNotFitError, Problem, plain
from headwaiter.engine.cgroups import DEFAULT_WEIGHT
from headwaiter.engine.cgroups import told as told_cgroups
from headwaiter.engine.constants import SECTOR_BYTES, Directions, Exit, FileService, IoprioClass, ioprio
from headwaiter.engine.native import ffi, lib
from headwaiter.engine.sim import Task
from headwaiter.fio.corners import notes_of, time_based
from headwaiter.fio.layout import Region, is_device, lay_out, split_filenames
from headwaiter.fio.names import name_hash
from headwaiter.fio.options import SYNC_ENGINES, Distribution, Pattern
from headwaiter.fio.parser import JobSection, Where, parse
from headwaiter.fio.values import LARGEST, Percent

# Linux's read_ahead_kb; POSIX_FADV_SEQUENTIAL doubles it.
READAHEAD_BYTES = 128 << 10
FIO_RANDSEED = 0x89  # of job files that name none
_EXIT = {"group": Exit.GROUP, "stonewall": Exit.RUNNING, "all": Exit.ALL}
_SERVICE = {"roundrobin": FileService.IN_TURN, "sequential": FileService.ONE_BY_ONE, "random": FileService.RANDOM}
_NAMING = ("name", "filename", "directory", "filename_format")
"""Options that files and jobs have their names from."""
_MOST_PROCESSES = 100_000
_MOST_FILES = 1_000_000
_MOST_IOS = 1_000_000


@dataclass(frozen=True)
class Job:
    """One process: the fields of struct hws_job but for its files, and those of each struct hws_file."""

    fields: Mapping[str, Any]
    files: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class JobLoad:
    """A job file as a load (sim.Load). One task per process, in fio's order; the last may be the flusher."""

    tasks: Sequence[Task]
    jobs: tuple[Job, ...]
    notes: tuple[str, ...] = ()
    places: tuple[tuple[Where, str], ...] = ()
    """The line and the name of each job, for a message about what a run finds wrong with it."""

    def attach(self, run: Any) -> int:
        """See sim.Load."""
        for job in self.jobs:
            files = ffi.new("struct hws_file[]", [dict(f) for f in job.files])
            tables = {
                key: [ffi.new(f"struct hws_{key[:-1]}[]", rows) if rows else ffi.NULL for rows in job.fields[key]]
                for key in ("splits", "zones", "prio_splits")
            }
            lengths = {f"nr_{key}": [len(rows) for rows in job.fields[key]] for key in tables}
            c = ffi.new("struct hws_job *", {**job.fields, **tables, **lengths, "nr_files": len(job.files), "files": files})
            status = int(lib.hws_add_job(run, c))
            if status < 0:
                return status
        return 0

    def explained(self, error: str) -> str:
        """See sim.Load: of a job, where it was written, and its name."""
        found = re.match(r"job (\d+): ", error)
        if not found or int(found[1]) >= len(self.places):
            return error
        number = int(found[1])
        where, name = self.places[number]
        return where.told(f"{name}: {error[found.end() :]}", "a job that cannot be run")


def load_jobs(path: Path, drive_sectors: int, data: bytes | None = None) -> JobLoad:
    """A job file fitted to a drive of so many sectors of 512 bytes. Problem names file, line and cause.

    data: the file's bytes, where they have been read already.
    """
    sections = parse(path, data)
    capacity = drive_sectors * SECTOR_BYTES
    _check_number(sections)
    drafts = [draft for section in sections for draft in _clones(section, capacity)]
    bases = lay_out([r for d in drafts for r in d.regions], capacity)
    for draft in drafts:
        _check_fit(draft, bases, capacity)
    ids = {s.get("name", s.name): i for i, s in reversed(list(enumerate(sections)))}
    exitall = any(s.get("exitall") for s in sections)
    writes_back = any(d.fields["buffered"] and d.fields["directions"] & Directions.WRITES for d in drafts)
    waits = _waits(sections, ids)
    verifying = {s: len(sections) + k for k, s in enumerate(dict.fromkeys(d.job_name for d in drafts if d.verifies))}
    waits = {s: verifying.get(sections[w].get("name", sections[w].name), w) if w >= 0 else w for s, w in waits.items()}
    workers = len(drafts) + sum(d.verifies for d in drafts)
    cgroups = _cgroups(sections)
    tasks: list[Task] = []
    jobs: list[Job] = []
    places: list[tuple[Where, str]] = []
    readers: list[tuple[_Draft, Mapping[str, Any], int]] = []
    group = phase = 0

    def enter(draft: _Draft, fields: Mapping[str, Any], name: str) -> None:
        cgroup = cgroups.get(id(draft.section), ())
        tasks.append(Task(len(jobs), plain(name), len(jobs), _ioprio(draft.section), phase=phase, cgroup=cgroup))
        shown_name = f"job '{plain(name)}'" if draft.section.shows("name") else "a job"
        places.append((draft.section.at("bssplit"), shown_name))
        jobs.append(
            Job(
                {**fields, "task": len(jobs)},
                tuple(_place(r, bases, fields, "randseed" in draft.section.settings) for r in draft.regions),
            )
        )

    def read_again() -> None:
        """Behind the last process of a section, the jobs that verify what they have written."""
        for draft, fields, number in readers:
            section = verifying[draft.job_name]
            more = {"section": section, "wait_for": fields["section"], "stonewall": False, "number": number}
            enter(draft, {**_verification(fields), **more}, f"{draft.name}.verify")
        readers.clear()

    for number, draft in enumerate(drafts):
        if readers and readers[-1][0].section is not draft.section:
            read_again()
        section = draft.section
        stonewall = bool(section.get("stonewall") and draft.clone == 0)
        phase += stonewall and bool(jobs)
        new_group = draft.clone == 0 and (section.get("stonewall") or section.get("new_group"))
        group += bool(new_group and jobs)
        fields = {
            **draft.fields,
            "flusher": workers,
            "section": ids[draft.job_name],
            "group": group,
            "wait_for": waits[id(section)],
            "stonewall": stonewall,
            "exit_what": _EXIT[section.get("exit_what", "group")] if exitall else Exit.ITSELF,
            "random_seed": section.get("randseed", FIO_RANDSEED),
            "number": number,
        }
        enter(draft, fields, draft.name)
        if draft.verifies:
            readers.append((draft, fields, number))
    read_again()
    notes: tuple[str, ...] = ()
    if any(d.fields["buffered"] for d in drafts):
        notes = ("buffered I/O is modelled simply (see docs/fio.md); direct=1 says exactly what the disk is asked",)
    if any(s.get("ramp_time") for s in sections):
        notes += ("ramp_time: unlike in fio, the I/Os of the ramp count in the results",)
    notes += tuple(note for d in drafts if not d.clone for note in notes_of(d.section, d.regions, max(d.fields["align_bytes"])))
    notes += told_cgroups(
        cgroups.get(id(s), ()) if s.shows("cgroup") else (("(of an included file)", DEFAULT_WEIGHT),)
        for s in sections
        if id(s) in cgroups
    )
    if writes_back:
        tasks.append(Task(len(jobs), "flusher", len(jobs), exits=False, phase=None))
    return JobLoad(tuple(tasks), tuple(jobs), notes, tuple(places))


def _place(r: Region, bases: Mapping[str, int], fields: Mapping[str, Any], seeded: bool) -> dict[str, int]:
    """A region as the simulator takes it. Skewed places depend on the file's name, unless the job has a seed of its own."""
    seed = {"name_hash": name_hash(r.file)} if fields["skew"] and fields["repeat_random"] and not seeded else {}
    return {"base": bases.get(r.file, 0), "offset": r.offset, "span": r.span, "size": r.size} | seed


@dataclass(frozen=True)
class _Draft:
    """A process before its files have a place."""

    section: JobSection
    job_name: str
    name: str
    clone: int
    regions: tuple[Region, ...]
    fields: Mapping[str, Any]

    @property
    def verifies(self) -> bool:
        """Return whether it reads again what it has written."""
        return bool(self.section.get("verify") and self.section.get("do_verify", True)) and self.writes

    @property
    def writes(self) -> bool:
        return bool(self.fields["directions"] & Directions.WRITES)


def _verification(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The job that reads what a job has written, in the order of the writes: its number decides on the places."""
    swapped = {key: [fields[key][1]] * 2 for key in ("random_percent", "min_bytes", "max_bytes", "align_bytes", "zones")}
    return {
        **fields,
        **swapped,
        "directions": Directions.READS,
        "start_min_ns": 0,
        "start_max_ns": 0,
        "keep_cache": False,
        "sync_writes": False,
        "think_ns": 0,
        "rate_bytes": [0, 0],
        "prio_percent": [0, 0],
        "prio_splits": [[], []],
    }


def _check_verify(s: JobSection, pattern: Pattern, low: Sequence[int], high: Sequence[int]) -> None:
    """Refuse what would be read again in another order, or in another number."""
    if not (s.get("verify") and s.get("do_verify", True) and pattern.directions & Directions.WRITES):
        return
    reasons = {
        "in a job that also reads": pattern.directions == Directions.BOTH,
        "with direct=0 reads from the page cache, and that": not s.get("direct"),
        "with sizes that vary": low[1] != high[1] or bool(s.get("bssplit")),
        "with runtime": bool(s.get("runtime")),
        "with loops": s.get("loops", 1) > 1,
        "with norandommap": bool(s.get("norandommap")) or "ba" in s.settings,
        "with places that come more than once": bool(s.get("random_distribution", Distribution()).skew),
        "with exitall": bool(s.get("exitall")),
    }
    for what, given in reasons.items():
        if given:
            raise s.at("verify").problem(f"option 'verify' {what} is not supported (do_verify=0 reads nothing again)")


def _clones(s: JobSection, capacity: int) -> list[_Draft]:
    clones = s.get("numjobs", 1)
    shared = _common_fields(s)
    return [_draft(s, clone, clones, shared, capacity) for clone in range(clones)]


def _draft(s: JobSection, clone: int, clones: int, shared: Mapping[str, Any], capacity: int) -> _Draft:
    job_name = s.get("name", s.name)
    name = f"{job_name}.{clone}" if clones > 1 else job_name
    number = (clones - clone) % clones  # fio numbers the clones backwards, but for the first
    files = _file_names(s, job_name, number)
    depth = shared["depth"]
    if s.get("ioengine") == "posixaio" and depth > 1:
        if len(files) > 1:
            raise s.at("iodepth").problem("option 'iodepth': posixaio with several files is not supported")
        depth = 1
    regions, size = _regions(s, files, number, shared, capacity)
    io_size = s.get("io_size", 0)
    if isinstance(io_size, Percent):
        io_size = size * io_size.value // 100
    if s.get("zonemode") == "strided":
        # Round and round, until as many bytes as the region has without its gaps.
        io_size = io_size or size
        regions, size = _strided(s, regions, shared)
        shared = {**shared, "file_service": FileService.ONE_BY_ONE}
    fields = {**shared, "depth": depth, "size": size, "io_size": io_size}
    return _Draft(s, job_name, name, clone, regions, fields)


def _file_names(s: JobSection, job_name: str, number: int) -> list[str]:
    directory = s.get("directory", "").rstrip("/")
    if "filename" in s.settings:
        names = split_filenames(s.get("filename"))
        if not names:
            raise s.at("filename").problem("option 'filename': a name is missing")
    else:
        form = s.get("filename_format", "$jobname.$jobnum.$filenum")
        names = [_formatted(s, form, job_name, number, n) for n in range(s.get("nrfiles", 1))]
    return [f"{directory}/{n}" if directory and not n.startswith("/") else n for n in names]


def _formatted(s: JobSection, form: str, job_name: str, number: int, file: int) -> str:
    for word, value in (("$jobname", job_name), ("$jobnum", str(number)), ("$filenum", str(file))):
        form = form.replace(word, value)
    if "$" in form:
        raise s.at("filename_format").problem(f"option 'filename_format': '{form[form.index('$') :][:40]}' is not supported")
    return form


_MOST_ZONES = 100_000


def _strided(s: JobSection, regions: Sequence[Region], shared: Mapping[str, Any]) -> tuple[tuple[Region, ...], int]:
    """zonesize bytes of the region, a gap of zoneskip, and so on to its end; each of these is gone through in turn."""
    where = s.at("zonemode")
    length, skip = s.get("zonesize", 0), s.get("zoneskip", 0)
    if not length:
        raise where.problem("option 'zonemode': strided needs zonesize")
    if s.get("zonerange", length) != length:
        raise s.at("zonerange").problem("option 'zonerange': only the same as zonesize is supported")
    if shared["random"] or len(regions) > 1 or shared["hole_bytes"]:
        raise where.problem("option 'zonemode': strided is supported for sequential I/O to one file")
    block = max(b for i, b in enumerate(shared["max_bytes"]) if shared["directions"] >> i & 1)
    if length % block or skip % SECTOR_BYTES:
        raise s.at("zonesize").problem(f"option 'zonesize': must be in blocks of {block} bytes, and zoneskip in sectors")
    (r,) = regions
    number = -(-r.span // (length + skip))
    if number > _MOST_ZONES:
        raise s.at("zonesize").problem(f"option 'zonesize': {number} zones: more than {_MOST_ZONES} are not supported")
    found = []
    for k in range(number):
        begin = k * (length + skip)
        span = min(length, r.span - begin)
        span -= span % block
        if span:
            found.append(Region(r.file, r.offset + begin, span, r.offset + begin + span))
    return tuple(found), sum(f.span for f in found)


def _split_fields(s: JobSection, buffered: bool) -> dict[str, Any]:
    """Sizes, places and priorities that are drawn by shares: of reads, of writes."""
    splits = [part or () for part in s.get("bssplit", ((), ()))]
    if not buffered and any(size % SECTOR_BYTES for part in splits for size, _ in part):
        raise s.at("bssplit").problem(f"option 'bssplit': direct I/O must be in multiples of {SECTOR_BYTES} bytes")
    distribution: Distribution = s.get("random_distribution", Distribution())
    zones = [(access, length, 0) if distribution.relative else (access, 0, length) for access, length in distribution.zones]
    percent = [p or 0 for p in s.get("cmdprio_percentage", (0, 0))]
    if any(percent) and (buffered or s.get("ioengine") not in ("libaio", "io_uring")):
        raise s.at("cmdprio_percentage").problem("option 'cmdprio_percentage' is for direct I/O by libaio and io_uring")
    return {
        "splits": splits,
        "zones": [zones, zones],
        "skew": distribution.skew,
        "skew_by": distribution.by,
        "skew_center": distribution.center,
        "prio_splits": _prio_splits(s, buffered),
        "prio_percent": percent,
        "prio": _command_prio(s),
    }


def _command_prio(s: JobSection) -> int:
    """The priority of single I/Os."""
    return ioprio(IoprioClass(s.get("cmdprio_class", 0) or IoprioClass.RT), int(s.get("cmdprio", 0)))


def _prio_splits(s: JobSection, buffered: bool) -> list[list[tuple[int, int, int]]]:
    """(bytes, percentage, priority), of reads and of writes."""
    option, usual = "cmdprio_bssplit", _command_prio(s)
    if option not in s.settings:
        return [[], []]
    if "cmdprio_percentage" in s.settings:
        raise s.at(option).problem(f"option '{option}' and cmdprio_percentage are mutually exclusive")
    if buffered or s.get("ioengine") not in ("libaio", "io_uring"):
        raise s.at(option).problem(f"option '{option}' is for direct I/O by libaio and io_uring")
    return [
        [
            (share.bytes, share.percent, usual if share.level is None else ioprio(IoprioClass(share.kind), share.level))
            for share in part or ()
        ]
        for part in s.get(option)
    ]


def _common_fields(s: JobSection) -> dict[str, Any]:
    """Return what all clones share."""
    pattern: Pattern = s.get("rw", Pattern(False, Directions.READS))
    buffered = not s.get("direct", False)
    engine = s.get("ioengine", "psync")
    queued = engine not in SYNC_ENGINES
    low, high = ([b[i] for b in s.block_sizes()] for i in (0, 1))
    align = [a or b for a, b in zip(s.get("ba", (None, None)), low, strict=True)]
    if not buffered:
        for option, sizes in (("bs", low), ("ba", align)):
            if any(n % SECTOR_BYTES for n in sizes):
                raise s.at(option).problem(f"option '{option}': direct I/O must be in multiples of {SECTOR_BYTES} bytes")
        if pattern.hole % SECTOR_BYTES:
            raise s.at("rw").problem(f"option 'rw': direct I/O must be in multiples of {SECTOR_BYTES} bytes")
    depth = s.get("iodepth", 1) if queued and not buffered else 1
    if buffered and engine == "io_uring" and s.get("iodepth", 1) > 1:
        raise s.at("iodepth").problem(
            "option 'iodepth': buffered I/O through io_uring is supported one at a time only; add direct=1"
        )
    writes = bool(pattern.directions & Directions.WRITES)
    _check_verify(s, pattern, low, high)
    service, every = s.get("file_service_type", ("roundrobin", 1))
    think = s.get("thinktime", 0)
    start = s.get("startdelay", (0, 0))
    percent = s.get("percentage_random", (100, 100))
    return {
        "start_min_ns": start[0],
        "start_max_ns": start[1],
        "runtime_ns": s.get("runtime", 0) + (s.get("ramp_time", 0) if s.get("runtime") else 0),
        **_split_fields(s, buffered),
        "time_based": time_based(s),
        "loops": s.get("loops", 1),
        "number_ios": s.get("number_ios", 0),
        "directions": pattern.directions,
        "read_percent": s.get("rwmixread", 50),
        "random": pattern.random,
        "random_percent": [100 if p is None else p for p in percent],
        "random_map": not s.get("norandommap", False) and "ba" not in s.settings,
        "repeat_random": s.get("randrepeat", True),
        "min_bytes": low,
        "max_bytes": high,
        "align_bytes": align,
        "hole_bytes": pattern.hole,
        "random_every": pattern.every,
        "identical": s.get("rw_sequencer") == "identical",
        "file_service": _SERVICE[service],
        "file_every": every,
        "depth": depth,
        "queued": queued,
        "buffered": buffered,
        "keep_cache": not s.get("invalidate", True),
        "sync_writes": s.get("sync", False),
        "fsync_every": s.get("fsync", 0) if writes else 0,
        "end_fsync": s.get("end_fsync", False) and writes,
        "think_ns": max(think, s.get("thinktime_spin", 0)) if think else 0,
        "think_blocks": s.get("thinktime_blocks", 1),
        "think_issued": s.get("thinktime_blocks_type") == "issue",
        "rate_bytes": _rate(s, low),
        "readahead_bytes": _readahead(s, pattern) if buffered else 0,
    }


def _rate(s: JobSection, block: Sequence[int]) -> list[int]:
    rate, iops = s.get("rate", (None, None)), s.get("rate_iops", (None, None))
    out = [r or (i or 0) * b for r, i, b in zip(rate, iops, block, strict=True)]
    if max(out) > LARGEST:
        raise s.at("rate_iops").problem(f"option 'rate_iops': {max(out)} bytes per second exceeds any drive")
    return out


def _readahead(s: JobSection, pattern: Pattern) -> int:
    hint = s.get("fadvise_hint", "1")
    if hint == "1":
        hint = "random" if pattern.random else "sequential"
    return {"random": 0, "sequential": 2 * READAHEAD_BYTES}.get(hint, READAHEAD_BYTES)


def _ioprio(s: JobSection) -> int:
    """Return the priority as ioprio_set(2) takes it; 0 if none was asked for."""
    if "prio" in s.settings or "prioclass" in s.settings:
        return ioprio(IoprioClass(s.get("prioclass", 0) or IoprioClass.BE), int(s.get("prio", 0)))
    nice = int(s.get("nice", 0))
    return ioprio(IoprioClass.BE, (nice + 20) // 5) if nice else 0


def _cgroups(sections: Sequence[JobSection]) -> dict[int, tuple[tuple[str, int], ...]]:
    """Return the control group of each section's jobs, by the section's id()."""
    paths: dict[int, tuple[str, ...]] = {}
    weights: dict[tuple[str, ...], int] = {}
    for s in sections:
        if "cgroup" not in s.settings:
            if "cgroup_weight" in s.settings:
                raise s.at("cgroup_weight").problem("option 'cgroup_weight' needs option 'cgroup'")
            continue
        path = tuple(name for name in str(s.get("cgroup")).split("/") if name)
        if not path or any(name in (".", "..") for name in path):
            raise s.at("cgroup").problem("option 'cgroup': must be the name of a group, or a/b of one in another")
        paths[id(s)] = path
        if "cgroup_weight" in s.settings:
            weight = int(s.get("cgroup_weight"))
            if weights.setdefault(path, weight) != weight:
                raise s.at("cgroup_weight").problem(f"option 'cgroup_weight': the group has weight {weights[path]} already")
    return {
        number: tuple((name, weights.get(path[: k + 1], DEFAULT_WEIGHT)) for k, name in enumerate(path))
        for number, path in paths.items()
    }


def _waits(sections: Sequence[JobSection], ids: Mapping[str, int]) -> dict[int, int]:
    """Return the number of the section that each section waits for, or -1, by the section's id()."""
    out: dict[int, int] = {}
    earlier: set[str] = set()
    for s in sections:
        out[id(s)], own = -1, s.get("name", s.name)
        if "wait_for" in s.settings:
            name = s.get("wait_for")
            if name not in earlier or name == own:
                raise s.at("wait_for").problem(f"option 'wait_for': no job '{name}' before this one")
            out[id(s)] = ids[name]
        earlier.add(own)
    return out


def _check_number(sections: Sequence[JobSection]) -> None:
    """Refuse what would not end before any of it is made."""
    processes = files = ios = 0
    for s in sections:
        clones = s.get("numjobs", 1)
        each = len(split_filenames(s.get("filename"))) if "filename" in s.settings else s.get("nrfiles", 1)
        processes += clones
        files += clones * each
        ios += clones * s.get("iodepth", 1)
        where = s.at("numjobs", "nrfiles", "filename")
        if processes > _MOST_PROCESSES:
            raise where.problem(f"{processes} processes up to here: more than {_MOST_PROCESSES} are not supported")
        if files > _MOST_FILES:
            raise where.problem(f"{files} files of processes up to here: more than {_MOST_FILES} are not supported")
        if ios > _MOST_IOS:
            raise s.at("iodepth", "numjobs").problem(
                f"{ios} I/Os in flight at once up to here: more than {_MOST_IOS} are not supported"
            )


# --- regions: which bytes of its files a job touches ---


def _regions(
    s: JobSection, files: Sequence[str], number: int, shared: Mapping[str, Any], capacity: int
) -> tuple[tuple[Region, ...], int]:
    """The regions, and the bytes of one pass, as fio works both out from size, filesize and offset."""
    directions = shared["directions"]
    block = min(b for i, b in enumerate(shared["min_bytes"]) if directions >> i & 1)
    align = max(b for i, b in enumerate(shared["align_bytes"]) if directions >> i & 1) if shared["random"] else 0
    size, filesize = s.get("size", 0), s.get("filesize", 0)
    regions = []
    for name in files:
        whole = _whole(s, name, len(files), capacity)
        offset = _offset(s, whole, number, block)
        if not shared["buffered"] and offset % SECTOR_BYTES:
            raise s.at("offset_increment" if number else "offset", "offset").problem(
                f"option 'offset': direct I/O must be in multiples of {SECTOR_BYTES} bytes"
            )
        if isinstance(size, Percent):
            span = min(whole * size.value // 100, whole - offset)
            span -= span % block
        elif filesize:
            span = filesize - offset
        elif size:
            span = size // len(files)
        else:
            span = whole - offset
        if span < block:
            raise _too_small(s, span, block, offset)
        if span < align:
            raise s.at("ba", "bs").problem(f"a region of {span} bytes holds no place aligned to {align}")
        regions.append(Region(name, offset, span, capacity if is_device(name) else offset + span))
    total = sum(r.span for r in regions)
    one_pass = size if isinstance(size, int) and 0 < size <= total else total
    if one_pass < block:
        raise _too_small(s, one_pass, block, 0)
    return tuple(regions), one_pass


def _too_small(s: JobSection, span: int, block: int, offset: int) -> Problem:
    if span <= 0:
        return s.at("offset", "offset_increment").problem(f"option 'offset': nothing remains from byte {offset} on")
    return s.at("size", "filesize", "offset", "bs").problem(
        f"a region of {span} bytes is smaller than a block of {block}", "a region is smaller than a block"
    )


def _whole(s: JobSection, name: str, files: int, capacity: int) -> int:
    """The size of a file or device, of which percentages are taken: fio's is `size` for files that do not exist yet."""
    size, filesize = s.get("size", 0), int(s.get("filesize", 0))
    if filesize or is_device(name):
        return filesize or capacity
    if isinstance(size, int) and size:
        return size // files
    shown_name = f"'{name}'" if s.shows(*_NAMING) else "a file of the job"
    raise s.at("size", "filename").problem(
        f"{shown_name} is a file: give its size" + (" (filesize=)" if isinstance(size, Percent) else " (size=)")
    )


def _offset(s: JobSection, whole: int, number: int, block: int) -> int:
    offset, increment = s.get("offset", 0), s.get("offset_increment", 0)
    if not isinstance(offset, Percent) and not isinstance(increment, Percent):
        return int(offset + increment * number)
    start, step = (whole * v.value // 100 if isinstance(v, Percent) else v for v in (offset, increment))
    align = s.get("offset_align", 0) or block
    return int(-(-(start + step * number) // align) * align)


def _check_fit(draft: _Draft, bases: Mapping[str, int], capacity: int) -> None:
    for r in draft.regions:
        end = bases[r.file] + r.size if r.file in bases else r.offset + r.span
        if end <= capacity:
            continue
        where: Where = draft.section.at("size", "filesize", "offset_increment", "offset")
        shows = draft.section.shows(*_NAMING)
        who = f"job '{draft.name}'" if shows else "a job"
        what = (f"file '{r.file}'" if r.file in bases else r.file) if shows else "a file"
        leaves = f"{who} leaves the drive: {what} would end at byte {end} of {capacity}"
        raise DoesNotFitError(where.told(leaves, f"a job leaves the drive of {capacity} bytes"))
