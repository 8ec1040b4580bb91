//! Which tracepoints show the path of a packet, with what filters.
//!
//! The kernel looks at filters before it writes anything, so what they hold back costs a tenth of
//! what is written. What threads do is asked for those that matter alone; what their packets meet,
//! of the device alone.

use std::fs;
use std::path::Path;

use tracepoints::calls::{RECEIVING, SENDING, filter};
use tracepoints::{EventRequest, Unit};

use super::hold;
use super::task_filter::TaskFilter;

#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// Threads of this process that have a name; of the network only a device, if one is named.
    Threads {
        name: String,
        device: Option<String>,
    },
    /// A program that is started later (`Tracer::follow`), under this name.
    Program(String),
    Device(String),
}

pub(crate) fn event_requests(target: &Target, tasks: &TaskFilter) -> Vec<EventRequest> {
    match target {
        Target::Threads { device, .. } => of_threads(tasks, device.as_deref()),
        Target::Program(_) => of_threads(tasks, None),
        Target::Device(device) => of_device(device, tasks),
    }
}

fn request(event: &'static str, filter: Option<String>) -> EventRequest {
    EventRequest { event, filter, unit: Unit::All }
}

fn of_threads(tasks: &TaskFilter, device: Option<&str>) -> Vec<EventRequest> {
    let calls = SENDING.iter().chain(&RECEIVING).copied().collect::<Vec<_>>();
    let own = tasks.filter(&[("comm", "common_pid")]);
    let and = |other: Option<String>| match (&own, other) {
        (Some(own), Some(other)) => Some(format!("({own}) && ({other})")),
        (own, other) => own.clone().or(other),
    };
    let name = device.map(|device| format!("name == \"{device}\""));
    let mut requests = vec![
        request("raw_syscalls:sys_enter", and(Some(filter(&calls)))),
        request("raw_syscalls:sys_exit", and(Some(filter(&calls)))),
        request("sock:sock_send_length", own.clone()),
        request("sock:sock_recv_length", own.clone()),
        request("skb:skb_copy_datagram_iovec", own.clone()),
        // 2 is TCP_SYN_SENT.
        request("sock:inet_sock_set_state", and(Some("newstate == 2".into()))),
        request("net:net_dev_queue", and(name.clone())),
        request("net:net_dev_start_xmit", name.clone()),
        request("net:net_dev_xmit", name),
    ];
    requests.extend(wake_ups(tasks));
    requests.extend(receiving(device));
    requests
}

fn of_device(device: &str, tasks: &TaskFilter) -> Vec<EventRequest> {
    let mut requests = receiving(Some(device));
    // Threads that copy are those that matter; short datagrams are copied
    // without an event.
    requests.push(request("skb:skb_copy_datagram_iovec", None));
    requests.push(request("sock:sock_recv_length", None));
    requests.extend(wake_ups(tasks));
    requests
}

fn wake_ups(tasks: &TaskFilter) -> [EventRequest; 2] {
    let switches = [("prev_comm", "prev_pid"), ("next_comm", "next_pid")];
    [
        request("sched:sched_waking", tasks.filter(&[("comm", "pid")])),
        request("sched:sched_switch", tasks.filter(&switches)),
    ]
}

fn receiving(device: Option<&str>) -> Vec<EventRequest> {
    const RECEIVE: &str = "vec == 3";
    // AF_INET and AF_INET6: traffic between programs of this host does not matter.
    const INTERNET: &str = "family == 2 || family == 10";
    let name = device.map(|device| format!("name == \"{device}\""));
    let mut requests = vec![
        request("irq:softirq_raise", Some(RECEIVE.into())),
        request("irq:softirq_entry", Some(RECEIVE.into())),
        request("net:netif_receive_skb", name),
        request("sock:sk_data_ready", Some(INTERNET.into())),
    ];
    if !device.is_some_and(hold::is_virtual) {
        requests.push(request("irq:irq_handler_entry", device.and_then(interrupts)));
    }
    requests
}

/// A filter for the interrupts of a device; `None` if it has none that can be found, and all have
/// to be seen.
fn interrupts(device: &str) -> Option<String> {
    let device = Path::new("/sys/class/net").join(device).join("device");
    // A virtio device is a child of the PCI device that has the interrupts.
    let lists = [device.join("msi_irqs"), device.join("../msi_irqs")];
    let mut numbers: Vec<u32> = lists
        .iter()
        .filter_map(|list| fs::read_dir(list).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let terms: Vec<String> = numbers.iter().map(|number| format!("irq == {number}")).collect();
    (!terms.is_empty()).then(|| terms.join(" || "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_understood() {
        let threads = Target::Threads { name: "x".into(), device: Some("eth0".into()) };
        for target in [threads, Target::Program("x".into()), Target::Device("eth0".into())] {
            for request in event_requests(&target, &TaskFilter::named("x")) {
                assert!(super::super::decode::KNOWN.contains(&request.event), "{}", request.event);
            }
        }
    }
}
