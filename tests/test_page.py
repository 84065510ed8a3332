# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page of compare --report: all in one file, drawn by a browser without errors, with the figures of --json."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import axe_core_python
import numpy as np
import pytest
from bokeh.models import ColumnDataSource
from command import good, run, told, write
from conftest import ROOT
from PIL import Image

import headwaiter
from headwaiter.base.figures import digits
from headwaiter.engine.sim import ConstantDrive, Options
from headwaiter.judge.detail import Detail, Head, detail, head, pictured
from headwaiter.report import charts
from headwaiter.report.head import draw_heads
from headwaiter.study.schema import Disk, Result
from headwaiter.study.variants import Variant
from headwaiter.study.workload import Reading, read_workload

HEADER = "time_s,task,op,sync,sector,sectors,complete_s\n"
# Two readers, each with 40 blocks; each thinks for 1 ms.
TWO = HEADER + "".join(
    f"{0.006 * i:.6f},{t},R,1,{base + 8 * i},8,{0.006 * i + 0.005:.6f}\n"
    for i in range(40)
    for t, base in ((1, 0), (2, 1_000_000))
)
WORDS = ["--drive", "constant:5", "--sched", "noop,as,mq-deadline", "--seeds", "0"]
# Appended to a copy of the page: all that is drawn, as text for --dump-dom.
PROBE = """<script>
document.fonts.ready.then(() => setTimeout(() => {
  const found = {};
  for (const doc of Bokeh.documents) for (const root of doc.roots()) for (const r of root.renderers ?? [])
    if (r.data_source?.name) found[r.data_source.name] = Object.fromEntries(
      Object.entries(r.data_source.data).map(([key, column]) => [key, Array.from(column)]));
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({found, drawn: document.body.dataset.drawn, error: document.body.dataset.error ?? "",
    wide: document.documentElement.scrollWidth, canvases: document.querySelectorAll(".chart > *").length});
  document.body.append(out);
}, 3000));
</script>"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write(tmp_path / "two.csv", TWO)


def page_of(capfd: pytest.CaptureFixture[str], workload: Path, page: Path, *words: str) -> str:
    good(capfd, "compare", workload, *words, "--report", page)
    return page.read_text()


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [str(value) for key, value in attrs if key in ("src", "href", "srcset", "data", "action")]


def test_everything_is_in_the_file(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    html = page_of(capfd, two, tmp_path / "out.html", *WORDS)
    tags = _Tags()
    tags.feed(html)
    assert tags.links == []
    assert "default-src 'none'; script-src 'unsafe-inline'" in html, "a browser is told to load nothing"
    assert len(html) < 2_000_000, "most of that is the library"


@pytest.mark.thorough
def test_the_same_command_writes_the_same_page(two: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "headwaiter", "compare", str(two), *WORDS, "--report"]
    for name in ("a.html", "b.html"):
        subprocess.run([*command, name], check=True, capture_output=True, cwd=tmp_path)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_page_has_the_figures_of_json(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    html = page_of(capfd, two, tmp_path / "out.html", *WORDS)
    document = told(capfd, "compare", two, *WORDS)
    inside = re.search(r'<script type="application/json" id="results">(.*?)</script>', html, re.S)
    assert inside
    for r in document["results"]:
        r.pop("tasks"), r.pop("groups", None)
    assert json.loads(inside[1]) == document
    assert document["answer"]["text"] in unescape(html)
    titles = re.findall(r"<th[ >].*?>?([^<>]*(?:<br>[^<>]*)*)</th>", html.partition("<tbody>")[0])
    place = titles.index("MB/s")
    for r in document["results"]:
        row = re.search(rf"<tr[^>]*><td>{r['scheduler']}\*?</td>(.*?)</tr>", html)
        assert row, r["scheduler"]
        assert re.findall(r"<td[^>]*>(.*?)</td>", row[1])[place - 1] == digits(r["throughput_MBps"])


def test_names_are_no_markup(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    named = write(tmp_path / "a<script>alert(1)<.csv", TWO)
    html = page_of(capfd, named, tmp_path / "out.html", *WORDS)
    assert "<script>alert" not in html and "<title>a&lt;script&gt;alert(1)&lt;.csv on constant:5" in html


@pytest.mark.thorough
def test_programs_that_win_and_lose(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The winner is held against the baseline, name by name."""
    words = ["--sched", "noop,as,mq-deadline", "--seeds", "0"]
    html = page_of(capfd, Path("readers-2"), tmp_path / "out.html", *words)
    document = told(capfd, "compare", "readers-2", *words)
    assert document["answer"]["baseline"] == "mq-deadline" and document["answer"]["best"] == "as"
    by_name = {r["scheduler"]: r["tasks"] for r in document["results"]}
    name = by_name["as"][0]["name"]
    row = re.search(rf'<tr><th scope="row">{name}</th>(.*?)</tr>', html)
    assert row

    def waited(scheduler: str) -> float:
        return math.fsum(t["requests"] * t["lat_ms"]["mean"] / 1e3 for t in by_name[scheduler] if t["name"] == name)

    before, after = waited("mq-deadline"), waited("as")
    assert after < 0.5 * before
    paces = {r["scheduler"]: next(p for p in r["programs"] if p["name"] == name) for r in document["results"]}
    was, now = paces["mq-deadline"], paces["as"]
    verdict, *figures = re.findall(r"<td[^>]*>(.*?)</td>", row[1])
    factor = now["throughput_MBps"] / was["throughput_MBps"]
    assert verdict.startswith(f"gains: {factor:.1f} times as much done") and factor > 2
    assert figures == [
        f"{by_name['as'][0]['requests']:,}", f"{was['throughput_MBps']:.3g}", f"{now['throughput_MBps']:.3g}",
        f"{before:.2f}", f"{after:.2f}", digits(was["max_ms"]), digits(now["max_ms"]),
    ]  # fmt: skip
    assert ("waits up to" in verdict) == (now["max_ms"] > 2 * was["max_ms"])
    assert '<th scope="col">noop, s</th><th scope="col">as, s</th>' in page_of(
        capfd, Path("readers-2"), tmp_path / "out.html", *words, "--current", "noop"
    )


def test_what_is_drawn(two: Path) -> None:
    """The data of the charts, before a browser sees them."""
    found = headwaiter.compare(two, drive="constant:5", schedulers=["noop", "as", "mq-deadline"], runs=0).study
    shown = pictured(found)
    drawn = {s.name: s.data for chart in (charts.disk_time(shown), *charts.heads(shown)) for s in chart.select(ColumnDataSource)}
    parts = [column for part, column in drawn["disk"].items() if part != "scheduler"]
    assert [sum(parts) for parts in zip(*parts, strict=True)] == pytest.approx([100, 100, 100])
    for s in shown:
        waits, met = drawn[f"waits {s.result.scheduler}"], s.result.anticipation
        assert len(waits["begin"]) == (met.waits + met.other if met else 0)
        assert (np.diff(np.ravel([waits["begin"], waits["end"]], "F")) >= 0).all()


def test_nothing_is_written_where_the_command_fails(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = write(tmp_path / "out.html", "before")
    status, out, err = run(capfd, "compare", two, "--drive", "constant:5", "--replay", "shut", "--report", page)
    assert (status, out) == (2, "") and page.read_text() == "before" and "shut" in err
    status, _, err = run(capfd, "compare", two, *WORDS, "--report", two)
    assert status == 2 and "WORKLOAD and --report name the same file" in err and two.read_text() == TWO
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "two.csv"]


def test_what_is_not_installed(
    two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    status, out, err = run(capfd, "compare", two, *WORDS, "--report", tmp_path / "out.html")
    line = "headwaiter: --report needs Bokeh and Jinja2 (pip install headwaiter[report])\n"
    assert (status, out, err) == (2, "", line) and not (tmp_path / "out.html").exists()


def browse(page: Path, tmp_path: Path, width: int, *more: str) -> str:
    """The page as a browser without a network has it at last."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
               f"--user-data-dir={tmp_path / 'browser'}", "--enable-logging=stderr", "--virtual-time-budget=20000",
               f"--window-size={width},1200", *more, f"file://{page}"]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    complaints = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and "setting log level" not in line]
    assert [line for line in complaints if "ResizeObserver loop" not in line] == []
    return done.stdout


@pytest.mark.thorough
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("width", [500, 1280], ids=["phone", "desktop"])
def test_a_browser_draws_it(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], width: int) -> None:
    page = tmp_path / "out.html"
    html = page_of(capfd, two, page, *WORDS)
    document = told(capfd, "compare", two, *WORDS)
    write(page, html.replace("</body>", PROBE + "</body>"))
    shown = re.search(r'<pre id="probe">(.*?)</pre>', browse(page, tmp_path, width, "--dump-dom"), re.S)
    assert shown, "scripts have run"
    seen = json.loads(unescape(shown[1]))
    assert seen["error"] == "" and int(seen["drawn"]) == seen["canvases"] == 3 + 3
    assert seen["wide"] <= width, "only tables scroll sideways"
    found = seen["found"]
    for r in document["results"]:
        name = r["scheduler"]
        latency = found[f"latency {name}"]
        assert max(latency["ms"]) == pytest.approx(r["read"]["lat_ms"]["max"], rel=1e-6)
        p99 = next(ms for ms, share in zip(latency["ms"], latency["share"], strict=True) if share >= 99)
        assert p99 >= r["read"]["lat_ms"]["p50"]
        over = found[f"throughput {name}"]
        megabytes = np.dot(np.diff(over["s"]), over["rate"][:-1])
        assert megabytes == pytest.approx(r["bytes"] / 1e6, rel=1e-6)
        assert len(found[f"head {name}"]["ms"]) == r["dispatched"]
        waits = found[f"waits {name}"]
        assert len(waits["begin"]) == r.get("anticipation", {}).get("A", 0) + r.get("anticipation", {}).get("A_other", 0)
    disk = found["disk"]
    for i in range(len(disk["scheduler"])):
        assert sum(disk[part][i] for part in disk if part != "scheduler") == pytest.approx(100)


@pytest.mark.thorough
@pytest.mark.needs("chromium")
def test_no_more_than_six_curves_at_first(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The best and the baseline are among them; the others wait in the legend, and their heads in a part that opens."""
    page = tmp_path / "out.html"
    html = page_of(capfd, two, page, "--drive", "constant:5", "--seeds", "0", "--no-levers")
    document = told(capfd, "compare", two, "--drive", "constant:5", "--seeds", "0", "--no-levers")
    probe = """<script>document.fonts.ready.then(() => setTimeout(() => {
      const lines = Bokeh.documents[0].roots().slice(0, 1)[0].renderers.filter((r) => r.glyph.type === "Line");
      const out = document.createElement("pre"); out.id = "probe";
      out.textContent = JSON.stringify([lines.filter((r) => r.visible).map((r) => r.name), lines.length]);
      document.body.append(out); }, 3000));</script>"""
    write(page, html.replace("</body>", probe + "</body>"))
    shown = re.search(r'<pre id="probe">(.*?)</pre>', browse(page, tmp_path, 1280, "--dump-dom"), re.S)
    assert shown
    visible, lines = json.loads(unescape(shown[1]))
    assert len(visible) == 6 < lines == len(document["results"])
    assert document["answer"]["baseline"] in visible
    assert f"<summary>{lines - 6} more</summary>" in html and html.count('class="chart"') == 3 + lines


LOOKS = {
    "desktop": (1280, 3600, []),
    "dark": (1280, 3600, ["--blink-settings=preferredColorScheme=0"]),
    "phone": (500, 4600, []),
}
PICTURES = ROOT / "build" / "pages"
"""CI keeps this folder."""


@pytest.mark.thorough
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("name", LOOKS)
def test_it_is_looked_at(name: str, two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Pictures for people; the paper is what the reader's mode says."""
    width, height, more = LOOKS[name]
    page = tmp_path / "out.html"
    page_of(capfd, two, page, "--drive", "constant:5", "--seeds", "0", "--no-levers")
    PICTURES.mkdir(parents=True, exist_ok=True)
    picture = PICTURES / f"compare-{name}.png"
    browse(page, tmp_path, width, f"--screenshot={picture}", f"--window-size={width},{height}", *more)
    with Image.open(picture) as drawn:
        paper = drawn.convert("RGB").getpixel((3, height - 3))
    assert paper == ((0x16, 0x18, 0x1B) if name == "dark" else (0xFF, 0xFF, 0xFF))
    dots = (0x9C, 0xC9, 0xF5) if name == "dark" else (0x1F, 0x4E, 0x79)
    assert dots in colours_of(picture, 50), "dots of the head can be seen"


@pytest.mark.thorough
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("mode", [[], ["--blink-settings=preferredColorScheme=0"]], ids=["light", "dark"])
@pytest.mark.parametrize("width", [500, 1280])
def test_everybody_can_read_it(mode: list[str], width: int, two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """axe finds nothing: contrast, labels, order of headings, and the rest of what it knows."""
    axe = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    probe = f"""<script>{axe}</script><script>document.fonts.ready.then(() => setTimeout(() => {{
      for (const one of document.querySelectorAll("details")) one.open = true;
      setTimeout(() => axe.run().then((found) => {{
        const out = document.createElement("pre"); out.id = "probe";
        out.textContent = JSON.stringify([found.violations.map((v) => [v.id, v.nodes[0].html]), found.passes.map((v) => v.id)]);
        document.body.append(out); }}), 1500); }}, 3000));</script>"""
    page = tmp_path / "out.html"
    html = page_of(capfd, two, page, "--drive", "constant:5", "--seeds", "0", "--no-levers")
    write(page, html.replace("</body>", probe + "</body>"))
    shown = re.search(r'<pre id="probe">(.*?)</pre>', browse(page, tmp_path, width, "--dump-dom", *mode), re.S)
    assert shown
    violations, passes = json.loads(unescape(shown[1]))
    assert violations == [] and {"color-contrast", "html-has-lang", "role-img-alt"} <= set(passes)


@pytest.mark.thorough
@pytest.mark.needs("chromium")
def test_charts_have_ink(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page, picture = tmp_path / "out.html", tmp_path / "page.png"
    page_of(capfd, two, page, *WORDS)
    browse(page, tmp_path, 1280, f"--screenshot={picture}", "--window-size=1280,2600")
    colours = colours_of(picture, 200)
    assert (0x1F, 0x4E, 0x79) in colours, "dots of the head"
    assert (0xF2, 0xD7, 0xA0) in colours, "waits"
    assert (0x00, 0x72, 0xB2) in colours, "a line"


# --- what the charts are made of ---


def two_run(two: Path, scheduler: str) -> tuple[Detail, Head]:
    drive = ConstantDrive(5_000_000)
    load = read_workload(two, drive, Reading()).load
    options = Options()
    variant = Variant(scheduler, scheduler)
    return detail(variant, drive, load, options, 80), head(variant, drive, load, options)


def test_distribution_and_head_by_hand(two: Path) -> None:
    """noop serves both in turn: 5 ms alone at first, then each waits for the other."""
    known, where = two_run(two, "noop")
    assert known.latency_ms[0] == 5.0 and known.latency_ms[-1] == 10.0 and known.within[-1] == 1.0
    assert (np.diff(known.latency_ms) >= 0).all() and (np.diff(known.within) > 0).all()
    assert where.whole and len(where.waits_ms) == 0
    assert where.dispatch_ms.tolist() == [5.0 * i for i in range(80)]
    assert where.position_gib[:3].tolist() == [0, 1_000_000 * 512 / 2**30, 8 * 512 / 2**30]
    assert np.dot(np.diff(known.time_s), known.rate_mbps) == pytest.approx(80 * 4096 / 1e6)
    assert known.time_s[-1] == pytest.approx(0.4)


def test_waits_by_hand(two: Path) -> None:
    """as waits for 1 ms after each of a reader's blocks."""
    _, where = two_run(two, "as")
    lengths = where.waits_ms[:, 1] - where.waits_ms[:, 0]
    assert len(lengths) > 30 and np.isclose(lengths, 1.0).sum() > 30
    ends = set(where.waits_ms[:, 1].tolist())
    assert len(ends & set(where.dispatch_ms.tolist())) > 30, "a met wait ends in a dispatch"


def test_a_long_head_is_cut(two: Path) -> None:
    drive = ConstantDrive(5_000_000)
    load = read_workload(two, drive, Reading()).load
    for most, whole in ((79, False), (80, True)):
        where = head(Variant("noop", "noop"), drive, load, Options(), most)
        assert (len(where.dispatch_ms), where.whole) == (most, whole)


def colours_of(picture: Path, least: int) -> set[Any]:
    """Those of at least so many pixels."""
    with Image.open(picture) as drawn:
        return {colour for count, colour in drawn.convert("RGB").getcolors(1 << 24) or [] if count > least}


def some_result(**disk: Any) -> Result:
    return Result(
        scheduler="as", tunables={}, elapsed_s=10.0, requests=1, bytes=512, throughput_mbps=1.0, merges=0, dispatched=1,
        disk=Disk(seeks=3, **disk),
    )  # fmt: skip


# --- run --plot ---


def test_run_plot(two: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "head.png"
    words = ["run", two, "--sched", "as", "--drive", "constant:5", "--seeds", "0"]
    document = told(capfd, *words, "--plot", picture)
    [r] = document["results"]
    with Image.open(picture) as drawn:
        assert drawn.info["Description"] == f"as: {r['throughput_MBps']:.1f} MB/s, {r['disk']['seeks']:,} seeks"
    colours = colours_of(picture, 100)
    assert {(0x1F, 0x4E, 0x79), (0xF2, 0xD7, 0xA0)} <= colours, "dots, and waits"
    good(capfd, *words, "--plot", tmp_path / "again.png")
    assert picture.read_bytes() == (tmp_path / "again.png").read_bytes()
    status, _, err = run(capfd, *words, "--plot", tmp_path / "head.txt")
    assert status == 2 and "head.txt: the plot's name must end in .png, .svg, .pdf" in err


def test_a_picture_shows_the_time_that_is_asked_for(tmp_path: Path) -> None:
    where = Head(np.array([0.0, 10.0]), np.array([1.0, 2.0]), np.array([[2.0, 3.0], [8.0, 9.0]]), True)
    r = some_result(busy_s=1.0, idle_s=0.0)
    for name, until in (("all.svg", None), ("some.svg", 5.0)):
        draw_heads(tmp_path / name, [(r, where)], until)
    both, first = ((tmp_path / name).read_text().count("#f2d7a0") for name in ("all.svg", "some.svg"))
    assert both > first > 0
