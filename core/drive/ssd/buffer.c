// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The write buffer: writes go into it in order, a piece of a page at a time; a full page waits
 * there until it is programmed. What a flush waits for are the pages that were full before it.
 */
#include "core/drive/ssd/internal.h"

/* A page that is not full must not wait for more. */
static void close_page(struct ssd *s)
{
	u32 place;

	div_u64_rem(s->filled, s->nr_buffer, &place);
	s->extra[place] = s->extra_now;
	s->extra_now = 0;
	s->gathered = 0;
	s->closes = false;
	s->filled++;
}

/* The next piece of the oldest write goes over the link if there is a place for it. */
void ssd_accept(struct ssd *s, u64 now)
{
	struct ssd_command *c;

	if (s->piece || ssd_empty(&s->writes))
		return;
	if (!s->gathered) {
		if (s->places == s->nr_buffer)
			return;
		s->places++;
	}
	c = &s->command[s->writes.head];
	if (c->left == c->io->sectors && (s->more[0] || s->more[1]))
		s->extra_now +=
			min(c->left, SSD_SMALL) * s->more[!ssd_goes_on(&s->streams[1], c->io)];
	s->piece = min(c->left, s->page - s->gathered);
	if (c->io->sectors > SSD_SMALL)
		s->extra_now += s->piece * s->more_large;
	if (s->piece == c->left && s->nr_fetch)
		s->nr_fetched--;
	if (s->half_duplex)
		ssd_use_link(s, now);
	else
		ssd_push(s, now + (u64)s->piece * s->link[1], SSD_NONE, 0,
			 ssd_pack(SSD_IN, s->piece));
}

static u64 flushing(struct ssd *s)
{
	u64 chance = (u64)ssd_scramble(++s->nr_flushes) * 1000000 >> 32;

	return s->flush_ns[chance < s->slow_share];
}

/* Completes, after its time, when the pages before `until` have been programmed: so many have not. */
static void await_programs(struct ssd *s, u32 index, u64 now, u64 until, u32 outstanding)
{
	struct ssd_command *c = &s->command[index];
	u32 w;

	for (w = s->flushes.head; w != SSD_NONE; w = s->command[w].next)
		outstanding -= s->command[w].waits;
	c->until = until;
	c->waits = outstanding;
	ssd_append(s, &s->flushes, index);
	ssd_programmed(s, SSD_NO_PAGE, now);
}

/* A piece has come into the buffer. */
void ssd_arrived(struct ssd *s, u32 sectors, u64 now)
{
	u32 index = s->writes.head;
	struct ssd_command *c = &s->command[index];

	s->piece = 0;
	s->gathered += sectors;
	c->left -= sectors;
	if (s->gathered == s->page || s->closes)
		close_page(s);
	if (c->left)
		return;
	ssd_take(s, &s->writes);
	if (!(c->io->flags & HW_IO_FUA) || s->is_protected) {
		ssd_complete(s, index, now);
		return;
	}
	if (s->gathered)
		close_page(s);
	await_programs(s, index, now, s->filled, s->places);
}

/* The page of this number is in the cells (SSD_NO_PAGE: none is): who waited for the last of them? */
void ssd_programmed(struct ssd *s, u64 number, u64 now)
{
	u32 w;

	if (number != SSD_NO_PAGE) {
		s->places--;
		s->last_program = now;
		for (w = s->flushes.head; w != SSD_NONE; w = s->command[w].next) {
			if (s->command[w].until > number) {
				s->command[w].waits--;
				break;
			}
		}
	}
	while (!ssd_empty(&s->flushes) && !s->command[s->flushes.head].waits) {
		w = ssd_take(s, &s->flushes);
		ssd_complete(s, w, s->command[w].io->op == HW_OTHER ? now + flushing(s) : now);
	}
}

/*
 * The time of a flush, if it is given, is that of keeping what does not fill a page, too; if it is
 * not, that is programmed as a page.
 */
void ssd_flush(struct ssd *s, u32 index, u64 now)
{
	if (s->is_protected) {
		ssd_complete(s, index, now + flushing(s));
		return;
	}
	if (s->gathered && !s->flush_ns[0]) {
		if (!s->piece)
			close_page(s);
		else /* when what is on its way into this very page is there */
			s->closes = true;
	}
	if (s->closes)
		await_programs(s, index, now, s->filled + 1, s->places);
	else
		await_programs(s, index, now, s->filled,
			       s->places - (s->piece || s->gathered ? 1 : 0));
}
