# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How much processor time I/O takes: none is a model in which nobody is ever late, and deceptive idleness vanishes.

A time is written A+B: A microseconds for each I/O and B more for each of its pages of 4 KiB.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from headwaiter.base.errors import Problem, shown
from headwaiter.base.parsing import decimal, real
from headwaiter.engine.sim import Options

LARGEST_US = 1e6


@dataclass(frozen=True)
class Time:
    """Processor time of one I/O."""

    ns: int
    page_ns: int = 0

    def __str__(self) -> str:
        return f"{self.ns / 1000:g}+{self.page_ns / 1000:g}" if self.page_ns else f"{self.ns / 1000:g}"


@dataclass(frozen=True)
class Processor:
    """Before each direct I/O of a process; from a decision to the drive; of an I/O through the page cache."""

    turnaround: Time
    dispatch: Time
    copy: Time

    def apply(self, options: Options) -> Options:
        """Return the options with this processor."""
        return dataclasses.replace(
            options,
            turnaround_ns=self.turnaround.ns, turnaround_page_ns=self.turnaround.page_ns,
            dispatch_ns=self.dispatch.ns, dispatch_page_ns=self.dispatch.page_ns,
            copy_ns=self.copy.ns, copy_page_ns=self.copy.page_ns,
        )  # fmt: skip

    def describe(self, options: Options) -> str:
        """One line for people: this processor under these options."""
        if cores := options.cores:
            before = Time(self.turnaround.ns, self.turnaround.page_ns)
            many = "1 processor" if cores == 1 else f"{cores} processors"
            return (
                f"{many}; their time, us: {before} per page before a direct I/O under none, {self.copy} through the page cache;"
                " schedulers add to that"
            )
        more = f" ({options.restart_ns / 1000:g} more after another request)" if options.restart_ns else ""
        return (
            f"processor time, us: {self.turnaround} per page before each direct I/O, {self.dispatch} to the drive{more},"
            f" {self.copy} through the page cache"
        )


def processor_of(options: Options) -> Processor:
    """Return what options say of it."""
    return Processor(
        Time(options.turnaround_ns, options.turnaround_page_ns),
        Time(options.dispatch_ns, options.dispatch_page_ns),
        Time(options.copy_ns, options.copy_page_ns),
    )


# Of Linux 6.12 and fio at 1 ns an instruction: `headwaiter lab run processor -k 6.12` prints them.
MEASURED = Processor(turnaround=Time(10_500, 530), dispatch=Time(3_000, 670), copy=Time(3_000, 600))

# By series: on 6.1 a request waits longer for its way to the drive.
_BY_SERIES = {"6.1": dataclasses.replace(MEASURED, turnaround=Time(11_000, 320), dispatch=Time(6_000, 670))}


def processor_of_series(release: str) -> Processor:
    """Return what was measured on a kernel of that series, or on 6.12."""
    series = ".".join(release.split(".")[:2])
    return _BY_SERIES.get(series, MEASURED)


def parse_time(where: str, text: str) -> Time:
    """A or A+B, in microseconds; Problem naming `where` if it is neither."""
    try:
        parts = [real(part, 0, LARGEST_US) for part in text.split("+")]
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= 2:
        raise Problem(f"{where} {shown(text)}: expected US or US+US_PER_PAGE, each from 0 to {decimal(LARGEST_US)}")
    return Time(*(round(part * 1000) for part in parts))
