# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which scheduler for a disk: whether a recording can tell, what the judge says of it, and what to do (docs/advise.md)."""
