# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Against fio itself, where it is installed: the same files, the same options, the same offsets in the same order."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from conftest import ROOT, missing
from fioload import places, run

from headwaiter.drives import drives
from headwaiter.fio import load_jobs
from headwaiter.fio.options import known

pytestmark = [pytest.mark.thorough, pytest.mark.needs("fio")]  # fio takes half a second to start
WORKLOADS = sorted((ROOT / "workloads").glob("*.fio"))


@pytest.fixture(scope="module")
def fio() -> str:
    path = shutil.which("fio")
    assert path
    return path


def output(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cwd, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_option_of_fio_is_in_the_table(fio: str) -> None:
    listed = {line.split(":")[0].split()[0] for line in output(fio, "--cmdhelp=all").splitlines() if ":" in line}
    assert len(listed) > 200
    assert listed <= set(known())


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
def test_bundled_files_are_fios(fio: str, path: Path) -> None:
    output(fio, "--parse-only", path)
    for_flash = path.stem in ("terminal-start", "xterm-start")  # what is published of them is of SSDs
    smallest = min(drive.sectors for drive in drives().values() if drive.model.name == "ssd") if for_flash else 40_000_000
    assert load_jobs(path, smallest).jobs, "fits the smallest drive"


SEQUENCES = [
    "size=10k",
    "size=16k\nloops=2",
    "size=16k\nio_size=40k",
    "size=16k\nio_size=40k\nloops=2",
    "size=16k\nio_size=8k\nloops=2",
    "size=16k\nio_size=18k",
    "size=16k\nio_size=22k",
    "size=32k\nnumber_ios=3",
    "size=32k\nnumber_ios=3\nloops=2",
    "size=32k\nrw=read:4k",
    "size=64k\nrw=write:12k",
    "size=32k\nrw=read:-8k",
    "size=32k\noffset=32k\nrw=read:-8k",
    "size=32k\noffset=32k\nrw=read:4k",
    "size=16k\nfilesize=32k\noffset=8k",
    "size=40k\nfilesize=32k\noffset=8k",
    "size=16k\nfilesize=64k\nloops=2",
    "size=50%\nfilesize=16m\nbs=1m",
    "size=16m\nfilesize=16m\nbs=1m\noffset=50%",
    "size=10m\nfilesize=10m\nbs=1m\noffset=25%\noffset_align=3m",
    "size=4kib\nbs=500",
    "size=8ki\nbs=1ki",
    "kb_base=1000\nsize=8k\nbs=1k",
    "size=0x4000\nbs=4096",
    "bs=,8k\nsize=16k",
    "size=64k\nbsrange=8k-8k\nbs=4k",
    "size=64k\nbssplit=8k/100\nbs=4k",
    "size=64k\nrate=0\nrate_iops=0\nloops=0",
    "size=16k\nthinktime=1\nthinktime_blocks=0",
    "size=16k\ntime_based",
    "size=16k\ntime_based=2\nruntime=0",
    "size=16k\nstonewall=2\nflow_watermark=1",
    "size=1m\nbs=64k\nrwmixread=30",
    "size=1m\nzonemode=strided\nzonesize=64k\nzoneskip=128k\nbs=16k",
    "size=1000k\nzonemode=strided\nzonesize=64k\nzoneskip=0\nbs=16k",
    "size=1m\nzonemode=strided\nzonesize=64k\nzonerange=64k\nzoneskip=32k\nbs=4k\nrw=write",
]


def issued_by_fio(fio: str, tmp_path: Path, options: str, engine: str) -> str:
    job = tmp_path / "real.fio"
    job.write_text(f"[a]\nioengine={engine}\nwrite_iolog={tmp_path}/io.log\n{options}\n")
    output(fio, job, cwd=tmp_path)
    rows = re.findall(r"^\d+ \S+ (read|write) (\d+) (\d+)$", (tmp_path / "io.log").read_text(), re.M)
    return " ".join(f"{op[0].upper()}{int(at) / 1024:.12g}+{int(n) / 1024:g}" for op, at, n in rows)


@pytest.mark.parametrize("options", SEQUENCES)
def test_sequential_places(fio: str, tmp_path: Path, options: str) -> None:
    expected = issued_by_fio(fio, tmp_path, options, "null")
    if "bs=500" in options or "bs=1k\n" in options + "\n":
        # Not whole sectors: compare what the page cache is asked for.
        ios = run(tmp_path, f"[a]\nfadvise_hint=random\n{options}\n")
        pages = {int(float(p[1:].split("+")[0])) // 4 * 4 for p in expected.split()}
        assert {int(io.at) for io in ios} == pages
    else:
        assert places(run(tmp_path, f"[a]\ndirect=1\n{options}\n")) == expected


@pytest.mark.parametrize(
    "options",
    [
        "size=16k\nfilesize=64k\nloops=2",
        "size=16k\nfilesize=64k\nio_size=40k",
        "size=20k\nloops=2\niodepth=4",
        "size=64k\niodepth=4\nio_size=80k",
    ],
)
def test_places_with_a_queue(fio: str, tmp_path: Path, options: str) -> None:
    (tmp_path / "file").write_bytes(bytes(65536))
    options = f"direct=1\nfilename={tmp_path}/file\n{options}"
    try:
        expected = issued_by_fio(fio, tmp_path, options, "libaio")
    except AssertionError as e:
        if "O_DIRECT" in str(e) or "Invalid argument" in str(e):
            missing(f"a file system with O_DIRECT at {tmp_path}")
        raise
    assert places(run(tmp_path, f"[a]\nioengine=libaio\n{options}\n")) == expected


@pytest.mark.parametrize(
    "options",
    [
        "rw=randread\nsize=1m",
        "rw=randread\nsize=1m\noffset=64k",
        "rw=randwrite\nsize=256k\nfilesize=1m",
        "rw=randread\nsize=100k\nbs=8k",
    ],
)
def test_random_passes_touch_as_many_blocks(fio: str, tmp_path: Path, options: str) -> None:
    expected = issued_by_fio(fio, tmp_path, options, "null").split()
    own = places(run(tmp_path, f"[a]\ndirect=1\n{options}\n")).split()
    assert len(own) == len(expected) == len(set(own))
    if "filesize" not in options:
        assert set(own) == set(expected)


RANDOM = [
    "rw=randread\nsize=1m", "rw=randread\nsize=64m\nnorandommap\nnumber_ios=300", "rw=randread\nsize=1m\nloops=2",
    "rw=randread\nsize=1m\nloops=2\nrandrepeat=0\nrandseed=7", "rw=randread\nsize=8m\nrandseed=5\nnumber_ios=300",
    "rw=randrw\nsize=8m\nrwmixread=70\nnumber_ios=300", "rw=rw\nsize=2m\nrwmixread=20",
    "rw=randrw\nsize=8m\nbsrange=4k-64k\nnorandommap\nnumber_ios=100",
    "rw=randread\nsize=8m\nbsrange=12k-96k\nnorandommap\nnumber_ios=100",
    "rw=randread\nsize=64m\npercentage_random=50\nnumber_ios=200", "rw=randread:3\nsize=64m\nnumber_ios=200",
    "rw=randrw\nsize=64m\npercentage_random=30,80\nnumber_ios=200\nrandrepeat=0\nrandseed=99",
    "rw=randread\nsize=64m\nbssplit=4k/60:64k/30:16k/\nnorandommap\nnumber_ios=200",
    "rw=randrw\nsize=64m\nbssplit=4k/50:12k/50,512/10:8k/90\nnorandommap\nnumber_ios=200",
    "rw=read\nsize=1m\nbssplit=4k/:8k/:32k/20",
    "rw=randread\nsize=64m\nnorandommap\nnumber_ios=300\nrandom_distribution=zoned:50/5:30/15:20/",
    "rw=randrw\nsize=64m\nnorandommap\nnumber_ios=300\nrandom_distribution=zoned:90/10:10/90",
    "rw=randwrite\nsize=64m\nnorandommap\nnumber_ios=300\nrandom_distribution=zoned_abs:70/4m:20/10m:10/50m",
    "rw=randread\nsize=64k\nnorandommap\nnumber_ios=30\nrandom_distribution=zoned:0/20:100/1:0/79",
    "rw=randread\nsize=64k\nnorandommap\nnumber_ios=30\nrandom_distribution=zoned_abs:0/16k:60/1k:40/32k",
    "rw=randread\nsize=64k\nnorandommap=2\nsoftrandommap=1\nnumber_ios=30",
    *(
        f"rw=randread\nsize=64m\nnumber_ios=300\nrandom_distribution={skew}"
        for skew in (
            "zipf", "zipf:1.2", "zipf:0.5", "zipf:0", "zipf:-1", "zipf:3:0.5", "zipf:0.99:0", "pareto", "pareto:0.9",
            "pareto:0.3:1", "normal", "normal:10", "normal:99", "normal:20:0.3", "normal:5:0.9",
        )
    ),
    "rw=randrw\nsize=64m\nbs=8k,4k\nnumber_ios=300\nrandom_distribution=zipf:1.1",
    "rw=randread\nsize=1m\nloops=2\nrandom_distribution=zipf:1.1",
    "rw=randread\nsize=1m\nloops=2\nrandrepeat=0\nrandseed=7\nrandom_distribution=pareto:0.4",
    "rw=randread:3\nsize=64m\npercentage_random=50\nnumber_ios=200\nrandom_distribution=normal:30",
    "rw=randread\nbs=12k\nsize=100k\nnumber_ios=50\nio_size=10m\nrandom_distribution=zipf:0.8",
    "rw=randwrite\nba=64k\nsize=64m\nnumber_ios=100\nrandom_distribution=zipf:1.3",
    "rw=randread\nbsrange=4k-64k\nsize=64m\nnumber_ios=100\nrandom_distribution=zipf:1.3",
    "rw=randread\nsize=400g\nnumber_ios=100\nrandom_distribution=zipf:0.9",
    *(
        f"rw=randread\nfilename={name}\nsize=30m\nnumber_ios=20\nrandom_distribution=zipf:0.9"
        for name in ("twelve_bytes", "thirteen_byte", "a_name_longer_than_twelve", "é")
    ),
]  # fmt: skip


@pytest.mark.parametrize("options", RANDOM)
def test_random_places_are_fios_own(fio: str, tmp_path: Path, options: str) -> None:
    expected = issued_by_fio(fio, tmp_path, options, "null")
    assert places(run(tmp_path, f"[a]\ndirect=1\n{options}\n")) == expected


def test_each_process_draws_its_own_places(fio: str, tmp_path: Path) -> None:
    job = "rw=randread\nsize=64m\nnorandommap\nnumber_ios=50\n"
    text = f"[global]\nfilename=/dev/one\ndirect=1\nstonewall\n[first]\n{job}[second]\n{job}numjobs=2\n"
    ours = run(tmp_path, text, sectors=1 << 20)
    (tmp_path / "real.fio").write_text(
        f"[global]\nioengine=null\nstonewall\n[first]\n{job}write_iolog={tmp_path}/0.log\n"
        f"[second]\n{job}write_iolog={tmp_path}/1.log\n[third]\n{job}write_iolog={tmp_path}/2.log\n"
    )
    output(fio, tmp_path / "real.fio", cwd=tmp_path)
    for number, name in enumerate(("first", "second.0", "second.1")):
        log = (tmp_path / f"{number}.log").read_text()
        assert [int(at) for at in re.findall(r" read (\d+) \d+$", log, re.M)] == [
            round(io.at * 1024) for io in ours if io.task == name
        ]


@pytest.mark.parametrize(
    "text",
    [
        "[a]\nsiez=1m\n",
        "[a]\nbs\n",
        "[a]\ndirect=yes\n",
        "[a]\nrw=foo\n",
        "size=1m\n[a]\n",
        "[a]\ndirect\n",
        "[a]\nrwmixread=101\n",
        "[a]\nprio=9\n",
        "[a]\niodepth=0\n",
    ],
)
def test_fio_refuses_it_too(fio: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.fio").write_text(text)
    done = subprocess.run([fio, "--parse-only", tmp_path / "bad.fio"], check=False, capture_output=True, timeout=60)
    assert done.returncode != 0
