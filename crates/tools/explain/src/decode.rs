//! From records of tracepoints to events. Pure.
//!
//! A record has two numbers of its thread: the one that the namespace of the traced processes
//! uses, in its stamp, and the one that all of the kernel uses, in its first fields. Woken threads
//! carry the latter, context switches the former. Events bear the latter; the pairs are
//! learnt as they come.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tracepoints::format::{Field, Format};
use tracepoints::record::{Record, Stamp};

use super::event::{Context, TraceEvent, What};

#[cfg(test)]
pub(crate) const KNOWN: [&str; 16] = [
    "raw_syscalls:sys_enter",
    "raw_syscalls:sys_exit",
    "sock:sock_send_length",
    "sock:sock_recv_length",
    "sock:sk_data_ready",
    "net:net_dev_queue",
    "net:net_dev_start_xmit",
    "net:net_dev_xmit",
    "net:netif_receive_skb",
    "irq:irq_handler_entry",
    "irq:softirq_raise",
    "irq:softirq_entry",
    "skb:skb_copy_datagram_iovec",
    "sched:sched_waking",
    "sched:sched_switch",
    CONNECTS,
];

/// A TCP socket changes its state: has the address that it connects to.
const CONNECTS: &str = "sock:inet_sock_set_state";

/// The software interrupt that receives (`NET_RX_SOFTIRQ`).
const NET_RX: u64 = 3;

/// `common_flags`: in an interrupt, in a software interrupt (`TRACE_FLAG_*`).
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;

/// The layout of one tracepoint, with the fields that are read.
struct Known {
    event: &'static str,
    task: Option<Field>,
    flags: Option<Field>,
    fields: [Option<Field>; 2],
}

/// Which fields a tracepoint's events are made of.
fn fields_of(event: &str) -> [&'static str; 2] {
    match event {
        "raw_syscalls:sys_enter" => ["args", ""],
        "sock:sock_send_length" | "sock:sock_recv_length" => ["sk", "ret"],
        "sock:sk_data_ready" => ["skaddr", ""],
        "irq:irq_handler_entry" => ["irq", ""],
        "irq:softirq_raise" | "irq:softirq_entry" => ["vec", ""],
        "sched:sched_waking" => ["pid", ""],
        "sched:sched_switch" => ["prev_pid", "next_pid"],
        CONNECTS => ["skaddr", ""],
        "net:netif_receive_skb" => ["skbaddr", "name"],
        _ => ["skbaddr", ""],
    }
}

pub(crate) struct Decoder {
    known: BTreeMap<u16, Known>,
    /// From the numbers of threads in their namespace to those of the kernel.
    tasks: BTreeMap<u32, u32>,
    pids: BTreeMap<u32, u32>,
    devices: Vec<String>,
    connects: Option<Format>,
    peers: BTreeMap<u64, SocketAddr>,
}

impl Decoder {
    /// Understands records of tracepoints with these layouts.
    pub(crate) fn new<'a>(formats: impl Iterator<Item = (&'static str, &'a Format)>) -> Self {
        let mut connects = None;
        let known = formats.map(|(event, format)| {
            if event == CONNECTS {
                connects = Some(format.clone());
            }
            let field = |name| format.field(name).cloned();
            let fields = fields_of(event).map(field);
            (
                format.id,
                Known { event, task: field("common_pid"), flags: field("common_flags"), fields },
            )
        });
        let known = known.collect();
        let (tasks, pids) = (BTreeMap::new(), BTreeMap::new());
        Self { known, tasks, pids, devices: Vec::new(), connects, peers: BTreeMap::new() }
    }

    pub(crate) fn device(&self, number: u16) -> &str {
        self.devices.get(usize::from(number)).map_or("?", String::as_str)
    }

    /// The address that a TCP socket was seen to connect to.
    pub(crate) fn peer(&self, socket: u64) -> Option<SocketAddr> {
        self.peers.get(&socket).copied()
    }

    /// The number that the kernel has for a thread of ours.
    pub(crate) fn task(&self, tid: u32) -> u32 {
        self.tasks.get(&tid).copied().unwrap_or(tid)
    }

    /// The process that a thread of the kernel's number belongs to, if our namespace has it.
    pub(crate) fn pid(&self, task: u32) -> Option<u32> {
        self.pids.get(&task).copied()
    }

    /// The number that our namespace has for a thread of the kernel.
    pub(crate) fn tid(&self, task: u32) -> u32 {
        self.tasks.iter().find(|(_, known)| **known == task).map_or(task, |(tid, _)| *tid)
    }

    /// Shows the events of a record to `look`: nothing, one event, or two.
    pub(crate) fn decode(&mut self, record: &Record<'_>, look: &mut impl FnMut(TraceEvent)) {
        match *record {
            Record::Sample { stamp, raw } => self.sample(stamp, raw, look),
            Record::Switch { stamp, left } => {
                let task = self.task(stamp.tid);
                let what = if left { What::Left { task } } else { What::Runs { task } };
                let Stamp { at, cpu, .. } = stamp;
                look(TraceEvent { at, cpu, task, context: Context::Task, what });
            }
            Record::Lost { count, at } => look(TraceEvent {
                at,
                cpu: 0,
                task: 0,
                context: Context::Task,
                what: What::Lost { count },
            }),
            Record::Other => {}
        }
    }

    fn sample(&mut self, stamp: Stamp, raw: &[u8], look: &mut impl FnMut(TraceEvent)) {
        let Some(id) = raw.first_chunk::<2>() else { return };
        let Some(known) = self.known.get(&u16::from_ne_bytes(*id)) else { return };
        let number = |field: &Option<Field>| field.as_ref().and_then(|field| field.number(raw));
        let flags = number(&known.flags).unwrap_or(0);
        let context = match flags {
            _ if flags & HARDIRQ != 0 => Context::Hardirq,
            _ if flags & SOFTIRQ != 0 => Context::Softirq,
            _ => Context::Task,
        };
        let task = number(&known.task).map_or(stamp.tid, |task| task as u32);
        if stamp.tid != 0 && stamp.tid != task {
            self.tasks.insert(stamp.tid, task);
        }
        if stamp.pid != 0 && context == Context::Task {
            self.pids.insert(task, stamp.pid);
        }
        let Stamp { at, cpu, .. } = stamp;
        let mut emit = |what| look(TraceEvent { at, cpu, task, context, what });
        let [first, second] = [0, 1].map(|index| known.fields[index].as_ref());
        let value = first.and_then(|field| field.number(raw));
        if known.event == CONNECTS {
            if let (Some(socket), Some(peer)) =
                (value, self.connects.as_ref().and_then(|f| peer(f, raw)))
            {
                self.peers.insert(socket, peer);
            }
            return;
        }
        if known.event == "net:netif_receive_skb" {
            let name = second.and_then(|field| field.text(raw)).unwrap_or("?");
            let device = number_of(&mut self.devices, name);
            if let Some(packet) = value {
                emit(What::Received { packet, device });
            }
            return;
        }
        if known.event == "sched:sched_switch" {
            let next = second.and_then(|field| field.number(raw));
            if let (Some(left), Some(runs)) = (value, next) {
                emit(What::Left { task: left as u32 });
                emit(What::Runs { task: runs as u32 });
            }
            return;
        }
        if let Some(what) = what(known, value, raw) {
            emit(what);
        }
    }
}

/// The event of a tracepoint whose first field has this value.
fn what(known: &Known, value: Option<u64>, raw: &[u8]) -> Option<What> {
    let bytes = || known.fields[1].as_ref()?.signed(raw);
    Some(match known.event {
        "raw_syscalls:sys_enter" => {
            let fd = known.fields[0].as_ref().and_then(|field| field.bytes(raw));
            let fd = fd.and_then(<[u8]>::first_chunk).map_or(-1, |fd| i32::from_ne_bytes(*fd));
            What::CallEnter { fd }
        }
        "raw_syscalls:sys_exit" => What::CallExit,
        "sock:sock_send_length" => What::Sent { socket: value?, bytes: bytes()? },
        "sock:sock_recv_length" => What::Took { socket: value?, bytes: bytes()? },
        "sock:sk_data_ready" => What::SocketReady { socket: value? },
        "net:net_dev_queue" => What::DeviceQueued { packet: value? },
        "net:net_dev_start_xmit" => What::DriverCalled { packet: value? },
        "net:net_dev_xmit" => What::DriverDone { packet: value? },
        "irq:irq_handler_entry" => What::Interrupt { number: value? as u32 },
        "irq:softirq_raise" if value? == NET_RX => What::SoftirqRaised,
        "irq:softirq_entry" if value? == NET_RX => What::SoftirqBegan,
        "skb:skb_copy_datagram_iovec" => What::Copied { packet: value? },
        "sched:sched_waking" => What::Woken { task: value? as u32 },
        _ => return None,
    })
}

fn peer(format: &Format, raw: &[u8]) -> Option<SocketAddr> {
    const AF_INET6: u64 = 10;
    let number = |name| format.field(name)?.number(raw);
    let bytes = |name| format.field(name)?.bytes(raw);
    let ip = if number("family")? == AF_INET6 {
        IpAddr::from(<[u8; 16]>::try_from(bytes("daddr_v6")?).ok()?).to_canonical()
    } else {
        IpAddr::from(<[u8; 4]>::try_from(bytes("daddr")?).ok()?)
    };
    Some(SocketAddr::new(ip, number("dport")?.try_into().ok()?))
}

/// The number of a name, which it gets if it has none.
fn number_of(names: &mut Vec<String>, name: &str) -> u16 {
    let found = names.iter().position(|known| known == name);
    let number = found.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    number.try_into().unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKING: &str = "name: sched_waking\nID: 375\nformat:\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
    const RECEIVE: &str = "name: netif_receive_skb\nID: 2303\nformat:\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
        \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n";

    fn raw(id: u16, flags: u8, task: u32, rest: &[u8]) -> Vec<u8> {
        let mut raw = id.to_ne_bytes().to_vec();
        raw.extend([flags, 0]);
        raw.extend(task.to_ne_bytes());
        raw.extend(rest);
        raw
    }

    fn decoder() -> Decoder {
        let formats = [WAKING, RECEIVE].map(|text| Format::parse(text).unwrap());
        let names = ["sched:sched_waking", "net:netif_receive_skb"];
        Decoder::new(names.into_iter().zip(&formats))
    }

    fn events(decoder: &mut Decoder, stamp: Stamp, raw: &[u8]) -> Vec<TraceEvent> {
        let mut events = Vec::new();
        decoder.decode(&Record::Sample { stamp, raw }, &mut |event| events.push(event));
        events
    }

    #[test]
    fn packet_comes_with_its_device_and_context() {
        let mut rest = 0xabc_u64.to_ne_bytes().to_vec();
        rest.extend(60_u32.to_ne_bytes());
        rest.extend((5_u32 << 16 | 24).to_ne_bytes());
        rest.extend(b"eth0\0");
        let stamp = Stamp { pid: 0, tid: 0, at: 5, cpu: 1 };
        let mut decoder = decoder();
        let seen = events(&mut decoder, stamp, &raw(2303, 0x10, 0, &rest));
        let what = What::Received { packet: 0xabc, device: 0 };
        assert_eq!(seen, [TraceEvent { at: 5, cpu: 1, task: 0, context: Context::Softirq, what }]);
        assert_eq!(decoder.device(0), "eth0");
        assert_eq!(decoder.device(9), "?");
    }

    #[test]
    fn threads_of_a_namespace_are_learnt() {
        let mut decoder = decoder();
        let mut rest = vec![0; 16];
        rest.extend(4_077_u32.to_ne_bytes());
        let stamp = Stamp { pid: 7, tid: 7, at: 1, cpu: 0 };
        let seen = events(&mut decoder, stamp, &raw(375, 0, 4_007, &rest));
        assert_eq!(seen[0].what, What::Woken { task: 4_077 });
        let mut switches = Vec::new();
        let record = Record::Switch { stamp, left: false };
        decoder.decode(&record, &mut |event| switches.push(event.what));
        assert_eq!(switches, [What::Runs { task: 4_007 }]);
        assert_eq!((decoder.tid(4_007), decoder.pid(4_007)), (7, Some(7)));
    }

    #[test]
    fn peers_of_sockets_that_connect_are_kept() {
        let text = "name: inet_sock_set_state\nID: 2287\nformat:\n\
            \tfield:const void * skaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:__u16 dport;\toffset:26;\tsize:2;\tsigned:0;\n\
            \tfield:__u16 family;\toffset:28;\tsize:2;\tsigned:0;\n\
            \tfield:__u8 daddr[4];\toffset:36;\tsize:4;\tsigned:0;\n\
            \tfield:__u8 daddr_v6[16];\toffset:56;\tsize:16;\tsigned:0;\n";
        let format = Format::parse(text).unwrap();
        let mut decoder = Decoder::new([(CONNECTS, &format)].into_iter());
        let mut raw = raw(2287, 0, 1, &[0; 64]);
        raw[8] = 0xab;
        raw[26..28].copy_from_slice(&7_u16.to_ne_bytes());
        raw[28] = 2;
        raw[36..40].copy_from_slice(&[10, 9, 0, 2]);
        assert!(events(&mut decoder, Stamp::default(), &raw).is_empty());
        assert_eq!(decoder.peer(0xab), Some("10.9.0.2:7".parse().unwrap()));
        assert_eq!(decoder.peer(0xac), None);
        raw.truncate(39);
        raw[8] = 0xac;
        assert!(events(&mut decoder, Stamp::default(), &raw).is_empty());
        assert_eq!(decoder.peer(0xac), None);
    }

    #[test]
    fn short_and_unknown_records_tell_nothing() {
        let mut decoder = decoder();
        let stamp = Stamp::default();
        assert!(events(&mut decoder, stamp, &[]).is_empty());
        assert!(events(&mut decoder, stamp, &raw(9, 0, 0, &[0; 40])).is_empty());
        assert!(events(&mut decoder, stamp, &raw(375, 0, 0, &[0; 15])).is_empty());
    }
}
