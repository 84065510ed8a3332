# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A folder with everything that a reviewer of a run needs: its findings, tables, figures, page, machine and hashes.

reproduction.json   the output of `reproduce --json`
reproduction.txt    the same as text
reproduction.html   the page of `--report`
tables/, figures/   a CSV file for each table and for each chart: EXPERIMENT-LEVEL-NUMBER.csv
machine.json        versions, processor, kernels (MachineDocument)
SHA256SUMS          for `sha256sum -c`
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from headwaiter.base.ending import tidied
from headwaiter.base.errors import Problem, plain
from headwaiter.base.records import json_text
from headwaiter.lab.host import need, source_folder
from headwaiter.lab.script import named_kernel
from headwaiter.papers.reproduce.bench import Bench
from headwaiter.papers.reproduce.claims import PaperTable
from headwaiter.papers.reproduce.document import document, print_finding, summary
from headwaiter.papers.reproduce.experiment import Chart, Finding
from headwaiter.papers.reproduce.findings_page import render
from headwaiter.papers.reproduce.guests import KERNEL
from headwaiter.papers.reproduce.schema import MachineDocument
from headwaiter.report.terminal import console

FINDINGS = "reproduction.json"
SUMS = "SHA256SUMS"
_CPUINFO = Path("/proc/cpuinfo")


def check(folder: Path) -> None:
    """Problem if such a folder cannot be made: there is one of that name, or none to put it into."""
    if folder.is_symlink() or folder.exists():
        raise Problem(f"{folder}: is there already; name a new folder")
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        raise Problem(f"{folder}: {folder.parent} is no folder that you may write into")


def write(folder: Path, findings: Sequence[Finding], bench: Bench, settings: Sequence[str]) -> None:
    """Write the folder, whole or not at all. Problem as check(), and if writing fails."""
    files = dict(_files(findings, bench, settings))
    files[SUMS] = "".join(f"{_hash(text.encode())}  {name}\n" for name, text in sorted(files.items()))
    check(folder)
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        with tidied(lambda: shutil.rmtree(made, ignore_errors=True)):
            for name, text in files.items():
                (made / name).parent.mkdir(exist_ok=True)
                (made / name).write_text(text, encoding="utf-8")
            made.chmod(0o755)
            made.rename(folder)
    except OSError as e:
        raise Problem(f"{folder}: {e.strerror}") from None


def _files(findings: Sequence[Finding], bench: Bench, settings: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield FINDINGS, json_text(document(findings, bench.scale, settings))
    buffer = io.StringIO()
    out = console(buffer)
    for finding in findings:
        print_finding(out, finding)
    out.print(summary(findings), soft_wrap=True)
    yield "reproduction.txt", buffer.getvalue()
    yield "reproduction.html", render(findings, bench, settings)
    for finding in findings:
        name = f"{finding.experiment.name}-{finding.level}"
        for i, table in enumerate(finding.tables, 1):
            yield f"tables/{name}-{i}.csv", _csv(table)
        for i, chart in enumerate(finding.charts, 1):
            yield f"figures/{name}-{i}.csv", _csv(_points(chart))
    yield "machine.json", json_text(machine(bench, any(finding.level == "lab" for finding in findings)))


def _points(chart: Chart) -> PaperTable:
    """The points of a chart as a table: a row for each place along x, a column for each line."""
    columns = [chart.x_title, *(f"{name}: {chart.y_title}" for name in chart.lines)]
    rows = [[place, *(values[i] for values in chart.lines.values())] for i, place in enumerate(chart.x)]
    return PaperTable(chart.title, columns, rows)


def _csv(table: PaperTable) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in table.rows])
    return buffer.getvalue()


def machine(bench: Bench, in_lab: bool) -> MachineDocument:
    """Describe this machine, and what of the lab's programs decides its figures."""
    return MachineDocument(
        commit=_commit(),
        system=platform.platform(),
        processor=_processor(),
        processors=os.cpu_count() or 1,
        python=platform.python_version(),
        numpy=version("numpy"),
        guest_kernel=named_kernel(KERNEL, bench.say).name if in_lab else None,
        qemu=_first_line(need("qemu-system-x86_64"), "--version") if in_lab else None,
        fio=_first_line(need("fio"), "--version") if in_lab else None,
    )


def _commit() -> str | None:
    """The commit of the source tree, with "-dirty" where files differ from it; None without a tree or Git."""
    try:
        return _first_line("git", "-C", str(source_folder()), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except Problem:
        return None


def _first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return plain(done.stdout.partition("\n")[0]) or None


def _processor() -> str:
    """The processor's name, as /proc/cpuinfo has it; its architecture where it has none."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^model name\s*:\s*(.+)$", _CPUINFO.read_text(encoding="utf-8", errors="replace"), re.MULTILINE):
            return plain(found[1])
    return platform.machine()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def verified(folder: Path) -> Path:
    """The findings in such a folder. Problem if a file of it is missing, or is not the one that was written."""
    for name, wanted in _sums(folder).items():
        try:
            found = _hash((folder / name).read_bytes())
        except OSError as e:
            raise Problem(f"{folder / name}: {e.strerror}") from None
        if found != wanted:
            raise Problem(f"{folder / name}: not the file whose hash {SUMS} has")
    return folder / FINDINGS


def _sums(folder: Path) -> Mapping[str, str]:
    path = folder / SUMS
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = re.fullmatch(r"([0-9a-f]{64})  ((?:[a-z]+/)?[\w.-]+)", line)
        if not match:
            raise Problem(f"{path}:{number}: not a line of sha256sum")
        found[match[2]] = match[1]
    if FINDINGS not in found:
        raise Problem(f"{path}: has no {FINDINGS}")
    return found
