// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Requests of TCP and UDP flows: for what each of them waits, at each moment.
 *
 * THEORY
 *
 * At each moment a flow waits for one thing, its state. Each event that may change that does two
 * steps: `account` adds the time since the last event to the state that the flow was in; `classify`
 * finds the new state from what is known:
 *
 *	write_seq   end of what the program has written          (of UDP these five
 *	queued      end of what was given to the device           count datagrams)
 *	started     end of what the driver was called with
 *	rcv_nxt     end of what has come in order
 *	copied      end of what the program has read
 *	snd_una     end of what the far side has acknowledged
 *	acked       end of what we have acknowledged
 *	thread      runs, could run, is blocked, in which system call
 *
 * So times add up to the whole by construction. `last` moves by compare-and-exchange: of two
 * processors that account for the same span, one does.
 *
 * A request that this host asks begins with the first write after a read (`WRITING`), or with the
 * connection that was opened for it, and ends with the last read (`READING`) before the next write. One that it answers begins with data that comes
 * after a write and ends when the driver has all of the answer. The end of either is known only
 * when the next one begins; `snap` has the times as they were at what may be the end. In a run that
 * looks at a device all flows receive: from the packet to the read.
 *
 * Which side opened a connection is in its counters: the SYN of the side that opens is in
 * `bytes_acked`, and in no other count (tcp_snd_una_update()).
 *
 * What came late is corrected backwards: a retransmission takes the time since the last progress
 * from the far side; a second write before any read takes what has passed since the first one; an
 * answer by another thread than the one that has read takes what has passed since the read.
 *
 * HOOKS
 *
 * Tracepoints by BTF alone: the stable ones of the scheduler, of devices and of TCP. From Linux
 * 6.16 writes are seen in the socket (tcp_sendmsg_locked, sock_send_length); before, in the system
 * calls. Numbers of system calls come from the loader; there are none here. Names that begin with
 * `new_` and `old_` are alternatives, of which the loader takes one.
 *
 * LIMITS
 *
 * UDP begins at the queue of the device where system calls are not seen, and needs Linux 6.3
 * (sk_data_ready). A segment that finds its socket in use enters the stack when that is released.
 * A thread that is preempted within `account` adds its span late: a request that ends meanwhile has
 * it as unaccounted. Writes by io_uring are seen in the socket alone, so from Linux 6.16 on.
 */
#include "common.h"

/* As FlowStage of src/record.rs. */
enum stage {
	UNACCOUNTED, BETWEEN_WRITES, STACK_OUT, SEND_BUFFER, NAGLE, PACING, CONGESTION_WINDOW,
	RECEIVER_WINDOW, QDISC, DRIVER, RETRANSMISSION, FAR_UNACKED, FAR_ACKED, REST_UNACKED,
	REST_ACKED, OUT_OF_ORDER, HOLD, DEFERRAL, SOFTIRQ, STACK_IN, WAKE_UP, ELSEWHERE, READ,
	PREEMPTED, LOCK, DISK, SLEEP, BLOCKED, COMPUTES, CONNECT, STAGES = 32
};
enum phase { IDLE, CONNECTING, CONNECTED, WRITING, READING };
enum role { ASKS, ANSWERS, RECEIVES };
enum thread_state { RUNS, RUNNABLE, IS_BLOCKED };
/* What a system call waits for, as src/calls.rs numbers it; and what it does to a descriptor. */
enum call { NO_CALL, WAITS_READING, WAITS_POLLING, WAITS_LOCK, WAITS_TIMER, WAITS_DISK,
	    CALL_CLASS = 7, WRITES_FIRST = 8, WRITES_THIRD = 16 };
/* As src/raw.rs reads them. */
enum partial { BEGAN_BEFORE = 1, PIPELINED = 2, THREADS = 4, CLOSED = 8, THREAD_UNKNOWN = 16 };
enum counter { REQUESTS, LOST_RECORDS, LOST_FLOWS, COUNTERS };
enum { CALLS = 512, TCP = 6, UDP = 17, WAITING = 8, NET_RX = 3, SECOND = 1000000000 };
/* A connection whose first write comes later than this was not opened for it. */
enum { FOR_IT = SECOND / 10, ESTABLISHED = 1, SYN_SENT = 2 };

/* What becomes a record. */
struct request {
	u64 socket, begin, end, cgroup;
	u64 stages[STAGES];
	u64 bytes_out, bytes_in, block;
	u32 pid, tid;
	char name[16];
	u8 local[16], remote[16];
	u16 local_port, remote_port;
	u8 family, protocol, role, partial;
	u32 device, writes, reads, segments_out, segments_in, fast, timeouts, timer_polls;
	u32 srtt, min_rtt, cwnd, ssthresh, window, mss, first_lost, block_call;
	u8 has_lost, nodelay, pad[2];
	u32 seq;		/* of its first byte, by which both hosts know it */
	u64 sent_at, came_at;	/* first of what we sent, to the driver; first that came, to the stack */
	s32 block_stack, more;
};

struct flow {
	struct request r;
	u64 sk, last, snap_end, mark_at, far_mark;
	u64 stages[STAGES];	/* now; r.stages are those at what may be the end */
	u64 mark[STAGES];	/* at the end of a write that we asked with, or of a read to answer */
	u64 waiting[WAITING];	/* when datagrams came that are not read yet */
	u32 write_seq, queued, started, snd_una, rcv_nxt, copied, acked, window_end, again, first;
	u32 call;
	u8 state, phase, thread, class, woken, elsewhere, in_write, in_driver, held, out_of_order, parts, ended;
};

struct thread {
	u64 sk, serves, blocked_at, woken_at, first_ran_at, ran_at, writes_to;
	u64 computed;	/* since first_ran_at, until it left its processor last */
	u32 call;
	u8 state, class, woken, reads;
	s32 stack, more;
};

struct processor {
	u64 skb, came, sk, sk_at, driver_sk, raised, entered;
	u32 device;
	u8 in_timer, by_timer, first;
};

MAP(flows, BPF_MAP_TYPE_HASH, 8192, u64, struct flow);
MAP(threads, BPF_MAP_TYPE_HASH, 16384, u32, struct thread);
MAP(targets, BPF_MAP_TYPE_HASH, 4096, u32, u32);
enum { NO_STACK = -1, FRAMES = 64 };
struct stack { u64 frames[FRAMES]; };
MAP(stacks, BPF_MAP_TYPE_STACK_TRACE, 1, u32, struct stack);
MAP(processors, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct processor);
MAP(empty, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct flow);
MAP(entered, BPF_MAP_TYPE_LRU_HASH, 4096, u64, u64);
MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, COUNTERS, u32, u64);
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 22); } records SEC(".maps");

/* As src/histograms.rs reads them: of 2^10 ns and more, twice as long each; the last has no end. */
enum { BUCKETS = 24, WHOLE = 31 };
enum grouping { RECORDS, BY_DEVICE, BY_CGROUP };
struct group { u64 id, role; };
struct histograms {
	u64 sums[STAGES];
	u64 counts[STAGES][BUCKETS];
	u64 slowest, slowest_end, slowest_pid;	/* of the last minute */
	char slowest_name[16];
};
MAP(histograms, BPF_MAP_TYPE_PERCPU_HASH, 1, struct group, struct histograms);
MAP(no_histograms, BPF_MAP_TYPE_PERCPU_ARRAY, 1, u32, struct histograms);

/* Set by the loader: what is looked at, where, and what becomes of it. */
const volatile u8 follow_all = 0, receives = 0, grouping = RECORDS, follow_udp = 1, steers = 0;
const volatile u8 has_peer = 0, with_stacks = 0;
const volatile u64 peer[2] = {};	/* as an address of IPv6 */
const volatile u64 cgroup = 0;
const volatile u32 cgroup_level = 0, loader = 0;
const volatile u8 calls[CALLS] = {};

/* Filters that need no look-up: bits of the sockets and threads that are followed. */
u64 socket_bits[64], thread_bits[1024];
u64 last_socket;

#define after(a, b) ((s32)((b) - (a)) < 0)

/* The address behind a typed pointer; the verifier lets nobody calculate with the pointer. */
static __always_inline u64 address(const void *p)
{
	u64 a = (u64)p, n = 0;
	bpf_probe_read_kernel(&n, sizeof n, &a);
	return n;
}

static __always_inline u32 socket_bit(u64 sk) { return (u32)(sk >> 6 ^ sk >> 14) & 4095; }

static __always_inline bool maybe_socket(u64 sk)
{
	u32 bit = socket_bit(sk);
	return sk && socket_bits[bit >> 6 & 63] >> (bit & 63) & 1;
}

static __always_inline bool maybe_thread(u32 tid)
{
	return thread_bits[tid >> 6 & 1023] >> (tid & 63) & 1;
}

static __always_inline struct processor *this_processor(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&processors, &zero);
}

static __always_inline void count(u32 which)
{
	u64 *counter = bpf_map_lookup_elem(&counters, &which);
	if (counter)
		(*counter)++;
}

static __always_inline struct flow *flow_of(u64 sk)
{
	return maybe_socket(sk) ? bpf_map_lookup_elem(&flows, &sk) : 0;
}

static __always_inline struct thread *thread_of(u32 tid)
{
	return maybe_thread(tid) ? bpf_map_lookup_elem(&threads, &tid) : 0;
}

/* Whether what this thread does is looked at. */
static __always_inline bool is_target(void)
{
	if (follow_all)
		return true;
	if (cgroup)
		return bpf_get_current_ancestor_cgroup_id(cgroup_level) == cgroup;
	u32 tgid = process_of(bpf_get_current_task_btf());
	return bpf_map_lookup_elem(&targets, &tgid);
}

/* ---- which state a flow is in ---- */

static __always_inline u8 by_program(struct flow *f, bool data)
{
	if (f->thread == RUNS)
		return !data ? COMPUTES : f->class == WAITS_READING && f->woken ? READ : ELSEWHERE;
	if (f->thread == RUNNABLE)
		return f->woken ? WAKE_UP : PREEMPTED;
	switch (f->class) {
	case WAITS_LOCK: return LOCK;
	case WAITS_TIMER: return SLEEP;
	case WAITS_DISK: return DISK;
	case WAITS_READING: case WAITS_POLLING: return data && !f->elsewhere ? STACK_IN : BLOCKED;
	default: return BLOCKED;
	}
}

static __always_inline u8 by_network(struct flow *f)
{
	if (after(f->queued, f->started))
		return QDISC;
	if (f->in_driver)
		return DRIVER;
	if (f->held)
		return f->held;
	return f->in_write ? SEND_BUFFER : UNACCOUNTED;
}

static __always_inline u8 rest(struct flow *f)
{
	return f->out_of_order ? OUT_OF_ORDER
	     : f->r.protocol == TCP && !after(f->rcv_nxt, f->acked) ? REST_ACKED : REST_UNACKED;
}

static __always_inline u8 classify(struct flow *f)
{
	if (f->phase == IDLE)
		return UNACCOUNTED;
	if (f->phase == CONNECTING)
		return CONNECT;
	bool data = after(f->rcv_nxt, f->copied);
	if (f->phase == CONNECTED && !data && !f->in_write)
		return BETWEEN_WRITES;
	if (f->r.role == RECEIVES)
		return data ? by_program(f, true) : rest(f);
	if (f->in_write && f->thread != IS_BLOCKED)
		return f->thread == RUNNABLE && !f->woken ? PREEMPTED : STACK_OUT;
	u8 network = by_network(f);
	if (f->r.role == ASKS) {
		if (data && !f->in_write)
			return by_program(f, true);
		if (network)
			return network;
		if (f->parts || f->out_of_order)
			return rest(f);
		return f->r.protocol == UDP || after(f->queued, f->snd_una) ? FAR_UNACKED : FAR_ACKED;
	}
	if (f->phase == READING) {
		bool waits = f->class == WAITS_READING || f->class == WAITS_POLLING;
		if (!data && f->thread == IS_BLOCKED && waits && !f->elsewhere)
			return rest(f);
		return by_program(f, data);
	}
	return network ? network : by_program(f, false);
}

static __always_inline void account(struct flow *f, u64 now)
{
	u64 was = f->last;
	if ((s64)(now - was) <= 0)
		return;
	if (__sync_val_compare_and_swap(&f->last, was, now) == was)
		__sync_fetch_and_add(&f->stages[f->state & (STAGES - 1)], now - was);
}

/* This may be the end of the request. An interrupt may account for time meanwhile: then again. */
static __noinline int snap(struct flow *f)
{
	if (!f)
		return 0;
	for (int again = 0; again < 3; again++) {
		u64 end = *(volatile u64 *)&f->last;
		__builtin_memcpy(f->r.stages, f->stages, sizeof f->r.stages);
		f->r.end = end;
		if (*(volatile u64 *)&f->last == end)
			break;
	}
	f->ended = 1;
	return 0;
}

static __noinline int update(struct flow *f, u64 now)
{
	if (!f)
		return 0;
	account(f, now);
	f->state = classify(f);
	if (f->r.role == ANSWERS && f->phase == WRITING && !f->ended && !f->in_write && !by_network(f))
		snap(f);
	return 0;
}

/* ---- requests ---- */

static __always_inline void see_tcp(struct request *r, struct tcp_sock *tp)
{
	r->srtt = BPF_CORE_READ(tp, srtt_us) >> 3;
	r->min_rtt = BPF_CORE_READ(tp, rtt_min.s[0].v);
	r->cwnd = BPF_CORE_READ(tp, snd_cwnd);
	r->ssthresh = BPF_CORE_READ(tp, snd_ssthresh);
	r->window = BPF_CORE_READ(tp, snd_wnd);
	r->mss = BPF_CORE_READ(tp, mss_cache);
	r->nodelay = BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle) & 1;
}

/* Which bucket. Not static, so that the verifier looks at it once, and not at each call. */
__noinline int bucket_of(u64 nanos)
{
	u64 rest = nanos >> 10;
	u32 bucket = 0;
	for (u32 bits = 16; bits; bits >>= 1)
		if (rest >> bits) {
			bucket += bits;
			rest >>= bits;
		}
	bucket += rest;
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static __always_inline void put(struct histograms *h, u32 stage, u64 nanos)
{
	u32 bucket = bucket_of(nanos);
	h->sums[stage & (STAGES - 1)] += nanos;
	h->counts[stage & (STAGES - 1)][bucket < BUCKETS ? bucket : 0]++;
}

static __noinline int into_histograms(struct request *r)
{
	if (!r)
		return 0;
	struct group group = { .id = grouping == BY_DEVICE ? r->device : r->cgroup, .role = r->role };
	struct histograms *h = bpf_map_lookup_elem(&histograms, &group);
	if (!h) {
		u32 zero = 0;
		struct histograms *none = bpf_map_lookup_elem(&no_histograms, &zero);
		if (none)
			bpf_map_update_elem(&histograms, &group, none, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&histograms, &group);
	}
	if (!h) {
		count(LOST_RECORDS);
		return 0;
	}
	for (u32 stage = 0; stage < WHOLE; stage++)
		if (r->stages[stage])
			put(h, stage, r->stages[stage]);
	u64 whole = r->end - r->begin;
	put(h, WHOLE, whole);
	if (whole >= h->slowest || r->end - h->slowest_end > 60ULL * SECOND) {
		h->slowest = whole;
		h->slowest_end = r->end;
		h->slowest_pid = r->pid;
		__builtin_memcpy(h->slowest_name, r->name, sizeof h->slowest_name);
	}
	return 0;
}

static __noinline int emit(struct flow *f)
{
	if (!f || !f->ended || f->r.end <= f->r.begin)
		return 0;
	count(REQUESTS);
	if (grouping != RECORDS)
		return into_histograms(&f->r);
	if (f->r.protocol == TCP)
		see_tcp(&f->r, (void *)f->sk);
	struct request *r = bpf_ringbuf_reserve(&records, sizeof *r, 0);
	if (!r) {
		count(LOST_RECORDS);
		return 0;
	}
	__builtin_memcpy(r, &f->r, sizeof *r);
	/* The reader comes by itself. */
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __noinline int begin(struct flow *f, u64 at, u8 phase)
{
	if (!f)
		return 0;
	struct request *r = &f->r;
	__builtin_memset(f->stages, 0, sizeof f->stages);
	f->last = r->begin = at;
	f->phase = phase;
	f->ended = f->parts = f->in_driver = 0;
	f->far_mark = 0;
	r->partial = 0;
	r->bytes_out = r->bytes_in = r->block = 0;
	r->writes = r->reads = r->segments_out = r->segments_in = 0;
	r->fast = r->timeouts = r->timer_polls = 0;
	r->has_lost = 0;
	r->sent_at = r->came_at = 0;
	r->block_stack = NO_STACK;
	return 0;
}

/* Addresses and sequence numbers, as they are now. */
static __always_inline void see_socket(struct flow *f)
{
	struct request *r = &f->r;
	struct sock *sk = (void *)f->sk;
	r->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	r->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	r->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (r->family == 10) {
		bpf_core_read(r->local, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_core_read(r->remote, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		bpf_core_read(r->local, 4, &sk->__sk_common.skc_rcv_saddr);
		bpf_core_read(r->remote, 4, &sk->__sk_common.skc_daddr);
	}
	if (r->protocol == TCP) {
		struct tcp_sock *tp = (void *)sk;
		f->snd_una = BPF_CORE_READ(tp, snd_una);
		f->queued = f->started = BPF_CORE_READ(tp, snd_nxt);
		f->acked = BPF_CORE_READ(tp, rcv_wup);
		f->rcv_nxt = BPF_CORE_READ(tp, rcv_nxt);
		f->copied = BPF_CORE_READ(tp, copied_seq);
	}
}

static __noinline int new_flow(u64 key)
{
	u32 zero = 0;
	struct sock *sk = (void *)key;
	struct flow *blank = bpf_map_lookup_elem(&empty, &zero);
	if (!blank)
		return 0;
	u32 bit = socket_bit(key);
	__sync_fetch_and_or(&socket_bits[bit >> 6 & 63], 1ULL << (bit & 63));
	bpf_map_update_elem(&flows, &key, blank, BPF_NOEXIST);
	struct flow *f = bpf_map_lookup_elem(&flows, &key);
	if (!f) {
		count(LOST_FLOWS);
		return 0;
	}
	struct request *r = &f->r;
	f->sk = key;
	r->socket = __sync_fetch_and_add(&last_socket, 1) + 1;
	r->cgroup = bpf_get_current_cgroup_id();
	r->protocol = BPF_CORE_READ(sk, sk_protocol);
	see_socket(f);
	if (r->protocol == TCP) {
		struct tcp_sock *tp = (void *)key;
		u64 sent = BPF_CORE_READ(tp, bytes_sent) - BPF_CORE_READ(tp, bytes_retrans);
		u64 acked = BPF_CORE_READ(tp, bytes_acked) + (u32)(f->queued - f->snd_una);
		r->role = acked > sent ? ASKS : ANSWERS;
	} else {
		/* Who is asked has a port of its own choice (SOCK_BINDPORT_LOCK). */
		bool bound = BPF_CORE_READ_BITFIELD_PROBED(sk, sk_userlocks) & 8;
		r->role = r->remote_port || !bound ? ASKS : ANSWERS;
	}
	if (receives)
		r->role = RECEIVES;
	return 0;
}

static __noinline int new_thread(u32 tid)
{
	struct thread fresh = { .stack = NO_STACK };
	__sync_fetch_and_or(&thread_bits[tid >> 6 & 1023], 1ULL << (tid & 63));
	bpf_map_update_elem(&threads, &tid, &fresh, BPF_NOEXIST);
	return 0;
}

/* The thread that is running reads or writes this flow. */
static __noinline int touch(struct flow *f, u64 key)
{
	if (!f)
		return 0;
	u64 both = bpf_get_current_pid_tgid();
	u32 tid = both;
	struct thread *t = thread_of(tid);
	if (!t) {
		new_thread(tid);
		t = thread_of(tid);
	}
	if (t)
		t->sk = key;
	if (f->r.tid != tid) {
		if (f->r.tid)
			f->r.partial |= THREADS;
		f->r.tid = tid;
		f->r.pid = both >> 32;
		bpf_get_current_comm(f->r.name, sizeof f->r.name);
	}
	f->thread = RUNS;
	f->elsewhere = 0;
	return 0;
}

/* Whether the far side of a connection is the one host that is looked at. */
static __noinline int is_with_peer(u64 key)
{
	struct sock *sk = (void *)key;
	union { u64 words[2]; u8 bytes[16]; } remote = {};
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (BPF_CORE_READ(sk, sk_protocol) != TCP)
		return 0;
	if (family == 10) {
		bpf_core_read(remote.bytes, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		remote.bytes[10] = remote.bytes[11] = 0xff;
		bpf_core_read(remote.bytes + 12, 4, &sk->__sk_common.skc_daddr);
	}
	return remote.words[0] == peer[0] && remote.words[1] == peer[1];
}

static __always_inline struct flow *follow(u64 key)
{
	struct flow *f = flow_of(key);
	if (f || !is_target() || (has_peer && !is_with_peer(key)))
		return f;
	new_flow(key);
	return flow_of(key);
}

/* ---- writes ---- */

/* What keeps bytes that were written from being sent? */
static __noinline int see_held(struct flow *f)
{
	if (!f)
		return 0;
	struct tcp_sock *tp = (void *)f->sk;
	u32 end = BPF_CORE_READ(tp, write_seq), next = f->queued;
	f->write_seq = end;
	f->held = 0;
	if (!after(end, next))
		return 0;
	u32 unsent = end - next, flight = next - f->snd_una, mss = BPF_CORE_READ(tp, mss_cache);
	u32 chunk = unsent < mss ? unsent : mss;
	u8 nonagle = BPF_CORE_READ_BITFIELD_PROBED(tp, nonagle);
	bool no_window = f->window_end ? after(next + chunk, f->window_end)
				       : flight + chunk > BPF_CORE_READ(tp, snd_wnd);
	if (no_window)
		f->held = RECEIVER_WINDOW;
	else if (BPF_CORE_READ(tp, packets_out) >= BPF_CORE_READ(tp, snd_cwnd))
		f->held = CONGESTION_WINDOW;
	else if (unsent < mss && flight && !(nonagle & 3))
		f->held = NAGLE;
	else if (flight && BPF_CORE_READ_BITFIELD_PROBED(tp, is_cwnd_limited))
		/* There is room for less than is worth a packet (tcp_tso_should_defer()). */
		f->held = CONGESTION_WINDOW;
	else
		f->held = PACING;
	return 0;
}

/*
 * Another thread answers than the one that has read: what passed since then is that one's. If it
 * was awake all the time, it may have worked for others first.
 */
static __always_inline void hand_over(struct flow *f, struct thread *t, u64 now)
{
	u64 since = f->mark_at, woken = t->woken_at, first = t->first_ran_at;
	__builtin_memcpy(f->stages, f->mark, sizeof f->stages);
	f->last = now;
	if (woken > since && first >= woken) {
		f->stages[UNACCOUNTED] += woken - since;
		f->stages[WAKE_UP] += first - woken;
		since = first;
	}
	u64 computed = t->computed + (now - t->ran_at);
	if (computed > now - since)
		computed = now - since;
	f->stages[COMPUTES] += computed;
	f->stages[PREEMPTED] += now - since - computed;
}

static __noinline int write_begins(struct flow *f, u64 now)
{
	if (!f || f->in_write || f->r.role == RECEIVES)
		return 0;
	u32 tid = bpf_get_current_pid_tgid(), reader = f->r.tid;
	if (f->r.role == ASKS) {
		bool opened = f->phase == CONNECTED && now - f->mark_at < FOR_IT;
		if (f->phase != WRITING) {
			if (opened) {
				account(f, now);
				f->phase = WRITING;
			} else {
				emit(f);
				begin(f, now, WRITING);
			}
			struct tcp_sock *tp = (void *)f->sk;
			f->first = f->r.protocol == TCP ? BPF_CORE_READ(tp, write_seq) : f->queued;
			f->r.seq = f->first;
			if (after(f->rcv_nxt, f->copied))
				f->r.partial |= PIPELINED;
		} else {
			/* Until the last write nothing else was waited for. */
			__builtin_memcpy(f->stages, f->mark, sizeof f->stages);
			f->stages[BETWEEN_WRITES] += now - f->mark_at;
			f->last = now;
			f->far_mark = f->stages[FAR_UNACKED];
		}
	} else {
		account(f, now);
		struct thread *t = thread_of(tid);
		if (f->phase == READING && reader && reader != tid && t && f->mark_at)
			hand_over(f, t, now);
		if (f->phase == IDLE) {
			begin(f, now, WRITING);
			f->r.partial |= BEGAN_BEFORE;
		}
		/* Who is asked again before this answer. */
		if (f->r.protocol == TCP && after(f->rcv_nxt, f->copied))
			f->r.partial |= PIPELINED;
		f->phase = WRITING;
		if (t)
			t->serves = 0;
	}
	touch(f, f->sk);
	f->r.writes++;
	f->in_write = 1;
	f->ended = 0;
	update(f, now);
	return 0;
}

static __noinline int write_ends(struct flow *f, u64 now, int length)
{
	if (!f || f->r.role == RECEIVES)
		return 0;
	if (length > 0)
		f->r.bytes_out += length;
	if (f->r.protocol == UDP && !f->in_write) {
		/* Its beginning was not seen, but the datagram at the device was. */
		f->r.writes++;
		return 0;
	}
	if (!f->in_write)
		return 0;
	account(f, now);
	f->in_write = 0;
	if (f->r.protocol == TCP)
		see_held(f);
	update(f, now);
	if (f->r.role == ASKS) {
		f->mark_at = now;
		__builtin_memcpy(f->mark, f->stages, sizeof f->mark);
	}
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(new_write, const struct sock *sk)
{
	struct flow *f = follow(address(sk));
	return f ? write_begins(f, bpf_ktime_get_ns()) : 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(new_written, struct sock *sk, int length)
{
	struct flow *f = flow_of(address(sk));
	return f ? write_ends(f, bpf_ktime_get_ns(), length) : 0;
}

/* The socket behind a descriptor of this thread; 0: it is none of TCP or UDP. */
static __always_inline struct sock *socket_of(u32 fd)
{
	struct task_struct *me = bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(me, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = 0;
	if (fd >= BPF_CORE_READ(table, max_fds) || bpf_probe_read_kernel(&file, sizeof file, files + fd) || !file)
		return 0;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & 0170000) != 0140000)
		return 0;
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u16 protocol = BPF_CORE_READ(sk, sk_protocol);
	bool is_one = protocol == TCP || (protocol == UDP && follow_udp);
	return (family == 2 || family == 10) && is_one ? sk : 0;
}

/* Registers of the two architectures: what the kernel does not have is not read. */
struct pt_regs___arm64 {
	u64 regs[31];
	s32 syscallno;
} __attribute__((preserve_access_index));

static __always_inline u64 argument(struct pt_regs *regs, bool third)
{
	struct pt_regs___arm64 *arm = (void *)regs;
	if (bpf_core_field_exists(arm->syscallno))
		return third ? BPF_CORE_READ(arm, regs[2]) : BPF_CORE_READ(arm, regs[0]);
	return third ? BPF_CORE_READ(regs, dx) : BPF_CORE_READ(regs, di);
}

static __always_inline u32 call_of(struct pt_regs *regs)
{
	struct pt_regs___arm64 *arm = (void *)regs;
	if (bpf_core_field_exists(arm->syscallno))
		return BPF_CORE_READ(arm, syscallno);
	return BPF_CORE_READ(regs, orig_ax);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(old_write, struct pt_regs *regs, long id)
{
	u8 call = (u64)id < CALLS ? calls[id & (CALLS - 1)] : 0;
	if (!(call & (WRITES_FIRST | WRITES_THIRD)) || !is_target())
		return 0;
	struct sock *sk = socket_of(argument(regs, call & WRITES_THIRD));
	if (!sk)
		return 0;
	struct flow *f = follow((u64)sk);
	if (!f)
		return 0;
	write_begins(f, bpf_ktime_get_ns());
	struct thread *t = thread_of(bpf_get_current_pid_tgid());
	if (t)
		t->writes_to = (u64)sk;
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(old_written, struct pt_regs *regs, long result)
{
	struct thread *t = thread_of(bpf_get_current_pid_tgid());
	if (!t || !t->writes_to)
		return 0;
	struct flow *f = flow_of(t->writes_to);
	t->writes_to = 0;
	return f ? write_ends(f, bpf_ktime_get_ns(), result) : 0;
}

/* ---- devices, sending ---- */

struct segment { u32 seq, ack, length; };

static __always_inline bool tcp_segment(const struct sk_buff *skb, struct segment *s)
{
	u64 head = (u64)BPF_CORE_READ(skb, head), data = (u64)BPF_CORE_READ(skb, data);
	u64 at = head + skb->transport_header;
	struct tcphdr header;
	if (bpf_probe_read_kernel(&header, sizeof header, (void *)at))
		return false;
	s->seq = bpf_ntohl(header.seq);
	s->ack = bpf_ntohl(header.ack_seq);
	s->length = skb->len - (u32)(at + header.doff * 4 - data);
	return s->length < 1 << 20;
}

/* A datagram of UDP that is given to the device. */
static __always_inline void datagram_queued(struct flow *f, const struct sk_buff *skb, u64 now)
{
	if (!f->in_write) {
		/* The call was not seen. */
		if (f->r.role == ASKS && f->phase != WRITING) {
			emit(f);
			begin(f, now, WRITING);
		} else if (f->r.role == ASKS) {
			f->r.partial |= PIPELINED;
		} else {
			account(f, now);
			if (f->phase == IDLE) {
				begin(f, now, WRITING);
				f->r.partial |= BEGAN_BEFORE;
			}
			f->phase = WRITING;
			f->ended = 0;
		}
		touch(f, f->sk);
	} else if (f->r.role == ASKS && f->r.segments_out) {
		f->r.partial |= PIPELINED;
	}
	f->queued++;
	f->r.segments_out++;
	if (!f->r.remote_port || f->r.role == ANSWERS) {
		u64 head = (u64)BPF_CORE_READ(skb, head);
		u64 ip = head + skb->network_header;
		u16 port = 0;
		bpf_probe_read_kernel(&port, 2, (void *)(head + skb->transport_header + 2));
		f->r.remote_port = bpf_ntohs(port);
		if (skb->protocol == bpf_htons(0x86dd))
			bpf_probe_read_kernel(f->r.remote, 16, (void *)(ip + 24));
		else if (f->r.family == 10) {
			__builtin_memset(f->r.remote, 0, 10);
			f->r.remote[10] = f->r.remote[11] = 0xff;
			bpf_probe_read_kernel(f->r.remote + 12, 4, (void *)(ip + 16));
		} else
			bpf_probe_read_kernel(f->r.remote, 4, (void *)(ip + 16));
	}
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(queue, struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	if (!sk)
		return 0;
	u64 key = address(sk);
	struct flow *f = flow_of(key);
	if (!f) {
		/* The first datagram of a socket. */
		if (sk->sk_protocol != UDP || !follow_udp || !(f = follow(key)))
			return 0;
	}
	u64 now = bpf_ktime_get_ns();
	if (f->r.protocol == UDP) {
		datagram_queued(f, skb, now);
		update(f, now);
		return 0;
	}
	struct segment s;
	if (!tcp_segment(skb, &s))
		return 0;
	account(f, now);
	f->acked = s.ack;
	if (s.length) {
		u32 end = s.seq + s.length;
		if (after(end, f->queued)) {
			f->queued = end;
			f->far_mark = f->stages[FAR_UNACKED];
		}
		if (after(f->started, s.seq)) {
			/* Once more: it goes through the queue again. */
			if (!f->again)
				f->again = f->started;
			f->started = s.seq;
		}
		f->r.segments_out++;
		see_held(f);
	}
	update(f, now);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(start, const struct sk_buff *skb, const struct net_device *device)
{
	u64 key = 0;
	bpf_probe_read_kernel(&key, sizeof key, &skb->sk);
	struct flow *f = flow_of(key);
	if (!f)
		return 0;
	struct segment s = {};
	if (f->r.protocol == TCP && (!tcp_segment(skb, &s) || !s.length))
		return 0;
	u64 now = bpf_ktime_get_ns();
	account(f, now);
	if (f->r.protocol == UDP)
		f->started = after(f->queued, f->started) ? f->started + 1 : f->queued;
	else if (after(s.seq + s.length, f->started))
		f->started = s.seq + s.length;
	if (f->again) {
		if (after(f->again, f->started))
			f->started = f->again;
		f->again = 0;
	}
	if (!f->r.device)
		f->r.device = device->ifindex;
	f->in_driver = 1;
	if (!f->r.sent_at && f->phase == WRITING)
		f->r.sent_at = now;
	struct processor *p = this_processor();
	if (p)
		p->driver_sk = key;
	if (f->held)
		see_held(f);
	update(f, now);
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(sent, struct sk_buff *skb, int result)
{
	struct processor *p = this_processor();
	if (!p || !p->driver_sk)
		return 0;
	struct flow *f = flow_of(p->driver_sk);
	p->driver_sk = 0;
	if (!f)
		return 0;
	u64 now = bpf_ktime_get_ns();
	account(f, now);
	f->in_driver = 0;
	update(f, now);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(retransmit, const struct sock *sk, const struct sk_buff *skb)
{
	struct flow *f = flow_of(address(sk));
	if (!f)
		return 0;
	account(f, bpf_ktime_get_ns());
	s64 waited = f->stages[FAR_UNACKED] - f->far_mark;
	if (waited > 0) {
		f->stages[FAR_UNACKED] -= waited;
		f->stages[RETRANSMISSION] += waited;
	}
	f->far_mark = f->stages[FAR_UNACKED];
	struct inet_connection_sock *icsk = (void *)f->sk;
	if (BPF_CORE_READ_BITFIELD_PROBED(icsk, icsk_ca_state) == 4)
		f->r.timeouts++;
	else
		f->r.fast++;
	if (!f->r.has_lost) {
		f->r.has_lost = 1;
		f->r.first_lost = *(u32 *)&skb->cb[0] - f->first;
	}
	return 0;
}

/* ---- receiving ---- */

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(receive, struct sk_buff *skb)
{
	struct processor *p = this_processor();
	if (!p)
		return 0;
	u64 key = p->skb = (u64)skb;
	p->came = bpf_ktime_get_ns();
	if (steers) {
		u64 *entered_at = bpf_map_lookup_elem(&entered, &key);
		p->entered = entered_at ? *entered_at : 0;
		bpf_map_delete_elem(&entered, &key);
	}
	p->sk = 0;
	p->device = skb->dev->ifindex;
	if (p->first < 2)
		p->first++;
	return 0;
}

/* A packet that may be steered to another processor (RPS) waits there from now on. */
static __always_inline int enters(const struct sk_buff *skb)
{
	u64 key = (u64)skb, now = bpf_ktime_get_ns();
	bpf_map_update_elem(&entered, &key, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/netif_receive_skb_entry")
int BPF_PROG(enters_stack, const struct sk_buff *skb) { return enters(skb); }

SEC("tp_btf/netif_rx_entry")
int BPF_PROG(enters_backlog, const struct sk_buff *skb) { return enters(skb); }

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(enters_gro, const struct sk_buff *skb) { return enters(skb); }

/* New data enters the stack: `came` is when, `now` when the socket gets it. */
static __always_inline void data_came(struct flow *f, struct processor *p, u64 key, u64 came, u64 now)
{
	u64 asked = p->entered ? p->entered : p->raised;
	u64 raised = asked && asked < came && came - asked < SECOND ? asked : 0;
	if (f->r.role != ASKS && (f->phase == IDLE || f->phase == WRITING)) {
		/* The softirq may have been raised for a packet before this one. */
		u64 from = raised && (p->first == 1 || p->entered) ? raised : came;
		if (f->phase == WRITING && !f->ended) {
			/* The call that wrote the answer goes on, or the answer does. */
			if (by_network(f) && !f->in_write)
				f->r.partial |= PIPELINED;
			account(f, from);
			snap(f);
		}
		emit(f);
		begin(f, from, READING);
		f->first = f->queued;
		f->r.seq = f->copied;
	}
	if (!f->r.came_at)
		f->r.came_at = came;
	if (raised && p->by_timer)
		f->r.timer_polls++;
	if (raised) {
		account(f, raised);
		if (f->last == raised)
			f->state = SOFTIRQ;
	}
	account(f, came);
	f->in_driver = 0;
	f->state = STACK_IN;
	f->r.device = p->device;
	f->r.segments_in++;
	p->sk = key;
	p->sk_at = now;
	/* The thread that reads this socket may be at work for another one. */
	struct thread *t = thread_of(f->r.tid);
	if (t) {
		f->thread = t->state;
		f->class = t->class;
		f->woken = t->woken;
	} else {
		f->r.partial |= THREAD_UNKNOWN;
	}
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(segment, struct sock *sk, const struct sk_buff *skb)
{
	u64 key = address(sk);
	struct flow *f = flow_of(key);
	struct processor *p = f ? this_processor() : 0;
	struct tcp_sock *tp = p ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!tp)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 came = p->skb == (u64)skb && now - p->came < SECOND ? p->came : now;
	u32 seq = *(u32 *)&skb->cb[0], end = *(u32 *)&skb->cb[4];
	u32 ack = *(u32 *)&skb->cb[bpf_core_field_offset(struct tcp_skb_cb, ack_seq)];
	struct tcphdr header;
	void *data = skb->data;
	if (!bpf_probe_read_kernel(&header, sizeof header, data))
		f->window_end = ack + ((u32)bpf_ntohs(header.window) << BPF_CORE_READ_BITFIELD(tp, rx_opt.snd_wscale));
	f->copied = tp->copied_seq;
	f->rcv_nxt = tp->rcv_nxt;
	bool fresh = after(end, f->rcv_nxt);
	if (fresh) {
		/* Sent before the far side had what this request, or answer, begins or ends with. */
		bool early = f->r.role == ASKS ? f->phase != IDLE && !after(ack, f->first)
			   : f->r.role == ANSWERS && f->phase == WRITING && after(f->queued, ack);
		data_came(f, p, key, came, now);
		if (early)
			f->r.partial |= PIPELINED;
	} else
		account(f, came);
	if (after(ack, f->snd_una)) {
		f->snd_una = ack;
		f->far_mark = f->stages[FAR_UNACKED];
	}
	if (f->held)
		see_held(f);
	if (!fresh) {
		update(f, now);
		return 0;
	}
	f->parts = 1;
	if (after(seq, f->rcv_nxt)) {
		f->out_of_order = 1;
	} else {
		f->rcv_nxt = end;
		f->out_of_order = tp->out_of_order_queue.rb_node != 0;
	}
	if (f->phase == IDLE)
		f->state = UNACCOUNTED;
	else if (f->out_of_order && !after(f->rcv_nxt, f->copied))
		f->state = OUT_OF_ORDER;
	return 0;
}

/* Data is in the socket, whose readers are woken next. */
SEC("tp_btf/sk_data_ready")
int BPF_PROG(ready, const struct sock *sk)
{
	struct flow *f = flow_of(address(sk));
	struct processor *p = f ? this_processor() : 0;
	if (!p)
		return 0;
	u64 now = bpf_ktime_get_ns();
	if (f->r.protocol == UDP) {
		u64 came = now - p->came < SECOND ? p->came : now;
		f->waiting[f->rcv_nxt & (WAITING - 1)] = came;
		f->rcv_nxt++;
		if (f->r.role == ASKS && f->phase == IDLE)
			return 0;
		if (f->r.role == ASKS || f->rcv_nxt == f->copied + 1)
			data_came(f, p, f->sk, came, now);
		f->parts = 1;
	}
	account(f, now);
	if (f->phase != IDLE)
		f->state = f->thread == RUNS || f->class != WAITS_READING ? classify(f) : STACK_IN;
	return 0;
}

static __always_inline void finish_read(struct flow *f, u64 now)
{
	struct thread *t = thread_of(bpf_get_current_pid_tgid());
	if (t && f->r.role == ANSWERS)
		t->serves = f->sk;
	f->r.reads++;
	f->woken = 0;
	/* What the far side says by itself, long after the connection was opened, was not asked for. */
	if (f->phase == CONNECTED && now - f->mark_at > FOR_IT)
		f->phase = IDLE;
	if (f->phase == IDLE)
		return;
	if (f->r.role == ANSWERS) {
		f->mark_at = now;
		__builtin_memcpy(f->mark, f->stages, sizeof f->mark);
	} else {
		if (f->r.role == ASKS)
			f->phase = READING;
		snap(f);
	}
	if (f->r.role == RECEIVES && !after(f->rcv_nxt, f->copied)) {
		emit(f);
		f->phase = IDLE;
	}
	f->state = classify(f);
}

/* What waited from `from` to `to` for the thread that runs now: a wake-up, or its other work. */
static __always_inline void waited(struct flow *f, u64 from, u64 to)
{
	struct thread *t = thread_of(bpf_get_current_pid_tgid());
	if (!t || !t->ran_at) {
		f->stages[UNACCOUNTED] += to - from;
		f->r.partial |= THREAD_UNKNOWN;
	} else if (t->ran_at <= from || t->woken_at < from) {
		f->stages[ELSEWHERE] += to - from;
	} else {
		f->stages[STACK_IN] += t->woken_at - from;
		f->stages[WAKE_UP] += t->ran_at - t->woken_at;
		f->stages[READ] += to - t->ran_at;
	}
	f->last = to;
}

/*
 * The first read of a socket that a program has accepted: nothing of it was followed before, since
 * it was not known whose it would be. TCP has kept when the data came.
 */
static __always_inline void first_read(struct flow *f, struct tcp_sock *tp, u64 now)
{
	u64 came = BPF_CORE_READ(tp, tcp_clock_cache);
	u64 length = BPF_CORE_READ(tp, bytes_received) - (u32)(f->rcv_nxt - f->copied);
	if (f->r.role == ASKS || came >= now || now - came > SECOND)
		return;
	begin(f, came, READING);
	f->first = f->queued;
	f->r.segments_in = 1;
	f->parts = 1;
	if (BPF_CORE_READ(tp, data_segs_out) || length > 1 << 30)
		f->r.partial |= BEGAN_BEFORE;
	else
		f->copied -= length;
	f->r.seq = f->copied;
	f->r.came_at = came;
	waited(f, came, now);
}

/* A part of a segment was copied to the program, by whatever call. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(tcp_read, struct sock *sk)
{
	u64 key = address(sk);
	bool is_new = !flow_of(key);
	struct flow *f = follow(key);
	struct tcp_sock *tp = f ? bpf_skc_to_tcp_sock(sk) : 0;
	if (!tp)
		return 0;
	u64 now = bpf_ktime_get_ns();
	if (is_new)
		first_read(f, (void *)key, now);
	u32 copied = tp->copied_seq, length = copied - f->copied;
	account(f, now);
	touch(f, key);
	f->copied = copied;
	f->rcv_nxt = tp->rcv_nxt;
	f->out_of_order = tp->out_of_order_queue.rb_node != 0;
	/* Who only looks (MSG_PEEK) takes nothing. */
	if (!length || length > 1 << 30)
		return 0;
	f->r.bytes_in += length;
	finish_read(f, now);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(udp_read, struct sock *sk, int length, int flags)
{
	/* 2: MSG_PEEK. */
	if (sk->sk_protocol != UDP || length < 0 || flags & 2)
		return 0;
	u64 key = address(sk);
	struct flow *f = follow(key);
	if (!f)
		return 0;
	u64 now = bpf_ktime_get_ns();
	bool known = after(f->rcv_nxt, f->copied);
	if (!known)
		f->rcv_nxt++;
	u64 came = known ? f->waiting[f->copied & (WAITING - 1)] : now;
	f->copied++;
	if (f->r.role != ASKS && came < now && (f->phase != READING || f->r.reads)) {
		/* It came while the program was at work for the one before. */
		if (f->ended)
			emit(f);
		begin(f, came, READING);
		f->first = f->queued;
		f->state = ELSEWHERE;
		f->r.segments_in = 1;
	}
	account(f, now);
	touch(f, key);
	f->r.bytes_in += length;
	finish_read(f, now);
	return 0;
}

/* A connection is asked for, by a program; and is there. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state, const struct sock *sk, int from, int to)
{
	if (to != SYN_SENT && from != SYN_SENT)
		return 0;
	u64 key = address(sk);
	struct flow *f = to == SYN_SENT && !receives ? follow(key) : flow_of(key);
	if (!f || f->r.protocol != TCP)
		return 0;
	u64 now = bpf_ktime_get_ns();
	if (to == SYN_SENT) {
		f->r.role = ASKS;
		begin(f, now, CONNECTING);
		touch(f, key);
	} else if (to == ESTABLISHED) {
		account(f, now);
		see_socket(f);
		f->phase = CONNECTED;
		f->mark_at = now;
		f->first = f->queued;
	} else {
		f->phase = IDLE;
	}
	f->state = classify(f);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(destroy, struct sock *sk)
{
	u64 key = address(sk);
	struct flow *f = flow_of(key);
	if (!f)
		return 0;
	f->r.partial |= CLOSED;
	emit(f);
	bpf_map_delete_elem(&flows, &key);
	return 0;
}

/* ---- softirqs, timers ---- */

SEC("tp_btf/softirq_raise")
int BPF_PROG(raise, unsigned int vector)
{
	struct processor *p;
	if (vector != NET_RX || !(p = this_processor()) || p->raised)
		return 0;
	p->raised = bpf_ktime_get_ns();
	p->by_timer = p->in_timer;
	p->first = 0;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ends, unsigned int vector)
{
	struct processor *p;
	if (vector == NET_RX && (p = this_processor()))
		p->raised = 0;
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(timer_begins, void *timer)
{
	struct processor *p = this_processor();
	if (p)
		p->in_timer = 1;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(timer_ends, void *timer)
{
	struct processor *p = this_processor();
	if (p)
		p->in_timer = 0;
	return 0;
}

/* ---- threads ---- */

/* Tells a flow what its thread does. */
static __noinline int show_thread(u64 sk, struct thread *t, u32 tid, u64 now)
{
	struct flow *f = flow_of(sk);
	if (!f || !t || f->r.tid != tid)
		return 0;
	account(f, now);
	if (t->state != IS_BLOCKED && f->thread == IS_BLOCKED && f->phase != IDLE
	    && (f->class == NO_CALL || f->class >= WAITS_LOCK || f->elsewhere)) {
		u64 from = t->blocked_at > f->r.begin ? t->blocked_at : f->r.begin;
		if ((s64)(now - from) > (s64)f->r.block) {
			f->r.block = now - from;
			f->r.block_call = t->call;
			f->r.block_stack = t->stack;
		}
	}
	f->thread = t->state;
	f->class = t->class;
	f->woken = t->woken;
	f->elsewhere = t->sk != sk;
	return update(f, now);
}

static __always_inline void show(struct thread *t, u32 tid, u64 now)
{
	u64 sk = t->sk, serves = t->serves;
	show_thread(sk, t, tid, now);
	if (serves && serves != sk)
		show_thread(serves, t, tid, now);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waking, struct task_struct *task)
{
	u32 tid = task->pid;
	struct thread *t = thread_of(tid);
	if (!t || t->state != IS_BLOCKED)
		return 0;
	u64 now = bpf_ktime_get_ns();
	struct processor *p = this_processor();
	t->state = RUNNABLE;
	t->woken_at = now;
	t->woken = t->class == WAITS_READING || t->class == WAITS_POLLING;
	if (p && p->sk && now - p->sk_at < 100000) {
		t->woken = 1;
		if (t->sk != p->sk) {
			t->sk = p->sk;
			struct flow *f = flow_of(t->sk);
			if (f)
				f->r.tid = tid;
		}
	}
	show(t, tid, now);
	return 0;
}

static __always_inline void leaves(void *ctx, struct task_struct *task, bool blocks, u64 now)
{
	u32 tid = task->pid;
	struct thread *t = thread_of(tid);
	if (!t)
		return;
	t->woken = 0;
	t->state = RUNNABLE;
	t->computed += now - t->ran_at;
	if (blocks) {
		u32 call = call_of((void *)bpf_task_pt_regs(task));
		u8 class = call < CALLS ? calls[call & (CALLS - 1)] & CALL_CLASS : 0;
		if (!class && BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
			class = WAITS_DISK;
		t->state = IS_BLOCKED;
		t->class = class;
		t->call = call;
		t->blocked_at = now;
		t->stack = NO_STACK;
		if (with_stacks && class != WAITS_READING && class != WAITS_POLLING)
			t->stack = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK | BPF_F_FAST_STACK_CMP);
	}
	show(t, tid, now);
}

static __always_inline void switched(void *ctx, struct task_struct *from, struct task_struct *to, bool blocks)
{
	u32 tid = to->pid;
	bool leaving = maybe_thread(from->pid), coming = maybe_thread(tid);
	if (!leaving && !coming)
		return;
	u64 now = bpf_ktime_get_ns();
	if (leaving)
		leaves(ctx, from, blocks, now);
	struct thread *t = coming ? thread_of(tid) : 0;
	if (!t)
		return;
	t->state = RUNS;
	t->ran_at = now;
	if (t->first_ran_at < t->woken_at) {
		t->first_ran_at = now;
		t->computed = 0;
	}
	show(t, tid, now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(new_switch, bool preempt, struct task_struct *from, struct task_struct *to, unsigned int state)
{
	switched(ctx, from, to, !preempt && state);
	return 0;
}

/* Before Linux 5.18. */
SEC("tp_btf/sched_switch")
int BPF_PROG(old_switch, bool preempt, struct task_struct *from, struct task_struct *to)
{
	switched(ctx, from, to, !preempt && from->__state);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(thread_ends, struct task_struct *task)
{
	u32 tid = task->pid;
	if (maybe_thread(tid))
		bpf_map_delete_elem(&threads, &tid);
	return 0;
}

/* What a process starts is looked at as it is; and what the loader starts. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(forked, struct task_struct *parent, struct task_struct *child)
{
	u32 one = 1, from = process_of(parent), to = process_of(child);
	if (!from || !to)
		return 0;
	if (bpf_map_lookup_elem(&targets, &from) || (from == loader && from != to)) {
		bpf_map_update_elem(&targets, &to, &one, BPF_ANY);
		new_thread(child->pid);
	}
	return 0;
}
