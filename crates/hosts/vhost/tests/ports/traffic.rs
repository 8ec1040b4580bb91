//! Frames that differ, and drivers that exchange them.

use std::time::{Duration, Instant};

use vhost::driver::VirtioDriver;

/// Frame `number` of `length` bytes, 14 or more: an unknown EtherType, the number as far
/// as it fits, and bytes that depend on both.
pub(crate) fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x0B, 0x02, 0, 0, 0, 0, 0x0A, 0x88, 0xB5];
    frame.extend(number.to_le_bytes());
    frame.extend((0..length).map(|at| (at as u32).wrapping_mul(31).wrapping_add(number) as u8));
    frame.truncate(length);
    frame
}

/// A datagram of UDP over IPv4, 60 bytes, from source port `flow`, which starts with `number`.
pub(crate) fn datagram(flow: u16, number: u32) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 0x0B, 0x02, 0, 0, 0, 0, 0x0A, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
    frame.extend(flow.to_be_bytes());
    frame.extend([0x13, 0x88, 0, 26, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Does `step` until it says that all is done; fails if nothing is for long.
pub(crate) fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < Duration::from_secs(300), "{what}: still not after 300 s");
        std::thread::yield_now();
    }
}

/// Sends `frames` on queue 0 of `from`, and takes as many from queue 0 of `to`: what came.
pub(crate) fn carry(
    from: &mut VirtioDriver,
    to: &mut VirtioDriver,
    frames: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let mut sent = frames.iter();
    let mut next = sent.next();
    let mut came = Vec::new();
    // Fewer on their way than a ring has room for, at six buffers each, so that none is dropped.
    let mut in_flight = 0;
    until("carry frames", || {
        while let Some(frame) = next.filter(|_| in_flight < 32) {
            if !from.send(frame).expect("the frame is sent") {
                break;
            }
            in_flight += 1;
            next = sent.next();
        }
        from.flush();
        let taken = to.receive(64, |frame| came.push(frame.to_vec()));
        in_flight -= taken.expect("the device keeps the rules");
        came.len() >= frames.len()
    });
    came
}
