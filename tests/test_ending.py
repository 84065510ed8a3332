# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Signals end a command at once, wherever it is, and it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headwaiter.base import ending

thorough = pytest.mark.thorough  # commands must be at work for a while before they are told to end
# Work for minutes, of which a second is over when the signal comes.
ENDLESS = "[global]\ndirect=1\nrw=randread\nbs=4k\nsize=1g\nio_size=500g\nnumjobs=64\n[a]\n"
PROMPT_S = 30  # on a machine that is busy with other things; the work takes longer
# A main thread that no handler of Python's can interrupt: in compiled code, as in a long sort.
STUCK = """
import ctypes, sys, threading
from pathlib import Path
from headwaiter.base.ending import end_tidily_on_signals
from headwaiter.base.outputs import writing
end_tidily_on_signals()
mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock

def tell():
    while mutex.raw[0] != 2:  # glibc's mark of a mutex that is waited for: the main thread has left Python
        pass
    print("stuck", flush=True)

with writing(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    threading.Thread(target=tell, daemon=True).start()
    lock(mutex), lock(mutex)
"""


def test_the_end_is_told_once() -> None:
    code = "from headwaiter.base.ending import Ended, tell; tell(Ended(143)); tell(Ended(130))"
    done = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True)
    assert done.stderr == "headwaiter: ended by SIGTERM\n"


def test_what_nohup_ignores_stays_ignored() -> None:
    code = """import os, signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from headwaiter.base.early import end_at_once_on_signals
from headwaiter.base.ending import end_tidily_on_signals
end_at_once_on_signals(), end_tidily_on_signals()
os.kill(os.getpid(), signal.SIGHUP)
print("alive", flush=True)
os.kill(os.getpid(), signal.SIGTERM)"""
    done = subprocess.run([sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (143, "alive\n")


def test_a_signal_within_a_gentle_block_is_told_to_the_one_around_it() -> None:
    """A service that records again and again would else not hear of one that comes while a recording is being written."""
    code = """import os, signal, time
from headwaiter.base.ending import end_tidily_on_signals, gently
end_tidily_on_signals()
with gently() as outer:
    with gently() as inner:
        assert not inner.is_set()
    assert not outer.is_set()
    with gently():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.5)  # longer than the grace that a signal that is not awaited gives
    assert outer.is_set()
    print("told", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], check=False, capture_output=True, text=True, timeout=PROMPT_S)
    assert (done.returncode, done.stdout) == (143, "told\n")


# A signal that the program sends itself when it begins to load a module.
WHILE_LOADING = """
import os, runpy, sys

class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(number))

number, module = sys.argv[1:3]
del sys.argv[1:3]
sys.meta_path.insert(0, Sender())
sys.modules.pop("signal", None), sys.modules.pop("enum", None)
runpy.run_module("headwaiter", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("number", "module"),
    [
        *(
            (signal.SIGINT, name)
            for name in ("headwaiter.base.early", "signal", "enum", "headwaiter.base.ending", "headwaiter.cli", "click")
        ),
        *((number, "headwaiter.base.ending") for number in (signal.SIGTERM, signal.SIGHUP)),
        (signal.SIGTERM, "headwaiter.cli"),
    ],
    ids=str,
)
def test_while_the_program_is_loaded(number: signal.Signals, module: str) -> None:
    command = [sys.executable, "-P", "-c", WHILE_LOADING, str(int(number)), module, "schedulers"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", f"headwaiter: ended by {number.name}\n")


def started(process: subprocess.Popen[str], cpu_s: float) -> None:
    """Wait until the process has used so much processor time: it is at work then."""
    ticks = os.sysconf("SC_CLK_TCK")
    while True:
        assert process.poll() is None, process.communicate()
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / ticks > cpu_s:
            return
        time.sleep(0.05)


@thorough
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("words", [["run", "-s", "as-seek", "--log", "OUT"], ["compare", "-s", "as-seek,noop,as", "-o", "OUT"]],
                         ids=lambda words: words[0])  # fmt: skip
def test_in_the_middle_of_a_run(tmp_path: Path, words: list[str], number: signal.Signals, status: int) -> None:
    job, out = tmp_path / "endless.fio", tmp_path / "out"
    job.write_text(ENDLESS)
    out.mkdir()
    command = [sys.executable, "-P", "-m", "headwaiter", words[0], str(job)]
    command += [str(out / "file") if word == "OUT" else word for word in words[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        started(process, 2)
        process.send_signal(number)
        printed, complained = process.communicate(timeout=PROMPT_S)
    finally:
        process.kill()
    assert (process.returncode, printed) == (status, "")
    announced, ended = complained.splitlines()
    assert re.fullmatch(r"(3 runs of )?about 8.4 billion I/Os( each)?, about .* hours; Ctrl-C stops it", announced)
    assert ended == f"headwaiter: ended by {number.name}"
    assert list(out.iterdir()) == []


@thorough
def test_compiled_code_is_not_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", STUCK, str(tmp_path / "file")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "stuck\n" and len(list(tmp_path.iterdir())) == 1
    process.send_signal(signal.SIGTERM)
    try:
        _, complained = process.communicate(timeout=PROMPT_S)
        assert (process.returncode, complained) == (143, "headwaiter: ended by SIGTERM\n")
    finally:
        process.kill()
    assert list(tmp_path.iterdir()) == []


def test_work_of_a_thread_that_is_not_wanted_any_more_ends() -> None:
    """And later work is not hindered."""
    begun = threading.Event()
    ended: list[int] = []

    def work() -> None:
        try:
            while True:
                begun.set()
                ending.check()
        except ending.Ended as e:
            ended.append(int(e.code or 0))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    begun.wait()
    while thread.is_alive():  # on a machine that is busy it may take more than a moment
        ending.drop(thread)
    assert ended == [0]
    ending.check()
