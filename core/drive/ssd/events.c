// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What happens when: a binary heap, whose room is that of all that can be under way. */
#include "core/drive/ssd/internal.h"

void ssd_push(struct ssd *s, u64 at, u32 command, u32 die, u16 kind_sectors)
{
	u32 i = s->nr_events++;

	while (i && s->event[(i - 1) / 2].at > at) {
		s->event[i] = s->event[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->event[i] = (struct ssd_event){ at, command, (u16)die, kind_sectors };
}

void ssd_pop(struct ssd *s)
{
	u32 n = --s->nr_events, i = 0, k;
	struct ssd_event last = s->event[n];

	for (k = 1; k < n; k = 2 * i + 1) {
		k += k + 1 < n && s->event[k + 1].at < s->event[k].at;
		if (s->event[k].at >= last.at)
			break;
		s->event[i] = s->event[k];
		i = k;
	}
	s->event[i] = last;
}
