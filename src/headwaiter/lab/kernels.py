# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fetch Debian's kernel packages and find what is in them.

Packages come by `apt-get download` (apt checks their sums against the signed lists) and are unpacked with `dpkg -x` into
`$XDG_CACHE_HOME/headwaiter/kernels`; nothing is installed and no privilege is needed. A series such as "6.12" stands for
the newest cloud kernel of it in apt's lists that has headers, or, where apt knows none, the newest in the cache. From 7.0 on
an image is three packages: linux-image needs linux-binary, linux-modules and linux-base of the same release.
"""

from __future__ import annotations

import lzma
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headwaiter.base.errors import Problem
from headwaiter.lab.host import Unavailable, cache_folder, need, run

Progress = Callable[[str], None]

SERIES = ("6.1", "6.12")
DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


def version_key(name: str) -> list[int]:
    """Sort key of a package name: its numbers in order."""
    return [int(number) for number in re.findall(r"\d+", name)]


def newest(pattern: str) -> str | None:
    """The newest package in apt's lists whose whole name matches `pattern`."""
    names = run([need("apt-cache"), "pkgnames", "linux-"]).split()
    return max(filter(re.compile(pattern).fullmatch, names), key=version_key, default=None)


def fetch(name: str, say: Progress, packages: Callable[[], list[str]] | None = None) -> Path:
    """The folder with the contents of package `name`, or of `packages` together, downloaded unless it is there already."""
    folder = cache_folder() / "kernels" / name
    if folder.is_dir():
        return folder
    say(f"downloading {name}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and renamed, so that a folder of that name is always whole.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as aside:
        work = Path(aside)
        command = [need("apt-get"), "-q", "-o", "APT::Sandbox::User=", "download"]
        wanted = packages() if packages else [name]
        try:
            run([*command, *wanted], cwd=work)
        except Problem as e:
            raise Unavailable(str(e)) from None
        for deb in sorted(work.glob("*.deb")):
            run([need("dpkg"), "-x", str(deb), str(work / "root")])
        try:
            (work / "root").rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was faster
                raise
    return folder


def depends(package: str, pattern: str) -> list[str]:
    """The packages that `package` depends on whose whole names match `pattern`."""
    out = run([need("apt-cache"), "depends", package])
    return re.findall(rf"^ *Depends: ({pattern})$", out, re.MULTILINE)


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: `release` as uname says it, and where its files are."""

    release: str
    folder: Path
    tree: Path | None = None  # that it was built in, if it was built here
    debug: bool = False

    @property
    def series(self) -> str:
        """Return the series of the release, such as "6.12"."""
        return ".".join(self.release.split(".")[:2])

    @property
    def name(self) -> str:
        """Return what results call it."""
        return "debug" if self.debug else self.series

    @property
    def image(self) -> Path:
        """The bootable kernel."""
        older = self.folder / "boot" / f"vmlinuz-{self.release}"
        return older if older.is_file() else self._own / "vmlinuz"

    @property
    def _own(self) -> Path:
        """Return its folder of modules, which later packages have below /usr."""
        top = Path("lib") / "modules" / self.release
        return self.folder / "usr" / top if (self.folder / "usr" / top).is_dir() else self.folder / top

    @cached_property
    def _modules(self) -> dict[str, Path]:
        return {path.name.split(".")[0].replace("-", "_"): path for path in sorted(self._own.rglob("*.ko*"))}

    @cached_property
    def _built_in(self) -> set[str]:
        listing = (self._own / "modules.builtin").read_text(encoding="utf-8")
        return {Path(line).name.split(".")[0].replace("-", "_") for line in listing.split()}

    def modules(self, names: list[str]) -> dict[str, bytes]:
        """Module files by name, dependencies first, unpacked; what is built in is left out."""
        found: dict[str, bytes] = {}
        for name in names:
            self._add(name.replace("-", "_"), found)
        return found

    def _add(self, name: str, found: dict[str, bytes]) -> None:
        if name in found or name in self._built_in:
            return
        path = self._modules.get(name)
        if path is None:
            raise Problem(f"lab: kernel {self.release} has no module {name}")
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        depends = DEPENDS.search(data)
        for other in depends[1].decode().split(",") if depends else []:
            if other:
                self._add(other.replace("-", "_"), found)
        found[name] = data


def kernel(wanted: str, say: Progress) -> Kernel:
    """The newest cloud kernel of a series ("6.12") or release ("7.2.11"), or the one whose packages are unpacked in ./FOLDER."""
    if "/" in wanted:
        return unpacked(Path(wanted))
    wanted = wanted.removesuffix("-cloud-amd64")
    pattern = re.compile(rf"linux-image-({re.escape(wanted)}([.+-][\w.+-]*)?-cloud-amd64)")
    names = set(run([need("apt-cache"), "pkgnames", "linux-"]).split())
    images = [match[1] for match in map(pattern.fullmatch, names) if match]
    whole = [release for release in images if f"linux-headers-{release}" in names]
    cached = [match[1] for path in (cache_folder() / "kernels").glob("linux-*") if (match := pattern.fullmatch(path.name))]
    release = max(whole or cached, key=version_key, default=None)
    if release is None and images:
        newest_one = max(images, key=version_key)
        raise Unavailable(f"lab: apt knows no headers for a cloud kernel of {wanted} (the newest without is {newest_one})")
    if release is None:
        raise Unavailable(f"lab: apt knows no cloud kernel of {wanted} (apt-get update? a suite that is not in apt's sources?)")
    image = f"linux-image-{release}"
    return Kernel(release, fetch(image, say, lambda: [image, *depends(image, rf"linux-\w+-{re.escape(release)}")]))


def unpacked(folder: Path) -> Kernel:
    """The kernel whose packages have been unpacked into `folder`."""
    lists = [*folder.glob("lib/modules/*/modules.builtin"), *folder.glob("usr/lib/modules/*/modules.builtin")]
    found = {path.parent.name for path in lists}
    if len(found) != 1:
        raise Problem(f"lab: {folder}: expected the unpacked packages of one kernel, found {', '.join(sorted(found)) or 'none'}")
    of = Kernel(found.pop(), folder)
    if not of.image.is_file():
        raise Problem(f"lab: {folder}: no {of.image.relative_to(folder)} there: is a package missing?")
    return of


def headers(of: Kernel, say: Progress) -> Path:
    """Configured headers for building modules for a kernel: beside it, or Debian's three packages, put together."""
    if of.tree:
        return of.tree
    package = f"linux-headers-{of.release}"
    folder = of.folder
    if not (folder / "usr" / "src" / package).is_dir():
        others = r"linux-kbuild-\S+|linux-headers-\S+-common"
        folder = fetch(f"headers-{of.release}", say, lambda: [package, *depends(package, others)])
    return folder / "usr" / "src" / package
