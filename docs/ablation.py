# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What each mechanism of a policy is worth: the regret without it, measured into docs/ablation.json (`make regret-docs`).

    python docs/ablation.py [SEEDS]

docs/ablation.toml lists the mechanisms; each has the changes of the sources that take it out. The policy is compiled anew for
each and judged against all schedulers as they are.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwaiter.drives.choose import open_drive
from headwaiter.regret.measurements import DRIVES, LoadOnDrive, measure
from headwaiter.regret.scores import CLOSE
from headwaiter.regret.scores import regrets as regrets_of
from headwaiter.regret.workloads import BUNDLED, read_contests
from headwaiter.study.variants import default_set, parse_variants

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "ablation.toml"
MEASUREMENTS = ROOT / "docs" / "ablation.json"
SOURCES = ("core", "sim", "tests/c", "bench", "examples", "meson.build", "meson.options")
LARGE = 0.03
"""A cell's regret has grown if it is more by this."""


@dataclass(frozen=True)
class Mechanism:
    """A part of a policy, and how to take it out: texts that occur once in a file, and what stands there instead."""

    name: str
    edits: Sequence[Mapping[str, str]]

    def faults(self) -> list[str]:
        """What is wrong with the entry, as the sources are now."""
        out = []
        for edit in self.edits:
            count = (ROOT / edit["file"]).read_text(encoding="utf-8").count(edit["find"])
            if count != 1:
                out.append(f"{LIST.name}: {self.name}: {edit['file']}: '{edit['find']}' occurs {count} times")
        return out


def mechanisms() -> tuple[str, list[Mechanism]]:
    """The policy, and its mechanisms."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return found["policy"], [Mechanism(entry["name"], entry["edit"]) for entry in found["mechanism"]]


def values(policies: Sequence[str], seeds: int) -> dict[str, Any]:
    """Return the values of what is contested in each cell, shape (policies, seeds, figures)."""
    drives = [open_drive(name) for name in DRIVES]
    cells, _ = measure(read_contests([BUNDLED]), drives, parse_variants(",".join(policies)), seeds=seeds)
    return {cell.name: cell.values for cell in cells}


class Workshop:
    """A copy of the sources, compiled anew for each form of the policy."""

    def __init__(self, top: Path, policy: str, seeds: int) -> None:
        self.top, self.build, self.policy, self.seeds = top, top / "build", policy, seeds
        for name in SOURCES:
            source, target = ROOT / name, top / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy2(source, target)
        self.env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.whole = b""
        self.run("meson", "setup", self.build, "-Dwerror=false")

    def run(self, *command: object) -> None:
        """A program that must succeed."""
        words = [str(word) for word in command]
        subprocess.run(words, cwd=self.top, env=self.env, check=True, stdout=subprocess.DEVNULL)

    def without(self, mechanism: Mechanism | None) -> dict[str, Any]:
        """The values of the policy without a mechanism."""
        edits = mechanism.edits if mechanism else ()
        for edit in edits:
            path = self.top / edit["file"]
            path.write_text(path.read_text(encoding="utf-8").replace(edit["find"], edit["replace"]), encoding="utf-8")
        self.run("meson", "compile", "-C", self.build, "headwaiter")
        library = self.build / "sim" / "libheadwaiter.so"
        digest = hashlib.sha256(library.read_bytes()).digest()
        assert mechanism is None or digest != self.whole, f"{mechanism.name}: the library is the same without it"
        self.whole = self.whole or digest
        self.env["HEADWAITER_LIBRARY"] = str(library)
        out = self.top / "values.npz"
        self.run(sys.executable, __file__, self.seeds, self.policy, out)
        for edit in edits:
            shutil.copy2(ROOT / edit["file"], self.top / edit["file"])
            (self.top / edit["file"]).touch()
        with np.load(out) as found:
            return dict(found)


def row(name: str, own: Mapping[str, Any], reference: Mapping[str, Any], whole: Mapping[str, float]) -> dict[str, Any]:
    """Regrets of one form of the policy against the reference, and how many cells are worse than with all of it (`whole`)."""
    found = medians(own, reference)
    median = np.array(list(found.values()))
    worst = max(found, key=lambda cell: found[cell])
    return {
        "without": name,
        "mean": round(100 * float(median.mean()), 2),
        "worst": round(100 * float(median.max())),
        "close": int((median <= CLOSE).sum()),
        "worst_in": worst,
        "grown": sum(found[cell] > before + LARGE for cell, before in whole.items()),
        "shrunk": sum(found[cell] < before - LARGE for cell, before in whole.items()),
        "cells": len(found),
    }


def medians(own: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, float]:
    """By cell the regret, median over seeds."""
    contests = {c.name: c for c in read_contests([BUNDLED])}
    out = {}
    for name, mine in own.items():
        workload, _, drive = name.partition(" on ")
        both = np.concatenate([reference[name], mine])
        cell = LoadOnDrive(contests[workload], drive, both)
        out[name] = float(np.median(regrets_of(cell, range(len(both) - 1))[-1]))
    return out


def main() -> None:
    """Measure all mechanisms."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    if len(sys.argv) > 3:  # in a process of its own, with another library
        np.savez(sys.argv[3], **values([sys.argv[2]], seeds))
        return
    policy, listed = mechanisms()
    if faults := [fault for m in listed for fault in m.faults()]:
        sys.exit("\n".join(faults))
    reference = values([name for name in default_set() if name != policy], seeds)
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(Path(folder), policy, seeds)
        own = shop.without(None)
        whole = medians(own, reference)
        rows = [row("nothing", own, reference, whole)]
        for mechanism in listed:
            rows.append(row(mechanism.name, shop.without(mechanism), reference, whole))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    MEASUREMENTS.write_text(json.dumps({"policy": policy, "seeds": seeds, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def table() -> tuple[list[str], list[list[str]]]:
    """Head and rows of what was measured."""
    rows = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))["rows"]
    head = [
        "without",
        "mean regret, %",
        "worst, %",
        f"within 3%, of {rows[0]['cells']}",
        "cells worse by 3%",
        "better by 3%",
        "worst in",
    ]
    keys = ("without", "mean", "worst", "close", "grown", "shrunk", "worst_in")
    return head, [[str(r[key]) for key in keys] for r in rows]


if __name__ == "__main__":
    main()
