# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tables of what was measured in the lab: lab/**/NAME.json, which `make lab-docs` and `make test-kernels` make."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import beside
from markdown_tables import rows

from headwaiter.base.figures import brief
from headwaiter.experiments.advise import TOLD
from headwaiter.lab.agree import mixed
from headwaiter.lab.agreement import P99_LARGEST_PERCENT, broken_bounds

ROOT = Path(__file__).resolve().parent.parent


def _of_lab(name: str) -> dict[str, Any]:
    """NAME.json, which lies beside the script that has measured it."""
    (path,) = (ROOT / "lab").rglob(f"{name}.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def lab_results(name: str) -> list[dict[str, Any]]:
    """Rows that `headwaiter lab … --json -o NAME.json` has measured."""
    results: list[dict[str, Any]] = _of_lab(name)["results"]
    return results


def _by(results: Iterable[dict[str, Any]], first: str, second: str) -> dict[str, dict[Any, dict[str, Any]]]:
    """Return rows by the values of two of their keys, in their order."""
    by: dict[str, dict[Any, dict[str, Any]]] = {}
    for r in results:
        by.setdefault(r[first], {})[r[second]] = r
    return by


def readers(name: str) -> str:
    """Return a line for each scheduler of the experiment `readers`."""
    by = _by(lab_results(name), "scheduler", "readers")
    counts = sorted(next(iter(by.values())))
    several = [n for n in counts if n > 1]

    def ratio(found: dict[int, dict[str, Any]], key: str) -> str:
        return " / ".join(f"{found[n][key]:.2f}" for n in several)

    return rows(
        (
            "scheduler",
            *(f"MB/s, {n} reader{'s' if n > 1 else ''}" for n in counts),
            "of mq-deadline",
            "of bfq",
            "of bfq-throughput",
            "longest read, ms",
            "least Jain's index",
        ),
        (
            (
                f"`{scheduler}`",
                *(f"{found[n]['throughput_MBps']:.1f}" for n in counts),
                *(ratio(found, key) for key in ("of_mq_deadline", "of_bfq", "of_bfq_throughput")),
                " / ".join(f"{found[n]['max_lat_ms']:.0f}" for n in several),
                " / ".join(f"{found[n]['fairness_jain']:.3f}" for n in several),
            )
            for scheduler, found in by.items()
        ),
    )


def advice(names: str) -> str:
    """Return a line for each job of the experiment `advise`, in one file or several: how far ahead each scheduler is in both."""
    results = [r for name in names.split() for r in lab_results(name)]
    runs = _by((r for r in results if r["what"] == "run"), "job", "scheduler")
    said = {r["job"]: r for r in results if r["what"] == "advice" and r["among"] == "all"}
    base = "mq-deadline"
    others = [s for s in next(iter(runs.values())) if s != base]

    def ahead(found: dict[str, dict[str, Any]], scheduler: str) -> str:
        lab = 100 * (found[scheduler]["progress"] / found[base]["progress"] - 1)
        return f"{lab:+.0f} / {found[scheduler]['ahead_percent']:+.0f}"

    return rows(
        ("job", "processes", *(f"`{s}`" for s in others), "advise's first", "best in the lab", "`of_best`"),
        (
            (
                job,
                f"{found[base]['processes']}",
                *(ahead(found, s) for s in others),
                f"`{said[job]['scheduler']}`",
                f"`{said[job]['best']}`",
                f"{said[job]['of_best']:.3f}",
            )
            for job, found in runs.items()
        ),
    )


def first_places(names: str) -> str:
    """Return how often the first place of `advise`, in one file or several, is right, and the others; and the second run of some.

    `AMONG NAMES`: among all that ran, or the kernel's own.
    """
    among, *files = names.split()
    said = [r for name in files for r in lab_results(name) if r["what"] == "advice" and r["among"] == among]
    missed = [r for r in said if r["of_best"] < 1 - TOLD]
    lines = rows(
        ("job", "advise says", "advise's first", "best in the lab", "`of_best`", "`again_of_best`"),
        (
            (
                r["job"],
                r["outcome"],
                f"`{r['scheduler']}`",
                f"`{r['best']}`",
                f"{r['of_best']:.3f}",
                f"{r['again_of_best']:.3f}" if "again" in r else "–",
            )
            for r in missed
        ),
    )
    twice = [r["again_of_best"] >= 1 - TOLD for r in said if "again" in r]
    many = f"{sum(twice)}" if len(twice) == len(said) else f"{sum(twice)} of {len(twice)}"
    right = f"It is right for {len(said) - len(missed)} of {len(said)} jobs; that of the second run for {many}."
    return f"{right} The others:\n\n{lines}" if missed else f"{right}\n"


def watched(name: str) -> str:
    """Return what each scheduler of NAME.json alone read (and wrote) under each load, and what watch did, beside the best."""
    found = lab_results(name)
    alone = _by((r for r in found if r["what"] == "alone"), "scheduler", "load")
    phases = {r["load"]: r for r in found if r["what"] == "watch"}
    loads = list(phases)

    def rates(by: Mapping[str, Mapping[str, Any]]) -> list[str]:
        written = [by[load]["write_mbps"] for load in loads]
        return [brief(by[load]["read_mbps"]) + (f" ({brief(w)})" if w else "") for load, w in zip(loads, written, strict=True)]

    def of_all(by: Mapping[str, Mapping[str, Any]]) -> str:
        return brief(geometric_mean(by[load]["read_mbps"] for load in loads))

    body = [[f"`{name}`", *rates(by), of_all(by)] for name, by in alone.items()]
    (whole,) = (r for r in found if r["what"] == "whole")
    body.append(["`watch`", *rates(phases), brief(whole["read_mbps"])])
    body.append(["in force at the end", *(f"`{phases[load]['scheduler']}`" for load in loads), ""])
    body.append(["that one alone, of the best", *(f"{phases[load]['of_best']:.3f}" for load in loads), ""])
    best = f"{whole['of_best']:.3f} (`{whole['scheduler']}`)"
    body.append(["`watch`, of the best single one", *("" for _ in loads), best])
    body.append(["changes", *(str(phases[load]["switches"]) for load in loads), str(whole["switches"])])
    return rows(["MB/s", *(f"`{load}`" for load in loads), "geometric mean"], body)


def programs(name: str) -> str:
    """Return a line for each scheduler of the experiment `maitre`."""
    by = _by(lab_results(name), "scheduler", "load")
    several = ("2 readers", "4 readers", "8 readers")
    return rows(
        (
            "scheduler",
            "2 / 4 / 8 readers, of one",
            "longest read, ms",
            "find, s",
            "MB/s beside it",
            "small reads, mean ms",
            "longest, ms",
            "MB/s beside them",
        ),
        (
            (
                f"`{scheduler}`",
                " / ".join(f"{found[load]['of_one_reader']:.2f}" for load in several),
                " / ".join(f"{found[load]['max_lat_ms']:.0f}" for load in several),
                f"{(find := found['find beside a stream'])['elapsed_s']:.1f}",
                f"{find['throughput_MBps']:.0f}",
                f"{(small := found['small reads beside four streams'])['mean_ms']:.0f}",
                f"{small['max_lat_ms']:.0f}",
                f"{small['throughput_MBps']:.0f}",
            )
            for scheduler, found in by.items()
        ),
    )


def commits(name: str) -> str:
    """Return a line for each scheduler of the experiment `commits`."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for r in lab_results(name):
        by.setdefault(r["scheduler"], {})["sqlite3" if r["load"] == "sqlite3" else str(r["streams"])] = r
    streams = sorted(next(iter(by.values())).keys() - {"sqlite3"}, key=int)
    return rows(
        (
            "scheduler",
            *(f"commit beside {n} stream{'s'[: n != '1']}, mean / longest ms" for n in streams),
            "streams, MB/s",
            "sqlite3, s",
        ),
        (
            (
                f"`{scheduler}`",
                *(f"{found[n]['mean_ms']:.0f} / {found[n]['max_lat_ms']:.0f}" for n in streams),
                " / ".join(f"{found[n]['throughput_MBps']:.0f}" for n in streams),
                f"{found['sqlite3']['elapsed_s']:.1f}",
            )
            for scheduler, found in by.items()
        ),
    )


def groups(name: str) -> str:
    """Return a line for each scheduler and load of the experiment `groups`."""
    return rows(
        ("scheduler", "load", "light, MB/s", "heavy, MB/s", "of it: less", "more", "heavy by light"),
        (
            (
                f"`{r['scheduler']}`",
                r["load"],
                f"{r['light']:.2f}",
                f"{heavy:.2f}",
                *(f"{r[key]:.2f}" if key in r else "" for key in ("heavy/less", "heavy/more")),
                f"{heavy / r['light']:.2f}",
            )
            for r in lab_results(name)
            for heavy in (r.get("heavy", r.get("heavy/less", 0) + r.get("heavy/more", 0)),)
        ),
    )


def starts(name: str) -> str:
    """Return a line for each scheduler of the experiment `starts`."""
    by = _by(lab_results(name), "scheduler", "streams")
    counts = sorted(next(iter(by.values())))
    return rows(
        ("scheduler", *(f"start beside {n} streams, s" for n in counts), *(f"{n} streams, MB/s" for n in counts)),
        (
            (
                f"`{scheduler}`",
                *(f"{found[n]['start_s']:.1f}" for n in counts),
                *(f"{found[n]['throughput_MBps']:.0f}" for n in counts),
            )
            for scheduler, found in by.items()
        ),
    )


_OF_PAIRS = {
    "start_s": "start, s",
    "elapsed_s": "elapsed, s",
    "tar_s": "tar, s",
    "find_s": "find, s",
    "lookups_MBps": "lookups, MB/s",
    "mean_ms": "mean, ms",
    "max_lat_ms": "longest, ms",
    "throughput_MBps": "streams, MB/s",
    "written_MBps": "written, MB/s",
    "max_write_ms": "longest write(2), ms",
}


def pairs(name: str) -> str:
    """Return a line for each load and figure of the experiment `pairs`."""
    found = lab_results(name)
    schedulers = list(dict.fromkeys(r["scheduler"] for r in found))
    of = {(r["load"], r["scheduler"]): r for r in found}
    lines = [
        (load, title, *(brief(of[load, s][key]) for s in schedulers))
        for load in dict.fromkeys(r["load"] for r in found)
        for key, title in _OF_PAIRS.items()
        if key in of[load, schedulers[0]]
    ]
    return rows(("load", "figure", *(f"`{s}`" for s in schedulers)), lines)


def beside_others(kernel: str) -> str:
    """Return a line for each figure of all experiments with real programs on a kernel, and in what others are ahead."""
    found = beside.measured(kernel, lab_results)
    lines = "".join(f"- {line}\n" for line in beside.behind(found))
    return rows(*beside.table(found)) + "\nOthers are ahead of maitre by more than 3% in these:\n\n" + (lines or "- none\n")


def kernels(_: str) -> str:
    """Return what each kernel passes of `headwaiter lab kernels --try …`, in roots of several releases of Debian."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "lab" / "kernels").glob("*.json"))]
    scripts = list(dict.fromkeys(name for one in found for row in one["results"] for name in row["scripts"]))
    body = [
        [one["system"], row["release"], row["built"] or "no headers", *(row["scripts"].get(name, "") for name in scripts)]
        for one in found
        for row in one["results"]
    ]
    return rows(("system", "kernel", "built", *(f"`{name}`" for name in scripts)), body)


def agreement(name: str) -> str:
    """Return how far off figures are in `headwaiter lab agree --random`, by scheduler, and how often the winner is right."""
    found = _of_lab(name)["summary"]
    rate = ("median", "p75", "p90", "largest", "p90_beyond", "ranges", "untold")
    tail = ("p99_median", "p99_p90", "p99_p90_beyond", "p99_ranges", "p99_untold")
    titles = [*rate, *(f"p99: {key.removeprefix('p99_')}" for key in tail)]
    table = rows(
        ["scheduler", "comparisons", *(title.replace("_", " ") for title in titles)],
        (
            [
                f"`{r['scheduler']}`" if r["scheduler"] != "all" else "all",
                *(str(r[key]) for key in ("comparisons", *rate, *tail)),
            ]
            for r in found["deviation_percent"]
        ),
    )
    right, jobs = found["winners_right"], len(found["winners"])
    every = _of_lab(name)["results"]
    past = [row for row in every if "direct=0" not in mixed(int(row["job"].removeprefix("mixed-")), row["drive"]).text]
    untold, of_them = (sum(_tail_untold(row) for row in some) for some in (every, past))
    return (
        f"{table}\nThe simulator's winner was the kernel's, or within 5% of it, on {right} of {jobs} jobs.\n"
        f"The 99th percentile was off by more than 50%, and not told to be a range, in {untold} of {len(every)} results, and in\n"
        f"{of_them} of the {len(past)} of jobs that do not use the page cache. {_bounds(found, untold, len(every))}\n"
    )


def _bounds(found: Mapping[str, Any], p99_untold: int, results: int) -> str:
    """Return which bounds of `lab agree --random` do not hold."""
    whole, right_share = found["deviation_percent"][-1], found["winners_right"] / len(found["winners"])
    broken = broken_bounds(whole["median"], whole["p90"], whole["untold"], p99_untold / results, right_share)
    return f"The status is 1: {'; '.join(broken)}." if broken else "All bounds hold."


def _tail_untold(row: Mapping[str, Any]) -> bool:
    return abs(row["p99_off_percent"]) > P99_LARGEST_PERCENT and not row["p99_range"]


def disagreements(name: str) -> str:
    """Return what did not agree there, by seed."""
    found = _of_lab(name)["failures"]
    return rows(
        ("kernel", "drive", "job", "scheduler", "lab, MB/s", "simulator, MB/s", "its range", "off by"),
        (
            (
                f["kernel"],
                f["drive"],
                f["job"],
                f"`{f['scheduler']}`",
                f"{f['lab_MBps']:.1f}",
                f"{f['sim_MBps']:.1f}",
                f"{f['sim_low_MBps']:.1f} to {f['sim_high_MBps']:.1f}",
                f"{f['throughput_off_percent']:+.0f}%",
            )
            for f in found
        ),
    )


KINDS: dict[str, Callable[[str], str]] = {
    "readers": readers,
    "programs": programs,
    "beside": beside_others,
    "commits": commits,
    "groups": groups,
    "starts": starts,
    "pairs": pairs,
    "advice": advice,
    "places": first_places,
    "watched": watched,
    "agreement": agreement,
    "kernels": kernels,
    "disagreements": disagreements,
}
