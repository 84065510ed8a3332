# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every document that a command prints as JSON, in the order of docs/json.md."""

from __future__ import annotations

from headwaiter.advice.schema import DOCUMENTS as ADVICE
from headwaiter.base.records import Record
from headwaiter.description.schema import DOCUMENTS as DESCRIPTION
from headwaiter.fleet.schema import DOCUMENTS as FLEET
from headwaiter.lab.schema import DOCUMENTS as LAB
from headwaiter.measure.schema import DOCUMENTS as MEASURE
from headwaiter.papers.reproduce.schema import DOCUMENTS as REPRODUCE
from headwaiter.papers.schema import DOCUMENTS as PAPERS
from headwaiter.papers.was.schema import DOCUMENTS as WAS
from headwaiter.queue.schema import DOCUMENTS as QUEUE
from headwaiter.regret.schema import DOCUMENTS as REGRET
from headwaiter.study.schema import DOCUMENTS as STUDY
from headwaiter.sweeps.schema import DOCUMENTS as SWEEP
from headwaiter.top.schema import DOCUMENTS as TOP
from headwaiter.tuning.schema import DOCUMENTS as TUNING

ALL: tuple[type[Record], ...] = (
    *STUDY,
    *WAS,
    *LAB,
    *REGRET,
    *REPRODUCE,
    *MEASURE,
    *DESCRIPTION,
    *TOP,
    *ADVICE,
    *QUEUE,
    *PAPERS,
    *TUNING,
    *SWEEP,
    *FLEET,
)
