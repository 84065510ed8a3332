# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's half of each lab experiment that has one (lab/experiments), under the experiment's name."""
