# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""More of fio's language: shares of sizes and places, verification, priorities of single I/Os, and the files that fio ships."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from fioload import load, places, run

from headwaiter.base.errors import Problem
from headwaiter.engine.constants import SECTOR_BYTES
from headwaiter.engine.sim import ConstantDrive, Options
from headwaiter.fio import load_jobs
from headwaiter.study.cost import estimated_ios

EXAMPLES = Path("/usr/share/doc/fio/examples")
MIB = 1 << 20


def refused(tmp_path: Path, options: str) -> str:
    with pytest.raises(Problem) as e:
        load(tmp_path, f"[a]\n{options}\n")
    return str(e.value)


def test_shares_of_sizes(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nrw=randread\nnorandommap\nsize=1g\nbssplit=4k/70:64k/30\nnumber_ios=4000\n", 0.01)
    small = sum(io.length == 4 for io in ios)
    assert small + sum(io.length == 64 for io in ios) == 4000
    assert 0.67 < small / 4000 < 0.73


def test_what_is_left_is_divided(tmp_path: Path) -> None:
    job = load(tmp_path, "[a]\ndirect=1\nsize=1g\nbssplit=4k/:8k/40:16k/\n").jobs[0].fields
    assert job["splits"] == [((4096, 30), (16384, 30), (8192, 40))] * 2
    assert (job["min_bytes"], job["max_bytes"]) == ([4096] * 2, [16384] * 2)


def test_shares_and_ranges_override_a_size_wherever_they_stand(tmp_path: Path) -> None:
    """As in fio 3.33, also where the size is the job's own."""
    for text in ("[global]\nbssplit=4k/50:64k/50\n[a]\nbs=8k\n", "[a]\nbs=8k\nbssplit=4k/50:64k/50\n"):
        job = load(tmp_path, f"{text}direct=1\nsize=1g\n").jobs[0].fields
        assert job["splits"] == [((4096, 50), (65536, 50))] * 2 and job["max_bytes"] == [65536, 65536]
    for text in ("[global]\nbsrange=4k-64k\n[a]\nbs=8k\n", "[a]\nbs=8k\nbsrange=4k-64k\n"):
        job = load(tmp_path, f"{text}direct=1\nsize=1g\n").jobs[0].fields
        assert (job["min_bytes"], job["max_bytes"]) == ([4096] * 2, [65536] * 2)


def test_zones_of_places(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nrw=randread\nnorandommap\nsize=100m\nrandom_distribution=zoned:80/10:20/\nnumber_ios=4000\n"
    inside = sum(io.at < 10 * 1024 for io in run(tmp_path, text, 0.01))
    assert 0.77 < inside / 4000 < 0.83
    text = text.replace("zoned:80/10:20/", "zoned_abs:60/1m:40/2m")
    ios = run(tmp_path, text, 0.01)
    assert max(io.at for io in ios) < 3 * 1024 and 0.57 < sum(io.at < 1024 for io in ios) / 4000 < 0.63


def test_zones_without_a_length_share_what_is_left(tmp_path: Path) -> None:
    """Two zones share 80%: each has 40, with as many reads."""
    distribution = "random_distribution=zoned:50/20:25/:25/"
    ios = run(tmp_path, f"[a]\ndirect=1\nrw=randread\nnorandommap\nsize=100m\n{distribution}\nnumber_ios=4000\n", 0.01)
    shares = [sum(low <= io.at < high for io in ios) / 4000 for low, high in ((0, 20480), (20480, 61440), (61440, 102400))]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.03)


def test_a_pass_covers_every_block_once_in_zones_too(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nrw=randread\nsize=1m\nrandom_distribution=zoned:60/50:40/50\n", 0.01)
    assert len(ios) == 256 == len({io.at for io in ios})


@pytest.mark.parametrize("rw", ["write", "randwrite", "write:8k"])
def test_verify_reads_again_in_the_order_of_the_writes(tmp_path: Path, rw: str) -> None:
    ios = run(tmp_path, f"[a]\ndirect=1\nrw={rw}\nsize=256k\nverify=crc32c\n[b]\nstonewall\ndirect=1\nsize=8k\n", 1)
    writes, reads = ([io for io in ios if io.task.startswith("a") and io.op == op] for op in "WR")
    assert len(writes) >= 20 and [io.at for io in reads] == [io.at for io in writes]
    assert {io.task for io in reads} == {"a.verify"}
    assert min(io.issue for io in reads) >= max(io.done for io in writes)
    assert min(io.issue for io in ios if io.task == "b") >= max(io.done for io in reads)


def test_verify_reads_blocks_of_the_size_of_writes(tmp_path: Path) -> None:
    ios = run(tmp_path, "[a]\ndirect=1\nrw=write\nbs=4k,16k\nsize=64k\nverify=md5\n", 1)
    assert [(io.op, io.length) for io in ios] == [("W", 16)] * 4 + [("R", 16)] * 4


def test_who_waits_for_a_job_waits_for_its_verification(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nrw=write\nsize=16k\nverify=md5\nnumjobs=2\n[b]\nwait_for=a\ndirect=1\nsize=4k\n"
    ios = run(tmp_path, text, 1)
    assert max(io.done for io in ios if io.task.startswith("a")) <= min(io.issue for io in ios if io.task == "b")
    assert {io.task for io in ios} == {"a.0", "a.1", "a.0.verify", "a.1.verify", "b"}


def test_nothing_is_read_again_without_writes(tmp_path: Path) -> None:
    for options in ("rw=read\nverify=crc32c", "rw=write\nverify=crc32c\ndo_verify=0", "rw=write\nverify=0"):
        assert len(run(tmp_path, f"[a]\ndirect=1\nsize=16k\n{options}\n", 1)) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("rw=randrw\ndirect=1", "in a job that also reads"),
        ("rw=write", "with direct=0"),
        ("rw=write\ndirect=1\nbsrange=4k-8k", "with sizes that vary"),
        ("rw=write\ndirect=1\nruntime=3", "with runtime"),
        ("rw=write\ndirect=1\nloops=2", "with loops"),
        ("rw=randwrite\ndirect=1\nnorandommap", "with norandommap"),
    ],
)
def test_verify_that_would_come_in_another_order(tmp_path: Path, options: str, said: str) -> None:
    assert f"option 'verify' {said}" in refused(tmp_path, f"size=1m\n{options}\nverify=crc32c")


def test_ramp_time_is_added(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nsize=1g\nrw=randread\ntime_based\nruntime=1\nramp_time=500ms\n"
    assert 1490 < max(io.issue for io in run(tmp_path, text, 5)) < 1510
    assert "ramp_time: unlike in fio" in load(tmp_path, text).notes[0]


def test_priorities_of_single_ios(tmp_path: Path) -> None:
    """Under mq-deadline reads of the real-time class go before those of the idle class: they take less."""
    text = """[a]
direct=1
rw=randread
size=1g
ioengine=libaio
iodepth=16
prioclass=3
cmdprio_percentage=20
number_ios=2000
"""

    def quick(text: str) -> float:
        ios = run(tmp_path, text, 1, sched="mq-deadline")
        return sum(io.done - io.issue < 4 for io in ios) / len(ios)

    assert quick(text) > 1.5 * quick(text.replace("cmdprio_percentage=20\n", ""))
    assert "is for direct I/O by libaio" in refused(tmp_path, "size=1m\ndirect=1\ncmdprio_percentage=5")


@pytest.mark.parametrize("sizes", ["4k/0:64k/50", "64k/50/1/3"])
def test_priorities_by_size(tmp_path: Path, sizes: str) -> None:
    """Under mq-deadline half of the large reads, and none of the small ones, go before those of the idle class."""
    text = f"""[a]
direct=1
rw=randread
size=1g
bssplit=4k/50:64k/50
norandommap
ioengine=libaio
iodepth=16
prioclass=3
cmdprio_bssplit={sizes}
number_ios=2000
"""
    ios = run(tmp_path, text, 1, sched="mq-deadline")
    mean = {n: sum(io.done - io.issue for io in ios if io.length == n) / sum(io.length == n for io in ios) for n in (4, 64)}
    assert mean[64] < 0.75 * mean[4]
    fields = load(tmp_path, text).jobs[0].fields
    assert fields["prio_splits"][0] == fields["prio_splits"][1]
    assert fields["prio_splits"][0][-1] == (65536, 50, 1 << 13 | (3 if "/1/3" in sizes else 0))


def test_priorities_of_one_size_share_a_draw(tmp_path: Path) -> None:
    """Two halves of a's reads are idle, and none is left that is real-time as a is: b goes before all of them."""
    text = """[global]
direct=1
rw=randread
size=1g
ioengine=libaio
number_ios=500
[a]
prioclass=1
iodepth=8
cmdprio_bssplit=4k/50/3/0:4k/50/3/1
[b]
iodepth=4
"""
    ios = run(tmp_path, text, 1, sched="mq-deadline")
    last = max(io.done for io in ios if io.task == "b")
    before = sum(io.task == "a" and io.done < last for io in ios)
    assert before < 50


def test_priorities_of_several_sizes_are_of_each(tmp_path: Path) -> None:
    """60% of the small ones, and 70% of the large ones."""
    text = "[a]\ndirect=1\nrw=randread\nsize=1g\nbssplit=4k/50:64k/50\nioengine=libaio\ncmdprio_bssplit=4k/60/1/0:64k/70/2/1\n"
    splits = load(tmp_path, text).jobs[0].fields["prio_splits"][0]
    assert splits == [(4096, 60, 1 << 13), (65536, 70, 2 << 13 | 1)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("4k", "expected SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL"),
        ("4k/50/1", "expected SIZE/PERCENT or SIZE/PERCENT/CLASS/LEVEL"),
        ("4k/101", "101"),
        ("4k/10/5/0", "5"),
        ("4k/10/1/8", "8"),
        ("4k/60/1/0:4k/50/2/0", "the percentages of 4096 bytes add up to more than 100"),
        ("4k/60\ncmdprio_percentage=3", "and cmdprio_percentage are mutually exclusive"),
        ("4k/60\nioengine=psync", "is for direct I/O by libaio and io_uring"),
    ],
)
def test_wrong_priorities_by_size(tmp_path: Path, options: str, said: str) -> None:
    assert said in refused(tmp_path, f"size=1m\ndirect=1\nioengine=libaio\ncmdprio_bssplit={options}")


def test_strided_zones(tmp_path: Path) -> None:
    text = "[a]\ndirect=1\nrw=read\nsize=64k\nbs=8k\nzonemode=strided\nzonesize=16k\nzoneskip=16k\n"
    assert places(run(tmp_path, text, 1)) == "R0+8 R8+8 R32+8 R40+8 R0+8 R8+8 R32+8 R40+8"
    wrong = {"zonesize=3k": "must be in blocks", "zonerange=32k": "only the same as zonesize", "rw=randread": "sequential"}
    for more, said in wrong.items():
        assert said in refused(tmp_path, f"{text.partition(chr(10))[2]}{more}\n")


def test_names_of_files(tmp_path: Path) -> None:
    text = "[global]\ndirect=1\nsize=4k\n[a]\nfilename_format=data.$filenum\n[b]\nfilename_format=data.$filenum\n"
    assert len({io.at for io in run(tmp_path, text, 1)}) == 1
    assert "'$client" in refused(tmp_path, "size=1m\nfilename_format=x.$clientuid")


def test_other_engines_are_refused_before_their_options(tmp_path: Path) -> None:
    said = refused(tmp_path, "http_host=${NOWHERE_TO_BE_FOUND}\nioengine=http")
    assert said.endswith("engine 'http' is not supported: it uses storage behind a network")


def test_cost_goes_by_the_shares(tmp_path: Path) -> None:
    text = "[a]\nrw=randread\nsize=1g\nbssplit=4k/75:12k/25\n[v]\nrw=write\nsize=8m\nverify=md5\n"
    jobs = load(tmp_path, "[global]\ndirect=1\n" + text)
    found = estimated_ios(jobs, ConstantDrive(1_000_000), Options())
    assert found == pytest.approx((1 << 30) / 6144 + 2 * (8 * MIB / 4096))


def examples() -> list[Path]:
    return sorted(p for p in EXAMPLES.rglob("*") if ".fio" in p.suffixes and p.is_file())


@pytest.mark.needs("fio-examples")
def test_each_file_that_fio_ships_runs_or_is_refused_with_a_reason() -> None:
    """The drive has 8 TB. What is refused is so for a reason, not because a word is unknown."""
    runs, told = set(), {}
    for path in examples():
        data = path.read_bytes()
        try:
            load_jobs(path, (8 << 40) // SECTOR_BYTES, gzip.decompress(data) if path.suffix == ".gz" else data)
            runs.add(path.name.removesuffix(".gz"))
        except Problem as e:
            told[path.name] = str(e)
    assert len(runs) + len(told) > 80
    for said in told.values():
        assert ": " in said.partition("option '")[2] or "environment variable" in said, said
        assert "unknown option" not in said, said
    assert runs >= {
        "1mbs_clients.fio", "basic-verify.fio", "cmdprio-percentage.fio", "disk-zone-profile.fio",
        "iometer-file-access-server.fio", "jesd219.fio", "rand-zones.fio", "waitfor.fio",
    }  # fmt: skip
