# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""python -m headwaiter."""

from headwaiter.cli import main

main()
