//! Frontends that break the rules, each on port 0, beside an honest one on port 1.

use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::fs::ftruncate;
use vhost::transport::message::{FrontendRequest, VringAddress};

use super::nic::{Nic, NicSettings};
use super::rogue::{
    GUEST, INDIRECT, MEMORY, NEXT, RECEIVE, RING, Rogue, TRANSMIT, USER, WRITE, addresses, buffer,
    descriptor, region,
};
use super::traffic::{carry, frame};

/// What breaks a rule, and a part of the reason that the NIC gives for cutting it off.
type Case = (&'static str, fn(&mut Rogue) -> io::Result<()>, &'static str);

/// Descriptors, rings and memory.
const RINGS: [Case; 14] = [
    ("a descriptor number beyond the ring", |rogue| transmit(rogue, &[RING]), "descriptor 8"),
    ("the largest descriptor number", |rogue| transmit(rogue, &[u16::MAX]), "descriptor 65535"),
    (
        "more buffers available than there are",
        |rogue| {
            rogue.attach()?;
            rogue.advance(TRANSMIT, RING + 1)
        },
        "9 buffers are available",
    ),
    (
        "an available index that goes back",
        |rogue| {
            rogue.attach()?;
            rogue.advance(TRANSMIT, u16::MAX)
        },
        "65535 buffers are available",
    ),
    (
        "a chain that is a loop",
        |rogue| chain(rogue, &[(buffer(0), 100, NEXT, 1), (buffer(1), 100, NEXT, 0)]),
        "chain of more than",
    ),
    (
        "a chain that leaves the table",
        |rogue| chain(rogue, &[(buffer(0), 100, NEXT, RING)]),
        "descriptor 8",
    ),
    ("an address that no region has", |rogue| chain(rogue, &[(0x10, 100, 0, 0)]), "not in guest"),
    (
        "a buffer that runs out of its region",
        |rogue| chain(rogue, &[(GUEST + MEMORY - 10, 100, 0, 0)]),
        "not in guest",
    ),
    (
        "an address close to the last",
        |rogue| chain(rogue, &[(u64::MAX - 10, 100, 0, 0)]),
        "not in guest",
    ),
    (
        "an indirect table of half a descriptor",
        |rogue| chain(rogue, &[(buffer(0), 24, INDIRECT, 0)]),
        "indirect table of 24 bytes",
    ),
    (
        "an indirect table in the middle of a chain",
        |rogue| chain(rogue, &[(buffer(0), 32, INDIRECT | NEXT, 1), (buffer(1), 100, 0, 0)]),
        "indirect descriptor",
    ),
    (
        "something to read after something to write",
        |rogue| chain(rogue, &[(buffer(0), 100, NEXT | WRITE, 1), (buffer(1), 100, 0, 0)]),
        "for the device to read after",
    ),
    (
        "memory that is taken away",
        |rogue| {
            rogue.describe(TRANSMIT, 0, &descriptor(buffer(20), 100, 0, 0))?;
            rogue.offer(TRANSMIT, &[])?;
            rogue.attach()?;
            ftruncate(&rogue.memory, 0x4000)?;
            // The ring is still there; what it points to is not.
            rogue.offer(TRANSMIT, &[0])
        },
        "memory",
    ),
    (
        "all memory is taken away, rings too",
        |rogue| {
            rogue.attach()?;
            ftruncate(&rogue.memory, 0)?;
            rogue.kick(TRANSMIT)
        },
        "memory",
    ),
];

/// Messages that a device refuses.
const MESSAGES: [Case; 11] = [
    ("a version that there is not", |rogue| rogue.say(&[2; 12], &[]), "version"),
    ("a message that is too long", |rogue| rogue.say(&header(2, 1 << 20), &[]), "1048576 bytes"),
    (
        "a message that is too short",
        |rogue| rogue.say(&[&header(9, 8)[..], &[0; 8]].concat(), &[]),
        "too few",
    ),
    ("an unknown message", |rogue| rogue.say(&header(99, 0), &[]), "99"),
    (
        "more files than regions",
        |rogue| {
            rogue.negotiate()?;
            let table = FrontendRequest::SetMemTable(vec![region()]).encode(false);
            rogue.say(&table, &[rogue.memory.as_fd(), rogue.memory.as_fd()])
        },
        "file descriptors",
    ),
    (
        "a file shorter than its region",
        |rogue| {
            rogue.negotiate()?;
            ftruncate(&rogue.memory, MEMORY / 2)?;
            let table = FrontendRequest::SetMemTable(vec![region()]).encode(false);
            rogue.say(&table, &[rogue.memory.as_fd()])
        },
        "longer than its file",
    ),
    (
        "a file that is none",
        |rogue| {
            rogue.negotiate()?;
            let table = FrontendRequest::SetMemTable(vec![region()]).encode(false);
            rogue.say(&table, &[rogue.kicks[0].as_fd()])
        },
        "memory region 0",
    ),
    (
        "a ring of an odd size",
        |rogue| {
            rogue.negotiate()?;
            rogue.share()?;
            rogue.start(addresses(TRANSMIT), 100, 0)
        },
        "ring of 100",
    ),
    (
        "a ring outside the memory",
        |rogue| {
            rogue.negotiate()?;
            rogue.share()?;
            let used = USER + MEMORY - 4;
            rogue.start(VringAddress { used, ..addresses(TRANSMIT) }, RING.into(), 0)
        },
        "used ring",
    ),
    (
        "a ring that is not aligned",
        |rogue| {
            rogue.negotiate()?;
            rogue.share()?;
            let descriptors = USER + 8;
            rogue.start(VringAddress { descriptors, ..addresses(TRANSMIT) }, RING.into(), 0)
        },
        "not aligned",
    ),
    (
        "the end in the middle of a message",
        |rogue| {
            rogue.stream.write_all(&header(9, 40)[..7])?;
            rogue.stream.shutdown(std::net::Shutdown::Write)
        },
        "",
    ),
];

fn header(request: u32, size: u32) -> Vec<u8> {
    [request, 1, size].iter().flat_map(|field| field.to_ne_bytes()).collect()
}

/// Attaches and offers chains that begin at `heads` on the transmit ring.
fn transmit(rogue: &mut Rogue, heads: &[u16]) -> io::Result<()> {
    rogue.attach()?;
    rogue.offer(TRANSMIT, heads)
}

/// Attaches and offers a chain of these descriptors on the transmit ring.
fn chain(rogue: &mut Rogue, descriptors: &[(u64, u32, u16, u16)]) -> io::Result<()> {
    for (number, &(address, length, flags, next)) in (0..).zip(descriptors) {
        rogue.describe(TRANSMIT, number, &descriptor(address, length, flags, next))?;
    }
    transmit(rogue, &[0])
}

fn run(cases: &[Case]) {
    let nic = Nic::start(NicSettings::default());
    let mut honest = nic.driver(1);
    for (name, break_rule, reason) in cases {
        println!("{name}");
        let mut rogue = Rogue::connect(&nic.path(0)).unwrap();
        // The device may hang up before everything is said.
        let _ = break_rule(&mut rogue);
        assert!(rogue.is_cut_off(), "{name}: still attached");
        let found = nic.reason(0);
        assert!(found.contains(reason), "{name}: `{reason}` is not in the reason `{found}`");
        honest.check().unwrap();
        drop(rogue);
        // What the rogue sent before it was found out.
        while honest.receive(64, |_| ()).unwrap() > 0 {}
        // Both ports work, the one that was broken with the next frontend.
        let mut next = nic.driver(0);
        let frames = [frame(1, 60), frame(2, 1514)];
        assert_eq!(carry(&mut next, &mut honest, &frames), frames, "{name}");
        assert_eq!(carry(&mut honest, &mut next, &frames), frames, "{name}");
        next.disconnect().unwrap();
    }
}

#[test]
fn broken_rings_cost_the_port_and_nothing_else() {
    run(&RINGS);
}

#[test]
fn broken_messages_cost_the_port_and_nothing_else() {
    run(&MESSAGES);
}

/// Half a message and then silence; a session that never goes on; rings that are not emptied and
/// interrupts that are not read: only the frontend that does that waits.
#[test]
fn silent_frontends_block_no_other() {
    let silences: [fn(&mut Rogue) -> io::Result<()>; 4] = [
        |rogue| rogue.say(&header(2, 8)[..5], &[]),
        |rogue| rogue.say(&header(2, 8), &[]),
        Rogue::negotiate,
        |rogue| {
            // Room for two frames, and never more.
            for number in 0..2 {
                let free = descriptor(buffer(number.into()), 2048, WRITE, 0);
                rogue.describe(RECEIVE, number, &free)?;
            }
            rogue.attach()?;
            rogue.offer(RECEIVE, &[0, 1])
        },
    ];
    for silence in silences {
        let nic = Nic::start(NicSettings::default());
        let mut rogue = Rogue::connect(&nic.path(0)).unwrap();
        silence(&mut rogue).unwrap();
        let mut honest = nic.driver(1);
        let sent = frame(7, 200);
        super::traffic::until("send to a port that is silent", || {
            honest.send(&sent).unwrap();
            honest.flush();
            honest.counters().sent == 10_000
        });
        honest.check().unwrap();
        drop(rogue);
        let mut next = nic.driver(0);
        let frames = [frame(1, 60)];
        assert_eq!(carry(&mut next, &mut honest, &frames), frames);
    }
}
