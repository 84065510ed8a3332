# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`make patches`: how block/maitre-iosched.c is made, for trees of two kinds. Compiling it needs a kernel."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "packaging" / "upstream"))

import amalgamate as upstream

OLD = {
    "block/elevator.h": "int (*init_sched)(struct request_queue *, struct elevator_type *);\n",
    "block/blk-wbt.h": "void wbt_disable_default(struct request_queue *q);\n",
    "block/blk-stat.h": "void blk_stat_enable_accounting(struct request_queue *);\n",
    "block/blk-cgroup.h": "int blkcg_activate_policy(struct request_queue *q, const struct blkcg_policy *pol);\n",
    "include/linux/sbitmap.h": "@shallow_depth: The maximum number of bits to allocate from a single word.\n",
    "include/linux/blkdev.h": "",
    "include/linux/blk-mq.h": "#define RQF_ELVPRIV 1\n",
    "include/linux/hrtimer.h": "",
}
NEW = OLD | {
    "block/elevator.h": "int (*init_sched)(struct request_queue *, struct elevator_queue *);\n"
    "void (*depth_updated)(struct request_queue *);\nvoid (*insert_requests)(struct blk_mq_hw_ctx *, blk_insert_t);\n",
    "block/blk-wbt.h": "void wbt_disable_default(struct gendisk *disk);\n",
    "block/blk-cgroup.h": "int blkcg_activate_policy(struct gendisk *disk, const struct blkcg_policy *pol);\n",
    "include/linux/sbitmap.h": "",
    "include/linux/blkdev.h": "#define blk_queue_rot(q) 1\n\tunsigned int async_depth;\n",
    "include/linux/blk-mq.h": "",
    "include/linux/hrtimer.h": "void hrtimer_setup(struct hrtimer *timer);\n",
}


def tree(folder: Path, files: dict[str, str]) -> Path:
    """A kernel tree of which only what is looked for is there."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("files", [OLD, NEW], ids=["old", "new"])
def test_the_file_for_a_tree(files: dict[str, str], tmp_path: Path) -> None:
    text = upstream.amalgamate(tree(tmp_path, files), "/* head */\n")
    code = upstream.uncommented(text)
    assert text.startswith("// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n/* head */\n#define pr_fmt")
    assert not re.search(r"\b(hw|HW|hwk|HWK|mt|MT)_\w", code), "a name of ours"
    assert not re.search(r"#include \"(?!blk|elevator\.h)", text) and "HWK_" not in text and "#ifdef MCK_" not in text
    assert 'MODULE_ALIAS("maitre-iosched")' in text and '"hw-' not in text
    # Each function once, but for the stubs of a kernel without control groups; none for other files, and none of other policies.
    functions = re.findall(r"^(?!#)[\w* ]*?\b(\w+)\([^;{]*\)\n\{", code, re.M)
    assert len(set(functions)) > 150 and "mx_serve" in functions
    assert all("group" in name for name in functions if functions.count(name) > 1)
    heads = re.findall(r"^(?!static|#)\w[\w* ]*\b\w+\([^;{]*\)\n\{", code, re.M)
    assert heads == []
    assert "anticipat" not in " ".join(functions)
    assert ("typedef bool blk_insert_t;" in text) == (files is OLD)
    assert ("elevator_alloc(" in code) == (files is OLD)
    assert ("hrtimer_setup(" in code) == (files is NEW)
    assert ("async_depth = rq_queue->nr_requests" in code) == (files is NEW)


def test_what_is_no_kernel_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(upstream.Refused, match="not a kernel tree"):
        upstream.amalgamate(tmp_path, "")


def test_conditions_of_the_tree_are_decided_and_others_stay() -> None:
    text = "#ifdef A\na\n#ifdef X\nx\n#else\ny\n#endif\n#else\nb\n#endif\n#ifndef A\nc\n#endif\n#if defined(A)\nd\n#endif\n"
    assert upstream.decide(text, {"A": True}) == "a\n#ifdef X\nx\n#else\ny\n#endif\n#if defined(A)\nd\n#endif\n"
    assert upstream.decide(text, {"A": False}) == "b\nc\n#if defined(A)\nd\n#endif\n"


def test_names_that_two_files_have_get_the_files_name() -> None:
    parts = [(Path("one.c"), "static int take(void)\n{\n}\nint a = take() + p->take;\n"), (Path("two.c"), "static int take;\n")]
    one, two = upstream.distinct(parts)
    assert one == "static int one_take(void)\n{\n}\nint a = one_take() + p->take;\n" and two == "static int two_take;\n"


def test_what_nothing_calls_is_left_out() -> None:
    text = """/* used */
static int used(void)
{
	return '{';
}

static int unused(void)
{
	return used();
}

#define SIZE 3
#define OTHER 4
static int __init begin(void)
{
	return used() + SIZE; /* OTHER */
}
module_init(begin);
"""
    kept = "".join(one.text for one in upstream.pruned(upstream.items(text)))
    assert "int used" in kept and "#define SIZE" in kept and "unused" not in kept and "#define OTHER" not in kept


def test_functions_are_static_and_declared_only_where_that_is_needed() -> None:
    text = "int late(void);\nint early(void);\nint early(void)\n{\n\treturn late();\n}\n\n/* last */\nint late(void)\n{\n}\n"
    made = "".join(one.text for one in upstream.static(upstream.items(text)))
    assert (
        made
        == "static int late(void);\nstatic int early(void)\n{\n\treturn late();\n}\n/* last */\nstatic int late(void)\n{\n}\n"
    )


def test_tables_are_unrolled() -> None:
    text = (
        "#define EACH_ROW(do) do(0) do(1)\n"
        "#define FUNCTIONS(n) \\\n\tint show_##n(void) \\\n\t{ return n; }\nEACH_ROW(FUNCTIONS)\n"
        "#define ENTRY(n) { .show = show_##n },\nint e[] = { EACH_ROW(ENTRY) };\n#define ROWS 32\n"
    )
    made = " ".join(upstream.unrolled(text, 2, 1).split())
    assert made == (
        "int show_0(void) { return 0; } int show_1(void) { return 1; } "
        "int e[] = { { .show = show_0 }, { .show = show_1 }, }; #define ROWS 2"
    )
