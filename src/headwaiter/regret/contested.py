# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is contested in a workload, as people write it: phrases parted by semicolons, each a figure of a run (docs/regret.md).

`MB/s of reader; p99 read latency (low is good)`. A name is that of a job, whose clones it stands for, or of a recorded task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from headwaiter.base.errors import Problem, shown

Kind = Literal["rate", "rate while", "progress", "jain", "latency", "burst", "span"]


@dataclass(frozen=True)
class Metric:
    """A figure of a run. `of`: whose; None: of all. `cap`: more than this share of the best is worth no more."""

    text: str
    """As it was written, without `(low is good)`."""
    kind: Kind
    of: str | None = None
    during: str | None = None
    """The task while which lives, of kind `rate while`."""
    cap: float = 1.0
    op: str = "read"
    percent: float = 0.0
    """The percentile of a latency; 0: the mean, 100: the longest."""

    @property
    def low_is_good(self) -> bool:
        """Return whether less is better."""
        return self.kind in ("latency", "burst", "span")

    @property
    def unit(self) -> str:
        """Return the unit of its values."""
        return {"jain": "", "rate": "MB/s", "rate while": "MB/s", "progress": "MB/s", "span": "s"}.get(self.kind, "ms")


_NAME = r"(?:the )?(?P<{}>\S.*?)"
_OF = rf"(?: of {_NAME.format('of')})?"
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("rate while", re.compile(rf"MB/s while {_NAME.format('during')} lives, of {_NAME.format('of')}")),
    ("rate", re.compile(rf"MB/s(?: \(counted up to (?P<cap>\d+)% of the best\))?(?: in all|{_OF})")),
    ("progress", re.compile("progress")),
    ("jain", re.compile(rf"Jain's index over {_NAME.format('of')}")),
    ("latency", re.compile(rf"(?P<which>p\d+(?:\.\d+)?|mean|longest) (?P<op>read|write)(?: latency)?{_OF}")),
    ("burst", re.compile(rf"mean time of a burst of {_NAME.format('of')}")),
    ("span", re.compile(rf"time from start to end of {_NAME.format('of')}")),
)
_LOW = re.compile(r"\s*\(low is good\)$")
FORMS = (
    "MB/s in all", "MB/s of JOB", "MB/s (counted up to N% of the best) of JOB", "MB/s while JOB lives, of JOB",
    "progress",
    "Jain's index over JOB", "pN read latency [of JOB]", "mean read latency [of JOB]", "longest read [of JOB]",
    "mean time of a burst of JOB", "time from start to end of JOB",
)  # fmt: skip
"""What can be contested; write instead of read where that is meant."""


def parse_contested(where: str, text: str) -> tuple[Metric, ...]:
    """The metrics that a line names. Problem, beginning with `where`, if it names none or one that is unknown."""
    found = tuple(_metric(where, phrase.strip()) for phrase in text.split(";") if phrase.strip())
    if not found:
        raise Problem(f"{where}: says of nothing that it is contested")
    return found


def _metric(where: str, written: str) -> Metric:
    text = _LOW.sub("", written)
    for kind, form in _FORMS:
        if not (match := form.fullmatch(text)):
            continue
        got = match.groupdict()
        cap = int(got.get("cap") or 100) / 100
        percent = _percent(got.get("which") or "mean")
        if not 0 < cap <= 1 or not 0 <= percent <= 100:
            break
        return Metric(text, kind, got.get("of"), got.get("during"), cap, got.get("op") or "read", percent)
    raise Problem(f"{where}: '{shown(written, 80)}' is unknown (known: {'; '.join(FORMS)})")


def _percent(which: str) -> float:
    return {"mean": 0.0, "longest": 100.0}.get(which) if which in ("mean", "longest") else float(which[1:])  # type: ignore[return-value]
