# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`advise` in the lab: what the guest is given, how its answers are judged, and what they are."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jobload import options_of
from recordings import readers, record
from test_lab import _run

from headwaiter.advice import advice
from headwaiter.base.errors import NoRequestsError, Problem
from headwaiter.experiments import advise as adviser
from headwaiter.experiments.advise import AROUND_S, FASTEST_MIB_S, Got, Ranked, judged, processes, progress, run
from headwaiter.fio.mixed import RUNTIME_S, mixed_job
from headwaiter.lab.guest import GuestOutcome
from headwaiter.lab.script import Script, read

SAID = Ranked({"mq-deadline": 0.0, "bfq": 12.5, "hw-as": 30.0}, "better", "bfq")


def fio(*rates: float) -> bytes:
    """What fio says of processes that each read so many MB/s for two seconds, and write a quarter of that, 10 KB at a time."""
    jobs = [
        {
            "read": {
                "io_bytes": 1_600_000 * rate,
                "runtime": 2000,
                "total_ios": 160 * rate,
                "lat_ns": {"mean": 2e9 / 200 / rate},
            },
            "write": {"io_bytes": 400_000 * rate, "runtime": 1500, "total_ios": 40 * rate, "lat_ns": {"mean": 1e9 / 200 / rate}},
            "sync": {"total_ios": 0, "lat_ns": {}},
        }
        for rate in rates
    ]
    return json.dumps({"jobs": jobs}).encode()


def got(*rates: float) -> list[Got]:
    """Processes that wait for all of ten seconds while they get so many MB/s."""
    return [Got(round(rate * 10_000_000), round(rate * 1000), rate) for rate in rates]


def test_first_places_are_held_against_the_best() -> None:
    """By the geometric mean of what each process gets beside mq-deadline."""
    *runs, said = judged("7", {"mq-deadline": got(5.0, 3.0), "bfq": got(6.25, 4.0), "hw-as": got(10.0, 2.0)}, "mq-deadline", SAID)
    assert [(row["scheduler"], row["mbps"], row["progress"], row["ahead_percent"], row["processes"]) for row in runs] == [
        ("mq-deadline", 8.0, 1.0, 0.0, 2),
        ("bfq", 10.25, 1.291, 12.5, 2),
        ("hw-as", 12.0, 1.155, 30.0, 2),
    ]
    assert said == {
        "what": "advice", "among": "all", "job": "7", "scheduler": "hw-as", "best": "bfq", "of_best": 0.894,
        "outcome": "better", "advised": "bfq", "advised_of_best": 1.0, "holds": False,
    }  # fmt: skip


def test_a_second_run_that_knows_no_better_excuses_advice() -> None:
    """hw-as has 89% of the best in the first run; the best of the second run had less there, or is the same best."""
    first = {"mq-deadline": got(5.0, 3.0), "bfq": got(6.25, 4.0), "hw-as": got(10.0, 2.0)}
    worse = judged("7", first, "mq-deadline", SAID, {"mq-deadline": got(5.0), "bfq": got(1.0), "hw-as": got(1.0)})[-1]
    assert (worse["again"], worse["again_of_best"], worse["holds"]) == ("mq-deadline", 0.775, True)
    better = judged("7", first, "mq-deadline", SAID, {"mq-deadline": got(5.0), "bfq": got(9.0), "hw-as": got(1.0)})[-1]
    assert (better["again"], better["again_of_best"], better["holds"]) == ("bfq", 1.0, False)


def test_the_one_in_force_is_first_where_none_is_ahead_of_it() -> None:
    even = Ranked({"mq-deadline": 0.0, "bfq": 1.9}, "keep", "mq-deadline")
    assert judged("7", {"mq-deadline": got(8.0), "bfq": got(9.0)}, "mq-deadline", even)[-1]["scheduler"] == "mq-deadline"


def test_only_what_ran_is_judged() -> None:
    """Advise may name a scheduler that the guest did not try; one that it tried must have been ranked."""
    ran = {"mq-deadline": got(8.0), "bfq": got(10.0)}
    said = judged("7", ran, "mq-deadline", Ranked(SAID.ahead_percent, "better", "hw-as"))[-1]
    assert (said["scheduler"], said["of_best"]) == ("bfq", 1.0) and "advised" not in said
    with pytest.raises(Problem, match="does not rank kyber"):
        judged("7", {**ran, "kyber": got(1.0)}, "mq-deadline", SAID)


def test_one_that_gets_nothing_has_done_less_than_an_io() -> None:
    """If a megabyte a second is a thousand I/Os, it has done half of one."""
    starved = [Got(0, 0, 0.0)]
    assert progress(starved, got(1.0)) == pytest.approx(0.5 / 1000) == 1 / progress(got(1.0), starved)
    assert progress(starved, starved) == 1


def test_what_processes_got() -> None:
    one, two = processes(json.loads(fio(3.0, 5.0)))
    assert (one.mbps, one.bytes, one.ios, two.mbps) == (3.0, 6_000_000, 600, 5.0)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A guest that is not booted: of its four readers `none` makes the most. Collects what it was given."""
    machine = SimpleNamespace(files={}, hang_s=0, limit_s=0)
    recorded = record(tmp_path / "four.csv", readers(4, 300))
    given: dict[str, Any] = {"machine": machine}

    def boot(booted: Any, say: Any) -> GuestOutcome:
        given["booted"] = booted
        files = {f"{job}.{name}.fio": fio(*rates) for job in (3, 4, 7) for name, rates in SPEEDS.items()}
        files |= {f"{job}.{name}.again.fio": fio(*rates) for job in (3, 4, 7) for name, rates in AGAIN.items()}
        return GuestOutcome(files | {f"{job}.recording": recorded.read_bytes() for job in (3, 4, 7)}, ["line"])

    monkeypatch.setattr(adviser, "guest", lambda *_: machine)
    monkeypatch.setattr("headwaiter.lab.python.pack", lambda machine, lines: given.update(lines=lines))
    monkeypatch.setattr(adviser, "boot", boot)
    monkeypatch.setattr(advice, "default_set", lambda: ["none", "mq-deadline", "kyber", "bfq"])
    return given


SPEEDS = {"none": (4.0, 4.0), "mq-deadline": (1.0, 2.0)}
AGAIN = {"none": (2.0, 2.0), "mq-deadline": (3.0, 3.0)}
GIVEN = {"JOBS": "3 4", "SCHEDULERS": "none mq-deadline", "RUNTIME": "9"}


@pytest.mark.thorough
def test_jobs_go_in_and_advice_comes_out(fake: dict[str, Any]) -> None:
    script: Script = read("advise")
    outcome = run(script, None, GIVEN | {"RUNS": "2"}, lambda text: None)  # type: ignore[arg-type]
    for name, runtime_s in (("3", 9), ("3.recorded", 9 + AROUND_S)):
        assert f"runtime={runtime_s}\n" in fake["machine"].files[f"/lab/jobs/{name}.fio"].decode()
    assert fake["booted"] is fake["machine"] and "record" in fake["lines"]
    rows = [json.loads(line) for line in outcome.files["results"].splitlines()]
    assert [(row["what"], row["job"]) for row in rows] == [(what, job) for job in ("3", "4") for what in ("run", "run", "advice")]
    assert [row["mbps"] for row in rows[:2]] == [8.0, 3.0] and rows[2]["best"] == "none"
    assert rows[1]["ahead_percent"] == 0 and outcome.console == ["line"]
    assert rows[2]["again"] == "mq-deadline" and rows[2]["again_of_best"] < 0.4


@pytest.mark.thorough
def test_what_was_stored_is_ranked_anew(fake: dict[str, Any], tmp_path: Path) -> None:
    """Nothing boots then, and the rows are those of the run that was stored."""
    outcome = run(read("advise"), None, GIVEN | {"RUNS": "2"}, lambda text: None)  # type: ignore[arg-type]
    del fake["booted"]
    folder = tmp_path / "files"
    folder.mkdir()
    for name, data in outcome.files.items():
        (folder / name).write_bytes(data)
    stored = GIVEN | {"RUNS": "2", "STORED": str(folder)}
    again = run(read("advise"), None, stored, lambda text: None)  # type: ignore[arg-type]
    assert again.files["results"] == outcome.files["results"]
    (folder / "4.none.again.fio").unlink()
    rows = run(read("advise"), None, stored, lambda text: None).files["results"].splitlines()  # type: ignore[arg-type]
    assert ["again" in json.loads(line) for line in rows if json.loads(line)["what"] == "advice"] == [True, False]
    (folder / "4.none.fio").unlink()
    with pytest.raises(Problem, match=r"4\.none\.fio: No such file"):
        run(read("advise"), None, stored, lambda text: None)  # type: ignore[arg-type]
    assert "booted" not in fake


@pytest.mark.thorough
def test_recordings_are_ranked_beside_what_was_measured(
    fake: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the recordings are read then. The rows are the same if the ranks are; those of another rank say what that is worth."""
    monkeypatch.setitem(SPEEDS, "hw-as", (9.0, 9.0))
    monkeypatch.setitem(AGAIN, "hw-as", (9.0, 9.0))
    monkeypatch.setattr(advice, "default_set", lambda: ["none", "mq-deadline", "as"])
    given = GIVEN | {"RUNS": "2", "SCHEDULERS": "none mq-deadline hw-as"}
    outcome = run(read("advise"), None, given, lambda text: None)  # type: ignore[arg-type]
    rows = [json.loads(line) for line in outcome.files["results"].splitlines()]
    for job in ("3", "4"):
        (tmp_path / f"{job}.recording").write_bytes(outcome.files[f"{job}.recording"])
    printed = tmp_path / "advise.json"
    twice = [{"kernel": name, **row} for name in ("6.12", "6.1") for row in rows]
    document = {"schema": "headwaiter-lab/1", "experiment": "advise", "results": twice}
    printed.write_text(json.dumps(document))
    stored = given | {"STORED": str(tmp_path), "MEASURED": str(printed)}

    def again() -> list[dict[str, Any]]:
        outcome = run(read("advise"), SimpleNamespace(name="6.12"), stored, lambda text: None)  # type: ignore[arg-type]
        return [json.loads(line) for line in outcome.files["results"].splitlines()]

    assert again() == rows
    monkeypatch.setattr(adviser, "ranked", lambda *_: Ranked({"mq-deadline": 0.0, "none": -9.0, "hw-as": 1.0}, "keep", "none"))
    *runs, every, own = again()[:5]
    assert [(row["progress"], row["ahead_percent"]) for row in runs] == [(2.828, -9.0), (1.0, 0.0), (6.364, 1.0)]
    assert (every["scheduler"], every["best"], every["of_best"]) == ("mq-deadline", "hw-as", 0.157)
    assert (every["advised_of_best"], own["among"], own["best"], own["of_best"]) == (0.444, "kernel", "none", 0.354)
    assert (own["again"], own["holds"]) == ("mq-deadline", True)
    monkeypatch.setattr(adviser, "ranked", lambda *_: Ranked({"mq-deadline": 0.0, "none": 1.0}, "keep", "none"))
    with pytest.raises(Problem, match="does not rank hw-as"):
        again()
    monkeypatch.setattr(adviser, "ranked", lambda *_: Ranked({"mq-deadline": 0.0, "none": 1.0, "hw-as": 1.0}, "keep", "none"))
    with pytest.raises(Problem, match="job 3 was not measured under FIRST=hw-as"):
        run(read("advise"), SimpleNamespace(name="6.12"), stored | {"FIRST": "hw-as"}, lambda text: None)  # type: ignore[arg-type]
    printed.write_text(json.dumps({**document, "results": [{"kernel": "6.12", **row} for row in rows[5:]]}))
    with pytest.raises(Problem, match=r"advise\.json: there is no job 3"):
        again()
    row = twice[0]
    lacking = [{k: v for k, v in row.items() if k != key} for key in ("progress", "kernel")]
    odd = [json.dumps({**document, "results": [one]}) for one in ({**row, "what": "x"}, {**row, "job": [3]}, *lacking)]
    for wrong in ("", "[]", '{"results": 1}', '{"results": [], "experiment": "watch"}', '{"results": [3]}', *odd):
        printed.write_text(wrong)
        with pytest.raises(Problem, match=r"advise\.json: this is not what"):
            again()
    with pytest.raises(Problem, match="MEASURED needs the recordings"):
        run(read("advise"), None, given | {"MEASURED": str(printed)}, lambda text: None)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_advice_about_the_kernels_own_has_a_row_of_its_own(fake: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ours ran, too: every machine has the former."""
    monkeypatch.setitem(SPEEDS, "hw-as", (9.0, 9.0))
    monkeypatch.setattr(advice, "default_set", lambda: ["none", "mq-deadline", "as"])
    outcome = run(read("advise"), None, GIVEN | {"JOBS": "3", "SCHEDULERS": "none mq-deadline hw-as"}, lambda text: None)  # type: ignore[arg-type]
    *_, every, own = [json.loads(line) for line in outcome.files["results"].splitlines()]
    assert (every["among"], every["best"]) == ("all", "hw-as")
    assert (own["among"], own["best"]) == ("kernel", "none")
    assert own["scheduler"] in ("none", "mq-deadline")


@pytest.mark.thorough
def test_a_job_that_asks_nothing_of_the_disk_is_passed_over(fake: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it reads may be in memory."""

    def ranked(*given: Any, whole: Any = adviser.ranked) -> Ranked:
        if not said:
            said.append("once")
            raise NoRequestsError("nothing")
        return whole(*given)  # type: ignore[no-any-return]

    said: list[str] = []
    monkeypatch.setattr(adviser, "ranked", ranked)
    told: list[str] = []
    outcome = run(read("advise"), None, GIVEN, told.append)  # type: ignore[arg-type]
    rows = [json.loads(line) for line in outcome.files["results"].splitlines()]
    assert {row["job"] for row in rows} == {"4"} and "advise: job 3 asked nothing of the disk" in told


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"FIRST": "bfq"}, "FIRST=bfq is not among"),
        ({"JOBS": "1 two"}, "JOBS=1 two: expected numbers"),
        ({"RUNTIME": "0"}, "RUNTIME=0: expected numbers"),
    ],
)
def test_wrong_parameters_are_told_before_a_guest_boots(fake: dict[str, Any], wrong: dict[str, str], why: str) -> None:
    with pytest.raises(Problem, match=why):
        run(read("advise"), None, GIVEN | wrong, lambda text: None)  # type: ignore[arg-type]
    assert "booted" not in fake


def test_no_sequential_reader_is_through_with_its_file() -> None:
    """It would read it again from memory, and no scheduler has a part in that. All else is as it was, and on the drive."""
    mib, longer, shorter = 80 << 10, 0, 0
    for seed in range(400):
        jobs = [options_of(mixed_job(seed, mib << 20, 10, unread_mib)) for unread_mib in (0, 3000)]
        for was, now in zip(*jobs, strict=True):
            assert {**was, "size": ""} == {**now, "size": ""}
            size, step, number = int(now["size"][:-1]), int(was.get("offset_increment", "0m")[:-1]), int(was.get("numjobs", 1))
            assert int(now["offset"][:-1]) + (number - 1) * step + size <= mib and size >= int(was["size"][:-1])
            if now["direct"] == "0" and now["rw"] in ("read", "rw"):
                assert size >= 3000 or size == step or int(now["offset"][:-1]) + (number - 1) * step + size == mib
                longer += was["size"] != now["size"]
                shorter += size < 3000
                assert not step or size <= step
            else:
                assert was == now
    assert longer > 100 and shorter > 3


@pytest.mark.thorough
def test_a_reader_has_a_file_for_the_whole_run(fake: dict[str, Any]) -> None:
    run(read("advise"), None, GIVEN | {"JOBS": "7", "RUNTIME": "20", "RUNS": "2"}, lambda text: None)  # type: ignore[arg-type]
    files = fake["machine"].files
    of = [one for name, text in files.items() if name.startswith("/lab/jobs/") for one in options_of(text.decode())]
    sizes = {one["size"] for one in of if one["direct"] == "0" and one["rw"] in ("read", "rw")}
    assert sizes == {f"{FASTEST_MIB_S * (20 + AROUND_S)}m"}


def test_only_the_runtime_of_a_random_job_can_be_chosen() -> None:
    short, long = (mixed_job(5, 80 << 30, seconds) for seconds in (RUNTIME_S, 60))
    assert short == mixed_job(5, 80 << 30) and short.replace(f"runtime={RUNTIME_S}\n", "runtime=60\n") == long


@pytest.mark.long
@pytest.mark.thorough
@pytest.mark.needs("lab")
def test_advice_is_that_of_the_lab() -> None:
    """The guest runs a random job under each scheduler, and advise ranks them all."""
    given = {"JOBS": "1", "RUNTIME": "4", "SCHEDULERS": "mq-deadline hw-as"}
    *runs, said = _run("advise", "6.12", given)
    assert [row["scheduler"] for row in runs] == ["mq-deadline", "hw-as"] and all(row["mbps"] > 0 for row in runs)
    assert runs[0]["ahead_percent"] == 0 and said["best"] == max(runs, key=lambda row: row["progress"])["scheduler"]
