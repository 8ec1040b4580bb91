//! The simplest wire: copies every frame from each tap to the other, at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use lab::napi::Stack;
use lab::tap::Tap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Carries frames between two taps until `stop`; returns how many.
pub(crate) fn carry(taps: &[Tap], stop: &AtomicBool) -> io::Result<u64> {
    let patience = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let mut carried = 0;
    let mut frame = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        {
            let mut fds: Vec<_> = taps
                .iter()
                .flat_map(|tap| (0..tap.queues()).map(|queue| tap.fd(queue)))
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            poll(&mut fds, Some(&patience))?;
        }
        for (from, to) in [(&taps[0], &taps[1]), (&taps[1], &taps[0])] {
            for queue in 0..from.queues() {
                while from.transmit(queue, &mut frame)? {
                    to.deliver(queue, &frame)?;
                    carried += 1;
                }
            }
        }
    }
    Ok(carried)
}
