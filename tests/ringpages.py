# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's trace ring buffer for tests: pages as it would fill them, and archives of `headwaiter record` around them."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

NUMBERS = {
    "block_bio_queue": 2097, "block_split": 2092, "block_bio_remap": 2099, "block_rq_issue": 2089, "block_rq_complete": 2085,
    "block_rq_insert": 2090, "sched_process_fork": 366, "sched_process_exit": 369,
}  # fmt: skip
_COMMON = (("unsigned short", "common_type", 0, 2, 0), ("int", "common_pid", 4, 4, 1))
_STALE = b"\x04@WS\x04@WSW\x04@WSW"
"""What a buffer held before: the kernel does not clear what follows the NUL of a text."""
DISK = 8 << 20
Fields = Sequence[tuple[str, str, int, int, int]]


def fields(name: str, rwbs: int = 10) -> Fields:
    """(type, name, offset, size, signed) of an event's fields; rwbs: bytes of the operation, 8 up to 6.12, 10 in 6.18."""
    if name == "sched_process_fork":
        return (*_COMMON, ("pid_t", "parent_pid", 12, 4, 1), ("pid_t", "child_pid", 20, 4, 1))
    if name == "sched_process_exit":
        return (*_COMMON, ("char", "comm[16]", 8, 16, 0), ("pid_t", "pid", 24, 4, 1))
    head = (*_COMMON, ("dev_t", "dev", 8, 4, 0), ("sector_t", "sector", 16, 8, 0))
    if name == "block_split":
        return (*head, ("sector_t", "new_sector", 24, 8, 0), ("char", f"rwbs[{rwbs}]", 32, rwbs, 0), _comm(32 + rwbs))
    count = ("unsigned int", "nr_sector", 24, 4, 0)
    if name == "block_bio_remap":
        more = (("dev_t", "old_dev", 28, 4, 0), ("sector_t", "old_sector", 32, 8, 0))
        return (*head, count, *more, ("char", f"rwbs[{rwbs}]", 40, rwbs, 0))
    if name == "block_rq_complete":
        return (*head, count, ("int", "error", 28, 4, 1), ("char", f"rwbs[{rwbs}]", 32, rwbs, 0))
    return (*head, count, ("char", f"rwbs[{rwbs}]", 28, rwbs, 0), _comm(28 + rwbs))


def _comm(offset: int) -> tuple[str, str, int, int, int]:
    return ("char", "comm[16]", offset, 16, 0)


def format_text(name: str, rwbs: int = 10) -> str:
    """An event's `format` file."""
    lines = "".join(
        f"\tfield:{kind} {field};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
        for kind, field, offset, size, signed in fields(name, rwbs)
    )
    return f'name: {name}\nID: {NUMBERS[name]}\nformat:\n{lines}\nprint fmt: "%d", REC->dev\n'


def event(name: str, *, rwbs_bytes: int = 10, **values: int | str) -> bytes:
    """An event's record: `pid` is common_pid but of an exit; texts end with NUL, and stale bytes follow."""
    common = {"common_type": NUMBERS[name], "common_pid": values.pop("task", values.get("pid", 0)), "dev": DISK, "comm": "fio"}
    known: dict[str, Any] = {**common, **values}
    size = max(offset + size for _, _, offset, size, _ in fields(name, rwbs_bytes))
    record = bytearray((size + 3) & ~3)
    for _, field, offset, length, signed in fields(name, rwbs_bytes):
        value = known.get(field.partition("[")[0], 0)
        if isinstance(value, str):
            record[offset : offset + length] = (value.encode() + b"\0" + _STALE * 2)[:length]
        else:
            record[offset : offset + length] = int(value).to_bytes(length, "little", signed=bool(signed))
    return bytes(record)


def entry(delta_ns: int, record: bytes) -> bytes:
    """A record in a page, so long after what is before it."""
    return struct.pack("<I", len(record) // 4 | delta_ns << 5) + record


def page(time_ns: int, *entries: bytes, lost: int | None = None) -> bytes:
    """A page without its unused end, as archives have them; `lost`: how many events the kernel says to have lost before it."""
    body = b"".join(entries)
    flags, behind = (0, b"") if lost is None else (3 << 30, struct.pack("<Q", lost))
    return struct.pack("<QQ", time_ns, len(body) | flags) + body + behind


def begin(**more: Any) -> dict[str, Any]:
    """What headwaiter.json says."""
    disk = {"name": "sda", "number": "8,0", "facts": {"model": "m"}, "settings": {"scheduler": "[none]"}}
    return {"headwaiter": "recording-1", "recorder": "tracefs", "kernel": "6.12", "began_ns": 1000, "disks": [disk], **more}


def end(**more: Any) -> dict[str, Any]:
    """What end.json says."""
    return {"ended_ns": 5_000_001_000, "reason": "time", "lost": 0, "gaps": [], **more}


def document(what: dict[str, Any]) -> bytes:
    """JSON, as text that ends."""
    return json.dumps(what).encode() + b"\n"


def files(pages: Mapping[int, Sequence[bytes]], rwbs: int = 10, names: Sequence[str] = tuple(NUMBERS)) -> dict[str, bytes]:
    """The files of an archive, of one file of pages for each CPU."""
    found = {"headwaiter.json": document(begin())}
    found |= {f"events/x/{name}": format_text(name, rwbs).encode() for name in names}
    found |= {f"cpu{cpu}/000000": b"".join(content) for cpu, content in pages.items()}
    return found | {"end.json": document(end())}


def archive(content: Mapping[str, bytes]) -> bytes:
    """A tar archive of files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()
