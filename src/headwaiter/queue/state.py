# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What was in force before headwaiter changed a disk: saved first, so that it can be restored whatever happens in between.

The state of a disk is written, synced and renamed before anything of the disk is written, and removed once all is restored: it is
there if and only if something may have changed. It is kept by the disk's identity; a disk without a lasting one (no WWN, no
serial) is known by its name and diskseq in one boot.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.base.outputs import opened, writing
from headwaiter.queue.devices import Device
from headwaiter.queue.settings import Settings

STATE = Path("/var/lib/headwaiter")
SCHEMA = "headwaiter-state/1"
_HISTORY = "history.jsonl"
_LOCK = "lock"


@dataclass(frozen=True)
class Saved:
    """The saved state of a disk. before: what was in force; wanted: what was put last; found: as it read back, None until it did.

    by: the command that asked for it. overridden: what `watch` found instead of its own setting, "" if nothing.
    """

    identity: str
    name: str
    diskseq: int | None
    boot: str
    time: str
    by: str
    before: Settings
    wanted: Settings
    found: Settings | None = None
    overridden: str = ""

    def text(self) -> str:
        """Return the text that the file has."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"


@dataclass(frozen=True)
class Entry:
    """A line of the history: something was to be changed."""

    time: str
    device: str
    identity: str
    by: str
    old: str
    new: str


def now() -> str:
    """The time as files and logs have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class TakenError(Problem):
    """Another process has what only one may have."""


class State:
    """The folder in which states are kept."""

    def __init__(self, folder: Path = STATE, boot: str | None = None) -> None:
        self.folder = folder
        self.boot = _boot() if boot is None else boot

    def path(self, identity: str) -> Path:
        """The file of a disk."""
        plain = re.sub(r"[^A-Za-z0-9.-]+", "_", identity)[:80]
        return self.folder / f"{plain}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}.json"

    def of(self, device: Device) -> Saved | None:
        """Return what is saved of a disk; None if nothing is, or if it is another disk's that had the name."""
        saved = _read(self.path(device.identity))
        return saved if saved and self._same(saved, device) else None

    def _same(self, saved: Saved, device: Device) -> bool:
        if not device.identity.startswith("name:"):
            return True
        return saved.boot == self.boot and saved.diskseq == device.diskseq

    def all(self) -> list[Saved]:
        """Return what is saved of every disk, by name."""
        paths = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        found = [saved for path in paths if (saved := _read(path))]
        return sorted(found, key=lambda saved: (saved.name, saved.identity))

    def begin(self, device: Device, before: Settings, wanted: Settings, by: str) -> Saved:
        """Save a disk's settings before they are changed; those that were saved at an earlier change stay. What is saved."""
        known = self.of(device)
        now_there = before.beside(wanted)
        first = known.before.filled(now_there) if known else now_there
        saved = Saved(device.identity, device.name, device.diskseq, self.boot, now(), by, first, wanted)
        self._write(saved)
        self._append(Entry(saved.time, device.name, device.identity, by, before.scheduler, wanted.scheduler))
        return saved

    def done(self, saved: Saved, found: Settings) -> None:
        """The change is made, and read back so."""
        self._write(replace(saved, found=found.beside(saved.before)))

    def override(self, saved: Saved, what: str) -> None:
        """Remember, or with "" forget, that somebody else has set the disk otherwise."""
        self._write(replace(saved, overridden=what))

    def forget(self, identity: str) -> None:
        """All is restored. Problem if that cannot be kept."""
        path = self.path(identity)
        try:
            path.unlink(missing_ok=True)
        except OSError as e:
            raise Problem(f"{path}: {e.strerror}") from None
        self._sync()

    def history(self) -> list[Entry]:
        """All changes, the oldest first. A line that was cut short is passed over: its change was not begun."""
        try:
            lines = (self.folder / _HISTORY).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            try:
                found.append(Entry(**json.loads(line)))
            except (ValueError, TypeError):
                continue
        return found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other headwaiters from changing anything meanwhile. Problem if there is no writing here."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with ExitStack() as stack:
                handle = stack.enter_context(opened(self.folder / _LOCK, os.O_RDWR, 0o600))
                fcntl.flock(handle, fcntl.LOCK_EX)
                held = stack.pop_all()
        except (OSError, Problem) as e:
            why = f"{self.folder}: {e.strerror}" if isinstance(e, OSError) else e
            raise Problem(f"{why}: nothing is changed that could not be restored") from None
        with held:
            yield

    @contextmanager
    def watched(self, device: Device) -> Iterator[None]:
        """Keep other watches from a disk, until the block is left or the process dies. TakenError if one has it.

        Problem if none can be kept. The file goes with the last that has it, so nothing is left where nothing was changed.
        """
        path = self.path(device.identity).with_suffix(".lock")
        with ExitStack() as stack:
            while True:
                try:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    handle = stack.enter_context(opened(path, os.O_RDWR, 0o600))
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(handle), path.stat()):
                        break
                except BlockingIOError:
                    raise TakenError(f"{device.name}: another `headwaiter watch` watches this disk ({path})") from None
                except FileNotFoundError:  # it ended just now, and took the file away
                    pass
                except OSError as e:
                    raise Problem(f"{path}: {e.strerror}") from None
                stack.close()
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()

    def _write(self, saved: Saved) -> None:
        path = self.path(saved.identity)
        try:
            with writing(path) as temporary:
                temporary.write_text(saved.text(), encoding="utf-8")
            self._sync()
        except Problem as e:
            raise Problem(f"{e}: nothing is changed that could not be restored") from None

    def _append(self, entry: Entry) -> None:
        path = self.folder / _HISTORY
        with opened(path, os.O_WRONLY | os.O_APPEND, 0o644) as handle:
            try:
                # The empty line ends one that was cut short.
                os.write(handle, b"\n" + json.dumps(asdict(entry)).encode() + b"\n")
                os.fsync(handle)
            except OSError as e:
                raise Problem(f"{path}: {e.strerror}") from None

    def _sync(self) -> None:
        try:
            handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as e:
            raise Problem(f"{self.folder}: {e.strerror}") from None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _read(path: Path) -> Saved | None:
    """Return what a file has; None if there is none, or no longer."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("schema") != SCHEMA:
            raise Problem(f"{path}: is not of schema {SCHEMA}")
        settings = {key: _settings(found.pop(key)) for key in ("before", "wanted", "found")}
        assert settings["before"] and settings["wanted"]
        return Saved(**found, **settings)  # type: ignore[arg-type]
    except FileNotFoundError:
        return None
    except OSError as e:
        raise Problem(f"{path}: {e.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError):
        raise Problem(f"{path}: no state that headwaiter has saved") from None


def _settings(found: Mapping[str, object] | None) -> Settings | None:
    return None if found is None else Settings(**found)  # type: ignore[arg-type]
