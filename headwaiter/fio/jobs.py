# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sections of a job file made into jobs of the simulator: defaults, regions, clones, priorities, groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwaiter.engine.constants import SECTOR_BYTES, Directions, Exit, FileService, IoprioClass, ioprio
from headwaiter.engine.native import ffi, lib
from headwaiter.engine.sim import Task
from headwaiter.errors import Problem, plain
from headwaiter.fio.layout import Region, is_device, lay_out, split_filenames
from headwaiter.fio.options import SYNC_ENGINES, Pattern
from headwaiter.fio.parser import Section, Where, parse
from headwaiter.fio.values import LARGEST, Percent

# Linux's read_ahead_kb; POSIX_FADV_SEQUENTIAL doubles it.
READAHEAD_BYTES = 128 << 10
FIO_RANDSEED = 0x89  # of job files that name none
_EXIT = {"group": Exit.GROUP, "stonewall": Exit.RUNNING, "all": Exit.ALL}
_SERVICE = {"roundrobin": FileService.IN_TURN, "sequential": FileService.ONE_BY_ONE, "random": FileService.RANDOM}
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

    def attach(self, run: Any) -> int:
        """See sim.Load."""
        for job in self.jobs:
            files = ffi.new("struct hws_file[]", [dict(f) for f in job.files])
            c = ffi.new("struct hws_job *", {**job.fields, "nr_files": len(job.files), "files": files})
            status = int(lib.hws_add_job(run, c))
            if status < 0:
                return status
        return 0


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
    tasks: list[Task] = []
    jobs: list[Job] = []
    group = phase = 0
    for draft in drafts:
        section = draft.section
        stonewall = bool(section.get("stonewall") and draft.clone == 0)
        phase += stonewall and bool(jobs)
        new_group = draft.clone == 0 and (section.get("stonewall") or section.get("new_group"))
        group += bool(new_group and jobs)
        fields = {
            **draft.fields,
            "task": len(jobs),
            "flusher": len(drafts),
            "section": ids[draft.job_name],
            "group": group,
            "wait_for": waits[id(section)],
            "stonewall": stonewall,
            "exit_what": _EXIT[section.get("exit_what", "group")] if exitall else Exit.ITSELF,
            "random_seed": section.get("randseed", FIO_RANDSEED),
            "number": len(jobs),
        }
        tasks.append(Task(len(jobs), plain(draft.name), len(jobs), _ioprio(section), phase=phase))
        jobs.append(
            Job(
                fields,
                tuple({"base": bases.get(r.file, 0), "offset": r.offset, "span": r.span, "size": r.size} for r in draft.regions),
            )
        )
    notes: tuple[str, ...] = ()
    if any(d.fields["buffered"] for d in drafts):
        notes = ("buffered I/O is modelled simply (see docs/fio.md); direct=1 says exactly what the disk is asked",)
    if writes_back:
        tasks.append(Task(len(jobs), "flusher", len(jobs), exits=False, phase=None))
    return JobLoad(tuple(tasks), tuple(jobs), notes)


@dataclass(frozen=True)
class _Draft:
    """A process before its files have a place."""

    section: Section
    job_name: str
    name: str
    clone: int
    regions: tuple[Region, ...]
    fields: Mapping[str, Any]


def _clones(s: Section, capacity: int) -> list[_Draft]:
    clones = s.get("numjobs", 1)
    shared = _common_fields(s)
    return [_draft(s, clone, clones, shared, capacity) for clone in range(clones)]


def _draft(s: Section, clone: int, clones: int, shared: Mapping[str, Any], capacity: int) -> _Draft:
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
    fields = {**shared, "depth": depth, "size": size, "io_size": io_size}
    return _Draft(s, job_name, name, clone, regions, fields)


def _file_names(s: Section, job_name: str, number: int) -> list[str]:
    directory = s.get("directory", "").rstrip("/")
    if "filename" in s.settings:
        names = split_filenames(s.get("filename"))
        if not names:
            raise s.at("filename").problem("option 'filename': a name is missing")
    else:
        names = [f"{job_name}.{number}.{n}" for n in range(s.get("nrfiles", 1))]
    return [f"{directory}/{n}" if directory and not n.startswith("/") else n for n in names]


def _common_fields(s: Section) -> dict[str, Any]:
    """What all clones share."""
    pattern: Pattern = s.get("rw", Pattern(False, Directions.READS))
    buffered = not s.get("direct", False)
    engine = s.get("ioengine", "psync")
    queued = engine not in SYNC_ENGINES
    block = s.get("bs", (None, None))
    low, high = ([(b or (4096, 4096))[i] for b in block] for i in (0, 1))
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
    if s.get("time_based") and not s.get("runtime"):
        raise s.at("time_based").problem("option 'time_based' needs runtime")
    writes = bool(pattern.directions & Directions.WRITES)
    if not buffered and writes:
        for option in ("fsync", "end_fsync"):
            if s.get(option):
                raise s.at(option).problem(
                    f"option '{option}' with direct=1 flushes the drive's cache, which is not supported (sync=1 is)"
                )
    service, every = s.get("file_service_type", ("roundrobin", 1))
    think = s.get("thinktime", 0)
    start = s.get("startdelay", (0, 0))
    percent = s.get("percentage_random", (100, 100))
    return {
        "start_min_ns": start[0],
        "start_max_ns": start[1],
        "runtime_ns": s.get("runtime", 0),
        "time_based": s.get("time_based", False),
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
        "sync_writes": s.get("sync", False),
        "fsync_every": s.get("fsync", 0) if writes else 0,
        "end_fsync": s.get("end_fsync", False) and writes,
        "think_ns": max(think, s.get("thinktime_spin", 0)) if think else 0,
        "think_blocks": s.get("thinktime_blocks", 1),
        "think_issued": s.get("thinktime_blocks_type") == "issue",
        "rate_bytes": _rate(s, low),
        "readahead_bytes": _readahead(s, pattern) if buffered else 0,
    }


def _rate(s: Section, block: Sequence[int]) -> list[int]:
    rate, iops = s.get("rate", (None, None)), s.get("rate_iops", (None, None))
    out = [r or (i or 0) * b for r, i, b in zip(rate, iops, block, strict=True)]
    if max(out) > LARGEST:
        raise s.at("rate_iops").problem(f"option 'rate_iops': {max(out)} bytes per second exceeds any drive")
    return out


def _readahead(s: Section, pattern: Pattern) -> int:
    hint = s.get("fadvise_hint", "1")
    if hint == "1":
        hint = "random" if pattern.random else "sequential"
    return {"random": 0, "sequential": 2 * READAHEAD_BYTES}.get(hint, READAHEAD_BYTES)


def _ioprio(s: Section) -> int:
    """As ioprio_set(2) takes it; 0 if nothing was asked for."""
    if "prio" in s.settings or "prioclass" in s.settings:
        return ioprio(IoprioClass(s.get("prioclass", 0) or IoprioClass.BE), int(s.get("prio", 0)))
    nice = int(s.get("nice", 0))
    return ioprio(IoprioClass.BE, (nice + 20) // 5) if nice else 0


def _waits(sections: Sequence[Section], ids: Mapping[str, int]) -> dict[int, int]:
    """By a section's id(): the number of the one that it waits for, or -1."""
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


def _check_number(sections: Sequence[Section]) -> None:
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
    s: Section, files: Sequence[str], number: int, shared: Mapping[str, Any], capacity: int
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


def _too_small(s: Section, span: int, block: int, offset: int) -> Problem:
    if span <= 0:
        return s.at("offset", "offset_increment").problem(f"option 'offset': nothing remains from byte {offset} on")
    return s.at("size", "filesize", "offset", "bs").problem(f"a region of {span} bytes is smaller than a block of {block}")


def _whole(s: Section, name: str, files: int, capacity: int) -> int:
    """The size of a file or device, of which percentages are taken: fio's is `size` for files that do not exist yet."""
    size, filesize = s.get("size", 0), int(s.get("filesize", 0))
    if filesize or is_device(name):
        return filesize or capacity
    if isinstance(size, int) and size:
        return size // files
    raise s.at("size", "filename").problem(
        f"'{name}' is a file: give its size" + (" (filesize=)" if isinstance(size, Percent) else " (size=)")
    )


def _offset(s: Section, whole: int, number: int, block: int) -> int:
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
        what = f"file '{r.file}'" if r.file in bases else r.file
        raise where.problem(f"job '{draft.name}' leaves the drive: {what} would end at byte {end} of {capacity}")
