//! A device, a port and a guest, in time that the tests make.

#[path = "../support/frontend.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod frontend;
mod guest;

use std::os::unix::net::UnixStream;

use base::prng::Prng;
use base::time::Duration;
use guest::{FEATURES, Guest, Plane, at};
use hostside::{Fetched, HostSide as _};
use nic::port::PortSettings;
use vhost::DeviceSettings;
use vhost::net::MRG_RXBUF;
use vhost::transport::message::{
    self, FrontendRequest, PROTOCOL_F_INBAND_NOTIFICATIONS, VringState,
};
use vhost::transport::session::EVENT_IDX;

/// Bytes before every packet (`struct virtio_net_hdr_v1`).
const PACKET_HEADER: usize = 12;

const FRAME: [u8; 60] = [7; 60];

#[test]
fn delay_holds_the_call_and_rearm_is_found() {
    let mut plane = Plane::new("delay", "delay:75");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    guest.refill(2_000);
    plane.round(at(10), &[&FRAME]);
    plane.round(at(20), &[&FRAME]);
    assert_eq!(guest.rings[0].calls(), 0);
    assert_eq!(plane.port.port.deadline(), Some(at(85)));
    plane.round(at(85), &[]);
    assert_eq!(guest.rings[0].calls(), 1);
    assert_eq!(plane.delivered.len(), 2);
    assert_eq!(plane.delivered[0].hold, Duration::from_micros(75));

    // It polls: what comes now it finds by itself.
    guest.rings[0].disable();
    plane.round(at(90), &[&FRAME]);
    plane.round(at(300), &[]);
    assert_eq!(guest.rings[0].calls(), 0);
    assert_eq!(plane.delivered.len(), 3);
    while guest.rings[0].take().is_some() {}
    guest.rings[0].enable();

    plane.round(at(310), &[]);
    assert!(!plane.port.port.queues()[0].is_masked());
    plane.round(at(320), &[&FRAME]);
    plane.round(at(395), &[]);
    assert_eq!(guest.rings[0].calls(), 1);
}

/// A driver that does each step of Linux's NAPI at any moment, woken by interrupts only.
#[derive(Clone, Copy, PartialEq)]
enum Napi {
    Idle,
    Polling,
    Rearmed,
}

#[test]
fn no_packet_is_stranded_whenever_the_guest_acts() {
    for seed in 0..400 {
        let mut prng = Prng::new(seed);
        let features = if seed % 3 == 0 { FEATURES & !EVENT_IDX } else { FEATURES };
        let settings = ["disabled", "delay:20", "throttle:30", "periodic:16", "delay:50+frames:4"];
        let setting = settings[seed as usize % settings.len()];
        let mut plane = Plane::new(&format!("napi-{seed}"), setting);
        let mut guest = Guest::connect(&mut plane, features, 0);
        guest.refill(2_000);
        let (mut napi, mut received, mut now) = (Napi::Idle, 0, 0);
        for step in 0..600 {
            now += prng.next_u64() % 12;
            match prng.next_u64() % 4 {
                0 if step < 500 => plane.round(at(now), &[&FRAME]),
                0 | 1 => plane.round(at(now), &[]),
                _ => act(&mut guest, &mut napi, &mut received),
            }
        }
        // Everything that was not dropped is signalled in the end, and by interrupts alone.
        for _ in 0..200 {
            now += 10;
            plane.round(at(now), &[]);
            act(&mut guest, &mut napi, &mut received);
        }
        let counters = plane.port.port.counters();
        assert_eq!(received, counters.packets, "seed {seed}, {setting}");
        assert_eq!(counters.delivered, counters.packets, "seed {seed}, {setting}");
        assert!(napi == Napi::Idle, "seed {seed}");
    }
}

fn act(guest: &mut Guest, napi: &mut Napi, received: &mut u64) {
    let ring = &mut guest.rings[0];
    *napi = match *napi {
        Napi::Idle if ring.calls() > 0 => {
            ring.disable();
            Napi::Polling
        }
        Napi::Idle => Napi::Idle,
        Napi::Polling => {
            if ring.take().is_some() {
                *received += 1;
                ring.offer(&[], 2_000);
                Napi::Polling
            } else {
                ring.enable();
                Napi::Rearmed
            }
        }
        Napi::Rearmed if ring.has_more() => {
            ring.disable();
            Napi::Polling
        }
        Napi::Rearmed => Napi::Idle,
    };
}

#[test]
fn guest_that_only_polls_is_never_called_and_gets_everything() {
    let mut plane = Plane::new("polls", "delay:20");
    let mut guest = Guest::connect(&mut plane, FEATURES & !EVENT_IDX, 0);
    guest.rings[0].disable();
    guest.refill(2_000);
    let mut received = 0;
    for step in 0..500 {
        plane.round(at(step * 3), &[&FRAME, &FRAME]);
        while guest.rings[0].take().is_some() {
            received += 1;
            guest.rings[0].offer(&[], 2_000);
        }
    }
    assert_eq!((received, guest.rings[0].calls()), (1_000, 0));
}

#[test]
fn frame_spans_small_buffers_only_if_they_may_be_merged() {
    let long = [9; 200];
    let mut plane = Plane::new("merge", "disabled");
    let mut guest = Guest::connect(&mut plane, FEATURES | MRG_RXBUF, 0);
    guest.refill(100);
    plane.round(at(1), &[&long]);
    let mut bytes = Vec::new();
    while let Some((head, length)) = guest.rings[0].take() {
        bytes.extend(guest.rings[0].bytes(head, length));
    }
    assert_eq!(bytes[10..PACKET_HEADER], [3, 0]);
    assert_eq!(bytes[PACKET_HEADER..], long);

    let mut plane = Plane::new("whole", "disabled");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    guest.refill(100);
    plane.round(at(1), &[&long, &FRAME]);
    assert_eq!(plane.port.host.refused(), 1);
    assert_eq!(guest.rings[0].take().map(|(_, length)| length), Some(72));
    assert_eq!(guest.rings[0].take(), None);
}

#[test]
fn guest_moderates_by_commands() {
    let mut plane = Plane::new("commands", "throttle:125");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    let mut command = |bytes: &[u8]| {
        guest.rings[2].offer(bytes, 16);
        guest.rings[2].kick();
        plane.round(at(1), &[]);
        let (head, length) = guest.rings[2].take().unwrap();
        let answer = guest.rings[2].bytes(head + 1, length);
        (plane.port.port.queues()[0].moderation().to_string(), answer)
    };
    let coalesce = |start: &[u8], packets: u8, usecs: u32| {
        [start, &[packets, 0, 0, 0], &usecs.to_le_bytes()].concat()
    };
    assert_eq!(command(&coalesce(&[6, 1], 8, 50)), ("throttle:50+frames:8".into(), vec![0]));
    assert_eq!(command(&coalesce(&[6, 1], 1, 0)), ("throttle:0".into(), vec![0]));
    assert_eq!(command(&coalesce(&[6, 2, 0, 0, 0, 0], 1, 64)), ("throttle:64".into(), vec![0]));
    assert_eq!(command(&coalesce(&[6, 1], 1, 1_000_001)).1, [1]);
    assert_eq!(command(&coalesce(&[6, 2, 2, 0, 0, 0], 1, 64)).1, [1]);
    assert_eq!(command(&coalesce(&[6, 0], 3, 20)).1, [0]);
    assert_eq!(command(&[6, 3, 0, 0, 0, 0]).1, [0, 0, 0, 0, 0, 64, 0, 0, 0]);
    assert_eq!(command(&[6, 3, 1, 0, 0, 0]).1, [0, 3, 0, 0, 0, 20, 0, 0, 0]);
    assert_eq!(command(&[6, 3, 2, 0, 0, 0]).1, [1]);
    // Receive modes, the table of addresses, and pairs: one is all there is.
    for (bytes, ack) in [
        (&[0, 1, 1][..], 0),
        (&[0, 6, 1], 1),
        (&[1, 1, 2, 0, 0, 0, 0, 1], 0),
        (&[4, 0, 1, 0], 0),
        (&[4, 0, 2, 0], 1),
        (&[4, 0, 1], 1),
        (&[5, 0], 1),
        (&[6, 4, 0, 0, 0, 0], 1),
    ] {
        assert_eq!(command(bytes).1, [ack], "{bytes:?}");
    }
    assert_eq!(command(&[6, 1, 0]), ("throttle:64".into(), vec![1]));
}

#[test]
fn transmit_completions_are_moderated() {
    let mut plane = Plane::new("transmit", "disabled");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    guest.rings[2].offer(&[6, 0, 0, 0, 0, 0, 20, 0, 0, 0], 1);
    plane.round(at(1), &[]);
    let packet = [0; 72];
    guest.rings[1].offer(&packet, 0);
    plane.round(at(10), &[]);
    guest.rings[1].offer(&packet, 0);
    plane.round(at(15), &[]);
    assert_eq!((plane.sent.len(), guest.rings[1].calls()), (2, 0));
    assert_eq!(plane.port.host.deadline(), Some(at(30)));
    plane.round(at(30), &[]);
    assert_eq!(guest.rings[1].calls(), 1);
    assert_eq!(plane.port.host.deadline(), None);
}

/// One vector for both directions: the guest finds nothing to take, and the vector is quiet again.
#[test]
fn transmission_that_interrupts_does_so_once() {
    for (setting, interrupts) in [("disabled", 2), ("throttle:125", 2), ("delay:75", 1)] {
        let moderation = setting.parse().unwrap();
        let port = PortSettings { moderation, transmit_interrupts: true, ..Default::default() };
        let mut plane = Plane::with(&format!("once-{setting}"), port, DeviceSettings::default());
        let mut guest = Guest::connect(&mut plane, FEATURES, 0);
        guest.refill(2_000);
        plane.round(at(1), &[]);
        for sent in [10, 20] {
            plane.port.port.transmitted(at(sent), &mut ());
            plane.round(at(sent), &[]);
        }
        (21..1_000).for_each(|now| plane.round(at(now), &[]));
        let counters = plane.port.port.counters();
        assert_eq!(counters.transmit_completions, 2);
        assert_eq!(counters.interrupts_total(), interrupts, "{setting}");
        assert_eq!((plane.port.port.deadline(), guest.rings[0].calls()), (None, 0), "{setting}");
    }
}

#[test]
fn guest_that_breaks_rules_loses_its_port_and_another_may_come() {
    let mut plane = Plane::new("lose", "disabled");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    guest.refill(2_000);
    plane.round(at(1), &[&FRAME]);
    guest.rings[1].offer_nonsense();
    plane.round(at(2), &[]);
    assert_eq!(plane.port.host.lost(), Some("ring 1: descriptor 16 in a table of 16"));
    assert!(frontend::receive(&mut guest.socket).is_err());
    plane.round(at(3), &[&FRAME]);
    assert_eq!(plane.port.port.counters().ring_full, 1);

    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    assert!(plane.port.host.is_connected() && plane.port.host.lost().is_none());
    guest.refill(2_000);
    plane.round(at(4), &[&FRAME]);
    assert_eq!(guest.rings[0].calls(), 1);

    // A second one is refused while the first is there, and takes over when it has gone.
    let mut second = plane.connect();
    plane.round(at(5), &[]);
    assert!(frontend::receive(&mut second).is_err());
    drop(guest);
    let guest = plane.connect();
    plane.round(at(6), &[]);
    assert!(plane.port.host.is_connected());
    drop(guest);
    plane.round(at(7), &[]);
    assert_eq!(plane.port.host.lost(), Some("the guest has disconnected"));
}

/// A port whose notifications are messages, and interrupts arrive after `interrupt_latency`.
fn inband(name: &str, interrupt_latency: Duration) -> Plane {
    let settings = DeviceSettings { inband: true, interrupt_latency, ..DeviceSettings::default() };
    Plane::with(name, PortSettings::default(), settings)
}

/// The guest's end of the channel for messages of the device.
fn backend_channel(guest: &Guest) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    guest.send(&FrontendRequest::SetBackendReqFd, &[&theirs.into()]);
    ours.set_nonblocking(true).unwrap();
    ours
}

#[test]
fn inband_kick_is_answered_when_served_and_calls_wait() {
    let mut plane = inband("inband", Duration::ZERO);
    let mut guest = Guest::connect(&mut plane, FEATURES, PROTOCOL_F_INBAND_NOTIFICATIONS);
    let mut backend = backend_channel(&guest);
    guest.refill(2_000);
    guest.rings[1].offer(&[0; 72], 0);
    guest.send(&FrontendRequest::VringKick(VringState { index: 1, number: 0 }), &[]);
    plane.round(at(1), &[&FRAME]);
    assert_eq!(plane.sent.len(), 1);
    assert_eq!(guest.receive().unwrap().0.request, 21);
    assert_eq!(guest.receive().unwrap().0.request, 35);
    assert_eq!(plane.irqs().next_irq_at(), Some(at(1)));
    assert!(frontend::receive(&mut backend).unwrap().is_none());

    assert!(plane.irqs().raise_irqs(at(1)));
    assert!(plane.irqs().next_irq_at().is_none() && !plane.irqs().raise_irqs(at(1)));
    assert!(frontend::receive(&mut backend).unwrap().is_none(), "they come with the guest's turn");
    plane.irqs().send_irqs();
    for index in [0, 1] {
        let (header, payload) = frontend::receive(&mut backend).unwrap().unwrap();
        assert!(!header.needs_reply(), "an acknowledgement is not waited for");
        assert_eq!(message::parse_vring_call(&header, &payload), Ok(Some(index)));
    }
    plane.irqs().send_irqs();
    assert!(frontend::receive(&mut backend).unwrap().is_none(), "each is sent once");
    frontend::say(&backend, &message::reply(4, &[0; 8]), &[]).unwrap();
    plane.round(at(2), &[]);
    assert!(plane.port.host.lost().unwrap().contains("request 4 is unknown"));
}

#[test]
fn calls_under_way_reach_the_guest_once_and_in_time() {
    let mut plane = inband("latency", Duration::from_micros(50));
    let mut guest = Guest::connect(&mut plane, FEATURES, PROTOCOL_F_INBAND_NOTIFICATIONS);
    let mut backend = backend_channel(&guest);
    let mut called = |plane: &mut Plane, us| {
        plane.irqs().raise_irqs(at(us));
        plane.irqs().send_irqs();
        let (header, payload) = frontend::receive(&mut backend).unwrap()?;
        message::parse_vring_call(&header, &payload).unwrap()
    };
    guest.refill(2_000);
    plane.round(at(10), &[&FRAME]);
    guest.rings[1].offer(&[0; 72], 0);
    plane.round(at(20), &[&FRAME]);
    plane.round(at(59), &[&FRAME]);
    assert_eq!(plane.irqs().next_irq_at(), Some(at(60)));
    assert_eq!(called(&mut plane, 59), None);
    assert_eq!(called(&mut plane, 60), Some(0));
    assert_eq!(plane.irqs().next_irq_at(), Some(at(70)), "the transmit ring has its own");
    assert_eq!(called(&mut plane, 70), Some(1));
    assert_eq!(plane.irqs().next_irq_at(), None);
    while guest.rings[0].take().is_some() {}
    plane.round(at(80), &[&FRAME]);
    assert_eq!(plane.irqs().next_irq_at(), Some(at(130)), "the guest has re-armed");
}

/// Other ports wait while messages are obeyed.
#[test]
fn messages_of_one_round_are_bounded() {
    let mut plane = Plane::new("messages", "disabled");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    const BATCH: usize = 16;
    for _ in 0..3 * BATCH {
        guest.send(&FrontendRequest::GetFeatures, &[]);
    }
    for round in 0..3 {
        plane.round(at(round), &[]);
        let answers = std::iter::from_fn(|| guest.receive()).count();
        assert_eq!(answers, BATCH, "round {round}");
    }
}

#[test]
fn descriptors_of_one_round_are_bounded() {
    let mut plane = Plane::new("descriptors", "disabled");
    let mut guest = Guest::connect(&mut plane, FEATURES, 0);
    (0..6).for_each(|_| guest.rings[1].offer_bytes(256));
    plane.round(at(1), &[]);
    assert_eq!(plane.sent.len(), 1_024 / 256);
    let mut frame = Vec::new();
    let next = plane.port.transmit(at(1), 0, &mut frame).unwrap();
    assert_eq!(next, Fetched::Later(at(1)), "the rest needs no kick");
    plane.round(at(2), &[]);
    assert_eq!(plane.sent.len(), 6);
}
