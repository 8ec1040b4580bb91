/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What all objects of this directory have. */
#pragma once

#include "kernel.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MAP(name, kind, entries, k, v) \
	struct { __uint(type, kind); __uint(max_entries, entries); __type(key, k); __type(value, v); } name SEC(".maps")

/* The PID namespace of the loader: its inode; 0: the first one. */
const volatile u32 namespace = 0;

/* The process of a task as the PID namespace of the loader numbers it; 0: it is not in there. */
static __always_inline u32 process_of(struct task_struct *task)
{
	if (!namespace)
		return task->tgid;
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	for (u32 i = 1; i < 8 && i <= level; i++) {
		struct upid *upid = (void *)pid + bpf_core_field_offset(struct pid, numbers)
				    + i * bpf_core_type_size(struct upid);
		if (BPF_CORE_READ(upid, ns, ns.inum) == namespace)
			return BPF_CORE_READ(upid, nr);
	}
	return 0;
}
