// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Polls of NAPI instances: who polled, how often, and how many packets that took.
 *
 * THEORY
 *
 * The tracepoint comes after each poll, with what it took, in the context of who polled. A program
 * polls in a thread of its own (__napi_busy_loop() of net/core/dev.c), everybody else in the softirq
 * or in a kernel thread. Which thread the softirq has interrupted says nothing, so it is known by
 * its begin and its end; a thread that polls keeps the softirq off its processor.
 *
 * LIMITS
 *
 * Drivers that are not done with sent packets say that they took as many as they might.
 */
#include "common.h"

/* PF_KTHREAD; NET_RX_SOFTIRQ. */
enum { KERNEL_THREAD = 0x00200000, NET_RX = 3 };

/* As src/polls.rs reads them. */
enum { UNASKED = ~0U };
struct poller { u32 napi, process; };	/* UNASKED: not a program */
struct polls { u64 polls, packets; };

MAP(counts, BPF_MAP_TYPE_HASH, 4096, struct poller, struct polls);
MAP(softirqs, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, u32);	/* whether this processor is in one */

static __always_inline void set_softirq(unsigned int vector, u32 is_in)
{
	u32 zero = 0, *softirq = bpf_map_lookup_elem(&softirqs, &zero);
	if (softirq && vector == NET_RX)
		*softirq = is_in;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(begins, unsigned int vector)
{
	set_softirq(vector, 1);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(ends, unsigned int vector)
{
	set_softirq(vector, 0);
	return 0;
}

SEC("tp_btf/napi_poll")
int BPF_PROG(polled, struct napi_struct *napi, int work, int budget)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct poller poller = { .napi = napi->napi_id, .process = UNASKED };
	u32 zero = 0, *softirq = bpf_map_lookup_elem(&softirqs, &zero);
	/* An instance without a number cannot be polled by programs; netpoll asks for no packet. */
	if (!poller.napi || !budget || !softirq)
		return 0;
	if (!*softirq && !(task->flags & KERNEL_THREAD))
		poller.process = process_of(task);
	struct polls *polls = bpf_map_lookup_elem(&counts, &poller);
	if (!polls) {
		struct polls none = {};
		bpf_map_update_elem(&counts, &poller, &none, BPF_NOEXIST);
		polls = bpf_map_lookup_elem(&counts, &poller);
		if (!polls)
			return 0;
	}
	__sync_fetch_and_add(&polls->polls, 1);
	if (work > 0)
		__sync_fetch_and_add(&polls->packets, work);
	return 0;
}
