
/*
 * Put into arch/x86/um/vdso/um_vdso.c by recipe.rs: reads the clock in the page before that of the
 * vDSO; false if that takes a system call. See clock.c.
 */
static int read_clock_page(int clock, long *seconds_and_ns)
{
	const unsigned long cost = 256;	/* TIMER_MULTIPLIER */
	unsigned long here, next, ns;
	struct {
		unsigned long now, until, base, monotonic, real;
	} *page;

	if (clock != 0 && clock != 1)	/* CLOCK_REALTIME, CLOCK_MONOTONIC */
		return 0;
	asm("lea 0(%%rip), %0" : "=r" (here));
	page = (void *)((here & ~4095UL) - 4096);
	next = page->now + cost;
	if (next >= page->until)
		return 0;
	page->now = next;
	ns = clock ? page->monotonic : page->real;
	ns += (next / cost - page->base / cost) * cost;
	seconds_and_ns[0] = ns / 1000000000;
	seconds_and_ns[1] = ns % 1000000000;
	return 1;
}
