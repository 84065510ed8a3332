# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that keeps disks under watch: windows, decisions, changes (docs/watch.md)."""
