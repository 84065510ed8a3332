# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What others have published: selectors by tables, flash with the processors of a host; was/; reproduce/."""
