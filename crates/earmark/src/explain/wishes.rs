//! Which tracepoints tell the path of a packet, with what filters.
//!
//! The kernel looks at filters before it writes anything, so what they hold back costs a tenth of
//! what is written. What a thread does is asked for that thread alone; what its packets meet, of
//! the device alone.

use std::fs;
use std::path::Path;

use linux::perf::calls::{RECEIVING, SENDING, filter};
use linux::perf::{Unit, Wish};

use super::hold;
use super::tracer::Target;

/// What to wish for, and whose context switches to see.
#[must_use]
pub fn wishes(target: &Target) -> (Vec<Wish>, Option<u32>) {
    match target {
        Target::Task { tid, device, name } => {
            (of_task(*tid, device.as_deref(), name.as_deref()), Some(*tid))
        }
        Target::Device(device) => (of_device(device), None),
    }
}

fn wish(event: &'static str, unit: Unit, filter: Option<String>) -> Wish {
    Wish { event, filter, unit }
}

fn of_task(tid: u32, device: Option<&str>, thread: Option<&str>) -> Vec<Wish> {
    // In a namespace of its own the thread has another number than the kernel's.
    let name_of_thread = thread.map(|name| format!("comm == \"{name}\""));
    let task = Unit::Task(tid);
    let all = SENDING.iter().chain(&RECEIVING).copied().collect::<Vec<_>>();
    let name = device.map(|device| format!("name == \"{device}\""));
    let mut wishes = vec![
        wish("raw_syscalls:sys_enter", task, Some(filter(&all))),
        wish("raw_syscalls:sys_exit", task, Some(filter(&all))),
        wish("sock:sock_send_length", task, None),
        wish("sock:sock_recv_length", task, None),
        wish("skb:skb_copy_datagram_iovec", task, None),
        // 2 is TCP_SYN_SENT.
        wish("sock:inet_sock_set_state", task, Some("newstate == 2".into())),
        // A thread is woken by others, so these events are not its own.
        wish("sched:sched_waking", Unit::All, name_of_thread),
        wish("net:net_dev_queue", task, name.clone()),
        wish("net:net_dev_start_xmit", Unit::All, name.clone()),
        wish("net:net_dev_xmit", Unit::All, name),
    ];
    wishes.extend(receiving(device));
    wishes
}

fn of_device(device: &str) -> Vec<Wish> {
    let mut wishes = receiving(Some(device));
    wishes.extend([
        wish("skb:skb_copy_datagram_iovec", Unit::All, None),
        wish("sched:sched_waking", Unit::All, None),
        wish("sched:sched_switch", Unit::All, None),
    ]);
    wishes
}

/// From the interrupt to the socket.
fn receiving(device: Option<&str>) -> Vec<Wish> {
    const RECEIVE: &str = "vec == 3";
    let name = device.map(|device| format!("name == \"{device}\""));
    let mut wishes = vec![
        wish("irq:softirq_raise", Unit::All, Some(RECEIVE.into())),
        wish("irq:softirq_entry", Unit::All, Some(RECEIVE.into())),
        wish("net:netif_receive_skb", Unit::All, name),
        wish("sock:sk_data_ready", Unit::All, None),
    ];
    if !device.is_some_and(hold::is_virtual) {
        wishes.push(wish("irq:irq_handler_entry", Unit::All, device.and_then(interrupts)));
    }
    wishes
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
    fn every_wish_is_understood() {
        let task = Target::Task { tid: 1, device: Some("eth0".into()), name: None };
        for target in [task, Target::Device("eth0".into())] {
            for wish in wishes(&target).0 {
                assert!(super::super::decode::KNOWN.contains(&wish.event), "{}", wish.event);
            }
        }
    }

    #[test]
    fn devices_without_interrupts_have_no_filter() {
        assert_eq!(interrupts("lo"), None);
        assert_eq!(interrupts("no-such-device"), None);
    }
}
