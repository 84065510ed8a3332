# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables and CSV: which figure stands under which head."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from command import good, names_of, told, write
from rich.console import Console
from rich.table import Table

from headwaiter.report.columns import percents, told_margin
from headwaiter.report.html import html_table
from headwaiter.report.tables import brief, csv_rows, hidden, show, table, tasks_table, write_csv
from headwaiter.study.results import shares
from headwaiter.study.schema import (
    Answer,
    Anticipation,
    Criterion,
    Direction,
    Disk,
    GroupRow,
    Judgement,
    Latency,
    Margin,
    Range,
    Result,
    Spread,
    TaskRow,
)
from headwaiter.study.trial import Ran

LAT = Latency(11.125, 12.0, 13.0, 14.25, 15.0, 1600.0)
SEVERAL = Spread(21.0, 29.0)
RANGE = Range(runs=9, throughput_mbps=SEVERAL, elapsed_s=SEVERAL, lat_mean_ms=SEVERAL, lat_p99_ms=SEVERAL, lat_max_ms=SEVERAL,
              fairness_jain=SEVERAL)  # fmt: skip
FULL = Result(
    scheduler="as", tunables={}, requests=21, bytes=22_000_000, elapsed_s=20.5, throughput_mbps=23.5,
    read=Direction(20, 21_000_000, 22.5, LAT), fairness_jain=0.875, dispatched=19, merges=2,
    disk=Disk(busy_s=17.0, idle_s=4.1, seek_s=2.05, rotation_s=6.15, transfer_s=8.2, overhead_s=1.0, seeks=77, cache_hits=5,
              waiting_s=0.2),
    anticipation=Anticipation(9, 6, 3, 1, 41.0, 42.0, 43.0, 44.0, 7.1625), range=RANGE,
)  # fmt: skip
BARE = Result(
    scheduler="noop",
    tunables={},
    requests=1,
    bytes=512,
    elapsed_s=0.0,
    throughput_mbps=0.0,
    merges=0,
    dispatched=1,
    disk=Disk(busy_s=0.0, idle_s=0.0, seeks=0),
)
TWO_READERS = "time_s,task,op,sync,sector,sectors,complete_s,name\n" + "".join(
    f"{0.006 * i:.6f},{t},R,1,{base + 8 * i},8,{0.006 * i + 0.005:.6f},{name}\n"
    for i in range(12) for t, base, name in ((1, 0, "ann"), (2, 900_000, "bob"))
)  # fmt: skip


def by_head(t: Table) -> dict[str, list[str]]:
    return {" ".join(str(c.header).split()): [str(cell) for cell in c.cells] for c in t.columns}


def test_table() -> None:
    t = table([FULL, BARE])
    assert by_head(t) == {
        "scheduler": ["as*", "noop*"], "MB/s": ["21.0–29.0", "0"], "elapsed s": ["20.5", "0"],
        "read mean ms": ["11.1", "–"], "read p99 ms": ["14.2", "–"], "read max ms": ["1600", "–"], "fairness": ["0.875", "–"],
        "seek": ["10%", "–"], "rotate": ["29%", "–"], "transfer": ["39%", "–"], "other": ["3%", "–"], "waiting": ["1%", "–"],
        "idle": ["18%", "–"], "seeks": ["77", "0"], "A_S/A": ["6/9", "–"], "T_F/A_S ms": ["7.16", "–"],
    }  # fmt: skip
    assert [row.style for row in t.rows] == ["bold", None], "the best is bold"
    steady = replace(FULL, range=replace(RANGE, throughput_mbps=Spread(23.4, 23.6)))
    assert by_head(table([steady]))["MB/s"] == ["23.5"]
    assert "fairness" not in by_head(table([BARE])), "a column that nobody has is left out"


def test_latencies_of_an_ssd_are_in_microseconds() -> None:
    quick = Latency(0.0851, 0.08, 0.1, 0.2, 0.3, 4.5)
    read, write = Direction(20, 4096, 1.0, quick), Direction(20, 4096, 1.0, replace(quick, mean=1.25))
    found = by_head(table([replace(FULL, read=read, write=write)]))
    assert (found["read mean µs"], found["read p99 µs"], found["read max µs"]) == (["85.1"], ["200"], ["4500"])
    assert (found["write mean ms"], found["write p99 ms"]) == (["1.25"], ["0.200"])


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}, {"a": 34, "b": 33, "c": 33}),
        ({"a": 0.006, "b": 0.994}, {"a": 1, "b": 99}),
        ({"a": 0.125, "b": 0.1249, "c": 0.7501}, {"a": 13, "b": 12, "c": 75}),
    ],
)
def test_shares_sum_to_a_hundred(parts: dict[str, float], told: dict[str, int]) -> None:
    assert percents(parts) == told


def test_where_the_time_of_a_drive_goes() -> None:
    disk = Disk(busy_s=6.0, idle_s=4.0, waiting_s=1.0, seek_s=2.0, rotation_s=1.0, transfer_s=1.0, seeks=1)
    assert shares(disk) == {
        "seek": 0.2, "rotate": 0.1, "transfer": 0.1, "other": pytest.approx(0.2), "waiting": 0.1, "idle": pytest.approx(0.3)
    }  # fmt: skip
    # What it writes from its cache while nobody asks for anything is no idleness.
    behind = shares(replace(disk, seek_s=5.0, rotation_s=2.0))
    assert behind["other"] == 0.0 and behind["idle"] == pytest.approx(0.1) and sum(behind.values()) == pytest.approx(1)
    several = shares(replace(disk, seek_s=20.0))
    assert several["idle"] == 0 and sum(several.values()) == pytest.approx(1), "an array has more than one arm"
    assert shares(Disk(busy_s=3.0, idle_s=1.0, seeks=0)) == {"busy": 0.75, "waiting": 0.0, "idle": 0.25}
    assert shares(Disk(busy_s=0.0, idle_s=0.0, seeks=0)) == {}


WRITES = replace(FULL, write=Direction(20, 4096, 1.0, LAT), waited_s=12.0)
SLOWER = replace(WRITES, scheduler="noop", waited_s=13.0)
VARIANT = replace(WRITES, scheduler="bfq", variant="bfq:low_latency=0", waited_s=14.0)


def margin(name: str, judgement: Judgement, ahead: float = 0.0, **more: float) -> Margin:
    return Margin(scheduler=name, judgement=judgement, ahead_percent=ahead, **more)


MARGINS = (
    margin("as", "better", 132.6, low_percent=11.0, high_percent=400.0, steady_percent=100.0),
    margin("noop", "baseline"),
    margin("bfq:low_latency=0", "cannot tell", -3.0),
)


def printed(t: Table, width: int) -> list[str]:
    out = io.StringIO()
    show(Console(file=out, width=width, highlight=False), t)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_what_fits_is_shown_and_nothing_is_cut(width: int) -> None:
    rows = [WRITES, SLOWER, VARIANT]
    t = table(rows, MARGINS, "waited", width=width)
    lines = printed(t, width)
    assert max(map(len, lines)) <= width and not any(line.endswith(" ") or "…" in line for line in lines)
    found = by_head(t)
    more = {
        40: {"scheduler", "verdict", "waited s"},
        60: {"MB/s", "read p99 ms"},
        80: {"read max ms"},
        120: {"fairness", "elapsed s", "write p99 ms"},
        200: {"seek", "idle", "seeks", "A_S/A", "95% interval"},
    }
    wanted = {head for least, heads in more.items() if least <= width for head in heads}
    assert wanted <= set(found), set(found)
    assert hidden(t, rows, MARGINS, "waited") == len(by_head(table(rows, MARGINS, "waited"))) - len(found)
    assert ("seek" in found) == (width == 200), "shares of the time are shown together or not at all"


@pytest.mark.parametrize(
    ("by", "column"),
    [
        ("waited", "waited s"),
        ("throughput", "MB/s"),
        ("elapsed", "elapsed s"),
        ("latency", "read mean ms"),
        ("p99", "read p99 ms"),
        ("max", "read max ms"),
        ("fairness", "fairness"),
    ],
)
def test_the_figure_that_is_ranked_by_is_always_shown(by: Criterion, column: str) -> None:
    assert list(by_head(table([WRITES, SLOWER], MARGINS, by, width=1))) in (
        ["scheduler", "verdict", column],
        ["scheduler", column, "verdict"],
    )
    writes = [replace(r, read=None) for r in (WRITES, SLOWER)]
    assert column.replace("read", "write") in by_head(table(writes, MARGINS, by, width=1))


def test_verdicts_in_the_table() -> None:
    """On the scale of the figure: of a wait less is better, of a throughput more."""
    for by, better, worse in (("waited", "−57% better", "2.5x worse"), ("throughput", "2.3x better", "−60% worse")):
        assert told_margin(margin("a", "better", 132.6), by) == better  # type: ignore[arg-type]
        assert told_margin(margin("a", "worse", -60.0), by) == worse  # type: ignore[arg-type]
    assert told_margin(margin("a", "cannot tell", 5.3), "waited") == "−5% ?"
    assert told_margin(margin("a", "equivalent", -0.02), "waited") == "0% same"
    assert told_margin(margin("a", "baseline"), "waited") == "baseline"
    found = by_head(table([WRITES, SLOWER, VARIANT], MARGINS, "waited"))
    assert found["verdict"] == ["−57% better", "baseline", "+3% ?"]
    assert found["95% interval"] == ["−80 to −10%", "–", "–"]


def test_marks_are_explained_where_they_are_shown() -> None:
    ours, unsure = "* needs headwaiter's kernel modules.", "? cannot tell: chance may explain it."
    for rows, marks in (([WRITES, SLOWER], [ours]), ([WRITES, VARIANT], [ours, unsure]), ([VARIANT], [unsure])):
        t = table(rows, MARGINS, "waited")
        lines = printed(t, 40)
        assert [line for line in lines if line in (ours, unsure)] == marks == lines[-len(marks) :], lines
        assert html_table(t).endswith("</table>\n" + "".join(f"<p>{escape(mark)}</p>\n" for mark in marks))
    plain = table([replace(BARE, scheduler="none")])
    assert len(printed(plain, 80)) == 4 and html_table(plain).endswith("</table>\n")


def test_equal_rows_are_one() -> None:
    """To the last digit that is shown with --wide; a verdict that differs is a difference, too."""
    rows = [replace(FULL, scheduler=name) for name in ("was", "bfq", "as-95", "noop", "as")]
    rows[3] = replace(rows[3], throughput_mbps=24.5, range=None)
    assert by_head(table(rows))["scheduler"] == ["was*, bfq, as-95*,\nas*", "noop*"]
    assert by_head(table(rows, parted=True))["scheduler"] == ["bfq", "was*, as-95*, as*", "noop*"]
    margins = [margin(r.scheduler, "baseline" if r.scheduler == "as" else "equivalent") for r in rows]
    assert by_head(table(rows, margins, "throughput"))["scheduler"] == ["was*, bfq, as-95*", "noop*", "as*"]
    assert [row["variant"] for row in csv_rows(rows)] == ["was", "bfq", "as-95", "noop", "as"]
    more = replace(rows[0], disk=replace(FULL.disk, seeks=78))
    assert len(by_head(table([rows[0], more], width=40))["scheduler"]) == 2, "which only a column shows that has no room"


def test_stock_schedulers_come_first_where_all_are_shown() -> None:
    rows = [FULL, replace(FULL, scheduler="bfq"), BARE, replace(BARE, scheduler="none", requests=2)]
    assert by_head(table(rows, parted=True))["scheduler"] == ["bfq", "none", "as*", "noop*"]
    assert by_head(table(rows))["scheduler"] == ["as*, bfq", "noop*, none"]


def test_what_matters_first() -> None:
    """Without --all: those of an unchanged kernel, the best of ours, the baseline, and what the verdict takes."""
    rows = [replace(FULL, scheduler=name) for name in ("was", "bfq", "as", "cas", "none", "noop")]

    def shown(ahead: dict[str, float], baseline: str, best: str | None = None) -> list[str]:
        margins = [margin(name, "better", percent) for name, percent in ahead.items()]
        found = Answer(
            outcome="better", text="", by="throughput", baseline=baseline, best=best, margin_percent=5, margins=margins
        )
        return [r.scheduler for r in brief(rows, found)]

    ahead = {"was": 3.0, "bfq": 9.0, "as": 5.0, "cas": 4.0, "none": 0.0, "noop": 0.0}
    assert shown(ahead, "none") == ["bfq", "as", "none"]
    assert shown(ahead, "noop") == ["bfq", "as", "none", "noop"]
    assert shown(ahead, "none", "cas") == ["bfq", "cas", "none"]
    assert shown({}, "none") == ["was", "bfq", "none"], "the first, where nothing is judged"


def test_compare_shows_all_where_it_is_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", TWO_READERS)

    def shown(*more: str) -> tuple[set[str], list[str]]:
        text = good(capfd, "compare", path, "-d", "constant:5", "--seeds", "0", *more)
        return {name.strip("*") for row in names_of(text) for name in row}, re.findall(r"^\(--.*\)$", text, re.M)

    stock = {"none", "mq-deadline", "kyber", "bfq"}
    few, [line] = shown("--wide")
    assert len(few) == 5 and stock < few and line == "(--all shows 11 more schedulers)"
    few, [line] = shown()
    assert re.fullmatch(r"\(--all shows 11 more schedulers, --wide \d+ more columns; --legend explains them\)", line)
    every, lines = shown("--wide", "--all")
    assert len(every) == 16 and lines == []
    named, [line] = shown("-s", "as,none,noop")
    assert named == {"as", "none", "noop"} and re.fullmatch(r"\(--wide shows \d+ more columns; --legend explains them\)", line)


def test_colour_is_for_terminals_only() -> None:
    t = table([FULL, BARE], MARGINS, "throughput")
    for terminal in (True, False):
        out = io.StringIO()
        show(Console(file=out, width=200, force_terminal=terminal, color_system="auto", _environ={"TERM": "xterm"}), t)
        assert ("\x1b[" in out.getvalue()) == terminal


def test_the_legend_explains_every_column(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", TWO_READERS)
    args = ("compare", path, "-s", "as,noop", "-d", "barracuda-80g", "--wide")
    without, text = good(capfd, *args), good(capfd, *args, "--legend")
    for name in ("waited s", "fairness", "verdict", "rotate", "idle", "A_S/A"):
        assert re.search(rf"^{name}  ", text, re.M) and not re.search(rf"^{name}  ", without, re.M), name
    assert re.search(r"^seek  .*the arm moves", text, re.M) and re.search(r"^rotate  .*to turn", text, re.M)
    assert all(not line.endswith(" ") for line in text.splitlines())
    head = text.index("is best") if "is best" in text else text.index(". ")
    assert head < text.index("scheduler "), "the verdict stands above the table"


def test_csv() -> None:
    out = io.StringIO()
    write_csv(csv_rows([FULL, BARE]), out)
    assert out.getvalue().endswith("\n") and "\r" not in out.getvalue()
    full, bare = csv.DictReader(io.StringIO(out.getvalue()))
    assert full == {
        "variant": "as", "scheduler": "as", "judgement": "", "change_percent": "", "ahead_percent": "", "low_percent": "",
        "high_percent": "", "steady_percent": "",
        "requests": "21", "bytes": "22000000", "progress_MBps": "", "throughput_MBps": "23.5", "elapsed_s": "20.5",
        "read.lat_ms.mean": "11.125", "read.lat_ms.p99": "14.25", "read.lat_ms.max": "1600.0", "fairness_jain": "0.875",
        "disk.seek_s": "2.05", "disk.rotation_s": "6.15", "disk.transfer_s": "8.2", "disk.idle_s": "4.1", "disk.seeks": "77",
        "anticipation.A": "9", "anticipation.A_S": "6", "anticipation.A_F": "3", "anticipation.T_ms": "41.0",
        "anticipation.T_S_ms": "42.0", "anticipation.T_F_ms": "43.0",
        "anticipation.T_F_per_A_S_ms": "7.1625", "range.throughput_MBps.low": "21.0",
        "range.throughput_MBps.high": "29.0", "waited_s": "", "write.lat_ms.mean": "", "write.lat_ms.p99": "",
        "write.lat_ms.max": "", "disk.waiting_s": "0.2",
        "sync.calls": "", "sync.lat_ms.mean": "", "sync.lat_ms.p99": "", "sync.lat_ms.max": "",
    }  # fmt: skip
    assert {k for k, v in bare.items() if v} == {
        "variant",
        "scheduler",
        "requests",
        "bytes",
        "throughput_MBps",
        "elapsed_s",
        "disk.idle_s",
        "disk.seeks",
    }


def test_csv_has_the_verdict() -> None:
    """A variant goes by its full name; what is not known is empty."""
    out = io.StringIO()
    write_csv(csv_rows([WRITES, VARIANT, BARE], MARGINS, "waited"), out)
    first, second, base = csv.reader(out.getvalue().splitlines()[1:])
    assert first[:2] == ["as", "as"] and first[2] == "better" and first[4:8] == ["132.6", "11.0", "400.0", "100.0"]
    assert float(first[3]) == pytest.approx(100 / 2.326 - 100)
    assert second[:3] == ["bfq:low_latency=0", "bfq", "cannot tell"] and second[4:8] == ["-3.0", "", "", ""]
    assert float(second[3]) == pytest.approx(100 / 0.97 - 100)
    assert base[2:5] == ["baseline", "0.0", "0.0"]


def row(number: int) -> TaskRow:
    return TaskRow(number, f"t{number}", "read", 0, number, 1_250_000, 2.5, 0.25, 0.75, LAT)


def test_table_of_tasks() -> None:
    rows = [row(number) for number in range(5)]
    t = tasks_table(replace(BARE, tasks=rows), limit=4)
    found = by_head(t)
    assert {head: cells[3] for head, cells in found.items()} == {
        "name": "t3",
        "op": "read",
        "requests": "3",
        "MB": "1.25",
        "MB/s": "2.50",
        "elapsed s": "0.750",
        "mean ms": "11.1",
        "p99 ms": "14.2",
        "max ms": "1600",
    }
    assert found["name"] == ["t0", "t1", "t2", "t3"]
    assert t.caption == "… and 1 more (--json shows all)"
    whole = tasks_table(replace(BARE, tasks=rows), limit=5)
    assert (len(by_head(whole)["name"]), whole.caption) == (5, None)
    chain = GroupRow(9, "t9", 17, 9, 1_250_000, 2.5, 0.75, 1.0, LAT)
    chains = by_head(tasks_table(replace(BARE, tasks=rows, groups=[chain])))
    assert (chains["name"], chains["tasks"]) == (["t9"], ["17"])


def test_run_in_detail(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", TWO_READERS)
    text = good(capfd, "run", path, "-s", "as", "--set", "antic_expire=3", "-d", "constant:5", "--no-goes-on")
    lines = text.splitlines()
    assert "Set: antic_expire=3" in lines
    assert any(line.split()[:3] == ["ann", "read", "12"] for line in lines)
    assert any(line.split()[:3] == ["bob", "read", "12"] for line in lines)
    choice = good(capfd, "run", path, "-s", "deadline", "--set", "wrap=lowest", "-d", "constant:5")
    assert "Set: wrap=lowest" in choice.splitlines()


def test_a_run_says_what_small_changes_make_of_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures stay those of the unperturbed run."""
    monkeypatch.setattr(
        "headwaiter.study.single.others",
        lambda *args, **more: [Ran(None, replace(FULL, throughput_mbps=rate), None, None) for rate in (2.25, 0.125)],
    )
    path = write(tmp_path / "two.csv", TWO_READERS)
    d = told(capfd, "run", path, "-s", "noop", "-d", "constant:5")
    (note,) = d["notes"]
    assert note.endswith("throughput is 0.125 to 2.25 MB/s")
    r = d["results"][0]
    assert r["range"]["throughput_MBps"] == {"low": 0.125, "high": 2.25}
    assert r["throughput_MBps"] == pytest.approx(r["bytes"] / 1e6 / r["elapsed_s"]) != 2.25


def test_run_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "two.csv", TWO_READERS)
    d = told(capfd, "run", path, "-s", "as", "--set", "antic_expire=0", "-d", "constant:5", "--seed", 41)
    assert (d["workload"], d["drive"], d["seed"], d["replay"]) == ("two.csv", "constant:5", 41, "closed")
    (r,) = d["results"]
    assert r["tunables"]["antic_expire"] == 0 and "anticipation" not in r
    assert r["range"]["runs"] == 9, "short loads are run again eight times"
    # Perturbed runs have the same tunables: where none waits, no run comes near one that does.
    waits = told(capfd, "run", path, "-s", "as", "--set", "antic_expire=6", "-d", "constant:5", "--seed", 41)["results"][0]
    assert r["range"]["throughput_MBps"]["low"] > waits["range"]["throughput_MBps"]["high"]
    assert "range" not in told(capfd, "run", path, "-s", "as", "-d", "constant:5", "--seeds", 0)["results"][0]
    assert told(capfd, "run", path, "-s", "as", "-d", "constant:5", "--seeds", 2)["results"][0]["range"]["runs"] == 3
