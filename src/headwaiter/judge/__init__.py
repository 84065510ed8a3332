# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which scheduler is better, and how sure that is: under which conditions schedulers are run, by what, and what is said of it."""
