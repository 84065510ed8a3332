# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fuzzers of everything that headwaiter reads: mutations that know the formats, a kept corpus, and an oracle for each."""
