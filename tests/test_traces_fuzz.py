# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Damaged traces of every format: a Problem of one line, or a sound trace, and nothing else."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
import zstandard
from blkrecords import event, message, process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_traces_blktrace import TEXT
from test_traces_formats import BY_NAME, IOLOG2, SRT_HEADER, srt_record

from headwaiter.errors import Problem
from headwaiter.traces import Trace, closed_loop, load
from headwaiter.traces.model import MAX_SECTOR

NATIVE = (
    "time_s,task,op,sync,sector,sectors,complete_s,group,ioprio,meta,name\n"
    "0.000000184,1206,R,1,2098,8,0.000056992,1,be/4,1,find\n"
    "0.5,1300,W,0,5000,64,,2,none,0,jbd2\n"
    "1e-3,1300,D,0,5000,64,1.5,2,idle,0,jbd2\n"
)
BLKTRACE = b"".join(
    [
        process(0, 5, "dd"),
        message(1, "fork 5 6"),
        event(10, "A", "WSM", 900, 16, pid=5, aux=4),
        event(10, "Q", "WSM", 900, 16, pid=5),
        event(11, "X", "WSM", 900, 8, pid=5, aux=908),
        event(11, "Q", "WSM", 908, 8, pid=6),
        event(12, "C", "WSM", 900, 16),
        event(13, "C", "WSM", 908, 8),
        message(14, "exit 6"),
    ]
)
SRT_MIXED = SRT_HEADER + srt_record(0, 5, 8192, 33, 0x101) + srt_record(1, 7, 1024, 6, 0x100, version=3, kind=2)
SEEDS = {
    **BY_NAME,
    "native": NATIVE.encode(),
    "blkparse": TEXT.encode(),
    "blktrace": BLKTRACE,
    "iolog 2": IOLOG2.encode(),
    "srt mixed": SRT_MIXED,
}
PACKED = {
    "gzip": gzip.compress(NATIVE.encode(), mtime=0),
    "xz": lzma.compress(NATIVE.encode()),
    "zstd": zstandard.ZstdCompressor().compress(NATIVE.encode()),
}
TOKENS = [
    b"", b"-1", b"0", b"18446744073709551616", b"9223372036854775807", b"1e308", b"1e-999", b".", b"-", b"nan", b"\n",
    b"\r\n", b",", b" ", b";", b"[", b"+", b"/", b"\0", b"\xff\xff\xff\xff", b"\x80", b"9" * 70, "é".encode(),
    b"x" * 300, b"8,0",
]  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[str, float, float, bytes]]:
    """A few changes: what to do, where (as a share of the length), how far, and with what."""
    kinds = st.sampled_from(["cut", "drop", "double", "replace", "flip"])
    share = st.floats(0, 1)
    insert = st.sampled_from(TOKENS) | st.binary(max_size=8)
    return draw(st.lists(st.tuples(kinds, share, share, insert), min_size=1, max_size=4))


def mutate(data: bytes, changes: list[tuple[str, float, float, bytes]]) -> bytes:
    for kind, where, far, what in changes:
        at = int(where * len(data))
        end = min(len(data), at + int(far * 24))
        match kind:
            case "cut":
                data = data[:at]
            case "drop":
                data = data[:at] + data[end:]
            case "double":
                data = data[:end] + data[at:]
            case "replace":
                data = data[:at] + what + data[end:]
            case "flip":
                data = data[:at] + bytes(b ^ 1 << int(far * 7) for b in data[at : at + 1]) + data[at + 1 :]
    return data


def sound(t: Trace) -> None:
    """The model's invariants, and that what depends on what can be told."""
    n = len(t)
    assert n >= 1
    for column in (t.complete_ns, t.task, t.group, t.op, t.flags, t.sector, t.sectors, t.ioprio):
        assert len(column) == n
    assert (np.diff(t.time_ns) >= 0).all() and int(t.time_ns[0]) >= 0
    assert ((t.complete_ns == -1) | (t.complete_ns >= t.time_ns)).all()
    assert (t.sectors >= 1).all() and (t.sector + t.sectors <= MAX_SECTOR).all()
    assert (t.op <= 3).all() and (t.flags <= 3).all()
    assert int(t.task.max()) < len(t.tasks) and len({task.id for task in t.tasks}) == len(t.tasks)
    assert set(t.group.tolist()) == set(range(int(t.group.max()) + 1))
    parent, delay = closed_loop(t)
    assert (parent < np.arange(n)).all() and (delay >= 0).all()


def attempt(path: Path, **options: object) -> None:
    try:
        sound(load(path, **options))  # type: ignore[arg-type]
    except Problem as e:
        assert str(e).startswith(str(path))
        assert "\n" not in str(e)


LIMITS = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", SEEDS)
def test_seeds_are_sound(tmp_path: Path, name: str) -> None:
    path = tmp_path / "trace"
    path.write_bytes(SEEDS[name])
    sound(load(path))


@pytest.mark.parametrize("name", SEEDS)
@LIMITS
@given(changes=mutations())
def test_damaged_traces(tmp_path: Path, name: str, changes: list[tuple[str, float, float, bytes]]) -> None:
    path = tmp_path / "trace"
    path.write_bytes(mutate(SEEDS[name], changes))
    attempt(path)
    attempt(path, format=name.split(maxsplit=1)[0])


@pytest.mark.parametrize("name", PACKED)
@LIMITS
@given(changes=mutations())
def test_damaged_packed_traces(tmp_path: Path, name: str, changes: list[tuple[str, float, float, bytes]]) -> None:
    path = tmp_path / "trace"
    path.write_bytes(mutate(PACKED[name], changes))
    attempt(path)


@pytest.mark.parametrize("name", sorted({name.split()[0] for name in SEEDS}))
@LIMITS
@given(content=st.binary(max_size=200))
def test_arbitrary_bytes(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / "trace"
    path.write_bytes(content)
    attempt(path, format=name)
