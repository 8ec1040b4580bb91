/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The fields of the kernel that are read. Their places are those of the kernel that runs: the
 * loader finds them by name in its BTF (CO-RE), so nothing else of these structures matters here.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Processes and files. */
struct ns_common { unsigned int inum; };
struct pid_namespace { struct ns_common ns; };
struct upid { int nr; struct pid_namespace *ns; };
struct pid { unsigned int level; struct upid numbers[1]; };
struct inode { unsigned short i_mode; };
struct file { struct inode *f_inode; void *private_data; };
struct fdtable { unsigned int max_fds; struct file **fd; };
struct files_struct { struct fdtable *fdt; };
struct task_struct {
	unsigned int __state, flags;
	int pid, tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
	unsigned int in_iowait : 1;
};
struct pt_regs { unsigned long di, dx, orig_ax; };

/* Sockets. */
struct in6_addr { u8 s6_addr[16]; };
struct sock_common {
	u32 skc_daddr, skc_rcv_saddr;
	u16 skc_dport, skc_num;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct sock { struct sock_common __sk_common; u8 sk_userlocks : 4; u16 sk_protocol; };
struct socket { struct sock *sk; };
struct inet_connection_sock { u8 icsk_ca_state : 5; };
struct minmax_sample { u32 t, v; };
struct minmax { struct minmax_sample s[3]; };
struct tcp_options_received { u16 snd_wscale : 4; };
struct rb_node;
struct rb_root { struct rb_node *rb_node; };
struct tcp_sock {
	u32 write_seq, copied_seq, rcv_nxt, rcv_wup, snd_nxt, snd_una, snd_wnd, mss_cache, packets_out;
	u32 snd_cwnd, snd_ssthresh, srtt_us;
	u32 data_segs_out;
	u64 bytes_sent, bytes_retrans, bytes_acked, bytes_received, tcp_clock_cache;
	struct minmax rtt_min;
	struct tcp_options_received rx_opt;
	struct rb_root out_of_order_queue;
	u8 nonagle : 4, is_cwnd_limited : 1;
};

/* Packets. */
struct net_device { int ifindex; };
struct napi_struct { unsigned int napi_id; };
struct sk_buff {
	struct sock *sk;
	struct net_device *dev;
	char cb[48];
	unsigned int len;
	u16 protocol, transport_header, network_header;
	unsigned char *head, *data;
};
struct tcp_skb_cb { u32 seq, end_seq, ack_seq; };

#pragma clang attribute pop

/* On the wire. */
struct tcphdr {
	u16 source, dest;
	u32 seq, ack_seq;
	u16 res1 : 4, doff : 4, flags : 8;
	u16 window, check, urg_ptr;
};
