//! Ports, links and the switch, without a thread or a clock: time is what the test says.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use base::time::{Duration, Instant};
use hostside::{Fetched, HostSide, Service};
use lab::plane::{Plane, PortPlan};
use network::link::LinkSettings;
use nic::moderation::Reason;
use nic::port::PortSettings;

/// A host whose ring is in memory, as a guest's.
#[derive(Default)]
struct Memory {
    outbox: VecDeque<Vec<u8>>,
    /// Frames before those in the outbox that no port takes.
    dropped: u32,
    /// When each frame was fetched, and when one came.
    fetched: Vec<Instant>,
    received: Vec<(Instant, Vec<u8>)>,
}

#[derive(Clone, Default)]
struct Host(Arc<Mutex<Memory>>);

impl HostSide for Host {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn transmit(&mut self, now: Instant, _: usize, frame: &mut Vec<u8>) -> io::Result<Fetched> {
        let mut memory = self.0.lock().unwrap();
        if memory.dropped > 0 {
            memory.dropped -= 1;
            return Ok(Fetched::Dropped);
        }
        let Some(next) = memory.outbox.pop_front() else { return Ok(Fetched::Nothing) };
        memory.fetched.push(now);
        frame.clone_from(&next);
        Ok(Fetched::Frame)
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()> {
        let queue = &mut service.port.queues_mut()[0];
        if !queue.is_masked() {
            return Ok(());
        }
        let mut memory = self.0.lock().unwrap();
        queue.poll(now, 64, service.watch, |_, frame| memory.received.push((now, frame)));
        queue.rearm(now, service.watch);
        Ok(())
    }
}

impl Host {
    fn send(&self, frames: impl IntoIterator<Item = Vec<u8>>) {
        self.0.lock().unwrap().outbox.extend(frames);
    }

    fn received(&self) -> usize {
        self.0.lock().unwrap().received.len()
    }
}

fn plane(hosts: &[Host], link: &LinkSettings) -> Plane {
    plane_with(hosts, link, &PortSettings::default())
}

fn plane_with(hosts: &[Host], link: &LinkSettings, settings: &PortSettings) -> Plane {
    let plan = |(number, host): (usize, &Host)| PortPlan {
        name: format!("port{number}"),
        host: Box::new(host.clone()),
        settings: settings.clone(),
        link: link.clone(),
    };
    Plane::new(hosts.iter().enumerate().map(plan).collect(), None, Instant::ZERO)
}

/// Lets everything happen that will.
fn run(plane: &mut Plane) {
    plane.take_from_memory(Instant::ZERO);
    while let Some(now) = plane.deadline() {
        plane.carry(now);
        plane.serve(now);
    }
}

/// Lets everything happen that will until `end`.
fn run_until(plane: &mut Plane, end: Instant) {
    while let Some(now) = plane.deadline().filter(|now| *now <= end) {
        plane.carry(now);
        plane.serve(now);
    }
}

/// Two hosts whose ports hold packets for a second and mark short frames.
fn slow(moderation: &str) -> ([Host; 2], Plane) {
    let settings = PortSettings {
        moderation: moderation.parse().expect("a setting"),
        rules: "length<=100".parse().expect("rules"),
        ..PortSettings::default()
    };
    let hosts = [Host::default(), Host::default()];
    let plane = plane_with(&hosts, &LinkSettings::default(), &settings);
    (hosts, plane)
}

fn send_at(hosts: &[Host; 2], plane: &mut Plane, now: Instant, frames: Vec<Vec<u8>>) {
    run_until(plane, now);
    hosts[0].send(frames);
    plane.take_from_memory(now);
    run_until(plane, now);
}

fn arrivals(hosts: &[Host; 2]) -> Vec<Instant> {
    hosts[1].0.lock().unwrap().received.iter().map(|(now, _)| *now).collect()
}

fn frame(to: u8, from: u8) -> Vec<u8> {
    let mut frame = vec![0; 1_226];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    frame
}

#[test]
fn wire__frames_wait_for_it_in_the_hosts_ring() {
    let hosts = [Host::default(), Host::default()];
    // A frame takes 1226 + 24 bytes: 100 us.
    let link = LinkSettings {
        rate_mbit: Some(100),
        latency: Duration::from_micros(20),
        ..LinkSettings::default()
    };
    let mut plane = plane(&hosts, &link);
    hosts[0].send((0..4).map(|_| frame(1, 0)));
    run(&mut plane);
    let memory = hosts[0].0.lock().unwrap();
    let at = Instant::from_micros;
    assert_eq!(memory.fetched, [at(0), at(90), at(190), at(290)]);
    let arrivals: Vec<_> =
        hosts[1].0.lock().unwrap().received.iter().map(|(now, _)| *now).collect();
    assert_eq!(arrivals, [at(120), at(220), at(320), at(420)]);
}

#[test]
fn switch__frames_go_to_their_destination() {
    let hosts = [Host::default(), Host::default(), Host::default()];
    let mut plane = plane(&hosts, &LinkSettings::default());
    let received = |hosts: &[Host; 3]| hosts.each_ref().map(Host::received);
    hosts[0].send([frame(2, 0)]);
    run(&mut plane);
    assert_eq!(received(&hosts), [0, 1, 1], "host 2 is not known yet");
    hosts[2].send([frame(0, 2)]);
    run(&mut plane);
    hosts[0].send([frame(2, 0)]);
    run(&mut plane);
    assert_eq!(received(&hosts), [1, 1, 2]);
    let copies = hosts[1].0.lock().unwrap().received[0].1 == frame(2, 0);
    assert!(copies, "a flooded frame is whole");
}

#[test]
fn frames_that_no_port_takes__have_their_turn_like_others() {
    let hosts = [Host::default(), Host::default()];
    let mut plane = plane(&hosts, &LinkSettings::default());
    hosts[0].0.lock().unwrap().dropped = 1_000;
    plane.take(Instant::ZERO, 0, 0);
    assert_eq!(hosts[0].0.lock().unwrap().dropped, 968, "a batch in a turn");
    assert_eq!(plane.deadline(), Some(Instant::ZERO), "there is more");
    while hosts[0].0.lock().unwrap().dropped > 0 {
        plane.take_from_memory(Instant::ZERO);
    }
    hosts[0].send([frame(1, 0)]);
    run(&mut plane);
    assert_eq!(hosts[1].received(), 1);
}

#[test]
fn mark__brings_what_waits_at_that_moment() {
    let (hosts, mut plane) = slow("marked:1000000");
    let at = Instant::from_micros;
    send_at(&hosts, &mut plane, at(0), vec![frame(1, 0); 3]);
    run_until(&mut plane, at(999_998));
    assert_eq!(arrivals(&hosts), []);
    let mut short = frame(1, 0);
    short.truncate(100);
    send_at(&hosts, &mut plane, at(999_999), vec![short]);
    assert_eq!(arrivals(&hosts), [at(999_999); 4]);
    let counters = plane.snapshot(Instant::ZERO).swap_remove(1).counters;
    assert_eq!((counters.interrupts_for(Reason::Mark), counters.interrupts_total()), (1, 1));
}

#[test]
fn frames_limit__brings_what_waits_with_the_last() {
    let (hosts, mut plane) = slow("delay:1000000+frames:4");
    let at = Instant::from_micros;
    for moment in [0, 300_000, 600_000, 999_999] {
        assert_eq!(arrivals(&hosts), []);
        send_at(&hosts, &mut plane, at(moment), vec![frame(1, 0)]);
    }
    assert_eq!(arrivals(&hosts), [at(999_999); 4]);
    assert_eq!(plane.snapshot(Instant::ZERO)[1].counters.interrupts_for(Reason::Frames), 1);
}

#[test]
fn new_moderation__is_that_of_what_waits_already() {
    for (after, moment) in [
        ("disabled", 500_000),
        ("delay:1", 500_000),
        ("delay:500000", 500_000),
        ("delay:700000", 700_000),
        ("throttle:1", 500_000),
        ("delay:75+frames:2", 500_000),
    ] {
        let (hosts, mut plane) = slow("delay:1000000");
        let at = Instant::from_micros;
        send_at(&hosts, &mut plane, at(0), vec![frame(1, 0); 2]);
        run_until(&mut plane, at(500_000));
        assert_eq!(arrivals(&hosts), []);
        plane.set_moderation(at(500_000), 1, None, after.parse().expect("a setting"));
        plane.serve(at(500_000));
        run_until(&mut plane, at(2_000_000));
        assert_eq!(arrivals(&hosts), [at(moment); 2], "{after}");
    }
}
