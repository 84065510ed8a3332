# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Build the documents as a site that also works from a file: python docs/site.py FOLDER

Sphinx reads Markdown as GitHub does (MyST). Links are checked strictly: one that leads nowhere ends the build. A source file that
a document links to becomes a page of the site.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

ROOT = Path(__file__).resolve().parent.parent
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCED = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".sh": "sh", ".toml": "toml", ".fio": "ini", ".json": "json"}
SETTINGS = {
    "project": "headwaiter",
    "extensions": ["myst_parser"],
    "html_theme": "furo",
    "html_title": "headwaiter",
    "html_show_copyright": False,
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "root_doc": "docs/index",
    "myst_heading_anchors": 6,
    "highlight_language": "none",
    # Events of other programs and outputs of commands are not always valid in the language that a block is in.
    "suppress_warnings": ["misc.highlighting_failure", "myst.header"],
}


def links(text: str) -> Iterator[re.Match[str]]:
    """Find the links of a page, outside of code."""
    code = [match.span() for match in FENCED.finditer(text)]
    for match in LINK.finditer(text):
        if not re.match(r"[a-z]+:", match[2]) and not any(begin <= match.start() < end for begin, end in code):
            yield match


def staged(sources: Path, root: Path = ROOT) -> None:
    """Write what Sphinx reads: the documents as they are, and a page for each file or folder that they link to."""
    pages = [*(root / name for name in TOP), *(root / "docs").rglob("*.md")]
    known = {page.relative_to(root).as_posix() for page in pages}
    wanted: set[str] = set()
    for page in pages:
        name = page.relative_to(root).as_posix()
        text = page.read_text(encoding="utf-8")
        made, at = "", 0
        for match in links(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[2]))
            made += text[at : match.start()]
            at = match.end()
            if target in known or not (root / target).exists() or target.endswith((".png", ".svg")):
                made += match[0]
                continue
            wanted.add(target)
            made += f"{match[1]}{posixpath.relpath(f'sources/{target}.md', posixpath.dirname(name) or '.')})"
        _write(sources / name, made + text[at:])
    for picture in (*(root / "docs").glob("*.png"), *(root / "docs").glob("*.svg")):
        shutil.copyfile(picture, sources / "docs" / picture.name)
    for target in sorted(wanted):
        _write(sources / "sources" / f"{target}.md", _source_page(root, target))
    toc = "\n".join(
        f"/{name.removesuffix('.md')}" for name in sorted(known | {f"sources/{t}.md" for t in wanted}) if name != INDEX
    )
    index = sources / INDEX
    index.write_text(
        f"{index.read_text(encoding='utf-8')}\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{toc}\n```\n", encoding="utf-8"
    )


INDEX = "docs/index.md"


def _source_page(root: Path, target: str) -> str:
    """Return a page with a source file, or with the files of a folder."""
    path = root / target
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    parts = [f"# {target}\n"]
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        heading = f"\n## {file.relative_to(root)}\n" if path.is_dir() else ""
        parts.append(f"{heading}\n`````{LANGUAGES.get(file.suffix, 'text')}\n{text.rstrip()}\n`````\n")
    return "".join(parts)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def build(output: Path, root: Path = ROOT) -> int:
    """Build the site; the exit status, which is not 0 where anything was warned of."""
    with tempfile.TemporaryDirectory(prefix="headwaiter-site-") as folder, docutils_namespace():
        sources = Path(folder) / "sources"
        staged(sources, root)
        shutil.rmtree(output, ignore_errors=True)
        app = Sphinx(
            srcdir=sources,
            confdir=None,
            outdir=output,
            doctreedir=Path(folder) / "doctrees",
            buildername="html",
            confoverrides=SETTINGS,
            status=None,
            warning=sys.stderr,
            warningiserror=True,
        )
        app.build()
        if not app.statuscode:
            _write(output / "index.html", '<!DOCTYPE html><meta http-equiv="refresh" content="0; url=docs/index.html">\n')
        return int(app.statuscode)


if __name__ == "__main__":
    status = build(Path(sys.argv[1]))
    if not status:
        print(f"{sys.argv[1]}/index.html")
    sys.exit(status)
