# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the lists of faults in Python find beside what mutmut finds, on the lines that the last commits touched.

    python tests/compared.py [COMMITS [FAULTS [EACH]]]

Of the listed faults on those lines FAULTS are tried, and on the lines of each EACH of mutmut's.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import mutants
import planting
from planting import Fault
from trying import Copy, likely_first

COMMITS, FAULTS, EACH = (*map(int, sys.argv[1:]), *(20, 40, 3)[len(sys.argv) - 1 :])


def git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=planting.ROOT, check=True, capture_output=True, text=True).stdout


def main() -> None:
    begin = time.monotonic()
    revs = git("rev-list", f"--max-count={COMMITS}", "HEAD", "--", "src/headwaiter", "headwaiter").split()
    lines = planting.touched(git("diff", "--find-renames", "--unified=0", f"{revs[-1]}^"))
    listed: list[tuple[Fault, tuple[str, ...]]] = []
    everything = [m for m in mutants.mutants() if m.file.startswith(planting.PACKAGE)]
    for m in everything:
        source = (planting.ROOT / m.file).read_text(encoding="utf-8")
        fault = planting._fault(m.file, source, source.replace(m.find, m.replace))
        span = range(fault.number, fault.number + fault.before.count("\n") + 1)
        if not lines.get(m.file, set()).isdisjoint(span):
            listed.append((fault, m.tests))
    print(f"{len(revs)} commits touched {sum(map(len, lines.values()))} lines of {len(lines)} files")
    print(f"the lists plant {len(listed)} faults on them (of {len(everything)} in all)")
    tools = {file: planting.faults(file, numbers) for file, numbers in lines.items()}
    print(f"mutmut plants {sum(map(len, tools.values()))}")
    dice = random.Random(20)
    chosen = dice.sample(listed, min(FAULTS, len(listed)))
    pairs: list[tuple[Fault, list[Fault], Fault | None]] = []
    for fault, _ in chosen:
        span = range(fault.number, fault.number + fault.before.count("\n") + 1)
        near = [f for f in planting.faults(fault.file, span) if planting._compiles(f.text)]
        same = next((f for f in near if f.text == fault.text), None)
        pairs.append((fault, dice.sample(near, min(EACH, len(near))), same))
    files = {fault.file for fault, _ in chosen}
    workers = 2
    with tempfile.TemporaryDirectory() as tmp, ThreadPoolExecutor(workers) as pool:
        copies: Queue[Copy] = Queue()
        for number in range(workers):
            copies.put(copy := Copy(Path(tmp) / str(number)))
        assert copy.types_fit(), "mypy does not let the sources pass as they are"
        log = git("log", "--max-count=400", "--format=%x00", "--name-only")
        covered = copy.measure(files, likely_first(files, log), workers, time.monotonic() + 600)
        print(f"{len(covered.seconds)} tests measured after {time.monotonic() - begin:.0f} s, all: {covered.complete}")

        def one(fault: Fault) -> tuple[bool | None, str]:
            copy = copies.get()
            try:
                return copy.try_out(fault, covered, time.monotonic() + 600)
            finally:
                copies.put(copy)

        by_list = list(pool.map(one, [fault for fault, _, _ in pairs]))
        tried = {f.text: f for _, some, same in pairs for f in (*some, *([same] if same else []))}
        by_tool = dict(zip(tried, pool.map(one, tried.values()), strict=True))
    for (fault, _, _), (caught, how) in zip(pairs, by_list, strict=True):
        print(f"list: {'caught' if caught else 'SURVIVED'} {fault} ({how})")
    for text, (caught, how) in by_tool.items():
        print(f"tool: {'caught' if caught else 'SURVIVED'} {tried[text]} ({how})")
    print(f"listed, tried: {len(by_list)}, caught {sum(c is True for c, _ in by_list)}")
    print(f"mutmut's on the same lines, tried: {len(by_tool)}, caught {sum(c is True for c, _ in by_tool.values())}")
    print(
        f"by mypy alone: of the list {sum(h == 'mypy' for _, h in by_list)}, of mutmut {sum(h == 'mypy' for _, h in by_tool.values())}"
    )
    kinds: Counter[str] = Counter()
    for _, some, same in pairs:
        kinds["the very same fault"] += same is not None
        kinds["a fault on the same lines"] += bool(some)
        kinds["… of which one was caught"] += any(by_tool[f.text][0] for f in some)
        kinds["… of which one survived"] += any(not by_tool[f.text][0] for f in some)
    for what, count in kinds.items():
        print(f"{what}: for {count} of {len(pairs)} listed faults")
    print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
