# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""watch: when it decides for a change and when not, what it leaves alone, what it remembers, and what it tells."""

from __future__ import annotations

import math
import re
import socket
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import run, write
from fakesys import FakeSystem, machine
from recordings import readers, record

from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.drives.choose import open_drive
from headwaiter.engine.schedulers import find
from headwaiter.papers.cells import Cell
from headwaiter.papers.selectors import BySize, read_iozone, read_ranking
from headwaiter.queue.devices import Device
from headwaiter.queue.machine import Machine
from headwaiter.recorder.record import FINISHED, RecordingDone, Sofar
from headwaiter.study.drive_fit import CLOSE, REFUSED, fit
from headwaiter.traces import load
from headwaiter.watch.decide import REGRET_PERCENT, Blocked, Caution, Decider, Memory, Window
from headwaiter.watch.prometheus import Metrics, served
from headwaiter.watch.sample import CounterMethod, ReplayMethod, StoppedError, _Proven, counted, recorded_window
from headwaiter.watch.service import Rules, Service

__all__ = ["machine"]
QUIET = Window(20.0, 2000, 5.0, 10.0, 16384.0, 0.9, waited_s=15.0)


def ahead(share: float, name: str = "bfq", window: Window = QUIET) -> Window:
    """A window in which a scheduler would be ahead by that share."""
    return replace(window, advantage={name: math.log1p(share), "none": -0.2})


def outcomes(decider: Decider, windows: Sequence[Window], begin_s: float = 0.0) -> list[str]:
    """Decide once a minute, for each window, and return what was decided."""
    return [decider.decide(w, begin_s + 60 * i).outcome for i, w in enumerate(windows)]


# --- decisions ---


def test_a_change_needs_windows_and_a_confirmation() -> None:
    decider = Decider("mq-deadline")
    assert outcomes(decider, [ahead(0.2)] * 4) == ["kept", "kept", "kept", "changed"] and decider.current == "bfq"


def test_a_great_advantage_needs_fewer_windows() -> None:
    assert outcomes(Decider("none"), [ahead(1.4)] * 2) == ["kept", "changed"]
    assert outcomes(Decider("none"), [ahead(1.3)] * 3) == ["kept", "kept", "changed"]
    assert outcomes(Decider("none"), [ahead(-0.5)] * 3 + [ahead(1.4)] * 2)[-1] == "changed"


def test_a_very_great_advantage_confirms_itself() -> None:
    """Twice what a single window must show: 1.1 to the power of 18."""
    assert outcomes(Decider("none"), [ahead(4.6)]) == ["changed"]
    assert outcomes(Decider("none"), [ahead(4.5)]) == ["kept"]


def test_of_several_that_spare_nearly_as_much_the_all_round_one_is_taken() -> None:
    """Shares of the present waiting that would be left; the margin is a tenth of it."""
    for share, chosen in ((0.14, "hw-maitre"), (0.16, "hw-as")):
        left = {"adios": 0.14, "bfq": 0.14, "hw-as": 0.05, "hw-maitre": share}
        window = replace(QUIET, advantage={name: -math.log(one) for name, one in left.items()})
        decider = Decider("none")
        assert outcomes(decider, [window]) == ["changed"] and decider.current == chosen


def test_regret_is_as_measured() -> None:
    page = (Path(__file__).parents[1] / "docs/regret.md").read_text(encoding="utf-8")
    table = page.split("<!-- regret: standings -->")[1].split("<!-- end -->")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) ", table, re.M)
    assert {find(name).kernel_name: float(mean) for name, mean in rows} == REGRET_PERCENT, "one of them was not generated"


def test_what_loses_more_on_other_loads_must_gain_more_on_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.1 by 0.98 / 0.66 is 1.633."""
    monkeypatch.setattr("headwaiter.watch.decide.REGRET_PERCENT", {"hw-maitre": 2.0, "bfq": 34.0})
    assert outcomes(Decider("hw-maitre"), [ahead(0.65)] * 4)[-1] == "changed"
    assert set(outcomes(Decider("hw-maitre"), [ahead(0.62)] * 9)) == {"kept"}
    assert outcomes(Decider("bfq"), [ahead(0.11, "hw-maitre")] * 4)[-1] == "changed", "and what loses less need not gain less"
    assert outcomes(Decider("adios"), [ahead(0.11)] * 4)[-1] == "changed", "of what was not measured nothing is known"


def test_less_than_the_margin_is_no_advantage() -> None:
    assert set(outcomes(Decider("mq-deadline"), [ahead(0.09)] * 20)) == {"kept"}


def test_one_window_that_says_otherwise_begins_anew() -> None:
    windows = [ahead(0.2), ahead(0.2), ahead(0.2), ahead(-0.05), ahead(0.2), ahead(0.2), ahead(0.2), ahead(0.2)]
    assert outcomes(Decider("mq-deadline"), windows)[:7] == ["kept"] * 7
    assert outcomes(Decider("mq-deadline"), windows)[7] == "changed"


def test_confirmations_are_of_one_scheduler() -> None:
    shares = ((0.2, 0.15), (0.2, 0.15), (0.2, 0.15), (0.15, 0.9), (0.2, 0.9))
    windows = [replace(QUIET, advantage={"bfq": math.log1p(a), "kyber": math.log1p(b)}) for a, b in shares]
    assert outcomes(Decider("none"), windows) == ["kept"] * 4 + ["changed"]


def test_no_second_change_before_the_dwell_is_over() -> None:
    decider = Decider("mq-deadline", Caution(dwell=6))
    outcomes(decider, [ahead(0.2)] * 4)
    back = [ahead(0.3, "kyber")] * 12
    assert outcomes(decider, back, 1000).index("changed") == 5


def test_a_budget_of_changes() -> None:
    decider = Decider("mq-deadline", Caution(changes=1, dwell=3))
    outcomes(decider, [ahead(0.2)] * 4)
    later = outcomes(decider, [ahead(0.3, "kyber")] * 6, 1000)
    assert "changed" not in later and "declined" in later
    assert "changed" in outcomes(decider, [ahead(0.3, "kyber")] * 6, 90_000)


def test_a_switch_that_costs_more_than_it_gains() -> None:
    """100 requests of 10 ms are to be drained; little is waited for."""
    busy = replace(QUIET, outstanding=100.0)
    assert outcomes(Decider("none"), [ahead(0.2, window=busy)] * 4)[3] == "declined"
    assert outcomes(Decider("none"), [ahead(0.2, window=replace(busy, waited_s=600.0))] * 4)[3] == "changed"


def test_what_made_things_worse_is_undone_and_remembered() -> None:
    decider = Decider("mq-deadline")
    outcomes(decider, [ahead(0.2)] * 4)
    worse = [ahead(0.0, "mq-deadline", replace(QUIET, latency_ms=12.0))] * 3
    assert outcomes(decider, worse, 1000) == ["kept", "kept", "undone"] and decider.current == "mq-deadline"
    first = decider.memory.blocked["bfq"]
    assert first.for_s == 2 * 6 * 20 and first.until == 1120 + first.for_s
    again = Decider("mq-deadline", memory=decider.memory)
    assert outcomes(again, [ahead(0.2)] * 4, 1120)[3] == "declined"
    assert outcomes(again, [ahead(0.2)], 1700) == ["changed"]
    assert outcomes(again, worse, 3000)[-1] == "undone" and again.memory.blocked["bfq"].for_s == 2 * first.for_s
    often = Decider("mq-deadline", memory=Memory((), {"bfq": Blocked(0.0, 80_000.0)}))
    outcomes(often, [ahead(0.2)] * 4, 1000)
    outcomes(often, worse, 2000)
    assert often.memory.blocked["bfq"].for_s == 86_400, "a day is the longest"


def test_what_is_far_worse_is_undone_sooner() -> None:
    """After one window at 1.1 to the power of 9, after two at 1.1 to that of 2.25."""
    for latency_ms, number in ((23.7, 1), (23.5, 2), (12.4, 2), (12.3, 3)):
        decider = Decider("mq-deadline")
        outcomes(decider, [ahead(0.2)] * 4)
        found = outcomes(decider, [ahead(0.0, "mq-deadline", replace(QUIET, latency_ms=latency_ms))] * number, 1000)
        assert found == ["kept"] * (number - 1) + ["undone"]


@pytest.mark.parametrize(
    ("trouble", "undone"),
    [({}, True), ({"trouble": "the wrong drive"}, True), ({"trouble": "9 lost", "lost": 9}, False), ({"requests": 49}, False)],
)
def test_a_change_is_judged_by_what_is_measured(trouble: dict[str, Any], undone: bool) -> None:
    """Also where no replay explains it; not by a window that tells nothing."""
    decider = Decider("mq-deadline")
    outcomes(decider, [ahead(0.2)] * 4)
    found = outcomes(decider, [replace(QUIET, latency_ms=12.0, **trouble)] * 3, 1000)
    assert (found[-1] == "undone") == undone and decider.current == ("mq-deadline" if undone else "bfq")


@pytest.mark.parametrize(
    "after",
    [
        replace(QUIET, latency_ms=10.9),
        replace(QUIET, latency_ms=13.0, mbps=6.0),
        replace(QUIET, latency_ms=50.0, request_bytes=65536.0),
        replace(QUIET, latency_ms=50.0, read_share=0.3),
    ],
    ids=["within the margin", "but faster", "other sizes", "other mix"],
)
def test_what_is_not_worse_at_like_load_stays(after: Window) -> None:
    decider = Decider("mq-deadline")
    outcomes(decider, [ahead(0.2)] * 4)
    assert set(outcomes(decider, [ahead(0.0, "mq-deadline", after)] * 8, 1000)) == {"kept"} and decider.current == "bfq"


def test_a_steady_load_is_switched_once() -> None:
    """Predictions scatter about what is true: one is better, and then nothing is."""
    decider = Decider("mq-deadline")
    scatter = [0.3, 0.1, 0.5, 0.2, 0.4, 0.05, 0.6, 0.3] * 12
    found = []
    for i, share in enumerate(scatter):
        other = "bfq" if decider.current == "mq-deadline" else "mq-deadline"
        true = share if other == "bfq" else 0.25 - share
        found.append(decider.decide(ahead(true, other), 60 * i).outcome)
    assert found.count("changed") == 1


# --- selectors ---


def test_by_request_size(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    by = BySize({4096: {"none": 1.0, "bfq": 2.0}, 65536: {"none": 9.0, "bfq": 3.0, "kyber": 0.0}})
    seen = replace(QUIET, request_bytes=17_000.0)
    assert by.advantage(seen, "none", ["bfq", "kyber"]) == {"bfq": math.log(3 / 9)}
    assert by.advantage(replace(seen, request_bytes=16_000.0), "none", ["bfq"]) == {"bfq": math.log(2)}
    assert by.advantage(seen, "adios", ["bfq"]) == {}
    file = tmp_path / "r.json"
    run(capfd, "rank", "barracuda-80g", "-s", "none,as", "--sizes", "4k,1m", "-t", "0.2", "--runs", "1", "--json", "-o", file)
    assert set(read_ranking(file).rates) == {4096, 1 << 20} and set(read_ranking(file).rates[4096]) == {"none", "as"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": "headwaiter/1", "subject": "", "results": []}',
        '{"schema": "headwaiter/1", "results": [{"throughput_MBps": 1, "request_bytes": 1, "scheduler": "a"}]}',
        '{"schema": "headwaiter/1", "subject": "", "results": [{"throughput_MBps": NaN, "request_bytes": 1, "scheduler": "a"}]}',
    ],
)
def test_rankings_that_are_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(Problem, match=r"r\.json: "):
        read_ranking(write(tmp_path / "r.json", text))


COLUMNS = """\tIozone: Performance Test of File I/O
\tOutput is in kBytes/sec
                                                              random    random     bkwd    record    stride
              kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read
              64       4   100000   200000   300000   400000   500000   600000   7   8   9
             512     512      11       12       13       14       15       16

iozone test complete.
"""
EXCEL = """Excel chart generation enabled

"Writer report"
        "4"  "8"  "512"
"64"   900  800  0
"512"   700  600  500

"Backward read report"
        "4"
"64"   1

"Random read report"
        "4"  "8"
"64"   90  80
"""


def test_iozone(tmp_path: Path) -> None:
    table = read_iozone({"none": write(tmp_path / "a", COLUMNS), "bfq": write(tmp_path / "r", EXCEL)})
    assert table.rates[Cell("random write", 64, 4)] == {"none": 600000.0}
    assert table.rates[Cell("write", 64, 4)] == {"none": 100000.0, "bfq": 900.0}
    assert table.rates[Cell("write", 512, 512)] == {"none": 11.0, "bfq": 500.0}
    assert Cell("write", 64, 512) not in table.rates and not any(c.operation.startswith("back") for c in table.rates)
    assert table.cell("write", 500, 300) == Cell("write", 512, 512) and table.cell("write", 60, 5) == Cell("write", 64, 4)
    assert len(table.rates) == 6 + 6 + 3 + 1
    with pytest.raises(Problem, match="has no fsync"):
        table.cell("fsync", 1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no figures"),
        (COLUMNS.replace("   400000", "   x"), "a:5: not all of it is numbers"),
        (COLUMNS.replace("  64       4", "  64     128"), "a:5: a record of 128 KiB"),
        (EXCEL.replace("90  80", "90 80 70"), "a:14: 3 figures for 2"),
        (EXCEL.replace('"4"  "8"', '"4"  "0"'), "a:4: a size of 0"),
        (EXCEL.replace('"64"   900', '"0"   900'), "a:5: a size of 0"),
        (EXCEL.replace('"64"   900  800  0', '"64"   900  800  7'), "a:5: a record of 512 KiB in a file of 64"),
        (COLUMNS.replace("  64       4", "  64       0"), "a:5: a size of 0"),
    ],
)
def test_iozone_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Problem, match=message):
        read_iozone({"none": write(tmp_path / "a", text)})


def test_counters(machine: FakeSystem) -> None:
    folder = machine.add("sda")
    device = Machine(machine.root).find("sda")
    write(folder / "stat", "100 5 800 1000 10 0 80 500 3 7 9 0 0 0 0\n")
    before = counted(device)
    write(folder / "stat", "200 5 2400 3000 110 0 1680 700 4 7 9 0 0 0 0\n")

    class Known:
        def advantage(self, seen: Window, current: str, candidates: Sequence[str]) -> dict[str, float]:
            return {"bfq": seen.request_bytes}

    seen = CounterMethod(Known(), lambda s: False).judge(before, counted(device), 2.0, "none", ["bfq"])
    assert (seen.requests, seen.request_bytes, seen.read_share, seen.latency_ms) == (200, 8192.0, 0.5, 20.0)
    assert (seen.mbps, seen.outstanding, seen.waited_s) == (3200 * 512 / 2e6, 4.0, 2.0)
    assert seen.advantage == {"bfq": 8192.0}
    assert "only 0 requests" in CounterMethod(Known(), lambda s: False).judge(before, before, 2.0, "none", []).trouble
    with pytest.raises(StoppedError):
        CounterMethod(Known(), lambda s: True).window(device, [device], 9, "none", [])
    write(folder / "stat", "1 2\n")
    with pytest.raises(Problem, match="only 2 counters"):
        counted(device)


def test_a_replay_of_what_was_recorded(machine: FakeSystem, tmp_path: Path) -> None:
    machine.add("sda")
    device = Machine(machine.root).find("sda")
    trace = load(record(tmp_path / "four.csv", readers(4, 300)))
    seconds = trace.span_ns / 1e9
    replay = ReplayMethod("barracuda-80g")
    seen = replay.judge(device, trace, seconds, 0, "none", ["mq-deadline", "hw-as", "adios"])
    assert (
        seen.advantage["hw-as"] > math.log(3)
        and abs(seen.advantage["mq-deadline"]) < 0.1
        and set(seen.advantage) == {"mq-deadline", "hw-as"}
    )
    assert seen.contention and seen.contention > 0.9 and seen.requests == 1200 and 3.5 < seen.outstanding < 4.1
    assert seen.waited_s == pytest.approx(4 * seconds, rel=0.1) and seen.latency_ms == pytest.approx(
        1e3 * seen.waited_s / 1200, rel=0.01
    )
    assert "events were lost" in replay.judge(device, trace, seconds, 9, "none", ["bfq"]).trouble
    assert "adios cannot be simulated" in replay.judge(device, trace, seconds, 0, "adios", ["bfq"]).trouble
    one = load(record(tmp_path / "one.csv", readers(1, 100)))
    assert replay.judge(device, one, 1.0, 0, "none", ["bfq"]).advantage == {"bfq": 0.0}
    assert (
        "only 20 requests" in replay.judge(device, load(record(tmp_path / "few.csv", readers(1, 20))), 1.0, 0, "none", []).trouble
    )


@pytest.mark.thorough
def test_a_model_that_no_longer_fits_is_chosen_again(machine: FakeSystem, tmp_path: Path) -> None:
    """But for one that the user has named."""
    machine.add("sda")
    device = Machine(machine.root).find("sda")
    trace = load(record(tmp_path / "four.csv", readers(4, 300)))
    seconds = trace.span_ns / 1e9
    named = ReplayMethod("nvme-ssd").judge(device, trace, seconds, 0, "none", ["hw-as"])
    assert "wrong drive" in named.trouble and not named.advantage
    replay = ReplayMethod()
    replay._drives[device.identity] = _Proven(open_drive("nvme-ssd"), 2)
    assert "wrong drive" in replay.judge(device, trace, seconds, 0, "none", ["hw-as"]).trouble, (
        "it has fitted more often than not"
    )
    for _ in range(12):
        seen = replay.judge(device, trace, seconds, 0, "none", ["hw-as"])
        assert not seen.trouble and seen.advantage["hw-as"] > math.log(3)
    found = replay._drives[device.identity]
    assert found.drive.name != "nvme-ssd" and found.times == 10


def test_a_model_that_is_a_little_off_decides(machine: FakeSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other model is tried for that, at each window."""
    machine.add("sda")
    trace = load(record(tmp_path / "slow.csv", readers(4, 300), stretch=1.5))
    how = fit(trace, open_drive("barracuda-80g"), "mq-deadline")
    assert how and CLOSE < how.off < REFUSED
    monkeypatch.setattr("headwaiter.study.drive_fit.best_fit", lambda *given, **more: pytest.fail("another model is tried"))
    replay = ReplayMethod("barracuda-80g")
    seen = replay.judge(Machine(machine.root).find("sda"), trace, trace.span_ns / 1e9, 0, "mq-deadline", ["hw-as"])
    assert not seen.trouble and seen.advantage["hw-as"] > math.log(2)


# --- the service ---


class Scripted:
    """A method that has its windows beforehand; between them, something may happen."""

    def __init__(self, windows: Sequence[Window], between: object = None) -> None:
        self.windows, self.between, self.asked = list(windows), between, 0

    def window(self, device: Device, legs: Sequence[Device], seconds: float, current: str, candidates: Sequence[str]) -> Window:
        if callable(self.between):
            self.between(self.asked)
        self.asked += 1
        if not self.windows:
            raise StoppedError
        return self.windows.pop(0)


def service(system: FakeSystem, method: Scripted, names: Sequence[str] = ("sda",), **rules: Any) -> tuple[Service, list[str]]:
    lines: list[str] = []
    waits = iter([False] * 50)
    return Service(Machine(system.root), names, method, Rules(**rules), lines.append, lambda s: next(waits, True)), lines


def test_by_default_it_only_reports(machine: FakeSystem) -> None:
    machine.add("sda")
    watching, lines = service(machine, Scripted([ahead(0.2)] * 9))
    watching.run()
    assert machine.writes == [] and sum("only reported, --apply would do it" in line for line in lines) == 2
    assert not (machine.root / "var/lib/headwaiter").exists() or list((machine.root / "var/lib/headwaiter").iterdir()) == []


def test_it_applies_and_revert_restores(machine: FakeSystem) -> None:
    machine.add("sda", wwn="naa.5000")
    machine.add("sdb")
    machine.set("sda", "iosched/read_expire", "400")
    before = machine.everything("sda")
    watching, lines = service(machine, Scripted([ahead(0.2)] * 4), put=True)
    watching.run()
    assert machine.current("sda") == "bfq" and " sda changed bfq: bfq would be ahead by 20% over 3 windows" in lines[3]
    assert {name for name, _, _ in machine.writes} == {"sda"}
    text = watching.metrics.text()
    assert 'headwaiter_scheduler_info{device="sda",scheduler="bfq",serial="",wwn="naa.5000"} 1' in text
    assert (
        'headwaiter_decisions_total{device="sda",result="kept"} 3' in text and 'headwaiter_changes_total{device="sda"} 1' in text
    )
    # A restart goes on from there; what was at first is still known.
    again, _ = service(machine, Scripted([ahead(0.0, "none")] * 2), put=True, on_exit="restore")
    again.run()
    assert machine.current("sda") == "bfq", "not changed by this one, so not restored by it"
    there = Machine(machine.root)
    from headwaiter.queue.apply import revert  # noqa: PLC0415

    revert(there.find("sda"), there.state)
    assert machine.everything("sda") == before


@pytest.mark.parametrize(("first", "kept"), [("mq-deadline", "77"), ("none", "256")])
def test_a_change_keeps_nr_requests(machine: FakeSystem, first: str, kept: str) -> None:
    """The kernel sets it anew at each switch: two, on a disk that takes one. That of none is no choice of anybody's."""
    machine.add("sda")
    machine.set("sda", "scheduler", first)
    machine.set("sda", "nr_requests", "77")
    watching, _ = service(machine, Scripted([ahead(0.2)] * 4), put=True)
    watching.run()
    assert machine.current("sda") == "bfq" and machine.everything("sda")["nr_requests"].strip() == kept


def test_undoing_restores_all_settings(machine: FakeSystem) -> None:
    machine.add("sda")
    machine.set("sda", "iosched/read_expire", "400")
    before = machine.everything("sda")
    worse = ahead(0.0, "none", replace(QUIET, latency_ms=20.0))
    watching, lines = service(machine, Scripted([*[ahead(0.2)] * 4, *[worse] * 2]), put=True)
    watching.run()
    assert " sda undone mq-deadline: latency rose from 10 to 20 ms under bfq" in lines[-1]
    assert machine.everything("sda") == before
    again, lines = service(machine, Scripted([ahead(0.2)] * 4), put=True)
    again.run()
    assert "it made things worse" in lines[-1] and machine.current("sda") == "mq-deadline"


def test_at_the_end_it_may_restore(machine: FakeSystem) -> None:
    machine.add("sda")
    before = machine.everything("sda")
    watching, _ = service(machine, Scripted([ahead(0.2)] * 4), put=True, on_exit="restore")
    watching.run()
    assert ("sda", "scheduler", "bfq") in machine.writes and machine.everything("sda") == before


@pytest.mark.parametrize(
    ("at", "file", "value"),
    [(1, "scheduler", "kyber"), (3, "scheduler", "none"), (5, "scheduler", "none"), (5, "nr_requests", "9")],
)
def test_it_leaves_alone_what_somebody_else_sets(machine: FakeSystem, at: int, file: str, value: str) -> None:
    machine.add("sda")

    def other(turn: int) -> None:
        if turn == at:
            machine.set("sda", file, value)
            machine.writes.clear()

    watching, lines = service(machine, Scripted([*[ahead(0.2)] * 4, *[ahead(0.3, "kyber")] * 20], other), put=True)
    watching.run(rounds=24)
    assert machine.writes == [] and sum("left alone" in line for line in lines) == 1
    assert f"somebody else has set {file}" in next(line for line in lines if "left alone" in line)
    assert 'headwaiter_overridden{device="sda"} 1' in watching.metrics.text()
    if at < 4:  # nothing had been changed: there is nothing to remember
        return
    still, lines = service(machine, Scripted([ahead(0.2, "bfq")] * 12), put=True)
    still.run(rounds=12)
    assert machine.writes == [] and lines == []
    resumed, _ = service(machine, Scripted([ahead(0.3, "mq-deadline")] * 4), put=True, resume=True)
    resumed.run()
    assert machine.current("sda") == "mq-deadline"


def test_a_disk_that_goes_and_comes_back(machine: FakeSystem) -> None:
    machine.add("sda", wwn="naa.5000")
    machine.add("sdb", wwn="naa.6000")

    class Going(Scripted):
        def window(self, device: Device, *rest: object) -> Window:
            if device.wwn == "naa.5000" and self.asked == 2:
                machine.remove("sda")
                machine.add("sdc", wwn="naa.5000", scheduler="kyber")
                self.asked += 1
                raise Problem("sda: gone")
            return super().window(device, *rest)  # type: ignore[arg-type]

    watching, lines = service(machine, Going([QUIET] * 8), ["sda", "sdb", "sda"])
    watching.run()
    assert not any("gone" in line for line in lines if "declined" not in line)
    assert any(" sdc " in line for line in lines) and any(" sdb " in line for line in lines)
    machine.remove("sdb")
    gone, lines = service(machine, Scripted([QUIET]), ["sdc"])
    machine.remove("sdc")
    gone.run(rounds=3)
    assert [line.split(": ")[-1] for line in lines] == ["the disk is not there"]
    assert 'headwaiter_device_present{device="sdc"} 0' in gone.metrics.text()


def test_a_change_that_was_cut_short_is_restored_at_the_next_start(machine: FakeSystem) -> None:
    machine.add("sda")
    before = machine.everything("sda")
    there = Machine(machine.root)
    from headwaiter.queue.settings import Settings, opened  # noqa: PLC0415

    device = there.find("sda")
    with there.state.locked(), opened(device) as queue:
        there.state.begin(device, queue.read(), Settings("bfq"), "headwaiter watch")
        queue.set("scheduler", "bfq")
    _, lines = service(machine, Scripted([]), put=True)
    assert machine.everything("sda") == before and "cut short" in lines[0] and there.state.all() == []


def test_a_refused_change_is_told(machine: FakeSystem) -> None:
    machine.add("sda")
    watching, lines = service(machine, Scripted([ahead(0.2, "adios")] * 5), put=True)
    watching.run()
    assert any("'adios' is refused" in line for line in lines) and machine.current("sda") == "mq-deadline"


# --- the command, and what it tells ---


def test_the_command(machine: FakeSystem, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = machine.add("sda")
    write(folder / "stat", "100 5 800 1000 10 0 80 500 3 7 9 0 0 0 0\n")
    ranking = write(
        tmp_path / "r.json",
        '{"schema": "headwaiter/1", "subject": "name:sda",'
        ' "results": [{"throughput_MBps": 1, "request_bytes": 4096, "scheduler": "none"}]}',
    )
    words = ("watch", "sda", "--sample", "0.1", "--every", "0.1", "--rounds", "2", "--root", machine.root)
    size = ("--method", "request-size", "--ranking", ranking)
    status, out, err = run(capfd, *words, *size, "--metrics-file", tmp_path / "m.prom")
    assert (status, err) == (0, "") and out.count("declined mq-deadline: only 0 requests") == 2
    assert 'result="declined"} 2' in (tmp_path / "m.prom").read_text() and (tmp_path / "m.prom").stat().st_mode & 0o777 == 0o644
    for more, message in (
        ((), "--ranking is not for --method replay"),
        ((*size, "--metrics-http", "nowhere"), "expected HOST:PORT"),
    ):
        status, _, err = run(capfd, *words, *(more or ("--ranking", ranking)))
        assert status == 2 and message in err
    machine.add("zoned", zoned="host-managed")
    status, _, err = run(capfd, "watch", "zoned", "--root", machine.root)
    assert status == 2 and "is zoned" in err


def test_an_idle_disk_is_looked_at_as_soon_as_it_has_something_to_do(machine: FakeSystem) -> None:
    """Not before: 50 requests are the least that a window can tell anything by."""
    stat = machine.add("sda") / "stat"
    looked: list[int] = []
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        write(stat, f"{100 + 7 * len(waited)} 0 800 0 10 0 80 0 0 0 0\n")
        return False

    write(stat, "100 0 800 0 10 0 80 0 0 0 0\n")
    windows = Scripted(
        [replace(QUIET, requests=3, trouble="only 3 requests"), QUIET, QUIET], lambda n: looked.append(len(waited))
    )
    lines: list[str] = []
    Service(Machine(machine.root), ["sda"], windows, Rules(every_s=60), lines.append, wait).run(rounds=3)
    assert looked == [0, 8, 9] and waited[:8] == [1.0] * 8 and waited[8] > 59


def test_metrics_over_http() -> None:
    metrics = Metrics()
    metrics.add("headwaiter_changes_total", device='a"b\\')
    with served(metrics, "127.0.0.1:0") as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            body = answer.read().decode()
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other")
    assert body.splitlines()[-1] == 'headwaiter_changes_total{device="a\\"b\\\\"} 1'
    assert [line for line in body.splitlines() if line.startswith("# TYPE")] == ["# TYPE headwaiter_changes_total counter"]


def test_systemd_is_told(machine: FakeSystem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.add("sda")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        service(machine, Scripted([QUIET]))[0].run()
        assert [manager.recv(99) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_memory_that_cannot_be_read_is_none(machine: FakeSystem) -> None:
    machine.add("sda")
    there = Machine(machine.root)
    path = there.state.path(there.find("sda").identity).with_suffix(".watch")
    for text in ("", "[]", '{"changes": [1], "blocked": {"bfq": 3}}', '{"changes": ["x"], "blocked": {}}'):
        write(path, text)
        service(machine, Scripted([]))[0].run()


@pytest.mark.parametrize(("error", "said"), [
    (NoRequestsError, "only 0 requests"),
    (Problem, "line 3: no number"),
])  # fmt: skip
def test_a_line_of_the_watch_names_no_file_that_nobody_else_sees(
    error: type[Problem], said: str, machine: FakeSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window is recorded into a folder of its own, and judged if it has anything."""
    machine.add("sda")
    disk = Machine(machine.root).find("sda")

    def refuse(path: Path, *_: object) -> None:
        raise error(f"{path}/headwaiter.json: line 3: no number")

    done = RecordingDone("tracefs", FINISHED, Sofar(2.0, 0, 0, 0, 0), ())
    monkeypatch.setattr("headwaiter.watch.sample.record", lambda legs, seconds, path: done)
    monkeypatch.setattr("headwaiter.watch.sample.Source", lambda path: None)
    monkeypatch.setattr("headwaiter.watch.sample.read_recording", refuse)
    window = recorded_window(disk, [disk], 2.0)
    assert isinstance(window, Window) and (window.seconds, window.requests, window.trouble) == (2.0, 0, said)
