/*
 * Put into arch/um/kernel/time.c by recipe.rs: kicks and interrupts by bits in the memory that the
 * calendar shares, instead of by messages. The layout is that of crates/hosts/lab/src/calendar/shared.rs.
 */

#define CALENDAR_SEES_KICKS	(1U << 31)
#define CLIENT_SEES_INTERRUPTS	(1U << 30)
#define CLIENT_KICKED		(1U << 31)

static struct time_travel_event *interrupt_event;
static u64 *interrupt_rings;

/* From now on `e` happens when the calendar has set bits, which are then in `rings`. */
void time_travel_share_interrupts(struct time_travel_event *e, u64 *rings);
void time_travel_share_interrupts(struct time_travel_event *e, u64 *rings)
{
	if (!time_travel_shm)
		return;
	interrupt_event = e;
	interrupt_rings = rings;
	time_travel_shm_client->capa |= CLIENT_SEES_INTERRUPTS;
}

/* The turn begins. */
static void time_travel_take_interrupts(void)
{
	u64 *raised = (u64 *)&time_travel_shm_client->reserve[64];

	if (!interrupt_event || !*raised)
		return;
	*interrupt_rings |= *raised;
	*raised = 0;
	time_travel_add_irq_event(interrupt_event);
}

/* The calendar will look at the rings when this turn ends; until then no time passes. */
bool time_travel_kick(void);
bool time_travel_kick(void)
{
	u16 calendar;

	if (!time_travel_shm)
		return false;
	calendar = time_travel_shm->max_clients - 1;
	if (!(time_travel_shm->clients[calendar].capa & CALENDAR_SEES_KICKS))
		return false;
	time_travel_shm_client->flags |= CLIENT_KICKED;
	time_travel_shm->free_until = time_travel_shm->current_time;
	return true;
}

