# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of the experiment `again`: it gives the guest a source tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwaiter.lab.example import sources
from headwaiter.lab.guest import Outcome, boot
from headwaiter.lab.kernels import Kernel, Progress
from headwaiter.lab.script import Script, guest


def run(script: Script, on: Kernel, given: Mapping[str, str], say: Progress) -> Outcome:
    whole = guest(script, on, given, say)
    return boot(replace(whole, files=whole.files | sources(on, say), hang_s=600, limit_s=3600), say)
