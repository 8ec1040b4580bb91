//! What every kind of port does.

use mx_io::port::local::LocalPort;
use mx_io::port::{Outgoing, Port, Transmitted};

use super::frames::{SHORTEST, To, drain, number, read, send, take, until, wait_for_room, write};
use super::kinds::{A, B, LOCALHOST, each};

const IN_FLIGHT: usize = 32;

/// Sends a frame of each length and looks at what comes.
fn all_sizes(a: &mut dyn Port, b: &mut dyn Port) {
    let (from, to) = (a.nic_id(), To::port(b));
    let lengths: Vec<_> = (SHORTEST..=usize::from(b.mtu())).collect();
    let mut next = 0;
    for lengths in lengths.chunks(IN_FLIGHT) {
        let frames: Vec<_> = (next..).zip(lengths.iter().copied()).collect();
        send(a, to, &frames);
        let end = next + frames.len() as u32;
        until("frames of all sizes", || {
            let taken = b.receive(7, &mut |sender, frame: &[u8]| {
                let length = SHORTEST + next as usize;
                assert!(frame.len() == length || (length < 46 && frame.len() == 46), "{length}");
                assert_eq!((sender, read(frame, to.endpoint, length)), (from, next));
                next += 1;
            });
            assert!(taken.unwrap() <= 7);
            next == end
        });
    }
}

#[test]
fn frames_of_all_sizes_arrive_intact_both_ways() {
    each(|pair| {
        assert_eq!(pair.a.mtu(), pair.b.mtu());
        all_sizes(&mut *pair.a, &mut *pair.b);
        all_sizes(&mut *pair.b, &mut *pair.a);
        let (out, come) = (pair.a.counters(), pair.b.counters());
        let frames = u64::from(pair.a.mtu()) - SHORTEST as u64 + 1;
        assert_eq!((out.frames_out, come.frames_in), (frames, frames));
        assert!(come.bytes_in >= out.bytes_out, "{come:?}, {out:?}");
        assert_eq!((come.strange, come.too_long, come.overrun), (0, 0, 0));
    });
}

#[test]
fn frames_for_other_endpoints_are_not_delivered() {
    each(|pair| {
        let to = To::port(&*pair.b);
        let mut numbers = 0..=255_u8;
        let mut offer = |frame: &mut [u8]| {
            let number = numbers.next()?;
            write(&mut frame[..60], number, number.into());
            Some(Outgoing { marked: true, ..Outgoing::new(to.nic, to.endpoint, 60) })
        };
        let mut came = Vec::new();
        while let Transmitted::Full(_) = pair.a.transmit(&mut offer).unwrap() {
            pair.b.receive(8, &mut |_, frame: &[u8]| came.push(number(frame))).unwrap();
        }
        let missing = usize::from(came.is_empty());
        came.extend(take(&mut *pair.b, missing).iter().map(|(_, frame)| number(frame)));
        assert_eq!(came, [u32::from(to.endpoint)]);
    });
}

#[test]
fn slow_receiver_loses_only_what_is_counted() {
    const FRAMES: u32 = 20_000;
    each(|pair| {
        let to = To::port(&*pair.b);
        let (mut sent, mut came, mut full) = (0, Vec::new(), 0);
        let mut offer = |frame: &mut [u8]| {
            let number = (sent < FRAMES).then_some(sent)?;
            sent += 1;
            write(&mut frame[..100], to.endpoint, number);
            Some(Outgoing::new(to.nic, to.endpoint, 100))
        };
        while let Transmitted::Full(room) = pair.a.transmit(&mut offer).unwrap() {
            full += 1;
            // The receiver takes a little only if that is what the sender waits for.
            pair.b
                .receive(3, &mut |_, frame: &[u8]| came.push(read(frame, to.endpoint, 100)))
                .unwrap();
            wait_for_room(&mut *pair.a, room);
        }
        let rest = drain(&mut *pair.b);
        came.extend(rest.iter().map(|(_, frame)| read(frame, to.endpoint, 100)));
        assert!(came.windows(2).all(|pair| pair[0] < pair[1]), "twice, or out of order");
        let (out, counters) = (pair.a.counters(), pair.b.counters());
        assert_eq!(out.frames_out, u64::from(FRAMES));
        assert_eq!((out.full, counters.frames_in), (full, came.len() as u64));
        let lost = u64::from(FRAMES) - came.len() as u64;
        println!("  full {full} times, {lost} of {FRAMES} lost");
        if pair.counts_losses {
            assert_eq!(counters.overrun, lost);
        }
    });
}

#[test]
fn datagrams_within_a_host_go_through_memory() {
    let [mut a, mut b] = [A, B].map(|number| LocalPort::over_udp(number, LOCALHOST).unwrap());
    let to = To::port(&b);
    let mut came = 0;
    for batch in 0..100 {
        let frames: Vec<_> = (0..IN_FLIGHT as u32).map(|it| (batch * 32 + it, 100)).collect();
        send(&mut a, to, &frames);
        until("a batch", || {
            let from = a.nic_id();
            came += b.receive(64, &mut |sender, _: &[u8]| assert_eq!(sender, from)).unwrap();
            came == (batch as usize + 1) * IN_FLIGHT
        });
    }
    // One for each batch, at the least, if they went through the kernel.
    let calls = a.counters().calls_out;
    assert!(calls < 50, "{calls} system calls");
}
