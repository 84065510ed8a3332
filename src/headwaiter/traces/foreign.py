# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that are no trace but that people have beside one: what they are, and which command makes something readable.

Each is known by its beginning. What such a tool writes has no single requests, or has them in a form that only the tool reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class _Kind:
    """`what` it is, and `instead`; {} stands for the file's name."""

    pattern: re.Pattern[bytes]
    what: str
    instead: str


def _kind(pattern: bytes, what: str, instead: str) -> _Kind:
    return _Kind(re.compile(pattern, re.MULTILINE), what, instead)


_PERF = "`perf script --ns -i {} >trace.txt` makes text of it, if block events were recorded (-e 'block:*')"
_RECORD = "it has no single requests; record them with `headwaiter record sda` or `blktrace -d /dev/sda`"
_FIO = "it has no single requests; give the job file, or record them with write_iolog=FILE in it"
_KINDS = (
    _kind(rb"\A\x17\x08\x44tracing", "trace-cmd's own file", "`trace-cmd report -i {} >trace.txt` makes text of it"),
    _kind(rb"\A(PERFILE2|PERFFILE)", "perf's own file", _PERF),
    _kind(
        rb"\A\s*(?i:<!doctype html|<html)[\s\S]*?(systrace|trace-viewer|tracing_template|trace-data)",
        "a page of systrace",
        "`sed -n '/^# tracer/,/<\\/script>/p' {} | grep -v '</script>' >trace.txt` takes ftrace's text out of it",
    ),
    _kind(
        rb'\A\s*\{\s*"(traceEvents|displayTimeUnit)"',
        "a trace of Chrome or Perfetto",
        "`traceconv systrace {} trace.txt` makes text of it",
    ),
    _kind(rb'\A[\s\S]{0,4096}?"fio version"\s*:', "fio's results (JSON)", _FIO),
    _kind(rb"^fio-\d[\w.-]*$|^Run status group \d+ |^Starting \d+ (process|thread)", "fio's results", _FIO),
    _kind(rb'\A\s*\{\s*"sysstat"', "iostat's output (JSON)", _RECORD),
    _kind(
        rb"^(avg-cpu:|Device:?\s+(tps|r/s|rrqm/s)\b)|\A\s*Linux \S+ \(\S+\)\s+\S+\s+_\w+_\s+\(\d+ CPU\)",
        "iostat's output",
        _RECORD,
    ),
    _kind(
        rb"^=+ (All Devices|Device Overhead|Device Merge Information|Per Process) =+\s*$",
        "btt's output",
        "it has no single requests; give the recording that btt read, or the text of `blkparse -i` of it",
    ),
    _kind(
        rb"^\s*\d+\.\d{3} \(\s*(\d+\.\d{3} ms|[\s?]*)\s*\): \S.*/\d+ \w+\(",
        "perf trace's output",
        "it has system calls, not requests; `perf record -a -e 'block:*'` and `perf script --ns >trace.txt` have them",
    ),
    _kind(
        rb"^\d*\s*(\d[\d:.]* )?\w+\(.*\)\s+= -?\d+.*(<[\d.]+>)?$",
        "strace's output",
        "it has system calls, not requests; record them with `headwaiter record sda` or `blktrace -d /dev/sda`",
    ),
    _kind(
        rb"\A\s*BeginHeader\b|^\s*(DiskRead|DiskWrite|DiskReadInit|DiskWriteInit)\s*,",
        "xperf's dump",
        "`xperf -i trace.etl -o io.csv -a diskio -detail` writes a table of requests, which --columns describes",
    ),
    _kind(
        rb"^\s*\S+\s*(->|\.\.\.)\s*\d+\s*:\s*\d+\s*\|[* ]+\|\s*$|^\[\d+[KMG]?, \d+[KMG]?\)\s+\d+ \|",
        "a histogram",
        _RECORD,
    ),
    _kind(rb"\APK\x03\x04", "a zip archive", "`unzip {}` first"),
    _kind(rb"\ABZh[1-9]", "compressed with bzip2", "`bunzip2 {}` first"),
    _kind(rb"\A\x04\x22\x4d\x18", "compressed with lz4", "`unlz4 {}` first"),
    _kind(rb"\A7z\xbc\xaf\x27\x1c", "a 7z archive", "`7z x {}` first"),
)


def named(head: bytes, name: str) -> str | None:
    """Return what a file of that name is whose content begins so, and what to do; None if it is nothing known."""
    found = next((kind for kind in _KINDS if kind.pattern.search(head)), None)
    return f"{found.what}: {found.instead.format(name)}" if found else None
