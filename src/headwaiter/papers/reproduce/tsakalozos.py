# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tsakalozos et al., "Adaptive disk scheduling with workload-dependent anticipation intervals", JSS 2009.

Intervals are made as the paper made them, from a recording of Cold Boot and one of Andrew's-like, with its parameters (k = 5,
N = 100, M = 10 ms, G = 6 ms). Each of the eight workloads then runs under `as`, `as-95`, and `was` with both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from headwaiter.engine.sim import Load
from headwaiter.generated.model_machine import Process
from headwaiter.papers.reproduce.bench import OPTIONS, Bench, ratio
from headwaiter.papers.reproduce.claims import Band, Check, Claim, Investigation, PaperTable, Row, least, most
from headwaiter.papers.reproduce.experiment import Chart, Experiment
from headwaiter.papers.reproduce.guests import run_workload
from headwaiter.papers.reproduce.wait_figures import BETTER_FORM, FORMS, MADE_FROM, WaitFigures
from headwaiter.papers.was.calibration import Choices, calibrate
from headwaiter.papers.was.config import HISTORY, Config
from headwaiter.papers.was.designate import BOUND_US, designate
from headwaiter.papers.was.fit import designated
from headwaiter.papers.was.observe import BUCKET_US, Observation, watch
from headwaiter.study.schema import Anticipation

DOCUMENT = "Tsakalozos et al., Adaptive disk scheduling with workload-dependent anticipation intervals, JSS 2009"
DRIVE = "barracuda-80g"  # theirs: 80 GB SATA
MAX_SECTORS = 1024
"""The largest request: 512 KiB, as on the disks and kernels of the paper."""
CLASSES = 100
READAHEAD_KIB = 128
EVEN = least(0.98)
PROGRAMS = "programs on ext4, fewer and smaller than in the paper (docs/was-workloads.md)"
RULES = ":cooperation=1"
BASE, HEURISTIC = f"as{RULES}", f"as-95{RULES}"
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
PRINTED: Mapping[str, Sequence[float]] = {
    "kva": (0.23, 0.416, 0.161, 0.159),
    "cold-boot": (0.469, 0.595, 0.443, 0.461),
    "andrew": (1.858, 1.558, 1.546, 1.541),
    "kernel-compile": (0.667, 0.674, 0.632, 0.597),
    "bonnie": (1.858, 1.423, 1.459, 1.403),
    "multi-user": (11.745, 9.019, 6.716, 7.269),
    "db": (2.134, 1.951, 1.458, 1.412),
    "scientific": (3.198, 2.706, 2.317, 2.514),
}
DRAWS = 8
"""Each has recordings and workloads of its own. The classes that come of one recording differ much from those of the next."""


def load(bench: Bench, name: str, process: type[Process] = Process, drive: str = DRIVE, seed: int = 0, **changed: float) -> Load:
    """A workload at the bench's scale, in one of its draws."""
    sizes = {key: bench.count(size) for key, size in WORKLOADS[name].items()}
    return bench.generated(name, drive, process, seed, **sizes, **changed)


def observe(bench: Bench, name: str, of: Load, drive: str = DRIVE) -> Observation:
    """Return what `as` sees and does on a load when it waits for up to M."""
    return watch(name, bench.drive(drive), of, OPTIONS)


def configured(observed: Observation, bound_us: int = BOUND_US) -> Config:
    """Classes and intervals by the paper's procedure."""
    found = calibrate(observed, Choices(HISTORY, CLASSES, None, None, BUCKET_US)).best
    classes = found.config(observed.max_us, {"from": observed.name})
    return designated(classes, designate(observed.matrix(classes, BUCKET_US), bound_us), {})


@dataclass(frozen=True)
class Computer:
    """A machine: the pace at which its programs think, and its drive."""

    process: type[Process] = Process
    drive: str = DRIVE


FAST = Computer()


def waits(
    bench: Bench,
    names: Sequence[str] = tuple(WORKLOADS),
    forms: Sequence[str] = FORMS,
    on: Computer = FAST,
    **changed: float,
) -> WaitFigures:
    """Workloads under forms of the scheduler, with intervals made on the same machine. `changed` are parameters of workloads."""
    found: dict[tuple[str, str], list[Anticipation | None]] = {(name, form): [] for name in names for form in forms}
    rates: dict[tuple[str, str], list[float]] = {key: [] for key in found}
    draws = [_made(bench, on, seed) for seed in range(bench.count(DRAWS))]
    for seed, made in enumerate(draws):
        settings: dict[str, tuple[str, Mapping[str, Any]]] = {"as-95": (HEURISTIC, {}), "as": (BASE, {})}
        settings |= {f"was ({name})": (f"was{RULES}", {"config": one.rows()}) for name, (_, one) in made.items()}
        for name in names:
            of = load(bench, name, on.process, on.drive, seed, **changed)
            for form in forms:
                result = bench.run(on.drive, of, *settings[form], max_sectors=MAX_SECTORS)
                found[name, form].append(result.anticipation)
                rates[name, form].append(result.throughput_mbps)
    return of_waits(found, rates, draws[0])


def _made(bench: Bench, on: Computer, seed: int) -> dict[str, tuple[Observation, Config]]:
    observed = {name: observe(bench, name, load(bench, name, on.process, on.drive, seed), on.drive) for name in MADE_FROM}
    return {name: (one, configured(one)) for name, one in observed.items()}


def of_waits(
    found: Mapping[tuple[str, str], Sequence[Anticipation | None]],
    rates: Mapping[tuple[str, str], Sequence[float]],
    made: Mapping[str, tuple[Observation, Config]],
) -> WaitFigures:
    configs = {name: config for name, (_, config) in made.items()}
    return WaitFigures(found, rates, configs, {name: busiest(*one) for name, one in made.items()})


def busiest(observed: Observation, config: Config) -> list[int]:
    """Return the waits of the class that waits most: successes in each bucket of time, then failures."""
    counts = observed.matrix(config, BUCKET_US).counts
    return [int(count) for count in counts[counts.sum(axis=1).argmax()]]


def penalty_ms(counts: Sequence[int], bucket: int) -> float:
    """T_F/A_S of a class that waits for so many buckets: what is not met until then fails."""
    met = sum(counts[:bucket])
    return ratio((sum(counts) - met) * bucket * BUCKET_US / 1e3, met)


def waits_table(m: WaitFigures, paper: Mapping[str, Sequence[float]] = PRINTED, forms: Sequence[str] = FORMS) -> list[PaperTable]:
    """Return a row for each workload, beside what the paper prints."""
    out = []
    for name in m.workloads:
        rows: list[Row] = []
        for form, printed in zip(forms, paper[name], strict=True):
            a = m.found(name, form)
            counts = [a.waits, a.met, a.failed, a.waits_ms, a.met_ms, a.failed_ms] if a else [0, 0, 0, 0, 0, 0]
            rows.append([form, printed, a.cost_ms if a else None, *counts, m.rate_mbps(name, form)])
        columns = ["scheduler", "paper: T_F/A_S ms", "ours: T_F/A_S ms", "A", "A_S", "A_F", "T ms", "T_S ms", "T_F ms", "MB/s"]
        out.append(PaperTable(name, columns, rows))
    return out


def waits_charts(m: WaitFigures) -> list[Chart]:
    """Return what failed waits cost, and the classes of figures 10 to 15."""
    lines = {form: [m.cost(name, form) for name in m.workloads] for form in dict.fromkeys(form for _, form in m.waits)}
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


def _bounds(bench: Bench, m: WaitFigures) -> Investigation:
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
        PaperTable("Scientific: T_F/A_S, was / as", ["intervals", "was / as", "MB/s"], rows),
    )


WORSE_95 = ("andrew", "bonnie", "multi-user", "db", "scientific")
"""In the paper as-95 loses more than static 6 ms there."""
CAPS_MS = (20, 10, 6)


def _capped(bench: Bench, m: WaitFigures) -> Investigation:
    """Return how much of as-95's success is its longest wait, which the paper does not print."""
    rows: list[Row] = []
    for name in m.workloads:
        results = [bench.run(DRIVE, load(bench, name), f"{HEURISTIC}:cap={cap}", max_sectors=MAX_SECTORS) for cap in CAPS_MS]
        costs = [one.anticipation.cost_ms if one.anticipation else None for one in results]
        rows.append([name, *costs, m.cost(name, "as"), m.cost(name, BETTER_FORM), PRINTED[name][0], PRINTED[name][1]])
    columns = ["workload", *(f"ours: as-95, {cap} ms" for cap in CAPS_MS), "ours: as", "ours: was", "paper: as-95", "paper: as"]
    return Investigation(
        "The paper does not print for how long its 95% heuristic waits at most. Ours waits for up to 20 ms (`cap`), and so meets"
        " what a limit of 6 or 10 ms misses; a lower limit changes the order in some workloads, and not in all.",
        PaperTable("T_F/A_S in ms, by the longest wait of as-95", columns, rows),
    )


def _held(_: Bench, m: WaitFigures) -> Investigation:
    """Say where throughput is lost: in waits that are met, and longer than before."""
    rows: list[Row] = []
    for name in m.workloads:
        base, mine = m.of(name, "as"), m.of(name, BETTER_FORM)
        spared, waited = base.failed_ms - mine.failed_ms, mine.met_ms - base.met_ms
        better = ", ".join(f"{of} {m.better[name].count(of)}" for of in FORMS[2:])
        rows.append([name, better, m.rate(name), spared, waited])
    return Investigation(
        "T_F/A_S does not count the time of waits that are met. Where longer intervals add more of it than they spare of the"
        " others, the disk stands still for longer, and throughput falls.",
        PaperTable(
            "Against static 6 ms",
            ["workload", "the better in so many draws", "MB/s, was / as", "ms spared of failed waits", "ms more in waits met"],
            rows,
        ),
    )


def _foreign(bench: Bench, m: WaitFigures) -> Investigation:
    """Return which intervals KVA's waits get: by configuration, how many fall to which interval."""
    observed = observe(bench, "kva", load(bench, "kva"))
    rows: list[Row] = []
    for name, config in m.intervals.items():
        counts = observed.matrix(config, BUCKET_US).counts.sum(axis=1)
        by_us: dict[int, int] = {}
        for us, count in zip(config.wait_us, counts, strict=True):
            by_us[int(us)] = by_us.get(int(us), 0) + int(count)
        most_us = max(by_us, key=lambda us: by_us[us])
        rows.append([name, most_us / 1e3, ratio(by_us[most_us], int(counts.sum()))])
    return Investigation(
        "KVA's reads fall into few classes. What Cold Boot did in them decides how long KVA is waited for.",
        PaperTable("kva: the interval of most waits", ["intervals from", "ms", "share of waits"], rows),
    )


@dataclass(frozen=True)
class ReadAhead:
    """Waits with read-ahead and without, and of them those that failed, for each run, by workload."""

    waits: Mapping[str, tuple[Sequence[int], Sequence[int]]]
    failed: Mapping[str, tuple[Sequence[int], Sequence[int]]]

    def growth(self, name: str) -> float:
        """Return how many times as many without."""
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
    """Measure programs in the lab without read-ahead."""

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
    """Return whether it is the reads that are late, or the others."""
    return Investigation(
        "One read in eight is late, with read-ahead as without: as many waits fail. Of the others more or fewer are waited for,"
        " as the two processes happen to alternate.",
        PaperTable(
            "kva",
            ["waits", "with read-ahead", "without"],
            [["A_F", *map(sum, m.failed["kva"])], ["A", *map(sum, m.waits["kva"])]],
        ),
    )


def _placed(_: Bench, m: ReadAhead) -> Investigation:
    """Return how much Andrew's waits differ from run to run."""
    rows: list[Row] = [[k, *run] for k, run in enumerate(zip(*m.waits["andrew"], strict=True), 1)]
    return Investigation(
        "Andrew's programs are few here, and their waits hang on where the file system puts their folders: the runs of one kind"
        " differ by more than the two kinds do.",
        PaperTable("andrew", ["run", "A with read-ahead", "A without"], rows),
    )


def _readahead_table(m: ReadAhead) -> list[PaperTable]:
    rows: list[Row] = [
        [name, *paper, ratio(paper[1], paper[0]), *map(sum, m.waits[name]), m.growth(name)]
        for name, paper in NO_READAHEAD.items()
    ]
    figures = ("A with read-ahead", "A without", "without / with")
    return [
        PaperTable(
            "Waits without read-ahead", ["workload", *(f"paper: {f}" for f in figures), *(f"ours: {f}" for f in figures)], rows
        )
    ]


WHOLE: Mapping[str, float] = {"sim": 1, "lab": 1}
"""Scales of claims that hang on intervals from a whole recording: those of a shorter one are others, and few waits fail."""


def gains(
    id_: str,
    name: str,
    paper: str,
    band: Band,
    essential: bool = False,
    why: Any = None,
    shortest: Mapping[str, float] = MappingProxyType({}),
) -> Claim[WaitFigures]:
    text = f"{name}: T_F/A_S, was / as"
    return Claim(id_, text, paper, lambda m: [m.gained(name, band)], essential, why, shortest=shortest)


KVA: tuple[Claim[WaitFigures], ...] = (
    gains("WA1", "kva", "0.37", most(0.6), True, shortest=WHOLE),
    Claim(
        "WA9",
        "kva: failed waits, was / as",
        "0.35, 0.32",
        lambda m: [Check(ratio(m.of("kva", BETTER_FORM).failed, m.of("kva", "as").failed), most(0.5))],
        essential=True,
        shortest=WHOLE,
    ),
    Claim(
        "WA10",
        "kva: A_S, was / as",
        "1.06",
        lambda m: [Check(ratio(m.of("kva", BETTER_FORM).met, m.of("kva", "as").met), least(1.0))],
        shortest=WHOLE,
    ),
    Claim(
        "WA11",
        "kva: T_F, as-95 / as",
        "0.59",
        lambda m: [Check(ratio(m.of("kva", "as-95").failed_ms, m.of("kva", "as").failed_ms), most(0.9))],
    ),
)


COLD_BOOT = gains("WA2", "cold-boot", "0.74", most(0.95), True)
MULTI_USER = gains("WA6", "multi-user", "0.74", most(0.95), True)
BETTER = "the better of the intervals made from Cold Boot and from Andrew's-like"
SUMS = f"in each of {DRAWS} draws; counts and times are those of all draws"

EXPERIMENTS: tuple[Experiment[Any], ...] = (
    Experiment(
        "was-waits",
        DOCUMENT,
        "Tables 2 to 9: what came of the waits on eight workloads",
        DRIVE,
        {"sim": waits},
        waits_table,
        [
            *KVA,
            COLD_BOOT,
            gains("WA3", "andrew", "0.99", most(1.02)),
            gains("WA4", "kernel-compile", "0.88", most(1.0), shortest=WHOLE),
            gains("WA5", "bonnie", "0.99", most(1.02), shortest=WHOLE),
            MULTI_USER,
            gains("WA7", "db", "0.72", most(0.95), True, shortest=WHOLE),
            gains("WA8", "scientific", "0.86", most(0.97), why=_bounds, shortest=WHOLE),
            Claim(
                "WA20",
                "kva with the intervals from Cold Boot: failed waits, was / as",
                "0.35",
                lambda m: [Check(ratio(m.of("kva", FORMS[2]).failed, m.of("kva", "as").failed), most(0.5))],
                why=_foreign,
                shortest=WHOLE,
            ),
            Claim(
                "WA21",
                "throughput, was / as: the least of the eight",
                "kept",
                lambda m: [Check(min(m.rate(name) for name in m.workloads), EVEN)],
                why=_held,
                shortest=WHOLE,
            ),
            Claim(
                "WA23",
                "T_F/A_S, was / as-95: the greatest of the eight",
                "0.94",
                lambda m: [Check(max(m.beside_95(name) for name in m.workloads), most(1))],
                why=_capped,
                shortest=WHOLE,
            ),
            Claim(
                "WA24",
                "T_F/A_S of as-95 is above that of as: in how many of the paper's five",
                "5",
                lambda m: [Check(sum(m.cost(name, "as-95") > m.cost(name, "as") for name in WORSE_95), least(4))],
                why=_capped,
                shortest=WHOLE,
            ),
        ],
        {"sim": 80},
        charts=waits_charts,
        notes={"sim": f"{BETTER}, {SUMS}; generated programs (docs/was-workloads.md)"},
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
)
