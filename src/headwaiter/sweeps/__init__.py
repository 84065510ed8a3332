# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many runs at once: what a sweep file asks for, how Dask spreads it, and the Parquet that keeps it (docs/sweep.md)."""
