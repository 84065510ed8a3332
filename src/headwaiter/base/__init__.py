# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What every room may use: errors, files that are written whole, signals, numbers that people write, records that become JSON."""
