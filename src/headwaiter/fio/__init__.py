# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""fio job files as workloads (docs/fio.md)."""

from headwaiter.fio.jobs import JobLoad, load_jobs
from headwaiter.fio.parser import looks_like_job_file

__all__ = ["JobLoad", "load_jobs", "looks_like_job_file"]
