# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One file a format. Each defines FORMAT, a headwaiter.traces.registry.Format; see docs/traces.md."""
