# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""headwaiter: disk I/O schedulers that can be simulated, proved and deployed."""
