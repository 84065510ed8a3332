# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How the help and the man page of each command end: two examples, and the exit statuses."""

from __future__ import annotations

Rows = tuple[tuple[str, str], ...]

SHORT = ("sweep", "tune", "fleet", "rank", "table", "select", "validate", "conform", "calibrate")
"""Commands of `headwaiter research` that also work without that word."""

EXAMPLES: dict[str, Rows] = {
    "": (
        ("headwaiter advise sda -t 300", "As root: record sda for five minutes, then say which scheduler is best for it."),
        ("headwaiter compare", "Compare the schedulers on the bundled recording; this needs neither root nor a disk."),
    ),
    "advise": (
        (
            "headwaiter advise sda -t 300 --apply",
            "As root: record five minutes, put the best scheduler in force, and save the old one.",
        ),
        (
            "headwaiter advise nas.hwr --on sda",
            "Judge a recording that was made earlier, with the schedulers that sda's kernel has.",
        ),
    ),
    "apply": (
        ("headwaiter apply sda bfq:low_latency=0", "As root: switch sda to bfq with one setting; the old settings are saved."),
        ("headwaiter apply sda hw-maitre --persist", "Our scheduler from the package headwaiter-dkms, now and at each boot."),
    ),
    "calibrate": (
        ("headwaiter calibrate", "As root: measure this machine and keep the result for `compare` and `advise`."),
        ("headwaiter calibrate -t 1 --host-file host.toml --json", "Measure in a shorter time, and keep the result elsewhere."),
    ),
    "compare": (
        ("headwaiter compare nas.hwr --report nas.html", "Compare the schedulers on a recording, and write a page with charts."),
        (
            "headwaiter compare readers-8 --sched bfq,as,none --drive wd-re-4tb",
            "Three schedulers on a bundled job file and drive.",
        ),
    ),
    "conform": (
        ("headwaiter conform check recordings", "Check all recordings of a folder."),
        ("headwaiter lab run conformance --files recordings", "Make the recordings."),
    ),
    "conform check": (
        ("headwaiter conform check recordings", "Check all recordings of a folder."),
        ("headwaiter conform check -s bfq --differences 5 recordings", "Show the first five decisions in which bfq differs."),
    ),
    "describe": (
        ("headwaiter describe example", "Describe the bundled recording."),
        ("headwaiter describe sda -t 30 --report sda.html", "As root: record sda for 30 s, describe that, and write a page."),
    ),
    "drives": (
        ("headwaiter drives", "List the drives."),
        ("headwaiter drives wd-re-4tb", "Show the parameters of one."),
    ),
    "drives export": (
        ("headwaiter drives export wd-re-4tb -o wd.bin", "Write a profile for the emulated disk of the kernel module."),
        ("headwaiter drives export wd-re-4tb --positions", "Print positioning times for a scheduler's `positions` file."),
    ),
    "drives from": (
        (
            "headwaiter drives from --sheet kind=flash read=560 write=530 read_iops=98000 write_iops=88000 --capacity 1TB",
            "Make a profile of an SSD from its data sheet.",
        ),
        (
            "headwaiter drives from --fio sweep.json --capacity 500GB -o volume.toml",
            "Make one from fio's measurements of a volume.",
        ),
    ),
    "drives import": (
        ("headwaiter drives import cheetah.parv -o cheetah.toml", "Convert DiskSim's parameters."),
        ("headwaiter drives import cheetah.diskspecs --as-disksim", "Interpret them as DiskSim does, and print the profile."),
    ),
    "drives models": (
        ("headwaiter drives models", "List all models with their parameters."),
        ("headwaiter drives models disk", "Show the parameters of the model of rotating disks."),
    ),
    "drives new": (
        ("headwaiter drives new --rpm 7200 --capacity 4TB --seek-average 8.5 -o mine.toml", "Make a disk from four numbers."),
        (
            "headwaiter drives new --kind flash --capacity 1TB --read 560 --write 530 --read-iops 98000 --write-iops 88000",
            "Make an SSD, and print its profile.",
        ),
    ),
    "drives show": (
        ("headwaiter drives show wd-re-4tb", "Show a bundled drive."),
        ("headwaiter drives show mine.toml --json", "Show the profile in a file as JSON."),
    ),
    "fleet": (
        ("headwaiter fleet recordings/ -o fleet.html", "Judge all recordings of a folder, and write a page."),
        ("headwaiter fleet 'host*/sda.hwr' --parquet fleet.parquet --json", "Judge those of a pattern, and keep a row for each."),
    ),
    "import": (
        ("headwaiter import trace.blktrace.0 -o trace.csv", "Convert a blktrace recording to CSV."),
        ("headwaiter import log.csv --columns time=ts:ms,sector=lba,size=len:bytes,op=rw", "Read a CSV file of other columns."),
    ),
    "lab": (
        ("headwaiter lab list", "List the experiments."),
        ("headwaiter lab run smoke", "Load the modules into a stock kernel and read a disk under each scheduler."),
    ),
    "lab agree": (
        ("headwaiter lab agree -s none,bfq -j random-4", "Compare simulator and kernel on one job."),
        ("headwaiter lab agree --random 10 --seed 7", "Compare them on ten random jobs."),
    ),
    "lab kernels": (
        ("headwaiter lab kernels", "List the newest kernel of each series in apt's sources."),
        ("headwaiter lab kernels 6.12 --try smoke --try abuse", "Say whether the modules pass both experiments under one."),
    ),
    "lab list": (
        ("headwaiter lab list", "List the experiments with their kernels and parameters."),
        ("headwaiter lab list | grep readers", "Find one."),
    ),
    "lab run": (
        ("headwaiter lab run smoke -k 6.12", "Try the modules in Debian's kernel 6.12."),
        ("headwaiter lab run readers --set READERS=4 --set SCHEDULERS=bfq --json", "Run one cell of an experiment, as JSON."),
    ),
    "rank": (
        ("headwaiter rank barracuda-80g -s none,bfq,as", "Rank three schedulers on a drive model."),
        (
            "headwaiter rank sda --pattern mixed --json -o ranking.json",
            "As root: measure sda; `watch --method request-size` uses the file.",
        ),
    ),
    "record": (
        ("headwaiter record sda -t 300 -o nas.hwr", "As root: record sda for five minutes."),
        ("headwaiter record all -t 60 -o machine.hwr", "Record all disks at once."),
    ),
    "regret": (
        ("headwaiter regret -d barracuda-80g -s none,mq-deadline,bfq --seeds 1", "Judge three schedulers on one drive."),
        ("headwaiter regret mine/ --report regret.html", "Judge all schedulers on your workloads, and write a page."),
    ),
    "reproduce": (
        ("headwaiter reproduce --list", "List the published experiments, their claims and how long they take."),
        ("headwaiter reproduce axboe --quick", "Run one of them at a small scale."),
    ),
    "research": (
        ("headwaiter research rank barracuda-80g", "Rank the schedulers on a drive model by request size."),
        ("headwaiter research validate --published", "Compare the models with published measurements."),
    ),
    "revert": (
        ("headwaiter revert sda", "As root: restore the settings that sda had before."),
        ("headwaiter revert md0 --json", "Restore all disks of an array, and print what was written as JSON."),
    ),
    "run": (
        ("headwaiter run readers-8 --sched as --log events.csv", "Run one scheduler, and log every decision with its reason."),
        ("headwaiter run nas.hwr --sched bfq --set low_latency=0 --plot head.png", "Draw where the head goes."),
    ),
    "schedulers": (
        ("headwaiter schedulers", "List the schedulers."),
        ("headwaiter schedulers bfq", "Show the source, the tunables and the statistics of one."),
    ),
    "select": (
        ("headwaiter select --operation write --size 1m --record 64k", "Look it up in the study's table."),
        (
            "headwaiter select --operation read --size 32m --record 64k --ranking table.json --apply sda",
            "Use your own table, and switch sda.",
        ),
    ),
    "status": (
        ("headwaiter status", "List what headwaiter has changed, and what else sets schedulers on this machine."),
        ("headwaiter status --json", "The same as JSON."),
    ),
    "sweep": (
        (
            "headwaiter sweep sweep.toml -o results/",
            "Run all cells of a sweep that are not done, on all processors.",
        ),
        ("headwaiter sweep report results/", "Say which settings are best, and what each value of a tunable does."),
    ),
    "sweep report": (
        ("headwaiter sweep report results/ --by read_p99_ms", "Compare the settings by the latency of reads."),
        (
            "headwaiter sweep report results/ --page sweep.html --plot heat.png",
            "Write a page with heat maps, and draw them.",
        ),
    ),
    "sweep run": (
        (
            "headwaiter sweep run sweep.toml -o results/ --workers 2",
            "Run it with two workers; the same command goes on with it.",
        ),
        (
            "headwaiter sweep run sweep.toml -o results/ --cluster tcp://head:8786 --json",
            "Have the workers of a Dask scheduler run it, and print JSON.",
        ),
    ),
    "table": (
        ("headwaiter table barracuda-80g -s none,bfq", "Measure two schedulers on a drive model."),
        ("headwaiter table sda --folder /srv/data --json -o table.json", "As root: measure files in a folder on sda."),
    ),
    "top": (
        ("headwaiter top sda", "As root: show programs, their rates and who waits for whom; q ends it."),
        ("headwaiter top sda --counters --once", "Without root: one interval, from the disk's counters."),
    ),
    "tune": (
        ("headwaiter tune nas.hwr --sched bfq", "Find the tunables of bfq for a recording."),
        (
            "headwaiter tune readers-4 -s mq-deadline -d wd-re-4tb --by p99 --time 60s",
            "Search for a minute for those with the shortest tail, for a bundled job file and drive.",
        ),
    ),
    "validate": (
        ("headwaiter validate wd-re-4tb measured.csv --plot times.png", "Replay measured service times on a model."),
        ("headwaiter validate --published", "Compare all models with published measurements."),
    ),
    "was": (
        ("headwaiter was fit -o was.toml", "Fit `was` to the bundled recording."),
        ("headwaiter run example --sched was --set classes=was.toml", "Run it with the result."),
    ),
    "was calibrate": (
        ("headwaiter was calibrate -o classes.toml", "Find classes for the bundled recording."),
        ("headwaiter was calibrate nas.hwr --plot classes.png", "Find them for a recording of yours, and draw them."),
    ),
    "was designate": (
        (
            "headwaiter was designate --config classes.toml -a matrix.json --bound-ms 4 -o was.toml",
            "Choose the interval of each class.",
        ),
        ("headwaiter was designate --config classes.toml -a matrix.json --heuristic", "Choose class by class instead."),
    ),
    "was evaluate": (
        ("headwaiter was evaluate nas.hwr", "Fit to the first half, judge by the second."),
        ("headwaiter was evaluate nas.hwr --online", "Judge was-online, which learns while it runs."),
    ),
    "was fit": (
        ("headwaiter was fit -o was.toml", "Fit to the bundled recording."),
        ("headwaiter was fit nas.hwr backup.hwr --json", "Fit to two recordings, and print JSON."),
    ),
    "was load": (
        ("headwaiter was load was.toml sda", "As root: load classes and intervals into hw-was."),
        (
            "headwaiter was load was.toml sda && headwaiter was observe --config was.toml --from-device sda",
            "Then read its counters.",
        ),
    ),
    "was observe": (
        (
            "headwaiter was observe --config classes.toml -o matrix.json",
            "Count the waits of each class in the bundled recording.",
        ),
        ("headwaiter was observe --config was.toml --from-device sda", "As root: read the counters of hw-was on sda."),
    ),
    "was schedule": (
        (
            "headwaiter was schedule sda 07:30=day.toml 19:00=night.toml",
            "As root: load into hw-was the configuration that is for this time of day.",
        ),
        (
            "headwaiter was schedule sda 07:30=day.toml 19:00=night.toml --persist",
            "The same, and again at boot and at each of these times.",
        ),
    ),
    "watch": (
        ("headwaiter watch sda", "As root: report every minute which scheduler sda should have."),
        (
            "headwaiter watch sda sdb --apply --on-exit restore --metrics-http 127.0.0.1:9101",
            "Change schedulers, and serve metrics.",
        ),
    ),
}
"""By the words of a command: command lines, and what each does."""

_ALWAYS: Rows = (
    ("2", "Wrong input, or something failed: one line on stderr says what."),
    ("141", "The reader of standard output went away."),
    ("128+N", "Signal N ended the command."),
)
_DONE = "The command did what it was asked to."
_FAILED = {
    "conform check": "A scheduler differs from the kernel too often.",
    "lab kernels": "The modules cannot be built for a kernel, or a script fails there.",
    "fleet": "Recordings could not be judged. Their rows say why; all others are there.",
    "lab agree": "Simulator and kernel do not agree.",
    "reproduce": "An essential claim does not hold, or two runs decide a claim differently.",
    "sweep": "Cells failed. Their rows say why; all others are there.",
    "sweep run": "Cells failed. Their rows say why; all others are there.",
}
_KEPT = {
    "record": "The recording is complete, or Ctrl-C or SIGTERM ended it and it is kept.",
    "top": "The intervals are shown, or q, Ctrl-C or SIGTERM ended the command.",
    "watch": "The rounds are over, or Ctrl-C or SIGTERM ended the watch.",
}


def words_of(path: str) -> str:
    """Return the words under which a command stands in the tables: those behind `headwaiter`, and behind `research`."""
    words = path.split()[1:]
    return " ".join(words[1:] if words[:1] == ["research"] and words[1:] else words)


def examples_of(path: str) -> Rows:
    """Return the examples of a command."""
    return EXAMPLES[words_of(path)]


def statuses_of(path: str) -> Rows:
    """Return the exit statuses of a command, and what each means."""
    words = words_of(path)
    failed: Rows = (("1", _FAILED[words]),) if words in _FAILED else ()
    return (("0", _KEPT.get(words, _DONE)), *failed, *_ALWAYS)
