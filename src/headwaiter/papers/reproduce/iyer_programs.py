# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Iyer & Druschel's experiments with real programs on a file system, in the lab."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from headwaiter.papers.reproduce.bench import Bench, ratio
from headwaiter.papers.reproduce.claims import Check, Claim, Investigation, PaperTable, Row, least
from headwaiter.papers.reproduce.experiment import Experiment
from headwaiter.papers.reproduce.guests import run_programs
from headwaiter.papers.reproduce.iyer import DOCUMENT, DRIVE, WITH, WITHOUT
from headwaiter.papers.reproduce.lists import surge, web_server
from headwaiter.papers.reproduce.made_files import object_files

OBJECTS, OBJECT_BYTES = 200, 12000
Times = Mapping[str, tuple[float, float]]
"""By work: seconds with anticipation, and without."""


def builds(bench: Bench) -> Times:
    """Two linkers, and then two archivers, each on a tree of object files of its own."""
    files = object_files(bench.count(OBJECTS, 40), OBJECT_BYTES)
    found = run_programs(bench, "iyer-builds", DRIVE, (WITH, WITHOUT), files=files)
    return {work: (found[WITH].figures[work], found[WITHOUT].figures[work]) for work in ("build", "backup")}


def _saved(times: tuple[float, float]) -> float:
    return 1 - ratio(*times)


def _builds_table(found: Times) -> list[PaperTable]:
    paper = {"build": None, "backup": 0.68}
    rows: list[Row] = [[work, paper[work], *times, _saved(times)] for work, times in found.items()]
    columns = ["two at once", "paper: share of time saved", "with: s", "without: s", "ours: share of time saved"]
    return [PaperTable("Builds and backups, with and without anticipation", columns, rows)]


SERVERS, REQUESTS, WEB_FILES = 16, 40, 3000
MEMORY_MIB = 64
BLOCK_KIB = 8
"""A block of FFS. FreeBSD reads ahead no more than that at the beginning of a file; Linux reads 128 KiB."""


def _web(bench: Bench, readahead_kib: int, asked: Callable[[bool], bytes]) -> Times:
    """By read() and by mmap(): `asked` is what the processes send, out of memory or not."""
    given: dict[str, int | str] = {
        "MEMORY_MIB": MEMORY_MIB,
        "READAHEAD_KIB": readahead_kib,
        "FEATURES": "^has_journal,^flex_bg",
    }
    out = {}
    for how in ("read", "mmap"):
        found = run_programs(bench, "list", DRIVE, (WITH, WITHOUT), given, {"/lab/list": asked(how == "mmap")})
        out[how] = (found[WITH].elapsed_s, found[WITHOUT].elapsed_s)
    return out


def web(bench: Bench, readahead_kib: int = BLOCK_KIB) -> Times:
    """A web server whose files do not fit its memory, by read() and by mmap()."""
    return _web(bench, readahead_kib, lambda mapped: web_server(SERVERS, bench.count(REQUESTS), WEB_FILES, mapped))


CLIENTS, EACH, ASKED_FILES = 48, 16, 6000


def clients(bench: Bench) -> Times:
    """A web server with 48 clients, whose requests have the shape of a published model of traces."""
    return _web(bench, BLOCK_KIB, lambda mapped: surge(CLIENTS, bench.count(EACH), ASKED_FILES, mapped))


def _gain(times: tuple[float, float]) -> float:
    """Return the gain in throughput of the same work."""
    return ratio(times[1], times[0]) - 1


def _gains_table(title: str, found: Times) -> PaperTable:
    rows: list[Row] = [[work, *times, _gain(times)] for work, times in found.items()]
    return PaperTable(title, ["", "with: s", "without: s", "gain of throughput"], rows)


def _read_ahead(bench: Bench, _: Times) -> Investigation:
    return Investigation(
        "Linux reads a small file in one go: nothing is left to wait for. With the read-ahead of FreeBSD 4.3 a file's blocks are"
        " asked for one after another.",
        _gains_table("The web server with a read-ahead of 128 KiB", web(bench, 128)),
    )


ROWS, SELECTS, SPAN = 40000, 200, 100


def _selects(client: int, count: int) -> list[bytes]:
    """Selections of rows that follow each other, anywhere in the table."""
    dice = random.Random(client)
    starts = (dice.randrange(ROWS - SPAN) for _ in range(count))
    return [f"SELECT sum(length(word)) FROM t WHERE id BETWEEN {k} AND {k + SPAN};\n".encode() for k in starts]


UPDATES = 40


def _updates(client: int, count: int) -> list[bytes]:
    """Updates of rows that follow each other, anywhere in the table, and left to the page cache."""
    dice = random.Random(client)
    starts = (dice.randrange(ROWS - SPAN) for _ in range(count))
    updates = (f"UPDATE t SET word = printf('%01000d', {n}) WHERE id BETWEEN {k} AND {k + SPAN};\n" for n, k in enumerate(starts))
    return [b"PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;\n", *(update.encode() for update in updates)]


def _database(bench: Bench, statements: Callable[[int, int], list[bytes]], count: int) -> Times:
    clients = {f"client{client}": statements(client, bench.count(count)) for client in (1, 2)}
    lists = {**clients, "one": [one for pair in zip(*clients.values(), strict=True) for one in pair]}
    files = {f"/lab/{name}.sql": b"".join(of) for name, of in lists.items()}
    found = run_programs(bench, "iyer-database", DRIVE, (WITH, WITHOUT), {"ROWS": ROWS}, files)
    return {which: (found[WITH].figures[which], found[WITHOUT].figures[which]) for which in ("one", "two")}


def database(bench: Bench) -> Times:
    """Two clients that select from one database, and each from its own."""
    return _database(bench, _selects, SELECTS)


def updates(bench: Bench) -> Times:
    """Run both programs with updates."""
    return _database(bench, _updates, UPDATES)


EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "iyer-builds",
        DOCUMENT,
        "two linkers at once, and two archivers at once",
        DRIVE,
        {"lab": builds},
        _builds_table,
        [
            Claim(
                "ID7",
                "share of the time that anticipation saves",
                "0.68",
                lambda m: [Check(_saved(times), least(0.3), work) for work, times in m.items()],
                essential=True,
            )
        ],
        {"lab": 60},
        notes={"lab": f"ld and tar on two trees of {OBJECTS} object files, on ext4 without a journal"},
    ),
    Experiment(
        "iyer-web",
        DOCUMENT,
        "a web server with a large working set, through read() and through mmap()",
        DRIVE,
        {"lab": web},
        lambda m: [_gains_table("The web server", m)],
        [
            Claim(
                "ID5",
                "gain of throughput from anticipation",
                "positive, mmap more",
                lambda m: [
                    *(Check(_gain(times), least(0.05), how) for how, times in m.items()),
                    Check(ratio(_gain(m["mmap"]), _gain(m["read"])), least(1), "mmap's / read's"),
                ],
                why=_read_ahead,
                always=True,
            )
        ],
        {"lab": 60},
        printed=False,
        notes={
            "lab": f"{SERVERS} processes send files at random of {WEB_FILES} in {MEMORY_MIB} MiB of memory, without a network;"
            f" read-ahead of {BLOCK_KIB} KiB, a block of FFS; folders lie apart, as FFS puts them"
        },
    ),
    Experiment(
        "iyer-clients",
        DOCUMENT,
        "a web server with 48 clients, requests of a published shape, through read() and through mmap()",
        DRIVE,
        {"lab": clients},
        lambda m: [_gains_table("The web server with 48 clients", m)],
        [
            Claim(
                "ID13",
                "48 clients: gain of throughput from anticipation",
                "0.29 to 0.71",
                lambda m: [Check(_gain(times), least(0.1), how) for how, times in m.items()],
            )
        ],
        {"lab": 90},
        printed=False,
        notes={
            "lab": f"{CLIENTS} processes; sizes and popularity of {ASKED_FILES} files as in SURGE (Barford and Crovella, 1998);"
            f" {MEMORY_MIB} MiB of memory; read-ahead of {BLOCK_KIB} KiB"
        },
    ),
    Experiment(
        "iyer-updates",
        DOCUMENT,
        "updates by two clients, of one database and of two",
        DRIVE,
        {"lab": updates},
        lambda m: [_gains_table("Two clients that update, by databases", m)],
        [
            Claim(
                "ID14",
                "updates: gain of throughput from anticipation",
                "0.02, 0.05",
                # One database has one server, and nobody to be deceived by.
                lambda m: [
                    Check(_gain(m["one"]), least(-0.02), "one database"),
                    Check(_gain(m["two"]), least(0), "two"),
                ],
            )
        ],
        {"lab": 60},
        printed=False,
        notes={"lab": f"as the selections, {SPAN + 1} rows an update; what is written waits for the kernel's write-back"},
    ),
    Experiment(
        "iyer-database",
        DOCUMENT,
        "selections by two clients, from one database and from two",
        DRIVE,
        {"lab": database},
        lambda m: [_gains_table("Two clients, by databases", m)],
        [
            Claim(
                "ID6",
                "gain of throughput from anticipation, two databases less one",
                "yes",
                lambda m: [Check(_gain(m["two"]) - _gain(m["one"]), least(0))],
            )
        ],
        {"lab": 60},
        printed=False,
        notes={
            "lab": f"SQLite for MySQL; a table of {ROWS} rows of 1 kB, {SPAN} successive ones a selection; a database has one"
            " server, as to FreeBSD's kernel, which knew nothing of MySQL's threads"
        },
    ),
)
