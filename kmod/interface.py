# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the modules use of the kernel's block layer, and the forms in which they know it.

A form is written as btf.Btf writes it; beside it stands the macro that tells the code that it has this one ("": it need not
know). Anything else in the target kernel ends the build.
"""

from __future__ import annotations

Forms = dict[str, str]
Members = dict[str, dict[str, Forms]]

REQUEST, REQUESTS, HCTX = "struct request *", "struct request_queue *", "struct blk_mq_hw_ctx *"

# struct elevator_mq_ops: what the elevators implement.
OPERATIONS: dict[str, Forms] = {
    "init_sched": {
        f"int ({REQUESTS}, struct elevator_type *)": "",
        f"int ({REQUESTS}, struct elevator_queue *)": "HWK_INIT_GIVEN_QUEUE",
    },
    "exit_sched": {"void (struct elevator_queue *)": ""},
    "init_hctx": {f"int ({HCTX}, unsigned int)": ""},
    "exit_hctx": {f"void ({HCTX}, unsigned int)": ""},
    "depth_updated": {f"void ({HCTX})": "", f"void ({REQUESTS})": "HWK_DEPTH_UPDATED_QUEUE"},
    "allow_merge": {f"bool ({REQUESTS}, {REQUEST}, struct bio *)": ""},
    "bio_merge": {f"bool ({REQUESTS}, struct bio *, unsigned int)": ""},
    "request_merge": {f"int ({REQUESTS}, struct request **, struct bio *)": ""},
    "request_merged": {f"void ({REQUESTS}, {REQUEST}, enum elv_merge)": ""},
    "requests_merged": {f"void ({REQUESTS}, {REQUEST}, {REQUEST})": ""},
    "limit_depth": {"void (blk_opf_t, struct blk_mq_alloc_data *)": ""},
    "prepare_request": {f"void ({REQUEST})": ""},
    "finish_request": {f"void ({REQUEST})": ""},
    "insert_requests": {
        f"void ({HCTX}, struct list_head *, bool)": "",
        f"void ({HCTX}, struct list_head *, blk_insert_t)": "",
    },
    "dispatch_request": {f"{REQUEST} ({HCTX})": ""},
    "has_work": {f"bool ({HCTX})": ""},
    "completed_request": {f"void ({REQUEST}, u64)": ""},
    "former_request": {f"{REQUEST} ({REQUESTS}, {REQUEST})": ""},
    "next_request": {f"{REQUEST} ({REQUESTS}, {REQUEST})": ""},
    "init_icq": {"void (struct io_cq *)": ""},
    "exit_icq": {"void (struct io_cq *)": ""},
}

# Members of other private structures that the code touches.
MEMBERS: Members = {
    "elevator_mq_ops": OPERATIONS,
    "elv_fs_entry": {
        "attr": {"struct attribute": ""},
        "show": {"ssize_t (struct elevator_queue *, char *)": ""},
        "store": {"ssize_t (struct elevator_queue *, const char *, size_t)": ""},
    },
    "elevator_type": {
        "ops": {"struct elevator_mq_ops": ""},
        "icq_size": {"size_t": ""},
        "icq_align": {"size_t": ""},
        "elevator_attrs": {"struct elv_fs_entry *": "", "const struct elv_fs_entry *": ""},
        "elevator_name": {"const char *": ""},
        "elevator_owner": {"struct module *": ""},
    },
    "elevator_queue": {
        "type": {"struct elevator_type *": ""},
        "elevator_data": {"void *": ""},
        "kobj": {"struct kobject": ""},
    },
    "blk_mq_alloc_data": {"q": {REQUESTS: ""}, "shallow_depth": {"unsigned int": ""}},
    "blk_mq_tags": {"nr_tags": {"unsigned int": ""}, "bitmap_tags": {"struct sbitmap_queue": ""}},
}

# Where the kernel has control groups of block devices, the same of them.
GROUP_ALLOC: Forms = {
    f"struct blkg_policy_data * (gfp_t, {REQUESTS}, struct blkcg *)": "HWK_GROUPS_GIVEN_QUEUE",
    "struct blkg_policy_data * (struct gendisk *, struct blkcg *, gfp_t)": "",
}
GROUP_MEMBERS: Members = {
    "blkg_policy_data": {"blkg": {"struct blkcg_gq *": ""}},
    "blkcg_policy_data": {"blkcg": {"struct blkcg *": ""}},
    "blkcg_policy": {
        "plid": {"int": ""},
        "dfl_cftypes": {"struct cftype *": ""},
        "cpd_alloc_fn": {"struct blkcg_policy_data * (gfp_t)": ""},
        "cpd_free_fn": {"void (struct blkcg_policy_data *)": ""},
        "pd_alloc_fn": GROUP_ALLOC,
        "pd_init_fn": {"void (struct blkg_policy_data *)": ""},
        "pd_offline_fn": {"void (struct blkg_policy_data *)": ""},
        "pd_free_fn": {"void (struct blkg_policy_data *)": ""},
    },
}
# Of structures that cannot be declared by themselves: members whose places are told, and their types.
GROUP_OFFSETS: dict[str, dict[str, str]] = {
    "blkcg_gq": {
        "parent": "struct blkcg_gq *",
        "blkcg": "struct blkcg *",
        "pd": "struct blkg_policy_data *[6]",
    },
    "blkcg": {"css": "struct cgroup_subsys_state", "cpd": "struct blkcg_policy_data *[6]"},
}

# Public, but checked too: the modules reach into them, and headers of another configuration would lay them out otherwise.
PUBLIC_STRUCTS = ("request", "request_queue", "blk_mq_hw_ctx", "blk_mq_tag_set", "io_cq", "io_context", "bio", "gendisk",
                  "sbitmap_queue", "sbitmap")  # fmt: skip

# What the code calls by them stands behind: kernels that lack them have that.
PRIVATE_TYPEDEFS = {"blk_insert_t": "bool"}

FUNCTIONS: dict[str, str] = {
    "elv_register": "int (struct elevator_type *)",
    "elv_unregister": "void (struct elevator_type *)",
    "elevator_alloc": f"struct elevator_queue * ({REQUESTS}, struct elevator_type *)",
    "elv_rqhash_add": f"void ({REQUESTS}, {REQUEST})",
    "elv_rqhash_del": f"void ({REQUESTS}, {REQUEST})",
    "elv_bio_merge_ok": f"bool ({REQUEST}, struct bio *)",
    "blk_mq_sched_try_merge": f"bool ({REQUESTS}, struct bio *, unsigned int, struct request **)",
    "blk_mq_sched_try_insert_merge": f"bool ({REQUESTS}, {REQUEST}, struct list_head *)",
    "blk_mq_sched_mark_restart_hctx": f"void ({HCTX})",
    "blk_mq_free_request": f"void ({REQUEST})",
    "blk_mq_run_hw_queues": f"void ({REQUESTS}, bool)",
    "ioc_find_get_icq": f"struct io_cq * ({REQUESTS})",
    "put_io_context": "void (struct io_context *)",
    "sbitmap_queue_min_shallow_depth": "void (struct sbitmap_queue *, unsigned int)",
}
# Functions that a kernel has no use for which defines the macro: it calls elevator_alloc itself.
UNNEEDED = {"elevator_alloc": "HWK_INIT_GIVEN_QUEUE"}

# Functions that a kernel may lack: by form, the macros that say that it is there, and in which one.
OPTIONAL: dict[str, dict[str, tuple[str, ...]]] = {
    name: {
        f"void ({REQUESTS})": ("HWK_WBT", "HWK_WBT_GIVEN_QUEUE"),
        "void (struct gendisk *)": ("HWK_WBT",),
    }
    for name in ("wbt_disable_default", "wbt_enable_default")
} | {
    "blk_stat_enable_accounting": {f"void ({REQUESTS})": ("HWK_STAT",)},
    "blk_stat_disable_accounting": {f"void ({REQUESTS})": ()},
    "blkcg_policy_register": {"int (struct blkcg_policy *)": ("HWK_GROUPS",)},
    "blkcg_policy_unregister": {"void (struct blkcg_policy *)": ()},
    "blkcg_activate_policy": {
        f"int ({REQUESTS}, const struct blkcg_policy *)": (),
        "int (struct gendisk *, const struct blkcg_policy *)": (),
    },
    "blkcg_deactivate_policy": {
        f"void ({REQUESTS}, const struct blkcg_policy *)": (),
        "void (struct gendisk *, const struct blkcg_policy *)": (),
    },
}

# What the public headers tell: the macro is defined where the pattern is found.
HEADER_SIGNS: dict[str, str] = {
    "HWK_SHALLOW_PER_WORD": r"@shallow_depth: The maximum number of bits to allocate from a single word",
    "HWK_ASYNC_DEPTH": r"\bunsigned int\s+async_depth;",
    "HWK_RQF_ELVPRIV": r"\bRQF_ELVPRIV\b",
    "HWK_HRTIMER_SETUP": r"\bvoid hrtimer_setup\(",
    "HWK_QUEUE_LIMITS": r"\bblk_mq_alloc_disk\(set, lim, ",
    "HWK_SHOULD_MERGE": r"\bBLK_MQ_F_SHOULD_MERGE\b",
}
