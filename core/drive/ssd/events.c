// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What happens when: a binary heap, whose room is that of all that can be under way. */
#include "core/drive/ssd/internal.h"

/* From the top down to where nothing that is earlier lies below. */
static void sink(struct ssd *s, struct ssd_event e)
{
	u32 n = s->nr_events, i = 0, k;

	for (k = 1; k < n; k = 2 * i + 1) {
		k += k + 1 < n && s->event[k + 1].at < s->event[k].at;
		if (s->event[k].at >= e.at)
			break;
		s->event[i] = s->event[k];
		i = k;
	}
	s->event[i] = e;
}

void ssd_push(struct ssd *s, u64 at, u32 command, u32 die, u16 kind_sectors)
{
	struct ssd_event e = { at, command, (u16)die, kind_sectors };
	u32 i;

	if (s->hole) { /* it takes the place of the one that is happening */
		s->hole = false;
		sink(s, e);
		return;
	}
	i = s->nr_events++;
	while (i && s->event[(i - 1) / 2].at > at) {
		s->event[i] = s->event[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	s->event[i] = e;
}

/* The earliest is to happen: its place is open for what follows from it. */
struct ssd_event ssd_open(struct ssd *s)
{
	s->hole = true;
	return s->event[0];
}

/* It has happened. */
void ssd_close(struct ssd *s)
{
	if (!s->hole)
		return;
	s->hole = false;
	if (--s->nr_events)
		sink(s, s->event[s->nr_events]);
}
