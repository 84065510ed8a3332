# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The site of the documents: built without a warning, complete without a network, and readable from a file."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """docs/site.py, under a name that Python's own `site` has not."""
    if importlib.util.find_spec("sphinx") is None:
        assert os.environ.get("HEADWAITER_REQUIRE_ALL") != "1", "Sphinx is not installed"
        pytest.skip("make docs-site installs Sphinx")
    spec = importlib.util.spec_from_file_location("docs_site", ROOT / "docs" / "site.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(maker: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = subprocess.run([sys.executable, ROOT / "docs" / "site.py", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_document_is_a_page_and_the_index_leads_to_it(site: Path) -> None:
    pages = {path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}
    linked = set(re.findall(r'href="([\w./-]+\.html)', (site / "docs" / "index.html").read_text(encoding="utf-8")))
    assert {page.relative_to("docs").as_posix() for page in pages} - {"index.html"} <= linked
    assert "docs/index.html" in (site / "index.html").read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]* rel="(?:stylesheet|icon|preload)"[^>]* href="([^"]+)"', text)
        assert not [one for one in loaded if re.match(r"(?:[a-z]+:)?//|/", one)], page
        for one in loaded:
            assert (page.parent / one.split("?")[0]).exists(), (page, one)


def test_a_source_file_is_a_page(site: Path) -> None:
    page = (site / "sources" / "core" / "elevator.h.html").read_text(encoding="utf-8")
    assert "hw_request" in page and 'class="highlight-c' in page


@pytest.mark.needs("chromium")
def test_search_works_from_a_file(site: Path, tmp_path: Path) -> None:
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
               f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", "--dump-dom",
               f"file://{site}/search.html?q=anticipatory"]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    results = re.findall(r'<li class="kind-[^>]*>.*?href="([^"]+)"', unescape(done.stdout), re.S)
    assert any("schedulers/as" in one for one in results), results


@pytest.mark.parametrize("link", ["none.md", "#none", "glossary.md#none"])
def test_a_broken_link_ends_the_build(link: str, maker: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (root / name).write_text(f"# {name}\n")
    shutil.copyfile(ROOT / "docs" / "glossary.md", root / "docs" / "glossary.md")
    text = "# Documents\n\n[a](glossary.md#io) [b](../README.md)\n"
    index = root / "docs" / "index.md"
    index.write_text(text)
    glossary = root / "docs" / "glossary.md"
    glossary.write_text("# Glossary\n\n## I/O\n\nA term.\n")
    assert maker.build(tmp_path / "good", root) == 0
    index.write_text(f"{text}\n[c]({link})\n")
    assert maker.build(tmp_path / "bad", root) != 0
    assert link.rpartition("#")[2].removesuffix(".md") in capsys.readouterr().err
