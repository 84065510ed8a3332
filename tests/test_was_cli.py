# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`headwaiter was` from end to end: a recording in, a configuration out, and into a disk's scheduler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import good, run, told, write

from headwaiter.cli import was as cli
from headwaiter.engine.schedulers import find
from headwaiter.papers.was import sysfs
from headwaiter.papers.was.config import config, load, save
from headwaiter.papers.was.matrix import load_matrix
from headwaiter.papers.was.timetable import Units, at, lasting, timetable

SMALL = ("--history", 3, "--classes", 4, "--spatial-steps", "60,30,0", "--temporal-steps", "40,0")
AS_FITTED = ("-d", "barracuda-80g", "--no-goes-on", "--positions", "--nr-requests", 256, "--wbt-depth", 0)


def refused(capfd: pytest.CaptureFixture[str], *args: object) -> str:
    status, out, err = run(capfd, *args)
    assert (status, out) == (2, "")
    return err


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration by hand: four classes, all of which wait 10 ms."""
    path = tmp_path_factory.mktemp("was") / "classes.toml"
    save(config(3, [[0, 60], [257, 30], [100_000, 0]], [[0, 40], [3000, 0]], [10_000] * 4), path)
    return path


def test_calibrate(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The steps hold equally many reads, the points are those asked for, everybody waits 10 ms."""
    out = good(capfd, "was", "calibrate", "-o", tmp_path / "c.toml", *SMALL)
    found = load(tmp_path / "c.toml")
    assert (found.history, found.classes, set(found.wait_us)) == (3, 4, {10_000})
    assert ([p for _, p in found.spatial], [p for _, p in found.temporal]) == ([60, 30, 0], [40, 0])
    assert found.made["from"] == "example.blktrace.xz on barracuda-80g"
    assert out.startswith("4 classes from the last 3 reads of a process; 3 steps of distance and 2 of time")
    document = told(capfd, "was", "calibrate", *SMALL)
    assert document["calibration"]["spatial_steps"] == [list(s) for s in found.spatial]
    assert document["calibration"]["candidates"] == 1
    assert good(capfd, "was", "calibrate", *SMALL) == (tmp_path / "c.toml").read_text(), "without -o it goes to stdout"


@pytest.mark.parametrize("form", ["json", "toml"])
def test_observe_and_designate(capfd: pytest.CaptureFixture[str], tmp_path: Path, classes: Path, form: str) -> None:
    matrix, output = tmp_path / f"m.{form}", tmp_path / "was.toml"
    out = good(capfd, "was", "observe", "readers-4", "-c", classes, "-o", matrix)
    found = load_matrix(matrix)
    assert out == f"{int(found.counts.sum())} waits in {len(found.populated)} of 4 classes\n"
    assert matrix.read_text().startswith("{" if form == "json" else "format = ")
    shown = good(capfd, "was", "designate", "-c", classes, "-a", matrix, "-o", output)
    assert "the relaxation, which no intervals can beat, has" in shown and "T_F/A_S" in shown
    given = load(output)
    assert given.classifier == load(classes).classifier and given.wait_us != load(classes).wait_us
    document = told(capfd, "was", "designate", "-c", classes, "-a", matrix)["designation"]
    assert document["wait_us"] == list(given.wait_us) and document["waits"] == int(found.counts.sum())
    assert document["relaxed_failures"] <= document["failures"]
    simple = told(capfd, "was", "designate", "-c", classes, "-a", matrix, "--heuristic", "--least-ms", "3")["designation"]
    assert min(simple["wait_us"]) == 4000 and simple["relaxed_failures"] is None
    assert load(output).made["bound_us"] == 6000 and load(output).made["observed"] == "readers-4.fio on barracuda-80g"


def test_a_matrix_of_other_classes_is_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path, classes: Path) -> None:
    matrix, other = tmp_path / "m.json", tmp_path / "other.toml"
    good(capfd, "was", "observe", "readers-2", "-c", classes, "-o", matrix)
    save(config(3, [[0, 60], [256, 30], [100_000, 0]], [[0, 40], [3000, 0]], [10_000] * 4), other)
    expected = f"headwaiter: {matrix}: its waits were classified by a configuration other than {other}\n"
    assert refused(capfd, "was", "designate", "-c", other, "-a", matrix) == expected


def test_a_bound_that_cannot_be_kept(capfd: pytest.CaptureFixture[str], tmp_path: Path, classes: Path) -> None:
    matrix = tmp_path / "m.json"
    good(capfd, "was", "observe", "-c", classes, "-o", matrix)
    err = refused(capfd, "was", "designate", "-c", classes, "-a", matrix, "--bound-ms", "2", "--least-ms", "4")
    assert err.startswith(f"headwaiter: {matrix}: no intervals keep the mean failed wait below G = 2 ms: ")
    assert "so the nearest G that can be kept is 5.001 ms" in err


def test_fit(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is written loads into the simulator, and does there what the trial said."""
    output, plot = tmp_path / "was.toml", tmp_path / "p.svg"
    document = json.loads(good(capfd, "was", "fit", "-o", output, "--plot", plot, "--json", "--runs", 0, *SMALL))
    trial = document["trial"]
    assert trial["was"]["T_F_per_A_S_ms"] < trial["as"]["T_F_per_A_S_ms"] and trial["throughput"] >= 1
    assert document["wait_us"] == list(load(output).wait_us)
    assert plot.read_text().startswith("<?xml")
    out = told(
        capfd, "run", "example", "-s", "was", "--set", "cooperation=1", "--set", f"config={output}", "--seeds", "0", *AS_FITTED
    )
    waits = out["results"][0]["anticipation"]
    assert (waits["A_S"], waits["A_F"]) == (trial["was"]["A_S"], trial["was"]["A_F"])
    text = good(capfd, "was", "fit", "-o", tmp_path / "again.toml", "--runs", 0, *SMALL)
    assert (tmp_path / "again.toml").read_bytes() == output.read_bytes()
    assert "Best of" in text and "better" in text


def test_progress_of_a_fit_comes_to_its_total(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The observation, and then all trials with all their runs, in I/Os."""
    bars: dict[str, tuple[int, dict[str, int]]] = {}

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Callable[[str, int], None]]:
        done: dict[str, int] = {}
        bars[title] = (total, done)
        yield done.__setitem__

    monkeypatch.setattr(cli, "progress_bar", bar)
    good(capfd, "was", "fit", "-o", tmp_path / "was.toml", "--runs", 1, "--bound-ms", 6, *SMALL)
    assert list(bars) == ["example.blktrace.xz on barracuda-80g", "trying configurations"]
    assert [total for total, _ in bars.values()] == [sum(done.values()) for _, done in bars.values()]
    trials = list(bars["trying configurations"][1])
    assert trials == [f"{k} of {len(trials)}" for k in range(1, len(trials) + 1)]


def test_fit_without_waits(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    load_ = write(tmp_path / "t.csv", "time_s,task,op,sync,sector,sectors\n0.0,1,R,1,0,8\n1.0,1,R,1,800,8\n")
    err = refused(capfd, "was", "fit", load_, "-o", tmp_path / "was.toml", "--drive", "constant:1")
    assert err.startswith("headwaiter: t.csv on constant:1: the scheduler never waited, so calibration is not possible")
    assert not (tmp_path / "was.toml").exists()


def test_evaluate(capfd: pytest.CaptureFixture[str]) -> None:
    """The bundled recording: its first half fits, its second half judges."""
    (verdict,) = told(capfd, "was", "evaluate", "example", *SMALL)["verdicts"]
    assert verdict["better"] and verdict["keeps_up"] and verdict["as"]["A_S"] > 100
    text = good(capfd, "was", "evaluate", "example", *SMALL)
    assert f"{verdict['throughput']:.3f}" in text and "better" in text


def test_evaluate_a_configuration(capfd: pytest.CaptureFixture[str], tmp_path: Path, classes: Path) -> None:
    """By the whole of each workload, of any kind, and nothing is fitted: what `run` says of it."""
    found = told(capfd, "was", "evaluate", "-c", classes, "readers-4", "example", "--runs", 0)
    assert found["policy"] == "was" and [v["load"] for v in found["verdicts"]] == ["readers-4.fio", "example.blktrace.xz"]
    ran = told(
        capfd, "run", "readers-4", "-s", "was", "--set", "cooperation=1", "--set", f"config={classes}", "--seeds", "0", *AS_FITTED
    )
    waits = ran["results"][0]["anticipation"]
    assert (waits["A_S"], waits["A_F"]) == (found["verdicts"][0]["was"]["A_S"], found["verdicts"][0]["was"]["A_F"])
    online = told(capfd, "was", "evaluate", "--online", "--whole", "readers-4", "--runs", 0)
    ran = told(capfd, "run", "readers-4", "-s", "was-online", "--set", "cooperation=1", "--seeds", "0")
    assert online["policy"] == "was-online"
    assert online["verdicts"][0]["was"]["A_S"] == ran["results"][0]["anticipation"]["A_S"]
    halves = told(capfd, "was", "evaluate", "--online", "example", "--runs", 0)["verdicts"][0]
    assert halves["as"]["A_S"] < found["verdicts"][1]["as"]["A_S"]
    assert "was-online versus as" in good(capfd, "was", "evaluate", "--online", "example", "--runs", 0)
    assert "mutually exclusive" in refused(capfd, "was", "evaluate", "--online", "-c", classes, "example")
    assert "only a trace has halves" in refused(capfd, "was", "evaluate", "readers-2")
    assert "only a trace has halves" in refused(capfd, "was", "evaluate", "kva")
    assert "--whole needs --online" in refused(capfd, "was", "evaluate", "--whole", "example")


@pytest.mark.thorough
def test_kva_after_a_cold_boot(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The paper's first table. Fitted to Cold Boot, on KVA 60% fewer waits fail, at half the cost, and no fewer are met."""
    output = tmp_path / "was.toml"
    good(capfd, "was", "fit", "cold-boot", "-o", output)
    (verdict,) = told(capfd, "was", "evaluate", "-c", output, "kva", "--runs", 0)["verdicts"]
    old, new = verdict["as"], verdict["was"]
    assert new["A_F"] <= 0.4 * old["A_F"] and new["T_F_ms"] <= 0.5 * old["T_F_ms"] and new["A_S"] >= old["A_S"]
    assert verdict["throughput"] >= 1


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--spatial-steps", "30,60"), "--spatial-steps 30,60: points must not increase with distance"),
        (("--temporal-steps", "30,x"), "--temporal-steps 30,x: 'x' is not a whole number"),
        (("--temporal-steps", "101,0"), "--temporal-steps 101,0: 101 is outside 0..100"),
        (("--bucket", "300"), "a bucket of 300 us: the longest wait, 10000 us, must be a multiple of it"),
        (("--plot", "x.txt"), "x.txt: the plot's name must end in .png, .svg, .pdf"),
    ],
)
def test_options_that_are_refused(capfd: pytest.CaptureFixture[str], tmp_path: Path, args: tuple[str, str], why: str) -> None:
    output = tmp_path / "was.toml"
    assert refused(capfd, "was", "calibrate", "readers-2", "-o", output, *args) == f"headwaiter: {why}\n"
    assert not output.exists()


def test_files_are_not_overwritten_by_accident(capfd: pytest.CaptureFixture[str], tmp_path: Path, classes: Path) -> None:
    path = write(tmp_path / "t.csv", "time_s,task,op,sync,sector,sectors\n0.0,1,R,1,0,8\n")
    assert "name the same file" in refused(capfd, "was", "fit", path, "-o", path)
    matrix = tmp_path / "m.json"
    good(capfd, "was", "observe", "readers-2", "-c", classes, "-o", matrix)
    assert "name the same file" in refused(capfd, "was", "designate", "-c", classes, "-a", matrix, "-o", matrix)


# --- a live disk, played by a folder ---


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """sysfs of a disk that runs hw-was."""
    queue = tmp_path / "sys" / "block" / "sda" / "queue"
    (queue / "iosched").mkdir(parents=True)
    write(queue / "scheduler", "none mq-deadline [hw-was] hw-as\n")
    write(queue / "iosched" / "config", "")
    write(queue / "iosched" / "cooperation", "0\n")
    return queue


def test_load(capfd: pytest.CaptureFixture[str], disk: Path, classes: Path) -> None:
    sysfs = disk.parents[2]
    for name in ("sda", "/dev/sda"):
        write(disk / "iosched" / "config", "")
        out = good(capfd, "was", "load", classes, name, "--sysfs", sysfs)
        assert out == f"{classes} is in force: {disk}/iosched/config reads back the same\n"
        rows = find("was").tables["config"].parse("x", (disk / "iosched" / "config").read_bytes())
        assert rows.tolist() == load(classes).rows().tolist()
        assert (disk / "iosched" / "config").read_text() == find("was").tables["config"].show(rows, brief=True)
        assert (disk / "iosched" / "cooperation").read_text() == "1\n", "the rules that it was tried with"


@pytest.mark.parametrize(
    ("device", "scheduler", "why"),
    [
        ("sdb", None, "sdb: no such disk ("),
        ("../sda", None, "../sda: no such disk ("),
        ("sda", "none [mq-deadline] hw-was", "sda: its scheduler is mq-deadline: run `echo hw-was >"),
        ("sda", "[none]", "sda: its scheduler is none: run `echo hw-was >"),
    ],
)
def test_load_needs_the_scheduler(
    capfd: pytest.CaptureFixture[str], disk: Path, classes: Path, device: str, scheduler: str | None, why: str
) -> None:
    if scheduler:
        write(disk / "scheduler", scheduler + "\n")
    err = refused(capfd, "was", "load", classes, device, "--sysfs", disk.parents[2])
    assert err.startswith(f"headwaiter: {why}") and err.count("\n") == 1
    assert (disk / "iosched" / "config").read_text() == ""


def test_by_the_time_of_day(capfd: pytest.CaptureFixture[str], disk: Path, classes: Path, tmp_path: Path) -> None:
    """One of two is in force, whichever the hour; both at once would need two times."""
    other = tmp_path / "other night.toml"
    other.write_text(classes.read_text().replace("# ", "#  "))
    words = ("was", "schedule", "sda", f"08:00={classes}", f"20:00={other}", "--sysfs", disk.parents[2])
    out = good(capfd, *words)
    now, then = (classes, other) if f"{classes} is in force" in out else (other, classes)
    assert out.startswith(f"{now} is in force until {'20:00' if now == classes else '08:00'}, when {then} follows: ")
    assert (disk / "iosched" / "config").read_text()
    units = tmp_path / "units"
    units.mkdir()
    status, out, err = run(capfd, *words, "--persist", "--units", units)
    assert status == 0 and err.startswith("headwaiter: sda has no name in /dev/disk/by-id: ")
    assert "To be run: systemctl enable --now headwaiter-was-sda.timer\n" in out
    timer, service = ((units / f"headwaiter-was-sda.{kind}").read_text() for kind in ("timer", "service"))
    assert [line for line in timer.splitlines() if "OnCalendar" in line] == [
        "OnCalendar=*-*-* 08:00:00",
        "OnCalendar=*-*-* 20:00:00",
    ]
    start = next(line for line in service.splitlines() if line.startswith("ExecStart="))
    assert f'was schedule sda 08:00={classes} "20:00={other}"' in start
    assert "changed by the clock" in good(capfd, "was", "schedule", "sda", "--forget", "--units", units)
    assert not list(units.iterdir())
    assert "has no timetable" in refused(capfd, "was", "schedule", "sda", "--forget", "--units", units)


@pytest.mark.needs("systemd")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """With a word of each kind that must be quoted."""
    made = Units(tmp_path, "headwaiter-was-sda")
    table = timetable(["08:00=/a/day 100%.toml", '20:00=/a/"night" $1.toml'])
    made.keep("/usr/bin/true", "/dev/disk/by-id/wwn-0x5000", table)
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / made.timer], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "at least one HH:MM=CONFIG"),
        (("day.toml",), "expected HH:MM=CONFIG"),
        (("24:00=day.toml",), "expected HH:MM=CONFIG"),
        (("8:00=day.toml",), "expected HH:MM=CONFIG"),
        (("08:00=",), "expected HH:MM=CONFIG"),
        (("08:00=a.toml", "08:00=b.toml"), "08:00 has a.toml already"),
        (("08:00=nonesuch.toml",), "nonesuch.toml"),
    ],
)
def test_what_is_no_timetable(capfd: pytest.CaptureFixture[str], disk: Path, words: tuple[str, ...], why: str) -> None:
    err = refused(capfd, "was", "schedule", "sda", *words, "--sysfs", disk.parents[2])
    assert why in err and err.count("\n") == 1
    assert (disk / "iosched" / "config").read_text() == ""


def test_what_is_in_force_at_each_minute() -> None:
    table = timetable(["19:00=night", "07:30=day", "12:00=noon"])
    found = {minute: at(table, minute) for minute in (0, 449, 450, 719, 720, 1139, 1140, 1439)}
    names = {minute: (now.config.name, then.time) for minute, (now, then) in found.items()}
    assert names[0] == names[449] == ("night", "07:30") and names[450] == names[719] == ("day", "12:00")
    assert names[720] == names[1139] == ("noon", "19:00") and names[1140] == names[1439] == ("night", "07:30")


def test_a_name_that_lasts(tmp_path: Path) -> None:
    (tmp_path / "sdb").touch()
    for link in ("ata-DISK_1", "wwn-0x5000", "ata-DISK_1-part1"):
        (tmp_path / link).symlink_to(tmp_path / ("sdb1" if "part" in link else "sdb"))
    assert lasting("sdb", tmp_path) == tmp_path / "wwn-0x5000" == lasting("/dev/sdb", tmp_path)
    assert lasting("sdc", tmp_path) is None is lasting("sdb", tmp_path / "nonesuch")


def test_load_reads_back(capfd: pytest.CaptureFixture[str], disk: Path, classes: Path) -> None:
    """A file that was longer keeps its end, as no sysfs file does: what is read is not what was written."""
    write(disk / "iosched" / "config", "\n" * 600 + "interval 4 1\n")
    err = refused(capfd, "was", "load", classes, "sda", "--sysfs", disk.parents[2])
    assert "config: " in err and err.count("\n") == 1
    (disk / "iosched" / "config").unlink()
    assert "No such file or directory" in refused(capfd, "was", "load", classes, "sda", "--sysfs", disk.parents[2])


@pytest.fixture
def counting(disk: Path, classes: Path) -> Path:
    """The kernel has a configuration in force and counts: class 1 met three times, and class 4 once, and twice in vain."""
    table = find("was").tables["config"]
    write(disk / "iosched" / "config", table.show(table.check("x", load(classes).rows())))
    write(disk / "iosched" / "observe", "1\n")
    write(disk / "iosched" / "bucket_us", "1000\n")
    write(disk / "iosched" / "observed", "1 0:3\n4 2:1 64:2\n")
    write(disk / "iosched" / "observed_from", "9\n")
    return disk


def test_observe_a_disk(capfd: pytest.CaptureFixture[str], tmp_path: Path, counting: Path, classes: Path) -> None:
    matrix = tmp_path / "m.json"
    out = good(capfd, "was", "observe", "-c", classes, "--from-device", "sda", "--sysfs", counting.parents[2], "-o", matrix)
    assert out == "6 waits in 2 of 4 classes\n"
    found = load_matrix(matrix)
    assert found.counts.tolist() == [[3, *[0] * 10], [0] * 11, [0] * 11, [0, 0, 1, *[0] * 7, 2]]
    assert (found.bucket_us, found.classifier) == (1000, load(classes).classifier)
    assert (counting / "iosched" / "observed_from").read_text() == "1\n", "a read begins with the first class"


def test_counts_come_a_page_after_the_other(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, counting: Path, classes: Path
) -> None:
    pages = {"1\n": "1 0:3\nnext 3\n", "3\n": "3 1:5\nnext 4\n", "4\n": "4 64:2\n"}
    monkeypatch.setattr(sysfs, "_write", lambda _path, text: write(counting / "iosched" / "observed", pages[text]))
    matrix = tmp_path / "m.json"
    good(capfd, "was", "observe", "-c", classes, "--from-device", "sda", "--sysfs", counting.parents[2], "-o", matrix)
    assert load_matrix(matrix).counts.sum(axis=1).tolist() == [3, 0, 5, 2]


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("observe", "0", "sda: nothing is counted: run `echo 1 >"),
        ("config", "", "sda: another configuration is in force"),
        ("observed", "5 0:1", "class 5, column 0: not of 4 classes and 10 buckets"),
        ("observed", "1 10:1", "class 1, column 10: not of 4 classes and 10 buckets"),
        ("observed", "1 0:1 3", "'' is not a whole number"),
        ("observed", "1 x", "'x' is not a whole number"),
        ("observed", "1 0:1\nnext 2\n", "its page from class 2 ends before class 2"),
        ("bucket_us", "300", "a bucket of 300 us"),
    ],
)
def test_a_disk_that_counts_something_else(
    capfd: pytest.CaptureFixture[str], counting: Path, classes: Path, file: str, content: str, why: str
) -> None:
    write(counting / "iosched" / file, content)
    err = refused(capfd, "was", "observe", "-c", classes, "--from-device", "sda", "--sysfs", counting.parents[2])
    assert why in err and err.count("\n") == 1


def test_a_disk_runs_no_workload(capfd: pytest.CaptureFixture[str], classes: Path) -> None:
    err = refused(capfd, "was", "observe", "readers", "-c", classes, "--from-device", "sda")
    assert "it takes no WORKLOAD" in err


# --- recorded data ---


@pytest.mark.thorough
def test_real_traces(capfd: pytest.CaptureFixture[str], shared: Path) -> None:
    """Calibrated on one half, judged by the other: no throughput is lost."""
    traces = [shared / "data" / "traces" / name for name in ("mqsim-wsrch-small.trace", "msr-cambridge1-sample.csv")]
    found = told(capfd, "was", "evaluate", *traces, "--drive", "wd-re-4tb", "--streams", "8", "--speed", "100")
    assert len(found["verdicts"]) == 2 and all(v["keeps_up"] for v in found["verdicts"])
    search = found["verdicts"][0]
    assert 0 < search["was"]["T_F_ms"] < search["as"]["T_F_ms"]
