# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Schedulers judged as compromises: what each loses on each of many workloads and drives against the best of them."""
