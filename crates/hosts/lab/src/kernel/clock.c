

/*
 * Put into arch/um/kernel/time.c by recipe.rs: programs read the clock without a system call. They
 * share a page with the kernel, in which a reading moves time on by what it costs (timer_read), as
 * long as nothing else happens before.
 */

struct time_travel_clock {
	u64 now;		/* the time; a reading moves it */
	u64 until;		/* something happens; 0: make the system call */
	u64 base;		/* at this time... */
	u64 monotonic;		/* ...this is CLOCK_MONOTONIC */
	u64 real;		/* ...and this CLOCK_REALTIME, in ns */
};

static struct time_travel_clock *clock_page;

void *time_travel_clock_page(void);
void *time_travel_clock_page(void)
{
	if (!clock_page)
		clock_page = (void *)get_zeroed_page(GFP_KERNEL);
	return clock_page;
}

/* A program is about to run. */
void time_travel_enter_user(void);
void time_travel_enter_user(void)
{
	static struct time_travel_clock last;
	struct time_travel_event *first;
	u64 monotonic, real, passed;
	unsigned long flags;

	if (!clock_page)
		return;
	clock_page->until = 0;
	if (!time_travel_shm || !time_travel_ext_free_until)
		return;
	/* With interrupts disabled, reading costs nothing. */
	local_irq_save(flags);
	monotonic = ktime_get_ns();
	real = ktime_get_real_ns();
	local_irq_restore(flags);
	/* A clock that is being adjusted has another rate, or has jumped. */
	passed = (time_travel_time / TIMER_MULTIPLIER -
		  last.base / TIMER_MULTIPLIER) * TIMER_MULTIPLIER;
	if (monotonic - last.monotonic == passed && real - last.real == passed) {
		clock_page->until = *time_travel_ext_free_until - time_travel_shm_offset;
		first = time_travel_first_event();
		if (first && first->time < clock_page->until)
			clock_page->until = first->time;
	}
	last.base = time_travel_time;
	last.monotonic = monotonic;
	last.real = real;
	clock_page->base = clock_page->now = time_travel_time;
	clock_page->monotonic = monotonic;
	clock_page->real = real;
}

/* It has stopped. What it wrote elsewhere into the page does not matter. */
void time_travel_leave_user(void);
void time_travel_leave_user(void)
{
	u64 now;

	if (!clock_page)
		return;
	now = READ_ONCE(clock_page->now);
	if (clock_page->until && now > time_travel_time && now < clock_page->until)
		time_travel_set_time(now);
}
