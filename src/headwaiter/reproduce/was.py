# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tsakalozos et al., "Adaptive disk scheduling with workload-dependent anticipation intervals", JSS 2009.

Intervals are made as the paper made them, from a recording of Cold Boot and one of Andrew's-like, with its parameters (k = 5,
N = 100, M = 10 ms, G = 6 ms). Each of the eight workloads then runs under `as`, `as-95`, and `was` with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from headwaiter.engine.schedulers import find
from headwaiter.engine.sim import Load
from headwaiter.generated.machine import Process
from headwaiter.reproduce.bench import OPTIONS, Bench, ratio
from headwaiter.reproduce.claims import Band, Check, Claim, Investigation, Row, Table, least, most
from headwaiter.reproduce.experiment import Chart, Experiment
from headwaiter.reproduce.guests import run_workload
from headwaiter.study.schema import Anticipation
from headwaiter.was.calibrate import Choices, calibrate
from headwaiter.was.classify import differences
from headwaiter.was.config import HISTORY, Config
from headwaiter.was.designate import BOUND_US, designate
from headwaiter.was.fit import designated
from headwaiter.was.observe import BUCKET_US, Observation, watch

DOCUMENT = "Tsakalozos et al., Adaptive disk scheduling with workload-dependent anticipation intervals, JSS 2009"
DRIVE, SLOW_DRIVE = "barracuda-80g", "deskstar-75gxp"  # theirs: 80 GB SATA; 30 GB Ultra-ATA-100
MAX_SECTORS = 1024
"""Of a request: 512 KiB, as on the disks and kernels of the paper."""
CLASSES = 100
READAHEAD_KIB = 128
EVEN = least(0.98)
SLOWER = 3.0 / 1.3
"""Pentium 4 of 3 GHz against Pentium M of 1.3 GHz, by their clocks."""
PROGRAMS = "programs on ext4, fewer and smaller than in the paper (docs/was-workloads.md)"
RULES = ":cooperation=1"
BASE, HEURISTIC = f"as{RULES}", f"as-95{RULES}"
MADE_FROM = ("cold-boot", "andrew")
# Of each workload the parameters that a scale makes smaller.
WORKLOADS: Mapping[str, Mapping[str, int]] = {
    "kva": {"passes": 4},
    "cold-boot": {},
    "andrew": {"runs": 50},
    "kernel-compile": {"sources": 1500},
    "bonnie": {"file_mib": 512, "seeks": 8000},
    "multi-user": {"requests": 3000},
    "db": {},
    "scientific": {"operations": 600},
}
# T_F/A_S in ms: 95%, static 6 ms, WAS (Cold Boot), WAS (Andrew's-like), of tables 2 to 9.
PRINTED = {
    "kva": (0.23, 0.416, 0.161, 0.159),
    "cold-boot": (0.469, 0.595, 0.443, 0.461),
    "andrew": (1.858, 1.558, 1.546, 1.541),
    "kernel-compile": (0.667, 0.674, 0.632, 0.597),
    "bonnie": (1.858, 1.423, 1.459, 1.403),
    "multi-user": (11.745, 9.019, 6.716, 7.269),
    "db": (2.134, 1.951, 1.458, 1.412),
    "scientific": (3.198, 2.706, 2.317, 2.514),
}
FORMS = ("as-95", "as", *(f"was ({name})" for name in MADE_FROM))


class Slow(Process):
    """One on the slow machine."""

    def think(self, ns: float) -> None:
        super().think(ns * SLOWER)


def load(bench: Bench, name: str, process: type[Process] = Process, drive: str = DRIVE, **changed: float) -> Load:
    """A workload at the bench's scale."""
    sizes = {key: bench.count(size) for key, size in WORKLOADS[name].items()}
    return bench.generated(name, drive, process, **sizes, **changed)


def observe(bench: Bench, name: str, of: Load, drive: str = DRIVE) -> Observation:
    """What `as` sees and does on a load when it waits for up to M."""
    return watch(name, bench.drive(drive), of, OPTIONS)


def configured(observed: Observation, bound_us: int = BOUND_US) -> Config:
    """Classes and intervals by the paper's procedure."""
    found = calibrate(observed, Choices(HISTORY, CLASSES, None, None, BUCKET_US)).best
    classes = found.config(observed.max_us, {"from": observed.name})
    return designated(classes, designate(observed.matrix(classes, BUCKET_US), bound_us), {})


@dataclass(frozen=True)
class Waits:
    """By workload and form of the scheduler: what came of the waits, and MB/s."""

    waits: Mapping[tuple[str, str], Anticipation | None]
    mbps: Mapping[tuple[str, str], float]
    intervals: Mapping[str, Config]
    busiest: Mapping[str, Sequence[int]]
    """By recording, of the class that waits most: successes in each millisecond, then failures."""

    def cost(self, name: str, form: str) -> float:
        """T_F/A_S in ms; nan where no wait was met."""
        found = self.waits[name, form]
        return found.cost_ms if found and found.cost_ms is not None else float("nan")

    @property
    def workloads(self) -> Sequence[str]:
        """Their names."""
        return list(dict.fromkeys(name for name, _ in self.waits))

    @cached_property
    def better(self) -> Mapping[str, str]:
        """Of each workload the better configuration."""

        def order(name: str, form: str) -> tuple[bool, float]:
            cost = self.cost(name, form)
            return math.isnan(cost), cost

        return {name: min(FORMS[2:], key=lambda form: order(name, form)) for name in self.workloads}

    def gain(self, name: str) -> float:
        """T_F/A_S of the better configuration by that of `as`."""
        return ratio(self.cost(name, self.better[name]), self.cost(name, "as"))

    def of(self, name: str, form: str) -> Anticipation:
        """What came of the waits, of which there were some."""
        found = self.waits[name, form]
        assert found is not None
        return found


def waits(bench: Bench) -> Waits:
    """All eight workloads under all four."""
    made = _made(bench)
    settings: dict[str, tuple[str, Mapping[str, Any]]] = {"as-95": (HEURISTIC, {}), "as": (BASE, {})}
    settings |= {f"was ({name})": (f"was{RULES}", {"config": one.rows()}) for name, (_, one) in made.items()}
    found, rates = {}, {}
    for name in WORKLOADS:
        for form in FORMS:
            result = bench.run(DRIVE, load(bench, name), *settings[form], max_sectors=MAX_SECTORS)
            found[name, form], rates[name, form] = result.anticipation, result.throughput_mbps
    return _waits(found, rates, made)


PLAYED = ("kva", "multi-user")
"""Of the others too few waits fail there, a few dozen at most, for T_F/A_S to tell anything."""


def lab_waits(bench: Bench) -> Waits:
    """Some of them as programs in the lab. The intervals are made in the simulator, as above."""
    made = _made(bench)
    table = find("was").tables["config"]
    texts = {name: table.show(one.rows()) + "\n" for name, (_, one) in made.items()}
    schedulers = {"as-95": HEURISTIC, "as": BASE} | {f"was ({name})": f"was{RULES}:config={name}" for name in texts}
    found, rates = {}, {}
    for name in PLAYED:
        ran = run_workload(bench, name, DRIVE, list(schedulers.values()), texts)
        for form, text in schedulers.items():
            (one,) = ran[text]
            found[name, form], rates[name, form] = one.waits, one.throughput_mbps
    return _waits(found, rates, made)


def _made(bench: Bench) -> dict[str, tuple[Observation, Config]]:
    observed = {name: observe(bench, name, load(bench, name)) for name in MADE_FROM}
    return {name: (one, configured(one)) for name, one in observed.items()}


def _waits(
    found: Mapping[tuple[str, str], Anticipation | None],
    rates: Mapping[tuple[str, str], float],
    made: Mapping[str, tuple[Observation, Config]],
) -> Waits:
    configs = {name: config for name, (_, config) in made.items()}
    return Waits(found, rates, configs, {name: busiest(*one) for name, one in made.items()})


def busiest(observed: Observation, config: Config) -> list[int]:
    """Of the class that waits most: successes in each bucket of time, then failures."""
    counts = observed.matrix(config, BUCKET_US).counts
    return [int(count) for count in counts[counts.sum(axis=1).argmax()]]


def penalty_ms(counts: Sequence[int], bucket: int) -> float:
    """T_F/A_S of a class that waits for so many buckets: what is not met until then fails."""
    met = sum(counts[:bucket])
    return ratio((sum(counts) - met) * bucket * BUCKET_US / 1e3, met)


def _table(m: Waits) -> list[Table]:
    out = []
    for name in m.workloads:
        rows: list[Row] = []
        for form, printed in zip(FORMS, PRINTED[name], strict=True):
            a = m.waits[name, form]
            counts = [a.waits, a.met, a.failed, a.waits_ms, a.met_ms, a.failed_ms] if a else [0, 0, 0, 0, 0, 0]
            rows.append([form, printed, a.cost_ms if a else None, *counts, m.mbps[name, form]])
        columns = ["scheduler", "paper: T_F/A_S ms", "ours: T_F/A_S ms", "A", "A_S", "A_F", "T ms", "T_S ms", "T_F ms", "MB/s"]
        out.append(Table(name, columns, rows))
    return out


def _charts(m: Waits) -> list[Chart]:
    lines = {form: [m.cost(name, form) for name in m.workloads] for form in FORMS}
    buckets = range(1, len(next(iter(m.busiest.values()))))
    ms = [bucket * BUCKET_US / 1e3 for bucket in buckets]
    penalties = {name: [penalty_ms(counts, bucket) for bucket in buckets] for name, counts in m.busiest.items()}
    return [
        Chart("Time lost by failed waits, for each that succeeds", "workload", "T_F/A_S, ms", m.workloads, lines),
        Chart(
            "The class that waits most (figures 10 to 14)", "ended in its ms, or in vain", "waits", [*ms, "vain"], dict(m.busiest)
        ),
        Chart("The same, if it waits for so long (figure 15)", "wait, ms", "T_F/A_S, ms", ms, penalties),
    ]


def _bounds(bench: Bench, m: Waits) -> Investigation:
    """Scientific: whether it is the recording that the intervals were made from."""
    of = load(bench, "scientific")
    observed = observe(bench, "scientific", of)
    rows: list[Row] = []
    base = m.cost("scientific", "as")
    for what, config in (
        ("from Cold Boot", m.intervals["cold-boot"]),
        ("from Andrew's-like", m.intervals["andrew"]),
        ("from itself", configured(observed)),
        ("from itself, G = 4 ms", configured(observed, 4000)),
    ):
        result = bench.run(DRIVE, of, f"was{RULES}", {"config": config.rows()}, max_sectors=MAX_SECTORS)
        cost = result.anticipation.cost_ms if result.anticipation else None
        rows.append([what, ratio(cost if cost is not None else float("nan"), base), result.throughput_mbps])
    return Investigation(
        "Its bursts are not printed. Intervals made from another workload put its processes into classes"
        " that hold few waits there; made from itself, with a lower bound on the cost of a failed wait, they save what the paper"
        " reports, at the price of throughput.",
        Table("Scientific: T_F/A_S, was / as", ["intervals", "was / as", "MB/s"], rows),
    )


@dataclass(frozen=True)
class ReadAhead:
    """By workload, for each run: waits with read-ahead, and without; of them those that failed."""

    waits: Mapping[str, tuple[Sequence[int], Sequence[int]]]
    failed: Mapping[str, tuple[Sequence[int], Sequence[int]]]

    def growth(self, name: str) -> float:
        """How many times as many without."""
        ahead, without = self.waits[name]
        return ratio(sum(without), sum(ahead))


RUNS = {"kva": 2, "andrew": 8}
"""In the lab, where their waits hang on the places that the file system gives them."""
NO_READAHEAD = {"kva": (83851, 88411), "andrew": (40389, 77005), "multi-user": (1980, 55335), "db": (2559, 56755)}


def readahead(bench: Bench) -> ReadAhead:
    """Waits of `as` with and without read-ahead."""

    def found(name: str, readahead_kib: int) -> Sequence[Anticipation | None]:
        of = load(bench, name) if readahead_kib else load(bench, name, readahead_kib=0)
        return [bench.run(DRIVE, of, BASE, max_sectors=MAX_SECTORS).anticipation]

    return _readahead(found)


def lab_readahead(bench: Bench) -> ReadAhead:
    """The same with programs in the lab."""

    def found(name: str, readahead_kib: int) -> Sequence[Anticipation | None]:
        given = {"READAHEAD_KIB": readahead_kib}
        runs = run_workload(bench, name, DRIVE, [BASE], parameters=given, runs=RUNS.get(name, 1))[BASE]
        return [run.waits for run in runs]

    return _readahead(found)


def _readahead(found: Callable[[str, int], Sequence[Anticipation | None]]) -> ReadAhead:
    waits, failed = {}, {}
    for name in NO_READAHEAD:
        one, other = found(name, READAHEAD_KIB), found(name, 0)
        waits[name] = [run.waits if run else 0 for run in one], [run.waits if run else 0 for run in other]
        failed[name] = [run.failed if run else 0 for run in one], [run.failed if run else 0 for run in other]
    return ReadAhead(waits, failed)


def _late(_: Bench, m: ReadAhead) -> Investigation:
    """Whether it is the reads that are late, or the others."""
    return Investigation(
        "One read in eight is late, with read-ahead as without: as many waits fail. Of the others more or fewer are waited for,"
        " as the two processes happen to alternate.",
        Table(
            "kva",
            ["waits", "with read-ahead", "without"],
            [["A_F", *map(sum, m.failed["kva"])], ["A", *map(sum, m.waits["kva"])]],
        ),
    )


def _placed(_: Bench, m: ReadAhead) -> Investigation:
    """How much Andrew's waits differ from run to run."""
    rows: list[Row] = [[k, *run] for k, run in enumerate(zip(*m.waits["andrew"], strict=True), 1)]
    return Investigation(
        "Andrew's programs are few here, and their waits hang on where the file system puts their folders: the runs of one kind"
        " differ by more than the two kinds do.",
        Table("andrew", ["run", "A with read-ahead", "A without"], rows),
    )


def _readahead_table(m: ReadAhead) -> list[Table]:
    rows: list[Row] = [
        [name, *paper, ratio(paper[1], paper[0]), *map(sum, m.waits[name]), m.growth(name)]
        for name, paper in NO_READAHEAD.items()
    ]
    figures = ("A with read-ahead", "A without", "without / with")
    return [
        Table("Waits without read-ahead", ["workload", *(f"paper: {f}" for f in figures), *(f"ours: {f}" for f in figures)], rows)
    ]


ANTICIPATING, OTHERS = (BASE, HEURISTIC, "cas"), ("noop", "deadline", "cfq")
COMPARED = ("kva", "andrew", "multi-user")
Rates = Mapping[str, float]
"""MB/s by scheduler."""


@dataclass(frozen=True)
class Throughput:
    """By workload what each scheduler got, and how to measure another one, with so many KiB of read-ahead."""

    rates: Mapping[str, Rates]
    measure: Callable[[Bench, str, int], Rates]


def _sim_rates(bench: Bench, name: str, readahead_kib: int) -> Rates:
    of = load(bench, name) if readahead_kib else load(bench, name, readahead_kib=0)
    return {
        one.removesuffix(RULES): bench.run(DRIVE, of, one, max_sectors=MAX_SECTORS).throughput_mbps
        for one in (*ANTICIPATING, *OTHERS)
    }


def _lab_rates(bench: Bench, name: str, readahead_kib: int) -> Rates:
    ran = run_workload(bench, name, DRIVE, [*ANTICIPATING, *OTHERS], parameters={"READAHEAD_KIB": readahead_kib})
    return {one.removesuffix(RULES): found.throughput_mbps for one, (found,) in ran.items()}


def throughput(bench: Bench) -> Throughput:
    """Of the anticipating schedulers and of the others."""
    return Throughput({name: _sim_rates(bench, name, READAHEAD_KIB) for name in COMPARED}, _sim_rates)


def lab_throughput(bench: Bench) -> Throughput:
    """The same with programs in the lab."""
    return Throughput({name: _lab_rates(bench, name, READAHEAD_KIB) for name in COMPARED}, _lab_rates)


def _rate_rows(rates: Mapping[str, Rates]) -> list[Row]:
    return [[name, *of_one.values(), _ahead(of_one)] for name, of_one in rates.items()]


RATE_COLUMNS = ("workload", *(one.removesuffix(RULES) for one in (*ANTICIPATING, *OTHERS)), "worst anticipating / best other")


def _throughput_table(m: Throughput) -> list[Table]:
    return [Table("MB/s", RATE_COLUMNS, _rate_rows(m.rates))]


def _throughput_charts(m: Throughput) -> list[Chart]:
    lines = {one: [rates[one] for rates in m.rates.values()] for one in RATE_COLUMNS[1:-1]}
    return [Chart("Throughput (figures 18 to 21)", "workload", "MB/s", list(m.rates), lines)]


def _ahead(rates: Rates) -> float:
    """The worst of the anticipating by the best of the others."""
    plain = [one.removesuffix(RULES) for one in ANTICIPATING]
    return ratio(min(rates[one] for one in plain), max(rates[one] for one in OTHERS))


def _by_readahead(bench: Bench, m: Throughput) -> Investigation:
    """Where they fall behind: whether read-ahead has left them anything to wait for."""
    behind = [name for name, rates in m.rates.items() if _ahead(rates) not in EVEN]
    return Investigation(
        "With read-ahead a small file is read whole by one request, and the process goes on to another: there is nothing near to"
        " wait for. Without read-ahead each page is a request.",
        Table("MB/s without read-ahead", RATE_COLUMNS, _rate_rows({name: m.measure(bench, name, 0) for name in behind})),
    )


@dataclass(frozen=True)
class Prospect:
    """Of differences between successive reads of a process, on the fast machine and on the slow one."""

    distance: float
    """Largest distance of the two cumulative distributions in space."""
    fast_us: float
    slow_us: float
    """Median in time."""
    deciles: Mapping[str, Sequence[float]]
    """Of both machines: sectors, and ms, below which one tenth of the differences is, two tenths, …"""


def slow_machine(bench: Bench) -> Mapping[str, Prospect]:
    """The same programs with a slower processor and an older drive: those that the prospect functions are made from."""
    out = {}
    for name in MADE_FROM:
        fast = observe(bench, name, load(bench, name))
        slow = observe(bench, name, load(bench, name, Slow, SLOW_DRIVE), SLOW_DRIVE)
        (space, time, known), (slow_space, slow_time, slow_known) = differences(fast.reads), differences(slow.reads)
        out[name] = Prospect(
            _apart(space[known], slow_space[slow_known]),
            float(np.median(time[known])),
            float(np.median(slow_time[slow_known])),
            {
                "fast: sectors": _deciles(space[known]),
                "slow: sectors": _deciles(slow_space[slow_known]),
                "fast: ms": _deciles(time[known] / 1e3),
                "slow: ms": _deciles(slow_time[slow_known] / 1e3),
            },
        )
    return out


TENTHS = tuple(range(1, 10))


def _deciles(values: np.ndarray[Any, Any]) -> list[float]:
    return [float(value) for value in np.quantile(values, [tenth / 10 for tenth in TENTHS])]


def _slow_charts(m: Mapping[str, Prospect]) -> list[Chart]:
    return [
        Chart(
            f"{name}: differences between successive reads of a process, in {unit}",
            "tenths of them that are no larger",
            unit,
            TENTHS,
            {machine: one.deciles[f"{machine}: {unit}"] for machine in ("fast", "slow")},
        )
        for name, one in m.items()
        for unit in ("sectors", "ms")
    ]


def _apart(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Kolmogorov and Smirnov's distance."""
    values = np.union1d(a, b)
    below = [np.searchsorted(np.sort(one), values, side="right") / len(one) for one in (a, b)]
    return float(np.abs(below[0] - below[1]).max())


def _slow_table(m: Mapping[str, Prospect]) -> list[Table]:
    rows: list[Row] = [
        [name, one.distance, one.fast_us / 1e3, one.slow_us / 1e3, ratio(one.slow_us, one.fast_us)] for name, one in m.items()
    ]
    columns = ["workload", "largest distance in space", "fast: median ms", "slow: median ms", "slow / fast"]
    return [Table("Differences between successive reads of a process", columns, rows)]


WHOLE: Mapping[str, float] = {"sim": 1, "lab": 1}
"""Scales of claims that hang on intervals from a whole recording: those of a shorter one are others, and few waits fail."""


def _gains(
    id_: str,
    name: str,
    paper: str,
    band: Band,
    essential: bool = False,
    why: Any = None,
    shortest: Mapping[str, float] = MappingProxyType({}),
) -> Claim[Waits]:
    text = f"{name}: T_F/A_S, was / as"
    return Claim(id_, text, paper, lambda m: [Check(m.gain(name), band)], essential, why, shortest=shortest)


_KVA: tuple[Claim[Waits], ...] = (
    _gains("WA1", "kva", "0.37", most(0.6), True, shortest=WHOLE),
    Claim(
        "WA9",
        "kva: failed waits, was / as",
        "0.35, 0.32",
        lambda m: [Check(ratio(m.of("kva", m.better["kva"]).failed, m.of("kva", "as").failed), most(0.5))],
        essential=True,
        shortest=WHOLE,
    ),
    Claim(
        "WA10",
        "kva: A_S, was / as",
        "1.06",
        lambda m: [Check(ratio(m.of("kva", m.better["kva"]).met, m.of("kva", "as").met), least(1.0))],
        shortest=WHOLE,
    ),
    Claim(
        "WA11",
        "kva: T_F, as-95 / as",
        "0.59",
        lambda m: [Check(ratio(m.of("kva", "as-95").failed_ms, m.of("kva", "as").failed_ms), most(0.9))],
    ),
)
_MULTI_USER = _gains("WA6", "multi-user", "0.74", most(0.95), True)
BETTER = "the better of the intervals made from Cold Boot and from Andrew's-like"

EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "was-waits",
        DOCUMENT,
        "Tables 2 to 9: what came of the waits on eight workloads",
        DRIVE,
        {"sim": waits},
        _table,
        [
            *_KVA,
            _gains("WA2", "cold-boot", "0.74", most(0.95), True),
            _gains("WA3", "andrew", "0.99", most(1.02)),
            _gains("WA4", "kernel-compile", "0.88", most(1.0), shortest=WHOLE),
            _gains("WA5", "bonnie", "0.99", most(1.02), shortest=WHOLE),
            _MULTI_USER,
            _gains("WA7", "db", "0.72", most(0.95), True, shortest=WHOLE),
            _gains("WA8", "scientific", "0.86", most(0.97), why=_bounds, shortest=WHOLE),
        ],
        {"sim": 30},
        charts=_charts,
        notes={"sim": f"{BETTER}; generated programs (docs/was-workloads.md)"},
    ),
    Experiment(
        "was-programs",
        DOCUMENT,
        "Tables 2 and 7: what came of the waits of programs",
        DRIVE,
        {"lab": lab_waits},
        _table,
        [*_KVA, _MULTI_USER],
        {"lab": 100},
        charts=_charts,
        notes={"lab": f"{BETTER} in the simulator; {PROGRAMS}"},
        whole=("lab",),
    ),
    Experiment(
        "was-readahead",
        DOCUMENT,
        "Tables 10 to 13: without read-ahead",
        DRIVE,
        {"sim": readahead, "lab": lab_readahead},
        _readahead_table,
        [
            Claim(
                "WA13",
                "waits without read-ahead / with",
                "1.9, 28, 22",
                lambda m: [Check(m.growth(name), least(1.3), name) for name in ("andrew", "multi-user", "db")],
                why=_placed,
            ),
            Claim("WA14", "kva: the same", "1.05", lambda m: [Check(m.growth("kva"), Band(0.85, 1.15))], why=_late),
        ],
        {"sim": 10, "lab": 400},
        notes={"lab": PROGRAMS},
        whole=("lab",),
    ),
    Experiment(
        "was-throughput",
        DOCUMENT,
        "throughput of anticipating schedulers and of others",
        DRIVE,
        {"sim": throughput, "lab": lab_throughput},
        _throughput_table,
        [
            Claim(
                "WA12",
                "the worst of the anticipating / the best of noop, deadline, cfq",
                "yes",
                lambda m: [Check(_ahead(rates), EVEN, name) for name, rates in m.rates.items()],
                why=_by_readahead,
            )
        ],
        {"sim": 30, "lab": 150},
        printed=False,
        charts=_throughput_charts,
        notes={"lab": PROGRAMS},
        whole=("lab",),
    ),
    Experiment(
        "was-slow",
        DOCUMENT,
        "Figures 10 to 15, Tables 14 and 15: a slower machine",
        f"{DRIVE}, {SLOW_DRIVE}",
        {"sim": slow_machine},
        _slow_table,
        [
            Claim(
                "WA15",
                "the spatial prospect is the same, the temporal one shifts to longer times",
                "yes",
                lambda m: [
                    Check(max(one.distance for one in m.values()), most(0.15), "largest distance in space"),
                    Check(
                        min(one.slow_us / one.fast_us for one in m.values()), least(1.05), "least growth of the median in time"
                    ),
                ],
            )
        ],
        {"sim": 10},
        printed=False,
        charts=_slow_charts,
        notes={"sim": f"think times are {SLOWER:.1f} times as long on the slow machine, as the processors' clocks"},
    ),
)
