# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a recorded workload is like, and what the device did. Its page and its tables are in report/."""
