# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""maitre and the glue of the modules as one file of a kernel tree, block/maitre-iosched.c.

The files are those of core/ and kmod/, one behind the other. Headers go in where they are first included; conditions on the
kernel's version are decided for the tree; what nothing calls is left out; what is left is static, and has names of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POLICY = "maitre"
PRIVATE = ("blk.h", "blk-cgroup.h", "blk-mq.h", "blk-mq-sched.h", "blk-stat.h", "blk-wbt.h", "elevator.h")
"""Headers of block/, which modules outside the tree do not see."""
SOURCES = (
    "core/elevator.c", "core/table.c", "core/lib/*.c", f"core/policy/{POLICY}/*.c",
    "kmod/iosched/lock.c", "kmod/iosched/tasks.c", "kmod/iosched/requests.c", "kmod/iosched/merge.c", "kmod/iosched/groups.c",
    "kmod/iosched/tables.c", "kmod/iosched/counters.c", "kmod/iosched/sysfs.c", "kmod/iosched/iosched.c",
)  # fmt: skip
# mt_ is the maple tree's there. No name becomes longer, so that no line does.
PREFIXES = {"mt_": "mx_", "MT_": "MX_", "hwk_": "mck_", "HWK_": "MCK_", "hw_": "mc_", "HW_": "MC_", "hwrq": "mcrq"}
# In the tree these are the kernel's own.
IN_TREE = {
    "pd_of": "static struct hwk_pd *pd_of(struct blkcg_gq *blkg)\n{\n"
    "\tstruct blkg_policy_data *pd = blkg_to_pd(blkg, &groups_policy);\n\n"
    "\treturn pd ? container_of(pd, struct hwk_pd, pd) : NULL;\n}\n",
    "around": "static struct blkcg_gq *around(struct blkcg_gq *blkg)\n{\n\treturn blkg->parent;\n}\n",
    "cpd_of": "static struct hwk_cpd *cpd_of(struct blkcg *blkcg)\n{\n"
    "\treturn container_of(blkcg_to_cpd(blkcg, &groups_policy), struct hwk_cpd, cpd);\n}\n",
    "blkcg_of": "static struct blkcg *blkcg_of(struct cgroup_subsys_state *css)\n{\n\treturn css_to_blkcg(css);\n}\n",
}
REPLACED = {
    "*(struct blkcg **)member(data->blkg, HWK_OFFSET_BLKCG_GQ_BLKCG)": "data->blkg->blkcg",
    '"hw-%s"': '"%s"',
    "cannot register hw-%s": "cannot register %s",
    'MODULE_ALIAS("hw-*-iosched")': 'MODULE_ALIAS("maitre-iosched")',
    'MODULE_DESCRIPTION("headwaiter\'s I/O schedulers")': 'MODULE_DESCRIPTION("maitre I/O scheduler")',
    "\tint ret = hwk_check_release();\n\n\tif (ret)\n\t\treturn ret;\n": "\tint ret = 0;\n\n",
}
# What a tree has, by a file and what is found there (compare kmod/interface.py, which asks a kernel's BTF).
SIGNS = {
    "HWK_INIT_GIVEN_QUEUE": ("block/elevator.h", r"\(\*init_sched\)\(struct request_queue \*, struct elevator_queue \*"),
    "HWK_DEPTH_UPDATED_QUEUE": ("block/elevator.h", r"\(\*depth_updated\)\(struct request_queue"),
    "HWK_INSERT_FLAGS": ("block/elevator.h", r"blk_insert_t"),
    "HWK_WBT": ("block/blk-wbt.h", r"wbt_disable_default\("),
    "HWK_WBT_GIVEN_QUEUE": ("block/blk-wbt.h", r"wbt_disable_default\(struct request_queue"),
    "HWK_STAT": ("block/blk-stat.h", r"blk_stat_enable_accounting\("),
    "HWK_GROUPS_GIVEN_QUEUE": ("block/blk-cgroup.h", r"blkcg_activate_policy\(struct request_queue"),
    "HWK_SHALLOW_PER_WORD": ("include/linux/sbitmap.h", r"maximum number of bits to allocate from a single word"),
    "HWK_ASYNC_DEPTH": ("include/linux/blkdev.h", r"\bunsigned int\s+async_depth;"),
    "HWK_RQF_ELVPRIV": ("include/linux/blk-mq.h", r"\bRQF_ELVPRIV\b"),
    "HWK_HRTIMER_SETUP": ("include/linux/hrtimer.h", r"\bvoid hrtimer_setup\("),
    "blk_queue_rot": ("include/linux/blkdev.h", r"define blk_queue_rot\("),
}
DECIDED = frozenset(SIGNS) | {"__KERNEL__", "HWK_KERNEL_RELEASE"}


class Refused(Exception):
    """A tree, or the sources, are not as this file knows them: one line."""


def known(tree: Path) -> dict[str, bool]:
    """What the conditions are about, in a tree."""
    found = {"__KERNEL__": True, "HWK_KERNEL_RELEASE": False}
    for macro, (name, pattern) in SIGNS.items():
        try:
            text = (tree / name).read_text(encoding="utf-8")
        except OSError as e:
            raise Refused(f"{tree / name}: {e.strerror}: not a kernel tree") from None
        found[macro] = re.search(pattern, text) is not None
    return found


def decide(text: str, has: Mapping[str, bool]) -> str:
    """Text with those conditions decided, which are #ifdef, #ifndef and #else of one name each; others stay."""
    out: list[str] = []
    stack: list[tuple[bool, bool]] = []  # decided here; lines count
    for line in text.splitlines():
        words = line.split()
        directive = words[0] if words else ""
        if directive.startswith("#if"):
            name = words[1] if len(words) > 1 else ""
            if directive in ("#ifdef", "#ifndef") and name in has:
                stack.append((True, has[name] == (directive == "#ifdef")))
                continue
            stack.append((False, True))
        elif directive in ("#else", "#endif") and stack and stack[-1][0]:
            _, counts = stack.pop()
            if directive == "#else":
                stack.append((True, not counts))
            continue
        elif directive == "#endif":
            stack.pop()
        if all(counts for _, counts in stack):
            out.append(line)
    return "\n".join(out) + "\n"


class Inliner:
    """Files one behind the other, each once; the kernel's headers by themselves."""

    def __init__(self, has: Mapping[str, bool]) -> None:
        self.has = has
        self.seen: set[Path] = set()
        self.headers: set[str] = set()
        self.parts: list[tuple[Path, str]] = []

    def add(self, path: Path) -> None:
        """A file, behind what it includes."""
        if path in self.seen:
            return
        self.seen.add(path)
        text = decide(path.read_text(encoding="utf-8"), self.has)
        if path.suffix == ".h":
            text = re.sub(r"#ifndef (\w+_H)\n#define \1\n(.*)#endif\s*\Z", r"\2", text, flags=re.S)
        kept = []
        for line in text.splitlines():
            if match := re.match(r'#include (["<])(\S+)[">]', line):
                if match[1] == "<":
                    self.headers.add(match[2])
                elif match[2] != "api/private.h":
                    self.add(next(p for p in (ROOT / match[2], ROOT / "kmod" / match[2]) if p.is_file()))
            elif "SPDX" not in line and "clang-format" not in line and not line.startswith("#define pr_fmt"):
                kept.append(line)
        self.parts.append((path, "\n".join(kept).strip("\n") + "\n"))


def unrolled(text: str, rows: int, tables: int) -> str:
    """Text without macros of macros: rows of tables by hand, as many as the policy has; its reasons a plain enumeration."""
    macros = {name: (parameter, body) for name, parameter, body in _MACRO.findall(text)}
    for each, n in (("EACH_ROW", rows), ("EACH_TABLE", tables)):
        for call in re.findall(rf"(?<!#define ){each}\((\w+)\)", text):
            parameter, body = macros[call]
            made = []
            for number in range(n):
                line = re.sub(rf"\s*##\s*{parameter}\b|\b{parameter}\s*##\s*", str(number), body)
                made.append(re.sub(rf"\b{parameter}\b", str(number), line).replace("\\\n", "\n").strip())
            text = text.replace(f"{each}({call})", "\n".join(made), 1)
    for name in {"EACH_ROW", "EACH_TABLE", *_UNROLLED} & set(macros):
        text = re.sub(rf"^#define {name}\((?:[^\n]*\\\n)*[^\n]*\n", "", text, flags=re.M)
    text = text.replace("#define ROWS 32", f"#define ROWS {rows}")
    if "HW_REASONS" not in text:
        return text
    listed = re.search(r"#define HW_REASONS\(X\)(.*?[^\\])\n(?=\n|#)", text, re.S)
    if not listed:
        raise Refused("core/reason.h has no list of reasons")
    reasons = re.findall(r'X\((\w+), "[^"]*",\s*(?:\\\n)?\s*"([^"]*)"\)', listed[1])
    text = text.replace(listed[0], "").replace(
        "#define HW_REASON_ENUM(reason, name, help) reason,\nenum hw_reason { HW_REASONS(HW_REASON_ENUM) };",
        "enum hw_reason {\n" + "".join(f"\t{name}, /* {why} */\n" for name, why in reasons) + "};",
    )
    return text


_MACRO = re.compile(r"^#define (\w+)\((\w+)\)((?:[^\n]*\\\n)*[^\n]*)\n", re.M)
_MACROS_IN = frozenset({"sysfs", "tables", "reason"})
_UNROLLED = frozenset({"FUNCTIONS", "ENTRY"})


def distinct(parts: list[tuple[Path, str]]) -> list[str]:
    """Texts in which a static name of one file is no other one's: those that occur twice get the file's name in front."""
    owners: dict[str, set[Path]] = {}
    pattern = re.compile(r"^(?:static\b[^;={(]*?\b(\w+)(?:\[[^]]*\])*\s*(?:=|;|\()|#define (\w+)|struct (\w+) \{)", re.M)
    for path, text in parts:
        for match in pattern.finditer(text):
            owners.setdefault(match[1] or match[2] or f"struct {match[3]}", set()).add(path)
    out = []
    for path, text in parts:
        made = text
        for name, files in owners.items():
            word = name.removeprefix("struct ")
            if len(files) > 1 and path in files:
                made = re.sub(rf"(?<![\w.>])(?<!->){word}(?!\w)(?!\s*:)", f"{path.stem}_{word}", made)
        out.append(made)
    return out


@dataclass
class Item:
    """Something at the top of the file: a function, an object, a type, a comment."""

    text: str

    @property
    def names(self) -> set[str]:
        """What it defines or declares."""
        code = uncommented(self.text)
        if match := re.match(r"\s*#define (\w+)", code):
            return {match[1]}
        if match := re.match(r"\s*(?:enum|struct|union)\s*(\w*)\s*\{", code):
            inner = set(re.findall(r"\b([A-Z][A-Z0-9_]+|\w+)\b", code)) if "enum" in code.split("{")[0] else set()
            return {match[1], *inner}
        if match := re.match(r"\s*static (?:DEFINE_SPINLOCK|DECLARE_DELAYED_WORK)\((\w+)", code):
            return {match[1]}
        head = re.split(r"[={]|;", code)[0]
        if match := re.search(r"\b(\w+)\s*\((?!\*)", head):
            return {match[1]}
        if match := re.search(r"(\w+)(?:\[[^]]*\])*\s*$", head):
            return {match[1]}
        return set()

    @property
    def is_function(self) -> bool:
        """It is a function, defined here."""
        return re.match(r"(?!\s*#)[^{=;]*\)\s*\{", uncommented(self.text)) is not None

    @property
    def is_prototype(self) -> bool:
        """It is a function, declared here."""
        code = uncommented(self.text).strip()
        return re.match(r"(?!#|struct \w+ \{|typedef|MODULE|module_|static DE|DE)[^{=]*\w\([^{=]*\);$", code, re.S) is not None

    @property
    def words(self) -> set[str]:
        """What it mentions."""
        return set(re.findall(r"\w+", uncommented(self.text)))


def uncommented(text: str) -> str:
    """Without comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def items(text: str) -> list[Item]:
    """The file in pieces: each ends where a line ends outside of all braces, comments and continued macros."""
    out: list[Item] = []
    piece: list[str] = []
    depth, comment = 0, False
    for line in text.splitlines():
        if not line.strip() and not piece:
            continue
        piece.append(line)
        bare = re.sub(r"/\*.*?\*/", "", line) if not comment else line
        if comment:
            comment = "*/" not in bare
            bare = bare.partition("*/")[2] if not comment else ""
        if "/*" in bare:
            comment, bare = True, bare.partition("/*")[0]
        bare = re.sub(r"'[{}()]'|\"(?:[^\"\\]|\\.)*\"", "", re.sub(r"//.*", "", bare))
        depth += sum(map(bare.count, "{(")) - sum(map(bare.count, "})"))
        code = uncommented("\n".join(piece)).strip()
        if comment or depth or not code or bare.endswith("\\"):
            continue
        if code.startswith("#") or code.endswith((";", "}")) or re.fullmatch(r"[A-Z_]+\(\w+\)", code):
            out.append(Item("\n".join(piece) + "\n"))
            piece = []
    return out


def pruned(found: list[Item]) -> list[Item]:
    """Without what nothing uses, from what the module is entered by."""
    defines: dict[str, list[Item]] = {}
    for item in found:
        for name in item.names:
            defines.setdefault(name, []).append(item)
    roots = [one for one in found if re.match(r"\s*(module_|MODULE_|#(?!define))", uncommented(one.text))]
    roots += [one for one in found if re.fullmatch(r"\s*[A-Z_]+\(\w+\)\s*", uncommented(one.text))]
    live: set[int] = set()
    queue = list(roots)
    while queue:
        item = queue.pop()
        if id(item) in live:
            continue
        live.add(id(item))
        for word in item.words:
            queue += defines.get(word, ())
    return [one for one in found if id(one) in live]


def static(found: list[Item]) -> list[Item]:
    """All functions and objects of this file alone. A declaration stays where it is needed: in front of the definition."""
    defined = {name: at for at, one in enumerate(found) if one.is_function for name in one.names}
    out = []
    for at, one in enumerate(found):
        code = uncommented(one.text).strip()
        text = one.text
        if one.is_prototype and not one.names & set(defined):
            continue
        if one.is_prototype:
            (name,) = one.names & set(defined)
            used = any(name in other.words for other in found[at + 1 : defined[name]] if not other.is_prototype)
            if not used:
                continue
        objects = re.match(r"const struct \w+ (?:\*const )?\w+(?:\[\])? =", code)
        if code.startswith("extern "):
            if any(one.names & other.names and other is not one for other in found):
                text = text.replace("extern ", "static ", 1)
            else:
                continue
        elif (one.is_function or one.is_prototype or objects) and not code.startswith("static"):
            start = len(text) - len(_from_code(text))
            text = text[:start] + "static " + text[start:]
        out.append(Item(text))
    return out


def _from_code(text: str) -> str:
    """The text from the end of the comments in front of it."""
    match = re.match(r"(?:\s*(?:/\*.*?\*/|//[^\n]*)\s*)*", text, re.S)
    return text[match.end() :] if match else text


def renamed(text: str) -> str:
    """Names that the kernel's own could not have."""
    for before, after in PREFIXES.items():
        text = re.sub(rf"\b{before}", after, text)
    return text


def amalgamate(tree: Path, head: str) -> str:
    """The text of block/maitre-iosched.c for a tree; head: the comment that it begins with."""
    files = Inliner(known(tree))
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern), key=lambda one: (one.name == f"{POLICY}.c", one)):
            files.add(path)
    registry = f"static const struct hw_policy *const hw_policies[] = {{\n\t&hw_{POLICY},\n\tNULL,\n}};\n"
    source = (ROOT / "core" / "policy" / POLICY / f"{POLICY}.c").read_text(encoding="utf-8")
    rows = len(re.findall(r"^\tHW_TUNE\w*\(", source, re.M))
    parts = [(path, unrolled(text, rows, 1) if path.stem in _MACROS_IN else text) for path, text in files.parts]
    at = next(i for i, (path, _) in enumerate(parts) if path.name == f"{POLICY}.c")
    parts.insert(at + 1, (Path("registry.c"), registry))
    text = "\n".join(distinct(parts))
    for before, after in REPLACED.items():
        if before not in text:
            raise Refused(f"the sources have no `{before.strip().splitlines()[0]}`")
        text = text.replace(before, after)
    if not files.has["HWK_INSERT_FLAGS"]:
        text = "typedef bool blk_insert_t;\n" + text
    for name, body in IN_TREE.items():
        found = re.search(rf"^static [^\n]*\b{name}\([^)]*\)\n\{{.*?^\}}\n", text, re.M | re.S)
        if not found:
            raise Refused(f"groups.c has no function {name}")
        text = text.replace(found[0], body)
    text = text.replace("#ifdef HWK_GROUPS", "#ifdef CONFIG_BLK_CGROUP")
    # Documentation/block says what a tunable does.
    text = re.sub(r'^(\tHW_TUNE\([^"]*"\w*",)\s*"[^"]*"\)', r'\1 "")', text, flags=re.M)
    text = re.sub(r'([^\\])"\n\s*"', r"\1", text)
    kept = static(pruned(items(text)))
    body = renamed("\n".join(one.text for one in kept))
    includes = "".join(f"#include <{name}>\n" for name in sorted({*files.headers, "linux/blk-mq.h"} - {"linux/utsname.h"}))
    private = "".join(f'#include "{name}"\n' for name in PRIVATE)
    first = f'// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n{head}#define pr_fmt(fmt) "maitre: " fmt\n'
    return "\n".join((first, includes, private, body))
