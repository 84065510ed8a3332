# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Workload-dependent anticipation (Tsakalozos et al., JSS 2009): what happens outside the scheduler.

Calibration finds the classes (calibration.py), observation counts how long the waits of each class last (observe.py), designation
gives each class its interval (designate.py). The configuration file (config.py) is what the scheduler `was` takes.
"""
