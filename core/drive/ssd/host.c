// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Towards the host: submission queues, from which commands are fetched in turn while there are
 * slots; the controller, which takes reads first but lets a write pass after every eighth; the
 * link; and completions in order of time.
 */
#include "core/drive/ssd/internal.h"

#define READS_IN_A_ROW 8u

void ssd_complete(struct ssd *s, u32 c, u64 at)
{
	struct hw_io *io = s->command[c].io;

	io->done_ns = at + s->overhead[io->op != HW_READ];
	hw_done_add(&s->done, io);
	s->command[c].next = s->unused;
	s->unused = c;
}

/* A page of a read is with the host. */
void ssd_delivered(struct ssd *s, u32 index, u32 sectors, u64 at)
{
	struct ssd_command *c = &s->command[index];

	s->nr_reads--;
	c->out--;
	c->left -= sectors;
	if (!c->left)
		ssd_complete(s, index, at);
}

/*
 * The link, where both directions share it: they take turns. Where they do not, writes pass one
 * piece at a time and reads in order.
 */
void ssd_use_link(struct ssd *s, u64 now)
{
	if (s->link_busy || !s->half_duplex)
		return;
	if (s->piece && (!s->nr_sent || !s->link_wrote)) {
		s->link_busy = s->link_wrote = true;
		ssd_push(s, now + (u64)s->piece * s->link[1], SSD_NONE, 0,
			 ssd_pack(SSD_IN, s->piece));
	} else if (s->nr_sent) {
		u32 n = s->sent_sectors[s->sent_from];

		s->link_busy = true;
		s->link_wrote = false;
		ssd_push(s, now + (u64)n * s->link[0], s->sent_command[s->sent_from], 0,
			 ssd_pack(SSD_SENT, n));
		if (++s->sent_from == SSD_READS)
			s->sent_from = 0;
		s->nr_sent--;
	}
}

/* A page has come from its channel. */
void ssd_send(struct ssd *s, u32 c, u32 sectors, u64 now)
{
	u32 at;

	if (!s->half_duplex) {
		s->link_free = max(now, s->link_free) + (u64)sectors * s->link[0];
		ssd_delivered(s, c, sectors, s->link_free);
		return;
	}
	at = s->sent_from + s->nr_sent++;
	if (at >= SSD_READS)
		at -= SSD_READS;
	s->sent_command[at] = c;
	s->sent_sectors[at] = sectors;
	ssd_use_link(s, now);
}

/* Does it go on where one ended? Its end is remembered, instead of that one's or the oldest. */
bool ssd_goes_on(struct ssd_streams *s, const struct hw_io *io)
{
	u64 end = io->sector + io->sectors;
	u32 i;

	for (i = 0; i < SSD_STREAMS; i++) {
		if (s->end[i] == io->sector) {
			s->end[i] = end;
			return true;
		}
	}
	s->end[s->oldest] = end;
	s->oldest = (s->oldest + 1) % SSD_STREAMS;
	return false;
}

/* A submission queue with commands waits for its turn. */
static void line_up(struct ssd *s, u32 queue)
{
	ssd_link(&s->waiting, s->submissions, queue);
}

void ssd_submitted(struct ssd *s, u32 c)
{
	struct ssd_queue *q;
	u32 queue = 0;

	if (s->nr_submissions > 1)
		queue = s->command[c].io->queue % s->nr_submissions;
	q = &s->submissions[queue].commands;
	if (ssd_empty(q))
		line_up(s, queue);
	ssd_append(s, q, c);
}

/* The next command, from the submission queue whose turn it is; SSD_NONE without a slot. */
u32 ssd_fetch(struct ssd *s)
{
	u32 queue = s->waiting.head, c;
	struct ssd_submissions *q;

	if (queue == SSD_NONE || s->nr_fetched == s->nr_fetch)
		return SSD_NONE;
	q = &s->submissions[queue];
	c = ssd_take(s, &q->commands);
	s->nr_fetched++;
	if (ssd_empty(&q->commands) || ++s->in_burst >= s->burst) {
		s->in_burst = 0;
		s->waiting.head = q->next;
		if (!ssd_empty(&q->commands))
			line_up(s, queue);
	}
	return c;
}

/* The controller takes the next command if it is idle. */
void ssd_control(struct ssd *s, u64 now)
{
	u32 write, work;

	if (s->controlled_at != HW_NEVER)
		return;
	write = ssd_empty(&s->controller[0]);
	if (write && ssd_empty(&s->controller[1]))
		return;
	if (!write && !ssd_empty(&s->controller[1]) && s->in_a_row >= READS_IN_A_ROW)
		write = 1;
	s->in_a_row = write ? 0 : s->in_a_row + 1;
	s->controlled = ssd_take(s, &s->controller[write]);
	work = s->command[s->controlled].sequential ? s->control_sequential : s->control[write];
	s->controlled_at = now + work;
}
