# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is fuzzed, a target for each format, and how each is judged.

A target ends with a result or with a Problem of one printable line that begins with the name of the file; what it returns
is the kind of behaviour, with names and numbers left out.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwaiter.base.errors import Problem
from headwaiter.base.parsing import parse_toml
from headwaiter.cli._options import parse_shares
from headwaiter.conformance import check, decisions
from headwaiter.conformance.decisions import encode
from headwaiter.drives.choose import open_drive
from headwaiter.drives.convert import convert
from headwaiter.drives.profile import Profile, from_toml, load
from headwaiter.drives.validation import read_trace, validate
from headwaiter.drives.writing import toml_text
from headwaiter.engine.native import ffi, lib
from headwaiter.engine.policy import Policy, Request
from headwaiter.engine.schedulers import catalogue, find
from headwaiter.engine.sim import ConstantDrive, Options, _options
from headwaiter.fio import jobs
from headwaiter.generated import given_parameters, looks_generated
from headwaiter.papers.cells import ByTable
from headwaiter.papers.selectors import read_iozone, read_ranking, read_table
from headwaiter.papers.was.config import READERS, Config, to_toml
from headwaiter.papers.was.config import config as configured
from headwaiter.papers.was.config import load as load_config
from headwaiter.papers.was.designate import designate, heuristic
from headwaiter.papers.was.fit import designated
from headwaiter.papers.was.matrix import load_matrix, to_text
from headwaiter.study.variants import settings_of
from headwaiter.traces import Source, Trace, closed_loop, formats, stream_order, write_csv
from headwaiter.traces import load as load_trace
from headwaiter.traces.model import MAX_SECTOR, MAX_TIME_NS
from headwaiter.traces.registry import ReadOptions as Reading
from headwaiter.traces.registry import detect

from .engine import Target
from .words import RECORDS, words

_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|\([^()]*\)")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


def behaviour(text: str) -> str:
    """A message without what is in quotes and parentheses, and without numbers."""
    return _NUMBERS.sub("N", _NAMES.sub("Q", text))[:120]


def judge(path: Path, action: Callable[[], str]) -> str:
    """What the action returns, or the Problem that it raises, which must be fit to be printed."""
    try:
        return action()
    except Problem as e:
        text = str(e)
        assert text.isprintable(), "a problem that is not one printable line"
        assert text.startswith("/"), f"a problem that does not name the file: {behaviour(text)}"
        assert "not enough memory" not in text, "out of memory"
        return behaviour(text.removeprefix(str(path)))


# --- traces ---


def sound(t: Trace) -> None:
    """The model's invariants, and that what depends on what can be told."""
    n = len(t)
    assert n >= 1
    for column in (t.complete_ns, t.task, t.group, t.op, t.flags, t.sector, t.sectors, t.ioprio):
        assert len(column) == n
    assert (t.time_ns[1:] >= t.time_ns[:-1]).all() and int(t.time_ns[0]) >= 0 and int(t.time_ns[-1]) <= MAX_TIME_NS
    assert ((t.complete_ns == -1) | (t.complete_ns >= t.time_ns)).all() and int(t.complete_ns.max()) <= MAX_TIME_NS
    assert (t.sectors >= 1).all() and (t.sector + t.sectors <= MAX_SECTOR).all()
    assert (t.op <= 3).all() and (t.flags <= 3).all()
    assert int(t.task.max()) < len(t.tasks) and len({task.id for task in t.tasks}) == len(t.tasks)
    assert set(t.group.tolist()) == set(range(int(t.group.max()) + 1))
    assert all(task.name.isprintable() and task.name == task.name.strip() for task in t.tasks)
    parent, delay = closed_loop(t)
    assert (parent < np.arange(n)).all() and (delay >= 0).all()
    assert (stream_order(t) < np.arange(n)).all()


def same_when_written(t: Trace, path: Path) -> None:
    """Written as native CSV and read again, a trace is the same."""
    out = io.StringIO()
    write_csv(t, out)
    text = out.getvalue()
    source = Source(path)
    source.__dict__["raw"] = text.encode()
    assert next(f.name for f in formats().values() if f.sniff(source.head)) == "native", "not recognised"
    again = formats()["native"].read(source, Reading())
    for name in ("time_ns", "complete_ns", "task", "op", "flags", "sector", "sectors", "ioprio"):
        assert np.array_equal(getattr(t, name), getattr(again, name)), name
    if "group" in text.partition("\n")[0] or not t.tasks_known:
        assert np.array_equal(t.group, again.group), "group"
    assert [k.id for k in t.tasks] == [k.id for k in again.tasks]
    out = io.StringIO()
    write_csv(again, out)
    assert out.getvalue() == text, "written again, it is another text"


def can_be_written(t: Trace, path: Path) -> None:
    """In the other formats, too: what is read again has the same requests."""
    for format in ("iolog", "blkparse"):
        out = io.StringIO()
        write = formats()[format].write
        assert write
        write(t, out)
        source = Source(path)
        source.__dict__["raw"] = out.getvalue().encode()
        moves = t.op < 3 if format == "iolog" else np.ones(len(t), bool)
        if not moves.any():
            continue
        assert next(f.name for f in formats().values() if f.sniff(source.head)) == format, "not recognised"
        again = formats()[format].read(source, Reading())
        for name in ("op", "sector", "sectors"):
            assert np.array_equal(getattr(t, name)[moves], getattr(again, name)), f"{format}: {name}"


def trace_kind(t: Trace) -> str:
    """The kind of trace that an input turned out to be."""
    return " ".join(
        (
            t.format,
            str(len(t).bit_length()),
            str(len(t.tasks).bit_length()),
            str(int(t.group.max()).bit_length()),
            *(str(k) for k in np.unique(t.op | t.flags << 2).tolist()),
            str(t.completions_known),
            *map(behaviour, t.notes),
        )
    )


def trace_target(format: str) -> Callable[[Path, bytes], str]:
    """Runs a reader of traces by name, and sometimes whatever the content is taken for."""

    def run(folder: Path, data: bytes) -> str:
        path = folder / "input"
        path.write_bytes(data)

        def action() -> str:
            source = Source(path, keep_good=zlib.crc32(data) % 5 == 0)
            found = None if zlib.crc32(data) % 8 else detect(path)
            trace = load_trace(path, format=format if found is None else found.name, source=source)
            sound(trace)
            match zlib.crc32(data) % 16:  # each as costly as all the rest
                case 1:
                    can_be_written(trace, path)
                case 2 | 3:
                    same_when_written(trace, path)
            return trace_kind(trace)

        return judge(path, action)

    return run


def _columns(folder: Path, data: bytes) -> str:
    """The first line is what --columns says, the rest the file."""
    path = folder / "input"
    columns, _, content = data.partition(b"\n")
    path.write_bytes(content)

    def action() -> str:
        keep_good = zlib.crc32(data) % 5 == 0
        trace = load_trace(path, columns=columns.decode("utf-8", "replace"), keep_good=keep_good)
        sound(trace)
        same_when_written(trace, path)
        return trace_kind(trace)

    return judge(path, action)


def _packed(folder: Path, data: bytes) -> str:
    """The bytes as they are: a packed trace of any format."""
    path = folder / "input"
    path.write_bytes(data)

    def action() -> str:
        trace = load_trace(path, keep_good=zlib.crc32(data) % 3 == 0)
        sound(trace)
        return trace_kind(trace)

    return judge(path, action)


_PART = re.compile(rb"^%%%% ([\w./]{1,40})\n", re.MULTILINE)


def _recording(folder: Path, data: bytes) -> str:
    """An archive of `headwaiter record`, given as its files, each below a line of `%%%% NAME`."""
    _, *rest = _PART.split(data)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, part in zip(rest[::2], rest[1::2], strict=True):
            entry = tarfile.TarInfo(name.decode())
            # The line's end that goes before the next name is no part of the file.
            entry.size = max(0, len(part) - 1)
            tar.addfile(entry, io.BytesIO(part[:-1]))
    path = folder / "input"
    path.write_bytes(content.getvalue())

    def action() -> str:
        trace = load_trace(path, format="recording", keep_good=zlib.crc32(data) % 5 == 0)
        sound(trace)
        same_when_written(trace, path)
        return trace_kind(trace)

    return judge(path, action)


# --- job files ---

_SMALL = ConstantDrive(100_000, 1 << 24)
_FILE = re.compile(rb"^%%%% (\w{1,20}(?:\.\w{1,20})?)\n", re.MULTILINE)


def files(folder: Path, data: bytes, first: str) -> Path:
    """Several files in one input, each below a line of `%%%% NAME`; the first is what comes before. Its path."""
    for path in folder.iterdir():
        path.unlink()
    head, *rest = _FILE.split(data)
    (folder / first).write_bytes(head)
    for name, content in zip(rest[::2], rest[1::2], strict=True):
        (folder / name.decode()).write_bytes(content)
    return folder / first


def _job(folder: Path, data: bytes) -> str:
    # What is allowed takes seconds at the most, and here that would be too long.
    jobs._MOST_PROCESSES, jobs._MOST_FILES, jobs._MOST_IOS = 2000, 20_000, 100_000
    path = files(folder, data, "input")

    def action() -> str:
        load = jobs.load_jobs(path, _SMALL.sectors)
        c_options, _keep = _options(catalogue()["noop"], Options())
        run = ffi.gc(lib.hws_new(c_options), lib.hws_free)
        assert _SMALL.attach(run) == 0
        for task in load.tasks:
            assert task.name.isprintable()
            assert lib.hws_add_task(run, task.id, task.ioprio, task.share, task.exits) >= 0
        status = load.attach(run)
        if status < 0:
            raise Problem(f"{path}: {ffi.string(lib.hws_error(run)).decode()}")
        status = lib.hws_run(run, 300)
        return f"{status} {len(load.jobs).bit_length()} {len(load.notes)} {_job_kind(load)}"

    return judge(path, action)


def _job_kind(load: jobs.JobLoad) -> str:
    """What the first job is like: of each of its numbers, whether it is 0, 1 or more."""
    fields = load.jobs[0].fields.items()
    return "".join(str(min(2, v)) for k, v in fields if isinstance(v, int) and not k.endswith(("_ns", "seed")))


def _generated(folder: Path, data: bytes) -> str:
    """Parameters; nothing is played, for what they allow may take a minute."""
    path = folder / "input"

    def action() -> str:
        return given_parameters(path, data)[0]

    return judge(path, action) if looks_generated(data) else "something else"


# --- drives ---


def _toml(folder: Path, data: bytes) -> str:
    path = files(folder, data, "input.toml")

    def action() -> str:
        drive = load(path)
        _use(drive)
        # Profiles that name files beside them find them again only there.
        text = toml_text(drive.data, "again")
        again = from_toml(
            parse_toml(str(path), text.encode()),
            drive.name,
            str(path),
            lambda name: load(folder / name) if name.endswith(".toml") else open_profile(name),
        )
        assert again.facts == drive.facts, "written again, it is another drive"
        return f"{drive.model.name} {drive.facts[1]} {drive.facts[2]} {sorted(drive.data)}"

    return judge(path, action)


def open_profile(name: str) -> Profile:
    """A bundled drive."""
    drive = open_drive(name)
    assert isinstance(drive, Profile)
    return drive


def _use(drive: Profile) -> None:
    """What commands do with any drive."""
    sectors, depth, _ = drive.facts
    assert 0 < sectors <= MAX_SECTOR and 1 <= depth <= 1024
    assert all(a[0] < b[0] for a, b in zip(drive.positions, drive.positions[1:], strict=False))
    c_options, _keep = _options(catalogue()["noop"], Options())
    run = ffi.gc(lib.hws_new(c_options), lib.hws_free)
    assert drive.attach(run) == 0


def _parv(folder: Path, data: bytes) -> str:
    path = files(folder, data, "input.parv")

    def action() -> str:
        profile, name = convert(path, as_disksim=bool(zlib.crc32(data) & 1))
        profile["description"] = name
        text = toml_text(profile, f"{name}\nfrom a test")
        drive = from_toml(parse_toml(str(path), text.encode()), "", str(path))
        _use(drive)
        return f"{drive.facts[1]} {profile['geometry']['sparing']} {profile['read_ahead']['mode']} {profile['queue']}"

    return judge(path, action)


def _validation(folder: Path, data: bytes) -> str:
    path = folder / "input"
    path.write_bytes(data)

    def action() -> str:
        measured = read_trace(path)
        v = validate(_validated(), measured, str(path))
        for value in (v.demerit_ms, v.mean_error_ms, v.max_error_ms, v.demerit_ms / v.mean_measured_ms):
            assert np.isfinite(value), "a figure that is no number"
        return f"ok {len(measured.op).bit_length()} {v.max_simulated_ms > v.max_measured_ms}"

    return judge(path, action)


@cache
def _validated() -> Profile:
    return open_profile("barracuda-80g")


# --- conformance ---


def _conformance(folder: Path, data: bytes) -> str:
    path = folder / "input"

    def action() -> str:
        made = decisions.parse(path, data)
        try:
            verdict = check.check(made)
        except Problem as e:
            raise Problem(str(e) if str(e).startswith(str(path)) else f"{path}: {e}") from None
        if len(data) < 2000 and zlib.crc32(data) % 16 == 0:
            text = lzma.decompress(encode(made))
            assert decisions.parse(path, text) == made, "written again, it is another recording"
        return f"{verdict.scheduler} {verdict.requests.bit_length()} {sorted(verdict.kinds)} {verdict.refusals.bit_length()}"

    return judge(path, action)


# --- what the scheduler `was` is given, and tables of any scheduler ---


def _was(folder: Path, data: bytes) -> str:
    """A configuration, taken as `--set config=FILE` takes it: what is read is what core takes, and what is written again."""
    path = folder / "was.toml"
    path.write_bytes(data)

    def action() -> str:
        cells = find("was").tables["config"].read(path, READERS)
        config = load_config(path)
        assert _again(path, to_toml(config)) == config, "written again, it is another configuration"
        _in_force("was", "config", cells)
        return f"{config.history} {config.classes.bit_length()} {len(config.spatial)} {len(config.temporal)} {len(config.made)}"

    return judge(path, action)


def _again(path: Path, text: str) -> Config:
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def _table(folder: Path, data: bytes) -> str:
    """Rows as text: `config` of was if the input has letters, else `positions`, which all have."""
    path = folder / "rows"
    path.write_bytes(data)

    def action() -> str:
        name = "config" if re.search(rb"[a-z]{3}", data) else "positions"
        table = find("was").tables[name]
        cells = table.read(path)
        for brief in (False, True):
            assert np.array_equal(table.parse(str(path), table.show(cells, brief).encode()), cells), "written again, other rows"
        _in_force("was", name, cells)
        return f"{name} {len(cells).bit_length()}"

    return judge(path, action)


def _in_force(scheduler: str, table: str, cells: NDArray[np.int64]) -> None:
    """The rows, given to a queue that has a request of its own to decide on."""
    policy = Policy(scheduler, {table: cells})
    policy.start_task(1, 0)
    for now, sector in enumerate((8, 1 << 30, 16)):
        policy.insert(Request(sector, 8, 0, 1, 1), now)
        taken = policy.dispatch(now)
        assert taken is not None
        policy.complete(taken, now)
    policy.set_table(table, cells)


def _matrix(folder: Path, data: bytes) -> str:
    path = folder / "matrix"
    path.write_bytes(data)

    def action() -> str:
        matrix = load_matrix(path)
        made = matrix.made
        for toml in (False, True):
            path.write_text(to_text(matrix, toml), encoding="utf-8")
            again = load_matrix(path)
            assert again.made == made and again.classifier == matrix.classifier and again.bucket_us == matrix.bucket_us
            assert np.array_equal(again.counts, matrix.counts), "written again, it is another matrix"
        said = f"{matrix.classes.bit_length()} {matrix.buckets.bit_length()} {len(matrix.populated).bit_length()}"
        try:
            chosen = designate(matrix, 4000, 0)
            assert 0 <= chosen.failures <= chosen.waits and len(chosen.wait_us) == matrix.classes
            heuristic(matrix, 0)
            classes = configured(2, [[0, 1]], [[0, 0]], [0] * matrix.classes)
            config = designated(classes, chosen, matrix.made)
            assert _again(path, to_toml(config)) == config, "what is designated cannot be read"
        except Problem as e:
            said += behaviour(str(e))
        return said

    return judge(path, action)


# --- what selectors go by ---


def _measured(folder: Path, data: bytes) -> str:
    """Throughput that was measured beforehand: by `rank`, by `table`, by iozone. Whatever is read can be asked."""
    path = folder / "measured"
    path.write_bytes(data)

    def by_size() -> str:
        found = read_ranking(path)
        assert found.at(1.0) and found.at(1e12)
        return f"sizes {len(found.rates).bit_length()}"

    def by_table(read: Callable[[], ByTable]) -> str:
        found = read()
        assert all(found.cell(one.operation, one.file_kib, one.record_kib) == one for one in found.rates)
        return f"cells {len(found.rates).bit_length()} {len({one.operation for one in found.rates})}"

    ways = (by_size, lambda: by_table(lambda: read_table(path)), lambda: by_table(lambda: read_iozone({"none": path})))
    return " ".join(judge(path, way) for way in ways)


# --- the command line's own small languages ---


def _set(folder: Path, data: bytes) -> str:
    """Lines, each an option and its value: `--set` for compare, `--share` and `--drive constant:`."""
    said = []
    for line in data.decode("utf-8", "surrogateescape").split("\n")[:8]:
        option, _, value = line.partition(" ")

        def action(option: str = option, value: str = value) -> str:
            match option:
                case "share":
                    return str(len(parse_shares((value,))))
                case "drive":
                    drive = open_drive("constant:" + value)
                    return drive.name[:9]
                case _:
                    chosen = settings_of((value,), list(catalogue()), READERS)
                    for name, tunables in chosen.items():
                        c_options, _keep = _options(catalogue()[name], Options())
                        if tunables:
                            run = ffi.gc(lib.hws_new(c_options), lib.hws_free)
                            for key, number in tunables.items():
                                assert lib.hws_set(run, key.encode(), number) >= 0
                    return f"{sum(map(bool, chosen.values()))}"

        try:
            said.append(action())
        except Problem as e:
            assert str(e).isprintable() and len(str(e)) < 2100
            said.append(behaviour(str(e)))
    return " ".join(said)


_RUNS: dict[str, Callable[[Path, bytes], str]] = {
    **{name: trace_target(name) for name in formats()},
    "columns": _columns,
    "recording": _recording,
    "packed": _packed,
    "fio": _job,
    "generated": _generated,
    "toml": _toml,
    "parv": _parv,
    "validation": _validation,
    "conformance": _conformance,
    "was": _was,
    "table": _table,
    "matrix": _matrix,
    "measured": _measured,
    "set": _set,
}
TARGETS: dict[str, Target] = {name: Target(name, run, words(name), RECORDS.get(name)) for name, run in _RUNS.items()}
