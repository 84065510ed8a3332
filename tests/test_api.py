# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python interface: what the commands do, with the same figures."""

from __future__ import annotations

import base64
import doctest
import gzip
import hashlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

import nbformat
import numpy as np
import pytest
from command import good, told
from command import run as command
from nbclient import NotebookClient

import headwaiter
from headwaiter.base.errors import Problem
from headwaiter.engine.sim import ConstantDrive
from headwaiter.traces import Trace, part
from headwaiter.traces.formats.native import native_csv

ROOT = Path(__file__).resolve().parent.parent
HEADER = "time_s,task,op,sync,sector,sectors,complete_s\n"
TWO = HEADER + "".join(
    f"{0.006 * i:.6f},{t},R,1,{base + 8 * i},8,{0.006 * i + 0.005:.6f}\n"
    for i in range(40)
    for t, base in ((1, 0), (2, 1_000_000))
)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.csv"
    path.write_text(TWO)
    return path


def test_an_import_loads_nothing_else(tmp_path: Path) -> None:
    """NumPy, cffi and the library come with the first use."""
    program = "import sys, headwaiter; dir(headwaiter); print(*sorted(m for m in sys.modules if m.split('.')[0] in sys.argv[1:]))"
    names = ["headwaiter", "numpy", "cffi", "click", "rich", "pandas", "matplotlib", "bokeh"]
    done = subprocess.run([sys.executable, "-P", "-c", program, *names], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["headwaiter"]


def test_the_interface_needs_no_optional_package(tmp_path: Path) -> None:
    program = "import sys, headwaiter; headwaiter.compare; headwaiter.drives(); print(*sorted({*sys.argv[1:]} & {*sys.modules}))"
    names = ["pandas", "matplotlib", "bokeh", "jinja2", "scipy"]
    done = subprocess.run([sys.executable, "-P", "-c", program, *names], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == []


def test_every_name_is_there_and_no_other() -> None:
    for name in headwaiter.__all__:
        assert getattr(headwaiter, name) is not None and name in dir(headwaiter)
    with pytest.raises(AttributeError, match="has no attribute 'comparison'"):
        headwaiter.comparison  # noqa: B018


def test_drives_can_be_called_after_the_package_was_imported() -> None:
    importlib.import_module("headwaiter.drives.profile")
    assert headwaiter.drives()["barracuda-80g"].facts[2], "it rotates"
    first = "import headwaiter; assert headwaiter.drives()['barracuda-80g'].facts[2]"
    subprocess.run([sys.executable, "-P", "-c", first], check=True)


def test_compare_has_the_figures_of_the_command(two: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ours = headwaiter.compare(two, drive="constant:5", schedulers=["as", "noop"], settings={"as": {"antic_expire": 2}}, seed=3)
    words = ["--drive", "constant:5", "--sched", "as,noop", "--set", "as.antic_expire=2", "--seed", "3"]
    assert json.loads(ours.to_json()) == told(capfd, "compare", two, *words)
    assert ours.best is ours.results[0] and ours["noop"].scheduler == "noop" and ours.answer == ours.document.answer


def test_compare_judges_by_what_it_is_given(two: Path) -> None:
    found = headwaiter.compare(
        two, drive="constant:5", schedulers=["noop", "as"], by="fairness", current="as", margin=0.25, runs=0
    ).document
    assert (found.answer.baseline, found.answer.margin_percent, found.ranked_by) == ("as", 25, "fairness")
    plain = headwaiter.compare(two, drive="constant:5", schedulers=["noop", "as"], runs=0).document
    assert (plain.answer.baseline, plain.answer.margin_percent, plain.ranked_by) == ("noop", 5, "progress")
    wrong, anyway = (
        headwaiter.compare(two, drive="constant:1", schedulers=["noop", "as"], runs=0, anyway=anyway).answer.outcome
        for anyway in (False, True)
    )
    assert wrong == "wrong drive" != anyway


def test_a_variant_says_more_than_the_settings_of_its_scheduler(two: Path) -> None:
    """Without a wait there is none, with one there are some."""
    for variant, other in ((0, 6), (6, 0)):
        name = f"as:antic_expire={variant}"
        found = headwaiter.compare(
            two, drive="barracuda-80g", schedulers=["as", name], settings={"as": {"antic_expire": other}}, runs=0
        )
        assert [found[one].anticipation is not None for one in ("as", name)] == [other > 0, variant > 0]


def test_streams_of_a_trace(tmp_path: Path) -> None:
    """Two readers, whom the trace does not tell apart."""
    path = tmp_path / "two.load"
    path.write_text("".join(f"{1 + 2 * i + k} 0 {10**6 * k + 8 * i} 8 1\n" for i in range(20) for k in (0, 1)))
    assert [len(headwaiter.read_trace(path, streams=n).tasks) for n in (0, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("words", "conditions"),
    [
        (["--replay", "open"], {"replay": "open"}),
        (["--speed", "2"], {"speed": 2.0}),
        (["--no-merging", "--max-sectors", "4"], {"merging": False, "max_sectors": 4}),
        (["--nr-requests", "1", "--queue-depth", "1", "--cpus", "2"], {"nr_requests": 1, "queue_depth": 1, "cpus": 2}),
        (["--dispatch-time", "900+50"], {"dispatch_time": "900+50"}),
        (["--share", "2=900"], {"shares": {2: 900}}),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_run_takes_the_options_of_the_command(
    two: Path, capfd: pytest.CaptureFixture[str], words: list[str], conditions: headwaiter.Conditions
) -> None:
    ours = headwaiter.run(two, "as-share", drive="barracuda-80g", runs=0, **conditions)
    base = ("run", two, "--sched", "as-share", "--drive", "barracuda-80g", "--seeds", "0")
    theirs = told(capfd, *base, *words)
    assert json.loads(ours.to_json()) == theirs
    assert theirs != told(capfd, *base), "the option matters here"


@pytest.mark.thorough
def test_report_is_the_page_of_the_command(two: Path, tmp_path: Path) -> None:
    headwaiter.compare(two, drive="constant:5", schedulers=["as", "noop"], runs=0).report(tmp_path / "ours.html")
    words = ["--drive", "constant:5", "--sched", "as,noop", "--seeds", "0", "--report", str(tmp_path / "theirs.html")]
    command = [sys.executable, "-P", "-m", "headwaiter", "compare", str(two), *words]
    subprocess.run(command, check=True, capture_output=True)
    ours, theirs = ((tmp_path / name).read_text() for name in ("ours.html", "theirs.html"))
    assert ours.partition("Bokeh.embed")[0] == theirs.partition("Bokeh.embed")[0], "what follows has numbers of the process"


def test_a_run_has_every_io(two: Path) -> None:
    """Two readers of 40 blocks each on a disk that takes 5 ms: worked out by hand."""
    run = headwaiter.run(two, "noop", drive=ConstantDrive(5_000_000), dispatch_time="0", turnaround="0", goes_on=False)
    ios = run.to_pandas()
    assert len(ios) == 80 and set(ios.task) == {"task 1", "task 2"} and set(ios.op) == {"read"}
    assert ios.latency_ms[:2].tolist() == [5.0, 10.0] and ios.issue_s[:2].tolist() == [0.0, 0.0]
    assert ios.latency_ms.max() < 20 < 1000 * ios.issue_s.max()
    assert ios.sector[:4].tolist() == [0, 1_000_000, 8, 1_000_008] and set(ios.sectors) == {8}
    assert run.result.requests == 80 and "read" in str(run) and "<table>" in run._repr_html_()


def test_names_of_tasks_are_no_markup(tmp_path: Path) -> None:
    path = tmp_path / "named.csv"
    path.write_text("time_s,task,op,sync,sector,sectors,name\n0,1,R,1,0,8,<b>dd\n")
    shown = headwaiter.run(path, "noop", drive="constant:5")._repr_html_()
    assert "&lt;b&gt;dd" in shown and "<b>" not in shown


def test_without_merging_every_io_is_a_request(tmp_path: Path) -> None:
    """Neighbours that arrive together, under a scheduler that takes them one by one."""
    path = tmp_path / "pairs.csv"
    rows = "".join(f"{0.001 * (i // 8):.6f},1,R,0,{8 * i},8,\n" for i in range(64))
    path.write_text(HEADER + rows)
    merges = [
        headwaiter.run(path, "noop", drive=ConstantDrive(5_000_000), replay="open", merging=merging).result.merges
        for merging in (True, False)
    ]
    assert merges[0] > 0 == merges[1]


def test_to_pandas_has_the_columns_of_csv(two: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = headwaiter.compare(two, drive="constant:5", schedulers=["noop", "as"], runs=0).to_pandas()
    words = ["compare", two, "--drive", "constant:5", "--sched", "noop,as", "--seeds", "0", "--csv"]
    status, printed, _ = command(capfd, *words)
    titles, *rows = (line.split(",") for line in printed.splitlines())
    assert status == 0 and [table.index.name, *table.columns] == titles and list(table.index) == [row[0] for row in rows]
    assert table["throughput_MBps"].tolist() == [float(row[titles.index("throughput_MBps")]) for row in rows]
    assert np.isnan(table["anticipation.A"]["noop"]) and table["anticipation.A"]["as"] > 0
    assert (table.index.name, table["judgement"]["noop"], table["change_percent"]["noop"]) == ("variant", "baseline", 0)


def test_the_verdict_comes_first(two: Path) -> None:
    """In Python's prompt, printed, and in a notebook; a variant goes by its full name."""
    found = headwaiter.compare(two, drive="constant:5", schedulers=["none", "bfq:low_latency=0"], runs=2)
    text = found.answer.text
    assert repr(found) == f"{text}\n(two.csv on constant:5, replayed closed: {', '.join(found.to_pandas().index)})"
    assert sorted(found.to_pandas().index) == ["bfq:low_latency=0", "none"]
    assert " ".join(str(found).split()).startswith(" ".join(text.split()))
    assert found._repr_html_().startswith(f"<p>{escape(text)}</p>")


def test_a_trace_can_be_given_as_such(two: Path) -> None:
    trace = headwaiter.read_trace(two)
    assert len(trace) == 80 and trace.bytes == 80 * 4096
    by_trace, by_name = (headwaiter.compare(w, drive="constant:5", schedulers=["noop", "as"]) for w in (trace, two))
    assert by_trace.to_json() == by_name.to_json()
    assert str(by_trace) == str(by_name) and "noop" in str(by_trace)


def test_a_notebook_shows_names_as_they_are(two: Path) -> None:
    named = two.rename(two.with_name("a<b>&.csv"))
    html = headwaiter.compare(named, drive="constant:5", schedulers=["noop", "as"], runs=0)._repr_html_()
    assert "a&lt;b&gt;&amp;.csv on constant:5" in html and "<b>" not in html
    assert html.count("<tr") == 3 and ">as*</td>" in html


def test_what_is_wrong_is_told_in_one_line(two: Path) -> None:
    calls: dict[str, Callable[[], object]] = {
        "no scheduler 'fast'": lambda: headwaiter.run(two, "fast"),
        "no such drive 'floppy'": lambda: headwaiter.compare(two, drive="floppy"),
        "no such file": lambda: headwaiter.read_trace("absent"),
        "as has no tunable or table 'expire' (known: ": lambda: headwaiter.run(two, "as", settings={"expire": 1}),
        "as.antic_expire: ": lambda: headwaiter.run(two, "as", settings={"antic_expire": "soon"}),
        "settings: bfq is not among the schedulers compared": lambda: headwaiter.compare(
            two, schedulers=["as"], settings={"bfq": {}}
        ),
    }
    for line, call in calls.items():
        with pytest.raises(Problem) as told:
            call()
        assert line in str(told.value) and "\n" not in str(told.value)
    with pytest.raises(TypeError, match="unknown condition spede"):
        headwaiter.run(two, "as", spede=2)  # type: ignore[call-arg]


def test_what_an_absent_package_would_give(two: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = headwaiter.run(two, "noop", drive="constant:5")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Problem, match=r"needs pandas \(pip install headwaiter\[pandas\]\)"):
        run.to_pandas()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(Problem, match=r"need matplotlib \(pip install headwaiter\[plot\]\)"):
        run.plot(tmp_path / "head.png")
    assert not (tmp_path / "head.png").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["headwaiter.api", "headwaiter.drives"])
def test_examples_of_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted and not done.failed


@pytest.mark.thorough
def test_examples_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "api.md").read_text()
    examples = doctest.DocTestParser().get_examples(text.replace("```\n", "\n"))
    assert len(examples) > 15
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTest(examples, {}, "api.md", None, None, None))
    assert not runner.failures


@pytest.mark.thorough
def test_the_notebook_comes_to_its_figure(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "docs" / "trace-to-figure.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert all(not cell.get("outputs") for cell in notebook.cells), "outputs are left out: they would go stale"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = "".join(output.get("text", "") for output in shown)
    assert said.startswith("4943 requests of ")
    tables = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert any("mq-deadline</td>" in table for table in tables), "the comparison"
    picture = base64.b64decode(shown[-1].data["image/png"])
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000


def test_a_document_says_what_made_it_and_of_what(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text(TWO)
    digest = hashlib.sha256(trace.read_bytes()).hexdigest()
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    one = json.loads(headwaiter.run(trace, "noop", "constant:5").to_json())
    assert (one["version"], one["workload_sha256"]) == (headwaiter.__version__, digest)
    assert headwaiter.__version__ == importlib.metadata.version("headwaiter")
    read = headwaiter.read_trace(trace)
    assert headwaiter.run(read, "noop", "constant:5").document.workload_sha256 == digest
    stored = headwaiter.run(packed, "noop", "constant:5").document.workload_sha256
    assert stored == hashlib.sha256(packed.read_bytes()).hexdigest()
    # A trace that comes from no file is known by its native CSV.
    assert headwaiter.run(part(read, 0, len(read)), "noop", "constant:5").document.workload_sha256 == digest_of(read)


def test_the_version_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of a sweep asks for it."""
    assert headwaiter.__version__
    monkeypatch.delattr(headwaiter, "__version__")
    versions = iter("78")
    monkeypatch.setattr(importlib.metadata, "version", lambda _: next(versions))
    assert (headwaiter.__version__, headwaiter.__version__) == ("7", "7")


def digest_of(trace: Trace) -> str:
    return hashlib.sha256(native_csv(trace).encode()).hexdigest()


@pytest.mark.parametrize("folder", [ROOT, Path("/")], ids=["checkout", "root"])
def test_it_is_imported_wherever_one_stands(folder: Path) -> None:
    """`python -c` looks into the folder where it is called first."""
    code = 'import headwaiter; print(headwaiter.compare("readers-2", schedulers=["none", "as"], runs=0))'
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert "MB/s" in done.stdout and "as" in done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(("workload", "scheduler"), [("readers-2", "as"), ("readers-2", "bfq:low_latency=0"), ("example", "bfq")])
def test_to_json_is_what_the_command_prints(workload: str, scheduler: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Byte for byte, with the range over small changes of the load."""
    name, *pairs = scheduler.split(":")
    given = [word for one in pairs for word in ("--set", one)]
    made = headwaiter.run(workload, name, settings=dict(one.split("=") for one in pairs)).to_json()
    assert made == good(capfd, "run", workload, "--sched", name, *given, "--json")
    assert json.loads(made)["results"][0]["range"]["runs"] == 9
    alone = headwaiter.run(workload, name, settings=dict(one.split("=") for one in pairs), runs=0).to_json()
    assert alone == good(capfd, "run", workload, "--sched", name, *given, "--seeds", 0, "--json")
    assert "range" not in json.loads(alone)["results"][0]
