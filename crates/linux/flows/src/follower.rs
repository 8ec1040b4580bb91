//! Loads the kernel side, and reads what it records.

use std::fs;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aya::maps::{HashMap, MapData, PerCpuArray, RingBuf, StackTraceMap};
use aya::programs::Program;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf, EbpfLoader, Pod, include_bytes_aligned};
use aya_obj::btf::BtfKind;

use super::FlowError;
use crate::histograms::{self, FlowGrouping, StageHistogram};
use crate::record::TracedRequest;
use crate::{calls, kernel, raw};

/// What the kernel side counts, in the order of its `enum counter`.
const COUNTERS: u32 = 3;

/// Groups that have histograms, at most: pairs of a device or a cgroup and a role.
const GROUPS: u32 = 256;

/// Room for records that are not read yet, in bytes: ten thousand.
const ROOM: u32 = 1 << 22;

/// Stacks of user space that are kept at most, if any are.
const STACKS: u32 = 4_096;

/// Words of eight bytes in `struct flow` of `bpf/flows.bpf.c`.
const FLOW_WORDS: usize = 143;
/// The same of `struct thread`.
const THREAD_WORDS: usize = 10;

/// Whose requests are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowScope {
    /// Those of processes that are named later ([`FlowFollower::follow`]), and of what they start.
    Processes,
    /// Those of what this process starts from now on.
    Children,
    /// Those of a cgroup and of cgroups below it: its directory, in `/sys/fs/cgroup` or as an
    /// absolute path.
    Cgroup(PathBuf),
    /// Those of all programs of this machine over TCP connections with one other host.
    With(IpAddr),
    /// What all programs of this machine receive.
    Received,
    /// All requests of this machine. They are put into histograms
    /// ([`FlowFollower::histograms`]), and shown one by one no more.
    Everything(FlowGrouping),
}

/// What is followed beside what all are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDetail {
    /// Writes are seen as system calls even where the socket shows them; UDP begins with the call
    /// then, and each system call of this machine costs a little more.
    pub by_calls: bool,
    /// The stack of user space is kept where a thread is blocked by something else than its socket.
    pub stacks: bool,
}

/// A tracepoint that the kernel does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingHook {
    /// The name of the tracepoint, without its group.
    pub tracepoint: &'static str,
    /// What is missing without it.
    pub effect: &'static str,
}

/// What was followed, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Requests that ended.
    pub requests: u64,
    /// Of these, those for whose record there was no room.
    pub lost_records: u64,
    /// Sockets for which there was no room.
    pub lost_flows: u64,
}

/// A program of the kernel side: its name, the tracepoint, and what is missing without it;
/// nothing: it does not work at all then.
struct Hook(&'static str, &'static str, Option<&'static str>);

/// What takes part in all that is received.
const RECEIVING: [Hook; 11] = [
    Hook("receive", "netif_receive_skb", None),
    Hook("segment", "tcp_probe", None),
    Hook("ready", "sk_data_ready", Some("UDP is not followed (Linux 6.3 has it)")),
    Hook("tcp_read", "tcp_rcv_space_adjust", None),
    Hook("udp_read", "sock_recv_length", Some("UDP is not followed (Linux 6.3 has it)")),
    Hook("destroy", "tcp_destroy_sock", None),
    Hook("raise", "softirq_raise", None),
    Hook("softirq_ends", "softirq_exit", None),
    Hook("waking", "sched_waking", None),
    Hook("thread_ends", "sched_process_exit", None),
    Hook("forked", "sched_process_fork", None),
];

/// What takes part in all that is sent.
const SENDING: [Hook; 5] = [
    Hook("queue", "net_dev_queue", None),
    Hook("start", "net_dev_start_xmit", None),
    Hook("sent", "net_dev_xmit", None),
    Hook("retransmit", "tcp_retransmit_skb", None),
    Hook("state", "inet_sock_set_state", None),
];

/// Writes, as the socket sees them.
const WRITES: [Hook; 2] =
    [Hook("new_write", "tcp_sendmsg_locked", None), Hook("new_written", "sock_send_length", None)];

/// Writes, as system calls.
const WRITE_CALLS: [Hook; 2] =
    [Hook("old_write", "sys_enter", None), Hook("old_written", "sys_exit", None)];

/// Whether a timer asks for the poll.
const TIMERS: [Hook; 2] = [
    Hook("timer_begins", "hrtimer_expire_entry", None),
    Hook("timer_ends", "hrtimer_expire_exit", None),
];

/// When packets that are steered to another processor came.
const ENTRIES: [Hook; 3] = [
    Hook("enters_stack", "netif_receive_skb_entry", None),
    Hook("enters_backlog", "netif_rx_entry", None),
    Hook("enters_gro", "napi_gro_receive_entry", None),
];

/// Requests, while they are followed.
pub struct FlowFollower {
    ebpf: Ebpf,
    ring: RingBuf<MapData>,
    hooks: Vec<(&'static str, &'static str)>,
    missing: Vec<MissingHook>,
    links: Vec<(&'static str, BtfTracePointLinkId)>,
    last_id: u64,
}

impl FlowFollower {
    /// Loads the kernel side. Nothing is followed before [`FlowFollower::start`].
    ///
    /// # Errors
    /// If the kernel has no BTF, lacks what this takes, or refuses it.
    pub fn open(scope: &FlowScope, detail: FlowDetail) -> Result<Self, FlowError> {
        let btf = kernel::types()?;
        let has = |tracepoint: &str| {
            let name = format!("btf_trace_{tracepoint}");
            btf.id_by_type_name_kind(&name, BtfKind::Typedef).is_ok()
        };
        let has_udp = RECEIVING.iter().all(|hook| hook.2.is_none() || has(hook.1));
        let mut ebpf = load(scope, &btf, has_udp, detail.stacks)?;
        let by_calls = detail.by_calls || !WRITES.iter().all(|hook| has(hook.1));
        let mut wanted: Vec<Hook> = Vec::from(RECEIVING);
        if *scope != FlowScope::Received {
            wanted.extend(SENDING);
            wanted.extend(if by_calls { WRITE_CALLS } else { WRITES });
        }
        if is_any(&["gro_flush_timeout"]) {
            wanted.extend(TIMERS);
        }
        if steers() {
            wanted.extend(ENTRIES);
        }
        let (mut hooks, mut missing) = (Vec::new(), Vec::new());
        for Hook(name, tracepoint, effect) in wanted {
            match (has(tracepoint), effect) {
                (true, _) => {
                    kernel::check(&mut ebpf, &btf, name, tracepoint)?;
                    hooks.push((name, tracepoint));
                }
                (false, Some(effect)) => missing.push(MissingHook { tracepoint, effect }),
                (false, None) => return Err(FlowError::NoTracepoint(tracepoint)),
            }
        }
        // Its arguments have changed with Linux 5.18.
        let switch = match kernel::check(&mut ebpf, &btf, "new_switch", "sched_switch") {
            Ok(()) => "new_switch",
            Err(error @ FlowError::NotAllowed) => return Err(error),
            Err(_) => {
                kernel::check(&mut ebpf, &btf, "old_switch", "sched_switch")?;
                "old_switch"
            }
        };
        hooks.push((switch, "sched_switch"));
        let ring = ebpf.take_map("records").ok_or(FlowError::NoMap("records"))?;
        let ring = RingBuf::try_from(ring).map_err(|cause| FlowError::Map(cause.to_string()))?;
        Ok(Self { ebpf, ring, hooks, missing, links: Vec::new(), last_id: 0 })
    }

    /// Follows what process `pid`, as numbered in this process's namespace, does from now on.
    pub fn follow(&mut self, pid: u32) -> Result<(), FlowError> {
        let map = self.ebpf.map_mut("targets").ok_or(FlowError::NoMap("targets"))?;
        let mut targets: HashMap<_, u32, u32> =
            HashMap::try_from(map).map_err(|cause| FlowError::Map(cause.to_string()))?;
        targets.insert(pid, 1, 0).map_err(|cause| FlowError::Map(cause.to_string()))
    }

    /// Begins to follow, or goes on with it.
    pub fn start(&mut self) -> Result<(), FlowError> {
        for (name, tracepoint) in &self.hooks {
            self.links.push((name, kernel::attach(&mut self.ebpf, name, tracepoint)?));
        }
        Ok(())
    }

    /// Stops until [`FlowFollower::start`]: nothing costs anything meanwhile. What requests that
    /// are under way wait for then is not known afterwards, so they are forgotten.
    pub fn stop(&mut self) -> Result<(), FlowError> {
        for (name, link) in self.links.drain(..) {
            if let Some(Program::BtfTracePoint(program)) = self.ebpf.program_mut(name) {
                program.detach(link).map_err(|cause| FlowError::Attach(name, cause.to_string()))?;
            }
        }
        self.clear::<u64, FLOW_WORDS>("flows")?;
        self.clear::<u32, THREAD_WORDS>("threads")
    }

    fn clear<K: Pod, const WORDS: usize>(&mut self, name: &'static str) -> Result<(), FlowError> {
        let map = self.ebpf.map_mut(name).ok_or(FlowError::NoMap(name))?;
        let mut map: HashMap<_, K, [u64; WORDS]> =
            HashMap::try_from(map).map_err(|cause| FlowError::Map(cause.to_string()))?;
        let keys: Vec<K> = map.keys().filter_map(Result::ok).collect();
        // What a program of the kernel side that still runs has removed is gone as well.
        keys.iter().for_each(|key| drop(map.remove(key)));
        Ok(())
    }

    /// Has the kernel measure what the programs cost, as long as the result lives; see
    /// [`FlowFollower::cost`].
    pub fn measure_cost() -> Result<OwnedFd, FlowError> {
        aya::sys::enable_stats(aya::sys::Stats::RunTime)
            .map_err(|cause| FlowError::Map(cause.to_string()))
    }

    /// The histograms of [`FlowScope::Everything`].
    pub fn histograms(&self) -> Result<Vec<StageHistogram>, FlowError> {
        histograms::read(&self.ebpf)
    }

    /// Shows the requests that have ended since the last time.
    pub fn read(&mut self, mut each: impl FnMut(TracedRequest)) {
        while let Some(record) = self.ring.next() {
            if let Some(mut request) = raw::request(&record) {
                self.last_id += 1;
                request.id = self.last_id;
                each(request);
            }
        }
    }

    /// The stack of user space with this number ([`crate::record::LongestBlock`]): addresses, the
    /// innermost first; none if it was not kept.
    pub fn stack(&self, number: u32) -> Vec<u64> {
        let map = self.ebpf.map("stacks").and_then(|map| StackTraceMap::try_from(map).ok());
        let stack = map.and_then(|map| map.get(&number, 0).ok());
        stack.map_or(Vec::new(), |stack| stack.frames().iter().map(|frame| frame.ip).collect())
    }

    /// The tracepoints that are in use.
    pub fn tracepoints(&self) -> Vec<&'static str> {
        self.hooks.iter().map(|(_, tracepoint)| *tracepoint).collect()
    }

    /// The tracepoints that this kernel lacks, and what is missing for it.
    pub fn missing(&self) -> &[MissingHook] {
        &self.missing
    }

    /// What was counted so far.
    pub fn counts(&self) -> FlowCounts {
        let counters = self.ebpf.map("counters").and_then(|map| PerCpuArray::try_from(map).ok());
        let Some(counters): Option<PerCpuArray<_, u64>> = counters else {
            return FlowCounts::default();
        };
        let [requests, lost_records, lost_flows] = std::array::from_fn(|which| {
            debug_assert!((which as u32) < COUNTERS);
            counters.get(&(which as u32), 0).map_or(0, |all| all.iter().sum())
        });
        FlowCounts { requests, lost_records, lost_flows }
    }

    /// How often each program has run and for how many nanoseconds in all, by its tracepoint; zeros
    /// unless the kernel measures it ([`FlowFollower::measure_cost`], or `sysctl
    /// kernel.bpf_stats_enabled=1`).
    pub fn cost(&self) -> Vec<(&'static str, u64, u64)> {
        let info = |name: &str| match self.ebpf.program(name)? {
            Program::BtfTracePoint(program) => program.info().ok(),
            _ => None,
        };
        let cost = |(name, tracepoint): &(&str, &'static str)| {
            let info = info(name)?;
            Some((*tracepoint, info.run_count(), info.run_time().as_nanos() as u64))
        };
        self.hooks.iter().filter_map(cost).collect()
    }
}

/// Reads the object, and says what is to be looked at.
fn load(scope: &FlowScope, btf: &Btf, has_udp: bool, stacks: bool) -> Result<Ebpf, FlowError> {
    let namespace = kernel::namespace()?;
    let loader = if *scope == FlowScope::Children { std::process::id() } else { 0 };
    let (cgroup, level) = match scope {
        FlowScope::Cgroup(path) => cgroup_of(path)?,
        _ => (0, 0),
    };
    let receives = u8::from(*scope == FlowScope::Received);
    let (grouping, groups, room) = match scope {
        FlowScope::Everything(grouping) => (*grouping as u8, GROUPS, 4_096),
        _ => (0, 1, ROOM),
    };
    let (has_peer, peer) = match scope {
        FlowScope::With(host) => (1_u8, octets_of(*host)),
        _ => (0, [0; 16]),
    };
    let everything = u8::from(receives != 0 || grouping != 0 || has_peer != 0);
    let (with_stacks, stacks) = if stacks { (1_u8, STACKS) } else { (0, 1) };
    let (calls, udp, steers) = (calls::table(), u8::from(has_udp), u8::from(steers()));
    let object = include_bytes_aligned!("../bpf/flows.bpf.o");
    EbpfLoader::new()
        .btf(Some(btf))
        .override_global("namespace", &namespace, true)
        .override_global("loader", &loader, true)
        .override_global("cgroup", &cgroup, true)
        .override_global("cgroup_level", &level, true)
        .override_global("follow_all", &everything, true)
        .override_global("receives", &receives, true)
        .override_global("grouping", &grouping, true)
        .override_global("follow_udp", &udp, true)
        .override_global("steers", &steers, true)
        .override_global("calls", &calls, true)
        .override_global("has_peer", &has_peer, true)
        .override_global("peer", &peer, true)
        .override_global("with_stacks", &with_stacks, true)
        .map_max_entries("stacks", stacks)
        .map_max_entries("histograms", groups)
        .map_max_entries("records", room)
        .load(object)
        .map_err(|cause| kernel::refused(&cause))
}

/// An address as the kernel side compares it: as one of IPv6.
fn octets_of(host: IpAddr) -> [u8; 16] {
    match host {
        IpAddr::V4(host) => host.to_ipv6_mapped().octets(),
        IpAddr::V6(host) => host.octets(),
    }
}

/// The number and the depth of a cgroup.
fn cgroup_of(path: &Path) -> Result<(u64, u32), FlowError> {
    let root = Path::new("/sys/fs/cgroup");
    let path = root.join(path);
    let found = fs::metadata(&path).map_err(|cause| FlowError::Read(path.clone(), cause))?;
    // Its hierarchy may be mounted anywhere; the root of it is the last directory of that device.
    let is_inside = |path: &&Path| fs::metadata(path).is_ok_and(|it| it.dev() == found.dev());
    let depth = path.ancestors().take_while(is_inside).count().saturating_sub(1);
    Ok((found.ino(), depth as u32))
}

/// Whether packets of some device are steered to other processors (RPS).
fn steers() -> bool {
    is_any(&["queues", "rps_cpus"])
}

/// Whether a file of some device has another number than 0: one of the device's directory, or, of
/// two names, one in the directories of a directory.
fn is_any(names: &[&str]) -> bool {
    let devices = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let is_set = |path: &Path| {
        // A mask of processors has commas.
        let text = fs::read_to_string(path).unwrap_or_default();
        text.trim().chars().any(|digit| !matches!(digit, '0' | ','))
    };
    devices.into_iter().any(|device| match names {
        [name] => is_set(&device.path().join(name)),
        [directory, name] => {
            let inner = fs::read_dir(device.path().join(directory)).into_iter().flatten().flatten();
            inner.into_iter().any(|entry| is_set(&entry.path().join(name)))
        }
        _ => false,
    })
}
