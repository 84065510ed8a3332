# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kmod/build refuses every kernel whose private interface is not what the code knows, and names what differs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest
from btfwriter import Writer, move_member
from conftest import ROOT
from loading import load_command

from headwaiter.lab.kernels import headers, kernel

BUILD = ROOT / "kmod" / "build"
RELEASE = "9.9.9-test"


build: Any = load_command(BUILD, "kmod_build")
interface: Any = sys.modules["interface"]
btf: Any = sys.modules["btf"]

# What the public headers of the kernel that there is not declare.
STUBS = """
#define static_assert _Static_assert
#define offsetof(type, member) __builtin_offsetof(type, member)
typedef _Bool bool;
typedef unsigned long size_t, ssize_t, u64;
typedef unsigned int blk_opf_t;
struct attribute { const char *name; };
struct kobject { const char *name; };
struct sbitmap_queue { long depth; };
struct request { struct request_queue *q; int tag; };
struct request_queue { struct elevator_queue *elevator; };
struct blk_mq_hw_ctx { void *sched_data; };
struct blk_mq_tag_set { unsigned int flags; unsigned int depth; };
struct io_cq { void *ioc; };
struct io_context { long refcount; };
struct bio { struct bio *bi_next; };
struct gendisk { int major; int minors; };
struct sbitmap { unsigned int depth; unsigned int shift; };
"""
PUBLIC = {
    "attribute": {"name": "const char *"},
    "kobject": {"name": "const char *"},
    "sbitmap_queue": {"depth": "long unsigned int"},
    "request": {"q": "struct request_queue *", "tag": "int"},
    "request_queue": {"elevator": "struct elevator_queue *"},
    "blk_mq_hw_ctx": {"sched_data": "void *"},
    "blk_mq_tag_set": {"flags": "unsigned int", "depth": "unsigned int"},
    "io_cq": {"ioc": "void *"},
    "io_context": {"refcount": "long unsigned int"},
    "bio": {"bi_next": "struct bio *"},
    "gendisk": {"major": "int", "minors": "int"},
    "sbitmap": {"depth": "unsigned int", "shift": "unsigned int"},
}


@dataclass
class Imagined:
    """A kernel that does not exist: of each thing the latest form that is known, with differences."""

    forms: dict[str, str] = field(default_factory=dict)  # "struct.member" or a function: its signature; "" = not there
    moved: dict[str, int] = field(default_factory=dict)  # "struct.member": by so many bytes
    unexported: set[str] = field(default_factory=set)
    groups: bool = False  # control groups of block devices

    def btf(self) -> bytes:
        """Its types."""
        out = Writer()
        out.enumerate("elv_merge", ["ELEVATOR_NO_MERGE", "ELEVATOR_FRONT_MERGE"])
        private = {name: {member: list(forms)[-1] for member, forms in members.items()}
                   for name, members in interface.MEMBERS.items()}  # fmt: skip
        if self.groups:
            private |= {name: {member: list(forms)[-1] for member, forms in members.items()}
                        for name, members in interface.GROUP_MEMBERS.items()} | interface.GROUP_OFFSETS  # fmt: skip
        for name, members in (PUBLIC | private).items():
            texts = {member: self.forms.get(f"{name}.{member}", text) for member, text in members.items()}
            moved = {member: by for member in members if (by := self.moved.get(f"{name}.{member}", 0))}
            out.define(name, {member: text for member, text in texts.items() if text}, moved)
        for name, signature in self.functions.items():
            out.function(name, self.forms.get(name, signature))
        return out.data

    @property
    def functions(self) -> dict[str, str]:
        """What it exports, by name."""
        groups = {name: list(interface.OPTIONAL[name])[-1] for name in GROUPS} if self.groups else {}
        return {**interface.FUNCTIONS, **groups}

    def symbols(self) -> str:
        """Its Module.symvers."""
        return "".join(f"0x0\t{name}\tvmlinux\tEXPORT_SYMBOL\n" for name in self.functions if name not in self.unexported)

    def generate(self) -> str:
        """What kmod/build would write to api/private.h."""
        text: str = build.generate(btf.Btf(self.btf()), STUBS, self.symbols(), RELEASE)
        return text

    def unpack(self, folder: Path) -> list[str]:
        """Header packages whose build system only compiles api/private.h; arguments for kmod/build."""
        for path, text in {
            "include/linux/blk-mq.h": STUBS,
            "include/generated/utsrelease.h": f'#define UTS_RELEASE "{RELEASE}"\n',
            "Module.symvers": self.symbols(),
            "Makefile": "modules:\n\t@gcc -std=gnu11 -fsyntax-only "
            f"-include {folder}/include/linux/blk-mq.h -x c $(M)/api/private.h\n",
        }.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "btf").write_bytes(self.btf())
        return ["--headers", str(folder), "--btf", str(folder / "btf"), "--output", str(folder / "out")]


GROUPS = [name for name in interface.OPTIONAL if name.startswith("blkcg_")]
OLD = {"elevator_mq_ops.init_sched": "int (struct request_queue *, struct elevator_type *)"}
MEMBERS = [f"{struct}.{member}" for struct, members in interface.MEMBERS.items() for member in members]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(BUILD), *arguments], capture_output=True, text=True, check=False)


def _refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line with which the build was refused."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("kmod/build: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("kmod/build: ").rstrip()


def test_a_known_kernel_is_configured_and_its_layout_compiled(tmp_path: Path) -> None:
    done = _run(*Imagined().unpack(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "out/api/private.h").read_text()
    assert f'#define HWK_KERNEL_RELEASE "{RELEASE}"' in text
    assert 'static_assert(offsetof(struct elevator_type, icq_size) == 168, "elevator_type.icq_size");' in text
    assert "int elv_register(struct elevator_type *);" in text


@pytest.mark.parametrize(("name", "variant", "macro"), [
    (name, variant, macro) for name, forms in interface.OPERATIONS.items() for variant, macro in forms.items() if macro
])  # fmt: skip
def test_the_variant_that_is_found_is_told_to_the_code(name: str, variant: str, macro: str) -> None:
    others = [one for one in interface.OPERATIONS[name] if one != variant]
    assert f"#define {macro} 1" in Imagined({f"elevator_mq_ops.{name}": variant}).generate()
    for other in others:
        assert f"#define {macro} 1" not in Imagined({f"elevator_mq_ops.{name}": other}).generate()


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_that_is_gone_is_named(member: str) -> None:
    with pytest.raises(build.Refused, match=rf"^{member}: the kernel has no such member$"):
        Imagined({member: ""}).generate()


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_of_an_unknown_type_is_named(member: str) -> None:
    with pytest.raises(build.Refused, match=rf'^{member}: the kernel has "void \(char \*\)", this code knows "'):
        Imagined({member: "void (char *)"}).generate()


@pytest.mark.parametrize("name", interface.FUNCTIONS)
def test_a_function_that_is_not_exported_or_another_is_named(name: str) -> None:
    with pytest.raises(build.Refused, match=rf"^{name}: the kernel does not export it$"):
        Imagined(OLD, unexported={name}).generate()
    with pytest.raises(build.Refused, match=rf'^{name}: the kernel has "int \(char \*\)", this code knows "'):
        Imagined(OLD | {name: "int (char *)"}).generate()


def test_a_kernel_that_calls_elevator_alloc_itself_need_not_export_it() -> None:
    assert "elevator_alloc(" not in Imagined(unexported={"elevator_alloc"}).generate()
    assert "elevator_alloc(" in Imagined(OLD).generate()


def test_control_groups_are_told_to_the_code_where_the_kernel_has_them() -> None:
    assert "blkcg" not in Imagined().generate()
    text = Imagined(groups=True).generate()
    assert "#define HWK_GROUPS 1" in text and "HWK_GROUPS_GIVEN_QUEUE" not in text
    assert "#define HWK_OFFSET_BLKCG_GQ_PARENT 0" in text and "#define HWK_OFFSET_BLKCG_GQ_PD 16" in text
    assert "struct blkg_policy_data *(*pd_alloc_fn)(struct gendisk *, struct blkcg *, gfp_t);" in text
    old = {"blkcg_policy.pd_alloc_fn": next(iter(interface.GROUP_ALLOC))}
    assert "#define HWK_GROUPS_GIVEN_QUEUE 1" in Imagined(old, groups=True).generate()


@pytest.mark.parametrize("member", ["blkcg_policy.pd_init_fn", "blkcg_gq.pd", "blkcg.css"])
def test_control_groups_of_another_form_are_named(member: str) -> None:
    with pytest.raises(build.Refused, match=rf"^{member}: the kernel has no such member$"):
        Imagined({member: ""}, groups=True).generate()
    with pytest.raises(build.Refused, match=rf'^{member}: the kernel has "void \(char \*\)", this code knows "'):
        Imagined({member: "void (char *)"}, groups=True).generate()


@pytest.mark.parametrize("member", ["elevator_mq_ops.has_work", "elevator_type.icq_size", "blk_mq_alloc_data.shallow_depth",
                                    "request.tag", "request_queue.elevator"])  # fmt: skip
def test_a_member_elsewhere_ends_the_build_and_is_named(tmp_path: Path, member: str) -> None:
    line = _refused(_run(*Imagined(moved={member: 8}).unpack(tmp_path)))
    assert line == f"{member}: the kernel's BTF and its headers disagree"


def test_a_public_struct_of_another_size_ends_the_build_and_is_named(tmp_path: Path) -> None:
    arguments = Imagined().unpack(tmp_path)
    stub = tmp_path / "include/linux/blk-mq.h"
    stub.write_text(stub.read_text().replace("struct bio { ", "struct bio { int debug[2]; "))
    assert _refused(_run(*arguments)) == "size of bio: the kernel's BTF and its headers disagree"


@pytest.mark.parametrize("data", [b"", b"\x9f\xeb", b"\x9f\xeb" + bytes(22), b"\x7fELF\x02\x01", b"nothing at all", None])
def test_what_is_no_type_information_is_refused(tmp_path: Path, data: bytes | None) -> None:
    arguments = Imagined().unpack(tmp_path)
    whole = (tmp_path / "btf").read_bytes()
    (tmp_path / "btf").write_bytes(whole[: len(whole) // 2] if data is None else data)
    _refused(_run(*arguments))


def test_absent_headers_of_the_running_kernel_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = type("Running", (), {"release": RELEASE})
    monkeypatch.setattr(build.os, "uname", lambda: running)
    with pytest.raises(build.Refused, match=rf"\(No such file or directory\): apt-get install linux-headers-{RELEASE}$"):
        build.kernel_release(Path("/lib/modules") / RELEASE / "build")
    with pytest.raises(build.Refused, match=r"\(No such file or directory\)$"):
        build.kernel_release(tmp_path)


def test_tools_and_compilers_of_another_release_are_told_so() -> None:
    log = "./objtool: /lib/libc.so.6: version `GLIBC_2.38' not found (required by ./objtool)\nmake: *** Error 1"
    assert "need GLIBC_2.38" in build.why("7.3", log)
    log = "gcc: error: unrecognized command-line option ‘-fmin-function-alignment=16’; did you mean\nmake: *** Error 1"
    assert build.why("7.3", log).endswith("gcc here does not know -fmin-function-alignment=16")


@pytest.mark.thorough
@pytest.mark.needs("stock-kernel")
@pytest.mark.parametrize("series", ["6.1", "6.12"])
@pytest.mark.parametrize("member", ["elevator_type.icq_size", "request_queue.last_merge"])
def test_a_real_kernel_with_a_member_elsewhere_is_refused(tmp_path: Path, series: str, member: str) -> None:
    stock = kernel(series, lambda text: None)
    folder = headers(stock, lambda text: None)
    whole = btf.section(btf.unpack_image(stock.image.read_bytes()), ".BTF")
    name, _, field = member.partition(".")
    (tmp_path / "btf").write_bytes(move_member(whole, name, field, 8))
    done = _run("--headers", str(folder), "--btf", str(tmp_path / "btf"), "--output", str(tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"kmod/build: {member}: the kernel's BTF and its headers disagree"


@pytest.mark.thorough
@pytest.mark.needs("stock-kernel")
@pytest.mark.needs("binutils")
def test_no_circle_of_calls_between_files(tmp_path: Path) -> None:
    """Where the linker joins two files of a module, one at most needs the other. Nor do two define the same."""
    stock = kernel("6.12", lambda text: None)
    folder = headers(stock, lambda text: None)
    done = _run("--headers", str(folder), "--btf", str(stock.image), "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for room in ("iosched", "disk"):
        defined: dict[str, str] = {}
        wanted: dict[str, set[str]] = {}
        for path in sorted((tmp_path / room).glob("*.o")):
            lines = subprocess.run(["nm", "-g", str(path)], capture_output=True, text=True, check=True).stdout.splitlines()
            symbols = [line.split()[-2:] for line in lines]
            wanted[path.stem] = {name for kind, name in symbols if kind == "U"}
            here = {name for kind, name in symbols if kind == "T"}
            assert here.isdisjoint(defined), f"{path}: {here & set(defined)}"
            assert all(name.startswith("hwk_") for name in here - MODULE), here
            defined |= dict.fromkeys(here - MODULE, path.stem)
        assert len(wanted) >= 2 and defined, room
        TopologicalSorter({file: {defined[name] for name in names & set(defined)} for file, names in wanted.items()}).prepare()


MODULE = {"init_module", "cleanup_module"}
"""What the kernel calls of every module."""
