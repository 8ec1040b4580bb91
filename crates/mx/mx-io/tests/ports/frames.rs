//! Frames that differ from each other, and ports that exchange them.

use std::time::{Duration, Instant};

use ::mx::wire::FrameType;
use mx_io::port::{ENDPOINT_AT, NicId, Outgoing, Port, Room, Transmitted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes of the shortest frame: a header.
pub(crate) const SHORTEST: usize = 24;

/// Longer than any busy machine takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy)]
pub(crate) struct To {
    pub(crate) nic: NicId,
    pub(crate) endpoint: u8,
}

impl To {
    pub(crate) fn port(port: &dyn Port) -> Self {
        Self { nic: port.nic_id(), endpoint: port.endpoint() }
    }
}

/// Writes frame `number`, which says its number and depends on it nearly everywhere. It is none of
/// a large message: some ports wake no thread for those, and let others overtake them.
pub(crate) fn write(frame: &mut [u8], endpoint: u8, number: u32) {
    for (at, byte) in frame.iter_mut().enumerate() {
        *byte = (at as u32).wrapping_mul(31).wrapping_add(number) as u8;
    }
    frame[0] = FrameType::Small as u8;
    frame[ENDPOINT_AT] = endpoint;
    frame[4..8].copy_from_slice(&number.to_be_bytes());
}

/// The number of a frame of `length` bytes, all of which are looked at.
pub(crate) fn read(frame: &[u8], endpoint: u8, length: usize) -> u32 {
    let number = number(frame);
    let mut expected = vec![0; length];
    write(&mut expected, endpoint, number);
    assert_eq!(frame[..length], expected, "frame {number} is not what it was");
    number
}

pub(crate) fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[4..8].try_into().unwrap())
}

/// Sends frames with these numbers and lengths, once; waits for room as long as it takes.
pub(crate) fn send(port: &mut dyn Port, to: To, frames: &[(u32, usize)]) {
    let mut frames = frames.iter();
    let mut offer = |frame: &mut [u8]| {
        let (number, length) = *frames.next()?;
        write(&mut frame[..length], to.endpoint, number);
        Some(Outgoing::new(to.nic, to.endpoint, length))
    };
    while let Transmitted::Full(room) = port.transmit(&mut offer).unwrap() {
        wait_for_room(port, room);
    }
}

/// Waits as the port says.
pub(crate) fn wait_for_room(port: &mut dyn Port, room: Room) {
    let flags = match room {
        Room::Later(span) => return std::thread::sleep(span),
        Room::Writable => PollFlags::OUT,
        Room::Signalled => PollFlags::IN,
    };
    assert!(sleep(port, flags), "slept through room to send");
    port.clear().unwrap();
}

/// Sleeps until the port is ready; `false` if it is not for far longer than that takes.
pub(crate) fn sleep(port: &dyn Port, flags: PollFlags) -> bool {
    poll_for(port, flags, Timespec { tv_sec: 20, tv_nsec: 0 })
}

/// Sleeps until a frame comes, for so long at most; whether one came.
pub(crate) fn sleep_for(port: &dyn Port, span: Duration) -> bool {
    poll_for(port, PollFlags::IN, Timespec { tv_sec: 0, tv_nsec: span.subsec_nanos().into() })
}

fn poll_for(port: &dyn Port, flags: PollFlags, span: Timespec) -> bool {
    let mut fds = vec![PollFd::from_borrowed_fd(port.readiness(), flags)];
    let more = port.more_readiness().into_iter();
    fds.extend(more.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    poll(&mut fds, Some(&span)).unwrap() > 0
}

/// Does `step` until it says that all is done; fails if nothing is for long.
pub(crate) fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < PATIENCE, "{what}: still not after {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// All that comes until nothing has come for a while, as sender and frame. Silence proves nothing
/// on a machine that stands still: for frames that have to come there is [`take`].
pub(crate) fn drain(port: &mut dyn Port) -> Vec<(NicId, Vec<u8>)> {
    take(port, 0)
}

/// `count` frames, however long they take, and whatever else comes until nothing has come for a
/// while.
pub(crate) fn take(port: &mut dyn Port, count: usize) -> Vec<(NicId, Vec<u8>)> {
    let mut came = Vec::new();
    let mut last = Instant::now();
    until("frames come, and then none", || {
        if port.receive(64, &mut |from, frame: &[u8]| came.push((from, frame.to_vec()))).unwrap()
            > 0
        {
            last = Instant::now();
        }
        came.len() >= count && last.elapsed() >= Duration::from_millis(200)
    });
    came
}
