# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Generated workloads: the machine on which programs are played, the eight workloads themselves, and their parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run, told, write
from handmade import printed

from headwaiter.base.errors import Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.constants import META, SYNC, Op
from headwaiter.engine.processor import MEASURED
from headwaiter.engine.sim import Forest, Options, simulate
from headwaiter.generated import GENERATORS, generate
from headwaiter.generated.files import GROUP_PAGES, File, FileSystem, Full
from headwaiter.generated.model_machine import (
    COPY_NS,
    MS,
    NEAR_NS,
    PAGE_NS,
    WAKE_NS,
    ModelMachine,
    Process,
    Program,
    S,
    _first_window,
)
from headwaiter.study.results import summarise
from headwaiter.study.workload import Reading, find_workload, read_workload

SECTORS = 1 << 27
SMALL: dict[str, dict[str, float]] = {
    "kva": {"file_mib": 64, "passes": 2},
    "cold-boot": {"services": 8, "desktop": 4, "documents": 2, "windows": 1, "libraries": 80, "settings": 8},
    "andrew": {"runs": 2},
    "kernel-compile": {"sources": 60, "headers": 200, "headers_each": 40},
    "bonnie": {"file_mib": 32, "seeks": 200},
    "multi-user": {"requests": 150, "small_files": 60, "large_files": 20},
    "db": {"data_mib": 20, "log_mib": 5, "common_log_mib": 10},
    "scientific": {"operations": 100, "file_percent": 20},
    "seelam-chunks": {"files": 80, "instances": 2, "stream_mib": 48},
    "web-server": {"files": 400, "operations": 100},
    "mail-server": {"files": 400, "operations": 100},
    "file-server": {"files": 400, "operations": 100},
    "metadata-server": {"files": 400, "operations": 100},
}


def load(name: str, seed: int = 0, **changed: Any) -> Forest:
    path = find_workload(name)
    parameters: dict[str, Any] = {**SMALL[name], **changed}
    return generate(path, path.read_bytes(), SECTORS, seed, **parameters)


def reads(forest: Forest, name: str = "") -> list[int]:
    """Rows of data that tasks whose names begin so read."""
    mine = {i for i, task in enumerate(forest.tasks) if task.name.startswith(name)}
    data = np.flatnonzero((forest.op == Op.READ) & (forest.flags & META == 0))
    return [int(i) for i in data if int(forest.task[i]) in mine]


# --- the machine ---


def machine(**given: Any) -> ModelMachine:
    return ModelMachine(np.random.default_rng(0), **given)


def played(*programs: Callable[[Process], Program], **given: int) -> Forest:
    m = machine(**given)
    for i, program in enumerate(programs):
        m.start(f"program-{i}", program)
    return m.play()


def rows(forest: Forest) -> list[tuple[int, int, int]]:
    """(parent, sector, pages) of each request."""
    return [(int(a), int(b), int(c) // 8) for a, b, c in zip(forest.parent, forest.sector, forest.sectors, strict=True)]


def test_a_file_that_is_read_in_sequence_comes_in_windows_that_grow() -> None:
    """Linux's: 4 pages at first, 8, 16, 32, and no more; the next is asked for when the one before is reached."""

    def program(me: Process) -> Program:
        file = File([(1000, 100)])
        for page in range(file.pages):
            yield from me.read(file, page)

    # The second is asked for on the first one's second page, each later one where the one before begins, before it is there.
    assert rows(played(program)) == [(-1, 1000, 4), (0, 1032, 8), (0, 1096, 16), (1, 1224, 32), (2, 1480, 32), (3, 1736, 8)]
    assert rows(played(program, readahead_kib=0)) == [(i - 1, 1000 + 8 * i, 1) for i in range(100)]


def test_a_read_larger_than_the_window_has_the_next_one_under_way() -> None:
    """As in Linux since 2.6.23, also at a place that nobody read before: while the first is awaited, the next is on its way."""

    def program(me: Process) -> Program:
        file = File([(0, 300)])
        yield from me.read(file, 100, 100)

    forest = played(program)
    # The first and the second at once; each later one on the first page of the one before, for which nobody has waited yet.
    assert rows(forest) == [(-1, 800, 32), (-1, 1056, 32), (0, 1312, 32), (1, 1568, 32), (2, 1824, 32)]
    assert rows(played(program, readahead_kib=512)) == [(-1, 800, 100)], "it fits, and is not in sequence"


def test_a_random_read_is_as_long_as_it_is_and_waits_for_what_is_under_way() -> None:
    file = File([(0, 100)])

    def program(me: Process) -> Program:
        yield from me.read(file, 50, 3)
        me.think(2 * MS)
        yield from me.read(file, 10)
        yield from me.read(file, 51)

    forest = played(program)
    assert rows(forest) == [(-1, 400, 3), (0, 80, 1)]
    assert forest.delay_ns.tolist() == [0, WAKE_NS + 3 * COPY_NS + 2 * MS]


def test_who_goes_on_where_it_was_gets_a_window() -> None:
    def program(me: Process) -> Program:
        file = File([(0, 100)])
        yield from me.read(file, 50)
        yield from me.read(file, 51)

    assert rows(played(program)) == [(-1, 400, 1), (0, 408, 4)]


def test_what_has_been_dirty_for_half_a_minute_is_written_back() -> None:
    def program(me: Process) -> Program:
        file, other = File([(0, 1)]), File([(1000, 20)])
        yield from me.write_all(file)
        for page in range(0, 20, 2):
            yield from me.read(other, page)
            me.think(10 * S)
            yield None

    forest = played(program, readahead_kib=0)
    (written,) = np.flatnonzero(forest.op == Op.WRITE)
    assert 30 * S < forest.time_ns[written] < 50 * S


def test_a_fault_reads_around_what_it_touches_and_only_what_is_not_there() -> None:
    file = File([(0, 100)])

    def program(me: Process) -> Program:
        yield from me.read(file, 45)
        yield from me.fault(file, 50)
        yield from me.fault(file, 60)

    assert rows(played(program)) == [(-1, 45 * 8, 1), (0, 34 * 8, 11), (0, 46 * 8, 20)]


def test_extents_are_requests_of_their_own() -> None:
    file = File([(1000, 2), (5000, 3)])

    def program(me: Process) -> Program:
        yield from me.read_all(file)
        yield from me.read_all(file)

    assert rows(played(program)) == [(-1, 1000, 2), (-1, 5000, 3)]
    assert [file.sector(p) for p in range(5)] == [1000, 1008, 5000, 5008, 5016]


def test_who_comes_second_finds_what_the_first_has_read_or_waits_for_it() -> None:
    file, other = File([(0, 4)]), File([(8000, 1)])

    def first(me: Process) -> Program:
        yield from me.read_all(file)

    def second(me: Process) -> Program:
        me.think(1)  # the first has just asked
        yield from me.read_all(file)
        yield from me.read_all(other)

    forest = played(first, second)
    assert rows(forest) == [(-1, 0, 4), (0, 8000, 1)] and forest.task.tolist() == [0, 1]
    assert forest.delay_ns[1] == WAKE_NS + 4 * COPY_NS


def test_children_begin_where_their_parents_are_and_those_go_on_where_children_end() -> None:
    files = [File([(1000 * i, 1)]) for i in range(4)]

    def child(me: Process) -> Program:
        yield from me.read_all(files[1])
        me.think(7 * MS)

    def daemon(me: Process) -> Program:
        yield from me.read_all(files[2])

    def parent(me: Process) -> Program:
        yield from me.read_all(files[0])
        me.think(MS)
        yield from me.run("child", child)
        me.start("daemon", daemon)
        yield from me.read_all(files[3])

    forest = played(parent)
    assert [(t.name, t.group) for t in forest.tasks] == [("program-0", 0), ("child", 0), ("daemon", 1)]
    asked = {int(s) // 1000: i for i, s in enumerate(forest.sector)}
    assert forest.parent[asked[1]] == asked[0] and forest.delay_ns[asked[1]] == WAKE_NS + COPY_NS + MS
    for later in (2, 3):
        assert forest.parent[asked[later]] == asked[1] and forest.delay_ns[asked[later]] == WAKE_NS + COPY_NS + 7 * MS


def test_dirty_pages_are_written_back_late_in_order_of_place_and_stop_who_dirties_more() -> None:
    file = File([(80_000, 600), (0, 100)])

    def program(me: Process) -> Program:
        yield from me.write_all(file)
        me.think(100 * S)
        yield from me.read_all(file)

    forest = played(program)
    assert (forest.op == Op.WRITE).all() and not (forest.flags & SYNC).any(), "what was written is not read"
    assert {forest.tasks[t].name for t in forest.task} == {"flusher"}
    assert [pages for _, _, pages in rows(forest)] == [100, 128, 128, 128, 128, 88]
    assert (np.diff(forest.sector.astype(np.int64)) > 0).all()
    assert forest.time_ns[0] >= 100 * S

    def many(me: Process) -> Program:
        for _ in range(3):
            yield from me.write_all(file)

    throttled = played(many, dirty_mib=1)
    assert [pages for _, _, pages in rows(throttled)[:3]] == [128, 128, 1], "256 pages may be dirty"
    assert {throttled.tasks[t].name for t in throttled.task[:3]} == {"program-0"}, "who dirties too much writes them back itself"
    assert throttled.time_ns[0] == 257 * COPY_NS and throttled.parent[:3].tolist() == [-1, -1, -1]
    assert throttled.parent[3] == 2, "who dirties as much again waits until that is on the disk"


def test_sync_waits_and_forget_forgets() -> None:
    file = File([(0, 8)])

    def program(me: Process) -> Program:
        yield from me.write_all(file)
        yield from me.sync()
        me.forget(file)
        yield from me.read_all(file)

    forest = played(program)
    assert forest.op.tolist() == [Op.WRITE, Op.READ] and forest.parent.tolist() == [-1, 0]


def test_no_more_writes_are_under_way_than_the_flusher_keeps() -> None:
    file = File([(i * 100, 1) for i in range(200)])

    def program(me: Process) -> Program:
        yield from me.write_all(file)

    assert played(program).parent.tolist() == [*[-1] * 64, *range(136)]


def test_the_machine_reads_one_thing_at_a_time() -> None:
    """If two ask at once, the second is served later: who waits for both goes on after that."""
    near, far = File([(8, 1)]), File([(800, 1)])
    m = machine()
    process = m.start("one", lambda me: iter(()))  # type: ignore[arg-type, return-value]
    (a,), (b,) = m.ask(process, far, 0, 1), m.ask(process, near, 0, 1)
    (c,) = m.ask(process, File([(16, 1)]), 0, 1)
    assert m.done_ns[b] == 2 * m.done_ns[a]
    assert m.done_ns[c] - m.done_ns[b] == NEAR_NS + PAGE_NS, "that goes on where the head is"


def test_a_folder_lies_in_one_group_and_names_a_hundred_files_in_a_block() -> None:
    system = FileSystem(np.random.default_rng(1), SECTORS)
    folder = system.folder()
    files = [folder.file(10_000) for _ in range(250)]
    groups = {file.sector(0) // (8 * GROUP_PAGES) for file in files}
    assert len(groups) == 1 and {file.pages for file in files} == {3}
    assert len({id(file.about[1][0]) for file in files}) == 3
    assert len({file.about[2] for file in files}) == 250 // 16 + 1
    starts = [file.sector(0) for file in files]
    assert starts == sorted(starts) and len(set(starts)) == 250
    large = folder.file(40 << 20)
    assert large.pages == 10240 and len(large.pieces(0, large.pages)) > 10, "in pieces"
    taken = sorted((sector, sector + pages * 8) for sector, pages in large.pieces(0, large.pages))
    assert all(end <= begin for (_, end), (begin, _) in pairwise(taken)), "nowhere twice"


def test_a_new_file_is_known_and_a_disk_is_finite() -> None:
    system = FileSystem(np.random.default_rng(1), GROUP_PAGES * 8)
    folder = system.folder()
    new, old = folder.new_file(1), folder.file(1)
    assert new.made and all(page in block.cached for block, page in new.about)
    assert not old.made and old.about[1][0].cached
    with pytest.raises(Full):
        folder.file(200 << 20)


# --- the workloads ---


@pytest.mark.parametrize("name", SMALL)
def test_one_seed_is_one_load_and_another_is_another(name: str) -> None:
    one, again, other = load(name), load(name), load(name, seed=1)
    columns = ("time_ns", "parent", "delay_ns", "task", "op", "flags", "sector", "sectors")
    assert one.tasks == again.tasks
    assert all(np.array_equal(getattr(one, c), getattr(again, c)) for c in columns)
    assert any(not np.array_equal(getattr(one, c), getattr(other, c)) for c in columns)
    assert (one.parent < np.arange(len(one.parent))).all() and (one.delay_ns >= 0).all()
    assert int((one.sector + one.sectors).max()) <= SECTORS


def anticipation(name: str, **changed: Any) -> dict[str, Any]:
    """What `as` by the rules of 2.6.12 and later comes to."""
    drive = open_drive("barracuda-80g")
    options = MEASURED.apply(Options(max_sectors=1024, nr_requests=256, join_arriving=True))
    return printed(summarise(simulate("as", drive, load(name, **changed), {"cooperation": 1}, options), False))


@pytest.mark.parametrize("name", SMALL)
def test_each_runs_and_is_waited_for(name: str) -> None:
    found = anticipation(name)
    waits = found["anticipation"]
    assert waits["A_S"] > waits["A_F"] * 0.3 and waits["A_F"] > 0
    assert found["elapsed_s"] > 1


def test_kva_is_two_readers_of_strides_of_whom_one_request_in_eight_is_late() -> None:
    forest = load("kva")
    two = [np.array(reads(forest, f"reader-{i}")) for i in range(2)]
    for mine in two:
        assert len(mine) in (511, 512)
        strides = np.diff(forest.sector[mine].astype(np.int64))
        assert np.median(strides) == 256, "128 KiB"
        delay = forest.delay_ns[mine] / MS
        late = delay > 6
        assert late.sum() == 64 and np.median(delay[~late]) == pytest.approx(WAKE_NS / MS, abs=0.01)
        assert np.median(delay[late]) == pytest.approx(6 + 1.2 * np.log(2), abs=0.25)
        assert (forest.sectors[mine[1:]] != 8).sum() <= 1, "no read-ahead, but where the window of the first page ends"
    assert forest.sector[two[0]].max() < forest.sector[two[1]].min() + (1 << 20)
    written = forest.op == Op.WRITE
    assert int(forest.sectors[written].sum()) == 64 << 11 and np.flatnonzero(written).max() < two[0][0], "made before"


def test_kva_fails_one_wait_in_eight_at_six_milliseconds() -> None:
    waits = anticipation("kva")["anticipation"]
    assert waits["A_F"] / waits["A"] == pytest.approx(1 / 8, abs=0.03)
    assert 5 <= waits["T_F_ms"] / waits["A_F"] <= 6.5


def test_andrew_is_eight_processes_whose_programs_are_born_and_die() -> None:
    forest = load("andrew")
    names = [task.name for task in forest.tasks]
    assert [names.count(name) for name in ("andrew", "mkdir", "cp", "find", "grep", "cc")] == [16] * 5 + [16 * 17]
    assert len({forest.tasks[i].group for i, name in enumerate(names) if name == "cp"}) == 8
    asking = {names[t] for t in forest.task[forest.op == Op.READ]}
    assert asking == {"cp"}, "all others find what was copied in memory"


def test_kernel_compile_keeps_four_jobs_of_short_lived_compilers() -> None:
    forest = load("kernel-compile")
    compilers = [task for task in forest.tasks if task.name == "cc1"]
    assert len(compilers) == 60 and len({task.group for task in compilers}) == 4
    first = {int(t): int(ns) for t, ns in zip(forest.task[::-1], forest.time_ns[::-1], strict=True)}
    assert len({t for t in first if forest.tasks[t].name == "cc1"}) >= 55
    again = load("kernel-compile", headers_each=0)
    assert len(reads(again)) < len(reads(forest)) / 2, "headers are read, and once"
    assert len(set(forest.sector[reads(forest)].tolist())) == len(reads(forest))


def test_cold_boot_starts_services_side_by_side_and_programs_after_them() -> None:
    forest = load("cold-boot")
    names = [task.name for task in forest.tasks]
    wanted = {"service": 8, "kde": 4, "kwrite": 2, "konqueror": 1, "xmms": 1, "konsole": 1, "soffice": 1, "daemon": 8}
    assert {name: names.count(name) for name in wanted} == wanted
    assert len({task.group for task in forest.tasks if task.name == "service"}) == 4
    begin = {name: min(forest.time_ns[i] for i in reads(forest, name)) for name in ("service", "kde", "xmms", "soffice")}
    assert begin["service"] < begin["kde"] < begin["xmms"] < begin["soffice"]
    assert len({int(forest.task[i]) for i in reads(forest, "daemon")}) == 8, (
        "half of its settings a service reads when it has started"
    )
    assert (forest.flags & META).any() and len(set(forest.sector.tolist())) == len(forest.sector), "nothing is read twice"


def test_multi_user_reads_pages_one_by_one_without_read_ahead() -> None:
    forest, single = load("multi-user"), load("multi-user", readahead_kib=0)
    share = len(reads(forest)) / (8 * 150)
    assert share == pytest.approx(0.6, abs=0.05)
    assert set(forest.sectors[reads(forest)].tolist()) == {32} or np.median(forest.sectors[reads(forest)]) == 32
    assert len(reads(single)) == pytest.approx(4 * len(reads(forest)), rel=0.1)
    assert (single.sectors[reads(single)] == 8).all()
    assert not (forest.flags & META).any(), "the users know their files"
    assert (load("multi-user", known_percent=0).flags & META).any()


def pages(forest: Forest, op: Op) -> int:
    data = (forest.op == op) & (forest.flags & META == 0)
    return int(forest.sectors[data].sum()) // 8


def test_servers_do_what_their_profile_says() -> None:
    """Files of 4 to 64 KiB, 34 in the mean; 400 operations: reads and writes are of whole files."""
    web, mail, file, metadata = (load(f"{name}-server") for name in ("web", "mail", "file", "metadata"))
    assert pages(web, Op.WRITE) == 0 and pages(metadata, Op.READ) == 0
    # So many of 400 files are there after 400 draws: 1 - 1/e.
    assert pages(web, Op.READ) == pytest.approx(400 * 0.63 * 8.5, rel=0.15)
    assert pages(file, Op.READ) < pages(web, Op.READ) and pages(file, Op.WRITE) == pytest.approx(80 * 8.5, rel=0.3)
    assert pages(mail, Op.WRITE) > 100 * 8.5 and pages(mail, Op.READ) > 80 * 8.5
    # What is created has its data and the blocks that tell of it; the flusher writes them, not who made them.
    assert pages(metadata, Op.WRITE) > 120 * 8.5
    for forest in (web, mail, file, metadata):
        assert sum(task.name.startswith("thread-") for task in forest.tasks) == 4


def test_a_server_with_little_memory_reads_again() -> None:
    much, little = (load("web-server", operations=1000, memory_mib=mib) for mib in (100, 1))
    sectors = much.sector[reads(much)]
    assert len(set(sectors.tolist())) == len(sectors), "what was read stays"
    assert pages(much, Op.READ) < 400 * 9.5 < 3000 * 8.5 < pages(little, Op.READ)


def test_a_server_can_delete_all_that_it_has() -> None:
    forest = load("mail-server", files=10, read=50, create=0, delete=50)
    assert 0 < len(reads(forest)) < 40 and pages(forest, Op.WRITE) > 0
    assert pages(load("web-server", read=0), Op.READ) > 0, "without any kind it reads"


def test_db_reads_the_data_once_and_fills_its_logs() -> None:
    forest = load("db")
    assert int(forest.sectors[reads(forest)].sum()) == 20 << 11
    assert len(set(forest.sector[reads(forest)].tolist())) == len(reads(forest))
    written = int(forest.sectors[forest.op == Op.WRITE].sum()) * 512 / (1 << 20)
    assert written == 5 * 5 + 10
    think = forest.delay_ns[[i for i in reads(forest) if forest.parent[i] >= 0]] / MS
    assert np.median(think) == pytest.approx(2.6, abs=0.6), "two halves of a lognormal of 2 ms, which add up to more than one"


def test_scientific_reads_and_writes_in_chunks_of_two_sizes() -> None:
    forest = load("scientific")
    single = load("scientific", readahead_kib=4096)
    sizes = single.sectors[reads(single)]
    assert {64, 1024} <= set(sizes.tolist()), "32 and 512 KiB, when one request may be as large"
    mine = [set(single.sectors[reads(single, task.name)].tolist()) for task in single.tasks if task.name.startswith("solver")]
    assert sum({64, 1024} <= one for one in mine) > len(mine) / 2, "a size is drawn for each file, and not one file for a process"
    assert int(forest.sectors[forest.op == Op.WRITE].sum()) > 0


def test_bonnie_writes_rewrites_and_reads() -> None:
    forest = load("bonnie")
    size = 32 << 11
    seeker = np.array([task.name.startswith("seeker") for task in forest.tasks])[forest.task]
    read, written = (~seeker & (forest.op == op) for op in (Op.READ, Op.WRITE))
    assert int(forest.sectors[read].sum()) == 3 * size, "rewritten, read byte by byte, read in blocks"
    assert 3 * size <= int(forest.sectors[written].sum()) <= 3 * size + 20 * 16, "and a tenth of the blocks read at random"
    slow, fast = (forest.delay_ns[forest.op == Op.READ][k * size // 256 // 1 : (k + 1) * size // 256] for k in (1, 2))
    assert np.median(slow) > np.median(fast)
    sought = seeker & (forest.op == Op.READ)
    assert {forest.tasks[t].name for t in forest.task[sought]} == {"seeker-0", "seeker-1", "seeker-2"}
    assert 180 <= sought.sum() <= 200 and set(forest.sectors[sought]) == {16}, "a few are in memory already"
    assert len(np.unique(forest.sector[sought])) == sought.sum()


def test_chunks() -> None:
    """Each file is read by a new process of its find's thread of control; find looks the files up; the stream is read once."""
    forest = load("seelam-chunks")
    groups = {task.name: task.group for task in forest.tasks if task.name.startswith("find-")}
    cats = [task.group for task in forest.tasks if task.name == "cat"]
    assert sorted(cats) == sorted([groups["find-0"]] * 80 + [groups["find-1"]] * 80)
    names = [forest.tasks[t].name for t in forest.task]
    of_cats = [task for task, name in zip(forest.task.tolist(), names, strict=True) if name == "cat"]
    assert len(set(of_cats)) == 160, "each reads its own file"
    stream = np.array([name == "stream" for name in names])
    assert int(forest.sectors[stream].sum()) == 48 * 2048
    # find's own requests: a block for each of five folders, and three of inodes, of which 32 lie in a block.
    assert sum(name.startswith("find-") for name in names) == 2 * (5 + 3)
    # Folders of a subsystem lie in one group of blocks, those of the next in another one.
    assert len(np.unique(_places(forest))) == 2 and len(np.unique(_places(load("seelam-chunks", beside=1)))) > 4


def _places(forest: Forest) -> list[int]:
    """Groups of blocks in which the chain's files lie."""
    cat_rows = np.array([forest.tasks[t].name == "cat" for t in forest.task])
    found: list[int] = (forest.sector[cat_rows] // (GROUP_PAGES * 8)).tolist()
    return found


# --- as workloads ---


def test_they_go_where_workloads_go(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    small = find_workload("db").read_text().replace("data_mib = 200", "data_mib = 10").replace("= 50 ", "= 5 ")
    path = write(tmp_path / "mine.toml", small)
    first, again = (told(capfd, "run", path, "-s", "as", "--seeds", 0) for _ in range(2))
    other = told(capfd, "run", path, "-s", "as", "--seeds", 0, "--seed", 1)
    assert first == again and first["results"] != other["results"]
    assert {task["name"] for task in first["results"][0]["tasks"]} == {"flusher", *(f"client-{i}" for i in range(5))}
    assert run(capfd, "run", path, "-s", "as", "--replay", "open") == (
        2, "", f"headwaiter: {path}: --replay is for traces, and this is a generated workload\n",
    )  # fmt: skip


def test_every_generator_has_a_bundled_workload() -> None:
    found = {re.search(r'generator = "(.*)"', find_workload(name).read_text()).group(1) for name in SMALL}  # type: ignore[union-attr]
    assert found == set(GENERATORS)
    work = read_workload(find_workload("db"), open_drive("constant:5"), Reading())
    assert isinstance(work.load, Forest) and work.replay is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("processes = 5", "processes = 0"), r":6: processes: must be a whole number from 1 to 64"),
        (("data_mib = 200 ", "data_mib = 5000 "), r":7: data_mib: must be a whole number from 1 to 4096"),
        (("processes = 5", "processes = 1.5"), r":6: processes: must be a whole number"),
        (("think_ms = 2.8 ", "think_ms = nan "), r":11: think_ms: must be a number from 0 to 1000"),
        (("processes = 5", "threads = 5"), r":6: unknown key 'threads' \(known: readahead_kib, "),
        (("processes = 5\n", ""), r": processes is missing"),
        (("processes = 5", "processes = [5]"), r":6: 'processes = \[5\]' is neither KEY = NUMBER"),
        (("processes = 5", "processes = 5\nprocesses = 5"), r": Cannot overwrite a value \(at line 7"),
        (('"database"', '"nothing"'), r": generator 'nothing' is unknown \(known: kva, "),
        (('"database"', "5"), r":3: generator: must be a name"),
        (("data_mib = 200 ", "data_mib = 4096 "), r": its files do not fit on a drive of 1000000 sectors"),
        (("# DB", "# \xff"), r":1: not UTF-8"),
    ],
)
def test_wrong_parameters_are_told(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    text = find_workload("db").read_text()
    assert change[0] in text
    path = write(tmp_path / "mine.toml", text.replace(*change).encode("latin-1"))
    with pytest.raises(Problem, match=re.escape(str(path)) + message):
        generate(path, path.read_bytes(), 1_000_000, 0)


@pytest.mark.parametrize(("wanted", "pages"), [(1, 4), (2, 4), (3, 8), (4, 8), (5, 16), (8, 16), (9, 32), (32, 32)])
def test_the_first_window_of_read_ahead(wanted: int, pages: int) -> None:
    """It is the next power of two, by four up to a page and by two up to eight, and else all 128 KiB (mm/readahead.c)."""
    assert _first_window(wanted, 32) == pages
