# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre as patches to a kernel tree: block/maitre-iosched.c, Kconfig, Documentation/block, tests for blktests, and a letter.

    make patches                     (or KERNELS="6.12 6.1", SIGN="Name <address>", TREE=folder with a kernel tree, TRY=1)

For each series of KERNELS Debian's linux-source is fetched, the file is made for it and compiled against that kernel's headers.
The first one's patches are written, and held against its scripts/checkpatch.pl. The letter's tables are what the lab has measured
(lab/experiments/*/*.json). What comes out is in build/patches. With TRY the lab runs the tests under each of these kernels.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "docs")]

import lab_tables  # noqa: E402
from amalgamate import Refused, amalgamate  # noqa: E402

from headwaiter.base.errors import Problem  # noqa: E402
from headwaiter.engine.schedulers import find  # noqa: E402
from headwaiter.lab.host import cache_folder  # noqa: E402
from headwaiter.lab.kernels import fetch, headers, kernel  # noqa: E402
from headwaiter.lab.script import Row, execute  # noqa: E402

OUT = ROOT / "build" / "patches"
MEMBERS = (
    "block/*", "scripts/checkpatch.pl", "scripts/spelling.txt", "scripts/const_structs.checkpatch", "MAINTAINERS",
    "Documentation/block/index.rst", "include/linux/blk-mq.h", "include/linux/blkdev.h", "include/linux/hrtimer.h",
    "include/linux/sbitmap.h",
)  # fmt: skip
SUBJECTS = ("block: add the maitre I/O scheduler", "Documentation: block: describe maitre")
AUTHOR = "headwaiter developers <headwaiter@packages.debian.org>"
WIDTH, LONGEST = 75, 100


def source_tree(series: str) -> Path:
    """What is needed of Debian's linux-source of a series, unpacked in the cache once per package."""
    package = f"linux-source-{series}"
    folder = cache_folder() / "trees" / series
    if not folder.is_dir():
        (archive,) = fetch(package, say).glob("usr/src/*.tar.xz")
        say(f"unpacking {archive.name}")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpack-") as aside:
            names = [f"{package}/{name}" for name in MEMBERS]
            run("tar", "xf", archive, "-C", aside, "--wildcards", *names)
            (Path(aside) / package).rename(folder)
    return folder


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(*command: object, cwd: Path | None = None, **variables: str) -> str:
    """What a command prints. Problem, with all of that, if it fails."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False, cwd=cwd, env=os.environ | variables
    )
    if done.returncode:
        print(done.stdout, done.stderr, sep="", end="", file=sys.stderr)
        raise Problem(f"{' '.join(map(str, command[:3]))}: status {done.returncode}")
    return done.stdout


def source(tree: Path) -> str:
    """The file for a tree, in the kernel's form."""
    made = amalgamate(tree, (HERE / "head.txt").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="headwaiter-patches-") as aside:
        path = Path(aside) / "maitre-iosched.c"
        path.write_text(made, encoding="utf-8")
        return narrow(run(Path(sys.executable).parent / "clang-format", f"--style=file:{ROOT / '.clang-format'}", path))


def narrow(text: str) -> str:
    """Text without comments beyond the kernel's limit: in lines of their own they are wrapped, behind code they go in front."""
    out: list[str] = []
    for line in text.splitlines():
        if len(line.expandtabs()) <= LONGEST:
            out.append(line)
        elif match := re.match(r"(\t*)(\S.*?)\s*/\* (.*) \*/$", line):
            out += [f"{match[1]}/* {match[3]} */", match[1] + match[2]]
        elif match := re.match(r"(\t*) \* (.*)", line):
            words, rest = match[2].split(), list[str]()
            while len(" ".join(words)) + len(match[1]) * 8 + 3 > LONGEST:
                rest.insert(0, words.pop())
            out += [f"{match[1]} * {' '.join(part)}" for part in (words, rest) if part]
        elif match := re.match(r"(\t*)/\* (.*) \*/$", line):
            middle = textwrap.wrap(match[2], LONGEST - len(match[1]) * 8 - 3)
            out += [f"{match[1]}/*", *(f"{match[1]} * {one}" for one in middle), f"{match[1]} */"]
        else:
            out.append(line)
    return "\n".join(out) + "\n"


def compiled(text: str, tree: Path, of: Path, folder: Path) -> Path:
    """Compile the file in a folder, with the private headers of its tree and a kernel's headers. The module, or a Problem."""
    folder.mkdir(parents=True)
    (folder / "maitre-iosched.c").write_text(text, encoding="utf-8")
    for header in (tree / "block").glob("*.h"):
        shutil.copy(header, folder)
    (folder / "Kbuild").write_text("obj-m := maitre-iosched.o\nccflags-y := -I$(src) -Werror\n", encoding="utf-8")
    run(sys.executable, ROOT / "kmod" / "build", "--headers", of, "--tree", folder)
    return folder / "maitre-iosched.ko"


def edited(path: Path, before: str, new: str) -> None:
    """Put something in front of the first line with that text. Refused if there is none."""
    text = path.read_text(encoding="utf-8")
    match = re.search(rf"^.*{before}.*$", text, re.M)
    if not match:
        raise Refused(f"{path}: has no line with {before}")
    path.write_text(text[: match.start()] + new + text[match.start() :], encoding="utf-8")


@contextmanager
def repository(tree: Path, files: list[str], author: str) -> Iterator[Path]:
    """A repository of some files of a tree."""
    with tempfile.TemporaryDirectory(prefix="headwaiter-patches-") as aside:
        top = Path(aside)
        for name in files:
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, top / name)
        name, _, mail = author.rstrip(">").partition(" <")
        run("git", "init", "-q", cwd=top)
        for key, value in (("user.name", name), ("user.email", mail), ("commit.gpgsign", "false"), ("format.signature", "")):
            run("git", "config", key, value, cwd=top)
        commit(top, "a tree", "")
        yield top


def commit(top: Path, subject: str, body: str, sign: bool = False) -> None:
    """All that there is."""
    run("git", "add", "-A", cwd=top)
    date = run("git", "-C", ROOT, "log", "-1", "--format=%cI").strip()
    message = f"{subject}\n\n{body}".rstrip() + "\n"
    run(
        "git", "commit", "-q", "-m", message, *(["--signoff"] if sign else []),
        cwd=top, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date,
    )  # fmt: skip


def document() -> str:
    """Documentation/block/maitre-iosched.rst, with the tunables as the policy has them."""
    rows = []
    for one in find("maitre").tunables.values():
        rows.append(
            f"``{one.name}``\n{_wrapped(f'{one.help} ({one.unit}, {one.minimum} to {one.maximum}, {one.default} at first).')}\n"
        )
    return (HERE / "maitre-iosched.rst").read_text(encoding="utf-8").replace("@TUNABLES@", "\n".join(rows))


def _wrapped(text: str) -> str:
    lines = [""]
    for word in (text[0].upper() + text[1:]).split():
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(f"  {line}" for line in lines)


def plain(table: str) -> str:
    """A Markdown table as text in columns; a heading of several words has several lines."""
    rows = [
        [cell.strip().strip("`").replace(" / ", "/") for cell in line.strip("|").split("|")]
        for line in table.strip().splitlines()
    ]
    heads, body = [cell.split() for cell in rows[0]], rows[2:]
    tall = max(map(len, heads))
    lines = [[head[i - tall + len(head)] if i >= tall - len(head) else "" for head in heads] for i in range(tall)] + body
    wide = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    out = []
    for line in lines:
        cells = [line[0].ljust(wide[0]), *(cell.rjust(w) for cell, w in zip(line[1:], wide[1:], strict=True))]
        out.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(out)


def letter() -> str:
    """The text of the cover letter."""
    text = (HERE / "letter.txt").read_text(encoding="utf-8")
    tables = {
        "PROGRAMS": lab_tables.programs("maitre-6.12"),
        "COMMITS": lab_tables.commits("commits-6.12"),
        "STARTS": lab_tables.starts("starts-6.12"),
    }
    for name, table in tables.items():
        text = text.replace(f"@{name}@", plain(table))
    return text.replace("@RELEASE@", "6.12")


def blktests(folder: Path) -> None:
    """The tests, with cases for each tunable: at its limits, and beyond them."""
    folder.mkdir(parents=True)
    cases, answers = [], []
    for one in find("maitre").tunables.values():
        for value in (one.minimum, one.maximum, one.minimum - 1, one.maximum + 1):
            cases.append(f"\tput {one.name} {value}")
            kept = one.minimum <= value <= one.maximum
            answers.append(f"{one.name} {value}: {value if kept else 'refused'}")
    for path in sorted((HERE / "blktests").iterdir()):
        text = path.read_text(encoding="utf-8").replace("@CASES@", "\n".join(cases)).replace("@ANSWERS@", "\n".join(answers))
        (folder / path.name).write_text(text, encoding="utf-8")
        if not path.suffix:
            (folder / path.name).chmod(0o755)
            run("bash", "-n", folder / path.name)


def tried(folder: Path, series: str, module: Path) -> list[Row]:
    """What comes of the tests under a stock kernel with a module. Problem if one fails."""
    script = folder / "blktests.sh"
    tests = sorted(path for path in (folder / "blktests" / "tests" / "block").iterdir())
    parts = ["mkdir -p /blktests/tests/block\n"]
    for path in tests:
        text = path.read_text(encoding="utf-8")
        parts.append(f"cat >/blktests/tests/block/{path.name} <<'END OF TEST'\n{text}END OF TEST\n")
    head, code = (HERE / "blktests.sh").read_text(encoding="utf-8").split("\n\n", 1)
    script.write_text("\n".join((head, *parts, code)), encoding="utf-8")
    names = " ".join(path.name for path in tests if not path.suffix)
    return execute(str(script), [series], {"TESTS": names}, say, [module])[1]


def series_of(tree: Path, text: str, author: str, sign: bool) -> list[Path]:
    """The patches, with the letter in front."""
    changed = ["block/Kconfig.iosched", "block/Makefile", "Documentation/block/index.rst", "MAINTAINERS"]
    about = (HERE / "head.txt").read_text(encoding="utf-8")
    why = "\n".join(line[3:] for line in about.splitlines() if line.startswith(" * "))
    with repository(tree, changed, author) as top:
        (top / "block" / "maitre-iosched.c").write_text(text, encoding="utf-8")
        edited(top / changed[0], "config IOSCHED_BFQ$", (HERE / "kconfig.txt").read_text(encoding="utf-8"))
        edited(top / changed[1], r"^bfq-y\b", "obj-$(CONFIG_MQ_IOSCHED_MAITRE)\t+= maitre-iosched.o\n")
        entry = "MAITRE I/O SCHEDULER\n" + (f"M:\t{author}\n" if sign else "")
        entry += "L:\tlinux-block@vger.kernel.org\nS:\tMaintained\nF:\tblock/maitre-iosched.c\n\n"
        edited(top / changed[3], "^MAJOR$|^MAL[A-Z]|^MAN-PAGES|^MAP", entry)
        commit(top, SUBJECTS[0], why, sign)
        (top / "Documentation" / "block" / "maitre-iosched.rst").write_text(document(), encoding="utf-8")
        edited(top / changed[2], "null_blk$", "   maitre-iosched\n")
        edited(top / changed[3], "^F:\tblock/maitre-iosched.c$", "F:\tDocumentation/block/maitre-iosched.rst\n")
        commit(top, SUBJECTS[1], "When to use it, what it does, and the files of queue/iosched/.", sign)
        run("git", "format-patch", "-q", "--cover-letter", f"-{len(SUBJECTS)}", "-o", OUT, cwd=top)
    patches = sorted(OUT.glob("*.patch"))
    cover = patches[0].read_text(encoding="utf-8")
    cover = cover.replace("*** SUBJECT HERE ***", SUBJECTS[0]).replace("*** BLURB HERE ***", letter().strip())
    patches[0].write_text(cover, encoding="utf-8")
    return patches


def checked(tree: Path, patches: list[Path], sign: bool) -> str:
    """What checkpatch.pl says at the end. Problem if it finds anything."""
    options = ["--no-tree", "--show-types", *([] if sign else ["--no-signoff"])]
    out = [run("perl", tree / "scripts" / "checkpatch.pl", *options, patch, cwd=tree) for patch in patches[1:]]
    found = [line for text in out for line in text.splitlines() if line.startswith("total:")]
    return "; ".join(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kernels", default="6.12 6.1", help="series, the first one's patches are written (default: %(default)s)"
    )
    parser.add_argument(
        "--tree", type=Path, help="a kernel tree to write patches for, instead of the first series' own; not compiled"
    )
    parser.add_argument("--sign", default="", metavar="'NAME <ADDRESS>'", help="who signs them off")
    parser.add_argument("--try", dest="do_try", action="store_true", help="run the tests under each kernel")
    options = parser.parse_args()
    try:
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        trees = {series: source_tree(series) for series in options.kernels.split()}
        texts = {series: source(tree) for series, tree in trees.items()}
        modules = dict[str, Path]()
        for series, text in texts.items():
            of = kernel(series, say)
            modules[series] = compiled(text, trees[series], headers(of, say), OUT / "modules" / series)
            print(f"compiled for {of.release}")
        first = next(iter(trees))
        tree = options.tree or trees[first]
        text = source(tree) if options.tree else texts[first]
        patches = series_of(tree, text, options.sign or AUTHOR, bool(options.sign))
        blktests(OUT / "blktests" / "tests" / "block")
        print(f"checkpatch: {checked(tree, patches, bool(options.sign))}")
        for path in patches:
            print(path.relative_to(ROOT))
        for series, module in modules.items() if options.do_try else ():
            for row in tried(OUT, series, module):
                print(f"{row['kernel']}: {row['test']} passed{'; ' if row['figures'] else ''}{row['figures']}")
    except (Problem, Refused) as problem:
        print(f"packaging/upstream: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
