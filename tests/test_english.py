# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Words are spelled right, and links in the documents lead somewhere (no page of the web is asked)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("core", "sim", "kmod", "bench", "docs", "drives", "examples", "lab", "src", "systemd", "tests", "workloads")
KINDS = {".c", ".h", ".md", ".py", ".sh", ".toml", ".fio", ".service", ".build"}
FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$|(?<!`)`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\][]|\[[^\][]*\]|\]\[)*\]\(\s*<?([^)\s>]*)")
SCHEME = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)


def texts() -> list[Path]:
    """All that people write here."""
    inside = (path for place in PLACES for path in (ROOT / place).rglob("*") if path.suffix in KINDS)
    return sorted((*ROOT.glob("*.md"), *inside))


def documents() -> list[Path]:
    return [path for path in texts() if path.suffix == ".md"]


def misspelled(*paths: Path) -> list[str]:
    """What codespell finds; pyproject.toml has the words that it may not know."""
    words = [sys.executable, "-m", "codespell_lib", "--toml", str(ROOT / "pyproject.toml"), *map(str, paths)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def headings(page: str) -> set[str]:
    """As GitHub names them in links: the second of a name has -1."""
    found: set[str] = set()
    for title in re.findall(r"^#+ +(.*?) *#*$", re.sub(r"^```.*?^```", "", page, flags=re.M | re.S), re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        same = (name, *(f"{name}-{number}" for number in range(1, 99)))
        found.add(next(n for n in same if n not in found))
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', page))


def broken(page: Path) -> Iterator[str]:
    """Links of a page to files that do not exist, and to headings that no page has."""
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if SCHEME.match(link):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if not target.exists():
            yield f"{page}: {link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in headings(target.read_text(encoding="utf-8")):
            yield f"{page}: {link}: there is no such heading"


def test_spelling() -> None:
    assert len(texts()) > 300
    assert misspelled(*texts()) == []


def fragments(text: str) -> list[str]:
    """Comments and docstrings that begin with a genitive, or with another sentence's subject."""
    return re.findall(r'(?:"""|/\*(?:\n[ \t]*\*)?[ \t]*)((?:Of|The same)\b[^\n]*)', text)


def test_comments_are_sentences() -> None:
    """Their subject comes first: nobody has to look for what is said of something."""
    found = {path: fragments(path.read_text(encoding="utf-8")) for path in texts() if path.suffix in {".c", ".h", ".py"}}
    assert len(found) > 500
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("comment", ['"""OF a day."""', "/* OF a day. */", "/*\n * SAME of a day.\n */"])
def test_a_fragment_is_found(comment: str) -> None:
    comment = comment.replace("OF", "O" + "f").replace("SAME", "The " + "same")
    assert len(fragments(f"x = 1\n{comment}\n")) == 1
    assert not fragments("/* An hour of a day, the same of a year. Of others nothing is said. */")


def test_a_wrong_word_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"It is {'deveicer'[::-1]}.\n", encoding="utf-8")
    assert len(misspelled(page)) == 1


@pytest.mark.parametrize("page", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


@pytest.mark.parametrize("link", ["none.md", "#none", "other.md#none", "other.md#two-2", "./none/"])
def test_a_broken_link_is_found(tmp_path: Path, link: str) -> None:
    (tmp_path / "other.md").write_text("# One\n\n## Two\n\n## Two\n\n```\n# None\n```\n", encoding="utf-8")
    page = tmp_path / "page.md"
    good = "[a](other.md#two-1) [`b`](other.md#one) [c](#here) [d](https://none.example/) `[e](none)`\n"
    page.write_text(f"# Here\n\n{good}\n", encoding="utf-8")
    assert list(broken(page)) == []
    page.write_text(f"# Here\n\n{good}\n[f `g`]({link})\n", encoding="utf-8")
    assert len(list(broken(page))) == 1
